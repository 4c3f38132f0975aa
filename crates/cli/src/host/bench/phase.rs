//! `reveille bench phase`: the burst mail's experiment at every phase of the period, against
//! its closed form.

use std::fmt::Write as _;
use std::process::ExitCode;

use reveille_plan::circle::{self, CirclePoint};
use reveille_study::On;
use serde::Serialize;

use crate::errors::Result;
use crate::output::print_result;
use crate::progress::Progress;
use crate::signals::watch_signals;
use crate::this_host::running_kernel;
use crate::this_host::this_command;

const PERIOD_MS: u64 = 100;

#[derive(clap::Args)]
pub struct PhaseArgs {
    /// Step between phases, in ms
    #[arg(long, value_name = "MS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100))]
    step: u64,
    /// Batches at each phase, 200 ms each
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    cycles: u32,
    /// sim, host, or sim,host
    #[arg(long, value_name = "WHERE", default_value = "sim,host", value_parser = <On as std::str::FromStr>::from_str)]
    on: On,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Circle {
    cycles: u32,
    points: Vec<CirclePoint>,
    /// The largest deviation from the closed form, excluding phases at its discontinuity.
    simulated_off_ns: f64,
    measured_off_ns: Option<f64>,
}

pub fn phase(args: &PhaseArgs) -> Result<ExitCode> {
    let (stop, command) = (watch_signals()?, this_command()?);
    let policy = running_kernel()?;
    let machine = reveille_plan::cpus_like(&reveille_machine::load("host")?, 2)?;
    let phases: Vec<u64> = (0..PERIOD_MS).step_by(args.step as usize).collect();
    let progress = Progress::labelled("phases ");
    let mut points = Vec::with_capacity(phases.len());
    for (done, phase) in phases.iter().enumerate() {
        progress.tell(done, phases.len());
        let phase_ns = phase * 1_000_000;
        let simulated_ns = circle::simulate_phase(&machine, &policy, phase_ns, args.cycles, &stop)?;
        let measured_ns = match args.on.measures() {
            true => Some(circle::measure_phase(&command, phase_ns, args.cycles, &stop)?),
            false => None,
        };
        let closed_form_ns = circle::closed_form_ns(phase_ns);
        points.push(CirclePoint { phase_ns, closed_form_ns, simulated_ns, measured_ns });
    }
    progress.finish();
    let off = |of: &dyn Fn(&CirclePoint) -> Option<f64>| {
        let points = points.iter().filter(|p| !circle::at_the_edge(p.phase_ns));
        let off = points.filter_map(|p| of(p).map(|ns| (ns - p.closed_form_ns).abs()));
        off.reduce(f64::max)
    };
    let circle = Circle {
        cycles: args.cycles,
        simulated_off_ns: off(&|p| Some(p.simulated_ns)).unwrap_or(0.0),
        measured_off_ns: off(&|p| p.measured_ns),
        points,
    };
    print_result(args.json, &circle, || text(&circle))?;
    Ok(ExitCode::SUCCESS)
}

fn text(circle: &Circle) -> String {
    let mut text = String::from(
        "# Two threads are asked for 80 ms every 200 ms, under quota = period = 100 ms.\n\
         # How late are they, by the phase at which they are asked? All times in ms.\n\n \
         phase   closed form   simulated   measured\n",
    );
    let ms = |ns: f64| format!("{:.2}", ns / 1e6);
    for point in &circle.points {
        let edge = if circle::at_the_edge(point.phase_ns) { "  (edge)" } else { "" };
        let measured = point.measured_ns.map_or("-".to_owned(), ms);
        let _ = writeln!(
            text,
            "{:>6}{:>14}{:>12}{measured:>11}{edge}",
            point.phase_ns / 1_000_000,
            ms(point.closed_form_ns),
            ms(point.simulated_ns),
        );
    }
    let measured = circle.measured_off_ns.map_or("-".to_owned(), ms);
    let _ = writeln!(
        text,
        "\nworst difference from the closed form, but at its edge: simulated {}, measured {measured}\n\
         edge: from 70 to 74 ms a CPU still holds some of the quota before, which the form leaves out",
        ms(circle.simulated_off_ns),
    );
    text
}
