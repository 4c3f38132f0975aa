/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who wakes whom: the waker/wakee history that tells a one-to-one pair from a
 * server with many clients, and the short-task test built on it.
 */
#ifndef REVEILLE_POLICY_WAKEE_H
#define REVEILLE_POLICY_WAKEE_H

#include "features.h"

/* record_wakee(): one halving per second at most, however late. */
POLICY_INLINE void policy_record_wakee(struct policy_task *waker, u32 wakee, u64 now_j, u32 hz)
{
	if (now_j > waker->wakee_flip_decay_j + hz) {
		waker->wakee_flips >>= 1;
		waker->wakee_flip_decay_j = now_j;
	}
	if (waker->last_wakee != wakee) {
		waker->last_wakee = wakee;
		waker->wakee_flips++;
	}
}

/* wake_wide(): both switch wakees so often that one cache cannot hold them all. */
POLICY_INLINE bool policy_wake_wide(u32 waker_flips, u32 wakee_flips, u32 llc_weight)
{
	u32 hi = waker_flips > wakee_flips ? waker_flips : wakee_flips;
	u32 lo = waker_flips > wakee_flips ? wakee_flips : waker_flips;

	return lo >= llc_weight && (u64)hi >= (u64)lo * llc_weight;
}

/* is_short_task() of SIS_SHORT v6: wakes one partner only, and sleeps soon. */
POLICY_INLINE bool policy_is_short(const struct policy_tunables *t, const struct policy_task *p)
{
	return policy_has(t, POLICY_SIS_SHORT) && p && p->wakee_flips == 0 && p->dur_avg_ns != 0 &&
	       (u64)p->dur_avg_ns * 8 < t->min_granularity_ns;
}

/* sysctl_sched_migration_cost */
#define POLICY_MIGRATION_COST_NS 500000

/* Half of wake_on_current() (SIS_CURRENT v8, 2023-04-29): wakes `partner` only, and sleeps soon. */
POLICY_INLINE bool policy_is_partner(const struct policy_task *p, u32 partner)
{
	return p->wakee_flips == 0 && p->last_wakee == partner && p->dur_avg_ns != 0 &&
	       p->dur_avg_ns < POLICY_MIGRATION_COST_NS;
}

/* is_short_task() of SIS_SHORT v4 (2022-12-16): sleeps soon, however many it wakes. */
POLICY_INLINE bool policy_is_short_v4(const struct policy_tunables *t, const struct policy_task *p)
{
	return policy_has(t, POLICY_SIS_SHORT_V4) && p && p->dur_avg_ns != 0 &&
	       (u64)p->dur_avg_ns * 8 <= t->min_granularity_ns;
}

#endif
