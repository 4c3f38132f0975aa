//! Errors: what can go wrong, the message, and the exit code.

use std::error::Error as _;
use std::io::{self, IsTerminal, Write};
use std::num::{IntErrorKind, ParseIntError};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use miette::{Diagnostic, MietteHandlerOpts, Report};
use reveille_host::HostError;
use reveille_machine::Machine;
use reveille_measure::NoShard;
use reveille_place::{InputError, Mistake};
use reveille_plan::PlanError;
use reveille_prometheus::ServerError;
use reveille_study::StudyError;
use reveille_sweep::SweepError;
use reveille_workload::WorkloadError;
use serde::Serialize;
use thiserror::Error;

use crate::shown::{Shown, printable};

/// Exit code for wrong input; clap uses it too.
pub const WRONG_INPUT: u8 = 2;
/// Exit code after Ctrl-C: 128 + SIGINT, as shells have it.
pub const INTERRUPTED: u8 = 130;

#[derive(Debug, Error, Diagnostic)]
pub enum CliError {
    #[error(transparent)]
    #[diagnostic(transparent)]
    Study(#[from] StudyError),
    /// A name, a file or an option that cannot be used.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Workload(#[from] WorkloadError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Host(#[from] HostError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Prometheus(#[from] ServerError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Sweep(#[from] SweepError),
    /// What the command line asks for cannot be done, or is help.
    #[error("{}", in_one_line(_0))]
    #[diagnostic(help("see `reveille COMMAND --help`"))]
    CommandLine(clap::Error),
    /// An option's value that its parser refuses.
    #[error("`{option}`: {mistake}")]
    #[diagnostic(help("{}", mistake.help))]
    Value { option: String, mistake: Mistake },
    /// A policy file crashed or looped.
    #[error("{}: {how}", files.join(", "))]
    #[diagnostic(help("{help}"))]
    PolicyEnded { files: Vec<String>, how: String, help: &'static str },
    /// The output path is not writable; checked before the run.
    #[error("`{option}`: cannot write {}: {mistake}", path.display())]
    #[diagnostic(help("{}", mistake.help))]
    OutputPath { option: &'static str, path: PathBuf, mistake: Mistake },
    #[error("cannot write {}: {error}", path.display())]
    OutputFile { path: PathBuf, error: io::Error },
    #[error("`--strict`: the host is too noisy to trust its times: {complaints}")]
    #[diagnostic(help("stop what else runs and try again; without --strict the file is written"))]
    Noisy { complaints: String },
    #[error("cannot write the result: {0}")]
    Output(#[from] io::Error),
    #[error("cannot watch for Ctrl-C: {0}")]
    Signals(#[from] ctrlc::Error),
}

pub type Result<T, E = CliError> = std::result::Result<T, E>;

impl CliError {
    /// A name or an argument that cannot be used.
    pub fn unknown(mistake: Mistake) -> CliError {
        InputError::Unknown(mistake).into()
    }

    /// `option` gives a path that cannot be written to.
    pub fn output_path(
        option: &'static str,
        path: &Path,
        problem: impl Into<String>,
        help: &str,
    ) -> CliError {
        let mistake = Mistake::new(problem, help);
        CliError::OutputPath { option, path: path.to_owned(), mistake }
    }

    /// What clap says of the command line. Where it refuses a value, its words give no fix.
    pub fn of_command_line(error: clap::Error) -> CliError {
        let text = |kind| match error.get(kind) {
            Some(ContextValue::String(text)) => Some(text.as_str()),
            _ => None,
        };
        let (Some(arg), Some(value), Some(why), ErrorKind::ValueValidation) = (
            text(ContextKind::InvalidArg),
            text(ContextKind::InvalidValue),
            error.source().map(ToString::to_string),
            error.kind(),
        ) else {
            return CliError::CommandLine(error);
        };
        let range = why.split_once(" is not in ").and_then(|(_, range)| range.split_once("..="));
        let number = error.source().and_then(|why| why.downcast_ref()).map(ParseIntError::kind);
        let (problem, help) = match (range, number) {
            // No upper bound that anyone would meet.
            (Some((least, most)), _) if most.len() >= 10 => {
                ("is out of range".into(), format!("give a whole number, {least} or more"))
            }
            (Some((least, most)), _) => {
                ("is out of range".into(), format!("give a whole number from {least} to {most}"))
            }
            (None, Some(IntErrorKind::PosOverflow)) => {
                ("is too large".into(), "give a smaller number".into())
            }
            (None, Some(_)) => {
                ("is not a valid whole number".into(), "write digits alone, such as 10".into())
            }
            (None, None) if error.source().is_some_and(|why| why.is::<NoShard>()) => {
                (why, NoShard::FIX.into())
            }
            (None, None) => {
                (format!("cannot be used: {why}"), "see `reveille COMMAND --help`".into())
            }
        };
        let mistake = Mistake::new(format!("`{value}` {problem}"), help);
        let option = arg.split([' ', '=']).next().unwrap_or(arg).to_owned();
        CliError::Value { option, mistake }
    }

    fn input(&self) -> Option<&InputError> {
        match self {
            CliError::Study(error) | CliError::Sweep(SweepError::Study(error)) => error.input(),
            CliError::Workload(error) => error.input(),
            CliError::Input(error)
            | CliError::Plan(PlanError::Input(error))
            | CliError::Prometheus(ServerError::Input(error) | ServerError::Short(error))
            | CliError::Sweep(SweepError::Input(error)) => Some(error),
            _ => None,
        }
    }

    fn option(&self) -> Option<&str> {
        match self {
            CliError::OutputPath { option, .. } => Some(option.trim_start_matches('-')),
            CliError::Value { option, .. } => option.strip_prefix("--"),
            CliError::CommandLine(error) => match error.get(ContextKind::InvalidArg)? {
                ContextValue::String(arg) => arg.strip_prefix("--")?.split([' ', '=']).next(),
                _ => None,
            },
            _ => self.input()?.option(),
        }
    }

    /// The policy file that ended the run, if there was only one.
    fn policy_file(&self) -> Option<&str> {
        match self {
            CliError::PolicyEnded { files, .. } => match &files[..] {
                [only] => Some(only),
                _ => None,
            },
            _ => None,
        }
    }

    /// For programs, which set `REVEILLE_ERRORS=json`.
    fn told(&self) -> Told<'_> {
        let place = self.input().and_then(InputError::place);
        Told {
            message: self.to_string(),
            kind: match self {
                CliError::PolicyEnded { .. } => "policy",
                CliError::Study(error) if error.is_by_policy() => "policy",
                _ if self.exit_code() == ExitCode::from(WRONG_INPUT) => "input",
                _ => "run",
            },
            file: self
                .input()
                .and_then(InputError::file)
                .or_else(|| self.policy_file().map(str::to_owned)),
            line: place.and_then(|place| place.line),
            key: place.and_then(|place| place.key.as_deref()),
            option: self.option(),
            fix: self.help().map(|help| help.to_string()),
        }
    }

    fn exit_code(&self) -> ExitCode {
        match self {
            // The reader closed the pipe: not an error.
            CliError::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                ExitCode::SUCCESS
            }
            CliError::Study(error) if !error.is_input() => ExitCode::FAILURE,
            CliError::Plan(PlanError::Interrupted | PlanError::Host(HostError::Interrupted))
            | CliError::Prometheus(ServerError::Interrupted)
            | CliError::Host(HostError::Interrupted) => ExitCode::from(INTERRUPTED),
            CliError::Plan(error) if !error.is_input() => ExitCode::FAILURE,
            CliError::Host(error) if !error.is_input() => ExitCode::FAILURE,
            CliError::Prometheus(error) if !error.is_input() => ExitCode::FAILURE,
            CliError::Sweep(error) if !error.is_input() => ExitCode::FAILURE,
            CliError::CommandLine(error) if !error.use_stderr() => ExitCode::SUCCESS,
            CliError::OutputFile { .. }
            | CliError::PolicyEnded { .. }
            | CliError::Noisy { .. }
            | CliError::Output(_)
            | CliError::Signals(_) => ExitCode::FAILURE,
            _ => ExitCode::from(WRONG_INPUT),
        }
    }
}

/// What clap says before it shows the usage.
fn in_one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let said = text.split("\n\nUsage").next().unwrap_or_default();
    said.trim_start_matches("error: ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An error as one line of JSON.
#[derive(Serialize)]
struct Told<'a> {
    message: String,
    kind: &'static str,
    file: Option<String>,
    line: Option<u64>,
    key: Option<&'a str>,
    option: Option<&'a str>,
    fix: Option<String>,
}

/// Errors are wrapped for a terminal; in a pipe each stays on one line, for `grep`.
pub fn set_style() {
    let style = || {
        let wrap = io::stderr().is_terminal();
        MietteHandlerOpts::new().terminal_links(false).wrap_lines(wrap).build()
    };
    // Fails only if a style is set already.
    let _ = miette::set_hook(Box::new(move |_| Box::new(style())));
}

/// Prints the error and its fix on standard error.
pub fn report(error: CliError) -> ExitCode {
    let code = error.exit_code();
    let as_json = std::env::var_os("REVEILLE_ERRORS").is_some_and(|form| form == "json");
    if let CliError::CommandLine(error) = &error
        && !(as_json && error.use_stderr())
    {
        return match error.print() {
            Err(failed) if !error.use_stderr() => report(CliError::Output(failed)),
            _ => code,
        };
    }
    if code != ExitCode::SUCCESS {
        // There is no way to report that this write failed.
        if as_json {
            let told = serde_json::to_string(&error.told()).unwrap_or_default();
            let _ = writeln!(io::stderr().lock(), "{told}");
            return code;
        }
        let _ = writeln!(io::stderr().lock(), "{:?}", Report::new(Shown::of(&error)));
    }
    code
}

/// Warns of features of this machine that the model leaves out.
pub fn warn_of(machine: &Machine) {
    for what in &machine.warnings {
        say(format_args!("warning: {}: {what}", machine.name));
    }
}

/// A line on standard error.
pub fn say(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{}", printable(&line.to_string()));
}
