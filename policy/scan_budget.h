/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How many CPUs an idle search may look at by SIS_PROP (v5.13): the idle time that
 * the waker's CPU may expect over what a search has cost it so far. SIS_AGE (merged
 * for v5.14) lets that expectation fade while the CPU is busy, and charges it for
 * every search. Budget before a search, account after it: in between the time passes.
 */
#ifndef REVEILLE_POLICY_SCAN_BUDGET_H
#define REVEILLE_POLICY_SCAN_BUDGET_H

#include "averages.h"
#include "world.h"

/* A search that is unlikely to pay looks at this many CPUs less one, all the same. */
#define POLICY_SCAN_LEAST 4u
/* avg_idle is far too hopeful: only this part of it counts (without SIS_AGE). */
#define POLICY_IDLE_SHARE 512u
/* Cores that SIS_LIMITED_CORES looks at on an overloaded LLC (v5 2/5: nr = 3, less one). */
#define POLICY_LIMITED_CORES 2u
/* A budget that no search can use up. */
#define POLICY_SCAN_ALL 0x7fffffffu

/*
 * Is the idle search the one of v5.13, bounded by SIS_PROP? SIS_UTIL replaces that
 * bound where both are on, and the searches of v4.5 know no bound.
 */
POLICY_INLINE bool policy_scan_by_cost(const struct policy_tunables *t)
{
	return (t->features & (POLICY_SIS_PROP | POLICY_SIS_UTIL | POLICY_SIS_GROUP |
			       POLICY_SIS_FIRST)) == POLICY_SIS_PROP;
}

/* An expectation halves with every jiffy since idle time was last seen. */
POLICY_INLINE void policy_wake_avg_idle_age(struct policy_scan_state *s, u64 now_j)
{
	/* 64 halvings leave nothing; the stamp stays where nothing was left. */
	POLICY_FOR(i, 64) {
		if (s->wake_stamp_j >= now_j || !s->wake_avg_idle_ns)
			break;
		s->wake_stamp_j++;
		s->wake_avg_idle_ns >>= 1;
	}
}

/* Half of a fresh average is what wake-ups may count on. */
POLICY_INLINE void policy_wake_avg_idle_reset(struct policy_scan_state *s, u64 now_j)
{
	s->wake_stamp_j = now_j;
	s->wake_avg_idle_ns = s->avg_idle_ns / 2;
}

/* An idle stretch of this CPU has ended with a wake-up: avg_idle, and what depends on it. */
POLICY_INLINE void policy_idle_ended(struct policy_scan_state *s, u64 idle_ns,
				     u64 max_idle_balance_cost_ns, u64 now_j)
{
	s->avg_idle_ns = policy_avg_idle(s->avg_idle_ns, idle_ns, max_idle_balance_cost_ns);
	policy_wake_avg_idle_reset(s, now_j);
}

/* nr of a search that this CPU makes in an LLC of `weight` CPUs; nr - 1 are looked at. */
POLICY_INLINE u32 policy_scan_budget(const struct policy_tunables *t, struct policy_scan_state *s,
				     u32 weight, u64 now_j)
{
	u64 cost_ns = s->avg_scan_cost_ns + 1, span_ns, nr;

	if (policy_has(t, POLICY_SIS_AGE)) {
		policy_wake_avg_idle_age(s, now_j);
		span_ns = weight * s->wake_avg_idle_ns;
	} else {
		span_ns = weight * (s->avg_idle_ns / POLICY_IDLE_SHARE);
	}
	if (span_ns <= POLICY_SCAN_LEAST * cost_ns)
		return POLICY_SCAN_LEAST;
	nr = span_ns / cost_ns;
	return nr > POLICY_SCAN_ALL ? POLICY_SCAN_ALL : (u32)nr;
}

/*
 * The search that `pick` tells of took this_cpu `elapsed_ns`. Only a search bounded
 * by SIS_PROP that was not cut short by its budget tells what searches cost.
 */
POLICY_INLINE void policy_scan_done(struct world *w, const struct policy_tunables *t, u32 this_cpu,
				    const struct policy_pick *pick, u64 elapsed_ns)
{
	struct policy_scan_state *s = world_scan_state(w, this_cpu);

	if (!policy_scan_by_cost(t) || !pick->search || pick->core_search || pick->exhausted)
		return;
	s->avg_scan_cost_ns = (u64)policy_ewma8((s64)s->avg_scan_cost_ns, (s64)elapsed_ns);
	if (policy_has(t, POLICY_SIS_AGE))
		s->wake_avg_idle_ns -=
			elapsed_ns < s->wake_avg_idle_ns ? elapsed_ns : s->wake_avg_idle_ns;
}

#endif
