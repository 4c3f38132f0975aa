/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * SIS_CACHE (mails of 2023-11-21, v2 1/3 to 3/3): while the last task of an idle CPU is
 * expected back, searches for other wakees pass over that CPU.
 */
#ifndef REVEILLE_POLICY_CACHE_HOT_H
#define REVEILLE_POLICY_CACHE_HOT_H

#include "averages.h"
#include "wakee.h"
#include "world.h"

/* avg_hot_dur at a wake-up: how long the task usually sleeps, if that is not long. */
POLICY_INLINE u64 policy_usual_sleep(u64 usual_ns, u64 slept_ns)
{
	if (slept_ns >= POLICY_MIGRATION_COST_NS)
		return usual_ns >> 1;
	return (u64)policy_ewma8((s64)usual_ns, (s64)slept_ns);
}

/* The stack of a BPF program has no room for what a search would remember. */
#ifdef __bpf__
#define POLICY_ASKS_CACHE_HOT false
#else
#define POLICY_ASKS_CACHE_HOT true
#endif

/* What a search remembers of CPUs that it has passed over. */
struct policy_cache_hot {
	u32 left;  /* idle CPUs that it may still ask about */
	u32 first; /* the first that it passed over */
	u32 last;  /* the CPU that it looked at last, if it passed over that */
};

/* How many idle CPUs a search asks about: half of those that SIS_UTIL lets it look at. */
POLICY_INLINE struct policy_cache_hot policy_cache_hot_begins(const struct world *w,
							      const struct policy_tunables *t,
							      u32 llc)
{
	struct policy_cache_hot hot = { .first = POLICY_NONE, .last = POLICY_NONE };

	if (!policy_has(t, POLICY_SIS_CACHE))
		return hot;
	if (policy_has(t, POLICY_SIS_CACHE_V1))
		hot.left = POLICY_NONE;
	else if (policy_has(t, POLICY_SIS_UTIL))
		hot.left = (world_nr_idle_scan(w, llc) + 1) / 2;
	return hot;
}

/* cache_hot_cpu(): is this idle CPU left to the task that is expected back? */
POLICY_INLINE bool policy_passes_over(const struct world *w, struct policy_cache_hot *hot, u32 cpu,
				      struct policy_pick *pick)
{
	if (!POLICY_ASKS_CACHE_HOT || hot->left == 0)
		return false;
	if (hot->left != POLICY_NONE)
		hot->left--;
	pick->asked++;
	if (!world_cache_hot(w, cpu))
		return false;
	if (hot->first == POLICY_NONE)
		hot->first = cpu;
	hot->last = cpu;
	return true;
}

/*
 * What a search of the whole cache returns that found no other CPU: the first that it passed
 * over; in v2 the last, if that was the last CPU of all.
 */
POLICY_INLINE u32 policy_passed_over(const struct policy_tunables *t,
				     const struct policy_cache_hot *hot)
{
	if (!POLICY_ASKS_CACHE_HOT)
		return POLICY_NONE;
	if (hot->last != POLICY_NONE && !policy_has(t, POLICY_SIS_CACHE_V1))
		return hot->last;
	return hot->first;
}

#endif
