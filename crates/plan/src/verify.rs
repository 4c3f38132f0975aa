//! Checks a plan on this host: replays the load in a real task group under each setting, and
//! compares with the prediction. The kernel has one phase; the prediction is a range over phases.
//!
//! Runs without a limit come first, to measure the host's own effect: CPU time that the kernel
//! charges per request beyond the work (wakeups, switches, interrupts) goes into the prediction,
//! and the deviation of latencies widens the range.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use reveille_host::cgroup::HostGroups;
use reveille_host::program::{self, Setting};
use reveille_machine::{CpuId, Machine};
use reveille_measure::{RunResult, enough_for};
use reveille_policy::{BandwidthLimits, Groups, Policy};
use reveille_usage::Usage;
use serde::Serialize;

use crate::figures::{Figures, Range};
use crate::load::Load;
use crate::replay::{Outcome, Phase, Stage, cpus_like};
use crate::short::pieces;
use crate::{Ns, Result};

/// A run is disturbed if others used more than this share of its CPUs.
const DISTURBED: f64 = 0.05;
/// Tolerance of p99 beyond its range, relative: the median error of docs/plan.md's trials.
const SLACK: f64 = 0.05;

/// Does the measurement agree with the prediction?
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// In most runs throttled share and, of enough requests, p99 were as predicted.
    Agrees,
    /// Other programs disturbed most runs.
    Void,
    /// In half of the runs or more they were not as predicted.
    Disagrees,
}

#[derive(Clone, Debug)]
pub struct Trial<'a> {
    pub usage: &'a Usage,
    /// Settings to try, in order.
    pub settings: Vec<BandwidthLimits>,
    /// Machine to predict with: costs, tick and idle states.
    pub machine: &'a Machine,
    /// CPUs of this host to run on.
    pub cpus: Vec<CpuId>,
    pub policy: Policy,
    /// CPU time that a CPU draws from the quota at once.
    pub slice_ns: Ns,
    pub phases: u32,
    /// Runs under each setting, each in a fresh group, whose phase the kernel chooses.
    pub repeats: u32,
    /// Runs without a limit, before all others.
    pub controls: u32,
    pub seed: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    pub figures: Figures<f64>,
    /// CPUs that other tasks used meanwhile.
    pub others_cpus: f64,
}

