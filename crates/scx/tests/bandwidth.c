/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "../bpf/bandwidth.h"

int printf(const char *format, ...);
void exit(int code);

#define MS 1000000ull
#define SLOT 1u
/* n_cpu_ids is 1 here: set_limits() looks after CPU 0, and the next queue is CPU 1's. */
#define CHECK(what)                                                                   \
	do {                                                                          \
		if (!(what)) {                                                        \
			printf("bandwidth.c:%d: not so: %s\n", __LINE__, #what);      \
			exit(1);                                                      \
		}                                                                     \
	} while (0)

static struct limit kept_limits[4];
static struct group_queue kept_queues[8];
static struct group kept_groups[4];
static struct timer kept_timers[4];
static u64 now_ns = 1000 * MS;
static void (*at_unlock)(void);
static int timer_error, timers_started;
static s32 parked;

void *bpf_map_lookup_elem(void *map, const void *key)
{
	u32 i = *(const u32 *)key;

	if (map == &limits)
		return &kept_limits[i];
	if (map == &group_queues)
		return &kept_queues[i];
	return map == &groups ? (void *)&kept_groups[i] : &kept_timers[i];
}

void bpf_spin_lock(struct bpf_spin_lock *lock)
{
	CHECK(!lock->val);
	lock->val = 1;
}

/* Here another CPU may come in between. */
void bpf_spin_unlock(struct bpf_spin_lock *lock)
{
	void (*then)(void) = at_unlock;

	CHECK(lock->val);
	lock->val = 0;
	at_unlock = NULL;
	if (then)
		then();
}

long bpf_timer_start(struct bpf_timer *timer, u64 in_ns, u64 flags)
{
	timers_started += !timer_error;
	return timer_error;
}

u64 bpf_ktime_get_ns(void) { return now_ns; }
u64 bpf_jiffies64(void) { return now_ns / MS; }
void bpf_rcu_read_lock(void) {}
void bpf_rcu_read_unlock(void) {}
s32 scx_bpf_dsq_nr_queued(u64 dsq) { return parked; }
/* No queue has a task to read. */
long bpf_probe_read_kernel(void *to, u32 size, const void *from) { return -1; }

static bool throttled(u32 cpu) { return queue_of(SLOT, cpu)->throttled; }

static void runs_long(u32 cpu)
{
	u64 left_ns;

	account(SLOT, cpu, 25 * MS, ACCOUNT_THROTTLE, &left_ns);
}
static void runs_long_on_cpu_0(void) { runs_long(0); }

static void periods(int n)
{
	u32 slot = SLOT;

	while (n-- > 0) {
		now_ns += 100 * MS;
		limit_timer_fired(NULL, &slot, &kept_timers[slot]);
	}
}

int main(void)
{
	struct limit *l = limit_at(SLOT);
	struct task_state t = {};
	struct group_number of = {};

	/* A write of the limit lets go of a queue that has just come to stand in line: others are paid. */
	set_limits(SLOT, 0, 100000, 10000, 0);
	queue_of(SLOT, 1)->enabled = 1;
	at_unlock = runs_long_on_cpu_0;
	set_limits(SLOT, 0, 100000, 10000, 0);
	CHECK(!throttled(0) && l->end_waiting - l->first_waiting == 1);
	runs_long(1);
	CHECK(throttled(1));
	periods(5);
	CHECK(!throttled(1));

	/* A period's timer that the kernel did not start is started when the pool is next drawn from. */
	set_limits(SLOT, 0, 100000, ~0ull, 0);
	periods(2);
	timer_error = -12;
	set_limits(SLOT, 0, 100000, 10000, 0);
	runs_long(0);
	CHECK(timers_failed && next_timer(l) && !l->timer_ns);
	timer_error = 0;
	runs_long(0);
	CHECK(l->timer_ns);
	periods(10);
	CHECK(!throttled(0));

	/* While all tasks are parked none draws from the pool. The next look restarts the timer. */
	last_limit = SLOT;
	parked = 1;
	l->timer_ns = timers_started = 0;
	rearm_limits();
	CHECK(timers_started == 1);
	l->timer_ns = 1;
	rearm_limits();
	CHECK(timers_started == 1);
	parked = 0;

	/* So is the one that ends a run. */
	timer_error = -12;
	set_stop(SLOT, 0, 1, &t);
	CHECK(cpu_of(0)->stop_at_ns && !cpu_of(0)->stop_timer_ns);
	timer_error = 0;
	set_stop(SLOT, 0, 1, &t);
	CHECK(cpu_of(0)->stop_timer_ns);

	/* A limit of a group that has no number is not lost: the group that it counts as has the shared one. */
	of.group = 2;
	kept_groups[2].cgroup_id = 20;
	set_limits(SLOT, 0, 100000, ~0ull, 0);
	write_limit(&of, 30, 100000, 5000, 0);
	write_limit(&of, 30, 100000, 6000, 0);
	CHECK(limit_of(2) == SHARED_LIMIT && limit_at(SHARED_LIMIT)->limited && limits_refused == 1);
	write_limit(&of, 30, 100000, ~0ull, 0);
	CHECK(!limit_of(2) && !limit_at(SHARED_LIMIT)->limited && !limits_refused);

	/* A write that is late, when the slot is another group's, changes nothing. */
	set_limits(SLOT, 0, 100000, 10000, 0);
	set_limits(SLOT, 40, 100000, ~0ull, 0);
	CHECK(l->limited);
	return 0;
}
