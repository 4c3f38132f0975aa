/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * enqueue and dispatch: a queue for each CPU in order of virtual time, under SWQUEUE one
 * for each shard of a cache besides. A CPU takes from its own queue, from its cache's
 * shared one, and when it has no work from other CPUs' queues: those of its own cache,
 * then the others by distance.
 */
#ifndef REVEILLE_SCX_QUEUE_H
#define REVEILLE_SCX_QUEUE_H

#include "bandwidth.h"

/* What a look for work among other CPUs costs: not worth it where idle ends sooner. */
#define STEAL_NEAR_NS 5000ull
#define STEAL_FAR_NS 30000ull
/*
 * Every so many surveys tasks may also change places: three of one weight then take turns on two CPUs. A task that
 * moves has a turn at once, so none that weighs much less than what it comes to.
 */
#define SURVEYS_PER_ROTATION 16
#define LEAST_ROTATED 8

static __always_inline u64 shard_queue(u32 llc, u32 shard)
{
	return SHARD_QUEUES + llc_place_of(llc)->first_shard + shard;
}

/* policy_swqueue_shards(), with the size of a shard that the loader was given. */
static __always_inline u32 shards_of(u32 llc)
{
	u32 shards = llc_place_of(llc)->n_shards;

	return features & POLICY_SWQUEUE_SHARD ? shards : 1;
}

/* An idle CPU of the cache, of those allowed, looks for work, if there is one. */
static __always_inline void call_for_help(u32 llc, const struct allowed_set *set)
{
	struct llc_state *l = llc_of(llc);

	for (u32 i = 0; i < POLICY_LLC_WORDS; i++) {
		u64 word;

		if (i * 64 >= llc_place_of(llc)->weight)
			break;
		word = *(volatile u64 *)word_at(l->idle, i) & allowed_word(set, llc, i);
		if (word) {
			u32 cpu = cpu_at(llc, i * 64 + policy_lowest_bit(word));

			COUNT(helped);
			scx_bpf_kick_cpu(cpu, SCX(scx_kick_flags, SCX_KICK_IDLE));
			return;
		}
	}
}

static __always_inline void mark_queued(u32 cpu)
{
	struct llc_state *l = llc_of(place_of(cpu)->llc);

	if (!test_bit(l->queued, place_of(cpu)->position))
		set_bit(l->queued, place_of(cpu)->position);
}

/*
 * Parks a task of a throttled group. A displaced task goes to the head of the queue instead, and preempts:
 * who moves it waits for it, and a CPU that comes back is not the scheduler's before that. A lifted one that
 * has not had its turn yet goes there, too: the kernel re-enqueues a CPU's local queue when a higher class
 * takes the CPU. Returns whether it did any of this.
 */
static __always_inline bool park(struct task_struct *p, struct task_state *t, u32 cpu)
{
	u64 left_ns;
	u32 slot = limit_for(t);

	if (!slot || !account(slot, cpu, 0, ACCOUNT_THROTTLE, &left_ns))
		return false;
	slot = throttled_by(t->group, cpu);
	if (!slot || runs_to_exit(p, t))
		return false;
	t->displaced = is_displaced(p, cpu);
	if (t->displaced || t->lifted) {
		COUNT(lifted);
		scx_insert_vtime(p, cpu, slice_ns, go_first(p, t, cpu), 0);
		scx_bpf_kick_cpu(cpu, t->displaced ? SCX(scx_kick_flags, SCX_KICK_PREEMPT) :
						     SCX(scx_kick_flags, SCX_KICK_IDLE));
		return true;
	}
	scx_insert(p, PARK_QUEUES + slot, slice_ns, 0);
	COUNT(parked);
	return true;
}

