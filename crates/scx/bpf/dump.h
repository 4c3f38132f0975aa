/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the kernel's dump of a scheduler that it ends has of this one: a line for each CPU, and one for
 * each task that waits. Jiffies are counted back from the dump.
 */
#ifndef REVEILLE_SCX_DUMP_H
#define REVEILLE_SCX_DUMP_H

#include "idle.h"

/* The kernel asks for formats that could be written. */
static char cpu_line[] = "reveille: online %llu, queued %llu; looked at %llu ago; clock %llu; turn ends in "
			 "%lld ns, by a timer in %lld ns";
static char task_line[] = "reveille: waits %llu, lifted %llu, vtime %lld after the clock; group %llu, "
			  "throttled by %llu; exit pending %llu, at exit %llu, displaced %llu";

#define DUMP(line, values...)                                                              \
	({                                                                                 \
		unsigned long long dumped[] = { values };                                  \
		scx_bpf_dump_bstr((line), dumped, sizeof(dumped));                         \
	})

static __always_inline u64 left(u64 at_ns, u64 now_ns)
{
	return at_ns ? at_ns - now_ns : 0;
}

static __always_inline void dump_cpu(u32 cpu)
{
	struct cpu_state *c = cpu_of(cpu);
	u64 now_ns = bpf_ktime_get_ns();

	DUMP(cpu_line, c->online, scx_bpf_dsq_nr_queued(cpu), bpf_jiffies64() - c->looked_j, c->clock,
	     left(c->stop_at_ns, now_ns), left(c->stop_timer_ns, now_ns));
}

static __always_inline void dump_task(struct task_struct *p, struct task_state *t)
{
	u64 waits_j = t->waits_since_j ? bpf_jiffies64() - t->waits_since_j : 0;

	DUMP(task_line, waits_j, t->lifted, t->vtime - cpu_of(t->clock_cpu)->clock, t->group,
	     has_bandwidth ? throttled_by(t->group, cpu_for(p)) : 0, t->exit_pending, t->at_exit,
	     t->displaced);
}

#endif
