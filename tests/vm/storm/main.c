// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * storm: CPUs, affinities, processes and task groups change all the time, while every task must
 * go on getting its turn. Ends with 0 if all storms found what they checked and no task waited
 * too long; with 1 and a line that says what failed; with 2 for a wrong command line. Run it as
 * root in a virtual machine: it switches CPUs off.
 */
#define _GNU_SOURCE
#include "storm.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_SECONDS 3600
#define CANARY_PERIOD_NS (10 * NS_PER_MS)
#define WATCH_PERIOD_NS (200 * NS_PER_MS)

static const struct storm *const storms[] = {
	&hotplug_storm, &affinity_storm, &fork_storm, &cgroup_storm,
};
#define STORMS (sizeof(storms) / sizeof(storms[0]))

static const char *const kind_names[KINDS] = { "canary", "hog", "victim" };

static const char usage[] =
	"usage: storm [--seconds N] [--stall S] [STORM...]\n"
	"\n"
	"  STORM        hotplug, affinity, fork, cgroup [all of them at once]\n"
	"  --seconds N  how long [10]\n"
	"  --stall S    a task that gets no turn for so many seconds is a failure [20]\n";

/* What the watcher saw of one task. */
struct seen {
	uint64_t count;
	uint64_t at_ns;
	uint64_t longest_ns;
};

struct options {
	uint64_t run_ns;
	uint64_t stall_ns;
	bool wanted[STORMS];
};

/* A canary sleeps on the CPU that it belongs to, and comes back there when that is online. */
__attribute__((noreturn)) static void be_canary(struct turns *turns)
{
	size_t size = CPU_ALLOC_SIZE(turns->cpu + 1);
	cpu_set_t *home = CPU_ALLOC(turns->cpu + 1);

	if (!home)
		die("no memory");
	CPU_ZERO_S(size, home);
	CPU_SET_S(turns->cpu, size, home);
	for (;;) {
		if (sched_getcpu() != turns->cpu && sched_setaffinity(0, size, home) && errno != EINVAL)
			die("canary of CPU %d: sched_setaffinity: %s", turns->cpu, strerror(errno));
		sleep_ns(CANARY_PERIOD_NS);
		turns->count++;
	}
}

__attribute__((noreturn)) static void be_hog(struct turns *turns)
{
	for (;;) {
		for (int i = 0; i < 100000; i++)
			__asm__ volatile("");
		turns->count++;
	}
}

static int start_crowd(struct world *world, pid_t *pids)
{
	int started = 0;

	for (int kind = CANARY; kind <= HOG; kind++) {
		for (int cpu = 0; cpu < world->nr_cpus; cpu++, started++) {
			struct turns *turns = &world->watched[started];

			turns->kind = (enum kind)kind;
			turns->cpu = kind == CANARY ? cpu : -1;
		}
	}
	world->nr_watched = started;
	for (int i = 0; i < started; i++) {
		pids[i] = fork_child();
		if (pids[i])
			continue;
		if (world->watched[i].kind == CANARY)
			be_canary(&world->watched[i]);
		be_hog(&world->watched[i]);
	}
	return started;
}

/* Looks at every task once; dies if one has waited too long. */
static void watch(const struct world *world, struct seen *seen)
{
	uint64_t now = now_ns();

	for (int i = 0; i < world->nr_watched; i++) {
		const struct turns *turns = &world->watched[i];
		uint64_t count = turns->count;
		uint64_t waited;

		if (count != seen[i].count || !seen[i].at_ns) {
			seen[i].count = count;
			seen[i].at_ns = now;
			continue;
		}
		waited = now - seen[i].at_ns;
		if (waited > seen[i].longest_ns)
			seen[i].longest_ns = waited;
		if (waited > world->stall_ns)
			die("STALL: %s %d got no turn for %llu ms (CPU %d, %llu turns before)",
			    kind_names[turns->kind], i, (unsigned long long)(waited / NS_PER_MS),
			    turns->cpu, (unsigned long long)count);
	}
}

/* Reaps a storm that has ended, which is right only after world->stop; true if there was one. */
static bool reap(const struct world *world, pid_t *pids, size_t *name)
{
	int status;
	pid_t ended = waitpid(-1, &status, WNOHANG);

	if (ended <= 0)
		return false;
	for (*name = 0; *name < STORMS && pids[*name] != ended; (*name)++)
		;
	if (*name == STORMS)
		die("process %d, which runs for ever, ended with status %#x", (int)ended, status);
	/* The storm itself has said why. */
	if (status || !world->stop)
		die("%s: ended with status %#x", storms[*name]->name, status);
	pids[*name] = 0;
	return true;
}

static void start_storms(struct world *world, struct tally *tallies, const struct options *options,
			 pid_t *pids)
{
	for (size_t i = 0; i < STORMS; i++) {
		if (!options->wanted[i])
			continue;
		pids[i] = fork_child();
		if (!pids[i]) {
			storms[i]->run(world, &tallies[i]);
			_exit(0);
		}
	}
}