static __always_inline void enqueue_task(struct task_struct *p, struct task_state *t, u32 cpu,
					 u64 enq_flags)
{
	const u64 local = SCX(scx_dsq_id_flags, SCX_DSQ_LOCAL);
	const u64 preempt = SCX(scx_enq_flags, SCX_ENQ_PREEMPT);
	bool wakeup = enq_flags & SCX(scx_enq_flags, SCX_ENQ_WAKEUP);
	struct world w = { .this_cpu = cpu };
	struct policy_tunables now;
	enum claim claimed = t->claimed == cpu + 1 ? t->claim : CLAIM_LOST;

	t->claimed = 0;
	t->mid_turn = 0;
	if (!t->waits_since_j)
		t->waits_since_j = bpf_jiffies64();
	if (park(p, t, cpu)) {
		unclaim(cpu, claimed);
		return;
	}
	if (claimed == CLAIM_LOST && !(enq_flags & SCX(scx_enq_flags, SCX_ENQ_LAST)))
		claimed = claim(p, cpu);
	if (claimed != CLAIM_LOST || (enq_flags & SCX(scx_enq_flags, SCX_ENQ_LAST))) {
		COUNT(direct);
		scx_insert(p, local, slice_ns, claimed == CLAIM_SCHED_IDLE ? preempt : 0);
		return;
	}
	count_task(t, weight_of(p));
	to_clock_of(t, cpu);
	if (wakeup) {
		limit_credit(t, cpu);
		if (preempts(p, t, cpu)) {
			COUNT(preempted);
			scx_insert(p, local, slice_ns, preempt);
			return;
		}
		/* A CPU's own kernel threads go first, unless they have had their share. */
		if ((t->policy.flags & POLICY_TASK_PERCPU_KTHREAD) &&
		    before(t->vtime, cpu_of(cpu)->clock + slice_ns)) {
			COUNT(direct);
			scx_insert(p, local, slice_ns, 0);
			return;
		}
		tunables_now(&now);
		if (policy_swqueue_appends(&w, &now, cpu, t->nr_allowed, t->migrated)) {
			u32 llc = place_of(cpu)->llc;

			shared_used = 1;
			COUNT(shared);
			scx_insert(p, shard_queue(llc, policy_swqueue_shard(cpu, shards_of(llc))),
				   slice_ns, 0);
			return;
		}
	}
	COUNT(queued);
	/* One that was taken off a CPU's local queue before its turn stays first. */
	scx_insert_vtime(p, cpu, slice_ns, t->lifted ? go_first(p, t, cpu) : t->vtime, 0);
	if (t->nr_allowed > 1) {
		mark_queued(cpu);
		if (!wakeup)
			call_for_help(place_of(cpu)->llc, set_of(p, t));
	}
}

/* The head of a queue that may run here; tasks of throttled groups are put aside. */
static __noinline int take_checked(u64 dsq, u32 cpu)
{
	struct task_struct *p;
	int moved = 0;

	bpf_for_each(scx_dsq, p, dsq, 0)
	{
		struct task_state *t = task_of(p);
		u32 slot = t && t->group ? throttled_by(t->group, cpu) : 0;

		if (slot)
			t->displaced = is_displaced(p, cpu);
		if (slot && !t->lifted && !t->displaced && !runs_to_exit(p, t)) {
			if (scx_move(BPF_FOR_EACH_ITER, p, PARK_QUEUES + slot))
				COUNT(parked);
			continue;
		}
		if (scx_move(BPF_FOR_EACH_ITER, p, SCX(scx_dsq_id_flags, SCX_DSQ_LOCAL))) {
			moved = 1;
			break;
		}
	}
	return moved;
}

static __always_inline bool take(u64 dsq)
{
	return scx_move_to_local(dsq);
}

/* Off the queue of another CPU of this cache. */
static __noinline int steal_from(u32 llc, u32 cpu)
{
	struct llc_state *l = llc_of(llc);

	for (u32 i = 0; i < POLICY_LLC_WORDS; i++) {
		u64 word;

		if (i * 64 >= llc_place_of(llc)->weight)
			break;
		word = *(volatile u64 *)word_at(l->queued, i);
		for (u32 k = 0; k < 4 && word; k++) {
			u32 bit = i * 64 + policy_lowest_bit(word), from = cpu_at(llc, bit);

			word &= word - 1;
			if (from == cpu)
				continue;
			if (take(from))
				return 1;
			/* Nothing there that may run here. If nothing at all, nobody need look. */
			take_bit(l->queued, bit);
			if (scx_bpf_dsq_nr_queued(from) > 0)
				set_bit(l->queued, bit);
		}
	}
	return 0;
}

/* Off the shared queues of this cache: the CPU's own shard, then round. */
static __noinline int take_shared(u32 llc, u32 cpu)
{
	u32 all = llc_place_of(llc)->n_shards, shards = shards_of(llc);
	u32 own = policy_swqueue_shard(cpu, shards);
	int k;

	for_each(k, all)
	{
		/* Once SWQUEUE_SHARD is unset, the other shards are emptied all the same. */
		u32 shard = policy_swqueue_shard_tried(own, k, all);

		if (take(shard_queue(llc, shard)))
			return 1;
	}
	return 0;
}

/* What waits there of a CPU that goes: to that CPU. */
static __noinline int send_home(u64 dsq, u32 cpu)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, dsq, 0)
	{
		if (cpu_for(p) == cpu)
			scx_move(BPF_FOR_EACH_ITER, p, local_queue(cpu));
	}
	return 0;
}

/*
 * A CPU goes. The kernel runs each task of its local queue there just to push it away, and looks
 * whether any are left when it becomes idle, not later. If another CPU took the last one from a
 * queue of ours, the CPU would wait for it forever (seen on 7.0). Parked tasks run to their end of
 * kernel mode: in returns_to_user() they cannot move.
 */
static __always_inline void leave_cpu(u32 cpu)
{
	u32 llc = place_of(cpu)->llc;
	int i;

	for_each(i, last_limit)
	{
		send_home(PARK_QUEUES + i + 1, cpu);
	}
	send_home(cpu, cpu);
	for_each(i, llc_place_of(llc)->n_shards)
	{
		send_home(shard_queue(llc, i), cpu);
	}
}