/// The host's own effect on the load, without any limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Control {
    /// Over phases.
    pub predicted: Figures<Range>,
    pub measured: Vec<Measured>,
    /// CPU time that the kernel charges per request beyond its work.
    pub charged_beyond_ns: Ns,
    /// Measured p99 divided by predicted: minimum and maximum; `None` of too few requests.
    pub p99_stretch: Option<[f64; 2]>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verified {
    pub limits: BandwidthLimits,
    pub predicted: Figures<Range>,
    pub measured: Vec<Measured>,
    /// Runs whose throttled share lies within the range, to one period.
    pub throttled_inside: u32,
    /// Runs whose p99 lies within the predicted range; `None` if the load has too few requests for
    /// a p99, as are those below that rest on it.
    pub p99_inside: Option<u32>,
    /// Runs whose p99 lies within the range stretched by the control.
    pub p99_inside_stretched: Option<u32>,
    /// Throttled share of the median run minus the range's median.
    pub throttled_off: f64,
    /// p99 of the median run divided by the range's median, minus 1.
    pub p99_off: Option<f64>,
    /// Verdict on the undisturbed runs.
    pub verdict: Verdict,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verification {
    pub name: String,
    /// Runs without a limit.
    pub control: Option<Control>,
    pub settings: Vec<Verified>,
    /// The worst verdict of all settings; void if none was tried.
    pub verdict: Verdict,
    pub cpus: u32,
}

impl Verification {
    /// CPUs that other programs used in the most disturbed run.
    pub fn most_others_cpus(&self) -> f64 {
        let runs = self.settings.iter().flat_map(|setting| &setting.measured);
        runs.map(|run| run.others_cpus).fold(0.0, f64::max)
    }
}

/// Predicts and measures. `command` is the path of `reveille`; `progress` is called with the number
/// of completed host runs and the total.
///
/// # Errors
/// [`crate::PlanError::Host`]: no task group can be created here, or a run fails; everything is
/// cleaned up then.
pub fn verify(
    trial: &Trial<'_>,
    command: &Path,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Verification> {
    let machine = cpus_like(trial.machine, trial.cpus.len() as u32)?;
    let drawn = (trial.slice_ns, trial.seed);
    let stage = Stage::new(machine, trial.policy.clone(), drawn, stop, &|| ());
    let host = Host { trial, stage: &stage, command, stop };
    let total = trial.controls as usize + trial.settings.len() * trial.repeats as usize;
    let mut done = 0;
    let mut tell = || {
        done += 1;
        progress(done, total);
    };
    let load = Load::new(&[trial.usage]);
    let control = host.control(&load, &mut tell)?;
    let beyond_ns = control.as_ref().map_or(0, |control| control.charged_beyond_ns);
    let charged = charged(trial.usage, beyond_ns);
    let settings = trial.settings.iter().map(|&limits| {
        let predicted = host.predicted(&charged, Some(limits))?;
        let mut measured = Vec::with_capacity(trial.repeats as usize);
        for _ in 0..trial.repeats {
            measured.push(host.measured(&load, Some(limits))?);
            tell();
        }
        let cpus = trial.cpus.len() as u32;
        Ok(held_against(limits, predicted, measured, control.as_ref(), trial.usage, cpus))
    });
    let settings = settings.collect::<Result<Vec<Verified>>>()?;
    let cpus = trial.cpus.len() as u32;
    let verdict = settings.iter().map(|setting| setting.verdict).max().unwrap_or(Verdict::Void);
    Ok(Verification { name: trial.usage.name.clone(), control, settings, verdict, cpus })
}

/// The work, each piece longer by the kernel's overhead.
fn charged(usage: &Usage, beyond_ns: Ns) -> Usage {
    let mut charged = usage.clone();
    for demand in &mut charged.demands {
        demand.cpu_ns += beyond_ns;
    }
    charged
}

struct Host<'a> {
    trial: &'a Trial<'a>,
    stage: &'a Stage<'a>,
    command: &'a Path,
    stop: &'a AtomicBool,
}

impl Host<'_> {
    /// Runs without a limit; `None` if none are requested.
    fn control(&self, load: &Load, tell: &mut impl FnMut()) -> Result<Option<Control>> {
        let mut measured = Vec::new();
        for _ in 0..self.trial.controls {
            measured.push(self.measured(load, None)?);
            tell();
        }
        if measured.is_empty() {
            return Ok(None);
        }
        // Measured and simulated over the same part of the load.
        let used = middle(measured.iter().map(|run| run.figures.cpus_used));
        let asked = self.predicted(self.trial.usage, None)?.cpus_used.median;
        let pieces_per_ns =
            self.trial.usage.demands.len().max(1) as f64 / self.trial.usage.span_ns.max(1) as f64;
        let charged_beyond_ns = ((used - asked) / pieces_per_ns).max(0.0) as Ns;
        let predicted = self.predicted(&charged(self.trial.usage, charged_beyond_ns), None)?;
        let p99_stretch = enough_for(pieces(self.trial.usage), 0.99).then(|| {
            let stretch = measured.iter().map(|run| run.figures.p99_ns / predicted.p99_ns.median);
            stretch.fold([f64::INFINITY, 0.0_f64], |[least, most], s| [least.min(s), most.max(s)])
        });
        Ok(Some(Control { predicted, measured, charged_beyond_ns, p99_stretch }))
    }

    fn predicted(&self, usage: &Usage, limits: Option<BandwidthLimits>) -> Result<Figures<Range>> {
        let phases = self.trial.phases;
        let load = Load::new(&[usage]);
        let runs = (0..phases).into_par_iter().map(|index| {
            let outcome = self.stage.replay(&load, limits, Phase::of_grid(index, phases))?;
            Ok(self.stage.figures(&load, &outcome, 0.0))
        });
        let runs: Vec<Figures<f64>> = runs.collect::<Result<_>>()?;
        let mut figures = Figures::over(&runs, Range::over);
        figures.leave_out(pieces(usage), &[], Range::UNKNOWN);
        Ok(figures)
    }

    /// One run in a fresh group.
    fn measured(&self, load: &Load, limits: Option<BandwidthLimits>) -> Result<Measured> {
        let mut groups: Groups = self.stage.groups(load, limits, Phase::of_grid(0, 1));
        for group in &mut groups.groups {
            // Leave the phase to the kernel, as in production.
            group.phase_ns = None;
        }
        let made = HostGroups::create(&groups)?;
        let setting = Setting { cpus: self.trial.cpus.clone(), groups: made.files(&groups)? };
        let spec = self.stage.spec(load, &groups);
        let ran = program::run(self.command, &load.program, &setting, &spec, self.stop)?;
        let others_cpus = others(&ran.result);
        let outcome = Outcome::of(ran.result);
        let mut figures = self.stage.figures(load, &outcome, 0.0);
        figures.leave_out(pieces(self.trial.usage), &[], f64::NAN);
        Ok(Measured { figures, others_cpus })
    }
}

/// CPUs busy with tasks outside the group.
fn others(run: &RunResult) -> f64 {
    let busy: Ns = run.cpus.iter().map(|cpu| cpu.busy_ns + cpu.cost_ns).sum();
    let own: Ns = run.groups.iter().map(|group| group.usage_ns).sum();
    busy.saturating_sub(own) as f64 / run.elapsed_ns.max(1) as f64
}

