//! `reveille fleet`: ranks many recordings, in shards if one machine is too slow.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use reveille_machine::Machine;
use reveille_measure::Shard;
use reveille_place::{CHECK_PATH, InputError, InputKind, Mistake, read_input_text};
use reveille_plan::{Allowed, Failed, Fleet, Goal, Platform, Request, Skipped, in_shard};
use reveille_policy::Policy;
use reveille_usage::Usage;
use serde::Deserialize;

use crate::errors::{CliError, Result};
use crate::limits::plan::percent;
use crate::output::{print_as, width};
use crate::page::PageFile;
use crate::progress::Progress;
use crate::signals::watch_signals;
use crate::this_host::running_base;
use crate::watched::{JobsArg, ended};

/// CPUs of a node, unless a recording or an option says.
const USUAL_CPUS: u32 = 16;

/// Rank containers by what their CPU limits do to them
///
/// Reads every recording in a directory (.parquet, .json of Prometheus, .csv of requests), such as
/// `reveille record --prometheus URL --all` writes: which containers are throttled, how long their
/// requests wait for it, and which limits have room. Figures are estimates; run `reveille plan` on a
/// container before you change its limit.
#[derive(clap::Args)]
pub struct FleetArgs {
    /// Directories and recordings; or the JSON of all shards, to merge them
    #[arg(value_name = "DIR|FILE", required = true)]
    from: Vec<PathBuf>,
    #[command(flatten)]
    look: LookArgs,
    /// Process one shard of the recordings: 2/8 is the second of eight. `reveille fleet` merges the
    /// JSON of all shards
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
}

/// Options on how to evaluate recordings and print the ranking.
#[derive(clap::Args)]
pub struct LookArgs {
    /// What the limit must achieve: p99=50ms (any quantile), throttled<1%; repeat the option for
    /// several
    #[arg(long, value_name = "GOAL")]
    goal: Vec<String>,
    /// CPUs of a node [default: those of the recorded host, or 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=512))]
    cpus: Option<u32>,
    /// The goals must hold with this much more work in every request, in percent
    #[arg(long, value_name = "PCT", default_value = "15", value_parser = percent)]
    headroom: f64,
    /// What sets the limits: kubernetes, koordinator, systemd, docker or cgroup2
    #[arg(long = "on", value_name = "PLATFORM", default_value = "kubernetes",
          value_parser = Platform::parse)]
    platform: Platform,
    #[command(flatten)]
    jobs: JobsArg,
    /// Print JSON, and nothing else, on standard output
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print CSV, and nothing else, on standard output
    #[arg(long)]
    csv: bool,
    /// Also write a page to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl LookArgs {
    /// An option that has no meaning outside a fleet, if one is given.
    pub fn stray(&self) -> Option<&'static str> {
        let given = [
            ("--goal", !self.goal.is_empty()),
            ("--cpus", self.cpus.is_some()),
            ("--jobs", self.jobs.is_given()),
            ("--csv", self.csv),
            ("--html", self.html.is_some()),
        ];
        given.into_iter().find_map(|(option, given)| given.then_some(option))
    }
}

