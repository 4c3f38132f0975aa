//! From options to what the scheduler reads: features that mean something here, and
//! times within bounds.

use std::ops::RangeInclusive;

use reveille_policy::{Policy, Tunables, bits, scaling_factor, scx_names, scx_without_meaning};

use crate::args::RunArgs;
use crate::error::ScxError;

/// Everything that a run is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The baseline with its edits.
    pub policy: Policy,
    /// What decisions read.
    pub tunables: Tunables,
    /// A task's turn, ns.
    pub slice_ns: u64,
    /// A sleeper's credit before GENTLE_FAIR_SLEEPERS halves it, ns.
    pub sleeper_credit_ns: u64,
    /// How far ahead a wakee must be to preempt, ns.
    pub wakeup_granularity_ns: u64,
    /// What a CPU draws from a quota at a time, ns.
    pub bandwidth_slice_ns: u64,
    /// CPUs of a shard.
    pub shard_cpus: u32,
    /// The kernel's watchdog, ms.
    pub watchdog_ms: u32,
}

impl Settings {
    /// Checks the options for a machine of so many CPUs and this tick.
    ///
    /// # Errors
    /// Names the option that is wrong.
    pub fn new(args: &RunArgs, n_cpus: usize, hz: u32) -> Result<Settings, ScxError> {
        let policy = Policy::baseline(&args.base).map_err(|mistake| {
            ScxError::refused(format!("--base: {}", mistake.problem), mistake.help)
        })?;
        let policy = match &args.with {
            Some(edits) => edited(&policy, edits).map_err(|e| match e {
                ScxError::Refused { problem, help } => {
                    ScxError::refused(format!("--with: {problem}"), help)
                }
                other => other,
            })?,
            None => policy,
        };
        let tunables = policy.tunables(n_cpus, hz);
        let unit_us = tunables.min_granularity_ns / 1000;
        // As sched_latency and sched_wakeup_granularity: 6 ms and 1 ms, scaled. With EEVDF a
        // task that slept keeps no more lag than two slices.
        let scale = scaling_factor(n_cpus);
        let eevdf = policy.features & bits::EEVDF != 0;
        let credit_us = if eevdf { 2 * unit_us } else { 6000 * scale };
        Ok(Settings {
            slice_ns: within("--slice-us", args.slice_us.unwrap_or(unit_us), 100..=100_000)?,
            sleeper_credit_ns: within(
                "--sleeper-credit-us",
                args.sleeper_credit_us.unwrap_or(credit_us),
                0..=1_000_000,
            )?,
            wakeup_granularity_ns: within(
                "--wakeup-granularity-us",
                args.wakeup_granularity_us.unwrap_or(1000 * scale),
                0..=1_000_000,
            )?,
            bandwidth_slice_ns: within(
                "--bandwidth-slice-us",
                args.bandwidth_slice_us,
                1000..=100_000,
            )?,
            shard_cpus: checked("--swqueue-shard", args.swqueue_shard.into(), 1..=512)? as u32,
            watchdog_ms: checked("--watchdog-ms", args.watchdog_ms.into(), 4000..=30_000)? as u32,
            policy,
            tunables,
        })
    }
}

/// A policy with edits, of features that mean something here.
///
/// # Errors
/// An unknown feature, an edit that changes nothing, or a feature without meaning.
pub fn edited(policy: &Policy, edits: &str) -> Result<Policy, ScxError> {
    let edited = policy
        .with_for_scx(edits)
        .map_err(|mistake| ScxError::refused(mistake.problem, mistake.help))?;
    let changed = edited.features ^ policy.features;
    if let Some(found) = scx_without_meaning(changed) {
        return Err(ScxError::refused(
            format!("{} means nothing to scx_reveille: {}", found.feature, found.why),
            "leave it out; `reveille compare` simulates it",
        ));
    }
    Ok(edited)
}

/// Features as `--monitor`, scx_stats and `set` name them: those that mean something here.
pub fn names(features: u64) -> Vec<String> {
    scx_names(features).into_iter().map(str::to_owned).collect()
}

/// A policy of these features; the baseline's name is lost on the way through the kernel, and its release
/// means nothing here.
pub fn policy_of(features: u64) -> Policy {
    let (base, edits) = ("the scheduler".to_owned(), String::new());
    Policy { base, release: (0, 0), edits, features, file: None }
}

fn checked(option: &str, value: u64, range: RangeInclusive<u64>) -> Result<u64, ScxError> {
    if range.contains(&value) {
        return Ok(value);
    }
    Err(ScxError::refused(
        format!("{option} {value} is out of bounds"),
        format!("give a value from {} to {}", range.start(), range.end()),
    ))
}

/// Microseconds in bounds, as nanoseconds.
fn within(option: &str, us: u64, range: RangeInclusive<u64>) -> Result<u64, ScxError> {
    checked(option, us, range).map(|us| us * 1000)
}
