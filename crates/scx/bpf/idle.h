/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is kept of idle CPUs: the bits that searches read, how long a CPU is idle on
 * average, whether a cache has an idle core; and by a timer per cache how far its
 * searches may go (SIS_UTIL), whose queue is the longest, and which bits went astray.
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
	__type(value, struct group_timer);
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

static __always_inline void becomes_idle(u32 cpu)
{
	struct llc_state *l = llc_of(place_of(cpu)->llc);
	struct cpu_state *c = cpu_of(cpu);
	u32 at = place_of(cpu)->position;

	c->idle_since_ns = scx_now();
	if (!c->online)
		return;
	set_bit(l->idle, at);
	if (smt_active && !l->has_idle_cores && core_is_idle(cpu))
		l->has_idle_cores = 1;
	/* A task that came to its queue meanwhile sees the bit, or is seen here. */
	if (scx_bpf_dsq_nr_queued(cpu) > 0)
		scx_bpf_kick_cpu(cpu, SCX(scx_kick_flags, SCX_KICK_IDLE));
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

static __always_inline bool really_idle(u32 cpu)
{
	const struct rq *rq = bpf_per_cpu_ptr(&runqueues, cpu);

	return rq && !rq->nr_running && (u64)rq->curr == (u64)rq->idle;
}

static int llc_timer_fired(void *map, u32 *key, struct group_timer *timer)
{
	u32 llc = *key, weight = llc_place_of(llc)->weight, busiest = 0, longest = 0, idle = 0;
	struct llc_state *l = llc_of(llc);
	u64 now_ns = scx_now(), sum_util = 0, next_ns;
	bool waiting = false;
	int i;

	for_each(i, weight)
	{
		u32 cpu = cpu_at(llc, i);
		struct cpu_state *c = cpu_of(cpu);
		u64 since_ns = now_ns - c->folded_ns;
		s32 n;

		if (!c->online)
			continue;
		if (really_idle(cpu)) {
			idle++;
			/* A claim that nothing came of, or a time when nobody told of idle CPUs. */
			if (!test_bit(l->idle, i) && c->idle_seen++ > 0)
				set_bit(l->idle, i);
			sum_util += decayed(c->util_avg, since_ns);
		} else {
			c->idle_seen = 0;
			sum_util += moved_towards(c->util_avg, POLICY_CAPACITY_SCALE, since_ns);
		}
		n = scx_bpf_dsq_nr_queued(cpu);
		if (n > 0) {
			waiting = true;
			/* A thief that was too early may have said that there is nothing. */
			if (!test_bit(l->queued, i))
				set_bit(l->queued, i);
			/* One that waits on an idle CPU was overlooked. */
			if (test_bit(l->idle, i))
				scx_bpf_kick_cpu(cpu, SCX(scx_kick_flags, SCX_KICK_IDLE));
		}
		if (n > (s32)longest) {
			longest = n;
			busiest = cpu;
		}
	}
	if (weight)
		l->nr_idle_scan = policy_nr_idle_scan(sum_util, weight, imbalance_pct);
	l->busiest = busiest;
	l->busiest_queued = longest;
	if (waiting && idle)
		call_for_help(llc);
	next_ns = weight * 1000000ull;
	if (next_ns < REFRESH_MIN_NS)
		next_ns = REFRESH_MIN_NS;
	if (next_ns > REFRESH_MAX_NS)
		next_ns = REFRESH_MAX_NS;
	if (idle == weight)
		next_ns = REFRESH_IDLE_NS;
	bpf_timer_start(&timer->timer, next_ns, 0);
	return 0;
}

#endif