pub fn fleet(args: &FleetArgs) -> Result<ExitCode> {
    let look = Look::new(&args.look)?;
    let json = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
    if args.from.iter().all(json)
        && let Some(texts) = args.from.iter().map(|path| part(path)).collect::<Option<Vec<_>>>()
    {
        if args.shard.is_some() || !args.look.goal.is_empty() {
            let problem = "the parts were made with goals and shards of their own";
            let help = "merge them without --goal and --shard";
            return Err(CliError::unknown(Mistake::new(problem, help)));
        }
        let parts = texts.into_iter().map(Part::read).collect::<Result<_, _>>()?;
        return look.show(&Fleet::merged(parts).map_err(CliError::unknown)?);
    }
    let mut found = Found::default();
    for path in &args.from {
        found.add(path, path)?;
    }
    let Found { mut recordings, mut skipped } = found;
    if recordings.is_empty() {
        let from = args.from.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
        let help = "name the directory that `reveille record --prometheus URL --all` wrote";
        let mut problem =
            format!("no recording (FILE.parquet, .json or .csv) in {}", from.join(", "));
        if let Some(Skipped { name, why }) = skipped.first() {
            let n = skipped.len();
            problem += &match n {
                1 => format!("; skipped {name}: {why}"),
                _ => format!("; of {n} files skipped, the first is {name}: {why}"),
            };
        }
        return Err(CliError::unknown(Mistake::new(problem, help)));
    }
    recordings.sort();
    let shard = args.shard.unwrap_or(Shard::WHOLE);
    recordings.retain(|recording| in_shard(shard, &recording.name));
    skipped.retain(|file| in_shard(shard, &file.name));
    let stop = watch_signals()?;
    look.at(&recordings, shard, (Vec::new(), skipped), &stop)
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Recording {
    /// Path relative to the argument; decides which shard it is in.
    pub name: String,
    pub path: PathBuf,
}

impl Recording {
    /// What it is called in the table. JSON and CSV hold no name: in a directory their path is it.
    fn shown(&self, usage: &Usage) -> String {
        let named = self.path.extension().is_some_and(|extension| extension == "parquet");
        if named || Path::new(&self.name) == self.path {
            return usage.name.clone();
        }
        Path::new(&self.name).with_extension("").display().to_string()
    }
}

/// The files that the arguments name or hold.
#[derive(Default)]
struct Found {
    recordings: Vec<Recording>,
    skipped: Vec<Skipped>,
}

impl Found {
    /// Adds a file, or the files of a directory and its subdirectories, except hidden ones.
    fn add(&mut self, given: &Path, path: &Path) -> Result<()> {
        let error = |error| InputError::unreadable(path, error, CHECK_PATH);
        if !fs::metadata(path).map_err(error)?.is_dir() {
            let name = path.display().to_string();
            self.recordings.push(Recording { name, path: path.to_owned() });
            return Ok(());
        }
        for entry in fs::read_dir(path).map_err(error)? {
            let entry = entry.map_err(error)?;
            let path = entry.path();
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            if path.is_dir() {
                self.add(given, &path)?;
                continue;
            }
            let name = path.strip_prefix(given).unwrap_or(&path).display().to_string();
            match no_recording(&path) {
                Some(why) => self.skipped.push(Skipped { name, why: why.into() }),
                None => self.recordings.push(Recording { name, path }),
            }
        }
        Ok(())
    }
}

/// Why a file of a directory is not taken for a recording. An unreadable file counts as one, so
/// that it is listed as failed.
fn no_recording(path: &Path) -> Option<&'static str> {
    /// What the JSON of all commands and the CSV of this one begin with, without blanks.
    const OWN: [&[u8]; 2] = [b"{\"version\":", b"container,limit_cpus,"];
    let extension = path.extension().and_then(|extension| extension.to_str());
    if extension == Some("parquet") {
        return None;
    }
    if !matches!(extension, Some("json" | "csv")) {
        return Some("its name does not end in .parquet, .json or .csv");
    }
    if path.with_extension("parquet").exists() {
        // As `import` leaves it; ranked twice, its CPUs to spare would count twice.
        return Some("a recording of its name in .parquet is beside it");
    }
    // A pipe would keep the command waiting.
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut head = Vec::new();
    fs::File::open(path).ok()?.take(64).read_to_end(&mut head).ok()?;
    if head.is_empty() {
        // As a shell makes it when this command's output goes there.
        return Some("it is empty");
    }
    head.retain(|byte| !byte.is_ascii_whitespace());
    OWN.iter().any(|own| head.starts_with(own)).then_some("it is a result of reveille")
}

/// JSON of one shard, checked as far as its `shards`; Prometheus' JSON has a `status`.
struct Part<'a> {
    path: &'a Path,
    json: serde_json::Value,
}

impl Part<'_> {
    fn read(self) -> Result<Fleet> {
        serde_json::from_value(self.json).map_err(|error| {
            let problem = format!("is no part of a fleet: {error}");
            let help = "write parts with this version of `reveille fleet --json`";
            let path = self.path.display().to_string();
            Mistake::new(problem, help).in_file(path)
        })
    }
}

