/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A world over plain arrays, as a BPF program would hold it in its .bss and
 * without any kernel header: shows that the decisions compile for BPF with no
 * library, no call out and no indirection that BPF lacks. Every index is masked,
 * as a verifier would ask.
 */
#include "../../../policy/types.h"

#define SEC(name) __attribute__((section(name), used))

#define N_CPUS 512
#define N_LLCS 16
#define N_TASKS 1024
#define N_AFFINITIES 16

struct world_cpu {
	u32 nr_running;
	u32 curr;
	u32 cfs_load;
	u32 capacity;
	u32 llc;
	u32 position;
	u32 smt_width;
	u32 smt[POLICY_SMT_MAX];
	u32 cluster;
	bool available_idle;
	bool usable;
	bool cache_hot;
};

struct world_llc {
	u64 usable[POLICY_LLC_WORDS];
	u64 filter[POLICY_LLC_WORDS];
	u32 cpus[POLICY_LLC_CPUS];
	u32 weight;
	u32 nr_idle_scan;
	u32 next;
	u32 rank;
	bool has_idle_cores;
};

struct world {
	struct world_cpu cpus[N_CPUS];
	struct world_llc llcs[N_LLCS];
	struct policy_task tasks[N_TASKS];
	struct policy_scan_state scans[N_CPUS];
	u64 allowed[N_AFFINITIES][N_LLCS][POLICY_LLC_WORDS];
	u64 clusters[N_CPUS][POLICY_LLC_WORDS];
};

#include "../../../policy/world.h"

static inline const struct world_cpu *cpu_of(const struct world *w, u32 cpu)
{
	return &w->cpus[cpu & (N_CPUS - 1)];
}

static inline const struct world_llc *llc_of(const struct world *w, u32 llc)
{
	return &w->llcs[llc & (N_LLCS - 1)];
}

static inline bool world_available_idle(const struct world *w, u32 cpu)
{
	return cpu_of(w, cpu)->available_idle;
}

static inline bool world_usable(const struct world *w, u32 cpu)
{
	return cpu_of(w, cpu)->usable;
}

static inline u32 world_nr_running(const struct world *w, u32 cpu)
{
	return cpu_of(w, cpu)->nr_running;
}

static inline const struct policy_task *world_curr(const struct world *w, u32 cpu)
{
	u32 id = cpu_of(w, cpu)->curr;

	return id == POLICY_NONE ? 0 : &w->tasks[id & (N_TASKS - 1)];
}

static inline u32 world_cfs_load(const struct world *w, u32 cpu)
{
	return cpu_of(w, cpu)->cfs_load;
}

static inline u32 world_capacity(const struct world *w, u32 cpu)
{
	return cpu_of(w, cpu)->capacity;
}

static inline u32 world_llc(const struct world *w, u32 cpu)
{
	return cpu_of(w, cpu)->llc;
}

static inline u32 world_llc_weight(const struct world *w, u32 llc)
{
	return llc_of(w, llc)->weight;
}

static inline u32 world_llc_position(const struct world *w, u32 cpu)
{
	return cpu_of(w, cpu)->position;
}

static inline u32 world_llc_cpu(const struct world *w, u32 llc, u32 position)
{
	return llc_of(w, llc)->cpus[position & (POLICY_LLC_CPUS - 1)];
}

static inline u32 world_next_llc(const struct world *w, u32 llc)
{
	return llc_of(w, llc)->next;
}

static inline u32 world_llc_rank(const struct world *w, u32 llc)
{
	return llc_of(w, llc)->rank;
}

static u32 cluster_active;

static inline bool world_cluster_active(const struct world *w)
{
	(void)w;
	return *(volatile u32 *)&cluster_active != 0;
}

static inline u64 world_cluster_word(const struct world *w, u32 cpu, u32 i)
{
	return w->clusters[cpu_of(w, cpu)->cluster & (N_CPUS - 1)][i & (POLICY_LLC_WORDS - 1)];
}

static u32 smt_active;

static inline bool world_smt_active(const struct world *w)
{
	(void)w;
	return *(volatile u32 *)&smt_active != 0;
}

static inline u32 world_smt_width(const struct world *w, u32 cpu)
{
	return cpu_of(w, cpu)->smt_width;
}

static inline u32 world_smt_cpu(const struct world *w, u32 cpu, u32 k)
{
	return cpu_of(w, cpu)->smt[k & (POLICY_SMT_MAX - 1)];
}

static inline u64 world_usable_word(const struct world *w, u32 llc, u32 i)
{
	return llc_of(w, llc)->usable[i & (POLICY_LLC_WORDS - 1)];
}

static inline u64 world_allowed_word(const struct world *w, const struct policy_task *p, u32 llc,
				     u32 i)
{
	return w->allowed[p->affinity & (N_AFFINITIES - 1)][llc & (N_LLCS - 1)]
			 [i & (POLICY_LLC_WORDS - 1)];
}

static inline bool world_allowed(const struct world *w, const struct policy_task *p, u32 cpu)
{
	u32 at = world_llc_position(w, cpu);

	return (world_allowed_word(w, p, world_llc(w, cpu), at / 64) >> (at % 64)) & 1;
}

