//! `reveille bench -- COMMAND`: runs any program repeatedly, each time in a fresh task group, and
//! compares two saved sets of runs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use reveille_host::cgroup::HostGroups;
use reveille_host::command::{CommandRun, RunCommand};
use reveille_host::supervise::{self, Place};
use reveille_host::{HostError, Watch};
use reveille_measure::GroupStats;
use reveille_place::{InputKind, read_input_text};
use reveille_policy::{BandwidthLimits, Groups};
use reveille_report::{bench_change_table, bench_json, bench_table, json_text, read_bench};
use reveille_study::{BENCH_FORMAT, BenchRuns, TaskGroup};

use super::place::{self, PlaceArgs};
use crate::errors::{Result, say};
use crate::output::print;
use crate::output_file::OutputFile;
use crate::progress::Progress;
use crate::signals::watch_signals;
use crate::this_host::this_command;

#[derive(clap::Args)]
pub struct CommandArgs {
    /// Program to run, and its arguments, after `--`
    #[arg(value_name = "COMMAND", last = true, required_unless_present = "before")]
    words: Vec<OsString>,
    /// Measured runs
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repeats: u32,
    /// Warm-up runs, not counted
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    warmup: u32,
    /// Pass the command's output to standard error; by default it is discarded
    #[arg(long)]
    show_output: bool,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
    /// Also write the runs to this file, for --before and --after
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Overwrite the file of --save if it exists
    #[arg(long, requires = "save")]
    force: bool,
    /// Baseline runs, a file that --save wrote
    #[arg(long, value_name = "FILE", requires = "after",
          conflicts_with_all = ["words", "repeats", "warmup", "show_output", "save", "cpus", "cgroup"])]
    before: Option<PathBuf>,
    /// Runs to compare with the baseline, a file that --save wrote
    #[arg(long, value_name = "FILE", requires = "before")]
    after: Option<PathBuf>,
    #[command(flatten)]
    place: PlaceArgs,
}

pub fn command(args: &CommandArgs) -> Result<ExitCode> {
    if let (Some(before), Some(after)) = (&args.before, &args.after) {
        let [before, after] = [read("--before", before)?, read("--after", after)?];
        print(&match args.json {
            true => json_text(&before.compare(&after)),
            false => bench_change_table(&before, &after),
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let claim = |path| OutputFile::prepare("--save", path)?.claim("--save", args.force);
    let save = args.save.as_deref().map(claim).transpose()?;
    let runs = measure(args)?;
    let json = bench_json(&runs);
    let shown = if args.json {
        print(&json)
    } else {
        print(&(bench_table(&runs) + &place::context(&runs.host, runs.group.as_ref())))
    };
    if let Some(file) = save {
        file.write(&json)?;
    }
    shown?;
    Ok(ExitCode::SUCCESS)
}

fn read(option: &str, path: &Path) -> Result<BenchRuns> {
    let text = read_input_text(path, InputKind::RECORDING).map_err(|error| {
        let doing = format!("read the file of `{option}`, {}", path.display());
        HostError::system(doing, error, "name a file that `reveille bench --save FILE` wrote")
    })?;
    read_bench(&text).map_err(|problem| {
        let problem = format!("`{option} {}`: {problem}", path.display());
        HostError::input(problem, "name a file that `reveille bench --save FILE` wrote").into()
    })
}

/// How a command is run each time.
struct Bench<'a> {
    program: PathBuf,
    place: Place,
    groups: Groups,
    job: RunCommand,
    stop: &'a AtomicBool,
}

fn measure(args: &CommandArgs) -> Result<BenchRuns> {
    let cpus = place::cpus(&args.place)?;
    let limited = place::limited(&args.place)?;
    let program = this_command()?;
    // Before there is anything a signal could leave behind.
    let stop = watch_signals()?;
    let groups = groups(limited)?;
    let task_group = !groups.groups.is_empty();
    let bench = Bench {
        program,
        place: Place { cpus: cpus.clone(), join: Vec::new() },
        groups,
        job: RunCommand { words: args.words.clone(), group: None, show_output: args.show_output },
        stop: &stop,
    };
    for number in 1..=args.warmup {
        bench.run(&format!("in warm-up run {number} of {}", args.warmup))?;
    }
    let progress = Progress::new();
    let watch = Watch::begin();
    let (mut runs, mut counted) = (Vec::new(), None);
    for number in 1..=args.repeats {
        progress.tell(runs.len(), args.repeats as usize);
        let (run, stats) = bench.run(&format!("in run {number} of {}", args.repeats))?;
        runs.push(run);
        if let Some(stats) = stats.filter(|_| args.place.cgroup.is_some()) {
            *counted
                .get_or_insert(GroupStats { name: stats.name.clone(), ..Default::default() }) +=
                &stats;
        }
    }
    progress.finish();
    Ok(BenchRuns {
        format: BENCH_FORMAT,
        command: args.words.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        cpus,
        task_group,
        limit: args.place.cgroup.clone(),
        warmup: args.warmup,
        tick_ns: Some(reveille_host::tick_period()),
        runs,
        group: counted,
        host: watch.end(true),
    })
}

/// The group asked for; without one, a group without a limit if this host allows it.
fn groups(limited: Option<Groups>) -> Result<Groups> {
    if let Some(limited) = limited {
        return Ok(limited);
    }
    let one = Groups::from(TaskGroup::new("command", BandwidthLimits::default()));
    // Create and remove one: only the kernel knows what it permits.
    match HostGroups::create(&one) {
        Ok(_) => Ok(one),
        Err(error) => {
            say(format_args!("reveille: the command has no task group of its own: {error}"));
            Ok(Groups::default())
        }
    }
}

impl Bench<'_> {
    /// Runs the command once; `which` identifies the run in errors.
    fn run(&self, which: &str) -> Result<(CommandRun, Option<GroupStats>), HostError> {
        let made = HostGroups::create(&self.groups)?;
        let group = made.files(&self.groups)?.pop();
        let job = RunCommand { group: group.clone(), ..self.job.clone() };
        let run = supervise::run(&self.program, &self.place, job, self.stop);
        let run = run.map_err(|error| match error {
            HostError::Failed { command, how } => {
                HostError::Failed { command, how: format!("{how} {which}") }
            }
            other => other,
        })?;
        let stats = group.map(|group| group.stats.read(&group.name)).transpose()?;
        Ok((run, stats))
    }
}
