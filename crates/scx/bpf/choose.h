/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * policy/'s decision in two halves, the second of them once for each kind of search: with the
 * others known to be off, none pays for them. Global functions, so that the verifier
 * looks at each once and not at every way that leads to it.
 */
#ifndef REVEILLE_SCX_CHOOSE_H
#define REVEILLE_SCX_CHOOSE_H

#include "load.h"

struct wakeup {
	u64 features;
	u64 now_j;
	u32 this_cpu;
	u32 flags;
};

#define WORLD_OF(wakeup, by, set)                        \
	{                                                 \
		.waker = (by),                            \
		.allowed = (set),                         \
		.this_cpu = (wakeup)->this_cpu,           \
		.seen = true,                             \
	}

static __always_inline void tunables_of(struct policy_tunables *t, const struct wakeup *wakeup)
{
	tunables_now(t);
	/* Not supported here; masked by a constant so that the verifier skips their code. */
	t->features = wakeup->features &
		      ~(POLICY_SIS_FILTER | POLICY_SIS_NODE | POLICY_SIS_CLUSTER);
}

__noinline int choose_target(struct policy_task *p __arg_nonnull, struct policy_task *waker,
			     struct allowed_set *set __arg_nonnull,
			     struct wakeup *wakeup __arg_nonnull,
			     struct policy_pick *pick __arg_nonnull)
{
	struct world w = WORLD_OF(wakeup, waker, set);
	struct policy_tunables t;

	tunables_of(&t, wakeup);
	policy_select_target(&w, &t, p, waker, wakeup->this_cpu, wakeup->flags, wakeup->now_j,
			     pick);
	return 0;
}

#define CHOOSE_IDLE(name, known)                                                           \
	__noinline int name(struct policy_task *p __arg_nonnull, struct policy_task *waker, \
			    struct allowed_set *set __arg_nonnull,                          \
			    struct wakeup *wakeup __arg_nonnull,                            \
			    struct policy_pick *pick __arg_nonnull)                         \
	{                                                                                   \
		struct world w = WORLD_OF(wakeup, waker, set);                              \
		struct policy_tunables t;                                                   \
                                                                                            \
		/* What is not used would be passed as garbage, which the verifier minds. */ \
		asm volatile("" ::"r"(waker));                                              \
		tunables_of(&t, wakeup);                                                    \
		if (known)                                                                  \
			policy_select_idle(&w, &t, p, waker, wakeup->this_cpu,              \
					   wakeup->flags, wakeup->now_j, pick);             \
		return 0;                                                                   \
	}

CHOOSE_IDLE(choose_v45, policy_sis_v45(&t))
CHOOSE_IDLE(choose_by_cost, !policy_sis_v45(&t) && policy_scan_by_cost(&t))
CHOOSE_IDLE(choose_by_util, !policy_sis_v45(&t) && !policy_scan_by_cost(&t))

/* The search that the features ask for. */
static __always_inline void choose_idle(struct policy_task *p, struct policy_task *waker,
					struct allowed_set *set, struct wakeup *wakeup,
					struct policy_pick *pick)
{
	struct policy_tunables now = { .features = wakeup->features };

	if (policy_scan_by_cost(&now))
		choose_by_cost(p, waker, set, wakeup, pick);
	else if (policy_sis_v45(&now))
		choose_v45(p, waker, set, wakeup, pick);
	else
		choose_by_util(p, waker, set, wakeup, pick);
}

#ifdef REVEILLE_POLICY_FILE

/*
 * What a policy file calls by policy/'s names, from here on: inlined into the file policy/'s own
 * are too much for the verifier. Of `t` they see the features.
 */
#define OWN_WAKEUP(t, cpu, how, now)                                                    \
	{                                                                                \
		.features = (t)->features,                                               \
		.now_j = (now),                                                          \
		.this_cpu = (cpu),                                                       \
		.flags = (how),                                                          \
	}

static __always_inline void own_select_target(struct world *w, const struct policy_tunables *t,
					      const struct policy_task *p,
					      struct policy_task *waker, u32 this_cpu, u32 flags,
					      u64 now_j, struct policy_pick *pick)
{
	struct wakeup wakeup = OWN_WAKEUP(t, this_cpu, flags, now_j);

	choose_target((struct policy_task *)p, waker, (struct allowed_set *)w->allowed, &wakeup,
		      pick);
}

static __always_inline void own_select_idle(struct world *w, const struct policy_tunables *t,
					    struct policy_task *p, struct policy_task *waker,
					    u32 this_cpu, u32 flags, u64 now_j,
					    struct policy_pick *pick)
{
	struct wakeup wakeup = OWN_WAKEUP(t, this_cpu, flags, now_j);

	choose_idle(p, waker, (struct allowed_set *)w->allowed, &wakeup, pick);
}

static __always_inline struct policy_pick
own_select_cpu(struct world *w, const struct policy_tunables *t, struct policy_task *p,
	       struct policy_task *waker, u32 this_cpu, u32 flags, u64 now_j)
{
	struct policy_pick pick = {};

	own_select_target(w, t, p, waker, this_cpu, flags, now_j, &pick);
	own_select_idle(w, t, p, waker, this_cpu, flags, now_j, &pick);
	return pick;
}

#define policy_select_target own_select_target
#define policy_select_idle own_select_idle
#define policy_select_cpu own_select_cpu

#endif

#endif
