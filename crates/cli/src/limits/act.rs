//! What `reveille plan` does with its answer: prints it for a runtime, applies it to a live group,
//! or tries it on this host's kernel.

use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;

use reveille_host::HostError;
use reveille_host::calibrate::allowed_cpus;
use reveille_host::cgroup::{Change, LiveGroup};
use reveille_measure::duration_ns;
use reveille_plan::{Plan, Request, Shown, Trial, Verification, parse_limits, verify};
use reveille_policy::BandwidthLimits;
use reveille_report::emit::{Emitted, Target};
use reveille_usage::HeldBack;
use serde::Serialize;

use crate::errors::{CliError, say};
use crate::progress::Progress;
use crate::this_host::this_command;

/// Options that act on the recommended setting.
#[derive(clap::Args)]
pub struct ActArgs {
    /// Print the recommended setting as configuration: cgroup2, cgroup1, k8s, oci, koordinator or
    /// systemd; what the format cannot express goes to standard error
    #[arg(long, value_name = "TARGET", value_parser = Target::parse, conflicts_with_all = ["json", "apply", "verify"])]
    pub emit: Option<Target>,
    /// Name of the group, container or unit in those lines
    #[arg(long, value_name = "NAME", requires = "emit")]
    pub name: Option<String>,
    /// Show the writes that would give the recommended setting to a live task group: cgroup:NAME,
    /// by name or directory. Its current limits are today's setting, unless --today is given
    #[arg(long, value_name = "cgroup:NAME", value_parser = group_name)]
    pub apply: Option<String>,
    /// Make those writes: compares before, reads back after, and rolls back if anything fails
    #[arg(long, requires = "apply", conflicts_with = "emit")]
    pub write: bool,
    /// Replay the recording in a real task group on this host under each setting shown, or only the
    /// recommended one, and compare with the prediction
    #[arg(long, value_name = "WHICH", num_args = 0..=1, require_equals = true,
          default_missing_value = "all", value_enum)]
    pub verify: Option<Which>,
    /// Also try this setting: quota=50ms,period=100ms,burst=0ms; repeat the option
    #[arg(long = "try", value_name = "LIMITS", requires = "verify")]
    pub also: Vec<String>,
    /// Runs under each setting
    #[arg(long, value_name = "N", default_value_t = 1, requires = "verify",
          value_parser = clap::value_parser!(u32).range(1..=100))]
    pub verify_repeats: u32,
    /// Replay only this much of the recording, from its start [default: all of it]
    #[arg(long, value_name = "TIME", requires = "verify", value_parser = some_time)]
    pub verify_for: Option<u64>,
}

/// Settings to try on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Which {
    /// Every setting the plan shows.
    All,
    /// Only the recommended one.
    Recommended,
}

fn some_time(text: &str) -> Result<u64, String> {
    match duration_ns(text).map_err(|error| error.to_string())? {
        0 => Err("nothing would be replayed: write 10s, or leave it out".to_owned()),
        ns => Ok(ns),
    }
}

fn group_name(text: &str) -> Result<String, String> {
    match text.strip_prefix("cgroup:") {
        Some(name) if !name.is_empty() => Ok(name.to_owned()),
        _ => Err("name a task group: cgroup:NAME".to_owned()),
    }
}

/// The writes to a live group, done or proposed.
#[derive(Debug, Serialize)]
pub struct Applied {
    group: String,
    from: String,
    to: String,
    /// The writes as shell commands, in order.
    writes: Vec<String>,
    notes: Vec<String>,
    /// The writes were made and read back.
    written: bool,
}

impl ActArgs {
    /// The live group; looked up before anything is computed.
    pub fn group(&self) -> Result<Option<LiveGroup>, CliError> {
        Ok(self.apply.as_deref().map(LiveGroup::open).transpose()?)
    }

    pub fn also(&self) -> Result<Vec<BandwidthLimits>, CliError> {
        let parsed = self.also.iter().map(|text| parse_limits("--try", text));
        Ok(parsed.collect::<Result<_, _>>()?)
    }

    /// Refuses to act on a setting that should not be used, before the plan is printed.
    pub fn check(&self, plan: &Plan) -> Result<(), CliError> {
        if self.apply.is_some() {
            recommended(plan)?;
        }
        let acts = self.apply.is_some() || self.emit.is_some();
        if plan.spreads_averages() && acts {
            let problem =
                "averages without counters of throttling hide every burst, so they tell no limit";
            let help = "record for 60 s, `reveille record --cgroup NAME -o FILE.parquet`, and plan for \
                        that file";
            return Err(HostError::input(problem, help).into());
        }
        if let Some(held_back) = plan.recording.held_back
            && acts
        {
            let (what, when) = match held_back {
                HeldBack::Programs => (
                    "other programs kept CPU time from the group for most of the recording",
                    "record when the host has idle time",
                ),
                HeldBack::LimitAround => (
                    "a group around this one was throttled during the recording",
                    "lift the limit around it, record again",
                ),
            };
            let problem = format!(
                "{what}, so it tells no limit: one from it would hold the group to less than it needs"
            );
            let help = format!(
                "{when}, `reveille record --cgroup NAME -o FILE.parquet`, and plan for that file"
            );
            return Err(HostError::input(problem, help).into());
        }
        match plan.too_short().filter(|_| self.write || self.emit.is_some()) {
            None => Ok(()),
            Some(mistake) => Err(HostError::Input(mistake).into()),
        }
    }

