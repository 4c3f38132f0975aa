/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * select_idle_sibling() of v4.5 as a whole: the target, the wakee's last CPU, then
 * a group of CPUs that is idle through and through (SIS_GROUP), or just the first
 * idle thread of the cache (SIS_FIRST, the patch of 2016-04-05). Nothing else is
 * tried, neither knows a budget, and has_idle_cores does not exist yet.
 */
#ifndef REVEILLE_POLICY_SELECT_V45_H
#define REVEILLE_POLICY_SELECT_V45_H

#include "idle_search.h"

/* SIS_FIRST wins over SIS_GROUP: the patch replaces the search by groups. */
POLICY_INLINE bool policy_sis_v45(const struct policy_tunables *t)
{
	return policy_has(t, POLICY_SIS_GROUP | POLICY_SIS_FIRST);
}

/* The first idle allowed CPU of the LLC by number, from its lowest on. */
POLICY_INLINE u32 policy_first_idle(struct world *w, const struct policy_task *p, u32 llc,
				    struct policy_pick *pick)
{
	u32 words = (world_llc_weight(w, llc) + 63) / 64;

	POLICY_FOR(i, words) {
		u64 allowed = world_allowed_word(w, p, llc, i);
		u64 usable = world_usable_word(w, llc, i) & allowed;

		/* Usable comprises CPUs with SCHED_IDLE tasks, which v4.5 takes for busy. */
		POLICY_FOR(k, 64) {
			u32 bit, cpu;

			if (!usable)
				break;
			bit = policy_lowest_bit(usable);
			cpu = world_llc_cpu(w, llc, i * 64 + bit);
			if (world_available_idle(w, cpu)) {
				pick->searched += policy_popcount(policy_below_bit(allowed, bit)) + 1;
				return cpu;
			}
			usable &= usable - 1;
		}
		pick->searched += policy_popcount(allowed);
	}
	return POLICY_NONE;
}

/*
 * The core of `first`, its lowest thread, as a group: its first allowed CPU if every
 * thread, allowed or not, is idle and none is the target.
 */
POLICY_INLINE u32 policy_idle_group(struct world *w, const struct policy_task *p, u32 first,
				    u32 target, struct policy_pick *pick)
{
	u32 width = world_smt_width(w, first), found = POLICY_NONE;

	for (u32 k = 0; k < POLICY_SMT_MAX && k < width; k++) {
		u32 cpu = world_smt_cpu(w, first, k);

		if (found == POLICY_NONE && world_allowed(w, p, cpu))
			found = cpu;
	}
	if (found == POLICY_NONE)
		return POLICY_NONE;
	for (u32 k = 0; k < POLICY_SMT_MAX && k < width; k++) {
		u32 cpu = world_smt_cpu(w, first, k);

		if (cpu == target)
			return POLICY_NONE;
		pick->searched++;
		if (!world_available_idle(w, cpu))
			return POLICY_NONE;
	}
	return found;
}

/* Cores of target's LLC in the order of their lowest threads, from target's own on. */
POLICY_INLINE u32 policy_group_of_cores(struct world *w, const struct policy_task *p, u32 llc,
					u32 target, struct policy_pick *pick)
{
	u32 weight = world_llc_weight(w, llc);
	u32 start = world_llc_position(w, world_smt_cpu(w, target, 0));

	POLICY_FOR(step, weight) {
		u32 position = start + step;
		u32 cpu = world_llc_cpu(w, llc, position < weight ? position : position - weight);

		if (world_smt_cpu(w, cpu, 0) != cpu)
			continue;
		cpu = policy_idle_group(w, p, cpu, target, pick);
		if (cpu != POLICY_NONE)
			return cpu;
	}
	return POLICY_NONE;
}

/* Threads of target's core, in a circle from the one after it: groups of one CPU. */
POLICY_INLINE u32 policy_group_of_threads(struct world *w, const struct policy_task *p, u32 target,
					  struct policy_pick *pick)
{
	u32 width = world_smt_width(w, target), below = POLICY_NONE;

	for (u32 k = 0; k < POLICY_SMT_MAX && k < width; k++) {
		u32 cpu = world_smt_cpu(w, target, k);

		if (cpu <= target || !world_allowed(w, p, cpu))
			continue;
		pick->searched++;
		if (world_available_idle(w, cpu))
			return cpu;
	}
	for (u32 k = 0; k < POLICY_SMT_MAX && k < width && below == POLICY_NONE; k++) {
		u32 cpu = world_smt_cpu(w, target, k);

		if (cpu >= target || !world_allowed(w, p, cpu))
			continue;
		pick->searched++;
		if (world_available_idle(w, cpu))
			below = cpu;
	}
	return below;
}

/* select_idle_sibling() of v4.5: an idle CPU near target, or target itself. */
POLICY_INLINE u32 policy_select_idle_sibling_v45(struct world *w, const struct policy_tunables *t,
						 const struct policy_task *p, u32 target,
						 struct policy_pick *pick)
{
	u32 prev = p->prev_cpu, llc = world_llc(w, target), cpu;

	pick->tested++;
	pick->rule = POLICY_RULE_TARGET_IDLE;
	if (world_available_idle(w, target))
		return target;
	if (prev != target && world_llc(w, prev) == llc) {
		pick->tested++;
		pick->rule = POLICY_RULE_PREV_IDLE;
		if (world_available_idle(w, prev))
			return prev;
	}
	pick->rule = POLICY_RULE_TARGET;
	/* A cache of one CPU has no domain to search. */
	if (world_llc_weight(w, llc) == 1)
		return target;
	pick->search = 1;
	if (policy_has(t, POLICY_SIS_FIRST)) {
		cpu = policy_first_idle(w, p, llc, pick);
		if (cpu == POLICY_NONE)
			return target;
		pick->rule = POLICY_RULE_IDLE_CPU;
		return cpu;
	}
	pick->core_search = 1;
	/* In a cache of one core the domain of the cache is that of the threads. */
	if (world_smt_width(w, target) < world_llc_weight(w, llc)) {
		cpu = policy_group_of_cores(w, p, llc, target, pick);
		if (cpu != POLICY_NONE) {
			pick->rule = POLICY_RULE_IDLE_CORE;
			return cpu;
		}
	}
	cpu = policy_group_of_threads(w, p, target, pick);
	if (cpu == POLICY_NONE)
		return target;
	pick->rule = POLICY_RULE_SIBLING_IDLE;
	return cpu;
}

#endif
