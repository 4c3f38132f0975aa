/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The plain data that placement decisions read and write: what the policy
 * remembers of a task, and what a decision returns. Freestanding: no libc, no
 * kernel header, so that simulator, native build and BPF share it.
 */
#ifndef REVEILLE_POLICY_TYPES_H
#define REVEILLE_POLICY_TYPES_H

/* A world that brings the kernel's own integer names says so. */
#ifndef POLICY_HAVE_INT_TYPES
typedef __UINT8_TYPE__ u8;
typedef __UINT16_TYPE__ u16;
typedef __UINT32_TYPE__ u32;
typedef __UINT64_TYPE__ u64;
typedef __INT32_TYPE__ s32;
typedef __INT64_TYPE__ s64;
#endif

#ifndef __cplusplus
#if !defined(__bool_true_false_are_defined) && !defined(POLICY_HAVE_BOOL)
#define bool _Bool
#define true 1
#define false 0
#define __bool_true_false_are_defined 1
#endif
#endif

/*
 * Decisions are inlined into their callers: BPF functions take five arguments at
 * most and return no structs.
 */
#define POLICY_INLINE static inline __attribute__((always_inline))

/*
 * A loop of `n` rounds that is too long to be unrolled. BPF brings its own, for the
 * verifier must see that it ends without going through every round.
 */
#ifndef POLICY_FOR
#define POLICY_FOR(i, n) for (u32 i = 0; i < (n); i++)
#endif

/* No task, no CPU. */
#define POLICY_NONE 0xffffffffu

/* A last-level cache holds at most so many words of 64 CPUs. */
#ifndef POLICY_LLC_WORDS
#define POLICY_LLC_WORDS 8
#endif
#define POLICY_LLC_CPUS (POLICY_LLC_WORDS * 64)
/* A search of a memory node goes through at most this many LLCs. */
#define POLICY_NODE_LLCS 64
/* A core has at most this many hardware threads. */
#define POLICY_SMT_MAX 8
/* Capacity of a CPU that nothing is stolen from. */
#define POLICY_CAPACITY_SCALE 1024

/* What the policy remembers of one task. Times in ns unless named _j (jiffies). */
struct policy_task {
	u64 wakee_flip_decay_j;	/* when wakee_flips was last halved */
	u64 sum_exec_ns;	/* CPU time since birth */
	u64 prev_sleep_sum_ns;	/* sum_exec_ns at the last sleep */
	s64 dur_avg_ns;		/* average CPU time between sleeps (SIS_SHORT) */
	u32 id;
	u32 last_wakee;		/* id of the task that it woke last */
	u32 wakee_flips;	/* how often the wakee changed, decaying */
	u32 prev_cpu;		/* where it ran last */
	u32 recent_used_cpu;	/* the one before */
	u32 load_avg;		/* PELT load, as last updated */
	u32 affinity;		/* the world's index of its allowed set; 0 = every CPU */
	u32 flags;		/* POLICY_TASK_* */
};

/* What a CPU remembers of its idle time, and of what its own searches cost. */
struct policy_scan_state {
	u64 avg_idle_ns;	/* rq->avg_idle: the mean of its idle stretches */
	u64 avg_scan_cost_ns;	/* of its searches, in its LLC domain (SIS_PROP) */
	u64 wake_avg_idle_ns;	/* idle time that its wake-ups may count on (SIS_AGE) */
	u64 wake_stamp_j;	/* up to when that has aged, in jiffies */
};

/* A kernel thread bound to one CPU. */
#define POLICY_TASK_PERCPU_KTHREAD 0x1u

/* How a wake-up happens: WF_* of the kernel, and whether current is the waker. */
#define POLICY_WAKE_SYNC 0x1u	 /* the waker is about to sleep */
#define POLICY_WAKE_IN_TASK 0x2u /* task context, not an interrupt */
#define POLICY_WAKE_ALONE 0x4u	 /* all others on the waker's CPU are delayed (v6.16) */

/* Which rule chose the CPU: for explaining, not for deciding. */
enum policy_rule {
	POLICY_RULE_TARGET_IDLE = 1,
	POLICY_RULE_PREV_IDLE,
	POLICY_RULE_KTHREAD,
	POLICY_RULE_RECENT_IDLE,
	POLICY_RULE_SIBLING_IDLE,
	POLICY_RULE_IDLE_CORE,
	POLICY_RULE_IDLE_CPU,
	POLICY_RULE_SHORT,	/* SIS_SHORT or SIS_CURRENT kept the pair together */
	POLICY_RULE_TARGET,	/* nothing idle was found */
	POLICY_RULE_OWN,	/* a policy file chose an idle CPU (reveille.h) */
	POLICY_RULE_OWN_BUSY,	/* ... one that was not */
};

/* What select_task_rq decided, and what it looked at to decide it. */
struct policy_pick {
	u32 cpu;
	u32 target;	/* what wake_affine proposed */
	u8 tested;	/* idle tests of single CPUs before the search */
	u8 far_llcs;	/* other LLCs that were searched (SIS_NODE) */
	u16 searched;	/* CPUs that the idle search looked at */
	u16 far;	/* ... those of other LLCs among them */
	u8 rule;	/* enum policy_rule */
	u8 search;	/* an idle search was made */
	u8 core_search;	/* ... for a whole idle core */
	u8 cleared;	/* it failed: has_idle_cores or SIS_FILTER's mask was cleared */
	u8 exhausted;	/* ... which its budget ended, with CPUs left to look at */
	u8 affine;	/* the waker's CPU was among those to choose from */
	u8 siblings;	/* threads of prev's core that select_idle_smt() came to */
	u8 cores;	/* cores looked at, if SIS_LIMITED_CORES bounds them */
	u16 asked;	/* idle CPUs that the search asked whether they are cache-hot (SIS_CACHE) */
};

#endif
