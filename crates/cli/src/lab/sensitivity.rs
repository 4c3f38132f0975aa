//! `reveille sensitivity`: which predictions depend on which constants.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use reveille_place::{InputError, InputKind, read_input_text};
use reveille_study::{DEFAULT_POINTS, Fragility, SensitivityOptions, Study};

use crate::errors::{Result, say};
use crate::output::{print_result, width};
use crate::output_file::OutputFile;
use crate::page::PageFile;
use crate::watched::{JobsArg, ended, watched};

/// Find the predictions that depend on a single constant
///
/// Moves every constant, and every idle state's exit latency, from the low end of its plausible
/// range to the high end while the others stay, and reruns the loads that have a published figure
/// that counts. A constant that several of the study's machines have moves on all of them together,
/// each within its own range. A constant that changes nothing at either end is not examined
/// further.
///
/// A row is fragile if it hits at the shipped value but at fewer than half of the points of some
/// range; near if it misses there but hits at more than half.
///
/// This takes some hundred times as long as the study: --points 3 halves it, --constant and --case
/// narrow it.
///
/// --all asks a smaller question of every shipped study: which verdicts flip if all constants are
/// drawn at once from their ranges, twelve times? It runs each load once per draw, over the
/// shortest part of the study's time that predicts the same within 2%. It writes
/// docs/sensitivity.json, from which `reveille study --all` marks fragile rows in docs/fidelity.md.
#[derive(clap::Args)]
pub struct SensitivityArgs {
    /// A study that `reveille studies` lists, or the path of a .toml file
    #[arg(value_name = "NAME|FILE.toml", required_unless_present = "all")]
    study: Option<String>,
    /// Find the fragile rows of every study that `reveille studies` lists
    #[arg(long, conflicts_with_all = ["study", "constant", "case", "points", "repeats", "html"])]
    all: bool,
    /// Where --all writes its result [default: docs/sensitivity.json]
    #[arg(long, short, value_name = "FILE", requires = "all")]
    output: Option<PathBuf>,
    /// Move only this constant, such as switch_ns or idle.C1.exit_ns; repeat the option for several
    #[arg(long, value_name = "NAME")]
    constant: Vec<String>,
    /// Examine only this case; repeat the option for several
    #[arg(long, value_name = "NAME")]
    case: Vec<String>,
    /// Points across each range, both ends included
    #[arg(long, value_name = "N", default_value_t = DEFAULT_POINTS)]
    points: u32,
    /// Runs of each load under each policy
    #[arg(long, value_name = "N", default_value_t = 1)]
    repeats: u32,
    /// Random seed, overriding the study
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    jobs: JobsArg,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
    /// Also write a page with a plot to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

const RECORD: &str = "docs/sensitivity.json";

pub fn sensitivity(args: &SensitivityArgs) -> Result<ExitCode> {
    let Some(name) = &args.study else { return all(args) };
    let study = loaded(name, args)?;
    let html = PageFile::prepare(args.html.as_deref())?;
    let options = SensitivityOptions {
        constants: args.constant.clone(),
        cases: args.case.clone(),
        points: args.points,
    };
    let result = watched(args.jobs, |jobs, stop, tell| {
        reveille_study::sensitivity(&study, &options, jobs, stop, tell)
    })?;
    let table = || reveille_report::sensitivity_table(&result, width());
    let shown = print_result(args.json, &result, table);
    // A partial page replaces a whole one only if it has rows.
    if let Some(html) = html.filter(|_| !result.rows.is_empty()) {
        html.write(|made| reveille_report::sensitivity_html(&result, made))?;
    }
    shown?;
    Ok(ended(result.partial, "only the finished constants are shown"))
}

fn loaded(name: &str, args: &SensitivityArgs) -> Result<Study> {
    let mut study = reveille_study::load(name)?.with_repeats(args.repeats)?;
    if let Some(seed) = args.seed {
        study.seed = seed;
    }
    Ok(study)
}

fn all(args: &SensitivityArgs) -> Result<ExitCode> {
    let path = args.output.as_deref().unwrap_or(Path::new(RECORD));
    let record = OutputFile::prepare("--output", path)?;
    let names = reveille_study::predicted_names().into_iter();
    let studies = names.map(|n| loaded(n, args)).collect::<Result<Vec<Study>>>()?;
    let result = watched(args.jobs, |jobs, stop, tell| {
        reveille_study::fragility(&studies, jobs, stop, tell)
    })?;
    let table = || reveille_report::fragility_table(&result, width());
    let shown = print_result(args.json, &result, table);
    if !result.partial {
        record.write(&reveille_report::json_text(&result))?;
        say(format_args!("reveille: wrote {}", record.path().display()));
    }
    shown?;
    Ok(ended(result.partial, "nothing was written"))
}

/// What an earlier `--all` wrote to `path`; `None` if there is no such file.
///
/// # Errors
/// [`InputError::Read`] if the file holds something else.
pub fn recorded(path: &Path) -> Result<Option<Fragility>> {
    let help = "run `reveille sensitivity --all` to write it; without it no row is marked fragile";
    let wrong = |error| InputError::unreadable(path, error, help);
    match read_input_text(path, InputKind::DESCRIPTION) {
        Ok(text) => Ok(Some(
            reveille_report::read_fragility(&text).map_err(|e| wrong(io::Error::other(e)))?,
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(wrong(error).into()),
    }
}
