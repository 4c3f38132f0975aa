/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * select_idle_cpu(): the walk through a last-level cache in CPU order, for a
 * whole idle core while there may be one, else for any idle thread within a
 * budget (SIS_UTIL of v6.0, or SIS_PROP of v5.13), among all CPUs, those in
 * SIS_FILTER's mask, or those that SIS_CACHE does not pass over. The kernel walks CPU by
 * CPU; here the idle state is in words, and what the walk would have looked at is computed
 * from them.
 */
#ifndef REVEILLE_POLICY_IDLE_SEARCH_H
#define REVEILLE_POLICY_IDLE_SEARCH_H

#include "cache_hot.h"
#include "scan_budget.h"
#include "wakee.h"
#include "world.h"

POLICY_INLINE u32 policy_popcount(u64 word)
{
	return (u32)__builtin_popcountll(word);
}

/* Number of the lowest set bit. BPF counts no trailing zeros: it counts the bits below. */
POLICY_INLINE u32 policy_lowest_bit(u64 word)
{
#ifdef __bpf__
	return policy_popcount((word & -word) - 1);
#else
	return (u32)__builtin_ctzll(word);
#endif
}

/* Bits of `word` at `bit` and above. */
POLICY_INLINE u64 policy_from_bit(u64 word, u32 bit)
{
	return word & (~0ull << bit);
}

/* Bits of `word` below `bit`. */
POLICY_INLINE u64 policy_below_bit(u64 word, u32 bit)
{
	return word & ~(~0ull << bit);
}

/* Which CPUs of an LLC a walk meets, and from which position on. */
struct policy_walk {
	u32 llc, target, start;
	bool filtered; /* those that SIS_FILTER keeps */
	enum { POLICY_WALK_ALL, POLICY_WALK_CLUSTER, POLICY_WALK_REST } part;
	struct policy_cache_hot hot;
};

POLICY_INLINE bool policy_clusters(const struct world *w, const struct policy_tunables *t)
{
	return policy_has(t, POLICY_SIS_CLUSTER) && world_cluster_active(w);
}

/* Are two CPUs of an LLC in one cluster? */
POLICY_INLINE bool policy_share_cluster(const struct world *w, u32 a, u32 b)
{
	u32 at = world_llc_position(w, a);

	return world_cluster_word(w, b, at / 64) >> (at % 64) & 1;
}

/*
 * SIS_FILTER (mail of 2022-09-09, v5 5/5): searches walk only CPUs that have gone idle
 * since a search of the LLC last found none, one per core. On cores of one thread the
 * kernel keeps no such mask.
 */
POLICY_INLINE bool policy_filters(const struct world *w, const struct policy_tunables *t)
{
	return policy_has(t, POLICY_SIS_FILTER) && world_smt_active(w);
}

/* Nothing has gone idle since: the LLC is fully busy (v5 4/5). */
POLICY_INLINE bool policy_filter_is_empty(const struct world *w, u32 llc)
{
	u64 any = 0;

	for (u32 i = 0; i < POLICY_LLC_WORDS; i++)
		any |= world_filter_word(w, llc, i);
	return !any;
}

POLICY_INLINE bool policy_in_filter(const struct world *w, u32 cpu)
{
	u32 at = world_llc_position(w, cpu);

	return (world_filter_word(w, world_llc(w, cpu), at / 64) >> (at % 64)) & 1;
}

/* __update_idle_core(): does a CPU that goes idle join, or is its core there already? */
POLICY_INLINE bool policy_joins_filter(const struct world *w, u32 cpu)
{
	u32 width = world_smt_width(w, cpu);

	for (u32 k = 0; k < POLICY_SMT_MAX && k < width; k++) {
		u32 thread = world_smt_cpu(w, cpu, k);

		if (policy_in_filter(w, thread) && (thread == cpu || world_usable(w, thread)))
			return false;
	}
	return true;
}

