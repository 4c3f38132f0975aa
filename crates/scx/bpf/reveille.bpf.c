/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scx_reveille: the decisions of policy/ in a running kernel. This file is the table of
 * callbacks; what they do stands in the headers, which data flows through in the order
 * select, queue, clock, idle.
 */
#include "dump.h"

char LICENSE[] SEC("license") = "GPL";

/* Why the kernel ended it, for the loader. */
struct exit_record {
	s64 code;
	u32 kind;
	u32 written;
	char reason[128];
	char message[1024];
	char dump[65536];
};

struct exit_record exit_record;

s32 STRUCT_OPS(reveille_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_state *t = task_of(p);
	enum claim claimed = CLAIM_LOST;
	u32 cpu;

	if (!t)
		return prev_cpu;
	if (wake_flags & SCX(scx_wake_flags, SCX_WAKE_TTWU)) {
		cpu = place_wakee(p, t, prev_cpu, wake_flags, &claimed);
	} else {
		bool got;

		COUNT(forks);
		cpu = place_new(set_of(p, t), SMP_CPU(), prev_cpu, &got);
		claimed = got ? CLAIM_IDLE : CLAIM_LOST;
	}
	t->migrated = cpu != (u32)prev_cpu;
	t->claimed = 0;
	if (claimed == CLAIM_LOST)
		return cpu;
	/* Whether its group may run is asked on the CPU where it would. */
	if (limit_for(t)) {
		t->claimed = cpu + 1;
		t->claim = claimed;
		return cpu;
	}
	COUNT(direct);
	scx_insert(p, SCX(scx_dsq_id_flags, SCX_DSQ_LOCAL), slice_ns,
		   claimed == CLAIM_SCHED_IDLE ? SCX(scx_enq_flags, SCX_ENQ_PREEMPT) : 0);
	return cpu;
}

void STRUCT_OPS(reveille_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_state *t = task_of(p);

	if (!t) {
		scx_insert(p, SCX(scx_dsq_id_flags, SCX_DSQ_LOCAL), slice_ns, 0);
		return;
	}
	enqueue_task(p, t, cpu_for(p), enq_flags);
}

void STRUCT_OPS(reveille_dispatch, s32 cpu, struct task_struct *prev)
{
	dispatch_cpu(cpu, prev);
}

void STRUCT_OPS(reveille_running, struct task_struct *p)
{
	u32 cpu = cpu_for(p);
	struct cpu_state *c = cpu_of(cpu);
	struct task_state *t = task_of(p);

	if (!t)
		return;
	to_clock_of(t, cpu);
	limit_credit(t, cpu);
	t->exec_start_ns = p->se.sum_exec_runtime;
	t->waits_since_j = 0;
	c->curr_share = last_share_of(p, t);
	if (t->lifted) {
		/* The queue's clock does not go by it; no wakee is far enough ahead of its turn. */
		t->mid_turn = 1;
		c->curr_vtime = c->clock - LIFTED_VTIME;
		c->running_since_ns = scx_now();
	} else {
		set_clock(c, t, scx_now());
	}
	c->curr.wakee_flips = t->policy.wakee_flips;
	c->curr.dur_avg_ns = t->policy.dur_avg_ns;
	c->curr.load_avg = t->policy.load_avg;
	c->curr.flags = t->policy.flags;
	c->curr.id = t->policy.id;
	c->has_curr = 1;
	if (p->policy == SCHED_IDLE && nr_running(cpu) == 1)
		set_bit(llc_of(place_of(cpu)->llc)->sched_idle, place_of(cpu)->position);
	c->stop_at_ns = 0;
	if (c->unasked && c->online && !scx_bpf_dsq_nr_queued(local_queue(cpu)))
		c->unasked = 0;
	if (exits_seen)
		t->at_exit = 0;
	time_turn(p, t, cpu);
}

