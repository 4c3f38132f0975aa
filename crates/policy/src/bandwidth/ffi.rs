//! Calls into csrc/bandwidth.c. Each takes plain numbers, or exclusive references to
//! structs that the call does not keep, so that the wrappers are safe.
#![allow(unsafe_code)]

use super::{LocalRuntime, PeriodStep, Pool};
use crate::Ns;

unsafe extern "C" {
    fn reveille_bw_check(quota_ns: Ns, period_ns: Ns, burst_ns: Ns) -> u32;
    fn reveille_bw_ratio(quota_ns: Ns, period_ns: Ns) -> u64;
    fn reveille_bw_check_child(ratio: u64, parent_ratio: u64) -> u32;
    fn reveille_bw_effective(ratio: u64, parent_ratio: u64) -> u64;
    fn reveille_bw_set(b: *mut Pool, quota_ns: Ns, period_ns: Ns, burst_ns: Ns, now_ns: Ns);
    fn reveille_bw_account(
        b: *mut Pool,
        q: *mut LocalRuntime,
        delta_ns: Ns,
        slice_ns: Ns,
        now_ns: Ns,
    ) -> bool;
    fn reveille_bw_throttle(b: *mut Pool, q: *mut LocalRuntime, now_ns: Ns) -> bool;
    fn reveille_bw_unthrottle(b: *mut Pool, q: *mut LocalRuntime, now_ns: Ns);
    fn reveille_bw_grant(b: *mut Pool, q: *mut LocalRuntime) -> bool;
    fn reveille_bw_return(b: *mut Pool, q: *mut LocalRuntime, slice_ns: Ns, now_ns: Ns);
    fn reveille_bw_slack(b: *mut Pool, slice_ns: Ns, now_ns: Ns) -> bool;
    fn reveille_bw_period(b: *mut Pool, now_ns: Ns) -> u32;
    fn reveille_bw_stretch(b: *mut Pool) -> bool;
}

pub(super) fn check(quota_ns: Ns, period_ns: Ns, burst_ns: Ns) -> u32 {
    // SAFETY: arithmetic on its arguments only.
    unsafe { reveille_bw_check(quota_ns, period_ns, burst_ns) }
}

pub(super) fn ratio(quota_ns: Ns, period_ns: Ns) -> u64 {
    // SAFETY: arithmetic on its arguments only; a period of 0 is no divisor there.
    unsafe { reveille_bw_ratio(quota_ns, period_ns) }
}

pub(super) fn check_child(ratio: u64, parent_ratio: u64) -> u32 {
    // SAFETY: arithmetic on its arguments only.
    unsafe { reveille_bw_check_child(ratio, parent_ratio) }
}

pub(super) fn effective(ratio: u64, parent_ratio: u64) -> u64 {
    // SAFETY: arithmetic on its arguments only.
    unsafe { reveille_bw_effective(ratio, parent_ratio) }
}

pub(super) fn set(b: &mut Pool, quota_ns: Ns, period_ns: Ns, burst_ns: Ns, now_ns: Ns) {
    // SAFETY: reads and writes the one pool behind an exclusive reference.
    unsafe { reveille_bw_set(b, quota_ns, period_ns, burst_ns, now_ns) }
}

#[inline]
pub(super) fn account(
    b: &mut Pool,
    q: &mut LocalRuntime,
    delta_ns: Ns,
    slice_ns: Ns,
    now_ns: Ns,
) -> bool {
    // SAFETY: reads and writes what stands behind two exclusive references.
    unsafe { reveille_bw_account(b, q, delta_ns, slice_ns, now_ns) }
}

#[inline]
pub(super) fn throttle(b: &mut Pool, q: &mut LocalRuntime, now_ns: Ns) -> bool {
    // SAFETY: as above.
    unsafe { reveille_bw_throttle(b, q, now_ns) }
}

pub(super) fn unthrottle(b: &mut Pool, q: &mut LocalRuntime, now_ns: Ns) {
    // SAFETY: as above.
    unsafe { reveille_bw_unthrottle(b, q, now_ns) }
}

pub(super) fn grant(b: &mut Pool, q: &mut LocalRuntime) -> bool {
    // SAFETY: as above.
    unsafe { reveille_bw_grant(b, q) }
}

pub(super) fn give_back(b: &mut Pool, q: &mut LocalRuntime, slice_ns: Ns, now_ns: Ns) {
    // SAFETY: as above.
    unsafe { reveille_bw_return(b, q, slice_ns, now_ns) }
}

pub(super) fn slack(b: &mut Pool, slice_ns: Ns, now_ns: Ns) -> bool {
    // SAFETY: as for `set`.
    unsafe { reveille_bw_slack(b, slice_ns, now_ns) }
}

pub(super) fn period(b: &mut Pool, now_ns: Ns) -> PeriodStep {
    // SAFETY: as for `set`.
    match unsafe { reveille_bw_period(b, now_ns) } {
        0 => PeriodStep::NotDue,
        1 => PeriodStep::Stopped,
        2 => PeriodStep::Rested,
        _ => PeriodStep::Distribute,
    }
}

pub(super) fn stretch(b: &mut Pool) -> bool {
    // SAFETY: as for `set`.
    unsafe { reveille_bw_stretch(b) }
}
