/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The running kernel as decisions see it: implements policy/world.h. Idle state is
 * kept here, by update_idle; numbers of runnable tasks are the kernel's own; load is a
 * decaying average that is kept here, for the kernel keeps none for these tasks.
 */
#ifndef REVEILLE_SCX_WORLD_H
#define REVEILLE_SCX_WORLD_H

#include "decision.h"

struct world {
	struct policy_task *waker;
	const struct allowed_set *allowed; /* where the wakee may run */
	u32 this_cpu;
	bool seen; /* read the recorded copy */
};

#include "../../../policy/world.h"

#define SEEN(w) (record_decisions && (w)->seen)

static __always_inline struct decision *seen(const struct world *w)
{
	return &decisions[w->this_cpu & (MAX_CPUS - 1)];
}

static __always_inline const struct seen_cpu *seen_cpu(const struct world *w, u32 cpu)
{
	struct decision *d = seen(w);

	return d->cpus[0].cpu == cpu ? &d->cpus[0] : &d->cpus[1];
}

static __always_inline struct seen_llc *seen_llc(const struct world *w, u32 llc)
{
	struct decision *d = seen(w);

	return d->llcs[0].llc == llc ? &d->llcs[0] : &d->llcs[1];
}

static inline u32 world_llc(const struct world *w, u32 cpu)
{
	return place_of(cpu)->llc;
}

static inline u32 world_llc_weight(const struct world *w, u32 llc)
{
	return llc_place_of(llc)->weight;
}

static inline u32 world_llc_position(const struct world *w, u32 cpu)
{
	return place_of(cpu)->position;
}

static inline u32 world_llc_cpu(const struct world *w, u32 llc, u32 position)
{
	return cpu_at(llc, position);
}

/* Memory nodes and clusters are not told apart here: SIS_NODE and SIS_CLUSTER do nothing. */
static inline u32 world_next_llc(const struct world *w, u32 llc)
{
	return llc;
}

static inline u32 world_llc_rank(const struct world *w, u32 llc)
{
	return 0;
}

static inline bool world_cluster_active(const struct world *w)
{
	return false;
}

static inline u64 world_cluster_word(const struct world *w, u32 cpu, u32 i)
{
	return 0;
}

/* Not asked in a BPF program. */
static inline bool world_cache_hot(const struct world *w, u32 cpu)
{
	return false;
}

static inline bool world_smt_active(const struct world *w)
{
	return smt_active;
}

static inline u32 world_smt_width(const struct world *w, u32 cpu)
{
	return place_of(cpu)->smt_width;
}

static inline u32 world_smt_cpu(const struct world *w, u32 cpu, u32 k)
{
	return place_of(cpu)->smt[k & (POLICY_SMT_MAX - 1)];
}

static inline bool world_available_idle(const struct world *w, u32 cpu)
{
	const volatile struct cpu_place *place = place_of(cpu);

	if (SEEN(w))
		return test_bit(seen_llc(w, place->llc)->idle, place->position);
	return test_bit(llc_of(place->llc)->idle, place->position);
}

static inline u64 world_usable_word(const struct world *w, u32 llc, u32 i)
{
	struct llc_state *l = llc_of(llc);

	if (SEEN(w))
		return *word_at(seen_llc(w, llc)->idle, i) |
		       *word_at(seen_llc(w, llc)->sched_idle, i);
	return *(volatile u64 *)word_at(l->idle, i) | *(volatile u64 *)word_at(l->sched_idle, i);
}

static inline bool world_usable(const struct world *w, u32 cpu)
{
	u32 at = place_of(cpu)->position;

	return world_usable_word(w, place_of(cpu)->llc, at / 64) >> (at % 64) & 1;
}

static inline u32 world_nr_running(const struct world *w, u32 cpu)
{
	return SEEN(w) ? seen_cpu(w, cpu)->nr_running : nr_running(cpu);
}

/* The waker itself is current where it wakes: its history may just have changed. */
static inline const struct policy_task *world_curr(const struct world *w, u32 cpu)
{
	struct cpu_state *c = cpu_of(cpu);

	if (cpu == w->this_cpu)
		return w->waker;
	if (SEEN(w))
		return seen_cpu(w, cpu)->has_curr ? &seen_cpu(w, cpu)->curr : 0;
	return c->has_curr ? &c->curr : 0;
}

static inline u32 world_cfs_load(const struct world *w, u32 cpu)
{
	return SEEN(w) ? seen_cpu(w, cpu)->cfs_load : cpu_of(cpu)->load_avg;
}

/* What real-time work takes is not known here. */
static inline u32 world_capacity(const struct world *w, u32 cpu)
{
	return POLICY_CAPACITY_SCALE;
}

static inline u64 world_allowed_word(const struct world *w, const struct policy_task *p, u32 llc,
				     u32 i)
{
	return SEEN(w) ? *word_at(seen_llc(w, llc)->allowed, i) : allowed_word(w->allowed, llc, i);
}

static inline bool world_allowed(const struct world *w, const struct policy_task *p, u32 cpu)
{
	u32 at = place_of(cpu)->position;

	return world_allowed_word(w, p, place_of(cpu)->llc, at / 64) >> (at % 64) & 1;
}

static inline bool world_has_idle_cores(const struct world *w, u32 llc)
{
	return SEEN(w) ? seen_llc(w, llc)->has_idle_cores : llc_of(llc)->has_idle_cores;
}

static inline void world_clear_idle_cores(struct world *w, u32 llc)
{
	/* Not in the recorded copy, which tells what was there before. */
	llc_of(llc)->has_idle_cores = 0;
}

static inline u32 world_nr_idle_scan(const struct world *w, u32 llc)
{
	return SEEN(w) ? seen_llc(w, llc)->nr_idle_scan : llc_of(llc)->nr_idle_scan;
}

/* The kernel's mask stands for a search that need not look at busy CPUs: as all are here. */
static inline u64 world_filter_word(const struct world *w, u32 llc, u32 i)
{
	return ~0ull;
}

static inline void world_empty_filter(struct world *w, u32 llc)
{
}

/* Only ever asked for the CPU that wakes. */
static inline struct policy_scan_state *world_scan_state(struct world *w, u32 cpu)
{
	return &cpu_of(cpu)->scan;
}

#include "../../../policy/select.h"
#include "../../../policy/swqueue.h"

static __always_inline void tunables_now(struct policy_tunables *t)
{
	t->features = features;
	t->min_granularity_ns = min_granularity_ns;
	t->hz = hz;
	t->imbalance_pct = imbalance_pct;
	t->smt_imbalance_pct = smt_imbalance_pct;
}

#endif
