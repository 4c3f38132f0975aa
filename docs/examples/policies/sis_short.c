/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * SIS_SHORT v6 (mails of 2023-02-21) written as a policy file on top of the kernel's
 * selection: decides as `--with +SIS_SHORT` does, on a baseline with SIS_UTIL and without
 * clusters. A pair of tasks that wake each other and sleep soon stays on one CPU.
 */
#include <reveille.h>

REVEILLE_POLICY(1);

/* Wakes one partner only, and runs for less than an eighth of the minimum granularity. */
POLICY_INLINE bool is_short(const struct policy_tunables *t, const struct policy_task *p)
{
	return p && p->wakee_flips == 0 && p->dur_avg_ns != 0 &&
	       (u64)p->dur_avg_ns * 8 < t->min_granularity_ns;
}

/* Patch 1: wake_affine_idle() takes this_cpu if its only task is short. */
POLICY_INLINE bool pull(struct world *w, const struct policy_tunables *t,
			const struct policy_task *p, u32 this_cpu)
{
	u32 prev = p->prev_cpu;

	if (!policy_has(t, POLICY_WA_IDLE) ||
	    (world_available_idle(w, this_cpu) && world_llc(w, this_cpu) == world_llc(w, prev)))
		return false;
	return !world_available_idle(w, prev) && world_nr_running(w, this_cpu) == 1 &&
	       is_short(t, world_curr(w, this_cpu));
}

/* Patch 2: without an idle core, on an LLC that is busy by half, a short pair stays. */
POLICY_INLINE bool keep(struct world *w, const struct policy_tunables *t,
			const struct policy_task *p, u32 this_cpu, u32 target)
{
	u32 llc = world_llc(w, target), nr = world_nr_idle_scan(w, llc) + 1;

	return this_cpu == target && nr != 1 && 5 * nr < 3 * world_llc_weight(w, llc) &&
	       world_nr_running(w, target) <= 1 && is_short(t, p) &&
	       is_short(t, world_curr(w, target)) && world_allowed(w, p, target);
}

struct policy_pick reveille_select(struct world *w, const struct policy_tunables *t,
				   struct policy_task *p, struct policy_task *waker, u32 this_cpu,
				   u32 flags, u64 now_j)
{
	struct policy_pick pick = { 0 };
	bool idle_cores;

	policy_select_target(w, t, p, waker, this_cpu, flags, now_j, &pick);
	if (pick.affine && this_cpu != p->prev_cpu && pull(w, t, p, this_cpu))
		pick.target = this_cpu;
	idle_cores = world_smt_active(w) && world_has_idle_cores(w, world_llc(w, pick.target));
	policy_select_idle(w, t, p, waker, this_cpu, flags, now_j, &pick);
	/* Only where the kernel had to search: the rule takes the place of the search. */
	if ((pick.search || pick.rule == POLICY_RULE_TARGET) && !idle_cores &&
	    keep(w, t, p, this_cpu, pick.target)) {
		pick.cpu = pick.target;
		pick.rule = POLICY_RULE_SHORT;
		pick.search = 0;
		pick.searched = 0;
		pick.exhausted = 0;
	}
	return pick;
}
