//! `reveille sweep` and `reveille merge`: many comparisons as one table.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use reveille_measure::Shard;
use reveille_place::counted;
use reveille_policy::PolicyFile;
use reveille_sweep::{
    Design, Effect, Finished, Journal, Spec, Sweep, SweepError, crashed, effects, read,
};
use serde::Serialize;

use crate::errors::{CliError, INTERRUPTED, Result, say, warn_of};
use crate::isolated;
use crate::output::{print, print_as, print_json, width};
use crate::output_file::OutputFile;
use crate::page::PageFile;
use crate::progress::Progress;
use crate::signals::watch_signals;
use crate::watched::JobsArg;

/// Compare edits under thousands of conditions, as a Parquet table
///
/// SPEC is a TOML file (docs/sweep.md). Every point of its grid or sample runs the baseline and
/// each edit; the table has a row for each of these cells and each metric. FILE.journal keeps
/// finished cells: rerun the command to resume after a crash or kill. --shard runs a part, and
/// `reveille merge` joins parts; the table has the same bytes however the work was split. A cell
/// that fails is a row with the reason, and the exit code is 1.
#[derive(clap::Args)]
pub struct SweepArgs {
    /// The spec (docs/sweep.md)
    #[arg(value_name = "SPEC.toml")]
    spec: PathBuf,
    /// Parquet file to write
    #[arg(long, short, value_name = "FILE", required_unless_present = "dry_run")]
    output: Option<PathBuf>,
    /// Run only this shard: 1/4 is the first of four
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    #[command(flatten)]
    jobs: JobsArg,
    /// Check the spec and print its number of cells
    #[arg(long, conflicts_with_all = ["output", "force", "csv", "html"])]
    dry_run: bool,
    /// Start over, and overwrite the file
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    show: ShowArgs,
}

/// Join the parts of a sweep
///
/// The parts are files that `reveille sweep --shard` wrote. They must come from the same spec and
/// model and together have every cell; the result has the bytes of an unsplit sweep.
#[derive(clap::Args)]
pub struct MergeArgs {
    /// Parquet file to write
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// Parts, in any order
    #[arg(value_name = "IN", required = true)]
    parts: Vec<PathBuf>,
    /// Overwrite the file
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    show: ShowArgs,
}

#[derive(clap::Args)]
struct ShowArgs {
    /// Print a summary as JSON, and nothing else, on standard output
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print the rows as CSV, and nothing else, on standard output
    #[arg(long)]
    csv: bool,
    /// Also write a page with a heat map for each edit to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

#[derive(Serialize)]
struct Summary<'a> {
    name: &'a str,
    sweep: String,
    model: &'a str,
    output: Option<String>,
    shard: Option<String>,
    points: usize,
    cells: usize,
    rows: usize,
    failed: usize,
    failures: Vec<Failure>,
    effects: Vec<Effect>,
}

#[derive(Serialize)]
struct Failure {
    reason: String,
    cells: usize,
    example: String,
}

pub fn sweep(args: &SweepArgs) -> Result<ExitCode> {
    let shard = args.shard.unwrap_or(Shard::WHOLE);
    let spec = Spec::read(&args.spec)?;
    let files = spec.policy_files()?;
    let loaded = match isolated::child() {
        _ if files.is_empty() => Vec::new(),
        None => return supervised(&files, args),
        Some(child) => {
            let load = |file: &String| child.load(Path::new(file));
            let loaded = files.iter().map(load).collect::<Result<Vec<PolicyFile>, _>>()?;
            child.die_with_parent();
            loaded
        }
    };
    let sweep = spec.load(&loaded)?;
    let Some(output) = &args.output else { return planned(&sweep.design, shard, args) };
    let html = PageFile::prepare(args.show.html.as_deref())?;
    let file = OutputFile::prepare("--output", output)?.claim("--output", true)?;
    let journal = beside(output);
    if args.force {
        // There may be no journal.
        let _ = fs::remove_file(&journal);
    } else if output.exists() {
        let finished = earlier(output, &sweep.design, shard)?;
        return show(&finished, output, &args.show, html);
    }
    sweep.machines().iter().for_each(warn_of);
    let Some(finished) = run(&sweep, shard, &journal, args.jobs)? else {
        say(format_args!("reveille: interrupted; the same command goes on"));
        return Ok(ExitCode::from(INTERRUPTED));
    };
    file.write(&finished.to_parquet()?)?;
    // The table now holds everything in it.
    let _ = fs::remove_file(&journal);
    show(&finished, output, &args.show, html)
}