void STRUCT_OPS(reveille_stopping, struct task_struct *p, bool runnable)
{
	u32 cpu = cpu_for(p), slot;
	struct cpu_state *c = cpu_of(cpu);
	struct task_state *t = task_of(p);
	u64 ran_ns, now_ns = scx_now(), left_ns;
	/*
	 * Off the queue with a state of 0 it does not sleep: the kernel changes something of it, and its turn
	 * goes on. One that was switched away in returns_to_user() gets its allowed CPUs back when it leaves.
	 */
	bool sleeps = !runnable && p->__state;

	c->has_curr = 0;
	c->stop_at_ns = 0;
	if (!t)
		return;
	t->displaced = 0;
	/* A higher class takes the CPU, and 6.17 does not say so: the rest of the turn would wait right behind it. */
	if (runnable && !has_task_work() && p->scx.slice)
		scx_set_slice(p, 0);
	ran_ns = charge(p, t);
	if (t->lifted) {
		t->lifted = !sleeps && (t->leaves || !runnable);
		t->leaves = 0;
		limit_debt(p, t);
	}
	if (p->policy == SCHED_IDLE)
		take_bit(llc_of(place_of(cpu)->llc)->sched_idle, place_of(cpu)->position);
	slot = limit_for(t);
	if (slot)
		account(slot, cpu, ran_ns,
			sleeps ? ACCOUNT_LEAVE | ACCOUNT_THROTTLE : ACCOUNT_THROTTLE, &left_ns);
	fold_cpu(c, cpu, ran_ns, now_ns);
	if (!sleeps)
		return;
	t->mid_turn = 0;
	policy_task_slept(&t->policy);
	fold_task(t, weight_of(p), now_ns);
	uncount_task(t);
}

void STRUCT_OPS(reveille_update_idle, s32 cpu, bool idle)
{
	if (idle)
		becomes_idle(cpu);
	else
		ends_idle(cpu);
}

/*
 * A task of a higher class takes the CPU: what waits right there goes elsewhere. Not where the CPU goes
 * offline: the kernel would put it right back, once for each task that the stopper pushes off, and 7.3
 * ejects a scheduler that has had a task re-enqueued 257 times before it runs.
 */
void STRUCT_OPS(reveille_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	if (is_active(cpu) && bpf_ksym_exists(scx_bpf_reenqueue_local))
		scx_bpf_reenqueue_local();
}

/* The same from v6.19 on, where cpu_release() is deprecated. */
SEC("tp_btf/sched_switch")
int BPF_PROG(after_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	if (next->prio < MAX_RT_PRIO && scx_bpf_dsq_nr_queued(SCX(scx_dsq_id_flags, SCX_DSQ_LOCAL)) > 0 &&
	    is_active(SMP_CPU()) && bpf_ksym_exists(scx_bpf_reenqueue_local___v2___new))
		scx_bpf_reenqueue_local___v2___new();
	return 0;
}

/* Where the task may run, as words of its caches' positions. */
static __noinline int note_allowed(struct task_struct *p, struct task_state *t,
				   const struct cpumask *mask)
{
	u64 bits[MAX_CPUS / 64] = {};
	struct allowed_set *set;
	bool all = true;
	int i;

	/* Unreadable, it counts as all CPUs: the kernel moves a task that is where it may not be. */
	if (bpf_probe_read_kernel(bits, (n_cpu_ids + 63) / 64 * 8, mask))
		__builtin_memset(bits, 0xff, sizeof(bits));
	for_each(i, n_cpu_ids)
	{
		if (place_of(i)->smt_width && !(bits[(i / 64) & (MAX_CPUS / 64 - 1)] >> (i % 64) & 1))
			all = false;
	}
	t->nr_allowed = p->nr_cpus_allowed;
	t->policy.flags =
		(p->flags & PF_KTHREAD) && t->nr_allowed == 1 ? POLICY_TASK_PERCPU_KTHREAD : 0;
	t->policy.affinity = !all;
	if (all)
		return 0;
	set = bpf_task_storage_get(&allowed_sets, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!set)
		return 0;
	for_each(i, n_words)
	{
		set->words[i & (MAX_WORDS - 1)] = 0;
	}
	for_each(i, n_cpu_ids)
	{
		if (place_of(i)->smt_width && (bits[(i / 64) & (MAX_CPUS / 64 - 1)] >> (i % 64) & 1))
			allow(set, i);
	}
	return 0;
}

void STRUCT_OPS(reveille_set_cpumask, struct task_struct *p, const struct cpumask *mask)
{
	struct task_state *t = task_of(p);

	if (t)
		note_allowed(p, t, mask);
}

/* The cgroup's number; 0, the root's, if it has none. */
static __noinline u32 number_of(struct cgroup *cgrp)
{
	struct group_number *found;

	if (!cgrp)
		return 0;
	found = bpf_cgrp_storage_get(&group_numbers, cgrp, NULL, 0);
	return found ? found->group : 0;
}