    /// The configuration of `--emit`.
    pub fn emitted(&self, plan: &Plan) -> Result<Option<Emitted>, CliError> {
        let Some(target) = self.emit else { return Ok(None) };
        let limits = recommended(plan)?;
        if plan.stays_unlimited() {
            let problem = "no quota up to all CPUs was found that meets the goals: there is no \
                           limit to set";
            let help = "leave the group without a limit, or plan for more CPUs: --cpus";
            return Err(HostError::input(problem, help).into());
        }
        let emitted = target.emit(&limits, self.name.as_deref());
        let told = match &emitted.missing {
            Some(missing) => Some(format!("not enough for the goals: {missing}")),
            None => reveille_report::headroom(plan),
        };
        let remarks = plan.warnings.iter().map(|warning| format!("warning: {warning}"));
        let remarks: Vec<String> = told.into_iter().chain(remarks).collect();
        let emitted =
            remarks.iter().rev().fold(emitted, |emitted, one| emitted.with_remark(target, one));
        for note in &emitted.notes {
            say(format_args!("{note}"));
        }
        Ok(Some(emitted))
    }

    /// Writes the recommended setting to `group`, or lists the writes.
    pub fn applied(
        &self,
        plan: &Plan,
        group: Option<&LiveGroup>,
        stop: &AtomicBool,
    ) -> Result<Option<Applied>, CliError> {
        let Some(group) = group else { return Ok(None) };
        let change = Change::plan(group, &recommended(plan)?.in_whole_us())?;
        let mut applied = Applied {
            group: group.name().to_owned(),
            from: change.from().to_string(),
            to: change.to().to_string(),
            writes: change.lines(),
            notes: change.notes(),
            written: false,
        };
        if self.write {
            change.make(stop)?;
            applied.written = true;
        }
        Ok(Some(applied))
    }

    /// Tries the chosen settings on this host.
    pub fn verified(
        &self,
        plan: &Plan,
        request: &Request<'_>,
        also: &[BandwidthLimits],
        stop: &AtomicBool,
    ) -> Result<Option<Verification>, CliError> {
        let Some(which) = self.verify else { return Ok(None) };
        let mut shown: Vec<&Shown> = plan.recommended.iter().collect();
        if which == Which::All {
            shown.extend(&plan.today);
            shown.extend(plan.alternatives.iter().map(|other| &other.shown));
        }
        let mut settings: Vec<BandwidthLimits> = shown.iter().map(|shown| shown.limits).collect();
        settings.extend_from_slice(also);
        settings.retain(|limits| limits.quota_ns.is_some());
        let usage = match self.verify_for {
            Some(span_ns) => request.usage.first(span_ns),
            None => request.usage.clone(),
        };
        let cpus: Vec<_> = allowed_cpus()?.into_iter().take(request.cpus as usize).collect();
        if cpus.len() < request.cpus as usize {
            say(format_args!(
                "this command may use {} of the plan's {} CPUs: on so many it predicts and measures; \
                 --cpus {} plans for them",
                cpus.len(),
                request.cpus,
                cpus.len(),
            ));
        }
        let trial = Trial {
            usage: &usage,
            settings,
            machine: request.machine,
            cpus,
            policy: request.policy.clone(),
            slice_ns: request.slice_ns,
            phases: request.phases,
            repeats: self.verify_repeats,
            controls: 2,
            seed: request.seed,
        };
        let progress = Progress::labelled("verify ");
        let tell = |done, total| progress.tell(done, total);
        let verification = verify(&trial, &this_command()?, stop, &tell);
        progress.finish();
        Ok(Some(verification?))
    }
}

/// The setting to act on: one that is only the nearest is shown and not set.
fn recommended(plan: &Plan) -> Result<BandwidthLimits, HostError> {
    let less =
        "ask for less, or give more CPUs: --cpus; without --emit and --apply you see the plan";
    match &plan.recommended {
        None => Err(HostError::input("no setting was found that meets the goals", less)),
        Some(shown) if !shown.meets_goals => {
            let problem = "the setting found comes nearest to the goals and does not meet them";
            Err(HostError::input(problem, less))
        }
        Some(shown) => Ok(shown.limits),
    }
}

impl Applied {
    /// The writes as text for the terminal.
    pub fn text(&self) -> String {
        let Applied { group, from, to, .. } = self;
        let mut text = format!("\n{group}: {from} -> {to}\n");
        if self.writes.is_empty() {
            text.push_str(
                "  it is so already; nothing is written, for every write refills the group\n",
            );
        }
        for line in &self.writes {
            let _ = writeln!(text, "  {line}");
        }
        for note in &self.notes {
            let _ = writeln!(text, "  note: {note}");
        }
        match (self.written, self.writes.is_empty()) {
            (_, true) => {}
            (true, _) => text.push_str("  written, and read back\n"),
            (false, _) => text.push_str("  nothing is written yet: add --write\n"),
        }
        text
    }
}
