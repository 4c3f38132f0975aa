/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The token arithmetic of CPU bandwidth control: how a group's quota is drawn,
 * handed back and refilled, and which settings are accepted. Lists, locks, timers
 * and who is thrown off a CPU belong to the world that calls this. Rules of v5.4
 * to v6.12; burst of v5.14 (commit f4183717b370 and its predecessors).
 */
#ifndef REVEILLE_POLICY_BANDWIDTH_H
#define REVEILLE_POLICY_BANDWIDTH_H

#include "types.h"

/* A quota that limits nothing. */
#define POLICY_BW_NO_QUOTA (~0ull)
/* A queue keeps this much when its last task leaves (min_cfs_rq_runtime). */
#define POLICY_BW_KEPT_NS 1000000ull
/* What queues hand back is given out after this time (cfs_bandwidth_slack_period). */
#define POLICY_BW_SLACK_NS 5000000ull
/* Not worth giving out so soon before a refill (min_bandwidth_expiration). */
#define POLICY_BW_REFILL_SOON_NS 2000000ull
/* A period timer that finds itself late this often in one call is too slow. */
#define POLICY_BW_LATE_PASSES 3u

/* Limits of the settings: 1 ms, 1 s, and 44 bits of microseconds. */
#define POLICY_BW_MIN_NS 1000000ull
#define POLICY_BW_MAX_PERIOD_NS 1000000000ull
#define POLICY_BW_MAX_NS (((1ull << 44) - 1) * 1000)
/* Quota per period as a fixed-point number with this many bits below one CPU. */
#define POLICY_BW_RATIO_SHIFT 20

/* A task group: its settings and what is left of its quota. */
struct policy_bw_pool {
	u64 quota_ns; /* POLICY_BW_NO_QUOTA for none */
	u64 period_ns;
	u64 burst_ns;
	u64 runtime_ns;	     /* may be drawn now */
	u64 runtime_snap_ns; /* what it was after the last refill */
	u64 refill_at_ns;    /* expiry of the period timer: past, if it is not active */
	u64 slack_at_ns;     /* expiry of the slack timer, while it is started */
	u64 nr_periods;
	u64 nr_throttled;
	u64 nr_bursts;
	u64 throttled_ns;
	u64 burst_used_ns;
	u32 throttled_queues; /* length of the world's list */
	u32 idle;	      /* nothing was drawn or throttled since the last period */
	u32 period_active;
	u32 slack_started;
};

/* A group's queue on one CPU. */
struct policy_bw_queue {
	s64 remaining_ns; /* negative: overrun, to be paid back */
	u64 throttled_at_ns;
	u32 enabled; /* its own group has a quota */
	u32 throttled;
};

/* Which rule a setting breaks, in the order in which the kernel looks. */
enum policy_bw_error {
	POLICY_BW_ACCEPTED,
	POLICY_BW_QUOTA_SHORT,
	POLICY_BW_PERIOD_SHORT,
	POLICY_BW_PERIOD_LONG,
	POLICY_BW_QUOTA_LONG,
	POLICY_BW_BURST_ABOVE_QUOTA,
	POLICY_BW_BURST_LONG,
	POLICY_BW_ABOVE_PARENT,
};

/* What a call of the period timer is to do next. */
enum policy_bw_step {
	POLICY_BW_NOT_DUE,    /* no period has ended since */
	POLICY_BW_STOPPED,    /* the timer is no longer active */
	POLICY_BW_RESTED,     /* refilled; nobody waits */
	POLICY_BW_DISTRIBUTE, /* refilled; throttled queues wait for it */
};

/* May a group of its own (not the root group, which has no limits) be set to this? */
POLICY_INLINE u32 policy_bw_check(u64 quota_ns, u64 period_ns, u64 burst_ns)
{
	if (quota_ns < POLICY_BW_MIN_NS)
		return POLICY_BW_QUOTA_SHORT;
	if (period_ns < POLICY_BW_MIN_NS)
		return POLICY_BW_PERIOD_SHORT;
	if (period_ns > POLICY_BW_MAX_PERIOD_NS)
		return POLICY_BW_PERIOD_LONG;
	/* Without a quota any burst is accepted, and kept. */
	if (quota_ns == POLICY_BW_NO_QUOTA)
		return POLICY_BW_ACCEPTED;
	if (quota_ns > POLICY_BW_MAX_NS)
		return POLICY_BW_QUOTA_LONG;
	if (burst_ns > quota_ns)
		return POLICY_BW_BURST_ABOVE_QUOTA;
	if (burst_ns + quota_ns > POLICY_BW_MAX_NS)
		return POLICY_BW_BURST_LONG;
	return POLICY_BW_ACCEPTED;
}