/// `None` if the file is not this command's JSON.
fn part(path: &Path) -> Option<Part<'_>> {
    let text = read_input_text(path, InputKind::RECORDING).ok()?;
    let json: serde_json::Value = serde_json::from_str(&text).ok()?;
    Vec::<Shard>::deserialize(json.get("shards")?).ok()?;
    Some(Part { path, json })
}

/// The checked options of [`LookArgs`].
pub struct Look<'a> {
    args: &'a LookArgs,
    goals: Vec<Goal>,
    machine: Machine,
    policy: Policy,
    html: Option<PageFile>,
}

impl Look<'_> {
    /// Refuses meaningless options before any work is done.
    pub fn new(args: &LookArgs) -> Result<Look<'_>> {
        let goals = args.goal.iter().map(|text| Goal::parse(text)).collect::<Result<_, _>>()?;
        Ok(Look {
            args,
            goals,
            machine: reveille_study::machine("host")?,
            policy: reveille_study::kernel(running_base())?,
            html: PageFile::prepare(args.html.as_deref())?,
        })
    }

    /// Evaluates all recordings and prints them, with those that could not be read and the files
    /// that were skipped.
    pub fn at(
        &self,
        recordings: &[Recording],
        shard: Shard,
        (failed, skipped): (Vec<Failed>, Vec<Skipped>),
        stop: &AtomicBool,
    ) -> Result<ExitCode> {
        let read = |recording: &Recording| {
            let usage = Usage::read(&recording.path).map_err(|error| Failed {
                name: recording.name.clone(),
                mistake: Mistake::of(&error, CHECK_PATH),
            })?;
            Ok(Usage { name: recording.shown(&usage), ..usage })
        };
        let progress = Progress::of("recordings");
        let done = AtomicUsize::new(0);
        let told = || {
            let done = 1 + done.fetch_add(1, Ordering::Relaxed);
            progress.tell(done, recordings.len());
        };
        let jobs = self.args.jobs.threads();
        let cpus = |usage: &Usage| self.args.cpus.or(usage.host_cpus).unwrap_or(USUAL_CPUS);
        let nothing = Usage::idle("");
        let like = self.request(&nothing);
        let found = reveille_plan::fleet(recordings, &like, jobs, stop, read, cpus, told);
        progress.finish();
        let (containers, mut all_failed) = found?;
        let missing = recordings.len() - containers.len() - all_failed.len();
        all_failed.extend(failed);
        let goals = self.goals.iter().map(|goal| goal.text.clone()).collect();
        let headroom = self.args.headroom / 100.0;
        let (shards, failed) = (vec![shard], all_failed);
        let fleet = Fleet { goals, headroom, shards, containers, failed, skipped, missing };
        self.show(&fleet.ranked())
    }

    /// The request each recording is evaluated with.
    fn request<'u>(&'u self, usage: &'u Usage) -> Request<'u> {
        Request {
            goals: self.goals.clone(),
            cpus: USUAL_CPUS,
            phases: 1,
            headroom: self.args.headroom / 100.0,
            allowed: Allowed { platform: self.args.platform, no_burst: true, ..Allowed::default() },
            ..Request::new(usage, &self.machine, self.policy.clone())
        }
    }

    /// Prints it; fails if a recording could not be evaluated.
    fn show(&self, fleet: &Fleet) -> Result<ExitCode> {
        if let Some(html) = &self.html {
            html.write(|made| reveille_report::fleet_html(fleet, made))?;
        }
        let csv = || reveille_report::fleet_csv(fleet);
        let table = || reveille_report::fleet_table(fleet, width());
        print_as((self.args.json, self.args.csv), fleet, csv, table)?;
        Ok(match fleet.missing {
            0 if fleet.failed.is_empty() => ExitCode::SUCCESS,
            0 => ExitCode::FAILURE,
            n => {
                let all = n + fleet.containers.len() + fleet.failed.len();
                ended(true, &format!("{n} of {all} recordings are missing from the result"))
            }
        })
    }
}
