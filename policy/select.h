/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * select_task_rq_fair() for a wake-up: history, affinity, then the idle siblings of
 * the target in the kernel's order. Decides where a waking task runs. As in v6.2;
 * SIS_PROP, SIS_GROUP, SIS_CLUSTER and SIS_NODE bring what was different in their kernels.
 */
#ifndef REVEILLE_POLICY_SELECT_H
#define REVEILLE_POLICY_SELECT_H

#include "idle_search.h"
#include "select_v45.h"
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

		pick->siblings++;
		if (cpu == prev || !world_allowed(w, p, cpu))
			continue;
		pick->tested++;
		if (world_usable(w, cpu))
			return cpu;
	}
	return POLICY_NONE;
}

/* Is a wakee's previous CPU its recently used one? v5.13 has that of its last wake-up as waker. */
POLICY_INLINE bool policy_notes_prev(const struct policy_tunables *t)
{
	return policy_has(t, POLICY_RECENT_PREV) || !policy_scan_by_cost(t);
}

/* select_idle_sibling(): an idle CPU near target, or target itself. */
POLICY_INLINE u32 policy_select_idle_sibling(struct world *w, const struct policy_tunables *t,
					     struct policy_task *p, const struct policy_task *waker,
					     u32 this_cpu, u32 target, u32 flags, u64 now_j,
					     struct policy_pick *pick)
{
	u32 prev = p->prev_cpu, recent = p->recent_used_cpu;
	u32 llc = world_llc(w, target), cpu;
	bool prev_near = world_llc(w, prev) == llc, has_idle_cores = false;
	bool v513 = policy_scan_by_cost(t), clusters = policy_clusters(w, t);
	bool notes_prev = policy_notes_prev(t);
	/* Idle, but in another cluster than the target. */
	u32 kept_prev = POLICY_NONE, kept_recent = POLICY_NONE;

	pick->tested++;
	if (world_usable(w, target))
		return policy_picked(pick, target, POLICY_RULE_TARGET_IDLE);
	if (prev != target && prev_near) {
		pick->tested++;
		if (world_usable(w, prev)) {
			if (!clusters || policy_share_cluster(w, prev, target))
				return policy_picked(pick, prev, POLICY_RULE_PREV_IDLE);
			kept_prev = prev;
		}
	}
	/*
	 * A per-CPU kernel thread that completes work here hands back at once; in v5.13
	 * an interrupt that comes while it runs passes for it.
	 */
	if (waker && (waker->flags & POLICY_TASK_PERCPU_KTHREAD) &&
	    (v513 || (flags & POLICY_WAKE_IN_TASK)) && prev == this_cpu && world_nr_running(w, this_cpu) <= 1)
		return policy_picked(pick, prev, POLICY_RULE_KTHREAD);
	if (policy_has(t, POLICY_RECENT_USED_CPU)) {
		/* With RECENT_PREV at every try; before only when the CPU is taken. */
		if (notes_prev)
			p->recent_used_cpu = prev;
		if (recent != prev && recent != target && world_llc(w, recent) == llc) {
			pick->tested++;
			if (world_usable(w, recent) && world_allowed(w, p, recent)) {
				p->recent_used_cpu = prev;
				if (!clusters || policy_share_cluster(w, recent, target))
					return policy_picked(pick, recent,
							     POLICY_RULE_RECENT_IDLE);
				kept_recent = recent;
			}
		}
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
	/* SIS_SHORT v4: not gated by utilisation, and the target may be any CPU. */
	if (!has_idle_cores && world_nr_running(w, target) == 1 && policy_is_short_v4(t, p) &&
	    policy_is_short_v4(t, world_curr(w, target)))
		return policy_picked(pick, target, POLICY_RULE_SHORT);
	cpu = policy_select_idle_cpu(w, t, p, has_idle_cores, this_cpu, target, now_j, pick);
	if (cpu != POLICY_NONE)
		return cpu;
	if (kept_prev != POLICY_NONE)
		return policy_picked(pick, kept_prev, POLICY_RULE_PREV_IDLE);
	if (kept_recent != POLICY_NONE)
		return policy_picked(pick, kept_recent, POLICY_RULE_RECENT_IDLE);
	if (policy_has(t, POLICY_SIS_NODE)) {
		cpu = policy_select_idle_node(w, t, p, this_cpu, target, now_j, pick);
		if (cpu != POLICY_NONE)
			return cpu;
	}
	return policy_picked(pick, target, POLICY_RULE_TARGET);
}

/*
 * wake_on_current(): is the wakee enqueued here without any search (SIS_CURRENT)? Where it may
 * not run here the kernel falls back afterwards; here the usual search follows.
 */
POLICY_INLINE bool policy_wakes_here(struct world *w, const struct policy_tunables *t,
				     const struct policy_task *p, const struct policy_task *waker,
				     u32 this_cpu)
{
	return policy_has(t, POLICY_SIS_CURRENT) && waker && world_nr_running(w, this_cpu) <= 1 &&
	       policy_is_partner(waker, p->id) && policy_is_partner(p, waker->id) &&
	       world_allowed(w, p, this_cpu);
}

/*
 * Where the search for an idle CPU starts (pick->target), and what is remembered of who
 * wakes whom. `waker` is the task current on this_cpu, null for the idle task; it is
 * charged with the wake-up even from an interrupt.
 */
POLICY_INLINE void policy_select_target(struct world *w, const struct policy_tunables *t,
					const struct policy_task *p, struct policy_task *waker,
					u32 this_cpu, u32 flags, u64 now_j,
					struct policy_pick *pick)
{
	u32 prev = p->prev_cpu, weight = world_llc_weight(w, world_llc(w, this_cpu));

