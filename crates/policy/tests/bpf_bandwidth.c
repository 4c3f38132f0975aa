/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bandwidth control as the callbacks of a BPF scheduler would use it, without any
 * kernel header: shows that the arithmetic compiles for BPF with no library, no call
 * out and no signed division. Every index is masked, as a verifier would ask.
 */
#include "../../../policy/bandwidth.h"

#define SEC(name) __attribute__((section(name), used))

#define N_GROUPS 64
#define N_CPUS 512

struct policy_bw_pool pools[N_GROUPS];
struct policy_bw_queue queues[N_GROUPS][N_CPUS];
u64 slice_ns = 5000000;

struct event {
	u64 now_ns;
	u64 delta_ns;
	u32 group;
	u32 cpu;
	u32 last;
};

static inline struct policy_bw_pool *pool_of(const struct event *e)
{
	return &pools[e->group & (N_GROUPS - 1)];
}

static inline struct policy_bw_queue *queue_of(const struct event *e)
{
	return &queues[e->group & (N_GROUPS - 1)][e->cpu & (N_CPUS - 1)];
}

/* A task stops running: 1 if its queue is throttled now. */
SEC("struct_ops/stopping") u32 stopping(struct event *e)
{
	struct policy_bw_pool *b = pool_of(e);
	struct policy_bw_queue *q = queue_of(e);

	policy_bw_account(b, q, e->delta_ns, slice_ns, e->now_ns);
	if (e->last)
		policy_bw_return(b, q, slice_ns, e->now_ns);
	return policy_bw_throttle(b, q, e->now_ns);
}

/* A tick of a running task: 1 if it is out of runtime. */
SEC("struct_ops/tick") u32 tick(struct event *e)
{
	return !policy_bw_account(pool_of(e), queue_of(e), e->delta_ns, slice_ns, e->now_ns);
}

/* Either timer of a group: 1 if the queue at the head of its list runs again. */
SEC("struct_ops/timer") u32 timer(struct event *e)
{
	struct policy_bw_pool *b = pool_of(e);
	struct policy_bw_queue *q = queue_of(e);
	u32 step, passes = 0;

	if (b->slack_started && b->slack_at_ns <= e->now_ns &&
	    !policy_bw_slack(b, slice_ns, e->now_ns))
		return 0;
	do {
		step = policy_bw_period(b, e->now_ns);
	} while (step == POLICY_BW_DISTRIBUTE && ++passes < POLICY_BW_LATE_PASSES);
	if (passes == POLICY_BW_LATE_PASSES)
		policy_bw_stretch(b);
	if (!q->throttled || !policy_bw_grant(b, q))
		return 0;
	policy_bw_unthrottle(b, q, e->now_ns);
	return 1;
}

struct settings {
	u64 quota_ns;
	u64 period_ns;
	u64 burst_ns;
	u64 parent_ratio;
	u64 now_ns;
	u32 group;
};

/* cpu.max is written: which rule it breaks, or 0. */
SEC("struct_ops/cgroup_set_bandwidth") u32 cgroup_set_bandwidth(struct settings *s)
{
	u64 ratio = policy_bw_ratio(s->quota_ns, s->period_ns);
	u32 error = policy_bw_check(s->quota_ns, s->period_ns, s->burst_ns);

	if (!error)
		error = policy_bw_check_child(policy_bw_effective(ratio, s->parent_ratio),
					      s->parent_ratio);
	if (!error)
		policy_bw_set(&pools[s->group & (N_GROUPS - 1)], s->quota_ns, s->period_ns,
			      s->burst_ns, s->now_ns);
	return error;
}

SEC("license") char LICENSE[] = "GPL";
