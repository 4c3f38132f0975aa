/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * select_task_rq_fair() for a wake-up, v6.2: history, affinity, then the idle
 * siblings of the target in the kernel's order. Decides where a waking task runs.
 */
#ifndef REVEILLE_POLICY_SELECT_H
#define REVEILLE_POLICY_SELECT_H

#include "idle_search.h"
#include "wake_affine.h"

POLICY_INLINE u32 policy_picked(struct policy_pick *pick, u32 cpu, u8 rule)
{
	pick->rule = rule;
	return cpu;
}

/* An idle SMT sibling of prev, itself excluded (select_idle_smt). */
POLICY_INLINE u32 policy_select_idle_smt(struct world *w, const struct policy_task *p, u32 prev,
					 struct policy_pick *pick)
{
	u32 width = world_smt_width(w, prev);

	for (u32 k = 0; k < POLICY_SMT_MAX && k < width; k++) {
		u32 cpu = world_smt_cpu(w, prev, k);

		if (cpu == prev || !world_allowed(w, p, cpu))
			continue;
		pick->tested++;
		if (world_usable(w, cpu))
			return cpu;
	}
	return POLICY_NONE;
}

/* select_idle_sibling(): an idle CPU near target, or target itself. */
POLICY_INLINE u32 policy_select_idle_sibling(struct world *w, const struct policy_tunables *t,
					     struct policy_task *p, const struct policy_task *waker,
					     u32 this_cpu, u32 target, u32 flags,
					     struct policy_pick *pick)
{
	u32 prev = p->prev_cpu, recent = p->recent_used_cpu;
	u32 llc = world_llc(w, target), cpu;
	bool prev_near = world_llc(w, prev) == llc, has_idle_cores = false;

	pick->tested++;
	if (world_usable(w, target))
		return policy_picked(pick, target, POLICY_RULE_TARGET_IDLE);
	if (prev != target && prev_near) {
		pick->tested++;
		if (world_usable(w, prev))
			return policy_picked(pick, prev, POLICY_RULE_PREV_IDLE);
	}
	/* A per-CPU kernel thread that completes work here hands back at once. */
	if (waker && (waker->flags & POLICY_TASK_PERCPU_KTHREAD) &&
	    (flags & POLICY_WAKE_IN_TASK) && prev == this_cpu && world_nr_running(w, this_cpu) <= 1)
		return policy_picked(pick, prev, POLICY_RULE_KTHREAD);
	p->recent_used_cpu = prev;
	if (recent != prev && recent != target && world_llc(w, recent) == llc) {
		pick->tested++;
		if (world_usable(w, recent) && world_allowed(w, p, recent))
			return policy_picked(pick, recent, POLICY_RULE_RECENT_IDLE);
	}
	/* A cache of one CPU has no domain to search. */
	if (world_llc_weight(w, llc) == 1)
		return policy_picked(pick, target, POLICY_RULE_TARGET);
	if (world_smt_active(w)) {
		has_idle_cores = world_has_idle_cores(w, llc);
		if (!has_idle_cores && prev_near) {
			cpu = policy_select_idle_smt(w, p, prev, pick);
			if (cpu != POLICY_NONE)
				return policy_picked(pick, cpu, POLICY_RULE_SIBLING_IDLE);
		}
	}
	cpu = policy_select_idle_cpu(w, t, p, has_idle_cores, this_cpu, target, pick);
	return cpu != POLICY_NONE ? cpu : policy_picked(pick, target, POLICY_RULE_TARGET);
}

/*
 * Where a waking task runs. `waker` is the task current on this_cpu, null for the
 * idle task; it is charged with the wake-up even from an interrupt.
 */
POLICY_INLINE struct policy_pick policy_select_cpu(struct world *w,
						   const struct policy_tunables *t,
						   struct policy_task *p, struct policy_task *waker,
						   u32 this_cpu, u32 flags, u64 now_j)
{
	struct policy_pick pick = { 0 };
	u32 prev = p->prev_cpu;
	u32 weight = world_llc_weight(w, world_llc(w, this_cpu));
	bool sync = (flags & POLICY_WAKE_SYNC) != 0, affine;

	if (waker)
		policy_record_wakee(waker, p->id, now_j, t->hz);
	affine = !policy_wake_wide(waker ? waker->wakee_flips : 0, p->wakee_flips, weight) &&
		 world_allowed(w, p, this_cpu);
	pick.target = prev;
	if (affine && this_cpu != prev)
		pick.target = policy_wake_affine(w, t, p, this_cpu, prev, sync, &pick);
	pick.cpu = policy_select_idle_sibling(w, t, p, waker, this_cpu, pick.target, flags, &pick);
	return pick;
}

/*
 * ttwu_queue_cond() of v6.0+: may the wake-up be put on the target's wake list
 * instead of taking its runqueue lock from here?
 */
POLICY_INLINE bool policy_ttwu_queue(struct world *w, const struct policy_tunables *t, u32 this_cpu,
				     u32 cpu)
{
	if (!policy_has(t, POLICY_TTWU_QUEUE))
		return false;
	if (world_llc(w, this_cpu) != world_llc(w, cpu))
		return true;
	return cpu != this_cpu && world_nr_running(w, cpu) == 0;
}

#endif
