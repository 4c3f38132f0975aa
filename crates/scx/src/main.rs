//! scx_reveille: loads the BPF scheduler, tells what it does, and takes it out again.

mod args;
#[allow(missing_docs, clippy::all, dead_code, unsafe_op_in_unsafe_fn)]
mod bpf {
    use crate::policy_file::object;
    include!(concat!(env!("OUT_DIR"), "/bpf.rs"));
}
mod cgroups;
mod clang;
mod decision;
mod error;
mod journal;
mod kernel;
mod output;
mod policy_file;
mod replay;
mod run;
mod scheduler;
mod scx_stats;
mod server;
mod settings;
mod stats;
mod sys;
mod topology;

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::{CommandFactory, Parser};
use clap_complete::Shell;
use miette::{MietteHandlerOpts, Report};

use crate::args::{Args, Command};
use crate::error::ScxError;
use crate::journal::{JournalLine, complain, logs_to_journal};
use crate::policy_file::PolicyFile;
use crate::server::{Answer, Request, SOCKET, ask};
use crate::stats::Stats;

fn main() -> ExitCode {
    // A panic of any thread ends the process, and the kernel then takes the scheduler out.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        report(info);
        std::process::abort();
    }));
    let args = Args::try_parse().unwrap_or_else(|error| {
        if error.use_stderr() && logs_to_journal() {
            complain(&error.to_string());
            std::process::exit(error.exit_code());
        }
        error.exit()
    });
    set_style();
    set_log(args.verbose);
    match command(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_closed_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            let code = error.exit_code();
            complain(&format!("{:?}", Report::new(error)));
            code.into()
        }
    }
}

fn command(args: &Args) -> Result<(), ScxError> {
    match &args.command {
        Some(Command::Set { edits }) => set(&edits.join(" ")),
        Some(Command::Replay { file, json }) => replay(file, *json),
        Some(Command::Compile { file, output }) => compile(file, output.as_deref()),
        Some(Command::Generate { share }) => generate(share),
        None if args.run.help_stats => print(&stats::help()),
        None => match args.run.monitor {
            Some(seconds) => monitor(seconds, args.run.json),
            None => run::run(&args.run),
        },
    }
}

fn set(edits: &str) -> Result<(), ScxError> {
    match ask(Path::new(SOCKET), &Request::Set(edits.to_owned()))? {
        Answer::Features(on) => print(&format!("on: {}\n", on.join(" "))),
        _ => Err(other_version()),
    }
}

fn compile(file: &Path, output: Option<&Path>) -> Result<(), ScxError> {
    let output = output.map_or_else(|| file.with_extension("o"), Path::to_owned);
    PolicyFile::read(file)?.write(&output)?;
    let shown = output.display();
    print(&format!("wrote {shown}; next: sudo scx_reveille --policy {shown}\n"))
}

fn generate(share: &Path) -> Result<(), ScxError> {
    let directory = |name: &str| {
        let path = share.join(name);
        fs::create_dir_all(&path).map(|()| path)
    };
    let command = Args::command();
    let mut visible = clap::Command::new("scx_reveille")
        .version(env!("CARGO_PKG_VERSION"))
        .args(command.get_arguments())
        .subcommands(command.get_subcommands().filter(|c| !c.is_hide_set()));
    let written = || -> io::Result<()> {
        clap_mangen::generate_to(command, directory("man/man1")?)?;
        for (shell, name, file) in [
            (Shell::Bash, "bash-completion/completions", "scx_reveille"),
            (Shell::Zsh, "zsh/site-functions", "_scx_reveille"),
            (Shell::Fish, "fish/vendor_completions.d", "scx_reveille.fish"),
        ] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut visible, "scx_reveille", &mut script);
            fs::write(directory(name)?.join(file), script)?;
        }
        Ok(())
    };
    written().map_err(|error| {
        let doing = format!("cannot write man pages and completions to {}", share.display());
        ScxError::io(doing, error, "name a directory that you may write to")
    })
}

