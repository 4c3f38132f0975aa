/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpu.max and cpu.max.burst: the arithmetic is policy/bandwidth.h's; here are its
 * world's parts. Each limited group has a timer of its own, at its own period. A group's
 * queue on a CPU draws runtime from the pool; when there is none it is throttled and
 * stands in line, and its tasks are put aside (parked) where no CPU takes them, until
 * the pool pays. A second timer, per CPU, ends a run to the microsecond when the
 * runtime does, and turns that others wait for: ticks are too coarse.
 *
 * Limits are kept in slots, which groups take when their cpu.max is written, and give back
 * when it is `max` again. Where no slot is free, the nearest limit above holds. Groups without
 * one share a slot with the smallest of their limits. The loader logs it: such a group may get less
 * than its own limit allows, never more than its parent's.
 */
#ifndef REVEILLE_SCX_BANDWIDTH_H
#define REVEILLE_SCX_BANDWIDTH_H

#include "debt.h"

enum limit_state {
	LIMIT_FREE,
	LIMIT_HELD,
	LIMIT_LEAVING, /* given back; its timer frees it once nothing is parked there */
};

struct limit {
	struct bpf_spin_lock lock; /* over the pool and the list */
	u32 state;
	struct policy_bw_pool pool;
	u64 cgroup_id;
	u64 timer_ns; /* for when the timer is set */
	u32 above;    /* the group around: where to look for the next limit */
	u32 limited;  /* it has a quota */
	u32 first_waiting; /* throttled queues, first come first: a ring in `waiting` */
	u32 end_waiting;
	u16 waiting[MAX_CPUS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_LIMITS);
	__type(key, u32);
	__type(value, struct limit);
} limits SEC(".maps");

static __always_inline struct limit *limit_at(u32 slot)
{
	return bpf_map_lookup_elem(&limits, &slot);
}

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

struct timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_LIMITS);
	__type(key, u32);
	__type(value, struct timer);
} limit_timers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_CPUS);
	__type(key, u32);
	__type(value, struct timer);
} stop_timers SEC(".maps");

static __always_inline struct policy_bw_queue *queue_of(u32 slot, u32 cpu)
{
	u32 key = slot * n_cpu_ids + cpu;
	struct group_queue *gq = bpf_map_lookup_elem(&group_queues, &key);

	return gq ? &gq->q : NULL;
}

/* When the group's timer is next needed; 0 for not at all. Under its lock. */
static __always_inline u64 next_timer(struct limit *l)
{
	u64 at_ns = l->pool.period_active ? l->pool.refill_at_ns : 0;

	if (l->pool.slack_started && (!at_ns || l->pool.slack_at_ns < at_ns))
		at_ns = l->pool.slack_at_ns;
	return at_ns;
}

/* Whether the kernel started it; the loader is told of those that it did not. */
static __always_inline bool start_timer(struct timer *timer, u64 in_ns, u64 flags)
{
	if (timer && !bpf_timer_start(&timer->timer, in_ns, flags))
		return true;
	__sync_fetch_and_add(&timers_failed, 1);
	return false;
}

__noinline int arm_limit(u32 slot, u64 at_ns)
{
	struct timer *timer = bpf_map_lookup_elem(&limit_timers, &slot);
	struct limit *l = limit_at(slot);
	u64 now_ns = bpf_ktime_get_ns();

	/* The next draw from the pool starts it again; where all tasks are parked, rearm_limits() does. */
	if (!start_timer(timer, at_ns > now_ns ? at_ns - now_ns : 0, 0) && l)
		l->timer_ns = 0;
	return 0;
}

/* The queue is throttled now: it stands in line. Under the lock. */
static __always_inline void stand_in_line(struct limit *l, u32 cpu)
{
	l->waiting[l->end_waiting & (MAX_CPUS - 1)] = cpu;
	l->end_waiting++;
	__sync_fetch_and_add(&throttled_queues, 1);
}

/* The task sleeps: what its CPU has drawn and does not need goes back. */
#define ACCOUNT_LEAVE 1u
/* It has left the CPU or wants onto it: a queue without runtime is throttled. */
#define ACCOUNT_THROTTLE 2u

/*
 * The task that is under this limit, and so under those above it, has run for so long on
 * this CPU; with delta 0, it wants to. Returns the slot of a limit that forbids it, or 0; and
 * how long the others allow it to.
 */