static inline bool world_has_idle_cores(const struct world *w, u32 llc)
{
	return llc_of(w, llc)->has_idle_cores;
}

static inline void world_clear_idle_cores(struct world *w, u32 llc)
{
	w->llcs[llc & (N_LLCS - 1)].has_idle_cores = false;
}

static inline u32 world_nr_idle_scan(const struct world *w, u32 llc)
{
	return llc_of(w, llc)->nr_idle_scan;
}

static inline u64 world_filter_word(const struct world *w, u32 llc, u32 i)
{
	return llc_of(w, llc)->filter[i & (POLICY_LLC_WORDS - 1)];
}

static inline void world_empty_filter(struct world *w, u32 llc)
{
	for (u32 i = 0; i < POLICY_LLC_WORDS; i++)
		w->llcs[llc & (N_LLCS - 1)].filter[i] = 0;
}

static inline bool world_cache_hot(const struct world *w, u32 cpu)
{
	return cpu_of(w, cpu)->cache_hot;
}

static inline struct policy_scan_state *world_scan_state(struct world *w, u32 cpu)
{
	return &w->scans[cpu & (N_CPUS - 1)];
}

#include "../../../policy/averages.h"
#include "../../../policy/select.h"
#include "../../../policy/swqueue.h"

struct world world_state;
struct policy_tunables tunables;

struct wakeup {
	u64 now_j;
	u32 wakee;
	u32 waker;
	u32 this_cpu;
	u32 flags;
};

static inline struct policy_task *task_of(struct world *w, u32 id)
{
	return id == POLICY_NONE ? 0 : &w->tasks[id & (N_TASKS - 1)];
}

/* Where the wakee runs; bit 31: through the wake list. */
SEC("struct_ops/select_cpu") u32 select_cpu(struct wakeup *wakeup)
{
	struct world *w = &world_state;
	struct policy_task *wakee = task_of(w, wakeup->wakee);
	struct policy_pick pick;

	if (!wakee)
		return wakeup->this_cpu;
	pick = policy_select_cpu(w, &tunables, wakee, task_of(w, wakeup->waker), wakeup->this_cpu,
				 wakeup->flags, wakeup->now_j);
	return pick.cpu |
	       (policy_ttwu_queue(w, &tunables, wakeup->this_cpu, pick.cpu, false) ? 1u << 31 : 0);
}

/* A wake-up that no select_cpu preceded: a second caller, so that nothing is
 * inlined only because it is called once. */
SEC("struct_ops/enqueue") u32 enqueue(struct wakeup *wakeup)
{
	struct world *w = &world_state;
	struct policy_task *wakee = task_of(w, wakeup->wakee);
	struct policy_pick pick;
	u32 llc = world_llc(w, wakeup->this_cpu), shards, own;

	if (!wakee)
		return wakeup->this_cpu;
	shards = policy_swqueue_shards(&tunables, world_llc_weight(w, llc));
	own = policy_swqueue_shard(wakeup->this_cpu, shards);
	/* Out of work: the wakee is the head of the second queue that is tried. */
	if (!wakeup->flags && policy_swqueue_pops(w, &tunables, wakee, wakeup->this_cpu) &&
	    policy_swqueue_takes(w, wakee, wakeup->this_cpu, wakeup->waker != 0))
		return policy_swqueue_shard_tried(own, 1, shards);
	if (policy_swqueue_appends(w, &tunables, wakeup->this_cpu, wakeup->waker, false))
		return own;
	pick = policy_select_cpu(w, &tunables, wakee, 0, wakeup->this_cpu, 0, wakeup->now_j);
	policy_scan_done(w, &tunables, wakeup->this_cpu, &pick, 100 * pick.searched);
	return pick.rule;
}

/* A task sleeps; returns the average that its sections now have. */
SEC("struct_ops/quiescent") u64 quiescent(const u32 *task)
{
	struct policy_task *p = &world_state.tasks[*task & (N_TASKS - 1)];

	policy_task_slept(p);
	return (u64)p->dur_avg_ns;
}

struct idle_end {
	u64 now_j;
	u64 idle_ns;
	u64 max_idle_balance_cost_ns;
	u64 sum_util;
	u32 cpu;
	u32 llc;
};

/* An idle stretch ends: its average, and the LLC's new scan width. */
SEC("struct_ops/update_idle") u64 update_idle(struct idle_end *end)
{
	struct world_llc *llc = &world_state.llcs[end->llc & (N_LLCS - 1)];
	struct policy_scan_state *s = world_scan_state(&world_state, end->cpu);

	if (llc->weight)
		llc->nr_idle_scan =
			policy_nr_idle_scan(end->sum_util, llc->weight, tunables.imbalance_pct);
	policy_idle_ended(s, end->idle_ns, end->max_idle_balance_cost_ns, end->now_j);
	if (policy_joins_filter(&world_state, end->cpu))
		return 0;
	return s->avg_idle_ns;
}

SEC("license") char LICENSE[] = "GPL";