s32 STRUCT_OPS_SLEEPABLE(reveille_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_state *t;
	u32 cpu = cpu_for(p);

	t = bpf_task_storage_get(&tasks, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t)
		return -12; /* ENOMEM */
	t->policy.id = p->pid;
	t->policy.last_wakee = NONE;
	t->policy.prev_cpu = cpu;
	t->policy.recent_used_cpu = cpu;
	t->policy.sum_exec_ns = p->se.sum_exec_runtime;
	t->policy.prev_sleep_sum_ns = p->se.sum_exec_runtime;
	t->exec_start_ns = p->se.sum_exec_runtime;
	t->folded_exec_ns = p->se.sum_exec_runtime;
	t->folded_ns = scx_now();
	t->clock_cpu = cpu;
	/* START_DEBIT: one slice behind those that are there. */
	t->vtime = cpu_of(cpu)->clock + (features & POLICY_START_DEBIT ? slice_ns : 0);
	if (bpf_core_field_exists(args->cgroup)) {
		/* It is the task's own, and stays; the verifier trusts it in here only. */
		bpf_rcu_read_lock();
		t->group = number_of(args->cgroup);
		bpf_rcu_read_unlock();
	}
	note_allowed(p, t, &p->cpus_mask);
	return 0;
}

void STRUCT_OPS(reveille_disable, struct task_struct *p)
{
	struct task_state *t = task_of(p);

	if (t)
		uncount_task(t);
}

void STRUCT_OPS(reveille_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	u64 task = (u64)p;

	/* Where it never had any, the search fails at once. */
	bpf_map_delete_elem(&exit_works, &task);
}

/* A free number for a group, 0 if there is none. */
static __noinline u32 take_number(void)
{
	u32 from = last_group;
	int i;

	for_each(i, MAX_GROUPS - 1 - SHARED_GROUP)
	{
		u32 group = (from + i) % (MAX_GROUPS - 1 - SHARED_GROUP) + SHARED_GROUP + 1;
		struct group *g = group_of(group);

		if (g && !__sync_val_compare_and_swap(&g->in_use, 0, 1)) {
			last_group = group;
			return group;
		}
	}
	return 0;
}

/*
 * cpu.idle of a group, for kernels that tell when it is written (6.19). Linux 7.0 does not tell it of
 * groups that are there when the scheduler is loaded.
 */
static __always_inline bool is_idle(struct cgroup *cgrp)
{
	u64 cpu = bpf_core_enum_value(enum cgroup_subsys_id, cpu_cgrp_id);
	void *at = (void *)cgrp + bpf_core_field_offset(cgrp->subsys) + cpu * sizeof(void *);
	struct sched_ext_ops *ops = NULL;
	struct task_group *tg = NULL;
	int idle = 0;

	if (!bpf_core_field_exists(ops->cgroup_set_idle) || bpf_probe_read_kernel(&tg, sizeof(tg), at) || !tg)
		return false;
	return !bpf_probe_read_kernel(&idle, sizeof(idle), &tg->idle) && idle;
}

s32 STRUCT_OPS_SLEEPABLE(reveille_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	struct group_number *found;
	struct group *g = NULL;
	u32 group = 0, parent = 0;

	if (cgrp->level > 0) {
		struct cgroup *above = bpf_cgroup_ancestor(cgrp, cgrp->level - 1);

		if (above) {
			parent = number_of(above);
			bpf_cgroup_release(above);
		}
		group = take_number();
		if (group)
			g = group_of(group);
	}
	found = bpf_cgrp_storage_get(&group_numbers, cgrp, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!found) {
		if (g)
			g->in_use = 0;
		return -12; /* ENOMEM */
	}
	/* No number left: its tasks count as its parent's, limits included. The loader says so. */
	found->group = g ? group : parent || !cgrp->level ? parent : SHARED_GROUP;
	if (g) {
		g->cgroup_id = cgrp->kn->id;
		g->parent = parent;
		g->weight = WEIGHT_DEFAULT;
		g->tasks_weight = 0;
		g->members = 0;
		g->groups_weight = 0;
		g->nearest = 0;
		set_group_weight(g, args->weight, is_idle(cgrp));
	} else if (cgrp->level > 0) {
		__sync_fetch_and_add(&groups_without_number, 1);
	}
	if (!has_bandwidth)
		return 0;
	/* Here it may sleep, where limits are written not: as many as could be needed. */
	if (g && park_queues < MAX_LIMITS - 1 && !scx_bpf_create_dsq(PARK_QUEUES + park_queues + 1, -1))
		park_queues++;
	if (bpf_core_field_exists(args->bw_period_us) && args->bw_quota_us != ~0ull) {
		bpf_rcu_read_lock();
		write_limit(found, cgrp->kn->id, args->bw_period_us, args->bw_quota_us,
			    args->bw_burst_us);
		bpf_rcu_read_unlock();
	}
	return 0;
}

