/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the storms share. Every storm is a process that does one disturbing thing as often as
 * it can, and checks what it did; main.c watches that every task gets its turn meanwhile.
 */
#ifndef STORM_H
#define STORM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define NS_PER_MS 1000000ull
#define NS_PER_S 1000000000ull

/* Tasks whose turns are counted: canaries, hogs and victims of all CPUs. */
#define MAX_WATCHED 8192

enum kind { CANARY, HOG, VICTIM, KINDS };

/* One task's turns, on a cache line of its own. */
struct turns {
	_Atomic uint64_t count;
	enum kind kind;
	int cpu;
} __attribute__((aligned(64)));

/* What one storm did: what took effect, and what the kernel rightly refused. */
struct tally {
	_Atomic uint64_t done;
	_Atomic uint64_t refused;
} __attribute__((aligned(64)));

/* In memory that all processes share. */
struct world {
	_Atomic bool stop;
	int nr_cpus;
	uint64_t stall_ns;
	int nr_watched;
	struct turns watched[MAX_WATCHED];
};

/* A storm: runs until world->stop, returns when all it made is gone; die() if a check fails. */
struct storm {
	const char *name;
	const char *counts;
	void (*prepare)(struct world *world);
	void (*run)(struct world *world, struct tally *tally);
};

extern const struct storm hotplug_storm, affinity_storm, fork_storm, cgroup_storm;

/* Ends this process with 1 and a line that says why. */
__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);

/* A process that dies with its parent; 0 in the child. */
pid_t fork_child(void);

uint64_t now_ns(void);
void sleep_ns(uint64_t ns);
/* Busy for as long by the clock, whether it ran or waited for a CPU. */
void spin_ns(uint64_t ns);

/* Evenly distributed below `limit`; every process has a sequence of its own. */
uint32_t random_below(uint32_t limit);

/* Writes a word into a file of sysfs or cgroupfs; 0, or the errno. */
int write_word(const char *path, const char *word);

#endif
