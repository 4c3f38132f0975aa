/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What this scheduler uses of the kernel's types, and no more. Offsets, values of
 * enumerators and the presence of members are settled at load time from the running
 * kernel's BTF (CO-RE), so that one object serves all of them from Linux 6.12 on and no
 * BTF is needed to build it. Names and meanings: include/linux/sched/ext.h, kernel/sched/.
 */
#ifndef REVEILLE_SCX_KERNEL_H
#define REVEILLE_SCX_KERNEL_H

typedef unsigned char u8, __u8;
typedef unsigned short u16, __u16;
typedef unsigned int u32, __u32;
typedef unsigned long long u64, __u64;
typedef signed char s8, __s8;
typedef short s16, __s16;
typedef int s32, __s32;
typedef long long s64, __s64;
typedef u16 __be16;
typedef u32 __be32, __wsum;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)
#define POLICY_HAVE_INT_TYPES
#define POLICY_HAVE_BOOL

/* include/uapi/linux/bpf.h */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
	BPF_MAP_TYPE_CGRP_STORAGE = 32,
};
#define BPF_F_NO_PREALLOC (1u << 0)
#define BPF_NOEXIST 1
#define BPF_LOCAL_STORAGE_GET_F_CREATE (1ull << 0)
#define BPF_F_TIMER_CPU_PIN (1ull << 1)
#define CLOCK_MONOTONIC 1

struct bpf_spin_lock {
	u32 val;
};

struct bpf_timer {
	u64 __opaque[2];
} __attribute__((aligned(8)));

struct bpf_task_work {
	u64 __opaque;
} __attribute__((aligned(8)));

struct bpf_iter_num {
	u64 __opaque[1];
} __attribute__((aligned(8)));

struct bpf_iter_scx_dsq {
	u64 __opaque[6];
} __attribute__((aligned(8)));

#define ENOMEM 12
#define EBUSY 16
#define SCHED_BATCH 3
#define SCHED_IDLE 5
#define PF_KTHREAD 0x00200000
#define MAX_RT_PRIO 100
#define PF_EXITING 0x00000004
#define SIGNAL_GROUP_EXIT 0x00000004

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct cpumask {
	unsigned long bits[1];
};

struct sched_entity {
	u64 sum_exec_runtime;
};

struct sched_ext_entity {
	u32 flags;
	u32 weight;
	u64 slice;
	u64 dsq_vtime;
};

/* libbpf tells signatures apart by it: a mere declaration is another kind of type. */
struct bpf_map {
	u32 id;
};

struct signal_struct {
	unsigned int flags;
};

struct thread_info {
	u32 cpu;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int flags;
	int prio;
	struct sched_entity se;
	struct sched_ext_entity scx;
	unsigned int policy;
	int nr_cpus_allowed;
	struct cpumask cpus_mask;
	int pid;
	struct signal_struct *signal;
};

struct rq {
	unsigned int nr_running;
	struct task_struct *curr;
	struct task_struct *idle;
};

enum cpuhp_state {
	CPUHP_AP_ACTIVE = 1,
};

struct cpuhp_cpu_state {
	enum cpuhp_state state;
};

struct kernfs_node {
	u64 id;
};

struct task_group {
	int idle;
};

enum cgroup_subsys_id { cpu_cgrp_id };

struct cgroup {
	struct kernfs_node *kn;
	int level;
	void *subsys[1]; /* of each controller; cpu's is the struct task_group */
};

struct scx_init_task_args {
	bool fork;
	struct cgroup *cgroup;
};

struct scx_exit_task_args {
	bool cancelled;
};

struct scx_cgroup_init_args {
	u32 weight;
	u64 bw_period_us;
	u64 bw_quota_us;
	u64 bw_burst_us;
};

struct scx_cpu_release_args {
	struct task_struct *task;
};

struct scx_dump_ctx {
	u64 at_ns;
};

enum scx_exit_kind {
	SCX_EXIT_NONE,
};

struct scx_exit_info {
	enum scx_exit_kind kind;
	s64 exit_code;
	const char *reason;
	char *msg;
	char *dump;
};

struct scx_bpf_dsq_insert_vtime_args {
	u64 dsq_id;
	u64 slice;
	u64 vtime;
	u64 enq_flags;
};

#pragma clang attribute pop

/* The table of callbacks; libbpf matches members by name. */
struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*set_cpumask)(struct task_struct *p, const struct cpumask *cpumask);
	void (*update_idle)(s32 cpu, bool idle);
	void (*cpu_release)(s32 cpu, struct scx_cpu_release_args *args);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
	void (*enable)(struct task_struct *p);
	void (*disable)(struct task_struct *p);
	void (*dump)(struct scx_dump_ctx *ctx);
	void (*dump_cpu)(struct scx_dump_ctx *ctx, s32 cpu, bool idle);
	void (*dump_task)(struct scx_dump_ctx *ctx, struct task_struct *p);
	s32 (*cgroup_init)(struct cgroup *cgrp, struct scx_cgroup_init_args *args);
	void (*cgroup_exit)(struct cgroup *cgrp);
	void (*cgroup_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*cgroup_set_weight)(struct cgroup *cgrp, u32 weight);
	void (*cgroup_set_bandwidth)(struct cgroup *cgrp, u64 period_us, u64 quota_us,
				     u64 burst_us);
	void (*cgroup_set_idle)(struct cgroup *cgrp, bool idle);
	void (*cpu_online)(s32 cpu);
	void (*cpu_offline)(s32 cpu);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u32 dispatch_max_batch;
	u64 flags;
	u32 timeout_ms;
	u32 exit_dump_len;
	u64 hotplug_seq;
	char name[128];
};

/* A bit of sched_ext_ops.flags: what the initial value of the table needs. */
#define SCX_OPS_ENQ_LAST (1ull << 1)

/* Members only matter by name: their values are read from the kernel's BTF. */
enum scx_dsq_id_flags {
	SCX_DSQ_LOCAL = 0x8000000000000002ull,
	SCX_DSQ_LOCAL_ON = 0xc000000000000000ull,
};

enum scx_enq_flags {
	SCX_ENQ_WAKEUP = 1ull,
	SCX_ENQ_PREEMPT = 1ull << 32,
	SCX_ENQ_LAST = 1ull << 41,
};

enum scx_wake_flags {
	SCX_WAKE_FORK = 4,
	SCX_WAKE_TTWU = 8,
	SCX_WAKE_SYNC = 16,
};

enum scx_kick_flags {
	SCX_KICK_IDLE = 1,
	SCX_KICK_PREEMPT = 2,
};

enum scx_ent_flags {
	SCX_TASK_QUEUED = 1,
};

enum scx_exit_code {
	SCX_ECODE_RSN_HOTPLUG = 1ull << 32,
	SCX_ECODE_ACT_RESTART = 1ull << 48,
};

#endif
