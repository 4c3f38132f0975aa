/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Wakeups that are counted, and nothing else: pairs of processes hand a turn to each other by
 * futex, so that of each pair one runs and one sleeps. In the middle, while all of them are
 * at it, the kernel's BPF statistics are on for a window of time.
 *
 * Under `-icount` one emulated CPU runs at a time and all share one clock. A program that is
 * interrupted by the end of its CPU's turn is charged with the turns of all others. So every
 * process gives its CPU's turn away where the kernel returns to it: PAUSE ends it in QEMU.
 * The next turn is a whole one, longer than a wakeup and the sleep that follows take.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_PAIRS = 512 };

struct pair {
	_Alignas(64) uint32_t turn;
	/* By futex waits that did sleep, that is, by wakeups. */
	_Alignas(64) uint64_t woken[2];
};

static struct pair *pairs;

static void fail(const char *what)
{
	fprintf(stderr, "wakeups: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void give_turn_away(void)
{
	__asm__ volatile("pause" ::: "memory");
}

static _Noreturn void play(struct pair *pair, uint32_t me)
{
	uint64_t woken = 0;

	for (;;) {
		while (__atomic_load_n(&pair->turn, __ATOMIC_ACQUIRE) != me) {
			if (syscall(SYS_futex, &pair->turn, FUTEX_WAIT, !me, NULL) == 0)
				__atomic_store_n(&pair->woken[me], ++woken, __ATOMIC_RELAXED);
			give_turn_away();
		}
		__atomic_store_n(&pair->turn, !me, __ATOMIC_RELEASE);
		syscall(SYS_futex, &pair->turn, FUTEX_WAKE, 1);
		give_turn_away();
	}
}

static uint64_t woken(int nr_pairs)
{
	uint64_t sum = 0;

	for (int i = 0; i < nr_pairs; i++)
		for (int j = 0; j < 2; j++)
			sum += __atomic_load_n(&pairs[i].woken[j], __ATOMIC_RELAXED);
	return sum;
}

/* Sums of /proc/schedstat over CPUs: wakeups of all tasks. See sched-stats.rst of Linux. */
static uint64_t kernel_wakeups(void)
{
	FILE *file = fopen("/proc/schedstat", "r");
	uint64_t sum = 0, ttwu;
	char *line = NULL;
	size_t size = 0;

	if (!file)
		fail("/proc/schedstat");
	while (getline(&line, &size, file) > 0)
		if (sscanf(line, "cpu%*u %*u %*u %*u %*u %lu", &ttwu) == 1)
			sum += ttwu;
	fclose(file);
	free(line);
	return sum;
}

/* Since boot, of all CPUs together. */
static double idle_s(void)
{
	FILE *file = fopen("/proc/uptime", "r");
	double idle;

	if (!file || fscanf(file, "%*f %lf", &idle) != 1)
		fail("/proc/uptime");
	fclose(file);
	return idle;
}

static void set(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		fail(path);
	close(fd);
}

static void sleep_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static long number(const char *text, long most)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (*end || end == text || n < 1 || n > most) {
		fprintf(stderr, "wakeups: %s is not a number from 1 to %ld\n", text, most);
		exit(2);
	}
	return n;
}

int main(int argc, char **argv)
{
	struct sched_param realtime = { .sched_priority = 10 };
	static const char stats[] = "/proc/sys/kernel/bpf_stats_enabled";
	uint64_t from, from_kernel, all, all_kernel;
	double from_s, from_idle_s;
	int nr_pairs;
	long nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	long warmup_ms, window_ms;

	if (argc != 4) {
		fprintf(stderr, "usage: wakeups PAIRS WARMUP_MS WINDOW_MS\n");
		return 2;
	}
	nr_pairs = (int)number(argv[1], MAX_PAIRS);
	warmup_ms = number(argv[2], 100000);
	window_ms = number(argv[3], 100000);
	/* A group of its own: all of it ends at the end. */
	if (setpgid(0, 0))
		fail("setpgid");
	pairs = mmap(NULL, sizeof(*pairs) * MAX_PAIRS, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (pairs == MAP_FAILED)
		fail("mmap");
	for (int i = 0; i < 2 * nr_pairs; i++) {
		pid_t pid = fork();

		if (pid < 0)
			fail("fork");
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			play(&pairs[i / 2], i % 2);
		}
	}
	/* The scheduler that is measured has nothing to do with the one who measures. */
	if (sched_setscheduler(0, SCHED_FIFO, &realtime))
		fail("SCHED_FIFO");
	sleep_ms(warmup_ms);

	set(stats, "1");
	from = woken(nr_pairs);
	from_kernel = kernel_wakeups();
	from_s = now_s();
	from_idle_s = idle_s();
	sleep_ms(window_ms);
	all = woken(nr_pairs) - from;
	all_kernel = kernel_wakeups() - from_kernel;
	from_s = now_s() - from_s;
	from_idle_s = idle_s() - from_idle_s;
	set(stats, "0");

	signal(SIGTERM, SIG_IGN);
	kill(0, SIGTERM);
	printf("{\"cpus\": %ld, \"pairs\": %d, \"wakeups\": %lu, \"kernel_wakeups\": %lu, \"seconds\": %.6f, "
	       "\"idle_share\": %.4f}\n",
	       nr_cpus, nr_pairs, all, all_kernel, from_s,
	       from_idle_s / from_s / (double)nr_cpus);
	while (wait(NULL) > 0)
		;
	return all ? 0 : 1;
}
