/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel functions that a sched_ext scheduler may call, from 6.12 on. Where a
 * name or a signature has changed, the newest that the running kernel has is called;
 * every other one is dead code that the verifier never sees. Each wrapper says since
 * when, so that it can go with the kernels that need it.
 */
#ifndef REVEILLE_SCX_SCX_H
#define REVEILLE_SCX_SCX_H

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define STRUCT_OPS(name, args...) SEC("struct_ops/" #name) BPF_PROG(name, ##args)
#define STRUCT_OPS_SLEEPABLE(name, args...) SEC("struct_ops.s/" #name) BPF_PROG(name, ##args)

/* The iterator of a bpf_for_each() loop, inside it. */
#define BPF_FOR_EACH_ITER (&___it)

/* The rounds of policy/'s longer loops are the verifier's own iterator. */
#define POLICY_FOR(i, n) \
	u32 i;           \
	bpf_for(i, 0, (n))

/* A flag's value in the running kernel. */
#define SCX(type, name) bpf_core_enum_value(enum type, name)

s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) __ksym;
void scx_bpf_destroy_dsq(u64 dsq_id) __ksym;
s32 scx_bpf_dsq_nr_queued(u64 dsq_id) __ksym;
void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym;
s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym;
void scx_bpf_exit_bstr(s64 exit_code, char *fmt, unsigned long long *data, u32 data__sz) __ksym;
void scx_bpf_dump_bstr(char *fmt, unsigned long long *data, u32 data__sz) __ksym;

int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq_id, u64 flags) __ksym;
struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) __ksym;
void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) __ksym;

int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym;
int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;

void bpf_rcu_read_lock(void) __ksym;
void bpf_rcu_read_unlock(void) __ksym;
void bpf_preempt_disable(void) __ksym __weak;
void bpf_preempt_enable(void) __ksym __weak;

struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgrp, int level) __ksym;
void bpf_cgroup_release(struct cgroup *cgrp) __ksym;

struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
void bpf_task_release(struct task_struct *p) __ksym;

/* The runqueues, to be read only. */
extern const struct rq runqueues __ksym;
/* How far each CPU has come online. */
extern const struct cpuhp_cpu_state cpuhp_state __ksym;

/* v6.14: scx_bpf_now(), the runqueue's clock where that is fresh. */
u64 scx_bpf_now(void) __ksym __weak;

/* The CPU whose runqueue the task is on. Every callback asks, so the call is left out where it can be. */
static __always_inline u32 cpu_for(const struct task_struct *p)
{
	return bpf_core_field_exists(p->thread_info.cpu) ? p->thread_info.cpu : (u32)scx_bpf_task_cpu(p);
}

/* The kernel's own queue of this CPU. */
static __always_inline u64 local_queue(u32 cpu)
{
	return SCX(scx_dsq_id_flags, SCX_DSQ_LOCAL_ON) | cpu;
}

static __always_inline u64 scx_now(void)
{
	return bpf_ksym_exists(scx_bpf_now) ? scx_bpf_now() : bpf_ktime_get_ns();
}

/* v6.13: scx_bpf_dsq_insert(); v6.19: one that returns bool. Before: scx_bpf_dispatch(). */
bool scx_bpf_dsq_insert___v2___new(struct task_struct *p, u64 dsq_id, u64 slice,
				   u64 enq_flags) __ksym __weak;
void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) __ksym __weak;
void scx_bpf_dispatch(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) __ksym __weak;

static __always_inline void scx_insert(struct task_struct *p, u64 dsq, u64 slice_ns, u64 enq_flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_insert___v2___new))
		scx_bpf_dsq_insert___v2___new(p, dsq, slice_ns, enq_flags);
	else if (bpf_ksym_exists(scx_bpf_dsq_insert))
		scx_bpf_dsq_insert(p, dsq, slice_ns, enq_flags);
	else
		scx_bpf_dispatch(p, dsq, slice_ns, enq_flags);
}

/* v6.19: the arguments in a struct; v6.13: scx_bpf_dsq_insert_vtime(). */
bool __scx_bpf_dsq_insert_vtime(struct task_struct *p,
				struct scx_bpf_dsq_insert_vtime_args *args) __ksym __weak;
void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
			      u64 enq_flags) __ksym __weak;
void scx_bpf_dispatch_vtime(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
			    u64 enq_flags) __ksym __weak;

static __always_inline void scx_insert_vtime(struct task_struct *p, u64 dsq, u64 slice_ns,
					     u64 vtime, u64 enq_flags)
{
	if (bpf_ksym_exists(__scx_bpf_dsq_insert_vtime)) {
		struct scx_bpf_dsq_insert_vtime_args args = {
			.dsq_id = dsq,
			.slice = slice_ns,
			.vtime = vtime,
			.enq_flags = enq_flags,
		};

		__scx_bpf_dsq_insert_vtime(p, &args);
	} else if (bpf_ksym_exists(scx_bpf_dsq_insert_vtime)) {
		scx_bpf_dsq_insert_vtime(p, dsq, slice_ns, vtime, enq_flags);
	} else {
		scx_bpf_dispatch_vtime(p, dsq, slice_ns, vtime, enq_flags);
	}
}

