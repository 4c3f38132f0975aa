//! `reveille calibrate`: measures this host and writes a machine file for the simulator.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use reveille_host::calibrate::{
    Calibration, Host, Measurement, Noise, allowed_cpus, derive, measure, pairs, plan,
};
use reveille_host::{HostError, Watch};
use reveille_machine::{IdleState, Machine};
use reveille_place::counted;
use serde::Serialize;

use crate::errors::{CliError, Result, say};
use crate::list::columns;
use crate::output::{print, print_json};
use crate::output_file::OutputFile;
use crate::progress::Progress;
use crate::signals::watch_signals;
use crate::this_host::this_command;

/// Total measuring time, and the number of rounds.
const FULL: (Duration, u32) = (Duration::from_secs(42), 12);
const QUICK: (Duration, u32) = (Duration::from_secs(3), 1);
/// How long to watch the host for noise before measuring.
const WATCH: Duration = Duration::from_millis(300);

/// Measure what this host's mechanisms cost, and write a machine file
///
/// In less than a minute, measures wake-ups across every distance between CPUs, context switches,
/// system calls, messages, cache lines, interrupts, the tick and idle exits, and derives the cost
/// model's constants. Constants it does not measure keep the default model's value. `reveille
/// machines FILE` shows each constant with its spread.
///
/// Needs no privileges, but a quiet host: disturbances are reported on standard error and in the
/// file. With --strict a noisy host is an error (exit code 1), and nothing is written.
#[derive(clap::Args)]
pub struct CalibrateArgs {
    /// Write the machine to this file; fails if it exists
    #[arg(short, long, value_name = "FILE.toml")]
    output: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
    /// Measure for about 3 seconds: rough figures
    #[arg(long)]
    quick: bool,
    /// If the host is too noisy, exit with code 1 and write nothing
    #[arg(long)]
    strict: bool,
    /// Print all measurements as JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
}