__noinline u32 account(u32 slot, u32 cpu, u64 delta_ns, u32 flags, u64 *left_ns)
{
	u64 now_ns = bpf_ktime_get_ns();
	u32 stopped = 0;
	int i;

	if (!left_ns)
		return 0;
	*left_ns = ~0ull;
	for_each(i, MAX_LIMITS)
	{
		struct limit *l = slot ? limit_at(slot) : NULL;
		struct policy_bw_queue *q;
		u64 arm_ns = 0;
		s64 left;
		bool throttled;

		if (!l)
			break;
		if (!l->limited)
			goto up;
		q = queue_of(slot, cpu);
		if (!q)
			goto up;
		bpf_spin_lock(&l->lock);
		policy_bw_account(&l->pool, q, delta_ns, bandwidth_slice_ns, now_ns);
		/* A group around a throttled one does not keep what nobody uses here, either. */
		if ((flags & ACCOUNT_LEAVE) || stopped)
			policy_bw_return(&l->pool, q, bandwidth_slice_ns, now_ns);
		if ((flags & ACCOUNT_THROTTLE) && policy_bw_throttle(&l->pool, q, now_ns))
			stand_in_line(l, cpu);
		throttled = q->throttled;
		left = q->remaining_ns;
		if (next_timer(l) && (!l->timer_ns || next_timer(l) < l->timer_ns))
			l->timer_ns = arm_ns = next_timer(l);
		bpf_spin_unlock(&l->lock);
		if (arm_ns)
			arm_limit(slot, arm_ns);
		if (throttled || left <= 0) {
			if (!stopped)
				stopped = slot;
			*left_ns = 0;
		} else if ((u64)left < *left_ns) {
			*left_ns = left;
		}
up:
		slot = limit_of(l->above);
	}
	return stopped;
}

/* Must a task of this group not run on this CPU? The slot that says so, or 0. */
__noinline u32 throttled_by(u32 group, u32 cpu)
{
	u32 slot = limit_of(group);
	int i;

	for_each(i, MAX_LIMITS)
	{
		struct limit *l = slot ? limit_at(slot) : NULL;
		struct policy_bw_queue *q;

		if (!l)
			break;
		if (l->limited) {
			q = queue_of(slot, cpu);
			if (q && q->throttled)
				return slot;
		}
		slot = limit_of(l->above);
	}
	return 0;
}

/* The slot of the task's nearest limit; 0 if it may run as it likes. */
static __always_inline u32 limit_for(const struct task_state *t)
{
	return has_bandwidth && limited_groups && t->group ? limit_of(t->group) : 0;
}

/* The running task stops in so long; with a task's id, when it returns to user mode. */
__noinline int stop_in(u64 left_ns, u32 cpu, u32 tid)
{
	struct cpu_state *c = cpu_of(cpu);
	u64 now_ns = bpf_ktime_get_ns();
	struct timer *timer;

	c->stop_tid = tid;
	c->stop_at_ns = now_ns + left_ns;
	/* A timer that is set already and comes first sets itself again. */
	if (c->stop_timer_ns && c->stop_timer_ns >= now_ns && c->stop_timer_ns <= c->stop_at_ns)
		return 0;
	c->stop_timer_ns = c->stop_at_ns;
	timer = bpf_map_lookup_elem(&stop_timers, &cpu);
	if (!start_timer(timer, left_ns, BPF_F_TIMER_CPU_PIN))
		c->stop_timer_ns = 0;
	return 0;
}

/* The task starts to run: it stops when the runtime of its group does, or its short turn. */
__noinline int set_stop(u32 slot, u32 cpu, u32 tid, struct task_state *t)
{
	u64 least_ns, left_ns = ~0ull;

	if (!t)
		return 0;
	if (slot)
		account(slot, cpu, 0, 0, &left_ns);
	least_ns = t->exit_pending || t->displaced ? EXIT_TURN_NS : FLOOR_TURN_NS;
	if (left_ns < least_ns || has_short_turn(t, cpu))
		left_ns = least_ns;
	if (left_ns > slice_ns && ends_on_time(cpu)) {
		left_ns = slice_ns;
		slot = 0;
	}
	if (left_ns == ~0ull)
		return 0;
	/* What has only waited for its turn is preempted where it is. */
	return stop_in(left_ns, cpu, slot && (!t->lifted || throttled_by(t->group, cpu)) ? tid : 0);
}

