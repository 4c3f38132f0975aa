/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who runs although its weight or its limit says no. A task that has waited for a quarter of
 * the watchdog's time is lifted to the head of its CPU's queue for a turn of FLOOR_TURN_NS. One
 * of a throttled group that is in the kernel, where it may hold locks, runs until it is about to
 * return to user mode, as in the kernel from 6.18 on (commit e1fad12dcb66). Both are charged for
 * it, to virtual time and to the quota.
 *
 * 6.18 and newer call returns_to_user() there. Before, after_syscall() is called where a system call
 * ends, and turns of EXIT_TURN_NS find a task in user mode: before_schedule() tells by how deep the
 * stack is. Entering that program preempts the task, which goes on with a new slice, and must not be
 * parked in there. in_schedule() is called with interrupts off: its kick takes the CPU behind it.
 */
#ifndef REVEILLE_SCX_DEBT_H
#define REVEILLE_SCX_DEBT_H

#include "clock.h"

/* No run is cut shorter than this: the overrun is a debt. */
#define FLOOR_TURN_NS 10000ull
/*
 * What before_schedule() waits for gets more: it must reach user mode. So does a displaced task: it leaves
 * its CPU as soon as it can.
 */
#define EXIT_TURN_NS 200000ull
/* So far before a queue's clock lifted tasks stand, in the order in which they began to wait. */
#define LIFTED_VTIME (1ull << 50)
/* Looks for tasks that have waited too long, per time that they may. */
#define LOOKS_PER_FLOOR 8

struct exit_work {
	struct bpf_task_work work;
};

/*
 * By the task's address: kernels keep task work in arrays and hash tables only, and an execve() may give a
 * thread another id. The loader makes it as large as there may be threads.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct exit_work);
} exit_works SEC(".maps");

static __always_inline bool is_dying(const struct task_struct *p)
{
	return (p->flags & PF_EXITING) || (p->signal && (p->signal->flags & SIGNAL_GROUP_EXIT));
}

/*
 * Threads of the kernel wait a look at most, and have whole slices then: others wait for them, such as
 * the watchdog's worker, which has to run within half of its time.
 */
static __always_inline bool has_whole_turns(const struct task_struct *p)
{
	return (p->flags & PF_KTHREAD) || is_dying(p);
}

static __always_inline bool is_overdue(const struct task_struct *p, const struct task_state *t, u64 now_j)
{
	u64 most_j = p->flags & PF_KTHREAD ? floor_ticks / LOOKS_PER_FLOOR : floor_ticks;

	return t->waits_since_j && (s64)(now_j - t->waits_since_j) >= (s64)most_j;
}

/*
 * The virtual time that a task owes is bounded: what it weighs may have changed since. A turn is a slice
 * and ends with a tick; two of them. Returns whether it owed more.
 */
static __noinline bool limit_debt(struct task_struct *p, struct task_state *t)
{
	u64 most = cpu_of(t->clock_cpu)->clock + charged(2 * (slice_ns + 1000000000 / hz), share_of(p, t));

	if (!before(most, t->vtime))
		return false;
	t->vtime = most;
	return true;
}

/* Its next turn is short. Returns where it stands in this CPU's queue: before all that are not lifted. */
static __always_inline u64 go_first(struct task_struct *p, struct task_state *t, u32 cpu)
{
	limit_debt(p, t);
	t->lifted = 1;
	return cpu_of(cpu)->clock - LIFTED_VTIME + t->waits_since_j;
}

/*
 * May the task no longer run on the CPU that it waits for? In returns_to_user() it cannot migrate, and a
 * write of its cpuset or its affinity blocks until it has left.
 */
static __always_inline bool is_displaced(struct task_struct *p, u32 cpu)
{
	u64 word;

	return !bpf_probe_read_kernel(&word, sizeof(word), (void *)&p->cpus_mask + cpu / 64 * sizeof(word)) &&
	       !(word >> (cpu % 64) & 1);
}

/*
 * It waits in the DSQ of the loop around: to the head of its CPU's queue. Where it is not there any more
 * it stays marked: another CPU may just have lifted it, and else its next turn is short, no more.
 */
#define lift(it, p, t)                                                                     \
	({                                                                                 \
		u32 lift_cpu = cpu_for(p);                                                 \
		bool lifted = scx_move_vtime((it), (p), (u64)lift_cpu,                     \
					     go_first((p), (t), lift_cpu));                \
		if (lifted)                                                                \
			COUNT(lifted);                                                     \
		lifted;                                                                    \
	})

/*
 * Tasks of this queue that have waited too long, and those that are to die, go first. One that has
 * not had its turn by the next look stands where dispatch is not called: right before its CPU with it.
 * One whose weight was raised comes forward to where that puts it.
 */
static __noinline int lift_overdue(u64 dsq)
{
	u64 now_j = bpf_jiffies64();
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, dsq, 0)
	{
		struct task_state *t = task_of(p);

		if (!t)
			continue;
		if (t->lifted) {
			/* Other CPUs may take it from here, but not from behind a task of a higher class. */
			if (!is_taken(cpu_for(p)) || p->nr_cpus_allowed == 1)
				scx_move(BPF_FOR_EACH_ITER, p, local_queue(cpu_for(p)));
		} else if (is_overdue(p, t, now_j) || is_dying(p))
			lift(BPF_FOR_EACH_ITER, p, t);
		else if (dsq < SHARD_QUEUES && limit_debt(p, t))
			scx_move_vtime(BPF_FOR_EACH_ITER, p, dsq, t->vtime);
	}
	return 0;
}

