/* SPDX-License-Identifier: GPL-2.0-only */
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
