//! Studies that run on the host: which machine predictions are for, progress of predicted and
//! measured runs, and their views.

use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use reveille_host::HostError;
use reveille_study::{Agreement, Comparison, On, Stage, Study, ThisHost, check_both};

use super::study_args::{RunArgs, StudyArgs};
use crate::errors::{CliError, Result, say};
use crate::host::calibrate::calibrated;
use crate::output::{print_as, width};
use crate::page::{PageFile, written};
use crate::progress::Progress;
use crate::signals::watch_signals;
use crate::this_host::this_command;
use crate::watched::exit_code;

/// A study with the place and machine from the command line. A study moved to this host is also
/// predicted for this host.
pub fn placed(mut study: Study, args: &StudyArgs) -> Result<Study> {
    let moved = args.on.is_some_and(|on| on != study.on);
    study.on = args.on.unwrap_or(study.on);
    let spec = match (&args.machine, study.on) {
        (given, On::Host) => Some(machine(On::Host, given.as_deref())?),
        (Some(given), _) => Some(given.as_str()),
        (None, On::Both) if moved => Some("host"),
        (None, _) => None,
    };
    if let Some(spec) = spec {
        study = study.on_machine(reveille_machine::load(spec)?)?;
    }
    Ok(study)
}

/// The machine an option names; this host if it names none.
pub fn machine(on: On, given: Option<&str>) -> Result<&str> {
    match given {
        Some(other) if on == On::Host && other != "host" => {
            let problem = format!("`--machine {other}`: with `--on host` nothing is predicted");
            let help = "leave it out, or add the prediction: --on sim,host";
            Err(HostError::input(problem, help).into())
        }
        given => Ok(given.unwrap_or("host")),
    }
}

/// Where to get costs for a host without a measured machine file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Costs {
    /// Measure them first.
    Calibrate,
    /// Use the default model's, and warn.
    Default,
}

/// The study on a machine that has costs to predict with.
fn with_costs(study: Study, costs: Costs, stop: &AtomicBool) -> Result<Study> {
    let Some(machine) = study.machine() else { return Ok(study) };
    if machine.name != "host" || machine.constants.iter().any(|c| !c.inherited) {
        return Ok(study);
    }
    let file = "`reveille calibrate -o host.toml` and --machine host.toml";
    if costs == Costs::Default {
        let model = &machine.cost_model;
        say(format_args!(
            "reveille: this host is predicted with the default costs, {model}; {file} predict it \
             with its own"
        ));
        return Ok(study);
    }
    say(format_args!(
        "reveille: measuring this host's costs first, which takes a minute; {file} spare it"
    ));
    match calibrated(stop) {
        Ok(machine) => Ok(study.on_machine(machine)?),
        // The result is marked partial.
        Err(CliError::Host(HostError::Interrupted)) => Ok(study),
        Err(error) => Err(error),
    }
}

fn this_host() -> Result<ThisHost> {
    Ok(ThisHost::new(this_command()?))
}

pub fn measured(study: &Study) -> Result<Comparison> {
    let host = this_host()?;
    let stop = watch_signals()?;
    let progress = Progress::labelled("measuring ");
    let tell = |done, total| progress.tell(done, total);
    let outcome = reveille_study::measure(study, &host, &stop, &tell);
    progress.finish();
    Ok(outcome?)
}

/// Predicts and measures a study, and prints them side by side.
pub fn agreed(
    study: Study,
    costs: Costs,
    args: &RunArgs,
    html: Option<PageFile>,
) -> Result<ExitCode> {
    let host = this_host()?;
    check_both(&study, &host)?;
    let stop = watch_signals()?;
    let study = with_costs(study, costs, &stop)?;
    let bars = [OnceLock::new(), OnceLock::new()];
    let tell = |stage, done, total| {
        let (bar, label) = match stage {
            Stage::Predicting => (&bars[0], "predicting "),
            Stage::Measuring => {
                bars[0].get().map(Progress::finish);
                (&bars[1], "measuring ")
            }
        };
        bar.get_or_init(|| Progress::labelled(label)).tell(done, total);
    };
    let outcome = reveille_study::agree(&study, args.jobs.threads(), &host, &stop, &tell);
    bars.iter().filter_map(OnceLock::get).for_each(Progress::finish);
    let agreement = outcome?;
    let shown = show(&agreement, args);
    let has_rows = !agreement.rows.is_empty();
    let page = |made: &_| reveille_report::agreement_html(&agreement, made);
    let unwritten = written(html.as_ref(), has_rows, page)?;
    shown?;
    Ok(exit_code(agreement.partial, has_rows, &unwritten))
}

fn show(agreement: &Agreement, args: &RunArgs) -> Result<()> {
    let csv = || reveille_report::agreement_csv(agreement);
    let table = || reveille_report::agreement_table(agreement, width(), !args.no_explain);
    print_as((args.json, args.csv), agreement, csv, table)
}