/*
 * The task is about to return to user mode, and holds no locks: if its group is throttled, it is
 * put aside when the kick switches away from it, right here. It cannot migrate in here, and the
 * loader has asked for such tasks to be enqueued all the same.
 */
static int returns_to_user(struct bpf_map *map, void *key, void *value)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct task_state *t;

	bpf_rcu_read_lock();
	t = task_of(p);
	if (t) {
		t->exit_pending = 0;
		t->at_exit = 1;
	}
	bpf_rcu_read_unlock();
	/* Switched away inside the kick it would hold RCU up: that holds a read lock. */
	bpf_preempt_disable();
	scx_bpf_kick_cpu(bpf_get_smp_processor_id(), SCX(scx_kick_flags, SCX_KICK_PREEMPT));
	bpf_preempt_enable();
	bpf_rcu_read_lock();
	t = task_of(p);
	if (t)
		t->at_exit = 0;
	bpf_rcu_read_unlock();
	return 0;
}

/*
 * Bytes of stack between the registers of user mode and a call of schedule() on the way back there:
 * 56 on Debian 6.17. Any other call of a runnable task that holds a lock is deeper than this.
 */
#define EXIT_DEPTH 192

/* Preemption in kernel mode does not come by here: it calls __schedule(). */
SEC("fentry/schedule")
int BPF_PROG(before_schedule)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct task_state *t = throttled_queues && !p->__state ? task_of(p) : NULL;

	if (t && t->exit_pending)
		t->exit_seen = (u64)bpf_task_pt_regs(p) - (u64)ctx < EXIT_DEPTH;
	return 0;
}

SEC("fentry/rcu_note_context_switch")
int BPF_PROG(in_schedule, bool preempt)
{
	struct task_state *t = throttled_queues ? task_of(bpf_get_current_task_btf()) : NULL;

	if (t && t->exit_seen) {
		t->exit_seen = 0;
		if (!preempt) {
			t->exit_pending = 0;
			t->at_exit = 1;
			scx_bpf_kick_cpu(bpf_get_smp_processor_id(), SCX(scx_kick_flags, SCX_KICK_PREEMPT));
		}
	}
	return 0;
}

/* Tracepoints are called with preemption off: the kick takes the CPU right behind this one. */
SEC("tp_btf/sys_exit")
int BPF_PROG(after_syscall)
{
	struct task_state *t = throttled_queues ? task_of(bpf_get_current_task_btf()) : NULL;

	if (t && t->exit_pending) {
		t->exit_pending = 0;
		t->at_exit = 1;
		scx_bpf_kick_cpu(bpf_get_smp_processor_id(), SCX(scx_kick_flags, SCX_KICK_PREEMPT));
	}
	return 0;
}

/*
 * Is its turn a short one? So are all of the tasks that the kernel has lined up on a CPU that was not online:
 * the thread that brings the CPU up waits at the end of the line, and dispatch() is not called before that.
 */
static __always_inline bool has_short_turn(const struct task_state *t, u32 cpu)
{
	return t->lifted || cpu_of(cpu)->unasked;
}

/* Is a timer to end the turn of this task: a short one, or one under a limit? */
static __always_inline bool has_stop(const struct task_struct *p, const struct task_state *t, u32 slot, u32 cpu)
{
	return (has_short_turn(t, cpu) && !has_whole_turns(p)) ||
	       (slot && (!t->exit_pending || exits_seen) && !is_dying(p));
}

/* HRTICK: a turn ends on time where another task waits for it, not at a tick. */
static __always_inline bool ends_on_time(u32 cpu)
{
	return (features & POLICY_HRTICK) && nr_running(cpu) > 1;
}

/* Does this task of a throttled group run on, until it returns to user mode? */
static __noinline int runs_to_exit(struct task_struct *p, struct task_state *t)
{
	struct exit_work none = {}, *work;
	struct task_struct *held;
	u64 key = (u64)p;
	int error = -ENOMEM;

	if (!t || t->at_exit)
		return 0;
	/* Kernel threads never do; nor does one that dies, and what it holds is wanted back. */
	if (t->exit_pending || (p->flags & PF_KTHREAD) || is_dying(p))
		return 1;
	if (!has_task_work()) {
		t->exit_pending = exits_seen;
		return exits_seen;
	}
	work = bpf_map_lookup_elem(&exit_works, &key);
	if (!work) {
		bpf_map_update_elem(&exit_works, &key, &none, BPF_NOEXIST);
		work = bpf_map_lookup_elem(&exit_works, &key);
	}
	t->exit_pending = 1;
	/* The verifier trusts not every pointer to a task that callbacks are given. */
	held = work ? bpf_task_from_pid(p->pid) : NULL;
	if (held) {
		error = schedule_at_exit(held, &work->work, &exit_works, returns_to_user);
		bpf_task_release(held);
	}
	if (!error)
		return 1;
	t->exit_pending = 0;
	/* It is in returns_to_user(). */
	if (error == -EBUSY)
		return 0;
	/* No memory: rather a short turn on debt than a park with locks, until the kernel has some. */
	__sync_fetch_and_add(&exits_failed, 1);
	return 1;
}

#endif
