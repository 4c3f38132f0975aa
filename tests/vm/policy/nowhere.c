/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers with a CPU that is not there, and spoils what it may not change. */
#include <reveille.h>

REVEILLE_POLICY(1);

struct policy_pick reveille_select(struct world *w, const struct policy_tunables *t,
				   struct policy_task *p, struct policy_task *waker, u32 this_cpu,
				   u32 flags, u64 now_j)
{
	struct policy_pick pick = { .cpu = 4711, .target = 4712, .rule = 200 };

	p->flags = ~0u;
	p->prev_cpu = 4713;
	return pick;
}
