/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Feature bits, named as the kernel's sched_feat() and the mails name them, and
 * the tunables that decisions depend on. One bit is one rule that can be left out.
 */
#ifndef REVEILLE_POLICY_FEATURES_H
#define REVEILLE_POLICY_FEATURES_H

#include "types.h"

#define POLICY_WA_IDLE (1ull << 0)
#define POLICY_WA_WEIGHT (1ull << 1)
#define POLICY_SIS_UTIL (1ull << 2)
#define POLICY_SIS_SHORT (1ull << 3)
#define POLICY_TTWU_QUEUE (1ull << 4)
#define POLICY_WAKEUP_PREEMPTION (1ull << 5)
#define POLICY_GENTLE_FAIR_SLEEPERS (1ull << 6)
#define POLICY_START_DEBIT (1ull << 7)
#define POLICY_LAST_BUDDY (1ull << 8)
#define POLICY_AUTOGROUP (1ull << 9)
#define POLICY_RECENT_USED_CPU (1ull << 10)
#define POLICY_SIS_GROUP (1ull << 11)
#define POLICY_SIS_FIRST (1ull << 12)
#define POLICY_SIS_PROP (1ull << 13)
#define POLICY_SIS_AGE (1ull << 14)
#define POLICY_SWQUEUE (1ull << 15)
#define POLICY_SWQUEUE_NEWIDLE (1ull << 16)
#define POLICY_SWQUEUE_SKIP_IDLE (1ull << 17)
#define POLICY_SWQUEUE_SHARD (1ull << 18)
#define POLICY_TTWU_QUEUE_ON_CPU (1ull << 19)
#define POLICY_TTWU_QUEUE_IDLE (1ull << 20)
#define POLICY_TTWU_PENDING_HELD (1ull << 21)
#define POLICY_WA_EFFECTIVE_LOAD (1ull << 22)
#define POLICY_UTIL_EST (1ull << 23)
#define POLICY_LOAD_AVG_RATELIMIT (1ull << 24)
#define POLICY_EEVDF (1ull << 25)
#define POLICY_PLACE_LAG (1ull << 26)
#define POLICY_RUN_TO_PARITY (1ull << 27)
#define POLICY_PREEMPT_SHORT (1ull << 28)
#define POLICY_DELAY_DEQUEUE (1ull << 29)
#define POLICY_DELAY_ZERO (1ull << 30)
#define POLICY_SLICE_PROTECT (1ull << 31)
#define POLICY_SIS_NODE (1ull << 32)
#define POLICY_SIS_NODE_LIMIT (1ull << 33)
#define POLICY_SIS_NODE_TOPOEXT (1ull << 34)
#define POLICY_SIS_CLUSTER (1ull << 35)
#define POLICY_SIS_CURRENT (1ull << 36)
#define POLICY_SIS_CACHE (1ull << 37)
#define POLICY_SIS_CACHE_V1 (1ull << 38)
#define POLICY_SIS_SHORT_V4 (1ull << 40)
#define POLICY_WA_BIAS (1ull << 41)
#define POLICY_SWQUEUE_ENQUEUE (1ull << 42)
#define POLICY_SWQUEUE_GATE_ABOVE_LLC (1ull << 43)
#define POLICY_SIS_LIMITED_CORES (1ull << 44)
#define POLICY_SIS_FILTER (1ull << 45)
#define POLICY_PIPE_WAKE_FREED (1ull << 50)
#define POLICY_THROTTLE_EXIT (1ull << 51)
#define POLICY_RECENT_PREV (1ull << 52)
#define POLICY_DELAYED_HIDDEN (1ull << 53)
#define POLICY_EMPTY_KEEPS_WEIGHT (1ull << 54)
#define POLICY_NEWIDLE_COST (1ull << 55)
#define POLICY_NEWIDLE_BUMP (1ull << 56)
#define POLICY_NI_RANDOM (1ull << 57)
#define POLICY_NI_RATE (1ull << 58)
#define POLICY_PREEMPT_LAZY (1ull << 59)
#define POLICY_HRTICK (1ull << 60)
#define POLICY_SCHED_CACHE (1ull << 61)
#define POLICY_SCHED_CACHE_ALL (1ull << 62)

struct policy_tunables {
	u64 features;
	u64 min_granularity_ns;	/* scaled, as sysctl shows it */
	u32 hz;
	u32 imbalance_pct;	/* of domains above SMT: 117 */
	u32 smt_imbalance_pct;	/* of the SMT domain: 110 */
};

POLICY_INLINE bool policy_has(const struct policy_tunables *t, u64 feature)
{
	return (t->features & feature) != 0;
}

#endif
