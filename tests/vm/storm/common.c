// SPDX-License-Identifier: GPL-2.0-or-later
/* Time, chance, processes and files, for all storms. */
#define _GNU_SOURCE
#include "storm.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static uint64_t random_state;

void die(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fputs("storm: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(1);
}

pid_t fork_child(void)
{
	pid_t parent = getpid();
	pid_t child = fork();

	if (child < 0)
		die("fork: %s", strerror(errno));
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		random_state = 0;
	}
	return child;
}

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void sleep_ns(uint64_t ns)
{
	struct timespec left = { (time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S) };

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

void spin_ns(uint64_t ns)
{
	uint64_t end = now_ns() + ns;

	while (now_ns() < end)
		;
}

/* xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators"). */
uint32_t random_below(uint32_t limit)
{
	if (!random_state)
		random_state = 0x9e3779b97f4a7c15ull * (uint64_t)(getpid() + 1);
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return (uint32_t)(((random_state * 0x2545f4914f6cdd1dull >> 32) * limit) >> 32);
}

int write_word(const char *path, const char *word)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int error = 0;

	if (fd < 0)
		return errno;
	if (write(fd, word, strlen(word)) < 0)
		error = errno;
	close(fd);
	return error;
}