void STRUCT_OPS_SLEEPABLE(reveille_cgroup_exit, struct cgroup *cgrp)
{
	struct group_number *found = bpf_cgrp_storage_get(&group_numbers, cgrp, NULL, 0);
	u32 group = found ? found->group : 0;
	struct group *g = group_of(group);

	bpf_rcu_read_lock();
	forget_refusal(found);
	bpf_rcu_read_unlock();
	if (!g || cgrp->level <= 0)
		return;
	if (g->cgroup_id != cgrp->kn->id) {
		__sync_fetch_and_add(&groups_without_number, -1);
		return;
	}
	if (has_bandwidth) {
		bpf_rcu_read_lock();
		drop_limit(group);
		bpf_rcu_read_unlock();
	}
	/* What is counted stays: a CPU may still have to say that the last task has left (settle_left()). */
	g->cgroup_id = 0;
	__sync_fetch_and_and(&g->in_use, 0);
}

void STRUCT_OPS(reveille_cgroup_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	struct task_state *t = task_of(p);

	if (!t)
		return;
	uncount_task(t);
	t->group = number_of(to);
}

/* What is kept of this cgroup alone; none for the root, nor if there was no number for it. */
static __always_inline struct group *own_group(struct cgroup *cgrp)
{
	u32 group = number_of(cgrp);
	struct group *g = group ? group_of(group) : NULL;

	return g && g->cgroup_id == cgrp->kn->id ? g : NULL;
}

void STRUCT_OPS(reveille_cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
	struct group *g = own_group(cgrp);

	if (g)
		set_group_weight(g, weight, g->idle);
}

void STRUCT_OPS(reveille_cgroup_set_idle, struct cgroup *cgrp, bool idle)
{
	struct group *g = own_group(cgrp);

	if (g)
		set_group_weight(g, g->cpu_weight, idle);
}

void STRUCT_OPS(reveille_cgroup_set_bandwidth, struct cgroup *cgrp, u64 period_us, u64 quota_us,
		u64 burst_us)
{
	struct group_number *found = bpf_cgrp_storage_get(&group_numbers, cgrp, NULL, 0);

	if (found && cgrp->level > 0)
		write_limit(found, cgrp->kn->id, period_us, quota_us, burst_us);
}

/* The kernel asks for one that could be written. */
static char new_cpu[] = "a CPU came online that was not there before";

/* CPUs come and go; one that was away when the topology was read has no place in it. */
void STRUCT_OPS_SLEEPABLE(reveille_cpu_online, s32 cpu)
{
	if (!place_of(cpu)->smt_width) {
		scx_leave(SCX(scx_exit_code, SCX_ECODE_ACT_RESTART) |
				  SCX(scx_exit_code, SCX_ECODE_RSN_HOTPLUG),
			  new_cpu);
		return;
	}
	cpu_of(cpu)->online = 1;
}

void STRUCT_OPS_SLEEPABLE(reveille_cpu_offline, s32 cpu)
{
	struct llc_state *l = llc_of(place_of(cpu)->llc);

	cpu_of(cpu)->online = 0;
	cpu_of(cpu)->unasked = 1;
	take_bit(l->idle, place_of(cpu)->position);
	take_bit(l->sched_idle, place_of(cpu)->position);
	bpf_rcu_read_lock();
	leave_cpu(cpu);
	bpf_rcu_read_unlock();
}

/* Of a map of timers, with the map's callback. */
#define init_timer(t, map, callback)                                                      \
	({                                                                                 \
		s32 failed = bpf_timer_init(&(t)->timer, (map), CLOCK_MONOTONIC);          \
		failed ? failed : bpf_timer_set_callback(&(t)->timer, (callback));         \
	})