/* CPUs that quota and period amount to; microseconds, for 44 bits and 20 fit in 64. */
POLICY_INLINE u64 policy_bw_ratio(u64 quota_ns, u64 period_ns)
{
	u64 period_us = period_ns / 1000;

	if (quota_ns == POLICY_BW_NO_QUOTA || !period_us)
		return POLICY_BW_NO_QUOTA;
	return ((quota_ns / 1000) << POLICY_BW_RATIO_SHIFT) / period_us;
}

/* cgroup v1 refuses a child with more than its nearest limited ancestor has. */
POLICY_INLINE u32 policy_bw_check_child(u64 ratio, u64 parent_ratio)
{
	if (ratio != POLICY_BW_NO_QUOTA && ratio > parent_ratio)
		return POLICY_BW_ABOVE_PARENT;
	return POLICY_BW_ACCEPTED;
}

/* What a child can have at most: cgroup v2 takes the lesser silently. */
POLICY_INLINE u64 policy_bw_effective(u64 ratio, u64 parent_ratio)
{
	return ratio < parent_ratio ? ratio : parent_ratio;
}

/* hrtimer_forward(): moves the expiry past now by whole periods, and counts them. */
POLICY_INLINE u64 policy_bw_forward(struct policy_bw_pool *b, u64 now_ns)
{
	u64 periods;

	if (now_ns < b->refill_at_ns || !b->period_ns)
		return 0;
	periods = (now_ns - b->refill_at_ns) / b->period_ns + 1;
	b->refill_at_ns += periods * b->period_ns;
	return periods;
}

/* The period timer starts on its old grid; starting does not refill. */
POLICY_INLINE void policy_bw_start(struct policy_bw_pool *b, u64 now_ns)
{
	if (b->period_active)
		return;
	b->period_active = 1;
	policy_bw_forward(b, now_ns);
}

/*
 * Adds a quota. What was drawn beyond one quota since the last refill is counted
 * as burst; what exceeds quota + burst is lost.
 */
POLICY_INLINE void policy_bw_refill(struct policy_bw_pool *b)
{
	u64 cap;

	if (b->quota_ns == POLICY_BW_NO_QUOTA)
		return;
	cap = b->quota_ns + b->burst_ns;
	b->runtime_ns += b->quota_ns;
	if (b->runtime_snap_ns > b->runtime_ns) {
		b->burst_used_ns += b->runtime_snap_ns - b->runtime_ns;
		b->nr_bursts++;
	}
	if (b->runtime_ns > cap)
		b->runtime_ns = cap;
	b->runtime_snap_ns = b->runtime_ns;
}

/*
 * Settings that policy_bw_check() accepts take effect. Each write refills one quota
 * at once, even of the same values; the world then resets every queue.
 */
POLICY_INLINE void policy_bw_set(struct policy_bw_pool *b, u64 quota_ns, u64 period_ns,
				 u64 burst_ns, u64 now_ns)
{
	b->quota_ns = quota_ns;
	b->period_ns = period_ns;
	b->burst_ns = burst_ns;
	policy_bw_refill(b);
	if (quota_ns != POLICY_BW_NO_QUOTA)
		policy_bw_start(b, now_ns);
}

/* Draws from the pool so that the queue has target_ns again. Does it have any now? */
POLICY_INLINE bool policy_bw_assign(struct policy_bw_pool *b, struct policy_bw_queue *q,
				    u64 target_ns, u64 now_ns)
{
	u64 amount;

	if (q->remaining_ns >= (s64)target_ns)
		return q->remaining_ns > 0;
	amount = (u64)((s64)target_ns - q->remaining_ns);
	if (b->quota_ns != POLICY_BW_NO_QUOTA) {
		policy_bw_start(b, now_ns);
		if (amount > b->runtime_ns)
			amount = b->runtime_ns;
		if (b->runtime_ns > 0)
			b->idle = 0;
		b->runtime_ns -= amount;
	}
	q->remaining_ns += (s64)amount;
	return q->remaining_ns > 0;
}

/*
 * update_curr() of an enabled queue: it has run for delta_ns. False: it is out of
 * runtime, and whoever runs there must be rescheduled.
 */
POLICY_INLINE bool policy_bw_account(struct policy_bw_pool *b, struct policy_bw_queue *q,
				     u64 delta_ns, u64 slice_ns, u64 now_ns)
{
	q->remaining_ns -= (s64)delta_ns;
	if (q->remaining_ns > 0 || q->throttled)
		return true;
	return policy_bw_assign(b, q, slice_ns, now_ns);
}

