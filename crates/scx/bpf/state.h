/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the scheduler knows: of the machine (given by the loader, fixed while it is
 * loaded), of each CPU, cache and task, and what can be set. What one CPU writes often
 * stands on cache lines of its own.
 */
#ifndef REVEILLE_SCX_STATE_H
#define REVEILLE_SCX_STATE_H

#include "scx.h"

#include "../../../policy/averages.h"
#include "../../../policy/bandwidth.h"

/* Powers of two: indices are masked. */
#define MAX_CPUS 1024
#define MAX_LLCS 256
/* Words of 64 CPUs in all caches together: every cache begins a new one. */
#define MAX_WORDS 256
/* Task groups with weights of their own: the kernel itself has no more than 65,535 with memory
 * control. */
#define MAX_GROUPS 65536
/* Slots for limits; slot 0 is none. One is for all limits that found no slot. */
#define MAX_LIMITS 1024
#define SHARED_LIMIT 1
/* Groups without a number are in the one around them. Those at the top have this one. */
#define SHARED_GROUP 1
#define NONE POLICY_NONE

#define LINE __attribute__((aligned(64)))

/* Queues: one per CPU by its number, one per shard of a cache, one per limit for its parked tasks. */
#define SHARD_QUEUES 0x10000ull
#define PARK_QUEUES 0x20000ull

/* Topology, by CPU number. */
struct cpu_place {
	u16 llc;
	u16 position; /* within the LLC, by number */
	u16 smt_width; /* 0: no such CPU when the scheduler was loaded */
	u16 smt[POLICY_SMT_MAX];
};

struct llc_place {
	u32 first;	 /* of its CPUs in llc_cpus */
	u32 weight;
	u32 first_word;	 /* of an allowed set */
	u32 first_shard; /* its queues under SWQUEUE */
	u32 n_shards;	 /* as many as there may ever be */
};

/* Apart from the compiler's own constants, which come first and vary with what is compiled. */
#pragma clang section rodata = ".rodata.given"

const volatile struct cpu_place cpu_places[MAX_CPUS];
const volatile struct llc_place llc_places[MAX_LLCS];
/* CPU numbers, LLC by LLC, ascending. */
const volatile u16 llc_cpus[MAX_CPUS];
/* Other LLCs, nearest first: n_llcs - 1 of them in the LLC's row. */
const volatile u8 llc_order[MAX_LLCS][MAX_LLCS];
const volatile u32 n_cpu_ids = 1;
const volatile u32 n_llcs = 1;
const volatile u32 n_words = 1;
const volatile u32 n_shards = 1;
const volatile u32 smt_active;

/* Tunables that are fixed once loaded. */
const volatile u64 min_granularity_ns = 3000000;
const volatile u32 hz = 250;
const volatile u32 imbalance_pct = 117;
const volatile u32 smt_imbalance_pct = 110;
const volatile u64 slice_ns = 3000000;
const volatile u64 sleeper_credit_ns = 24000000;
const volatile u64 wakeup_granularity_ns = 4000000;
const volatile u64 bandwidth_slice_ns = 5000000;
/* After so long a task that waits gets a turn, whatever its weight and limit say. */
const volatile u64 floor_ticks = 1875;
/* The kernel tells of cpu.max; decisions are recorded. */
const volatile u32 has_bandwidth;
const volatile u32 record_decisions;

#pragma clang section rodata = ""

/* What can be set while it runs. */
volatile u64 features;

/* Rules may be counted by number. */
#define N_RULES (POLICY_RULE_OWN_BUSY + 1)

/* Counters of one CPU; the loader adds them up. */
struct cpu_stats {
	u64 wakeups;
	u64 forks;
	u64 rules[N_RULES];
	u64 searches;
	u64 searched;	   /* CPUs that searches looked at */
	u64 lost_claims;   /* another waker was faster */
	u64 direct;	   /* put on an idle CPU at once */
	u64 queued;	   /* on a CPU's queue */
	u64 shared;	   /* on a cache's shared queue (SWQUEUE) */
	u64 preempted;	   /* a wakee took the CPU from the running task */
	u64 pulled;	   /* off a shared queue */
	u64 stolen_near;   /* off another CPU's queue, same cache */
	u64 stolen_far;
	u64 kept;	   /* the running task went on: no other was before it */
	u64 helped;	   /* an idle CPU was sent for a task that waits */
	u64 parked;	   /* tasks of throttled groups, put aside */
	u64 released;
	u64 lifted;	   /* tasks that had waited too long */
	u64 dropped;	   /* records for which there was no room */
	u64 wrong_cpu;	   /* answers of a policy file that no task could be put on */
} LINE;

struct cpu_stats cpu_stats[MAX_CPUS];

