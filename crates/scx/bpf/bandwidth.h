/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpu.max and cpu.max.burst: the arithmetic is policy/bandwidth.h's; here are its
 * world's parts. Each limited group has a timer of its own, at its own period. A group's
 * queue on a CPU draws runtime from the pool; when there is none it is throttled and
 * stands in line, and its tasks are put aside (parked) where no CPU takes them, until
 * the pool pays. A second timer, per CPU, ends a run to the microsecond when the
 * runtime does: ticks are too coarse.
 */
#ifndef REVEILLE_SCX_BANDWIDTH_H
#define REVEILLE_SCX_BANDWIDTH_H

#include "clock.h"

/* No run is cut shorter than this: the overrun is a debt. */
#define SHORTEST_RUN_NS 20000ull

struct group_queue {
	struct policy_bw_queue q;
};

/* By slot * n_cpu_ids + CPU; the loader sizes it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct group_queue);
} group_queues SEC(".maps");

struct group_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_GROUPS);
	__type(key, u32);
	__type(value, struct group_timer);
} group_timers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_CPUS);
	__type(key, u32);
	__type(value, struct group_timer);
} stop_timers SEC(".maps");

static __always_inline struct policy_bw_queue *queue_of(u32 slot, u32 cpu)
{
	u32 key = slot * n_cpu_ids + cpu;
	struct group_queue *gq = bpf_map_lookup_elem(&group_queues, &key);

	return gq ? &gq->q : NULL;
}

/* When the group's timer is next needed; 0 for not at all. Under its lock. */
static __always_inline u64 next_timer(struct group *g)
{
	u64 at_ns = g->pool.period_active ? g->pool.refill_at_ns : 0;

	if (g->pool.slack_started && (!at_ns || g->pool.slack_at_ns < at_ns))
		at_ns = g->pool.slack_at_ns;
	return at_ns;
}

static __noinline int arm_group(u32 slot, u64 at_ns)
{
	struct group_timer *timer = bpf_map_lookup_elem(&group_timers, &slot);
	u64 now_ns = bpf_ktime_get_ns();

	if (timer)
		bpf_timer_start(&timer->timer, at_ns > now_ns ? at_ns - now_ns : 0, 0);
	return 0;
}

/* The queue is throttled now: it stands in line. Under the lock. */
static __always_inline void stand_in_line(struct group *g, u32 cpu)
{
	g->waiting[g->end_waiting & (MAX_CPUS - 1)] = cpu;
	g->end_waiting++;
	__sync_fetch_and_add(&throttled_queues, 1);
}

/* The task sleeps: what its CPU has drawn and does not need goes back. */
#define ACCOUNT_LEAVE 1u
/* It has left the CPU or wants onto it: a queue without runtime is throttled. */
#define ACCOUNT_THROTTLE 2u

/*
 * The task's groups have run for so long on this CPU; with delta 0, they want to.
 * Returns the slot of a group that must not run here, or 0; and how
 * long the others may.
 */
static __noinline u32 account(u32 slot, u32 cpu, u64 delta_ns, u32 flags, u64 *left_ns)
{
	u64 now_ns = bpf_ktime_get_ns();
	u32 stopped = 0;
	int i;

	if (!left_ns)
		return 0;
	*left_ns = ~0ull;
	for_each(i, GROUP_DEPTH)
	{
		struct group *g = slot ? group_of(slot) : NULL;
		struct policy_bw_queue *q;
		u64 arm_ns = 0;
		s64 left;
		bool throttled;

		if (!g)
			break;
		if (!g->limited)
			goto up;
		q = queue_of(slot, cpu);
		if (!q)
			goto up;
		bpf_spin_lock(&g->lock);
		policy_bw_account(&g->pool, q, delta_ns, bandwidth_slice_ns, now_ns);
		/* A group around a throttled one does not keep what nobody uses here, either. */
		if ((flags & ACCOUNT_LEAVE) || stopped)
			policy_bw_return(&g->pool, q, bandwidth_slice_ns, now_ns);
		if ((flags & ACCOUNT_THROTTLE) && policy_bw_throttle(&g->pool, q, now_ns))
			stand_in_line(g, cpu);
		throttled = q->throttled;
		left = q->remaining_ns;
		if (next_timer(g) && (!g->timer_ns || next_timer(g) < g->timer_ns))
			g->timer_ns = arm_ns = next_timer(g);
		bpf_spin_unlock(&g->lock);
		if (arm_ns)
			arm_group(slot, arm_ns);
		if (throttled || left <= 0) {
			if (!stopped)
				stopped = slot;
			*left_ns = 0;
		} else if ((u64)left < *left_ns) {
			*left_ns = left;
		}
up:
		slot = g->parent;
	}
	return stopped;
}