/*
 * When a task of the queue is put back or blocks, and at the first enqueue: the queue
 * is throttled from now on if the pool has nothing for it. True: the world appends it
 * to its list and takes its tasks away.
 */
POLICY_INLINE bool policy_bw_throttle(struct policy_bw_pool *b, struct policy_bw_queue *q,
				      u64 now_ns)
{
	if (!q->enabled || q->throttled || q->remaining_ns > 0)
		return false;
	if (policy_bw_assign(b, q, 1, now_ns))
		return false;
	q->throttled = 1;
	q->throttled_at_ns = now_ns;
	b->throttled_queues++;
	return true;
}

/* The queue may run again; the world takes it off its list first. */
POLICY_INLINE void policy_bw_unthrottle(struct policy_bw_pool *b, struct policy_bw_queue *q,
					u64 now_ns)
{
	q->throttled = 0;
	b->throttled_ns += now_ns - q->throttled_at_ns;
	b->throttled_queues--;
}

/* The queue at the head of the list: its debt is paid, and 1 ns. May it run again? */
POLICY_INLINE bool policy_bw_grant(struct policy_bw_pool *b, struct policy_bw_queue *q)
{
	u64 amount = (u64)-q->remaining_ns + 1;

	if (amount > b->runtime_ns)
		amount = b->runtime_ns;
	b->runtime_ns -= amount;
	q->remaining_ns += (s64)amount;
	return q->remaining_ns > 0;
}

/* Is a refill due within within_ns? */
POLICY_INLINE bool policy_bw_refill_within(const struct policy_bw_pool *b, u64 within_ns,
					   u64 now_ns)
{
	return b->refill_at_ns < now_ns + within_ns;
}

/* The last task has left an enabled queue: all but 1 ms goes back to the pool. */
POLICY_INLINE void policy_bw_return(struct policy_bw_pool *b, struct policy_bw_queue *q,
				    u64 slice_ns, u64 now_ns)
{
	s64 back = q->remaining_ns - (s64)POLICY_BW_KEPT_NS;

	if (back <= 0)
		return;
	q->remaining_ns -= back;
	if (b->quota_ns == POLICY_BW_NO_QUOTA)
		return;
	b->runtime_ns += (u64)back;
	if (b->runtime_ns <= slice_ns || !b->throttled_queues || b->slack_started ||
	    policy_bw_refill_within(b, POLICY_BW_SLACK_NS + POLICY_BW_REFILL_SOON_NS, now_ns))
		return;
	b->slack_started = 1;
	b->slack_at_ns = now_ns + POLICY_BW_SLACK_NS;
}

/* The slack timer has expired. True: the world distributes what is in the pool. */
POLICY_INLINE bool policy_bw_slack(struct policy_bw_pool *b, u64 slice_ns, u64 now_ns)
{
	b->slack_started = 0;
	return !policy_bw_refill_within(b, POLICY_BW_REFILL_SOON_NS, now_ns) &&
	       b->quota_ns != POLICY_BW_NO_QUOTA && b->runtime_ns > slice_ns;
}

/*
 * One pass of the period timer's loop: counts the periods that have ended, refills
 * once however many they are, and says what follows.
 */
POLICY_INLINE u32 policy_bw_period(struct policy_bw_pool *b, u64 now_ns)
{
	u64 periods = policy_bw_forward(b, now_ns);

	if (!periods)
		return POLICY_BW_NOT_DUE;
	if (b->quota_ns == POLICY_BW_NO_QUOTA) {
		b->period_active = 0;
		return POLICY_BW_STOPPED;
	}
	b->nr_periods += periods;
	policy_bw_refill(b);
	if (b->throttled_queues) {
		b->nr_throttled += periods;
		b->idle = 0;
		return POLICY_BW_DISTRIBUTE;
	}
	if (b->idle) {
		b->period_active = 0;
		return POLICY_BW_STOPPED;
	}
	b->idle = 1;
	return POLICY_BW_RESTED;
}

/*
 * More than POLICY_BW_LATE_PASSES passes in one call: the handler cannot keep up, and
 * everything doubles, burst too (Odin Ugedal, 2021), so that the ratio stays. Not
 * beyond a period of 1 s.
 */
POLICY_INLINE bool policy_bw_stretch(struct policy_bw_pool *b)
{
	if (2 * b->period_ns >= POLICY_BW_MAX_PERIOD_NS)
		return false;
	b->period_ns *= 2;
	b->quota_ns *= 2;
	b->burst_ns *= 2;
	return true;
}

#endif
