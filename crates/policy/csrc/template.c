/*
 * idea.c: where does a waking task run?
 *
 *   reveille policy check idea.c     compiles this file and says what is wrong
 *   reveille compare --machine zen4-7950x --workload tcp_rr --load 16 \
 *           --base v6.4 --policy idea.c
 *
 * The file has no libc and no variables that outlive a decision: as in the kernel's BPF,
 * and so that the same file gives the same table with any --jobs. docs/policy.md lists
 * every function that it can call.
 */
#include <reveille.h>

REVEILLE_POLICY(1); /* the version of the interface */

/*
 * p       the wakee: p->prev_cpu, p->recent_used_cpu, p->dur_avg_ns, p->wakee_flips, ...
 * waker   the task that runs on this_cpu; null if that CPU runs its idle task
 * flags   POLICY_WAKE_SYNC: the waker is about to sleep; POLICY_WAKE_IN_TASK: no interrupt
 * now_j   jiffies; t->hz of them are a second
 *
 * Returns the CPU, which p must be allowed to run on, and in the other fields what was
 * looked at to find it, for which the waker is charged.
 */
struct policy_pick reveille_select(struct world *w, const struct policy_tunables *t,
				   struct policy_task *p, struct policy_task *waker, u32 this_cpu,
				   u32 flags, u64 now_j)
{
	struct policy_pick pick = { 0 };

	/* The kernel's first half: notes who wakes whom, and sets pick.target by wake affine. */
	policy_select_target(w, t, p, waker, this_cpu, flags, now_j, &pick);

	/*
	 * Your idea, here: the wakee's last CPU is warm, so take it first if it is idle. A test
	 * before any search counts in pick.tested; in a search of your own, reveille_look() counts.
	 */
	if (world_allowed(w, p, p->prev_cpu)) {
		pick.tested++;
		if (world_usable(w, p->prev_cpu)) {
			pick.cpu = p->prev_cpu;
			return pick;
		}
	}

	/* The kernel's second half: an idle CPU near pick.target, or pick.target. */
	policy_select_idle(w, t, p, waker, this_cpu, flags, now_j, &pick);
	return pick;
}