/* Sets the timer that ends the turn of the running task, if one is to. */
static __always_inline void time_turn(struct task_struct *p, struct task_state *t, u32 cpu)
{
	u32 slot = limit_for(t);

	if (has_stop(p, t, slot, cpu))
		set_stop(slot, cpu, p->pid, t);
	else if (ends_on_time(cpu))
		stop_in(slice_ns, cpu, 0);
}

static int stop_timer_fired(void *map, u32 *cpu, struct timer *timer)
{
	struct cpu_state *c = cpu_of(*cpu);
	u64 now_ns = bpf_ktime_get_ns(), at_ns = c->stop_at_ns;

	c->stop_timer_ns = 0;
	if (!at_ns)
		return 0;
	if (now_ns + FLOOR_TURN_NS / 2 >= at_ns) {
		struct task_struct *p = bpf_get_current_task_btf();
		int stops_at_exit = 0;

		/*
		 * In user mode it is stopped on the way out of this interrupt, in the kernel later: there
		 * task work needs no kick. A CPU that goes pushes it away where it is: not out of
		 * returns_to_user(), from which none moves.
		 */
		if (is_active(*cpu) && c->stop_tid && (u32)p->pid == c->stop_tid) {
			bpf_rcu_read_lock();
			stops_at_exit = runs_to_exit(p, task_of(p));
			bpf_rcu_read_unlock();
		}
		if (stops_at_exit && !exits_seen)
			return 0;
		scx_bpf_kick_cpu(*cpu, SCX(scx_kick_flags, SCX_KICK_PREEMPT));
		return 0;
	}
	if (start_timer(timer, at_ns - now_ns, BPF_F_TIMER_CPU_PIN))
		c->stop_timer_ns = at_ns;
	return 0;
}

/*
 * Tasks that were parked and may run again go to their CPUs' queues, in order; those that now wait for
 * another limit, to that one's: its timer will look for them there. Of those that stand behind others in
 * returns_to_user() one goes first, for a turn in which it leaves it: then another CPU may take it.
 */