/* Word i of what a walk meets. */
POLICY_INLINE u64 policy_walk_word(const struct world *w, const struct policy_task *p,
				   const struct policy_walk *walk, u32 i)
{
	u64 word = world_allowed_word(w, p, walk->llc, i);

	if (walk->filtered)
		word &= world_filter_word(w, walk->llc, i);
	if (walk->part == POLICY_WALK_CLUSTER)
		word &= world_cluster_word(w, walk->target, i);
	else if (walk->part == POLICY_WALK_REST)
		word &= ~world_cluster_word(w, walk->target, i);
	return word;
}

/*
 * First usable CPU in wrap order from position `start`, if the walk reaches it
 * within `budget` tests. Steps 0..words: the starting word comes twice, first its
 * upper part and at the end its lower part.
 */
POLICY_INLINE u32 policy_scan_cpus(struct world *w, const struct policy_task *p,
				   struct policy_walk *walk, u32 budget,
				   struct policy_pick *pick)
{
	u32 words = (world_llc_weight(w, walk->llc) + 63) / 64, first = walk->start / 64;

	if (words > POLICY_LLC_WORDS)
		words = POLICY_LLC_WORDS;
	POLICY_FOR(step, words + 1) {
		u32 i = first + step < words ? first + step : first + step - words, bit;
		u64 allowed = policy_walk_word(w, p, walk, i), usable;

		if (step == 0)
			allowed = policy_from_bit(allowed, walk->start % 64);
		else if (step == words)
			allowed = policy_below_bit(allowed, walk->start % 64);
		usable = world_usable_word(w, walk->llc, i) & allowed;
		/* A second time only where a CPU is passed over. */
		for (; usable; usable &= usable - 1) {
			u32 cpu;

			bit = policy_lowest_bit(usable);
			pick->searched += policy_popcount(policy_below_bit(allowed, bit)) + 1;
			if (pick->searched > budget)
				break;
			cpu = world_llc_cpu(w, walk->llc, i * 64 + bit);
			if (!policy_passes_over(w, &walk->hot, cpu, pick))
				return cpu;
			allowed = policy_from_bit(allowed, bit);
			allowed &= allowed - 1;
		}
		pick->searched += policy_popcount(allowed);
		if (pick->searched > budget)
			break;
		if (allowed)
			walk->hot.last = POLICY_NONE;
	}
	if (pick->searched > budget) {
		pick->exhausted = 1;
		pick->searched = budget;
	}
	return POLICY_NONE;
}

/*
 * Looks at the core of `cpu`: true if all its threads are available. Otherwise
 * the first usable thread ever seen is kept as fallback. Until there is one every
 * thread is looked at; from then on the first busy thread ends the look.
 */
POLICY_INLINE bool policy_look_at_core(struct world *w, const struct policy_task *p, u32 cpu,
				       u32 *fallback, struct policy_pick *pick)
{
	u32 width = world_smt_width(w, cpu);
	bool idle = true;

	POLICY_FOR(k, width) {
		u32 thread = world_smt_cpu(w, cpu, k);
		bool available = world_available_idle(w, thread);

		pick->searched++;
		if (!available)
			idle = false;
		if (*fallback != POLICY_NONE) {
			if (!available)
				break;
			continue;
		}
		if ((available || world_usable(w, thread)) && world_allowed(w, p, thread)) {
			*fallback = thread;
			if (!available)
				break; /* SCHED_IDLE only: good enough, look no further here */
		}
	}
	return idle;
}

/* Are all threads of the core available? */
POLICY_INLINE bool policy_core_is_idle(const struct world *w, u32 cpu)
{
	u32 width = world_smt_width(w, cpu);

	POLICY_FOR(k, width) {
		if (!world_available_idle(w, world_smt_cpu(w, cpu, k)))
			return false;
	}
	return true;
}

/* Has the walk from `start` met another thread of the core before this one? */
POLICY_INLINE bool policy_core_was_met(struct world *w, const struct policy_task *p, u32 cpu,
				       u32 position, const struct policy_walk *walk)
{
	u32 width = world_smt_width(w, cpu);

	POLICY_FOR(k, width) {
		u32 thread = world_smt_cpu(w, cpu, k);
		u32 at = world_llc_position(w, thread);

		/* Counted from the start on: positions below it come last, as they wrap. */
		if (at - walk->start >= position - walk->start)
			continue;
		if (world_allowed(w, p, thread) && (!walk->filtered || policy_in_filter(w, thread)))
			return true;
	}
	return false;
}

