/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The shared wake queue (RFC of 2023-06-13, later shared_runq): which wakees stand
 * on their cache's queue besides their runqueue, in which part of it, and which of
 * them a CPU that has run out of work may take.
 */
#ifndef REVEILLE_POLICY_SWQUEUE_H
#define REVEILLE_POLICY_SWQUEUE_H

#include "world.h"

/* CPUs per shard, at most (shared_runq v3, 2023-08-09). */
#define POLICY_SWQUEUE_SHARD_CPUS 6

/* How many queues an LLC of this many CPUs has. */
POLICY_INLINE u32 policy_swqueue_shards(const struct policy_tunables *t, u32 llc_weight)
{
	if (!policy_has(t, POLICY_SWQUEUE_SHARD) || llc_weight == 0)
		return 1;
	return (llc_weight + POLICY_SWQUEUE_SHARD_CPUS - 1) / POLICY_SWQUEUE_SHARD_CPUS;
}

/* Which of its LLC's `shards` queues a CPU uses: neighbouring numbers share one. */
POLICY_INLINE u32 policy_swqueue_shard(u32 cpu, u32 shards)
{
	return shards > 1 ? (cpu >> 1) % shards : 0;
}

/* The k-th shard that a CPU looks at for work: its own first, then round. */
POLICY_INLINE u32 policy_swqueue_shard_tried(u32 own, u32 k, u32 shards)
{
	return shards > 1 ? (own + k) % shards : 0;
}

/*
 * Is a task appended to the queue of `cpu`, on whose runqueue it is being put?
 * Asked before it counts as running there. A wakee that selection has moved has a
 * CPU that suits it, unless every enqueue appends (shared_runq v2 7/7, v3); one that
 * may run on a single CPU (`nr_allowed`) is of no use to others; and from v4 on so is
 * one that its CPU will pick at once.
 */
POLICY_INLINE bool policy_swqueue_appends(const struct world *w, const struct policy_tunables *t,
					  u32 cpu, u32 nr_allowed, bool migrated)
{
	if (!policy_has(t, POLICY_SWQUEUE) || nr_allowed <= 1)
		return false;
	if (migrated && !policy_has(t, POLICY_SWQUEUE_ENQUEUE))
		return false;
	return !policy_has(t, POLICY_SWQUEUE_SKIP_IDLE) || world_nr_running(w, cpu) > 0;
}

/*
 * Does `cpu` take the head off the queue? The first version took whatever stood
 * there; since shared_runq v2 a task that may not run here stays.
 */
POLICY_INLINE bool policy_swqueue_pops(const struct world *w, const struct policy_tunables *t,
				       const struct policy_task *head, u32 cpu)
{
	return !policy_has(t, POLICY_SWQUEUE_NEWIDLE) || world_allowed(w, head, cpu);
}

/*
 * May `cpu` move a popped task here, now that it holds that task's runqueue lock?
 * `queued`: the task still is on that runqueue.
 */
POLICY_INLINE bool policy_swqueue_takes(const struct world *w, const struct policy_task *p, u32 cpu,
					bool queued)
{
	return queued && p->prev_cpu != cpu && world_curr(w, p->prev_cpu) != p &&
	       world_allowed(w, p, cpu);
}

#endif