/* v7.1: with flags; v6.13: scx_bpf_dsq_move_to_local(). Before: scx_bpf_consume(). */
bool scx_bpf_dsq_move_to_local___v2___new(u64 dsq_id, u64 enq_flags) __ksym __weak;
bool scx_bpf_dsq_move_to_local(u64 dsq_id) __ksym __weak;
bool scx_bpf_consume(u64 dsq_id) __ksym __weak;

static __always_inline bool scx_move_to_local(u64 dsq)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move_to_local___v2___new))
		return scx_bpf_dsq_move_to_local___v2___new(dsq, 0);
	if (bpf_ksym_exists(scx_bpf_dsq_move_to_local))
		return scx_bpf_dsq_move_to_local(dsq);
	return scx_bpf_consume(dsq);
}

/* v6.13: scx_bpf_dsq_move*(). Before: scx_bpf_dispatch_from_dsq*(). */
bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it__iter, struct task_struct *p, u64 dsq_id,
		      u64 enq_flags) __ksym __weak;
bool scx_bpf_dispatch_from_dsq(struct bpf_iter_scx_dsq *it__iter, struct task_struct *p,
			       u64 dsq_id, u64 enq_flags) __ksym __weak;
bool scx_bpf_dsq_move_vtime(struct bpf_iter_scx_dsq *it__iter, struct task_struct *p, u64 dsq_id,
			    u64 enq_flags) __ksym __weak;
bool scx_bpf_dispatch_vtime_from_dsq(struct bpf_iter_scx_dsq *it__iter, struct task_struct *p,
				     u64 dsq_id, u64 enq_flags) __ksym __weak;
void scx_bpf_dsq_move_set_vtime(struct bpf_iter_scx_dsq *it__iter, u64 vtime) __ksym __weak;
void scx_bpf_dispatch_from_dsq_set_vtime(struct bpf_iter_scx_dsq *it__iter,
					 u64 vtime) __ksym __weak;

#define scx_move(it, p, dsq)                                                              \
	(bpf_ksym_exists(scx_bpf_dsq_move) ? scx_bpf_dsq_move((it), (p), (dsq), 0) :       \
					     scx_bpf_dispatch_from_dsq((it), (p), (dsq), 0))

#define scx_move_vtime(it, p, dsq, vtime)                                                 \
	({                                                                                 \
		bool moved;                                                                \
		if (bpf_ksym_exists(scx_bpf_dsq_move_vtime)) {                             \
			scx_bpf_dsq_move_set_vtime((it), (vtime));                         \
			moved = scx_bpf_dsq_move_vtime((it), (p), (dsq), 0);               \
		} else {                                                                   \
			scx_bpf_dispatch_from_dsq_set_vtime((it), (vtime));                \
			moved = scx_bpf_dispatch_vtime_from_dsq((it), (p), (dsq), 0);      \
		}                                                                          \
		moved;                                                                     \
	})

/*
 * v7.1: bpf_task_work_schedule_resume() as below. From v6.18 on with one argument more, which
 * only the verifier gives; in v6.19 and v7.0 under another name.
 */
typedef int (*task_work_callback)(struct bpf_map *map, void *key, void *value);
int bpf_task_work_schedule_resume___new(struct task_struct *task, struct bpf_task_work *tw,
					void *map, task_work_callback callback) __ksym __weak;
int bpf_task_work_schedule_resume(struct task_struct *task, struct bpf_task_work *tw, void *map__map,
				  task_work_callback callback, void *aux__prog) __ksym __weak;
int bpf_task_work_schedule_resume_impl(struct task_struct *task, struct bpf_task_work *tw,
				       void *map__map, task_work_callback callback,
				       void *aux__prog) __ksym __weak;

static __always_inline bool has_task_work(void)
{
	return bpf_ksym_exists(bpf_task_work_schedule_resume___new) ||
	       bpf_ksym_exists(bpf_task_work_schedule_resume) ||
	       bpf_ksym_exists(bpf_task_work_schedule_resume_impl);
}

#define schedule_at_exit(p, tw, map, callback)                                             \
	(bpf_ksym_exists(bpf_task_work_schedule_resume___new) ?                            \
		 bpf_task_work_schedule_resume___new((p), (tw), (map), (callback)) :       \
	 bpf_ksym_exists(bpf_task_work_schedule_resume) ?                                  \
		 bpf_task_work_schedule_resume((p), (tw), (map), (callback), NULL) :       \
		 bpf_task_work_schedule_resume_impl((p), (tw), (map), (callback), NULL))

/* v6.19: from anywhere; before, from ops.cpu_release() alone. */
void scx_bpf_reenqueue_local___v2___new(void) __ksym __weak;
u32 scx_bpf_reenqueue_local(void) __ksym __weak;

/* v6.19: scx_bpf_task_set_slice(); before, the member was written. */
bool scx_bpf_task_set_slice(struct task_struct *p, u64 slice) __ksym __weak;

static __always_inline void scx_set_slice(struct task_struct *p, u64 slice_ns)
{
	if (bpf_ksym_exists(scx_bpf_task_set_slice))
		scx_bpf_task_set_slice(p, slice_ns);
	else
		p->scx.slice = slice_ns;
}

/* Leaves for good: the loader is told why, and whether it is to load again. */
static __always_inline void scx_leave(s64 code, char *why)
{
	unsigned long long none = 0;

	scx_bpf_exit_bstr(code, why, &none, 0);
}

#endif