/*
 * First fully idle core in wrap order from position `start`; if `limited`, among the first
 * POLICY_LIMITED_CORES. The count is in memory: the BPF verifier would explore every value
 * of a counter in a register. If the thread of an idle core was passed over, the core is
 * looked at again when the walk comes to its next thread.
 */
POLICY_INLINE u32 policy_scan_cores(struct world *w, const struct policy_task *p,
				    struct policy_walk *walk, bool limited, u32 *fallback,
				    struct policy_pick *pick)
{
	u32 words = (world_llc_weight(w, walk->llc) + 63) / 64, first = walk->start / 64;

	if (words > POLICY_LLC_WORDS)
		words = POLICY_LLC_WORDS;
	/* As in policy_scan_cpus(). */
	POLICY_FOR(step, words + 1) {
		u32 i = first + step < words ? first + step : first + step - words;
		u64 allowed = policy_walk_word(w, p, walk, i);

		if (step == 0)
			allowed = policy_from_bit(allowed, walk->start % 64);
		else if (step == words)
			allowed = policy_below_bit(allowed, walk->start % 64);
		POLICY_FOR(n, 64) {
			u32 position, cpu;

			if (!allowed)
				break;
			position = i * 64 + policy_lowest_bit(allowed);
			allowed &= allowed - 1;
			cpu = world_llc_cpu(w, walk->llc, position);
			if (policy_core_was_met(w, p, cpu, position, walk) &&
			    (walk->hot.first == POLICY_NONE || !policy_core_is_idle(w, cpu)))
				continue;
			if (limited && pick->cores++ >= POLICY_LIMITED_CORES) {
				pick->exhausted = 1;
				return POLICY_NONE;
			}
			if (policy_look_at_core(w, p, cpu, fallback, pick) &&
			    !policy_passes_over(w, &walk->hot, cpu, pick))
				return cpu;
		}
	}
	return POLICY_NONE;
}

/*
 * SIS_SHORT's second hook: on a busy LLC without idle cores, keep a short wakee on
 * the waker's CPU if the waker is short and alone there. nr counts one more than
 * the CPUs to be scanned; 60% of the LLC stands for some 50% utilisation. The affinity test
 * is for SIS_NODE, whose search of another LLC may start at the waker's CPU.
 */
POLICY_INLINE bool policy_keep_short(struct world *w, const struct policy_tunables *t,
				     const struct policy_task *p, u32 this_cpu, u32 target, u32 nr,
				     u32 weight)
{
	return this_cpu == target && 5 * nr < 3 * weight && world_nr_running(w, target) <= 1 &&
	       policy_is_short(t, p) && policy_is_short(t, world_curr(w, target)) &&
	       world_allowed(w, p, target);
}

/*
 * select_idle_cpu(): an idle CPU of target's LLC, or POLICY_NONE. The walk begins
 * behind the target, before v5.15 (RECENT_PREV, the same series) at the target itself.
 * With clusters there are two, the first through that of the target (v6.8, commit
 * 8881e1639f1f); the budget is one.
 */
POLICY_INLINE u32 policy_select_idle_cpu(struct world *w, const struct policy_tunables *t,
					 const struct policy_task *p, bool has_idle_cores,
					 u32 this_cpu, u32 target, u64 now_j,
					 struct policy_pick *pick)
{
	u32 llc = world_llc(w, target), weight = world_llc_weight(w, llc);
	u32 start = world_llc_position(w, target) + 1;
	u32 nr = POLICY_SCAN_ALL, cpu, fallback = POLICY_NONE;
	struct policy_walk walk = { .llc = llc, .target = target,
				    .filtered = policy_filters(w, t),
				    .hot = policy_cache_hot_begins(w, t, llc) };
	bool clusters = policy_clusters(w, t), limited = false;