	if (waker)
		policy_record_wakee(waker, p->id, now_j, t->hz);
	if (policy_wakes_here(w, t, p, waker, this_cpu)) {
		pick->target = policy_picked(pick, this_cpu, POLICY_RULE_SHORT);
		return;
	}
	pick->affine = !policy_wake_wide(waker ? waker->wakee_flips : 0, p->wakee_flips, weight) &&
		       world_allowed(w, p, this_cpu);
	pick->target = prev;
	if (pick->affine && this_cpu != prev)
		pick->target = policy_wake_affine(w, t, p, this_cpu, prev, flags, pick);
}

/* An idle CPU near pick->target, or the target: the second half of a decision. */
POLICY_INLINE void policy_select_idle(struct world *w, const struct policy_tunables *t,
				      struct policy_task *p, struct policy_task *waker,
				      u32 this_cpu, u32 flags, u64 now_j, struct policy_pick *pick)
{
	if (pick->rule == POLICY_RULE_SHORT) {
		pick->cpu = pick->target;
		return;
	}
	if (policy_sis_v45(t)) {
		pick->cpu = policy_select_idle_sibling_v45(w, t, p, pick->target, pick);
		return;
	}
	pick->cpu = policy_select_idle_sibling(w, t, p, waker, this_cpu, pick->target, flags,
					       now_j, pick);
	/* v5.13 notes where the waker runs, for the day when it is woken itself. */
	if (pick->affine && waker && policy_has(t, POLICY_RECENT_USED_CPU) &&
	    !policy_notes_prev(t))
		waker->recent_used_cpu = this_cpu;
}

/* Where a waking task runs. A verifier that cannot take it whole takes the halves. */
POLICY_INLINE struct policy_pick policy_select_cpu(struct world *w,
						   const struct policy_tunables *t,
						   struct policy_task *p, struct policy_task *waker,
						   u32 this_cpu, u32 flags, u64 now_j)
{
	struct policy_pick pick = { 0 };

	policy_select_target(w, t, p, waker, this_cpu, flags, now_j, &pick);
	policy_select_idle(w, t, p, waker, this_cpu, flags, now_j, &pick);
	return pick;
}

/*
 * ttwu_queue_cond(): may the wake-up be put on the target's wake list instead of
 * taking its runqueue lock from here? `on_cpu`: the wakee still switches away, and
 * `cpu` is where it does; before v5.8 the waker always waits for the end of that.
 */
POLICY_INLINE bool policy_ttwu_queue(struct world *w, const struct policy_tunables *t, u32 this_cpu,
				     u32 cpu, bool on_cpu)
{
	u64 near = t->features & (POLICY_TTWU_QUEUE_ON_CPU | POLICY_TTWU_QUEUE_IDLE);

	if (!policy_has(t, POLICY_TTWU_QUEUE) || (on_cpu && !near))
		return false;
	if (world_llc(w, this_cpu) != world_llc(w, cpu))
		return true;
	if (cpu == this_cpu)
		return false;
	if ((near & POLICY_TTWU_QUEUE_IDLE) && world_nr_running(w, cpu) == 0)
		return true;
	return on_cpu && (near & POLICY_TTWU_QUEUE_ON_CPU) && world_nr_running(w, cpu) <= 1;
}

#endif