/*
 * The task on the CPU has used up its slice: may it have another? It is charged for the
 * one that it had; not if its group is out of runtime: enqueue then puts it aside.
 */
static __noinline bool may_go_on(struct task_struct *prev, struct task_state *t, u32 cpu)
{
	u64 ran_ns = charge(prev, t), left_ns;
	u32 slot = limit_for(t);

	count_task(t, weight_of(prev));
	settle_left(cpu_of(cpu));
	fold_cpu(cpu_of(cpu), cpu, ran_ns, scx_now());
	return !slot || !account(slot, cpu, ran_ns, ACCOUNT_THROTTLE, &left_ns) ||
	       runs_to_exit(prev, t);
}

static __noinline int go_on(struct task_struct *prev, struct task_state *t, u32 cpu, bool leaves)
{
	COUNT(kept);
	t->mid_turn = leaves;
	if (!leaves)
		set_clock(cpu_of(cpu), t, scx_now());
	/* Where it has been switched away in there, stopping() and running() are called on its way out. */
	t->lifted = t->leaves = leaves;
	if (exits_seen)
		t->at_exit = 0;
	time_turn(prev, t, cpu);
	scx_set_slice(prev, slice_ns);
	return 0;
}

/* Where the first in the CPU's queue stands; far ahead if there is none. */
static __noinline u64 first_vtime(u32 cpu)
{
	struct task_struct *p;
	u64 vtime = cpu_of(cpu)->clock + (1ull << 62);

	bpf_for_each(scx_dsq, p, cpu, 0)
	{
		vtime = p->scx.dsq_vtime;
		break;
	}
	return vtime;
}

/*
 * A task moves from the cache's heaviest CPU to this one if that leaves this one lighter than the other was: so no
 * two CPUs pass a task to and fro. One task per survey; a CPU tries but once.
 */
static __always_inline bool pull_from(struct llc_state *from, u32 cpu)
{
	struct cpu_state *c = cpu_of(cpu);
	u64 gives = from->busiest_gives;

	if (!(from->surveys % SURVEYS_PER_ROTATION) && gives * LEAST_ROTATED >= c->load)
		gives /= 2;
	if (c->load + gives >= from->busiest_load || from->busiest == cpu || c->tried == from->surveys)
		return false;
	c->tried = from->surveys;
	if (!take(from->busiest)) {
		from->refused = 1;
		return false;
	}
	from->busiest_load = 0;
	c->load += from->busiest_gives;
	return true;
}

static __always_inline void dispatch_cpu(u32 cpu, struct task_struct *prev)
{
	struct cpu_state *c = cpu_of(cpu);
	u32 llc = place_of(cpu)->llc;
	struct llc_state *l = llc_of(llc);
	bool goes_on = prev && (prev->scx.flags & SCX(scx_ent_flags, SCX_TASK_QUEUED));
	struct task_state *t = goes_on ? task_of(prev) : NULL;
	u64 idle_ns = c->scan.avg_idle_ns;
	int i;

	/* Where both have work they take turns: neither starves. */
	if (shared_used && (c->shared_turn++ & 1) && take_shared(llc, cpu)) {
		COUNT(pulled);
		return;
	}
	/* The heaviest CPU of the cache, as the timer last found it, gives a task away; so does another cache. */
	if (pull_from(l, cpu)) {
		COUNT(stolen_near);
		return;
	}
	if (l->far != NONE && pull_from(llc_of(l->far), cpu)) {
		COUNT(stolen_far);
		return;
	}
	if (goes_on && t) {
		t->leaves = 0;
		goes_on = may_go_on(prev, t, cpu);
	}
	if (goes_on && t && scx_bpf_dsq_nr_queued(cpu) > 0) {
		/* A lifted one has had its turn: if it waits, an idle CPU may take it. */
		bool first = !t->lifted && !before(first_vtime(cpu), t->vtime);
		/* In returns_to_user() it cannot move, and no idle CPU could take it from the queue. */
		bool leaves = !first && t->at_exit && !exits_seen;

		if (first || leaves) {
			go_on(prev, t, cpu, leaves);
			return;
		}
	}
	if (throttled_queues ? take_checked(cpu, cpu) : take(cpu))
		return;
	if (shared_used && take_shared(llc, cpu)) {
		COUNT(pulled);
		return;
	}
	if (goes_on) {
		if (t)
			go_on(prev, t, cpu, false);
		return;
	}
	/* One that was sent for has been idle all the time. */
	if (c->idle_since_ns && scx_now() - c->idle_since_ns > idle_ns)
		idle_ns = scx_now() - c->idle_since_ns;
	if (idle_ns < STEAL_NEAR_NS)
		return;
	if (steal_from(llc, cpu)) {
		COUNT(stolen_near);
		return;
	}
	if (idle_ns < STEAL_FAR_NS)
		return;
	for_each(i, n_llcs - 1)
	{
		if (steal_from(llc_order[llc & (MAX_LLCS - 1)][i & (MAX_LLCS - 1)], cpu)) {
			COUNT(stolen_far);
			return;
		}
	}
}

#endif