pub fn calibrate(args: &CalibrateArgs) -> Result<ExitCode> {
    let output = new_file(&args.output, args.force)?;
    let base = reveille_machine::load("host")?;
    if base.to_toml().is_none() {
        let problem = "a machine file cannot describe this host: its caches or cores differ in \
                       width, or its CPUs are numbered in an unusual order";
        let help = "predict with `--machine host`, which reads this topology and takes default \
                    costs; or save `lstopo --of xml >host.xml`, edit it, and use `--machine \
                    host.xml`; or bring offline CPUs back, if some are, and calibrate again";
        return Err(HostError::input(problem, help).into());
    }
    let stop = watch_signals()?;
    let taken = take(base, if args.quick { QUICK } else { FULL }, &stop)?;
    let Taken { mut found, host, measured, noise_before, noise, complaints, rounds } = taken;
    if args.strict && !complaints.is_empty() {
        return Err(CliError::Noisy { complaints: complaints.join("; ") });
    }
    found.machine.name = stem(&args.output);
    describe(&mut found.machine, &host, rounds, &complaints);
    let text = file_text(&found).ok_or_else(|| {
        HostError::input("the machine found cannot be written", "report it with the --json output")
    })?;
    if args.json {
        print_json(&reveille_report::object! {
            output: output.path().display().to_string(),
            machine: &found.machine.name,
            topology: found.machine.topology.describe(),
            hz: found.machine.hz,
            host: &host,
            noisy: !complaints.is_empty(),
            complaints: &complaints,
            // Sampled once before measuring, so its spread is unknown and 0.
            noise_before,
            noise,
            measurements: &measured,
            constants: &found.derived,
            idle: found.machine.idle.iter().map(idle_json).collect::<Vec<_>>(),
            defaults: &found.defaults,
            warnings: &found.warnings,
        })?;
    } else {
        print(&table(&found))?;
    }
    output.write(&text)?;
    for warning in &found.warnings {
        say(format_args!("reveille: {warning}"));
    }
    if !complaints.is_empty() {
        let said = complaints.join("; ");
        say(format_args!("reveille: the host was noisy ({said}): measure again when it is quiet"));
    }
    if !args.json {
        say(format_args!("reveille: wrote {}", output.path().display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// This host with costs from a full measurement, which takes less than a minute.
///
/// # Errors
/// As [`calibrate`]; [`HostError::Interrupted`] once `stop` is set.
pub fn calibrated(stop: &AtomicBool) -> Result<Machine> {
    let taken = take(reveille_machine::load("host")?, FULL, stop)?;
    let Taken { mut found, host, complaints, rounds, .. } = taken;
    describe(&mut found.machine, &host, rounds, &complaints);
    Ok(found.machine)
}

struct Taken {
    found: Calibration,
    host: Host,
    measured: Vec<Measurement>,
    noise_before: Noise,
    noise: Noise,
    complaints: Vec<String>,
    rounds: u32,
}

fn take(base: Machine, (time, rounds): (Duration, u32), stop: &AtomicBool) -> Result<Taken> {
    let host = Host::here();
    let pairs = pairs(&base.topology, &allowed_cpus()?);
    let probes = plan(&pairs, rounds, time.as_nanos() as u64);
    let program = this_command()?;
    let watch = Watch::begin();
    std::thread::sleep(WATCH);
    let noise_before = Noise::since(&watch, 0.0);
    for complaint in noise_before.complaints() {
        say(format_args!("reveille: before measuring, {complaint}"));
    }
    let watch = Watch::begin();
    let progress = Progress::labelled("calibrating ");
    let measured = measure(&program, &probes, stop, &|done| progress.tell(done, probes.len()));
    progress.finish();
    let measured = measured?;
    let noise = Noise::since(&watch, Noise::spread_of(&measured));
    let complaints = noise.complaints();
    let found = derive(base, &host, &pairs, &measured);
    Ok(Taken { found, host, measured, noise_before, noise, complaints, rounds })
}

/// The output file; refuses to replace an existing one unless `force`.
fn new_file(path: &Path, force: bool) -> Result<OutputFile> {
    let refuse = |problem: &str, help| Err(CliError::output_path("--output", path, problem, help));
    let file = OutputFile::prepare("--output", path)?;
    if path.extension().is_none_or(|e| !e.eq_ignore_ascii_case("toml")) {
        return refuse("a machine file is named .toml", "name it so: host.toml");
    }
    if path.exists() && !force {
        return refuse("it is there already", "name a new file, or give --force");
    }
    Ok(file)
}

/// The machine's name: the file's name without extension.
fn stem(path: &Path) -> String {
    let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned());
    stem.filter(|s| !s.trim().is_empty()).unwrap_or_else(|| "host".to_owned())
}

/// Fills in the machine's description: hardware, kernel, and how it was measured.
fn describe(machine: &mut Machine, host: &Host, rounds: u32, complaints: &[String]) {
    let guest = if host.guest { ", virtual machine" } else { "" };
    machine.about = format!("{}{guest}, Linux {}", host.processor, host.kernel);
    let noise = match complaints {
        [] => String::new(),
        said => format!("; NOISY, measure again: {}", said.join("; ")),
    };
    machine.source = format!(
        "measured on this host by `reveille calibrate` {}, {}{noise}",
        env!("CARGO_PKG_VERSION"),
        counted(rounds, "round"),
    );
}

/// The machine file with a header comment.
fn file_text(found: &Calibration) -> Option<String> {
    let text = found.machine.to_toml()?;
    let defaults = match found.defaults.as_slice() {
        [] => "none".to_owned(),
        keys => keys.join(", "),
    };
    let defaults = textwrap::fill(
        &format!("Not measured here, and as the default model has them: {defaults}."),
        textwrap::Options::new(98).initial_indent("# ").subsequent_indent("# "),
    );
    Some(format!(
        "# This host's costs. Values are medians, ranges run from p10 to p90 of what was\n\
         # measured; docs/calibrate.md has the arithmetic.\n{defaults}\n\n{text}"
    ))
}

/// Measured constants beside the default's.
fn table(found: &Calibration) -> String {
    let head = ["constant", "here", "p10 to p90", "default", ""].map(str::to_owned);
    let constants = found.derived.iter().map(|d| {
        let unit = if d.unit == "ns" { " ns" } else { "" };
        let note = if d.kind == "measured" { "" } else { d.kind };
        [
            d.key.clone(),
            format!("{}{unit}", d.value),
            format!("{} to {}", d.low, d.high),
            format!("{}{unit}", d.default),
            note.to_owned(),
        ]
    });
    let measured = |s: &&IdleState| s.origin.kind() == "measured";
    let idle = found.machine.idle.iter().filter(measured).map(|s| {
        [
            format!("idle.{}.exit_ns", s.name),
            format!("{} ns", s.exit_ns),
            format!("{} to {}", s.exit_low_ns, s.exit_high_ns),
            String::new(),
            match s.residency_ns / 1000 {
                0 => "after short sleeps".to_owned(),
                us => format!("after sleeps from {us} us on"),
            },
        ]
    });
    let rows: Vec<[String; 5]> = std::iter::once(head).chain(constants).chain(idle).collect();
    columns(&rows)
}

fn idle_json(s: &IdleState) -> impl Serialize {
    reveille_report::object! { #[serde(flatten)] state: s, kind: s.origin.kind(), how: s.origin.text() }
}
