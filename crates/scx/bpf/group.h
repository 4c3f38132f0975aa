/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Task groups: a number for each, found by way of the cgroup. Weights are flattened: a
 * task's share of its group's share, and so on up to the root, where tasks and groups
 * compete. A group's share is divided by the weights of its runnable tasks. A task is counted from
 * its first wait or its first full turn until it sleeps: one that runs briefly on an idle CPU competes
 * with nobody, and touches no cache line that CPUs share. A group's limit, if it has one, is in a
 * slot of bandwidth.h; here is how a task finds the nearest limit above it.
 */
#ifndef REVEILLE_SCX_GROUP_H
#define REVEILLE_SCX_GROUP_H

#include "select.h"

struct group {
	u64 cgroup_id;
	u32 in_use;
	u32 parent; /* 0 for the root */
	u32 weight; /* in 1/1024, that of an idle group included */
	u32 cpu_weight;
	u32 idle;
	u32 limit;   /* slot of its own limit, 0 for none */
	u32 refused; /* limits for which there was no slot: its own, of groups without a number in it */
	u64 nearest; /* as of limit_of() */
	/* Added to and subtracted from by all CPUs. */
	s64 tasks_weight; /* of its own tasks */
	s64 members;	  /* tasks and groups in it that count */
	s64 groups_weight; /* of the groups in it that count */
} LINE;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_GROUPS);
	__type(key, u32);
	__type(value, struct group);
} groups SEC(".maps");

struct group_number {
	u32 group;
	u32 refused; /* cpu.max was written, and there was no slot for it */
};

struct {
	__uint(type, BPF_MAP_TYPE_CGRP_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct group_number);
} group_numbers SEC(".maps");

static __always_inline struct group *group_of(u32 group)
{
	return bpf_map_lookup_elem(&groups, &group);
}

/* group.nearest: a slot, and the generation of limits in which it was found. */
#define NEAREST_SLOT_BITS 16
_Static_assert(MAX_LIMITS <= 1 << NEAREST_SLOT_BITS, "a slot fits");

/* Climbs to the nearest group with a limit, or to one that knows it. */
__noinline u32 find_limit(u32 group)
{
	/* A full barrier: what is read below is at least as new as the generation. */
	u64 generation = __sync_fetch_and_add(&limits_generation, 0);
	u32 slot = 0, at = group, refused = 0;
	struct group *g;
	int i;

	for_each(i, MAX_GROUPS)
	{
		u64 known;

		g = at ? group_of(at) : NULL;
		if (!g)
			break;
		slot = g->limit;
		if (slot)
			break;
		known = g->nearest;
		if (known >> NEAREST_SLOT_BITS == generation) {
			slot = known & ((1u << NEAREST_SLOT_BITS) - 1);
			break;
		}
		refused |= g->refused;
		at = g->parent;
	}
	if (!slot && refused)
		slot = SHARED_LIMIT;
	g = group_of(group);
	if (g)
		g->nearest = generation << NEAREST_SLOT_BITS | slot;
	return slot;
}

/*
 * The slot of the nearest limit at or above the group, 0 for none. Found again whenever a
 * limit has come or gone anywhere.
 */
static __always_inline u32 limit_of(u32 group)
{
	struct group *g = group_of(group);
	u64 known;

	if (!g)
		return 0;
	known = g->nearest;
	if (known >> NEAREST_SLOT_BITS == limits_generation)
		return known & ((1u << NEAREST_SLOT_BITS) - 1);
	return find_limit(group);
}

/*
 * Adds a task to a group (members 1) or takes it away (-1). A group counts in its parent from its first
 * member to its last.
 */
__noinline int change_group(u32 group, u32 weight, int members)
{
	struct group *g = group_of(group);
	int i;

	if (!g)
		return 0;
	__sync_fetch_and_add(&g->tasks_weight, (s64)weight * members);
	if (__sync_fetch_and_add(&g->members, members) != (members < 0))
		return 0;
	for_each(i, MAX_GROUPS)
	{
		struct group *parent = group ? group_of(g->parent) : NULL;

		if (!parent)
			break;
		group = g->parent;
		__sync_fetch_and_add(&parent->groups_weight, (s64)g->weight * members);
		if (__sync_fetch_and_add(&parent->members, members) != (members < 0))
			break;
		g = parent;
	}
	return 0;
}

/* The task that left a group last on this CPU is counted no longer. Interrupts are off, as in all of these. */
static __always_inline void settle_left(struct cpu_state *c)
{
	if (!c->left_weight)
		return;
	change_group(c->left_group, c->left_weight, -1);
	c->left_weight = 0;
}

/*
 * The group counts it until a turn ends on this CPU, the CPU becomes idle, or another task leaves. A task of
 * the same group and weight that comes before that takes its place: where tasks of a group wake each other,
 * no cache line is written that CPUs share.
 */
static __always_inline void uncount_task(struct task_state *t)
{
	struct cpu_state *c;

	if (!t->counted)
		return;
	c = cpu_of(SMP_CPU());
	settle_left(c);
	c->left_group = t->group;
	c->left_weight = t->counted;
	t->counted = 0;
}

static __always_inline void count_task(struct task_state *t, u32 weight)
{
	struct cpu_state *c;

	if (!t->group || t->counted == weight || !weight)
		return;
	uncount_task(t);
	t->counted = weight;
	c = cpu_of(SMP_CPU());
	if (c->left_weight == weight && c->left_group == t->group)
		c->left_weight = 0;
	else
		change_group(t->group, weight, 1);
}

/* cpu.weight or cpu.idle of the group is written, or known from its beginning. */
static __noinline int set_group_weight(struct group *g, u32 cpu_weight, u32 idle)
{
	struct group *parent;
	u32 was, now;

	if (!g)
		return 0;
	was = g->weight;
	now = idle ? WEIGHT_IDLE : cpu_weight << WEIGHT_SHIFT;
	g->cpu_weight = cpu_weight;
	g->idle = idle;
	parent = group_of(g->parent);
	if (g->members > 0 && parent)
		__sync_fetch_and_add(&parent->groups_weight, (s64)now - was);
	g->weight = now;
	return 0;
}

/* A task's weight among everything that competes at the root; never 0. */
__noinline u64 weight_in_group(struct task_state *t, u32 weight)
{
	u32 group = t ? t->group : 0;
	bool counts = t && t->counted;
	u64 share = weight;
	int i;

	for_each(i, MAX_GROUPS)
	{
		struct group *g = group ? group_of(group) : NULL;
		s64 among;

		if (!g || !share)
			break;
		among = g->tasks_weight + g->groups_weight + (counts ? 0 : weight);
		/* Counts of others are in flux: never more than the whole. */
		share = share * g->weight / (among > (s64)weight ? (u64)among : weight ? weight : 1);
		counts = g->members > 0;
		weight = g->weight;
		group = g->parent;
	}
	return share ? share : 1;
}

#endif
