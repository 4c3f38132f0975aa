/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decisions of policy/ made callable from Rust, in the simulator's world. Nothing
 * is decided here.
 */
#include "sim_world.h"

#include "../../../policy/averages.h"
#include "../../../policy/select.h"
#include "../../../policy/swqueue.h"

/* What only kernels before v6.0, and patches that were not merged, decide by. */
#define RARE                                                                             \
	(POLICY_SIS_GROUP | POLICY_SIS_FIRST | POLICY_SIS_PROP | POLICY_SIS_AGE |        \
	 POLICY_WA_EFFECTIVE_LOAD | POLICY_SIS_NODE | POLICY_SIS_CURRENT |               \
	 POLICY_SIS_SHORT_V4 | POLICY_SIS_LIMITED_CORES | POLICY_SIS_FILTER |             \
	 POLICY_SIS_CACHE)

static __attribute__((noinline, cold)) void
select_cpu_rarely(struct world *w, const struct policy_tunables *t, struct policy_task *p,
		  struct policy_task *waker, u32 this_cpu, u32 flags, u64 now_j,
		  struct policy_pick *pick)
{
	*pick = policy_select_cpu(w, t, p, waker, this_cpu, flags, now_j);
}

/*
 * The same code twice: with the rare features known to be off the compiler leaves
 * their rules out, so that recent kernels do not pay for them; nor for clusters that
 * are not there.
 */
void reveille_select_cpu(struct world *w, const struct policy_tunables *t, u32 p, u32 waker,
			 u32 this_cpu, u32 flags, u64 now_j, struct policy_pick *restrict pick)
{
	struct policy_task *wakee = &w->tasks[p];
	struct policy_task *by = waker == POLICY_NONE ? 0 : &w->tasks[waker];
	struct policy_tunables recent = *t;

	if (policy_has(t, RARE) || policy_clusters(w, t)) {
		select_cpu_rarely(w, t, wakee, by, this_cpu, flags, now_j, pick);
		return;
	}
	recent.features &= ~(RARE | POLICY_SIS_CLUSTER);
	/* policy_select_cpu() in its halves, which write the caller's pick without a copy. */
	*pick = (struct policy_pick){ 0 };
	policy_select_target(w, &recent, wakee, by, this_cpu, flags, now_j, pick);
	policy_select_idle(w, &recent, wakee, by, this_cpu, flags, now_j, pick);
}

bool reveille_joins_filter(const struct world *w, u32 cpu)
{
	return policy_joins_filter(w, cpu);
}

bool reveille_ttwu_queue(struct world *w, const struct policy_tunables *t, u32 this_cpu, u32 cpu,
			 bool on_cpu)
{
	return policy_ttwu_queue(w, t, this_cpu, cpu, on_cpu);
}

void reveille_record_wakee(struct policy_task *waker, u32 wakee, u64 now_j, u32 hz)
{
	policy_record_wakee(waker, wakee, now_j, hz);
}

void reveille_task_slept(struct policy_task *p)
{
	policy_task_slept(p);
}

void reveille_idle_ended(struct policy_scan_state *s, u64 idle_ns, u64 max_idle_balance_cost_ns,
			 u64 now_j)
{
	policy_idle_ended(s, idle_ns, max_idle_balance_cost_ns, now_j);
}

void reveille_scan_done(struct world *w, const struct policy_tunables *t, u32 this_cpu,
			const struct policy_pick *pick, u64 elapsed_ns)
{
	policy_scan_done(w, t, this_cpu, pick, elapsed_ns);
}

u64 reveille_usual_sleep(u64 usual_ns, u64 slept_ns)
{
	return policy_usual_sleep(usual_ns, slept_ns);
}

u32 reveille_nr_idle_scan(u64 sum_util, u32 llc_weight, u32 imbalance_pct)
{
	return policy_nr_idle_scan(sum_util, llc_weight, imbalance_pct);
}

u32 reveille_swqueue_shards(const struct policy_tunables *t, u32 llc_weight)
{
	return policy_swqueue_shards(t, llc_weight);
}

u32 reveille_swqueue_shard(u32 cpu, u32 shards)
{
	return policy_swqueue_shard(cpu, shards);
}

u32 reveille_swqueue_shard_tried(u32 own, u32 k, u32 shards)
{
	return policy_swqueue_shard_tried(own, k, shards);
}

bool reveille_swqueue_appends(const struct world *w, const struct policy_tunables *t, u32 cpu,
			      u32 nr_allowed, bool migrated)
{
	return policy_swqueue_appends(w, t, cpu, nr_allowed, migrated);
}

bool reveille_swqueue_pops(const struct world *w, const struct policy_tunables *t, u32 head,
			   u32 cpu)
{
	return policy_swqueue_pops(w, t, &w->tasks[head], cpu);
}

bool reveille_swqueue_takes(const struct world *w, u32 p, u32 cpu, bool queued)
{
	return policy_swqueue_takes(w, &w->tasks[p], cpu, queued);
}
