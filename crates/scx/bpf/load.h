/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decaying averages as the kernel's PELT has them: half is forgotten after 32 periods
 * of 1024 * 1024 ns. Tasks of this class have none of their own in the kernel.
 * What a task or a CPU did is added up and folded in once a period, at a switch.
 */
#ifndef REVEILLE_SCX_LOAD_H
#define REVEILLE_SCX_LOAD_H

#include "world.h"

#define PERIOD_SHIFT 20
#define PERIOD_NS (1ull << PERIOD_SHIFT)
/* 1 - 2^(-1/32), times 65536. */
#define DECAY_PER_PERIOD 1404u

/* 2^(-n/32), times 65536. */
const u32 half_lives[32] = {
	65536, 64132, 62757, 61413, 60097, 58809, 57549, 56316, 55109, 53928, 52773,
	51642, 50535, 49452, 48393, 47356, 46341, 45348, 44376, 43425, 42495, 41584,
	40693, 39821, 38968, 38133, 37316, 36516, 35734, 34968, 34219, 33486,
};

/* What is left of `value` after so long. */
static __always_inline u64 decayed(u64 value, u64 ns)
{
	u64 periods = ns >> PERIOD_SHIFT, part = ns & (PERIOD_NS - 1);

	if (periods >= 32 * 32)
		return 0;
	value = (value >> (periods / 32)) * half_lives[periods % 32] >> 16;
	return value - (value * ((part * DECAY_PER_PERIOD) >> PERIOD_SHIFT) >> 16);
}

/* An average that has been moving towards `input` for so long. */
static __always_inline u32 moved_towards(u32 avg, u64 input, u64 ns)
{
	return decayed(avg, ns) + input - decayed(input, ns);
}

/*
 * A CPU has switched: the load of the tasks on it and its utilisation follow. Under
 * its runqueue's lock.
 */
static __always_inline void fold_cpu(struct cpu_state *c, u32 cpu, u64 ran_ns, u64 now_ns)
{
	u64 since_ns = now_ns - c->folded_ns, busy;

	c->busy_ns += ran_ns;
	if (since_ns < PERIOD_NS)
		return;
	busy = c->busy_ns < since_ns ? (c->busy_ns << 10) / since_ns : 1024;
	c->util_avg = moved_towards(c->util_avg, busy, since_ns);
	/* Each runnable task counts as one of default weight, for the share that it was there. */
	c->load_avg = moved_towards(c->load_avg, nr_running(cpu) * busy, since_ns);
	c->busy_ns = 0;
	c->folded_ns = now_ns;
}

/* A task sleeps: the load that it has been since its last such sleep. */
static __always_inline void fold_task(struct task_state *t, u64 weight, u64 now_ns)
{
	u64 since_ns = now_ns - t->folded_ns, ran_ns;

	if (since_ns < PERIOD_NS)
		return;
	ran_ns = t->policy.sum_exec_ns - t->folded_exec_ns;
	if (ran_ns > since_ns)
		ran_ns = since_ns;
	weight = weight * 1024 / WEIGHT_DEFAULT;
	t->policy.load_avg =
		moved_towards(t->policy.load_avg, weight * ((ran_ns << 10) / since_ns) >> 10, since_ns);
	t->folded_ns = now_ns;
	t->folded_exec_ns = t->policy.sum_exec_ns;
}

#endif