fn held_against(
    limits: BandwidthLimits,
    predicted: Figures<Range>,
    measured: Vec<Measured>,
    control: Option<&Control>,
    usage: &Usage,
    cpus: u32,
) -> Verified {
    let count = |inside: &dyn Fn(&Figures<f64>) -> bool| {
        measured.iter().filter(|run| inside(&run.figures)).count() as u32
    };
    let one_period = limits.period_ns as f64 / usage.span_ns as f64;
    let told = enough_for(pieces(usage), 0.99);
    let [least, most] = control.and_then(|control| control.p99_stretch).unwrap_or([1.0, 1.0]);
    let (throttled, p99) = (predicted.throttled_share, predicted.p99_ns);
    let within = |value: f64, low: f64, high: f64| value >= low && value <= high;
    let throttled_as_predicted = |run: &Figures<f64>| {
        within(run.throttled_share, throttled.min - one_period, throttled.max + one_period)
    };
    let throttled_inside = count(&throttled_as_predicted);
    let p99_inside = told.then(|| count(&|run| within(run.p99_ns, p99.min, p99.max)));
    let (low, high) = (p99.min * least.min(1.0), p99.max * most.max(1.0));
    let p99_inside_stretched = told.then(|| count(&|run| within(run.p99_ns, low, high)));
    let as_predicted = |run: &Figures<f64>| {
        let p99 = !told || within(run.p99_ns, low * (1.0 - SLACK), high * (1.0 + SLACK));
        throttled_as_predicted(run) && p99
    };
    let quiet = |run: &&Measured| run.others_cpus <= DISTURBED * f64::from(cpus);
    let valid: Vec<&Measured> = measured.iter().filter(quiet).collect();
    let agree = valid.iter().filter(|run| as_predicted(&run.figures)).count();
    let verdict = match valid.len() {
        n if 2 * n < measured.len() || n == 0 => Verdict::Void,
        n if 2 * agree > n => Verdict::Agrees,
        _ => Verdict::Disagrees,
    };
    let middle_throttled = middle(measured.iter().map(|run| run.figures.throttled_share));
    let middle_p99 = middle(measured.iter().map(|run| run.figures.p99_ns));
    Verified {
        limits,
        throttled_inside,
        p99_inside,
        p99_inside_stretched,
        throttled_off: middle_throttled - throttled.median,
        p99_off: told.then(|| middle_p99 / p99.median - 1.0),
        verdict,
        predicted,
        measured,
    }
}

/// The median; the lower one for an even number.
fn middle(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(p99_ns: f64, throttled_share: f64) -> Measured {
        let figures = Figures { p99_ns, throttled_share, ..Figures::default() };
        Measured { figures, others_cpus: 0.0 }
    }

    #[test]
    fn a_run_is_inside_or_it_is_not() {
        let limits =
            BandwidthLimits { quota_ns: Some(50_000_000), period_ns: 100_000_000, burst_ns: 0 };
        let predicted = Figures {
            p99_ns: Range { min: 10.0, median: 20.0, max: 40.0 },
            throttled_share: Range { min: 0.1, median: 0.2, max: 0.3 },
            ..Figures::default()
        };
        // 100 periods: one is a hundredth.
        let usage = |pieces: usize| {
            let mut usage = Usage::random("load", 1, 0.5, 1_000_000, 10_000_000_000, 1);
            usage.demands.truncate(pieces);
            usage
        };
        let load = &usage(1000);
        let runs = vec![run(40.5, 0.315), run(22.0, 0.305), run(9.0, 0.05)];
        let alone = held_against(limits, predicted.clone(), runs.clone(), None, load, 2);
        assert_eq!(
            (alone.p99_inside, alone.p99_inside_stretched, alone.throttled_inside),
            (Some(1), Some(1), 1)
        );
        assert!(
            (alone.p99_off.unwrap() - 0.1).abs() < 1e-9
                && (alone.throttled_off - 0.105).abs() < 1e-9
        );
        let control = Control {
            predicted: Figures::default(),
            measured: Vec::new(),
            charged_beyond_ns: 0,
            p99_stretch: Some([0.85, 1.02]),
        };
        let stretched =
            held_against(limits, predicted.clone(), runs.clone(), Some(&control), load, 2);
        assert_eq!((stretched.p99_inside, stretched.p99_inside_stretched), (Some(1), Some(3)));

        // The first two are within 5% or a period; the third's throttled share is not.
        let verdict = |runs: Vec<Measured>| {
            held_against(limits, predicted.clone(), runs, None, load, 2).verdict
        };
        let disturbed = |run: &Measured| Measured { others_cpus: 1.75, ..run.clone() };
        assert_eq!(verdict(vec![run(41.9, 0.305), runs[1].clone()]), Verdict::Agrees);
        assert_eq!(verdict(vec![run(42.1, 0.305)]), Verdict::Disagrees);
        assert_eq!(verdict(vec![runs[1].clone(), runs[2].clone()]), Verdict::Disagrees);
        assert_eq!(verdict(vec![disturbed(&runs[2])]), Verdict::Void);
        assert_eq!(verdict(vec![runs[1].clone(), disturbed(&runs[2])]), Verdict::Agrees);
        assert_eq!(verdict(Vec::new()), Verdict::Void);

        // Of 999 requests there is no p99: throttling alone decides.
        let far = vec![run(f64::NAN, 0.305)];
        let few = held_against(limits, predicted.clone(), far, None, &usage(999), 2);
        assert_eq!((few.p99_inside, few.p99_off, few.verdict), (None, None, Verdict::Agrees));
    }
}
