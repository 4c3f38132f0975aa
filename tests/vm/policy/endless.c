/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The verifier refuses it: nothing says that its loop ends. */
#include <reveille.h>

REVEILLE_POLICY(1);

struct policy_pick reveille_select(struct world *w, const struct policy_tunables *t,
				   struct policy_task *p, struct policy_task *waker, u32 this_cpu,
				   u32 flags, u64 now_j)
{
	struct policy_pick pick = { 0 };

	while (world_nr_running(w, pick.cpu))
		pick.cpu = world_llc_cpu(w, 0, pick.cpu + 1);
	return pick;
}
