/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two CPUs of the target's LLC by chance, the idle one or else the one with fewer
 * runnable tasks: two looks, however large the LLC is. Chance comes from the arguments,
 * so that the same run decides the same.
 */
#include <reveille.h>

REVEILLE_POLICY(1);

/* One step of SplitMix64. */
POLICY_INLINE u64 mix(u64 x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

struct policy_pick reveille_select(struct world *w, const struct policy_tunables *t,
				   struct policy_task *p, struct policy_task *waker, u32 this_cpu,
				   u32 flags, u64 now_j)
{
	struct policy_pick pick = { 0 };
	u64 chance = mix(p->sum_exec_ns ^ mix(p->id + (now_j << 20)));
	u32 least = POLICY_NONE, llc, weight;

	policy_select_target(w, t, p, waker, this_cpu, flags, now_j, &pick);
	pick.cpu = pick.target;
	llc = world_llc(w, pick.target);
	weight = world_llc_weight(w, llc);
	for (u32 k = 0; k < 2; k++) {
		u32 cpu = world_llc_cpu(w, llc, (u32)(chance >> (32 * k)) % weight);

		if (!world_allowed(w, p, cpu))
			continue;
		if (reveille_look(w, cpu, &pick)) {
			pick.cpu = cpu;
			return pick;
		}
		if (world_nr_running(w, cpu) < least) {
			least = world_nr_running(w, cpu);
			pick.cpu = cpu;
		}
	}
	return pick;
}
