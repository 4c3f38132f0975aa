/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is kept of idle CPUs: the bits that searches read, how long a CPU is idle on
 * average, whether a cache has an idle core; and by a timer per cache how far its
 * searches may go (SIS_UTIL), which CPU has the most weight, and which bits went astray.
 */
#ifndef REVEILLE_SCX_IDLE_H
#define REVEILLE_SCX_IDLE_H

#include "queue.h"

/* rq->max_idle_balance_cost as it is without balancing: the migration cost. */
#define MAX_IDLE_BALANCE_COST_NS 500000ull
/* The kernel refreshes the scan width every so many ms per CPU of the cache; in these bounds. */
#define REFRESH_MIN_NS 4000000ull
#define REFRESH_MAX_NS 32000000ull
#define REFRESH_IDLE_NS 100000000ull

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_LLCS);
	__type(key, u32);
	__type(value, struct timer);
} llc_timers SEC(".maps");

static __always_inline bool core_is_idle(u32 cpu)
{
	const volatile struct cpu_place *place = place_of(cpu);
	struct llc_state *l = llc_of(place->llc);

	for (u32 k = 0; k < POLICY_SMT_MAX && k < place->smt_width; k++) {
		if (!test_bit(l->idle, place_of(place->smt[k])->position))
			return false;
	}
	return true;
}

/* Wakes an idle CPU for what waits in this queue: it does not look by itself. */
static __always_inline void wake_for(u64 queue, u32 cpu)
{
	if (scx_bpf_dsq_nr_queued(queue) > 0)
		scx_bpf_kick_cpu(cpu, SCX(scx_kick_flags, SCX_KICK_IDLE));
}

/*
 * While a CPU is being switched off or on, 6.18 and 7.0 leave a task in its local queue and let it go idle: with
 * SCX_OPS_ENQ_LAST that is where the last task goes when its slice ends. Nobody else wakes the CPU then.
 */
static __always_inline void becomes_idle(u32 cpu)
{
	struct llc_state *l = llc_of(place_of(cpu)->llc);
	struct cpu_state *c = cpu_of(cpu);
	u32 at = place_of(cpu)->position;

	c->idle_since_ns = scx_now();
	settle_left(c);
	if (!c->online) {
		wake_for(local_queue(cpu), cpu);
		return;
	}
	set_bit(l->idle, at);
	if (smt_active && !l->has_idle_cores && core_is_idle(cpu))
		l->has_idle_cores = 1;
	/* A task that came to its queue meanwhile sees the bit, or is seen here. */
	wake_for(cpu, cpu);
}

static __always_inline void ends_idle(u32 cpu)
{
	struct llc_state *l = llc_of(place_of(cpu)->llc);
	struct cpu_state *c = cpu_of(cpu);
	u64 now_ns = scx_now();

	if (test_bit(l->idle, place_of(cpu)->position))
		take_bit(l->idle, place_of(cpu)->position);
	if (c->idle_since_ns && now_ns > c->idle_since_ns)
		policy_idle_ended(&c->scan, now_ns - c->idle_since_ns, MAX_IDLE_BALANCE_COST_NS,
				  bpf_jiffies64());
	c->idle_since_ns = 0;
}

static __always_inline bool runs_idle_task(u32 cpu)
{
	const struct rq *rq = bpf_per_cpu_ptr(&runqueues, cpu);

	return rq && (u64)rq->curr == (u64)rq->idle;
}

static __always_inline bool really_idle(u32 cpu)
{
	return !nr_running(cpu) && runs_idle_task(cpu);
}

/* So many of a queue's tasks are weighed; if there are more, the others count as much as these on average. */
#define WEIGHED 64
/* What counts as the weight of a CPU that a higher class keeps from its tasks. */
#define TAKEN_LOAD (1ull << 48)

/* What runs and waits on the CPU, and whether it has the most to give. */
static __noinline int weigh_cpu(u32 cpu, u32 queued, struct llc_state *l)
{
	struct llc_survey *found = &l->survey;
	struct cpu_state *c = cpu_of(cpu);
	u64 weight = 0, gives = 0;
	struct task_struct *p;
	u32 n = 0;

	bpf_for_each(scx_dsq, p, cpu, 0)
	{
		struct task_state *t = task_of(p);
		u64 share = t ? last_share_of(p, t) : weight_of(p);

		weight += share;
		if (!gives && p->nr_cpus_allowed > 1)
			gives = share;
		if (++n >= WEIGHED)
			break;
	}
	if (n && queued > n)
		weight = weight * queued / n;
	if (queued && is_taken(cpu))
		weight = TAKEN_LOAD;
	else if (c->has_curr)
		weight += c->curr_share;
	c->load = weight;
	found->load += weight;
	/* A task that no CPU could take last time makes way for another CPU's. */
	if (gives && weight > found->heaviest && !(l->refused && l->busiest == cpu)) {
		found->heaviest = weight;
		found->gives = gives;
		found->busiest = cpu;
	}
	return 0;
}

