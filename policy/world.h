/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The contract between decisions and the world they are taken in. Each world
 * (simulator, native build, BPF) defines `struct world` and these accessors as
 * static inline functions *before* it includes a decision header.
 *
 * CPUs inside one last-level cache (LLC) are also known by their position: their
 * rank by CPU number among the LLC's CPUs. Idle state comes as words of 64
 * positions, so that the kernel's walk in CPU order is a find-first-set here.
 */
#ifndef REVEILLE_POLICY_WORLD_H
#define REVEILLE_POLICY_WORLD_H

#include "features.h"
#include "types.h"

struct world;

/* Running the idle task, nothing queued, no wake-up pending. */
POLICY_INLINE bool world_available_idle(const struct world *w, u32 cpu);
/* The above, or running nothing but SCHED_IDLE tasks. */
POLICY_INLINE bool world_usable(const struct world *w, u32 cpu);
/* Runnable tasks of all classes, the running one included. */
POLICY_INLINE u32 world_nr_running(const struct world *w, u32 cpu);
/* The task running there; null for the idle task. */
POLICY_INLINE const struct policy_task *world_curr(const struct world *w, u32 cpu);
/* PELT load of its root queue, as last updated. */
POLICY_INLINE u32 world_cfs_load(const struct world *w, u32 cpu);
/* 1024 less what real-time work and interrupts take. */
POLICY_INLINE u32 world_capacity(const struct world *w, u32 cpu);

/* Topology: fixed while a scheduler is loaded. */
POLICY_INLINE u32 world_llc(const struct world *w, u32 cpu);
POLICY_INLINE u32 world_llc_weight(const struct world *w, u32 llc);
POLICY_INLINE u32 world_llc_position(const struct world *w, u32 cpu);
POLICY_INLINE u32 world_llc_cpu(const struct world *w, u32 llc, u32 position);
/*
 * The next LLC of the same memory node, by lowest CPU and in a ring: itself if there is
 * no other; and its rank there.
 */
POLICY_INLINE u32 world_next_llc(const struct world *w, u32 llc);
POLICY_INLINE u32 world_llc_rank(const struct world *w, u32 llc);
/* LLCs have clusters, of which every CPU is in one (sched_cluster_active). */
POLICY_INLINE bool world_cluster_active(const struct world *w);
/* Word i of the CPU's LLC: positions in its cluster. Asked only if there are some. */
POLICY_INLINE u64 world_cluster_word(const struct world *w, u32 cpu, u32 i);
/* Some core of the machine has two threads. */
POLICY_INLINE bool world_smt_active(const struct world *w);
POLICY_INLINE u32 world_smt_width(const struct world *w, u32 cpu);
/* k-th hardware thread of the CPU's core, by CPU number, itself included. */
POLICY_INLINE u32 world_smt_cpu(const struct world *w, u32 cpu, u32 k);

/* Word i of the LLC: positions that are usable, and positions p may run on. */
POLICY_INLINE u64 world_usable_word(const struct world *w, u32 llc, u32 i);
POLICY_INLINE u64 world_allowed_word(const struct world *w, const struct policy_task *p,
				     u32 llc, u32 i);
POLICY_INLINE bool world_allowed(const struct world *w, const struct policy_task *p, u32 cpu);

/* State shared by an LLC (sched_domain_shared). */
POLICY_INLINE bool world_has_idle_cores(const struct world *w, u32 llc);
POLICY_INLINE void world_clear_idle_cores(struct world *w, u32 llc);
POLICY_INLINE u32 world_nr_idle_scan(const struct world *w, u32 llc);
/* Word i of SIS_FILTER's mask: CPUs that have gone idle since it was last emptied. */
POLICY_INLINE u64 world_filter_word(const struct world *w, u32 llc, u32 i);
POLICY_INLINE void world_empty_filter(struct world *w, u32 llc);

/* Is the CPU's last task expected back soon? Asked with SIS_CACHE only. */
POLICY_INLINE bool world_cache_hot(const struct world *w, u32 cpu);

/* The CPU's own memory of idle time and searches; never null. */
POLICY_INLINE struct policy_scan_state *world_scan_state(struct world *w, u32 cpu);

#endif
