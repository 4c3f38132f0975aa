/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wake_affine(): should the search start where the waker runs or where the wakee
 * ran last? First by idleness (WA_IDLE), then by load (WA_WEIGHT), which v4.5
 * compared in its own way (WA_EFFECTIVE_LOAD). v6.2, with the short-waker rule of
 * SIS_SHORT v4 and v6.
 */
#ifndef REVEILLE_POLICY_WAKE_AFFINE_H
#define REVEILLE_POLICY_WAKE_AFFINE_H

#include "wakee.h"
#include "world.h"

/* wake_affine_idle(): this, prev, or POLICY_NONE if idleness does not tell. */
POLICY_INLINE u32 policy_affine_idle(struct world *w, const struct policy_tunables *t, u32 this_cpu,
				     u32 prev_cpu, u32 flags, struct policy_pick *pick)
{
	/* Only from an interrupt on an idle CPU. */
	if (world_available_idle(w, this_cpu) &&
	    world_llc(w, this_cpu) == world_llc(w, prev_cpu)) {
		pick->tested++;
		return world_available_idle(w, prev_cpu) ? prev_cpu : this_cpu;
	}
	if ((flags & POLICY_WAKE_SYNC) &&
	    (world_nr_running(w, this_cpu) == 1 || (flags & POLICY_WAKE_ALONE)))
		return this_cpu;
	pick->tested++;
	if (world_available_idle(w, prev_cpu))
		return prev_cpu;
	if (world_nr_running(w, this_cpu) == 1 &&
	    (policy_is_short(t, world_curr(w, this_cpu)) ||
	     policy_is_short_v4(t, world_curr(w, this_cpu))))
		return this_cpu;
	return POLICY_NONE;
}

/* The lowest domain that holds both CPUs decides how much imbalance is tolerated. */
POLICY_INLINE u32 policy_shared_pct(const struct world *w, const struct policy_tunables *t, u32 a,
				    u32 b)
{
	u32 width = world_smt_width(w, a);

	for (u32 k = 0; k < POLICY_SMT_MAX && k < width; k++) {
		if (world_smt_cpu(w, a, k) == b)
			return t->smt_imbalance_pct;
	}
	return t->imbalance_pct;
}

/*
 * wake_affine_weight(): this if its load with the wakee is below prev's without it.
 * WA_BIAS makes prev look half the tolerated imbalance more loaded (v4.14, f2cdd9cc6c97).
 */
POLICY_INLINE u32 policy_affine_weight(struct world *w, const struct policy_tunables *t,
				       const struct policy_task *p, u32 this_cpu, u32 prev_cpu,
				       bool sync)
{
	s64 this_load = world_cfs_load(w, this_cpu);
	s64 prev_load, this_eff, prev_eff;
	bool biased = policy_has(t, POLICY_WA_BIAS);
	s64 this_bias = biased ? 100 : 1;
	s64 prev_bias =
		biased ? 100 + (policy_shared_pct(w, t, this_cpu, prev_cpu) - 100) / 2 : 1;

	if (sync) {
		const struct policy_task *curr = world_curr(w, this_cpu);
		s64 curr_load = curr ? curr->load_avg : 0;

		if (curr_load > this_load)
			return this_cpu;
		this_load -= curr_load;
	}
	this_eff = (this_load + p->load_avg) * this_bias * world_capacity(w, prev_cpu);
	prev_load = (s64)world_cfs_load(w, prev_cpu) - p->load_avg;
	prev_eff = prev_load * prev_bias * world_capacity(w, this_cpu);
	if (sync)
		prev_eff += 1;
	return this_eff < prev_eff ? this_cpu : POLICY_NONE;
}

/*
 * Load of the runnable tasks of a CPU. v4.5 keeps an average of them alone; here
 * cfs_load stands in for it, in which tasks that sleep still count until they have
 * decayed. What is known to sleep is left out: all of it where nothing is runnable.
 */
POLICY_INLINE s64 policy_runnable_load(const struct world *w, u32 cpu)
{
	return world_nr_running(w, cpu) ? world_cfs_load(w, cpu) : 0;
}

/*
 * wake_affine() of v4.5: this unless it is more loaded with the wakee than prev is,
 * and always if nothing but a waker about to sleep runs here. source_load() and
 * target_load() choose the lower and higher of two estimates only in domains with a
 * wake_idx; x86's have 0, and both give the load of the moment. A task group counts
 * as its tasks do.
 */
POLICY_INLINE u32 policy_affine_effective(struct world *w, const struct policy_tunables *t,
					  const struct policy_task *p, u32 this_cpu, u32 prev_cpu,
					  bool sync)
{
	s64 this_load = policy_runnable_load(w, this_cpu);
	s64 prev_load = policy_runnable_load(w, prev_cpu) - p->load_avg;
	s64 bias = 100 + (policy_shared_pct(w, t, this_cpu, prev_cpu) - 100) / 2;
	s64 this_eff = (s64)100 * world_capacity(w, prev_cpu);
	s64 prev_eff = bias * world_capacity(w, this_cpu);

	if (prev_load < 0)
		prev_load = 0;
	if (sync) {
		const struct policy_task *curr = world_curr(w, this_cpu);

		this_load -= curr ? curr->load_avg : 0;
	}
	if (this_load > 0) {
		this_eff *= this_load + p->load_avg;
		prev_eff *= prev_load;
	}
	return this_eff <= prev_eff ? this_cpu : POLICY_NONE;
}

/* The CPU at which select_idle_sibling() starts. */
POLICY_INLINE u32 policy_wake_affine(struct world *w, const struct policy_tunables *t,
				     const struct policy_task *p, u32 this_cpu, u32 prev_cpu,
				     u32 flags, struct policy_pick *pick)
{
	bool sync = (flags & POLICY_WAKE_SYNC) != 0;
	u32 target = POLICY_NONE;

	if (policy_has(t, POLICY_WA_IDLE))
		target = policy_affine_idle(w, t, this_cpu, prev_cpu, flags, pick);
	if (target == POLICY_NONE && policy_has(t, POLICY_WA_WEIGHT))
		target = policy_has(t, POLICY_WA_EFFECTIVE_LOAD) ?
				 policy_affine_effective(w, t, p, this_cpu, prev_cpu, sync) :
				 policy_affine_weight(w, t, p, this_cpu, prev_cpu, sync);
	return target == this_cpu ? this_cpu : prev_cpu;
}

#endif