/* One CPU. */
struct cpu_state {
	/* Read by others. */
	struct policy_task curr; /* what decisions ask of the running task */
	u32 has_curr;
	u32 load_avg;
	u32 util_avg;
	u32 online;
	u64 clock; /* virtual time of its queue */
	u64 curr_vtime;
	u64 curr_share; /* what the running task weighs */
	/* Its own. */
	struct policy_scan_state scan LINE;
	u64 idle_since_ns;
	u64 running_since_ns;
	u64 folded_ns;
	u64 busy_ns;
	u64 stop_at_ns; /* when the running task stops */
	u64 stop_timer_ns;
	u64 looked_j; /* for tasks that have waited too long */
	u32 left_group; /* a task that left it last is still counted there, with this weight; 0: none */
	u32 left_weight;
	u32 stop_tid; /* the task that the timer is set for, if it has a limit */
	u32 unasked;  /* while it was not online the kernel put tasks into its local queue without asking */
	u32 idle_seen; /* times that the timer found it idle without its bit */
	u32 taken; /* times in a row that it found a task of a higher class there */
	u32 tried; /* the last survey that it took a task by, or tried to */
	u64 load; /* what its runnable tasks weigh, as the timer last found them */
	u32 shared_turn;
} LINE;

struct cpu_state cpus[MAX_CPUS];

/* What a cache's timer finds. In memory, not on the stack: its loop is then soon verified. */
struct llc_survey {
	u64 sum_util;
	u64 load;
	u64 heaviest; /* of the CPUs where a task waits that others may take: the most, and where */
	u64 gives;
	u32 busiest;
	u32 online;
	u32 idle;
	u32 waiting; /* CPUs where tasks wait */
};

/* One last-level cache: sched_domain_shared. Bits are positions. */
struct llc_state {
	u64 idle[POLICY_LLC_WORDS] LINE;
	u64 sched_idle[POLICY_LLC_WORDS] LINE;
	u64 queued[POLICY_LLC_WORDS] LINE; /* queues from which others may take */
	u32 has_idle_cores LINE;
	u32 nr_idle_scan;
	u32 busiest; /* the CPU with the most weight that has a task to give away */
	u32 refused; /* no CPU could take its task since the last survey */
	u64 busiest_load; /* its weight; 0: there is none, or it has given */
	u64 busiest_gives; /* the weight of that task */
	u64 load; /* the mean of its CPUs */
	u32 far; /* the cache with clearly more for each CPU, NONE if there is none */
	u32 surveys;
	struct llc_survey survey;
};

struct llc_state llcs[MAX_LLCS];

/* Some task has been put on a shared queue: they must be looked at from now on. */
u32 shared_used;
/* CPUs that tasks of throttled groups may have to be kept off; groups with a quota. */
u32 throttled_queues;
u32 limited_groups;
/* Counts limits that come and go. From 1 on, so that a group of zeros knows nothing yet. */
volatile u64 limits_generation = 1;
/* Slots from 1 to this one have a queue for parked tasks, and may be given away. */
u32 park_queues;
/* No group ever had a slot above this one. */
u32 last_limit;
/* Where the last group got its number: the search for a free one goes on from there. */
u32 last_group;
/* Groups for which there was no number: they count as their parents. */
u32 groups_without_number;
/* Groups whose limit has no slot now; how often that was so, and the cgroups of the last. */
#define KEPT_REFUSALS 16
u32 limits_refused;
u64 refusals;
u64 refused_ids[KEPT_REFUSALS];
/* before_schedule() and its like are called. */
u32 exits_seen;
/* Timers that the kernel did not start; calls at the return to user mode that it did not take. */
u64 timers_failed;
u64 exits_failed;

/* One task, from init_task to its end. */
struct task_state {
	struct policy_task policy;
	u64 vtime;	   /* on the clock of clock_cpu */
	u64 exec_start_ns; /* CPU time when it was put on the CPU */
	u64 folded_ns;
	u64 folded_exec_ns;
	u32 clock_cpu;
	u32 group;   /* 0 for the root */
	u64 share;   /* its weight at the root, as of share_j */
	u64 share_j;
	u32 counted; /* weight_of() with which it counts in its group, 0 if it does not */
	u32 nr_allowed;
	u32 migrated; /* the last wake-up moved it */
	u32 claimed;  /* ... to a CPU that was claimed for it, plus one */
	u32 claim;    /* how: enum claim */
	u64 waits_since_j; /* since when it wants to run and has not; 0 while it runs or sleeps */
	u32 lifted;	   /* it has waited too long: its next turn is short and due at once */
	u32 mid_turn;	   /* it has been put on the CPU since it was queued or slept */
	u32 exit_pending;  /* returns_to_user() will be called for it */
	u32 exit_seen;	   /* before_schedule() has found it on the way out */
	u32 at_exit;	   /* it is about to return to user mode, and holds no locks */
	u32 leaves;	   /* it goes on for a short turn, to get out of returns_to_user() */
	u32 displaced;	   /* it waits on a CPU that it may no longer use, and blocks who changed that */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_state);
} tasks SEC(".maps");