s32 STRUCT_OPS_SLEEPABLE(reveille_init)
{
	struct group *others = group_of(SHARED_GROUP);
	struct timer *timer;
	u64 now_ns = scx_now();
	s32 error;
	int i;

	for_each(i, n_cpu_ids)
	{
		struct cpu_state *c = cpu_of(i);
		u32 key = i;

		if (!place_of(i)->smt_width)
			continue;
		c->online = 1;
		allow(&everywhere, i);
		c->scan.avg_idle_ns = 2 * MAX_IDLE_BALANCE_COST_NS;
		c->scan.wake_avg_idle_ns = 2 * MAX_IDLE_BALANCE_COST_NS;
		c->scan.wake_stamp_j = bpf_jiffies64();
		c->folded_ns = now_ns;
		error = scx_bpf_create_dsq(i, -1);
		if (error)
			return error;
		timer = bpf_map_lookup_elem(&stop_timers, &key);
		if (!timer)
			break;
		error = init_timer(timer, &stop_timers, stop_timer_fired);
		if (error)
			return error;
	}
	if (others)
		others->weight = WEIGHT_DEFAULT;
	for_each(i, n_shards)
	{
		error = scx_bpf_create_dsq(SHARD_QUEUES + i, -1);
		if (error)
			return error;
	}
	if (has_bandwidth) {
		struct limit *shared = limit_at(SHARED_LIMIT);

		error = scx_bpf_create_dsq(PARK_QUEUES + SHARED_LIMIT, -1);
		if (error)
			return error;
		if (shared)
			shared->state = LIMIT_HELD;
		park_queues = last_limit = SHARED_LIMIT;
	}
	for_each(i, has_bandwidth ? MAX_LIMITS : 0)
	{
		u32 key = i;

		timer = bpf_map_lookup_elem(&limit_timers, &key);
		if (!timer)
			break;
		error = init_timer(timer, &limit_timers, limit_timer_fired);
		if (error)
			return error;
	}
	for_each(i, n_llcs)
	{
		u32 key = i;

		timer = bpf_map_lookup_elem(&llc_timers, &key);
		if (!timer)
			break;
		error = init_timer(timer, &llc_timers, llc_timer_fired);
		if (!error)
			error = bpf_timer_start(&timer->timer, REFRESH_MIN_NS, 0);
		if (error)
			return error;
	}
	return 0;
}

void STRUCT_OPS(reveille_dump_cpu, struct scx_dump_ctx *dump, s32 cpu, bool idle)
{
	dump_cpu(cpu);
}

void STRUCT_OPS(reveille_dump_task, struct scx_dump_ctx *dump, struct task_struct *p)
{
	struct task_state *t = task_of(p);

	if (t)
		dump_task(p, t);
}

void STRUCT_OPS(reveille_exit, struct scx_exit_info *info)
{
	bpf_probe_read_kernel_str(exit_record.reason, sizeof(exit_record.reason), info->reason);
	bpf_probe_read_kernel_str(exit_record.message, sizeof(exit_record.message), info->msg);
	bpf_probe_read_kernel_str(exit_record.dump, sizeof(exit_record.dump), info->dump);
	exit_record.code = info->exit_code;
	exit_record.kind = info->kind;
	__sync_fetch_and_or(&exit_record.written, 1);
}

SEC(".struct_ops.link")
struct sched_ext_ops reveille_ops = {
	.select_cpu = (void *)reveille_select_cpu,
	.enqueue = (void *)reveille_enqueue,
	.dispatch = (void *)reveille_dispatch,
	.running = (void *)reveille_running,
	.stopping = (void *)reveille_stopping,
	.update_idle = (void *)reveille_update_idle,
	.cpu_release = (void *)reveille_cpu_release,
	.set_cpumask = (void *)reveille_set_cpumask,
	.init_task = (void *)reveille_init_task,
	.exit_task = (void *)reveille_exit_task,
	.disable = (void *)reveille_disable,
	.cgroup_init = (void *)reveille_cgroup_init,
	.cgroup_exit = (void *)reveille_cgroup_exit,
	.cgroup_move = (void *)reveille_cgroup_move,
	.cgroup_set_weight = (void *)reveille_cgroup_set_weight,
	.cgroup_set_bandwidth = (void *)reveille_cgroup_set_bandwidth,
	.cgroup_set_idle = (void *)reveille_cgroup_set_idle,
	.cpu_online = (void *)reveille_cpu_online,
	.cpu_offline = (void *)reveille_cpu_offline,
	.init = (void *)reveille_init,
	.exit = (void *)reveille_exit,
	.dump_cpu = (void *)reveille_dump_cpu,
	.dump_task = (void *)reveille_dump_task,
	.exit_dump_len = sizeof(exit_record.dump),
	/* A task whose group is out of runtime must not go on because there is no other. */
	.flags = SCX_OPS_ENQ_LAST,
	.name = "reveille",
};

#ifdef REVEILLE_POLICY_FILE
#include "own.h"
#endif
