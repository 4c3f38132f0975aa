/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * select_cpu: where a waking task runs. policy/ decides; here the world is handed to
 * it and the idle CPU that it chose is claimed, atomically: the loser of a race
 * selects again. New tasks, of which policy/ knows nothing, go to the nearest idle CPU, else
 * to the shortest queue.
 */
#ifndef REVEILLE_SCX_SELECT_H
#define REVEILLE_SCX_SELECT_H

#include "choose.h"

/* Claims that may be lost before the wakee goes where it was headed all the same. */
#define CLAIM_TRIES 3

static __always_inline bool is_claimable(u8 rule)
{
	return rule != POLICY_RULE_KTHREAD && rule != POLICY_RULE_SHORT &&
	       rule != POLICY_RULE_TARGET && rule != POLICY_RULE_OWN_BUSY;
}

/* How a CPU was got. */
enum claim { CLAIM_LOST, CLAIM_IDLE, CLAIM_SCHED_IDLE };

/* No other waker finds the CPU idle from now on. A SCHED_IDLE task may not claim a CPU that runs SCHED_IDLE tasks. */
static __always_inline enum claim claim(const struct task_struct *p, u32 cpu)
{
	const volatile struct cpu_place *place = place_of(cpu);
	struct llc_state *l = llc_of(place->llc);

	if (test_bit(l->idle, place->position) && take_bit(l->idle, place->position))
		return CLAIM_IDLE;
	if (p->policy != SCHED_IDLE && test_bit(l->sched_idle, place->position) &&
	    take_bit(l->sched_idle, place->position))
		return CLAIM_SCHED_IDLE;
	return CLAIM_LOST;
}

/* A claimed CPU that nothing came to. Under its runqueue's lock. */
static __always_inline void unclaim(u32 cpu, enum claim how)
{
	struct llc_state *l = llc_of(place_of(cpu)->llc);
	const struct rq *rq = bpf_per_cpu_ptr(&runqueues, cpu);

	if (how == CLAIM_IDLE)
		set_bit(l->idle, place_of(cpu)->position);
	else if (how == CLAIM_SCHED_IDLE && rq && rq->curr->policy == SCHED_IDLE)
		set_bit(l->sched_idle, place_of(cpu)->position);
}

static void see_cpu(struct seen_cpu *s, u32 cpu)
{
	struct cpu_state *c = cpu_of(cpu);

	s->cpu = cpu;
	s->nr_running = nr_running(cpu);
	s->cfs_load = c->load_avg;
	s->has_curr = c->has_curr;
	s->curr = c->curr;
}

static void see_llc(struct seen_llc *s, u32 llc, const struct allowed_set *set)
{
	struct llc_state *l = llc_of(llc);

	s->llc = llc;
	s->nr_idle_scan = l->nr_idle_scan;
	s->has_idle_cores = l->has_idle_cores != 0;
	for (u32 i = 0; i < POLICY_LLC_WORDS; i++) {
		s->idle[i] = l->idle[i];
		s->sched_idle[i] = l->sched_idle[i];
		s->allowed[i] = allowed_word(set, llc, i);
		if (i * 64 >= llc_place_of(llc)->weight)
			s->idle[i] = s->sched_idle[i] = s->allowed[i] = 0;
	}
}

/* Copies what the decision may look at. */
static __noinline void record_before(struct task_state *t, struct policy_task *waker,
				     struct allowed_set *set, struct wakeup *wakeup)
{
	struct decision *d = &decisions[wakeup->this_cpu & (MAX_CPUS - 1)];