static __noinline int release_parked(u32 slot)
{
	u64 now_j = bpf_jiffies64();
	struct task_struct *p;
	bool spread = false;

	bpf_for_each(scx_dsq, p, PARK_QUEUES + slot, 0)
	{
		struct task_state *t = task_of(p);
		u32 cpu = cpu_for(p);
		u32 by;

		if (!t)
			continue;
		if (is_overdue(p, t, now_j) || is_dying(p)) {
			if (lift(BPF_FOR_EACH_ITER, p, t))
				scx_bpf_kick_cpu(cpu, SCX(scx_kick_flags, SCX_KICK_IDLE));
			continue;
		}
		by = throttled_by(t->group, cpu);
		if (by) {
			if (by != slot)
				scx_move(BPF_FOR_EACH_ITER, p, PARK_QUEUES + by);
			continue;
		}
		if (!spread && t->at_exit && !exits_seen && scx_bpf_dsq_nr_queued(cpu) > 0) {
			spread = lift(BPF_FOR_EACH_ITER, p, t);
			continue;
		}
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
	struct limit *l = limit_at(slot);
	u64 now_ns = bpf_ktime_get_ns();
	int i;

	if (!l)
		return 0;
	for_each(i, MAX_CPUS)
	{
		struct policy_bw_queue *q;
		bool empty, stays = true, paid = false;
		u32 first;

		bpf_spin_lock(&l->lock);
		first = l->first_waiting;
		empty = first == l->end_waiting;
		bpf_spin_unlock(&l->lock);
		if (empty)
			break;
		q = queue_of(slot, l->waiting[first & (MAX_CPUS - 1)]);
		if (!q)
			break;
		bpf_spin_lock(&l->lock);
		/* The list may have been emptied in between: the limit was written. */
		if (l->first_waiting == first && first != l->end_waiting) {
			/* Such a write lets go also of a queue that has only just come to stand here. */
			paid = q->throttled && policy_bw_grant(&l->pool, q);
			stays = q->throttled && !paid;
			if (paid)
				policy_bw_unthrottle(&l->pool, q, now_ns);
			if (!stays)
				l->first_waiting++;
		}
		bpf_spin_unlock(&l->lock);
		if (stays)
			break;
		if (paid)
			__sync_fetch_and_add(&throttled_queues, -1);
	}
	return 0;
}

static int limit_timer_fired(void *map, u32 *key, struct timer *timer)
{
	u32 slot = *key;
	struct limit *l = limit_at(slot);
	u64 now_ns = bpf_ktime_get_ns(), at_ns;
	bool pay = false;

	if (!l)
		return 0;
	bpf_spin_lock(&l->lock);
	l->timer_ns = 0;
	if (l->pool.slack_started && l->pool.slack_at_ns <= now_ns)
		pay = policy_bw_slack(&l->pool, bandwidth_slice_ns, now_ns);
	if (l->pool.period_active && policy_bw_period(&l->pool, now_ns) == POLICY_BW_DISTRIBUTE)
		pay = true;
	bpf_spin_unlock(&l->lock);
	if (pay)
		pay_waiting(slot);
	/* Also what was parked just as its group was released. */
	bpf_rcu_read_lock();
	release_parked(slot);
	bpf_rcu_read_unlock();
	bpf_spin_lock(&l->lock);
	at_ns = next_timer(l);
	l->timer_ns = at_ns;
	bpf_spin_unlock(&l->lock);
	if (!at_ns && scx_bpf_dsq_nr_queued(PARK_QUEUES + slot) > 0)
		at_ns = now_ns + POLICY_BW_SLACK_NS;
	if (!at_ns)
		__sync_val_compare_and_swap(&l->state, LIMIT_LEAVING, LIMIT_FREE);
	if (at_ns)
		arm_limit(slot, at_ns);
	return 0;
}

/* Tasks are parked where the kernel did not start the timer that releases them: it is tried again. */
static __noinline int rearm_limits(void)
{
	u64 now_ns = bpf_ktime_get_ns();
	int i;

	for_each(i, last_limit)
	{
		struct limit *l = limit_at(i + 1);

		if (l && !l->timer_ns && scx_bpf_dsq_nr_queued(PARK_QUEUES + i + 1) > 0)
			arm_limit(i + 1, now_ns);
	}
	return 0;
}

/* The limit in this slot is from now on as written, if it is still this cgroup's; the shared one has none. */
static __noinline int set_limits(u32 slot, u64 cgroup_id, u64 period_us, u64 quota_us, u64 burst_us)
{
	u64 quota_ns = quota_us == ~0ull ? POLICY_BW_NO_QUOTA : quota_us * 1000;
	u64 period_ns = period_us * 1000, burst_ns = burst_us * 1000, at_ns;
	struct limit *l = limit_at(slot);
	u64 now_ns = bpf_ktime_get_ns();
	bool limited = quota_ns != POLICY_BW_NO_QUOTA, was, held;
	int i;

	/* The kernel has checked them, by the same rules. */
	if (!l || policy_bw_check(quota_ns, period_ns, burst_ns))
		return 0;
	bpf_spin_lock(&l->lock);
	was = l->limited;
	held = l->cgroup_id == cgroup_id;
	if (held) {
		l->limited = limited;
		policy_bw_set(&l->pool, quota_ns, period_ns, burst_ns, now_ns);
		l->first_waiting = l->end_waiting;
	}
	bpf_spin_unlock(&l->lock);
	if (!held)
		return 0;
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
		bpf_spin_lock(&l->lock);
		q->enabled = limited;
		q->remaining_ns = 0;
		if (q->throttled) {
			policy_bw_unthrottle(&l->pool, q, now_ns);
			released = true;
		}
		bpf_spin_unlock(&l->lock);
		if (released)
			__sync_fetch_and_add(&throttled_queues, -1);
	}
	release_parked(slot);
	bpf_spin_lock(&l->lock);
	at_ns = next_timer(l);
	l->timer_ns = at_ns;
	bpf_spin_unlock(&l->lock);
	if (at_ns)
		arm_limit(slot, at_ns);
	return 0;
}