/* Must a task of this group not run on this CPU? The slot that says so, or 0. */
static __noinline u32 throttled_by(u32 slot, u32 cpu)
{
	int i;

	for_each(i, GROUP_DEPTH)
	{
		struct group *g = slot ? group_of(slot) : NULL;
		struct policy_bw_queue *q;

		if (!g)
			break;
		if (g->limited) {
			q = queue_of(slot, cpu);
			if (q && q->throttled)
				return slot;
		}
		slot = g->parent;
	}
	return 0;
}

static __always_inline bool is_limited(const struct task_state *t)
{
	return has_bandwidth && limited_groups && t->group;
}

/* A task of a limited group starts to run: it stops when the runtime does. */
static __noinline int set_stop(u32 slot, u32 cpu)
{
	struct cpu_state *c = cpu_of(cpu);
	struct group_timer *timer;
	u64 now_ns, left_ns = 0;

	account(slot, cpu, 0, 0, &left_ns);
	now_ns = bpf_ktime_get_ns();
	if (left_ns == ~0ull)
		return 0;
	if (left_ns < SHORTEST_RUN_NS)
		left_ns = SHORTEST_RUN_NS;
	c->stop_at_ns = now_ns + left_ns;
	/* A timer that is set already and comes first sets itself again. */
	if (c->stop_timer_ns && c->stop_timer_ns >= now_ns && c->stop_timer_ns <= c->stop_at_ns)
		return 0;
	c->stop_timer_ns = c->stop_at_ns;
	timer = bpf_map_lookup_elem(&stop_timers, &cpu);
	if (timer)
		bpf_timer_start(&timer->timer, left_ns, BPF_F_TIMER_CPU_PIN);
	return 0;
}

static int stop_timer_fired(void *map, u32 *cpu, struct group_timer *timer)
{
	struct cpu_state *c = cpu_of(*cpu);
	u64 now_ns = bpf_ktime_get_ns(), at_ns = c->stop_at_ns;

	c->stop_timer_ns = 0;
	if (!at_ns)
		return 0;
	if (now_ns + SHORTEST_RUN_NS / 2 >= at_ns) {
		scx_bpf_kick_cpu(*cpu, SCX(scx_kick_flags, SCX_KICK_PREEMPT));
		return 0;
	}
	c->stop_timer_ns = at_ns;
	bpf_timer_start(&timer->timer, at_ns - now_ns, BPF_F_TIMER_CPU_PIN);
	return 0;
}

/* Tasks that were parked and may run again go to their CPUs' queues, in order. */
static __noinline int release_parked(u32 slot)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, PARK_QUEUES + slot, 0)
	{
		struct task_state *t = task_of(p);
		s32 cpu = scx_bpf_task_cpu(p);

		if (!t || throttled_by(t->group, cpu))
			continue;
		if (scx_move_vtime(BPF_FOR_EACH_ITER, p, (u64)cpu, t->vtime)) {
			COUNT(released);
			set_bit(llc_of(place_of(cpu)->llc)->queued, place_of(cpu)->position);
			scx_bpf_kick_cpu(cpu, SCX(scx_kick_flags, SCX_KICK_IDLE));
		}
	}
	return 0;
}

