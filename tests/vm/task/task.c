// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tasks for tests in the guest that its shell cannot be or start:
 *
 *	task idle|fifo COMMAND...	the command, as SCHED_IDLE or SCHED_FIFO
 *	task taken N MS			how much of N CPUs was taken away meanwhile, in percent
 *	task silent SOCKET SECONDS	connects, and says nothing
 *	task flip FILE SECONDS US LINE...	writes one line after the other, with pauses of so many
 *					us; prints how many
 *	task hogs N NICE		so many processes that compute, until they are killed
 *	task changes GROUP		joins it, computes, and changes its nice value every 0.1 ms
 *	task files DIRECTORY		creates and removes a file there, until it is killed
 *	task canary DIRECTORY SECONDS	does that every millisecond; prints the longest wait in us
 *	task wakes DIRECTORY SECONDS	likewise, and the wait for the CPU when it wakes counts, too
 *	task behind ROUNDS MS		its longest wait in us, if it lines up on the idle CPU 1, may run on 0, too,
 *					and a SCHED_FIFO task runs on 1 for so long right then
 *	task moves GROUP GROUP SECONDS	goes from one to the other every millisecond, likewise
 *	task pairs N SECONDS		N pairs wake each other by pipes, every other pair with changing
 *					affinities; each must go on every second; prints the wakeups
 *	task joins GROUP SECONDS	children, one after the other, that join it and end
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "task: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

/* Percent of the time until `end_us` in which it did not run, though nothing is before it. */
static int be_watchful(int cpu, int64_t end_us)
{
	struct sched_param first = { .sched_priority = 1 };
	int64_t from_us = now_us(), at_us = from_us, taken_us = 0;
	cpu_set_t own;

	CPU_ZERO(&own);
	CPU_SET(cpu, &own);
	if (sched_setaffinity(0, sizeof(own), &own) || sched_setscheduler(0, SCHED_FIFO, &first))
		die("task taken");
	while (at_us < end_us) {
		int64_t next_us = now_us();

		/* The guest's own interrupts are shorter. */
		if (next_us - at_us > 1000)
			taken_us += next_us - at_us;
		at_us = next_us;
	}
	return (int)(100 * taken_us / (at_us - from_us));
}

static void watch(int n, int ms)
{
	int64_t end_us = now_us() + ms * INT64_C(1000);
	int status, sum = 0, online = (int)sysconf(_SC_NPROCESSORS_ONLN);

	if (n > online)
		n = online;
	for (int cpu = 0; cpu < n; cpu++)
		if (!fork())
			_exit(be_watchful(cpu, end_us));
	while (wait(&status) > 0)
		sum += WEXITSTATUS(status);
	printf("%d\n", sum / n);
}

static void be_silent(const char *path, unsigned int seconds)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strncpy(at.sun_path, path, sizeof(at.sun_path) - 1);
	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)))
		die(path);
	sleep(seconds);
}

static void flip(const char *path, int seconds, unsigned int pause_us, char **lines, int n)
{
	int64_t end_us = now_us() + seconds * INT64_C(1000000);
	int fd = open(path, O_WRONLY);
	long written = 0;

	if (fd < 0)
		die(path);
	for (; now_us() < end_us; written++) {
		const char *line = lines[written % n];

		if (pwrite(fd, line, strlen(line), 0) < 0)
			die(line);
		if (pause_us)
			usleep(pause_us);
	}
	printf("%ld\n", written);
}

static _Noreturn void be_hogs(int n, int to)
{
	int all_there[2];
	char none;

	/* None begins before all are there: the others would keep the first from forking. */
	if (pipe(all_there))
		die("pipe");
	while (--n > 0 && fork() > 0)
		;
	close(all_there[1]);
	if (read(all_there[0], &none, 1))
		die("pipe");
	if (setpriority(PRIO_PROCESS, 0, to))
		die("setpriority");
	/* The emulator makes one block of them that does nothing: guest time costs the host little. */
	for (;;)
		__asm__ volatile(".rept 400\n\tnop\n\t.endr" ::: "memory");
}

static _Noreturn void be_changed(void)
{
	for (int to = 0;; to = !to) {
		for (int64_t from_us = now_us(); now_us() < from_us + 100;)
			;
		if (setpriority(PRIO_PROCESS, 0, to))
			die("setpriority");
	}
}

static void make_file(const char *directory)
{
	char name[4096];
	int fd;

	snprintf(name, sizeof(name), "%s/%d", directory, getpid());
	fd = open(name, O_CREAT | O_WRONLY, 0600);
	if (fd < 0)
		die(name);
	close(fd);
	if (unlink(name))
		die(name);
}

static void join(const char *group)
{
	char name[4096];
	int fd;

	snprintf(name, sizeof(name), "%s/cgroup.procs", group);
	fd = open(name, O_WRONLY);
	if (fd < 0 || write(fd, "0", 1) != 1)
		die(name);
	close(fd);
}

