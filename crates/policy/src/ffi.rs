//! The only place, with bandwidth/ffi.rs, where Rust calls the C decision code. Every
//! pointer handed over comes from a slice that outlives the call, and callers have
//! checked every index that the C code will follow, so that the wrappers are safe.
#![allow(unsafe_code)]

use crate::state::{Pick, RawWorld, ScanState, Task};
use crate::{CpuId, Ns, TaskId, Tunables};

unsafe extern "C" {
    fn reveille_select_cpu(
        w: *mut RawWorld,
        t: *const Tunables,
        p: TaskId,
        waker: TaskId,
        this_cpu: CpuId,
        flags: u32,
        now_j: u64,
        pick: *mut Pick,
    );
    fn reveille_ttwu_queue(
        w: *mut RawWorld,
        t: *const Tunables,
        this_cpu: CpuId,
        cpu: CpuId,
        on_cpu: bool,
    ) -> bool;
    fn reveille_record_wakee(waker: *mut Task, wakee: TaskId, now_j: u64, hz: u32);
    fn reveille_task_slept(p: *mut Task);
    fn reveille_idle_ended(
        s: *mut ScanState,
        idle_ns: Ns,
        max_idle_balance_cost_ns: Ns,
        now_j: u64,
    );
    fn reveille_scan_done(
        w: *mut RawWorld,
        t: *const Tunables,
        this_cpu: CpuId,
        pick: *const Pick,
        elapsed_ns: Ns,
    );
    fn reveille_nr_idle_scan(sum_util: u64, llc_weight: u32, imbalance_pct: u32) -> u32;
}

#[inline]
pub(crate) fn select_cpu(
    world: &mut RawWorld,
    tunables: &Tunables,
    wakee: TaskId,
    waker: TaskId,
    this_cpu: CpuId,
    flags: u32,
    now_j: u64,
) -> Pick {
    let mut pick = Pick::default();
    // SAFETY: the world points into live vectors; `World::select_cpu` checked the ids.
    unsafe {
        reveille_select_cpu(world, tunables, wakee, waker, this_cpu, flags, now_j, &mut pick);
    }
    pick
}

#[inline]
pub(crate) fn ttwu_queue(
    world: &mut RawWorld,
    tunables: &Tunables,
    this_cpu: CpuId,
    cpu: CpuId,
    on_cpu: bool,
) -> bool {
    // SAFETY: as above; both CPUs were checked.
    unsafe { reveille_ttwu_queue(world, tunables, this_cpu, cpu, on_cpu) }
}

#[inline]
pub(crate) fn scan_done(
    world: &mut RawWorld,
    tunables: &Tunables,
    this_cpu: CpuId,
    pick: &Pick,
    elapsed_ns: Ns,
) {
    // SAFETY: as above; the CPU was checked.
    unsafe { reveille_scan_done(world, tunables, this_cpu, pick, elapsed_ns) }
}

impl ScanState {
    /// An idle stretch of this CPU has ended with a wake-up, in jiffy `now_j`: its
    /// average idle time follows, at most twice `max_idle_balance_cost_ns`, and with
    /// it what wake-ups may count on.
    #[inline]
    pub fn idle_ended(&mut self, idle_ns: Ns, max_idle_balance_cost_ns: Ns, now_j: u64) {
        // SAFETY: reads and writes the one state behind an exclusive reference.
        unsafe { reveille_idle_ended(self, idle_ns, max_idle_balance_cost_ns, now_j) }
    }
}

impl Task {
    /// The task counts as the waker of `wakee`, outside of a decision.
    pub fn record_wakee(&mut self, wakee: TaskId, now_j: u64, hz: u32) {
        // SAFETY: reads and writes the one task behind an exclusive reference.
        unsafe { reveille_record_wakee(self, wakee, now_j, hz) }
    }

    /// The task sleeps: ends a section of its average duration.
    #[inline]
    pub fn slept(&mut self) {
        // SAFETY: reads and writes the one task behind an exclusive reference.
        unsafe { reveille_task_slept(self) }
    }
}

/// `nr_idle_scan` of an LLC from the summed utilisation of its CPUs. Panics on an
/// LLC without CPUs.
pub fn nr_idle_scan(sum_util: u64, llc_weight: u32, imbalance_pct: u32) -> u32 {
    assert!(llc_weight > 0, "an LLC has at least one CPU");
    // SAFETY: arithmetic on its arguments only; the divisor was checked.
    unsafe { reveille_nr_idle_scan(sum_util, llc_weight, imbalance_pct) }
}
