//! The burst patch's experiment with a controlled phase: every 200 ms two threads are each asked
//! for 80 ms of wall-clock time, under a quota and a period of 100 ms. Their lateness is a closed
//! form of the phase at which they are asked, so simulation and kernel can be checked point by
//! point, which runs with random phases don't allow.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use reveille_host::HostError;
use reveille_host::cgroup::HostGroups;
use reveille_host::program::{self, Setting};
use reveille_machine::Machine;
use reveille_measure::{RunResult, RunSpec, UNANSWERED};
use reveille_policy::{BandwidthLimits, Groups, Policy, TaskGroup};
use reveille_workload::{Arrival, Arrivals, Metric, MetricKind, Ns, Op, Program, Role, TaskSpec};
use serde::Serialize;

use crate::Result;

const MS: Ns = 1_000_000;
/// Quota and period; two running threads use up the quota in half of it.
const PERIOD_NS: Ns = 100 * MS;
const CYCLE_NS: Ns = 200 * MS;
const WORK_NS: Ns = 80 * MS;
const THREADS: usize = 2;
/// The first request comes after the threads have started.
const BEGIN_NS: Ns = 20 * MS;

/// Lateness of the threads at one phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CirclePoint {
    /// From the start of a period to the moment at which the threads are asked.
    pub phase_ns: Ns,
    /// By the closed form.
    pub closed_form_ns: f64,
    /// Simulated: median over cycles and threads.
    pub simulated_ns: f64,
    /// Measured on this kernel: median over cycles and threads.
    pub measured_ns: Option<f64>,
}

/// Lateness by the closed form, which has no slices and enforces the quota at once. 80 ms of
/// wall-clock time that begin before 20 ms into the period end while throttled, so the threads wait
/// for the period's end. Those that begin after 70 ms exhaust the next quota 50 ms into it, and
/// also end while throttled.
pub fn closed_form_ns(phase_ns: Ns) -> f64 {
    let phase_ns = phase_ns % PERIOD_NS;
    let spent_in = PERIOD_NS / THREADS as Ns;
    let end = phase_ns + WORK_NS;
    // When does the quota of the period it ends in run out, from that period's start?
    let (used_up, refilled) = match end <= PERIOD_NS {
        true => (phase_ns + spent_in, PERIOD_NS),
        false => (PERIOD_NS + spent_in, 2 * PERIOD_NS),
    };
    if end > used_up { (refilled - end) as f64 } else { 0.0 }
}

/// Is the phase near 70 ms, where the closed form jumps? Runtime that a CPU still holds from the
/// earlier refill postpones throttling there by up to a slice less a tick.
pub fn at_the_edge(phase_ns: Ns) -> bool {
    (70 * MS..=75 * MS).contains(&(phase_ns % PERIOD_NS))
}

/// Simulates one phase for `cycles`.
pub fn simulate_phase(
    machine: &Machine,
    policy: &Policy,
    phase_ns: Ns,
    cycles: u32,
    stop: &AtomicBool,
) -> Result<f64> {
    let (program, groups, spec) = experiment(phase_ns, cycles);
    let run = reveille_sim::run(machine, &program, policy, &groups, &spec, stop)?;
    Ok(lateness_ns(&run))
}

/// Measures one phase on this host; `command` is the `reveille` command.
///
/// # Errors
/// [`HostError`]: no task group can be made here, the phase cannot be seen, or the run fails.
pub fn measure_phase(
    command: &Path,
    phase_ns: Ns,
    cycles: u32,
    stop: &AtomicBool,
) -> Result<f64, HostError> {
    let (program, groups, spec) = experiment(phase_ns, cycles);
    let made = HostGroups::create(&groups)?;
    let setting = Setting { cpus: Vec::new(), groups: made.files(&groups)? };
    let run = program::run(command, &program, &setting, &spec, stop)?;
    Ok(lateness_ns(&run.result))
}

/// The experiment's program and group, and the length of its run.
fn experiment(phase_ns: Ns, cycles: u32) -> (Program, Groups, RunSpec) {
    let span_ns = CYCLE_NS * Ns::from(cycles);
    let asked = |cycle: u32| Arrival { at_ns: CYCLE_NS * Ns::from(cycle), work_ns: WORK_NS };
    let own: Vec<Arrival> = (0..cycles).map(asked).collect();
    let ops = vec![Op::Arrive, Op::SpinArrived, Op::Answer];
    let program = Program {
        name: "phase".into(),
        roles: vec![Role { name: "thread".into(), ops }],
        tasks: vec![TaskSpec::of_role(0); THREADS],
        channels: Vec::new(),
        n_lists: 0,
        n_locks: 0,
        arrivals: Arrivals { begin_ns: BEGIN_NS, span_ns, of_task: vec![own; THREADS] },
        records: Vec::new(),
        metric: Metric { name: "lateness".into(), kind: MetricKind::Throughput },
    };
    let limits = BandwidthLimits { quota_ns: Some(PERIOD_NS), period_ns: PERIOD_NS, burst_ns: 0 };
    let phase_ns = Some((BEGIN_NS + PERIOD_NS - phase_ns % PERIOD_NS) % PERIOD_NS);
    let group = TaskGroup { phase_ns, ..TaskGroup::new("phase", limits) };
    let spec = RunSpec { seed: 1, warmup_ns: BEGIN_NS / 2, duration_ns: span_ns + BEGIN_NS / 4 };
    (program, group.into(), spec)
}

/// Median over cycles and threads.
fn lateness_ns(run: &RunResult) -> f64 {
    let mut took: Vec<Ns> = run.answers.iter().copied().filter(|ns| *ns != UNANSWERED).collect();
    took.sort_unstable();
    took.get(took.len() / 2).map_or(f64::INFINITY, |took| took.saturating_sub(WORK_NS) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closed_form_is_that_of_the_burst_experiment() {
        let ms = |phase: Ns| closed_form_ns(phase * MS) / 1e6;
        let expected = [(0, 20.0), (10, 10.0), (20, 0.0), (35, 0.0), (60, 0.0), (70, 0.0)];
        for (phase, late) in expected.into_iter().chain([(71, 49.0), (90, 30.0), (99, 21.0)]) {
            assert_eq!(ms(phase), late, "at {phase} ms");
        }
        assert_eq!(ms(105), ms(5));
    }
}