static void join_often(const char *group, int seconds)
{
	int64_t end_us = now_us() + seconds * INT64_C(1000000);

	while (now_us() < end_us) {
		if (!fork()) {
			join(group);
			_exit(0);
		}
		usleep(5000);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}

static void be_canary(char **places, int n, int seconds, int wakes)
{
	int64_t end_us = now_us() + seconds * INT64_C(1000000), longest_us = 0;

	for (int i = 0; now_us() < end_us; i++) {
		int64_t from_us = now_us(), took_us;

		if (n > 1)
			join(places[i % n]);
		else
			make_file(places[0]);
		took_us = now_us() - from_us;
		if (took_us > longest_us)
			longest_us = took_us;
		from_us = now_us();
		usleep(1000);
		took_us = now_us() - from_us - 1000;
		if (wakes && took_us > longest_us)
			longest_us = took_us;
	}
	printf("%lld\n", (long long)longest_us);
}

static void allow(unsigned long cpus)
{
	if (sched_setaffinity(0, sizeof(cpus), (cpu_set_t *)&cpus))
		die("sched_setaffinity");
}

static _Noreturn void take_cpu(int from, int ms)
{
	struct sched_param first = { .sched_priority = 1 };
	char turn;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	allow(1 << 1);
	if (sched_setscheduler(0, SCHED_FIFO, &first))
		die("sched_setscheduler");
	while (read(from, &turn, 1) == 1) {
		int64_t end_us = now_us() + ms * INT64_C(1000);

		while (now_us() < end_us)
			;
	}
	_exit(1);
}

static void be_behind(int rounds, int ms)
{
	int wakee[2], taker[2];
	int64_t from_us, took_us, longest_us = 0;

	if (pipe(wakee) || pipe(taker))
		die("pipe");
	if (!fork())
		take_cpu(taker[0], ms);
	if (!fork()) {
		allow(1 << 2);
		for (int i = 0; i < rounds; i++) {
			usleep((useconds_t)(3000 * ms));
			from_us = now_us();
			if (write(wakee[1], &from_us, sizeof(from_us)) < 0 || write(taker[1], "", 1) < 0)
				die("write");
		}
		_exit(0);
	}
	for (int i = 0; i < rounds; i++) {
		allow(1 << 1);
		allow(1 << 0 | 1 << 1);
		if (read(wakee[0], &from_us, sizeof(from_us)) < 0)
			die("read");
		took_us = now_us() - from_us;
		if (took_us > longest_us)
			longest_us = took_us;
	}
	printf("%lld\n", (long long)longest_us);
}

static _Noreturn void hand_on(int from, int to, int64_t *turns, int changes)
{
	int online = (int)sysconf(_SC_NPROCESSORS_ONLN);
	char turn;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		if (read(from, &turn, 1) != 1)
			_exit(1);
		++*(volatile int64_t *)turns;
		if (changes && *turns % 64 == 0) {
			cpu_set_t own;

			CPU_ZERO(&own);
			CPU_SET((int)(*turns / 64) % online, &own);
			sched_setaffinity(0, sizeof(own), &own);
		}
		if (write(to, &turn, 1) != 1)
			_exit(1);
	}
}

static void be_pairs(int n, int seconds)
{
	int64_t *turns = mmap(NULL, (size_t)n * 64, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int64_t seen[n], sum = 0;

	if (turns == MAP_FAILED)
		die("mmap");
	for (int i = 0; i < n; i++) {
		int there[2], back[2];

		seen[i] = 0;
		if (pipe(there) || pipe(back))
			die("pipe");
		if (!fork())
			hand_on(there[0], back[1], &turns[8 * i], i % 2);
		if (!fork())
			hand_on(back[0], there[1], &turns[8 * i], i % 2);
		if (write(there[1], "", 1) != 1)
			die("pipe");
		close(there[0]);
		close(there[1]);
		close(back[0]);
		close(back[1]);
	}
	/* Each turn is a wakeup. */
	for (int s = 0; s < seconds; s++) {
		sleep(1);
		for (int i = 0; i < n; i++) {
			int64_t now = *(volatile int64_t *)&turns[8 * i];

			if (now == seen[i]) {
				fprintf(stderr, "task: pair %d is lost after %lld turns\n", i, (long long)now);
				exit(1);
			}
			sum += now - seen[i];
			seen[i] = now;
		}
	}
	printf("%lld\n", (long long)sum);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	if (!strcmp(what, "idle") || !strcmp(what, "fifo")) {
		int policy = strcmp(what, "fifo") ? SCHED_IDLE : SCHED_FIFO;
		struct sched_param own = { .sched_priority = policy == SCHED_FIFO };

		if (sched_setscheduler(0, policy, &own))
			die("sched_setscheduler");
		execvp(argv[2], argv + 2);
		die(argv[2]);
	} else if (!strcmp(what, "taken") && argc == 4) {
		watch(atoi(argv[2]), atoi(argv[3]));
	} else if (!strcmp(what, "silent") && argc == 4) {
		be_silent(argv[2], (unsigned int)atoi(argv[3]));
	} else if (!strcmp(what, "flip") && argc > 5) {
		flip(argv[2], atoi(argv[3]), (unsigned int)atoi(argv[4]), argv + 5, argc - 5);
	} else if (!strcmp(what, "hogs") && argc == 4) {
		be_hogs(atoi(argv[2]), atoi(argv[3]));
	} else if (!strcmp(what, "changes")) {
		join(argv[2]);
		be_changed();
	} else if (!strcmp(what, "files")) {
		for (;;)
			make_file(argv[2]);
	} else if (!strcmp(what, "canary") && argc == 4) {
		be_canary(argv + 2, 1, atoi(argv[3]), 0);
	} else if (!strcmp(what, "wakes") && argc == 4) {
		be_canary(argv + 2, 1, atoi(argv[3]), 1);
	} else if (!strcmp(what, "behind") && argc == 4) {
		be_behind(atoi(argv[2]), atoi(argv[3]));
	} else if (!strcmp(what, "moves") && argc == 5) {
		be_canary(argv + 2, 2, atoi(argv[4]), 0);
	} else if (!strcmp(what, "pairs") && argc == 4) {
		be_pairs(atoi(argv[2]), atoi(argv[3]));
	} else if (!strcmp(what, "joins") && argc == 4) {
		join_often(argv[2], atoi(argv[3]));
	} else {
		fprintf(stderr, "task: see tests/vm/task/task.c\n");
		return 2;
	}
	return 0;
}
