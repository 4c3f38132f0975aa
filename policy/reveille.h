/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The interface of a policy file, which `reveille compare --policy FILE` runs instead of
 * the kernel's CPU selection. docs/policy.md has every function and field with units.
 * A file includes this header, says which version it is written for, and defines
 * reveille_select().
 */
#ifndef REVEILLE_H
#define REVEILLE_H

#include "select.h"

/* Rises when a file that worked before would no longer compile or mean the same. */
#define REVEILLE_INTERFACE 1

/* REVEILLE_POLICY(1); says that the file is written for version 1. */
#define REVEILLE_POLICY(version)                                                         \
	extern const u32 reveille_interface_of_file;                                     \
	__attribute__((used, visibility("default"))) const u32 reveille_interface_of_file = \
		(version)

/*
 * Where does p run, which `waker` wakes on this_cpu in jiffy now_j? `waker` is null if
 * this_cpu runs the idle task. `flags` are POLICY_WAKE_*. Inlined into its caller, as BPF
 * needs it.
 */
POLICY_INLINE struct policy_pick reveille_select(struct world *w, const struct policy_tunables *t,
						 struct policy_task *p, struct policy_task *waker,
						 u32 this_cpu, u32 flags, u64 now_j);

/*
 * Is the CPU idle? The look is charged to the waker: a line of the LLC's cache, or of
 * another one's if the CPU does not share pick->target's.
 */
POLICY_INLINE bool reveille_look(const struct world *w, u32 cpu, struct policy_pick *pick)
{
	pick->search = 1;
	pick->searched += pick->searched < 0xffff;
	if (world_llc(w, cpu) != world_llc(w, pick->target))
		pick->far += pick->far < 0xffff;
	return world_usable(w, cpu);
}

#endif
