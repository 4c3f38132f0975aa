//! Virtual time: the kernel's wakeup path, runqueues, idle states and balancing
//! on a modelled machine.

mod balance;
mod balance_pass;
mod channel;
mod clock;
mod contention;
mod cpu;
mod domains;
mod engine;
mod idle;
mod idle_loop;
mod imbalance;
mod interrupts;
mod invariants;
mod near;
mod pelt;
mod program;
mod runqueue;
mod schedule;
mod start;
mod task;
mod wakeup;

use std::sync::atomic::AtomicBool;

use reveille_machine::Machine;
use reveille_measure::{Ns, RunResult};
use reveille_policy::Policy;
use reveille_workload::Program;

/// How long a run lasts, and its random seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunSpec {
    /// Seed of every random choice.
    pub seed: u64,
    /// Virtual time before measuring starts.
    pub warmup_ns: Ns,
    /// Virtual time measured.
    pub duration_ns: Ns,
}

/// The longest virtual time of one run, warm-up included: event times are kept in 48 bits.
pub const MAX_RUN_NS: Ns = 1 << 47;

/// Why a run has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// `stop` was set.
    #[error("interrupted")]
    Interrupted,
    /// Nothing can happen any more: every task waits for another.
    #[error(
        "deadlock at {at_ns} ns: all {tasks} tasks wait for each other; check the workload's operations"
    )]
    Deadlock {
        /// Virtual time.
        at_ns: Ns,
        /// Number of tasks.
        tasks: usize,
    },
}

/// Runs a program on a machine under a policy. The same arguments give the same
/// result, bit for bit. Stops within some 10 ms of real time once `stop` is set.
pub fn run(
    machine: &Machine,
    program: &Program,
    policy: &Policy,
    spec: &RunSpec,
    stop: &AtomicBool,
) -> Result<RunResult, SimError> {
    engine::Sim::new(machine, program, policy, spec).run(spec, stop)
}
