/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The idle CPU with the lowest number in the target's LLC, else the target: packs tasks
 * on few CPUs, and looks at many CPUs for it.
 */
#include <reveille.h>

REVEILLE_POLICY(1);

struct policy_pick reveille_select(struct world *w, const struct policy_tunables *t,
				   struct policy_task *p, struct policy_task *waker, u32 this_cpu,
				   u32 flags, u64 now_j)
{
	struct policy_pick pick = { 0 };
	u32 llc, weight;

	policy_select_target(w, t, p, waker, this_cpu, flags, now_j, &pick);
	llc = world_llc(w, pick.target);
	weight = world_llc_weight(w, llc);
	POLICY_FOR(position, weight) {
		u32 cpu = world_llc_cpu(w, llc, position);

		if (world_allowed(w, p, cpu) && reveille_look(w, cpu, &pick)) {
			pick.cpu = cpu;
			return pick;
		}
	}
	pick.cpu = pick.target;
	return pick;
}