/* A slot for the limit of this group, 0 if there is none. */
static __noinline u32 take_limit(u32 group)
{
	struct group *g = group_of(group);
	u32 was;
	int i;

	if (!g)
		return 0;
	for_each(i, park_queues)
	{
		u32 slot = i + 1;
		struct limit *l = limit_at(slot);

		if (!l)
			break;
		/* What the group has just given back it may have again at once. */
		was = l->state == LIMIT_LEAVING && l->cgroup_id == g->cgroup_id ? LIMIT_LEAVING : LIMIT_FREE;
		if (__sync_val_compare_and_swap(&l->state, was, LIMIT_HELD) != was)
			continue;
		bpf_spin_lock(&l->lock);
		if (was == LIMIT_FREE)
			__builtin_memset(&l->pool, 0, sizeof(l->pool));
		l->cgroup_id = g->cgroup_id;
		bpf_spin_unlock(&l->lock);
		l->above = g->parent;
		if (slot > last_limit)
			last_limit = slot;
		/* Of two writes at a time one is first. */
		was = __sync_val_compare_and_swap(&g->limit, 0, slot);
		if (was)
			l->state = LIMIT_FREE;
		return was ? was : slot;
	}
	return 0;
}

/* The group has no limit of its own any more. */
static __noinline int drop_limit(u32 group)
{
	struct group *g = group_of(group);
	struct limit *l;
	u32 slot;

	if (!g)
		return 0;
	slot = g->limit;
	l = slot ? limit_at(slot) : NULL;
	if (!l || __sync_val_compare_and_swap(&g->limit, slot, 0) != slot)
		return 0;
	__sync_fetch_and_add(&limits_generation, 1);
	set_limits(slot, g->cgroup_id, POLICY_BW_MAX_PERIOD_NS / 1000, ~0ull, 0);
	l->state = LIMIT_LEAVING;
	/* Who took it for the nearest limit a moment ago may still park a task there. */
	arm_limit(slot, bpf_ktime_get_ns() + POLICY_BW_SLACK_NS);
	return 0;
}

/* Its own limit has no slot: those above it hold, or the shared one. The loader says so. */
static __noinline int refuse_limit(struct group_number *of, u64 cgroup_id, u64 period_us, u64 quota_us)
{
	struct limit *shared = limit_at(SHARED_LIMIT);
	struct group *g = of ? group_of(of->group) : NULL;

	if (!of || !shared)
		return 0;
	if (!__sync_val_compare_and_swap(&of->refused, 0, 1)) {
		__sync_fetch_and_add(&limits_refused, 1);
		if (g)
			__sync_fetch_and_add(&g->refused, 1);
	}
	refused_ids[refusals % KEPT_REFUSALS] = cgroup_id;
	__sync_fetch_and_add(&refusals, 1);
	if (!shared->limited ||
	    quota_us * shared->pool.period_ns < shared->pool.quota_ns / 1000 * (period_us * 1000))
		set_limits(SHARED_LIMIT, 0, period_us, quota_us, 0);
	__sync_fetch_and_add(&limits_generation, 1);
	return 0;
}

static __noinline int forget_refusal(struct group_number *of)
{
	struct group *g = of && of->refused ? group_of(of->group) : NULL;

	if (!g || !__sync_val_compare_and_swap(&of->refused, 1, 0))
		return 0;
	__sync_fetch_and_add(&g->refused, -1);
	__sync_fetch_and_add(&limits_generation, 1);
	if (__sync_fetch_and_add(&limits_refused, -1) == 1)
		set_limits(SHARED_LIMIT, 0, POLICY_BW_MAX_PERIOD_NS / 1000, ~0ull, 0);
	return 0;
}

/* cpu.max or cpu.max.burst is written, or a group with a limit appears. */
static __noinline int write_limit(struct group_number *of, u64 cgroup_id, u64 period_us, u64 quota_us,
				  u64 burst_us)
{
	struct group *g = of ? group_of(of->group) : NULL;
	bool own = g && of->group && g->cgroup_id == cgroup_id;
	u32 slot;

	if (!of)
		return 0;
	if (quota_us == ~0ull) {
		if (own)
			drop_limit(of->group);
		forget_refusal(of);
		return 0;
	}
	slot = own && g ? g->limit : 0;
	if (own && !slot)
		slot = take_limit(of->group);
	if (!slot || !g) {
		refuse_limit(of, cgroup_id, period_us, quota_us);
		return 0;
	}
	forget_refusal(of);
	set_limits(slot, cgroup_id, period_us, quota_us, burst_us);
	__sync_fetch_and_add(&limits_generation, 1);
	/* Another write has taken the limit away meanwhile: that one was later. */
	if (g->limit != slot)
		set_limits(slot, cgroup_id, period_us, ~0ull, 0);
	return 0;
}

#endif