/* Where a task may run, by LLC and position. */
struct allowed_set {
	u64 words[MAX_WORDS];
};

/* For tasks that may run on every CPU; for those whose set could not be stored. */
struct allowed_set everywhere;
struct allowed_set nowhere;

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct allowed_set);
} allowed_sets SEC(".maps");

#define SMP_CPU() (bpf_get_smp_processor_id() & (MAX_CPUS - 1))
#define COUNT(what) (cpu_stats[SMP_CPU()].what++)

static __always_inline struct cpu_state *cpu_of(u32 cpu)
{
	return &cpus[cpu & (MAX_CPUS - 1)];
}

static __always_inline const volatile struct cpu_place *place_of(u32 cpu)
{
	return &cpu_places[cpu & (MAX_CPUS - 1)];
}

static __always_inline struct llc_state *llc_of(u32 llc)
{
	return &llcs[llc & (MAX_LLCS - 1)];
}

static __always_inline const volatile struct llc_place *llc_place_of(u32 llc)
{
	return &llc_places[llc & (MAX_LLCS - 1)];
}

static __always_inline u32 cpu_at(u32 llc, u32 position)
{
	return llc_cpus[(llc_place_of(llc)->first + position) & (MAX_CPUS - 1)];
}

static __always_inline struct task_state *task_of(struct task_struct *p)
{
	return bpf_task_storage_get(&tasks, p, NULL, 0);
}

/* Where it may run: never null. */
static __always_inline struct allowed_set *set_of(struct task_struct *p, const struct task_state *t)
{
	struct allowed_set *set = &everywhere;

	if (t->policy.affinity) {
		set = bpf_task_storage_get(&allowed_sets, p, NULL, 0);
		if (!set)
			set = &nowhere;
	}
	return set;
}

static __always_inline u64 allowed_word(const struct allowed_set *set, u32 llc, u32 i)
{
	return set->words[(llc_place_of(llc)->first_word + i) & (MAX_WORDS - 1)];
}

static __always_inline bool allows(const struct allowed_set *set, u32 cpu)
{
	u32 at = place_of(cpu)->position;

	return allowed_word(set, place_of(cpu)->llc, at / 64) >> (at % 64) & 1;
}

static __always_inline void allow(struct allowed_set *set, u32 cpu)
{
	const volatile struct cpu_place *place = place_of(cpu);
	u32 word = llc_place_of(place->llc)->first_word + place->position / 64;

	set->words[word & (MAX_WORDS - 1)] |= 1ull << (place->position % 64);
}

/* A pointer that the compiler must not fold into one with another. */
#define word_at(words, i) (&(words)[(i) & (POLICY_LLC_WORDS - 1)])

static __always_inline void set_bit(u64 *words, u32 bit)
{
	__sync_fetch_and_or(word_at(words, bit / 64), 1ull << (bit % 64));
}

/* Clears it; was it set? Of several that ask at a time, one is told so. */
static __always_inline bool take_bit(u64 *words, u32 bit)
{
	u64 mask = 1ull << (bit % 64);

	return __sync_fetch_and_and(word_at(words, bit / 64), ~mask) & mask;
}

static __always_inline bool test_bit(const u64 *words, u32 bit)
{
	return *(volatile const u64 *)word_at(words, bit / 64) >> (bit % 64) & 1;
}

static __always_inline u32 nr_running(u32 cpu)
{
	const struct rq *rq = bpf_per_cpu_ptr(&runqueues, cpu);

	return rq ? rq->nr_running : 0;
}

/* Does a task of a higher class keep the CPU? One that is seen once may be short. */
static __always_inline bool is_taken(u32 cpu)
{
	return cpu_of(cpu)->taken > 1;
}

/*
 * Not so of a CPU that goes: from then on the kernel calls neither enqueue nor dispatch there, and pushes
 * off what runs (balance_push()). It waits for RCU before it calls cpu_offline.
 */
static __always_inline bool is_active(u32 cpu)
{
	const struct cpuhp_cpu_state *hp = bpf_per_cpu_ptr(&cpuhp_state, cpu);

	return cpu_of(cpu)->online && hp && hp->state >= SCX(cpuhp_state, CPUHP_AP_ACTIVE);
}

/*
 * Weights are kept in 1/1024 of cpu.weight's unit. SCHED_IDLE, of a task or a group
 * (cpu.idle), weighs 3 where the default is 1024 (WEIGHT_IDLEPRIO of the kernel), less than
 * the least cpu.weight.
 */
#define WEIGHT_SHIFT 10
#define WEIGHT_DEFAULT (100u << WEIGHT_SHIFT)
#define WEIGHT_IDLE (3u * 100)

static __always_inline u32 weight_of(const struct task_struct *p)
{
	return p->policy == SCHED_IDLE ? WEIGHT_IDLE : p->scx.weight << WEIGHT_SHIFT;
}

#define for_each(i, n) bpf_for(i, 0, (int)(n))

#endif
