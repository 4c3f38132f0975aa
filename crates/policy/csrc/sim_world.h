/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The simulator's world: flat arrays that Rust owns and fills (see world.rs, the
 * same structs as repr(C)). Implements policy/world.h by reading them.
 */
#ifndef REVEILLE_SIM_WORLD_H
#define REVEILLE_SIM_WORLD_H

/* Words of 64 CPUs per LLC: more than a kernel's program has, as nothing is verified here. */
#define POLICY_LLC_WORDS 64
#include "../../../policy/types.h"

/* One CPU, as decisions see it: half a cache line. */
struct world_cpu {
	u32 nr_running;
	u32 curr;		/* task id, POLICY_NONE for the idle task */
	u32 cfs_load;
	u16 capacity;
	u8 available_idle;
	u8 sched_idle;
	u16 llc;
	u16 position;		/* within the LLC */
	u16 smt_first;		/* index into smt_cpus */
	u16 smt_width;
	u32 cluster;		/* index into clusters */
	u32 reserved;
};

/* One LLC: sched_domain_shared, and where its CPUs stand in llc_cpus. */
struct world_llc {
	u64 usable[POLICY_LLC_WORDS];
	u64 filter[POLICY_LLC_WORDS];
	u32 first;
	u32 weight;
	u32 nr_idle_scan;
	u32 has_idle_cores;
	u32 next;		/* LLC of the memory node */
	u32 rank;		/* there */
};

struct world {
	struct world_cpu *cpus;
	struct world_llc *llcs;
	struct policy_task *tasks;
	struct policy_scan_state *scans; /* one per CPU */
	const u64 *hot_until;	/* per CPU, in ns: until then its last task is expected back */
	const u16 *llc_cpus;	/* CPU numbers, LLC by LLC, ascending */
	const u16 *smt_cpus;	/* CPU numbers, core by core, ascending */
	const u64 *allowed;	/* affinity sets: per set, per LLC, POLICY_LLC_WORDS words */
	const u64 *clusters;	/* per cluster, positions in its LLC, POLICY_LLC_WORDS words */
	u64 now_ns;		/* what hot_until is compared with */
	u32 n_llcs;
	u32 n_cpus;
	u32 n_tasks;
	u32 n_affinities;
	u32 smt_active;
	u32 cluster_active;
};

#include "../../../policy/world.h"

/*
 * A policy file's numbers are checked (policy_file.h): one that does not exist ends its
 * run, where it would else read what lies beyond an array.
 */
#ifdef REVEILLE_CHECKED
static inline u32 world_number(u32 i, u32 n)
{
	if (i >= n)
		__builtin_trap();
	return i;
}
#else
#define world_number(i, n) (i)
#endif

static inline const struct world_cpu *world_cpu_of(const struct world *w, u32 cpu)
{
	return &w->cpus[world_number(cpu, w->n_cpus)];
}

static inline struct world_llc *world_llc_of(const struct world *w, u32 llc)
{
	return &w->llcs[world_number(llc, w->n_llcs)];
}

static inline bool world_available_idle(const struct world *w, u32 cpu)
{
	return world_cpu_of(w, cpu)->available_idle != 0;
}

static inline bool world_usable(const struct world *w, u32 cpu)
{
	const struct world_cpu *c = world_cpu_of(w, cpu);

	return (c->available_idle | c->sched_idle) != 0;
}

static inline u32 world_nr_running(const struct world *w, u32 cpu)
{
	return world_cpu_of(w, cpu)->nr_running;
}

static inline const struct policy_task *world_curr(const struct world *w, u32 cpu)
{
	u32 id = world_cpu_of(w, cpu)->curr;

	return id == POLICY_NONE ? 0 : &w->tasks[id];
}

static inline u32 world_cfs_load(const struct world *w, u32 cpu)
{
	return world_cpu_of(w, cpu)->cfs_load;
}