/* The queues in line are paid, first come first, as long as the pool lasts. */
static __noinline int pay_waiting(u32 slot)
{
	struct group *g = group_of(slot);
	u64 now_ns = bpf_ktime_get_ns();
	int i;

	if (!g)
		return 0;
	for_each(i, MAX_CPUS)
	{
		struct policy_bw_queue *q;
		bool empty, paid = false;
		u32 first;

		bpf_spin_lock(&g->lock);
		first = g->first_waiting;
		empty = first == g->end_waiting;
		bpf_spin_unlock(&g->lock);
		if (empty)
			break;
		q = queue_of(slot, g->waiting[first & (MAX_CPUS - 1)]);
		if (!q)
			break;
		bpf_spin_lock(&g->lock);
		/* The list may have been emptied in between: the limit was written. */
		if (g->first_waiting == first && first != g->end_waiting && q->throttled) {
			paid = policy_bw_grant(&g->pool, q);
			if (paid) {
				policy_bw_unthrottle(&g->pool, q, now_ns);
				g->first_waiting++;
			}
		}
		bpf_spin_unlock(&g->lock);
		if (!paid)
			break;
		__sync_fetch_and_add(&throttled_queues, -1);
	}
	return 0;
}

static int group_timer_fired(void *map, u32 *key, struct group_timer *timer)
{
	u32 slot = *key;
	struct group *g = group_of(slot);
	u64 now_ns = bpf_ktime_get_ns(), at_ns;
	bool pay = false;

	if (!g)
		return 0;
	bpf_spin_lock(&g->lock);
	g->timer_ns = 0;
	if (g->pool.slack_started && g->pool.slack_at_ns <= now_ns)
		pay = policy_bw_slack(&g->pool, bandwidth_slice_ns, now_ns);
	if (g->pool.period_active && policy_bw_period(&g->pool, now_ns) == POLICY_BW_DISTRIBUTE)
		pay = true;
	bpf_spin_unlock(&g->lock);
	if (pay)
		pay_waiting(slot);
	/* Also what was parked just as its group was released. */
	bpf_rcu_read_lock();
	release_parked(slot);
	bpf_rcu_read_unlock();
	bpf_spin_lock(&g->lock);
	at_ns = next_timer(g);
	g->timer_ns = at_ns;
	bpf_spin_unlock(&g->lock);
	if (!at_ns && scx_bpf_dsq_nr_queued(PARK_QUEUES + slot) > 0)
		at_ns = now_ns + POLICY_BW_SLACK_NS;
	if (at_ns)
		arm_group(slot, at_ns);
	return 0;
}

/* cpu.max or cpu.max.burst is written, or a group with limits appears. */
static __noinline int set_limits(u32 slot, u64 period_us, u64 quota_us, u64 burst_us)
{
	u64 quota_ns = quota_us == ~0ull ? POLICY_BW_NO_QUOTA : quota_us * 1000;
	u64 period_ns = period_us * 1000, burst_ns = burst_us * 1000, at_ns;
	struct group *g = group_of(slot);
	u64 now_ns = bpf_ktime_get_ns();
	bool limited = quota_ns != POLICY_BW_NO_QUOTA, was;
	int i;

	/* The kernel has checked them, by the same rules. */
	if (!g || policy_bw_check(quota_ns, period_ns, burst_ns))
		return 0;
	bpf_spin_lock(&g->lock);
	was = g->limited;
	g->limited = limited;
	policy_bw_set(&g->pool, quota_ns, period_ns, burst_ns, now_ns);
	g->first_waiting = g->end_waiting;
	bpf_spin_unlock(&g->lock);
	if (limited && !was)
		__sync_fetch_and_add(&limited_groups, 1);
	if (!limited && was)
		__sync_fetch_and_add(&limited_groups, -1);
	for_each(i, n_cpu_ids)
	{
		struct policy_bw_queue *q = queue_of(slot, i);
		bool released = false;

		if (!q)
			break;
		bpf_spin_lock(&g->lock);
		q->enabled = limited;
		q->remaining_ns = 0;
		if (q->throttled) {
			policy_bw_unthrottle(&g->pool, q, now_ns);
			released = true;
		}
		bpf_spin_unlock(&g->lock);
		if (released)
			__sync_fetch_and_add(&throttled_queues, -1);
	}
	release_parked(slot);
	bpf_spin_lock(&g->lock);
	at_ns = next_timer(g);
	g->timer_ns = at_ns;
	bpf_spin_unlock(&g->lock);
	if (at_ns)
		arm_group(slot, at_ns);
	return 0;
}

#endif
