/*
 * Keep the wakee on its last CPU if at most MOST tasks run there, and else decide as the kernel
 * does. search.py sets MOST.
 */
#include <reveille.h>

#define MOST 0

REVEILLE_POLICY(1);

struct policy_pick reveille_select(struct world *w, const struct policy_tunables *t,
				   struct policy_task *p, struct policy_task *waker, u32 this_cpu,
				   u32 flags, u64 now_j)
{
	struct policy_pick pick = { 0 };

	policy_select_target(w, t, p, waker, this_cpu, flags, now_j, &pick);
	if (world_allowed(w, p, p->prev_cpu) && world_llc(w, p->prev_cpu) == world_llc(w, pick.target) &&
	    world_nr_running(w, p->prev_cpu) <= MOST) {
		pick.tested++;
		pick.cpu = p->prev_cpu;
		return pick;
	}
	policy_select_idle(w, t, p, waker, this_cpu, flags, now_j, &pick);
	return pick;
}
