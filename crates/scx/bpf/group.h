/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Task groups: a slot for each, found by way of the cgroup, with its limits and its
 * weight. Weights are flattened: a task's share of its group's share, and so on up to
 * the root, where tasks and groups compete. A group shares by what its tasks that are
 * on a CPU or wait for one weigh; tasks are counted from their first run to their sleep.
 */
#ifndef REVEILLE_SCX_GROUP_H
#define REVEILLE_SCX_GROUP_H

#include "select.h"

/* Nested deeper than this, the levels above are left out. */
#define GROUP_DEPTH 12

struct group {
	struct bpf_spin_lock lock; /* over the pool and the list */
	u32 in_use;
	struct policy_bw_pool pool;
	u64 cgroup_id;
	u64 timer_ns;  /* for when the timer is set */
	u32 parent;    /* slot; 0 for the root */
	u32 limited;   /* it has a quota */
	u32 weight;
	u32 first_waiting; /* throttled queues, first come first: a ring in `waiting` */
	u32 end_waiting;
	u16 waiting[MAX_CPUS];
	/* Added to and subtracted from by all CPUs. */
	s64 tasks_weight LINE; /* of its own tasks */
	s64 members;		/* tasks and groups in it that count */
	s64 groups_weight;	/* of the groups in it that count */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_GROUPS);
	__type(key, u32);
	__type(value, struct group);
} groups SEC(".maps");

struct group_slot {
	u32 slot;
};

struct {
	__uint(type, BPF_MAP_TYPE_CGRP_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct group_slot);
} group_slots SEC(".maps");

static __always_inline struct group *group_of(u32 slot)
{
	return bpf_map_lookup_elem(&groups, &slot);
}

/* The first member makes a group count in the one around it. */
static __noinline int enter_group(u32 slot, u32 weight)
{
	struct group *g = group_of(slot);
	int i;

	if (!g)
		return 0;
	__sync_fetch_and_add(&g->tasks_weight, (s64)weight);
	for_each(i, GROUP_DEPTH)
	{
		struct group *parent;

		if (__sync_fetch_and_add(&g->members, 1) || !slot)
			break;
		slot = g->parent;
		parent = group_of(slot);
		if (!parent)
			break;
		__sync_fetch_and_add(&parent->groups_weight, (s64)g->weight);
		g = parent;
	}
	return 0;
}

static __noinline int leave_group(u32 slot, u32 weight)
{
	struct group *g = group_of(slot);
	int i;

	if (!g)
		return 0;
	__sync_fetch_and_add(&g->tasks_weight, -(s64)weight);
	for_each(i, GROUP_DEPTH)
	{
		struct group *parent;

		if (__sync_fetch_and_add(&g->members, -1) != 1 || !slot)
			break;
		slot = g->parent;
		parent = group_of(slot);
		if (!parent)
			break;
		__sync_fetch_and_add(&parent->groups_weight, -(s64)g->weight);
		g = parent;
	}
	return 0;
}

static __always_inline void count_task(struct task_state *t, u32 weight)
{
	if (t->counted || !t->group || !weight)
		return;
	t->counted = weight;
	enter_group(t->group, weight);
}

static __always_inline void uncount_task(struct task_state *t)
{
	if (!t->counted)
		return;
	leave_group(t->group, t->counted);
	t->counted = 0;
}

/* A task's weight among everything that competes at the root, in 1/1024; never 0. */
static __noinline u64 weight_in_group(struct task_state *t, u32 weight)
{
	u64 share = (u64)weight << 10;
	struct group *g;
	s64 among;
	int i;

	if (!t || !t->group)
		return share;
	g = group_of(t->group);
	if (!g)
		return share;
	among = g->tasks_weight + g->groups_weight;
	for_each(i, GROUP_DEPTH)
	{
		u32 parent = g->parent;

		/* Counts of others are in flux: never more than the whole. */
		share = share * g->weight / (among > (s64)weight ? (u64)among : weight ? weight : 1);
		if (!parent)
			break;
		weight = g->weight;
		g = group_of(parent);
		if (!g)
			break;
		among = g->tasks_weight + g->groups_weight;
	}
	return share ? share : 1;
}

#endif
