/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A wake-up's decision with all that it was taken from, for the proof that the kernel
 * and the native build decide alike (`scx_reveille replay`). With --record the world
 * is copied first and the decision reads the copy, for the live one changes meanwhile.
 * Mirrored by src/decision.rs.
 */
#ifndef REVEILLE_SCX_DECISION_H
#define REVEILLE_SCX_DECISION_H

#include "state.h"

struct seen_cpu {
	u32 cpu;
	u32 nr_running;
	u32 cfs_load;
	u32 has_curr;
	struct policy_task curr;
};

struct seen_llc {
	u32 llc;
	u32 nr_idle_scan;
	u32 has_idle_cores;
	u32 reserved;
	u64 idle[POLICY_LLC_WORDS];
	u64 sched_idle[POLICY_LLC_WORDS];
	u64 allowed[POLICY_LLC_WORDS];
};

struct decision {
	u64 features;
	u64 now_j;
	u32 this_cpu;
	u32 flags; /* POLICY_WAKE_* */
	u32 has_waker;
	u32 idle_cores_after; /* has_idle_cores of the target's LLC */
	struct policy_task wakee;
	struct policy_task waker;
	struct policy_scan_state scan; /* of this_cpu */
	struct seen_cpu cpus[2];       /* this_cpu and the wakee's previous one */
	struct seen_llc llcs[2];       /* of these */
	struct policy_task wakee_after;
	struct policy_task waker_after;
	struct policy_scan_state scan_after;
	struct policy_pick pick;
};

_Static_assert(sizeof(struct decision) == 952, "RECORD_BYTES of src/decision.rs");

/* One per CPU: wake-ups do not nest, for select_cpu runs with interrupts off. */
struct decision decisions[MAX_CPUS];

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* the loader sets it */
} records SEC(".maps");

#endif
