/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * policy/bandwidth.h made callable from Rust. Nothing is decided here.
 */
#include "../../../policy/bandwidth.h"

u32 reveille_bw_check(u64 quota_ns, u64 period_ns, u64 burst_ns)
{
	return policy_bw_check(quota_ns, period_ns, burst_ns);
}

u64 reveille_bw_ratio(u64 quota_ns, u64 period_ns)
{
	return policy_bw_ratio(quota_ns, period_ns);
}

u32 reveille_bw_check_child(u64 ratio, u64 parent_ratio)
{
	return policy_bw_check_child(ratio, parent_ratio);
}

u64 reveille_bw_effective(u64 ratio, u64 parent_ratio)
{
	return policy_bw_effective(ratio, parent_ratio);
}

void reveille_bw_set(struct policy_bw_pool *b, u64 quota_ns, u64 period_ns, u64 burst_ns,
		     u64 now_ns)
{
	policy_bw_set(b, quota_ns, period_ns, burst_ns, now_ns);
}

bool reveille_bw_account(struct policy_bw_pool *b, struct policy_bw_queue *q, u64 delta_ns,
			 u64 slice_ns, u64 now_ns)
{
	return policy_bw_account(b, q, delta_ns, slice_ns, now_ns);
}

bool reveille_bw_throttle(struct policy_bw_pool *b, struct policy_bw_queue *q, u64 now_ns)
{
	return policy_bw_throttle(b, q, now_ns);
}

void reveille_bw_unthrottle(struct policy_bw_pool *b, struct policy_bw_queue *q, u64 now_ns)
{
	policy_bw_unthrottle(b, q, now_ns);
}

bool reveille_bw_grant(struct policy_bw_pool *b, struct policy_bw_queue *q)
{
	return policy_bw_grant(b, q);
}

void reveille_bw_return(struct policy_bw_pool *b, struct policy_bw_queue *q, u64 slice_ns,
			u64 now_ns)
{
	policy_bw_return(b, q, slice_ns, now_ns);
}

bool reveille_bw_slack(struct policy_bw_pool *b, u64 slice_ns, u64 now_ns)
{
	return policy_bw_slack(b, slice_ns, now_ns);
}

u32 reveille_bw_period(struct policy_bw_pool *b, u64 now_ns)
{
	return policy_bw_period(b, now_ns);
}

bool reveille_bw_stretch(struct policy_bw_pool *b)
{
	return policy_bw_stretch(b);
}
