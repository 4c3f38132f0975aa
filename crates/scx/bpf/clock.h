/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Virtual time: who runs next on a CPU. Each CPU's queue has a clock, which is where
 * the last task stood that was put on the CPU; a task that moves keeps its distance to
 * it; one that has slept comes back with a bounded credit. CPU time is charged by
 * weight: the task's own, and in a group its share of the group's.
 */
#ifndef REVEILLE_SCX_CLOCK_H
#define REVEILLE_SCX_CLOCK_H

#include "group.h"

static __always_inline bool before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

/* To the clock of this CPU, with the distance that it had to the other's. */
static __always_inline void to_clock_of(struct task_state *t, u32 cpu)
{
	if (t->clock_cpu == cpu)
		return;
	t->vtime += cpu_of(cpu)->clock - cpu_of(t->clock_cpu)->clock;
	t->clock_cpu = cpu;
}

/* GENTLE_FAIR_SLEEPERS halves the credit. */
static __always_inline void limit_credit(struct task_state *t, u32 cpu)
{
	u64 credit_ns = features & POLICY_GENTLE_FAIR_SLEEPERS ? sleeper_credit_ns / 2 :
								 sleeper_credit_ns;
	u64 least = cpu_of(cpu)->clock - credit_ns;

	if (before(t->vtime, least))
		t->vtime = least;
}

/* The virtual time that so much CPU time costs at this weight. */
static __always_inline u64 charged(u64 ran_ns, u64 weight)
{
	if (weight == WEIGHT_DEFAULT)
		return ran_ns;
	return weight ? ran_ns * WEIGHT_DEFAULT / weight : ran_ns;
}

/* Recomputed once per jiffy: every level of groups takes a division. */
static __always_inline u64 share_of(struct task_struct *p, struct task_state *t)
{
	u64 now_j;

	if (!t->group)
		return weight_of(p);
	now_j = bpf_jiffies64();
	if (t->share_j != now_j) {
		t->share_j = now_j;
		t->share = weight_in_group(t, weight_of(p));
	}
	return t->share;
}

/* As it was charged last. */
static __always_inline u64 last_share_of(const struct task_struct *p, const struct task_state *t)
{
	return t->group && t->share ? t->share : weight_of(p);
}

/* What the task has run since it was put on the CPU, or was last asked, is charged. */
static __always_inline u64 charge(struct task_struct *p, struct task_state *t)
{
	u64 ran_ns = p->se.sum_exec_runtime - t->exec_start_ns;

	t->exec_start_ns += ran_ns;
	t->policy.sum_exec_ns = t->exec_start_ns;
	t->vtime += charged(ran_ns, share_of(p, t));
	return ran_ns;
}

/*
 * It is on the CPU from here on: the queue's clock is where it stands. Not where it goes on after a
 * change to it or a task of a higher class: what a light task has run meanwhile puts it far ahead
 * of those that wait, and the clock would leap over them.
 */
static __always_inline void set_clock(struct cpu_state *c, struct task_state *t, u64 now_ns)
{
	if (!t->mid_turn && before(c->clock, t->vtime))
		c->clock = t->vtime;
	t->mid_turn = 1;
	c->curr_vtime = t->vtime;
	c->running_since_ns = now_ns;
}

/*
 * Would the kernel's check_preempt_wakeup() throw out the task that runs there? Under EEVDF a turn is protected while its
 * task is not ahead of the queue's average. That is not known here; but with one other that waits, at most a turn ahead,
 * the average is behind it if the wakee is by more than a turn.
 */
static __always_inline bool preempts(const struct task_struct *p, struct task_state *t, u32 cpu)
{
	struct cpu_state *c = cpu_of(cpu);
	u64 curr;

	if (!(features & POLICY_WAKEUP_PREEMPTION) || !c->has_curr || p->policy == SCHED_BATCH ||
	    p->policy == SCHED_IDLE)
		return false;
	curr = c->curr_vtime + (scx_now() - c->running_since_ns);
	if (features & POLICY_EEVDF)
		return before(t->vtime + slice_ns, curr) &&
		       scx_bpf_dsq_nr_queued(cpu) + scx_bpf_dsq_nr_queued(local_queue(cpu)) <= 1;
	return before(t->vtime + wakeup_granularity_ns, curr);
}

#endif