/* Watches until the storms' time is over, and then until all have ended. */
static void watch_storms(struct world *world, const struct options *options, pid_t *pids,
			 struct seen *seen)
{
	uint64_t end_ns = now_ns() + options->run_ns;
	int running = 0;
	size_t name;

	for (size_t i = 0; i < STORMS; i++)
		running += options->wanted[i];
	while (running) {
		sleep_ns(WATCH_PERIOD_NS);
		watch(world, seen);
		while (reap(world, pids, &name))
			running--;
		if (now_ns() > end_ns)
			world->stop = true;
		if (now_ns() > end_ns + 3 * options->stall_ns)
			die("STALL: a storm does not end");
	}
}

static void report(const struct world *world, const struct tally *tallies, const struct seen *seen,
		   const struct options *options)
{
	uint64_t longest_ns[KINDS] = { 0 };

	for (size_t i = 0; i < STORMS; i++) {
		if (!options->wanted[i])
			continue;
		printf("storm: %-8s %8llu %s, %llu refused\n", storms[i]->name,
		       (unsigned long long)tallies[i].done, storms[i]->counts,
		       (unsigned long long)tallies[i].refused);
		if (!tallies[i].done)
			die("%s: nothing was done, so nothing was tested", storms[i]->name);
	}
	for (int i = 0; i < world->nr_watched; i++) {
		const struct turns *turns = &world->watched[i];

		if (!turns->count)
			die("STALL: %s %d never got a turn", kind_names[turns->kind], i);
		if (seen[i].longest_ns > longest_ns[turns->kind])
			longest_ns[turns->kind] = seen[i].longest_ns;
	}
	printf("storm: longest wait for a turn, looked at every %llu ms:",
	       (unsigned long long)(WATCH_PERIOD_NS / NS_PER_MS));
	for (int kind = 0; kind < KINDS; kind++)
		printf(" %s %llu ms%s", kind_names[kind],
		       (unsigned long long)(longest_ns[kind] / NS_PER_MS), kind + 1 < KINDS ? "," : "\n");
}

__attribute__((noreturn)) static void refuse(const char *problem, const char *word)
{
	fprintf(stderr, "storm: %s: %s\n%s", word, problem, usage);
	exit(2);
}

static uint64_t seconds_of(const char *option, const char *word)
{
	char *end;
	unsigned long seconds = word ? strtoul(word, &end, 10) : 0;

	if (!word || *end || !seconds || seconds > MAX_SECONDS)
		refuse("needs a number of seconds from 1 to 3600", option);
	return seconds * NS_PER_S;
}

static struct options options_of(char **words)
{
	struct options options = { .run_ns = 10 * NS_PER_S, .stall_ns = 20 * NS_PER_S };
	bool any = false;

	for (; *words; words++) {
		size_t i = 0;

		if (!strcmp(*words, "--seconds")) {
			options.run_ns = seconds_of("--seconds", words[1]);
			words++;
		} else if (!strcmp(*words, "--stall")) {
			options.stall_ns = seconds_of("--stall", words[1]);
			words++;
		} else {
			while (i < STORMS && strcmp(*words, storms[i]->name))
				i++;
			if (i == STORMS)
				refuse("is no option and no storm", *words);
			options.wanted[i] = any = true;
		}
	}
	for (size_t i = 0; i < STORMS && !any; i++)
		options.wanted[i] = true;
	return options;
}

static void *shared(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		die("no memory: %s", strerror(errno));
	return memory;
}

int main(int argc, char **argv)
{
	struct options options = options_of(argv + (argc > 0));
	struct world *world = shared(sizeof(*world));
	struct tally *tallies = shared(STORMS * sizeof(*tallies));
	struct sched_param param = { .sched_priority = 1 };
	pid_t storm_pids[STORMS] = { 0 };
	struct seen *seen;
	pid_t *crowd;
	int nr_crowd;

	world->nr_cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
	world->stall_ns = options.stall_ns;
	if (2 * world->nr_cpus > MAX_WATCHED)
		die("%d CPUs are too many", world->nr_cpus);
	seen = calloc(MAX_WATCHED, sizeof(*seen));
	crowd = calloc((size_t)world->nr_cpus * 2, sizeof(*crowd));
	if (!seen || !crowd)
		die("no memory");

	nr_crowd = start_crowd(world, crowd);
	for (size_t i = 0; i < STORMS; i++)
		if (options.wanted[i] && storms[i]->prepare)
			storms[i]->prepare(world);
	start_storms(world, tallies, &options, storm_pids);
	/* The watcher must see a stall and not suffer it: it runs in a higher class. */
	if (sched_setscheduler(0, SCHED_FIFO, &param))
		die("SCHED_FIFO is needed to watch: %s", strerror(errno));
	watch_storms(world, &options, storm_pids, seen);
	for (int i = 0; i < nr_crowd; i++)
		kill(crowd[i], SIGKILL);
	for (int i = 0; i < nr_crowd; i++)
		waitpid(crowd[i], NULL, 0);
	report(world, tallies, seen, &options);
	return 0;
}