static inline u32 world_capacity(const struct world *w, u32 cpu)
{
	return world_cpu_of(w, cpu)->capacity;
}

static inline u32 world_llc(const struct world *w, u32 cpu)
{
	return world_cpu_of(w, cpu)->llc;
}

static inline u32 world_llc_weight(const struct world *w, u32 llc)
{
	return world_llc_of(w, llc)->weight;
}

static inline u32 world_llc_position(const struct world *w, u32 cpu)
{
	return world_cpu_of(w, cpu)->position;
}

static inline u32 world_llc_cpu(const struct world *w, u32 llc, u32 position)
{
	const struct world_llc *l = world_llc_of(w, llc);

	return w->llc_cpus[l->first + world_number(position, l->weight)];
}

static inline u32 world_next_llc(const struct world *w, u32 llc)
{
	return world_llc_of(w, llc)->next;
}

static inline u32 world_llc_rank(const struct world *w, u32 llc)
{
	return world_llc_of(w, llc)->rank;
}

static inline bool world_cluster_active(const struct world *w)
{
	return w->cluster_active != 0;
}

static inline u64 world_cluster_word(const struct world *w, u32 cpu, u32 i)
{
	return w->clusters[(u64)world_cpu_of(w, cpu)->cluster * POLICY_LLC_WORDS +
			  world_number(i, POLICY_LLC_WORDS)];
}

static inline bool world_smt_active(const struct world *w)
{
	return w->smt_active != 0;
}

static inline u32 world_smt_width(const struct world *w, u32 cpu)
{
	return world_cpu_of(w, cpu)->smt_width;
}

static inline u32 world_smt_cpu(const struct world *w, u32 cpu, u32 k)
{
	const struct world_cpu *c = world_cpu_of(w, cpu);

	return w->smt_cpus[c->smt_first + world_number(k, c->smt_width)];
}

static inline u64 world_usable_word(const struct world *w, u32 llc, u32 i)
{
	return world_llc_of(w, llc)->usable[world_number(i, POLICY_LLC_WORDS)];
}

static inline u64 world_allowed_word(const struct world *w, const struct policy_task *p, u32 llc,
				     u32 i)
{
	u64 set = (u64)p->affinity * w->n_llcs + world_number(llc, w->n_llcs);

	return w->allowed[set * POLICY_LLC_WORDS + world_number(i, POLICY_LLC_WORDS)];
}

static inline bool world_allowed(const struct world *w, const struct policy_task *p, u32 cpu)
{
	const struct world_cpu *c = world_cpu_of(w, cpu);
	u32 at = c->position;

	if (p->affinity == 0) /* every CPU */
		return true;
	return (world_allowed_word(w, p, c->llc, at / 64) >> (at % 64)) & 1;
}

static inline bool world_has_idle_cores(const struct world *w, u32 llc)
{
	return world_llc_of(w, llc)->has_idle_cores != 0;
}

static inline void world_clear_idle_cores(struct world *w, u32 llc)
{
	world_llc_of(w, llc)->has_idle_cores = 0;
}

static inline u32 world_nr_idle_scan(const struct world *w, u32 llc)
{
	return world_llc_of(w, llc)->nr_idle_scan;
}

static inline u64 world_filter_word(const struct world *w, u32 llc, u32 i)
{
	return world_llc_of(w, llc)->filter[world_number(i, POLICY_LLC_WORDS)];
}

static inline void world_empty_filter(struct world *w, u32 llc)
{
	for (u32 i = 0; i < POLICY_LLC_WORDS; i++)
		world_llc_of(w, llc)->filter[i] = 0;
}

static inline bool world_cache_hot(const struct world *w, u32 cpu)
{
	return w->now_ns < w->hot_until[world_number(cpu, w->n_cpus)];
}

static inline struct policy_scan_state *world_scan_state(struct world *w, u32 cpu)
{
	return &w->scans[world_number(cpu, w->n_cpus)];
}

#endif