fn monitor(seconds: f64, json: bool) -> Result<(), ScxError> {
    let socket = Path::new(SOCKET);
    let stop = run::watch_signals()?;
    let stats = || match ask(socket, &Request::Stats)? {
        Answer::Stats(stats) => Ok(*stats),
        _ => Err(other_version()),
    };
    let mut before = stats()?;
    let mut lost = false;
    loop {
        let next = Instant::now() + Duration::from_secs_f64(seconds);
        while Instant::now() < next {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50).min(next - Instant::now().min(next)));
        }
        // It may be started again, by its unit for example.
        let now = match stats() {
            Ok(now) => now,
            Err(error) => {
                if !lost {
                    tracing::warn!("{error}; waiting for the next");
                }
                lost = true;
                continue;
            }
        };
        lost = false;
        // Loaded again: what was counted before is gone.
        if now.at_ms < before.at_ms {
            before = Stats::default();
        }
        print(&run::shown(json, &before, &now)?)?;
        before = now;
    }
}

fn other_version() -> ScxError {
    ScxError::refused("the scheduler that runs is of another version", "restart it")
}

fn replay(file: &Path, json: bool) -> Result<(), ScxError> {
    let found = replay::replay(file)?;
    if json {
        let text = serde_json::to_string_pretty(&found).map_err(|error| {
            ScxError::io("cannot write the result", error.into(), "this is a defect")
        })?;
        print(&(text + "\n"))?;
    } else {
        let mut text = String::new();
        for difference in &found.first_differences {
            text += &format!("{difference}\n");
        }
        for (features, n) in &found.by_features {
            text += &format!("features {features}: {n} decisions\n");
        }
        for (rule, n) in &found.by_rule {
            text += &format!("chosen by {rule}: {n}\n");
        }
        text += &format!(
            "{} decisions replayed, {} identical\n",
            found.decisions,
            found.decisions - found.different
        );
        print(&text)?;
    }
    if found.decisions == 0 {
        return Err(ScxError::refused(
            format!("{} holds no decision", file.display()),
            "record for longer, on a machine with some wakeups",
        ));
    }
    if found.different > 0 {
        return Err(ScxError::Different { different: found.different, all: found.decisions });
    }
    Ok(())
}

fn print(text: &str) -> Result<(), ScxError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(ScxError::Output)
}

/// Errors are wrapped for a terminal; in a pipe each stays on one line, for `grep`.
fn set_style() {
    let style = || {
        let wrap = io::stderr().is_terminal();
        MietteHandlerOpts::new().terminal_links(false).wrap_lines(wrap).build()
    };
    // Fails only if a style is set already.
    let _ = miette::set_hook(Box::new(move |_| Box::new(style())));
}

/// What is done goes to standard error; RUST_LOG says otherwise.
fn set_log(verbose: u8) {
    use tracing_subscriber::EnvFilter;
    let default = match verbose {
        0 => "info",
        1 => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        // It would say so on standard error, and panic where that is closed.
        .log_internal_errors(false);
    if logs_to_journal() {
        log.event_format(JournalLine).init();
    } else {
        log.init();
    }
    libbpf_rs::set_print(Some((
        if verbose > 1 { libbpf_rs::PrintLevel::Debug } else { libbpf_rs::PrintLevel::Warn },
        |level, text: String| match level {
            libbpf_rs::PrintLevel::Debug => tracing::trace!("{}", text.trim_end()),
            libbpf_rs::PrintLevel::Info => tracing::debug!("{}", text.trim_end()),
            // The verifier's log: what it says of the file's lines is told at the end.
            libbpf_rs::PrintLevel::Warn if policy_file::keep(&text) => {
                tracing::trace!("{}", text.trim_end());
            }
            libbpf_rs::PrintLevel::Warn => tracing::warn!("{}", text.trim_end()),
        },
    )));
}