	d->features = wakeup->features;
	d->now_j = wakeup->now_j;
	d->this_cpu = wakeup->this_cpu;
	d->flags = wakeup->flags;
	d->has_waker = waker != NULL;
	d->wakee = t->policy;
	if (waker)
		d->waker = *waker;
	d->scan = cpu_of(wakeup->this_cpu)->scan;
	see_cpu(&d->cpus[0], wakeup->this_cpu);
	see_llc(&d->llcs[0], place_of(wakeup->this_cpu)->llc, set);
	/* What is the same is looked at once: it may change in between. */
	if (t->policy.prev_cpu == wakeup->this_cpu)
		d->cpus[1] = d->cpus[0];
	else
		see_cpu(&d->cpus[1], t->policy.prev_cpu);
	if (place_of(t->policy.prev_cpu)->llc == d->llcs[0].llc)
		d->llcs[1] = d->llcs[0];
	else
		see_llc(&d->llcs[1], place_of(t->policy.prev_cpu)->llc, set);
}

static __noinline void record_after(struct task_state *t, struct policy_task *waker,
				    struct wakeup *wakeup, struct policy_pick *pick)
{
	struct decision *d = &decisions[wakeup->this_cpu & (MAX_CPUS - 1)];
	struct world w = { .this_cpu = wakeup->this_cpu, .seen = true };

	d->pick = *pick;
	d->wakee_after = t->policy;
	if (waker)
		d->waker_after = *waker;
	d->scan_after = cpu_of(wakeup->this_cpu)->scan;
	d->idle_cores_after =
		!pick->cleared && world_has_idle_cores(&w, place_of(pick->target)->llc);
	if (bpf_ringbuf_output(&records, d, sizeof(*d), 0))
		COUNT(dropped);
}

#ifdef REVEILLE_POLICY_FILE
/* The file decides (own.h). */
__noinline int choose_own(struct policy_task *p __arg_nonnull, struct policy_task *waker,
			  struct allowed_set *set __arg_nonnull,
			  struct wakeup *wakeup __arg_nonnull,
			  struct policy_pick *pick __arg_nonnull);
#endif

/* One decision, and the search's cost to the averages that SIS_PROP goes by. */
static __always_inline void decide(struct task_state *t, struct policy_task *waker,
				   struct allowed_set *set, struct wakeup *wakeup,
				   struct policy_pick *pick)
{
	struct world w = { .this_cpu = wakeup->this_cpu };
	struct policy_tunables now = { .features = wakeup->features };
	bool timed = policy_scan_by_cost(&now);
	u64 began_ns;

	if (record_decisions)
		record_before(t, waker, set, wakeup);
	__builtin_memset(pick, 0, sizeof(*pick));
#ifdef REVEILLE_POLICY_FILE
	began_ns = timed ? bpf_ktime_get_ns() : 0;
	choose_own(&t->policy, waker, set, wakeup, pick);
#else
	choose_target(&t->policy, waker, set, wakeup, pick);
	began_ns = timed ? bpf_ktime_get_ns() : 0;
	choose_idle(&t->policy, waker, set, wakeup, pick);
#endif
	if (record_decisions)
		record_after(t, waker, wakeup, pick);
	if (timed)
		policy_scan_done(&w, &now, wakeup->this_cpu, pick, bpf_ktime_get_ns() - began_ns);
}

/* Claims an idle CPU of the LLC where the task may run; NONE if there is none. */
static __noinline u32 claim_in_llc(u32 llc, const struct allowed_set *set)
{
	struct llc_state *l = llc_of(llc);

	for (u32 i = 0; i < POLICY_LLC_WORDS; i++) {
		u64 word;
		u32 bit;

		if (i * 64 >= llc_place_of(llc)->weight)
			break;
		word = *(volatile u64 *)word_at(l->idle, i) & allowed_word(set, llc, i);
		if (!word)
			continue;
		bit = i * 64 + policy_lowest_bit(word);
		if (take_bit(l->idle, bit))
			return cpu_at(llc, bit);
	}
	return NONE;
}