/// Runs the remaining cells; `None` if interrupted.
fn run(sweep: &Sweep, shard: Shard, journal: &Path, jobs: JobsArg) -> Result<Option<Finished>> {
    let (journal, known) = Journal::open(journal, &sweep.design.id(), &shard.to_string())?;
    if known.torn > 0 {
        say(format_args!("reveille: the journal's last {} bytes are torn; dropped", known.torn));
    }
    let stop = watch_signals()?;
    let progress = Progress::of("cells");
    let tell = |done, total| progress.tell(done, total);
    let outcomes = sweep.run(shard, (&journal, known), jobs.threads(), &stop, &tell);
    progress.finish();
    Ok(outcomes?.map(|outcomes| Finished::new(sweep.design.clone(), shard, &outcomes)))
}

/// Runs the sweep in a child; after a policy file kills the child, a new one resumes with the next
/// cell.
fn supervised(files: &[String], args: &SweepArgs) -> Result<ExitCode> {
    let names: Vec<&str> = files.iter().map(String::as_str).collect();
    loop {
        match isolated::run(&names) {
            Err(CliError::PolicyEnded { files, how, help }) => {
                let begun = match &args.output {
                    // A cell's reason must not depend on what else is in the spec.
                    Some(output) => {
                        crashed(&beside(output), how.trim_start_matches("in one of them: "))?
                    }
                    None => false,
                };
                if !begun {
                    return Err(CliError::PolicyEnded { files, how, help });
                }
            }
            ended => return ended,
        }
    }
}

fn beside(output: &Path) -> PathBuf {
    let mut name = OsString::from(output);
    name.push(".journal");
    name.into()
}

/// Finished cells of an existing output, which must be of this spec and shard.
fn earlier(output: &Path, design: &Design, shard: Shard) -> Result<Finished> {
    let help = "name another file, or overwrite it with --force";
    let refuse = |problem| Err(CliError::output_path("--output", output, problem, help));
    match read(output) {
        Ok(finished) if finished.design == *design && finished.shard == shard => Ok(finished),
        Ok(_) => refuse("it has another sweep, model or shard"),
        Err(_) => refuse("it exists, and is no sweep"),
    }
}

fn planned(design: &Design, shard: Shard, args: &SweepArgs) -> Result<ExitCode> {
    let summary = Summary::new(design, shard, None, args.output.as_deref());
    if args.show.json {
        print_json(&summary)?;
    } else {
        let Summary { points, cells, .. } = summary;
        let (cells, points) = (counted(cells, "cell"), counted(points, "point"));
        let edits = counted(design.edits.len() - 1, "edit");
        print(&format!("{cells}: {points}, each under the baseline and {edits}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Joins the parts of a sweep.
pub fn merge(args: &MergeArgs) -> Result<ExitCode> {
    let html = PageFile::prepare(args.show.html.as_deref())?;
    let file = OutputFile::prepare("OUT", &args.output)?.claim("OUT", args.force)?;
    let part = |path: &PathBuf| Ok((path.display().to_string(), read(path)?));
    let parts = args.parts.iter().map(part).collect::<Result<Vec<_>, SweepError>>()?;
    let merged = reveille_sweep::merge(parts)?;
    file.write(&merged.to_parquet()?)?;
    show(&merged, &args.output, &args.show, html)
}

fn show(
    finished: &Finished,
    output: &Path,
    args: &ShowArgs,
    html: Option<PageFile>,
) -> Result<ExitCode> {
    let summary = Summary::new(&finished.design, finished.shard, Some(finished), Some(output));
    let failed = summary.failed > 0;
    let table = || {
        let Summary { cells, rows, .. } = summary;
        let head = format!("{}: {cells} cells, {rows} rows\n", output.display());
        head + &reveille_report::effects_table(&summary.effects, width())
    };
    print_as((args.json, args.csv), &summary, || finished.table.csv(), table)?;
    for Failure { reason, cells, example } in &summary.failures {
        say(format_args!("reveille: {cells} cells failed: {example}: {reason}"));
    }
    if let Some(html) = html {
        html.write(|made| reveille_report::sweep_html(finished, &summary.effects, made))?;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

impl<'a> Summary<'a> {
    fn new(
        design: &'a Design,
        shard: Shard,
        finished: Option<&Finished>,
        output: Option<&Path>,
    ) -> Summary<'a> {
        let points = (0..design.points().len()).filter(|rank| shard.has(*rank)).count();
        let mut summary = Summary {
            name: &design.name,
            sweep: design.id(),
            model: &design.model,
            output: output.map(|output| output.display().to_string()),
            shard: Some(shard).filter(|s| *s != Shard::WHOLE).map(|shard| shard.to_string()),
            points,
            cells: points * design.edits.len(),
            rows: 0,
            failed: 0,
            failures: Vec::new(),
            effects: Vec::new(),
        };
        let Some(finished) = finished else { return summary };
        summary.rows = finished.table.rows();
        summary.effects = effects(design, &finished.table);
        for (reason, example) in finished.failures() {
            summary.failed += 1;
            match summary.failures.iter_mut().find(|known| known.reason == reason) {
                Some(known) => known.cells += 1,
                None => summary.failures.push(Failure { reason, cells: 1, example }),
            }
        }
        summary
    }
}
