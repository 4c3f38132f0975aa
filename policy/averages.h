/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The running averages that decisions lean on: how long a CPU stays idle, how
 * long a task runs between sleeps, and how many CPUs a search may look at.
 */
#ifndef REVEILLE_POLICY_AVERAGES_H
#define REVEILLE_POLICY_AVERAGES_H

#include "features.h"

/* update_avg() of the kernel: an eighth of the difference, truncated toward zero. */
POLICY_INLINE s64 policy_ewma8(s64 avg, s64 sample)
{
	s64 diff = sample - avg;

	/* BPF has no signed division before ISA v4: divide the magnitude. */
	return diff < 0 ? avg - (s64)((u64)-diff >> 3) : avg + (s64)((u64)diff >> 3);
}

/* rq->avg_idle at the first wake-up after an idle stretch; capped at twice the balance cost. */
POLICY_INLINE u64 policy_avg_idle(u64 avg_idle_ns, u64 idle_ns, u64 max_idle_balance_cost_ns)
{
	u64 cap = 2 * max_idle_balance_cost_ns;
	u64 avg = (u64)policy_ewma8((s64)avg_idle_ns, (s64)idle_ns);

	return avg > cap ? cap : avg;
}

/* dur_avg at a dequeue for sleep; preemption does not end a section (SIS_SHORT v6 1/2). */
POLICY_INLINE void policy_task_slept(struct policy_task *p)
{
	u64 ran_ns = p->sum_exec_ns - p->prev_sleep_sum_ns;

	p->prev_sleep_sum_ns = p->sum_exec_ns;
	p->dur_avg_ns = policy_ewma8(p->dur_avg_ns, (s64)ran_ns);
}

/*
 * sd_shared->nr_idle_scan from the summed utilisation of an LLC (SIS_UTIL, v6.0,
 * commit 70fb5ccf2ebb): a parabola that is full width when idle and reaches zero
 * at about 85% with the usual 117% imbalance.
 */
POLICY_INLINE u32 policy_nr_idle_scan(u64 sum_util, u32 llc_weight, u32 imbalance_pct)
{
	u64 x = sum_util / llc_weight;
	u64 y = x * x * imbalance_pct * imbalance_pct / (10000ull * POLICY_CAPACITY_SCALE);

	if (y > POLICY_CAPACITY_SCALE)
		y = POLICY_CAPACITY_SCALE;
	return (u32)((POLICY_CAPACITY_SCALE - y) * llc_weight / POLICY_CAPACITY_SCALE);
}

#endif