/* The CPU of the LLC with the fewest runnable tasks, from `from` on. */
static __noinline u32 shortest_queue(u32 llc, u32 from, const struct allowed_set *set)
{
	u32 weight = llc_place_of(llc)->weight, best = NONE, least = ~0u;
	int i;

	for_each(i, weight)
	{
		u32 at = place_of(from)->position + i, cpu, n;

		cpu = cpu_at(llc, at >= weight ? at - weight : at);
		if (!cpu_of(cpu)->online || !allows(set, cpu))
			continue;
		n = nr_running(cpu);
		if (n < least) {
			least = n;
			best = cpu;
		}
	}
	return best;
}

/* A new task: an idle CPU, the nearest first; else the shortest queue. */
static __always_inline u32 place_new(const struct allowed_set *set, u32 this_cpu, u32 prev,
				     bool *claimed)
{
	u32 home = place_of(this_cpu)->llc, cpu;
	int i;

	*claimed = true;
	cpu = claim_in_llc(home, set);
	if (cpu != NONE)
		return cpu;
	for_each(i, n_llcs - 1)
	{
		cpu = claim_in_llc(llc_order[home & (MAX_LLCS - 1)][i & (MAX_LLCS - 1)], set);
		if (cpu != NONE)
			return cpu;
	}
	*claimed = false;
	cpu = shortest_queue(home, this_cpu, set);
	for_each(i, n_llcs - 1)
	{
		u32 llc = llc_order[home & (MAX_LLCS - 1)][i & (MAX_LLCS - 1)];
		u32 other = shortest_queue(llc, cpu_at(llc, 0), set);

		if (other != NONE && (cpu == NONE || nr_running(other) < nr_running(cpu)))
			cpu = other;
	}
	return cpu == NONE ? prev : cpu;
}

/* Is the task that a per-CPU kernel thread wakes woken by it, or by an interrupt? */
extern const int __preempt_count __ksym __weak;

static __always_inline u32 context_flags(void)
{
	const u32 interrupt_bits = 0x00ffff00; /* softirq, hardirq and NMI counts */
	const int *count;

	if (!bpf_ksym_exists(&__preempt_count))
		return POLICY_WAKE_IN_TASK;
	count = bpf_this_cpu_ptr(&__preempt_count);
	return *count & interrupt_bits ? 0 : POLICY_WAKE_IN_TASK;
}

/* What a wake-up chose; *claimed if the CPU was idle and is now kept for the wakee. */
static __always_inline u32 place_wakee(struct task_struct *p, struct task_state *t, u32 prev,
				       u64 wake_flags, enum claim *claimed)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct task_state *by = task_of(current);
	struct policy_task *waker = by ? &by->policy : NULL;
	struct allowed_set *set = set_of(p, t);
	struct cpu_stats *stats = &cpu_stats[SMP_CPU()];
	struct policy_pick pick;
	u32 recent = t->policy.recent_used_cpu;
	struct wakeup wakeup = {
		.features = features,
		.now_j = bpf_jiffies64(),
		.this_cpu = SMP_CPU(),
	};

	if ((wake_flags & SCX(scx_wake_flags, SCX_WAKE_SYNC)) && !(current->flags & PF_EXITING))
		wakeup.flags |= POLICY_WAKE_SYNC;
	if (waker && (waker->flags & POLICY_TASK_PERCPU_KTHREAD))
		wakeup.flags |= context_flags();
	t->policy.prev_cpu = prev;
	*claimed = CLAIM_LOST;
	for (u32 i = 0; i < CLAIM_TRIES; i++) {
		t->policy.recent_used_cpu = recent;
		decide(t, waker, set, &wakeup, &pick);
		if (!is_claimable(pick.rule))
			break;
		*claimed = claim(p, pick.cpu);
		if (*claimed != CLAIM_LOST || p->policy == SCHED_IDLE)
			break;
		stats->lost_claims++;
	}
	stats->wakeups++;
	stats->rules[pick.rule < N_RULES ? pick.rule : 0]++;
	stats->searches += pick.search;
	stats->searched += pick.searched;
	return pick.cpu;
}

#endif