	if (start >= weight)
		start = 0;
	if (walk.filtered && policy_filter_is_empty(w, llc))
		return POLICY_NONE;
	if (policy_has(t, POLICY_SIS_UTIL)) {
		nr = world_nr_idle_scan(w, llc) + 1;
		if (nr == 1) {
			/* An overloaded LLC is unlikely to have an idle CPU. */
			if (!has_idle_cores || !policy_has(t, POLICY_SIS_LIMITED_CORES))
				return POLICY_NONE;
			limited = true;
		}
		if (!has_idle_cores && policy_keep_short(w, t, p, this_cpu, target, nr, weight)) {
			pick->rule = POLICY_RULE_SHORT;
			return target;
		}
	} else if (policy_scan_by_cost(t)) {
		if (!policy_has(t, POLICY_RECENT_PREV))
			start = world_llc_position(w, target);
		if (!has_idle_cores)
			nr = policy_scan_budget(t, world_scan_state(w, this_cpu), weight, now_j);
	}
	walk.start = start;
	pick->search = 1;
	pick->core_search = has_idle_cores;
	pick->rule = has_idle_cores ? POLICY_RULE_IDLE_CORE : POLICY_RULE_IDLE_CPU;
	for (u32 pass = 0; pass < 2; pass++) {
		walk.part = !clusters ? POLICY_WALK_ALL :
			    pass == 0 ? POLICY_WALK_CLUSTER :
					POLICY_WALK_REST;
		/* The budget is counted down before each test: nr - 1 CPUs are looked at. */
		cpu = has_idle_cores ? policy_scan_cores(w, p, &walk, limited, &fallback, pick) :
				       policy_scan_cpus(w, p, &walk, nr - 1, pick);
		if (cpu != POLICY_NONE)
			return cpu;
		if (!clusters || pick->exhausted)
			break;
	}
	if (!has_idle_cores) {
		cpu = pick->exhausted ? POLICY_NONE : policy_passed_over(t, &walk.hot);
		if (walk.filtered && cpu == POLICY_NONE) {
			world_empty_filter(w, llc);
			pick->cleared = 1;
		}
		return cpu;
	}
	world_clear_idle_cores(w, llc);
	if (walk.filtered && fallback == POLICY_NONE)
		world_empty_filter(w, llc);
	pick->cleared = 1;
	pick->rule = POLICY_RULE_IDLE_CPU;
	return fallback;
}

/* Most other LLCs that SIS_NODE_LIMIT lets a search go through. */
#define POLICY_NODE_LIMIT 4u

/*
 * select_idle_node(): an idle CPU in another LLC of target's memory node, each searched
 * as if its first CPU were the target, by its own budget (c5214e13ad60). With
 * SIS_NODE_TOPOEXT the domain above an LLC is a pair of them, not the node.
 */
POLICY_INLINE u32 policy_select_idle_node(struct world *w, const struct policy_tunables *t,
					  const struct policy_task *p, u32 this_cpu, u32 target,
					  u64 now_j, struct policy_pick *pick)
{
	u32 own = world_llc(w, target), pair = world_llc_rank(w, own) / 2, llc = own;

	POLICY_FOR(k, POLICY_NODE_LLCS) {
		struct policy_pick far = { 0 };
		u32 cpu;

		llc = world_next_llc(w, llc);
		if (llc == own)
			break;
		if (policy_has(t, POLICY_SIS_NODE_LIMIT) && pick->far_llcs == POLICY_NODE_LIMIT)
			break;
		if (policy_has(t, POLICY_SIS_NODE_TOPOEXT) && world_llc_rank(w, llc) / 2 != pair)
			continue;
		if (world_llc_weight(w, llc) == 1)
			continue; /* no domain to search */
		cpu = policy_select_idle_cpu(w, t, p,
					     world_smt_active(w) && world_has_idle_cores(w, llc),
					     this_cpu, world_llc_cpu(w, llc, 0), now_j, &far);
		pick->search |= far.search;
		pick->searched += far.searched;
		pick->asked += far.asked;
		pick->far += far.searched;
		pick->far_llcs++;
		if (cpu != POLICY_NONE) {
			pick->rule = far.rule;
			return cpu;
		}
	}
	return POLICY_NONE;
}

#endif
