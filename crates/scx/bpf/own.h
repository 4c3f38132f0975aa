/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --policy: reveille_select() of a policy file decides in place of policy_select_cpu().
 * The loader compiles this with REVEILLE_POLICY_FILE set to the file's path. Comes last, so
 * that the variables above lie where the loader expects them.
 */
#ifndef REVEILLE_SCX_OWN_H
#define REVEILLE_SCX_OWN_H

/* Tasks as they were before the file had them: it may change their history only. */
struct own_before {
	struct policy_task wakee;
	struct policy_task waker;
} LINE;

struct own_before own_before[MAX_CPUS] SEC(".bss.own");

static __always_inline void own_restore(struct policy_task *p, const struct policy_task *before)
{
	p->sum_exec_ns = before->sum_exec_ns;
	p->prev_sleep_sum_ns = before->prev_sleep_sum_ns;
	p->dur_avg_ns = before->dur_avg_ns;
	p->id = before->id;
	p->prev_cpu = before->prev_cpu;
	p->load_avg = before->load_avg;
	p->affinity = before->affinity;
	p->flags = before->flags;
}

/* A CPU that the task can be put on, and the rule that says whether it was idle. */
static __always_inline void own_check(const struct world *w, const struct allowed_set *set,
				      const struct policy_task *p, struct policy_pick *pick)
{
	u32 cpu = pick->cpu;

	/* If it may no longer run on its last CPU, the kernel finds another, as it does for its own. */
	if (cpu != p->prev_cpu) {
		bool wrong = cpu >= n_cpu_ids || !place_of(cpu)->smt_width || !allows(set, cpu);

		if (wrong)
			COUNT(wrong_cpu);
		/* Which CPUs are online the file cannot ask. */
		if (wrong || !cpu_of(cpu)->online) {
			pick->cpu = p->prev_cpu;
			pick->rule = 0;
		}
	}
	if (!pick->rule || pick->rule > POLICY_RULE_TARGET)
		pick->rule = world_usable(w, pick->cpu) ? POLICY_RULE_OWN : POLICY_RULE_OWN_BUSY;
}

/* Names that a file may use for itself. */
#undef COUNT
#undef LINE
#undef NONE
#undef SEEN

/* As anywhere else, the loop variable is the loop's own. */
#undef POLICY_FOR
#define POLICY_FOR(i, n)                                        \
	for (u32 i = 0, i##_once = 1; i##_once; i##_once = 0) \
		bpf_for(i, 0, (n))

/* The file may have no variables: here the loader finds them. */
#pragma clang section bss = ".bss.policy" data = ".data.policy"

/* What was compiled, and with which sources of the scheduler. */
__attribute__((used)) const char reveille_policy_file[] = REVEILLE_POLICY_FILE;
__attribute__((used)) const u64 reveille_policy_base = REVEILLE_POLICY_BASE;

#include REVEILLE_POLICY_FILE

#pragma clang section bss = "" data = ""

__noinline int choose_own(struct policy_task *p __arg_nonnull, struct policy_task *waker,
			  struct allowed_set *set __arg_nonnull,
			  struct wakeup *wakeup __arg_nonnull,
			  struct policy_pick *pick __arg_nonnull)
{
	struct own_before *before = &own_before[wakeup->this_cpu & (MAX_CPUS - 1)];
	struct world w = WORLD_OF(wakeup, waker, set);
	struct policy_tunables t;

	tunables_of(&t, wakeup);
	before->wakee = *p;
	if (waker)
		before->waker = *waker;
	*pick = reveille_select(&w, &t, p, waker, wakeup->this_cpu, wakeup->flags, wakeup->now_j);
	own_restore(p, &before->wakee);
	if (waker)
		own_restore(waker, &before->waker);
	own_check(&w, set, p, pick);
	return 0;
}

#endif
