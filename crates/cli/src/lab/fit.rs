//! `reveille fit`: fits a machine's unmeasured constants to every figure published for it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use reveille_machine::Machine;
use reveille_study::{DEFAULT_POINTS, DEFAULT_ROUNDS, Fit, FitOptions, Study};

use crate::errors::{CliError, Result, say};
use crate::output::{print_result, width};
use crate::output_file::OutputFile;
use crate::watched::{JobsArg, ended, watched};

/// Fit a machine's `fitted` constants to everything published for it
///
/// Moves only constants whose origin is `fitted`, within their plausible ranges: one at a time,
/// each to the point of a fixed grid with the lowest objective, until a round changes nothing. The
/// objective is the mean over all counted rows of all studies on the machine of min(1, (d/w)²),
/// plus 0.01·((x - x0)/range)² for each constant: d is the logarithm of predicted by published, w
/// the tolerance of a hit, x0 the shipped value.
///
/// There is deliberately no way to fit one row or one case: a constant bent to fit one row says
/// nothing about the machine. Rows off by more than their tolerance all cost the same, so no
/// outlier dominates.
///
/// Nothing is written unless -o is given.
#[derive(clap::Args)]
pub struct FitArgs {
    /// A machine that `reveille machines` lists, or the path of a .toml file
    #[arg(long, value_name = "NAME|FILE.toml")]
    machine: String,
    /// Fit to this study only, by name or path; repeat the option for several [default: every study
    /// that `reveille studies` lists]
    #[arg(long, value_name = "NAME|FILE.toml")]
    study: Vec<String>,
    /// Write the fitted machine to this file; fails if it exists
    #[arg(short, long, value_name = "FILE.toml")]
    output: Option<PathBuf>,
    /// Maximum number of rounds over all constants
    #[arg(long, value_name = "N", default_value_t = DEFAULT_ROUNDS)]
    rounds: u32,
    /// Points tried across each range, both ends included
    #[arg(long, value_name = "N", default_value_t = DEFAULT_POINTS)]
    points: u32,
    /// Runs of each load under each policy
    #[arg(long, value_name = "N", default_value_t = 1)]
    repeats: u32,
    #[command(flatten)]
    jobs: JobsArg,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
}

pub fn fit(args: &FitArgs) -> Result<ExitCode> {
    let machine = reveille_machine::load(&args.machine)?;
    let output = args.output.as_deref().map(|path| new_file(path, &machine)).transpose()?;
    let specs: Vec<String> = match args.study.as_slice() {
        [] => reveille_study::predicted_names().into_iter().map(str::to_owned).collect(),
        given => given.to_vec(),
    };
    let load = |spec: &String| Ok(reveille_study::load(spec)?.with_repeats(args.repeats)?);
    let studies = specs.iter().map(load).collect::<Result<Vec<Study>>>()?;
    let options = FitOptions { rounds: args.rounds, points: args.points };
    let fit = watched(args.jobs, |jobs, stop, tell| {
        reveille_study::fit(&machine, &studies, options, jobs, stop, tell)
    })?;
    print_result(args.json, &fit, || reveille_report::fit_table(&fit, width()))?;
    if let Some(output) = output.filter(|_| !fit.partial) {
        output.write(&file_text(&fit))?;
        say(format_args!("reveille: wrote {}", output.path().display()));
    }
    Ok(ended(fit.partial, "the best values until then are shown"))
}

/// Refuses an existing file: a hand-written machine file has comments and sources that a fit would
/// drop.
fn new_file(path: &Path, machine: &Machine) -> Result<OutputFile> {
    let refuse = |problem: &str, help| Err(CliError::output_path("--output", path, problem, help));
    if path.exists() {
        return refuse("it is there already", "name a new file, or remove this one");
    }
    if machine.to_toml().is_none() {
        let help = "leave --output out, or name a machine that has a file";
        return refuse("a machine file cannot describe the topology", help);
    }
    OutputFile::prepare("--output", path)
}

/// The machine file, with a header that says where the fitted values come from.
fn file_text(fit: &Fit) -> String {
    let text = fit.moved.as_ref().and_then(|m| m.to_toml()).unwrap_or_default();
    format!(
        "# {} with its fitted constants as `reveille fit` found them against {}:\n\
         # objective {:.4} before, {:.4} after; {} and {} of {} counted rows hit.\n\n{text}",
        fit.machine,
        fit.studies.join(", "),
        fit.before.total,
        fit.after.total,
        fit.before.hits,
        fit.after.hits,
        fit.after.counted,
    )
}
