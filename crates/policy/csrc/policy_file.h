/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a user's policy file is compiled behind, for the simulator: its world, with every
 * number checked, and the entry that Rust calls.
 */
#define REVEILLE_CHECKED
#include "sim_world.h"

#include "../../../policy/reveille.h"

/* A file may change what the kernel's selection does: the history of who wakes whom. */
static inline void keep_history(struct policy_task *p, struct policy_task before)
{
	before.wakee_flip_decay_j = p->wakee_flip_decay_j;
	before.last_wakee = p->last_wakee;
	before.wakee_flips = p->wakee_flips;
	before.recent_used_cpu = p->recent_used_cpu;
	*p = before;
}

__attribute__((used, visibility("default"))) void
reveille_entry(struct world *w, const struct policy_tunables *t, u32 p, u32 waker, u32 this_cpu,
	       u32 flags, u64 now_j, struct policy_pick *pick)
{
	struct policy_task *wakee = &w->tasks[p], *by = waker == POLICY_NONE ? 0 : &w->tasks[waker];
	struct policy_task wakee_before = *wakee, waker_before = by ? *by : *wakee;

	*pick = reveille_select(w, t, wakee, by, this_cpu, flags, now_j);
	keep_history(wakee, wakee_before);
	if (by)
		keep_history(by, waker_before);
	if (pick->far > pick->searched)
		pick->far = pick->searched;
	if (!pick->rule && pick->cpu < w->n_cpus)
		pick->rule = world_usable(w, pick->cpu) ? POLICY_RULE_OWN : POLICY_RULE_OWN_BUSY;
}
