// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Victims, two for every CPU, run and sleep in turns; their affinity is set to random CPUs all
 * the time. The storm pins itself as well, and checks that it is where it asked to be.
 */
#define _GNU_SOURCE
#include "storm.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define VICTIMS_PER_CPU 2

static int first_victim;

static void prepare(struct world *world)
{
	first_victim = world->nr_watched;
	for (int i = 0; i < world->nr_cpus * VICTIMS_PER_CPU; i++) {
		if (world->nr_watched == MAX_WATCHED)
			die("affinity: %d CPUs are too many", world->nr_cpus);
		world->watched[world->nr_watched].cpu = -1;
		world->watched[world->nr_watched++].kind = VICTIM;
	}
}

__attribute__((noreturn)) static void be_victim(struct turns *turns)
{
	for (;;) {
		spin_ns(random_below(1000000));
		sleep_ns(random_below(1000000));
		turns->count++;
	}
}

/* Some CPUs, at least one; each with a chance of one in `rare`. */
static void random_set(cpu_set_t *set, size_t size, int nr_cpus)
{
	uint32_t rare = 1 + random_below(8);

	CPU_ZERO_S(size, set);
	CPU_SET_S(random_below((uint32_t)nr_cpus), size, set);
	for (int cpu = 0; cpu < nr_cpus; cpu++)
		if (!random_below(rare))
			CPU_SET_S(cpu, size, set);
}

/* Does this task run elsewhere, while it may run on one CPU alone? */
static bool is_astray(int cpu, cpu_set_t *only, cpu_set_t *now, size_t size)
{
	int found = sched_getcpu();

	if (sched_getaffinity(0, size, now))
		die("affinity: sched_getaffinity: %s", strerror(errno));
	return CPU_EQUAL_S(size, only, now) && found != cpu;
}

static void pin_and_check(struct world *world, cpu_set_t *only, cpu_set_t *now, size_t size)
{
	int cpu = (int)random_below((uint32_t)world->nr_cpus);
	int astray = 0;

	CPU_ZERO_S(size, only);
	CPU_SET_S(cpu, size, only);
	if (sched_setaffinity(0, size, only))
		return;
	/*
	 * If the CPU goes offline the kernel lifts the restriction, and sets it again later.
	 * Between the two questions that may happen once, but not time and again.
	 */
	while (astray < 5 && is_astray(cpu, only, now, size))
		astray++;
	if (astray == 5)
		die("affinity: ran on another CPU than %d, the only one allowed", cpu);
}

static void run(struct world *world, struct tally *tally)
{
	int nr_victims = world->nr_cpus * VICTIMS_PER_CPU;
	size_t size = CPU_ALLOC_SIZE(world->nr_cpus);
	cpu_set_t *set = CPU_ALLOC(world->nr_cpus), *now = CPU_ALLOC(world->nr_cpus);
	pid_t *victims = calloc((size_t)nr_victims, sizeof(*victims));

	if (!set || !now || !victims)
		die("affinity: no memory");
	for (int i = 0; i < nr_victims; i++) {
		victims[i] = fork_child();
		if (!victims[i])
			be_victim(&world->watched[first_victim + i]);
	}
	while (!world->stop) {
		for (int i = 0; i < 16; i++) {
			random_set(set, size, world->nr_cpus);
			if (!sched_setaffinity(victims[random_below((uint32_t)nr_victims)], size, set))
				tally->done++;
			else if (errno == EINVAL)
				tally->refused++; /* all of them are offline */
			else
				die("affinity: sched_setaffinity: %s", strerror(errno));
		}
		pin_and_check(world, set, now, size);
		sleep_ns(random_below(2) * NS_PER_MS);
	}
	for (int i = 0; i < nr_victims; i++) {
		kill(victims[i], SIGKILL);
		waitpid(victims[i], NULL, 0);
	}
}

const struct storm affinity_storm = {
	.name = "affinity",
	.counts = "affinities set",
	.prepare = prepare,
	.run = run,
};