/* The cache whose CPUs have the most weight, if it is clearly more than here. */
static __noinline u32 heavier_cache(u32 llc)
{
	u64 most = llc_of(llc)->load * imbalance_pct / 100;
	u32 found = NONE;
	int i;

	for_each(i, n_llcs - 1)
	{
		u32 other = llc_order[llc & (MAX_LLCS - 1)][i & (MAX_LLCS - 1)];

		if (llc_of(other)->busiest_load && llc_of(other)->load > most) {
			most = llc_of(other)->load;
			found = other;
		}
	}
	return found;
}

/* One CPU of the cache, by its position: what the timer finds there. */
static __always_inline void survey_cpu(u32 llc, u32 position, struct llc_survey *found, u64 now_ns)
{
	struct llc_state *l = llc_of(llc);
	u32 cpu = cpu_at(llc, position);
	struct cpu_state *c = cpu_of(cpu);
	u64 since_ns = now_ns - c->folded_ns;
	s32 n;

	if (!c->online)
		return;
	found->online++;
	c->taken = c->has_curr || runs_idle_task(cpu) ? 0 : c->taken + 1;
	if (really_idle(cpu)) {
		found->idle++;
		/* A claim that nothing came of, or a time when nobody told of idle CPUs. */
		if (!test_bit(l->idle, position) && c->idle_seen++ > 0)
			set_bit(l->idle, position);
		found->sum_util += decayed(c->util_avg, since_ns);
	} else {
		c->idle_seen = 0;
		found->sum_util += moved_towards(c->util_avg, POLICY_CAPACITY_SCALE, since_ns);
	}
	n = scx_bpf_dsq_nr_queued(cpu);
	weigh_cpu(cpu, n > 0 ? n : 0, l);
	if (n <= 0)
		return;
	found->waiting++;
	/* A thief that was too early may have said that there is nothing. */
	if (!test_bit(l->queued, position))
		set_bit(l->queued, position);
	/* One that waits on an idle CPU was overlooked. */
	if (runs_idle_task(cpu))
		scx_bpf_kick_cpu(cpu, SCX(scx_kick_flags, SCX_KICK_IDLE));
}

/*
 * What waits in the queue of a CPU that goes is put right before it: it may be the thread that RCU
 * waits for. Not so of a CPU that stays: there the kernel would give each of them a whole turn before any
 * that is overdue.
 */
static __always_inline void rescue(u32 cpu)
{
	if (runs_idle_task(cpu))
		wake_for(local_queue(cpu), cpu);
	if (!is_active(cpu) && scx_bpf_dsq_nr_queued(cpu) > 0)
		send_home(cpu, cpu);
}

/* Every so often a look for tasks of the CPU that have waited too long; in its shards, too. */
static __always_inline void look_after(u32 llc, u32 position, u64 now_j)
{
	u32 cpu = cpu_at(llc, position);
	struct cpu_state *c = cpu_of(cpu);
	int i;

	if (now_j - c->looked_j < floor_ticks / LOOKS_PER_FLOOR)
		return;
	c->looked_j = now_j;
	lift_overdue(cpu);
	if (position)
		return;
	if (!llc)
		rearm_limits();
	if (!shared_used)
		return;
	for_each(i, llc_place_of(llc)->n_shards)
	{
		lift_overdue(shard_queue(llc, i));
	}
}

/* The kernel asks for one that could be written. */
static char lost_timer[] = "the kernel did not start a cache's timer";

static int llc_timer_fired(void *map, u32 *key, struct timer *timer)
{
	u32 llc = *key, weight = llc_place_of(llc)->weight;
	struct llc_state *l = llc_of(llc);
	struct llc_survey *found = &l->survey;
	u64 now_ns = scx_now(), now_j = bpf_jiffies64(), next_ns;
	int i;

	__builtin_memset(found, 0, sizeof(*found));
	bpf_rcu_read_lock();
	for_each(i, weight)
	{
		survey_cpu(llc, i, found, now_ns);
	}
	for_each(i, weight)
	{
		rescue(cpu_at(llc, i));
		look_after(llc, i, now_j);
	}
	bpf_rcu_read_unlock();
	if (weight)
		l->nr_idle_scan = policy_nr_idle_scan(found->sum_util, weight, imbalance_pct);
	l->busiest = found->busiest;
	l->busiest_gives = found->gives;
	l->refused = 0;
	l->surveys++;
	l->busiest_load = found->heaviest;
	l->load = found->online ? found->load / found->online : 0;
	l->far = heavier_cache(llc);
	if (found->idle && (found->waiting || l->far != NONE))
		call_for_help(llc, &everywhere);
	next_ns = weight * 1000000ull;
	if (next_ns < REFRESH_MIN_NS)
		next_ns = REFRESH_MIN_NS;
	if (next_ns > REFRESH_MAX_NS)
		next_ns = REFRESH_MAX_NS;
	if (found->idle == weight)
		next_ns = REFRESH_IDLE_NS;
	/* Without this timer waiting tasks are not found: load the scheduler again. */
	if (!start_timer(timer, next_ns, 0))
		scx_leave(SCX(scx_exit_code, SCX_ECODE_ACT_RESTART), lost_timer);
	return 0;
}

#endif
