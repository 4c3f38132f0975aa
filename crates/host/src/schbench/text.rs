//! The lines that the three programs print, character by character where they are the same.

use std::fmt::Write;

use reveille_measure::Ns;

use super::options::{Era, Schbench, Think};
use super::{Outcome, Summary};

/// Percentiles of latencies that the current era prints; 20 as well for a pipe.
const LATENCY: &[f64] = &[50.0, 90.0, 99.0, 99.9];
const PIPE_LATENCY: &[f64] = &[20.0, 50.0, 90.0, 99.0, 99.9];
const RPS: &[f64] = &[20.0, 50.0, 90.0];

/// What a table of the current era is about.
struct Title {
    label: &'static str,
    unit: &'static str,
    /// Percentiles that are shown, and the one with a star.
    shown: &'static [f64],
    star: f64,
}

const WAKEUP: Title = Title { label: "Wakeup Latencies", unit: "usec", shown: LATENCY, star: 99.0 };

/// A table of the current era. In brackets stand the samples between this percentile and
/// the one before, which may be one that is not shown.
fn table(title: &Title, summary: &Summary, runtime_s: u32) -> String {
    let Title { label, unit, shown, star } = title;
    let samples = summary.samples;
    let mut text =
        format!("{label} percentiles ({unit}) runtime {runtime_s} (s) ({samples} total samples)\n");
    for line in summary.percentiles.iter().filter(|line| shown.contains(&line.percent)) {
        let mark = if line.percent == *star { "* " } else { "  " };
        let (percent, value, band) = (line.percent, line.value, line.band);
        let _ = writeln!(text, "\t{mark}{percent:.1}th: {value:<10} ({band} samples)");
    }
    let _ = writeln!(text, "\t  min={}, max={}", summary.min, summary.max);
    text
}

/// The three tables of the current era.
pub(super) fn tables(wakeup: &Summary, request: &Summary, rps: &Summary, runtime_s: u32) -> String {
    let of_request = Title { label: "Request Latencies", ..WAKEUP };
    let of_rps = Title { label: "RPS", unit: "requests", shown: RPS, star: 50.0 };
    table(&WAKEUP, wakeup, runtime_s)
        + &table(&of_request, request, runtime_s)
        + &table(&of_rps, rps, runtime_s)
}

/// Mean times that message threads and workers waited for a CPU.
pub(super) fn sched_delay([message, worker]: [Ns; 2]) -> String {
    let (message, worker) = (message / 1000, worker / 1000);
    format!("sched delay: message {message} (usec) worker {worker} (usec)\n")
}

/// The table of the older eras but for its last line.
fn old_percentiles(summary: &Summary) -> String {
    let mut text = String::from("Latency percentiles (usec)\n");
    for line in &summary.percentiles {
        let mark = if line.percent == 99.0 { "*" } else { "" };
        let _ = writeln!(text, "\t{mark}{:.4}th: {}", line.percent, line.value);
    }
    text
}

/// The table of the classic era.
pub(super) fn old_table(summary: &Summary) -> String {
    old_percentiles(summary) + &format!("\tmin={}, max={}\n", summary.min, summary.max)
}

/// What an era prints on standard error at the end.
pub fn closing(job: &Schbench, outcome: &Outcome) -> String {
    let wakeup = &outcome.wakeup;
    match job.era {
        Era::First => {
            let (over, min, max) = (outcome.over, wakeup.min, wakeup.max);
            old_percentiles(wakeup) + &format!("\tOver={over}, min={min}, max={max}\n")
        }
        Era::Classic => old_table(wakeup),
        Era::Current => match (&outcome.request, &outcome.rps) {
            (Some(request), Some(rps)) => {
                let mut text = tables(wakeup, request, rps, job.runtime_s);
                if job.auto_rps_percent.is_some() {
                    let _ = writeln!(text, "final rps goal was {}", outcome.rps_goal);
                } else {
                    let _ = writeln!(text, "average rps: {:.2}", outcome.average_rps());
                }
                text + &sched_delay([outcome.message_delay_ns, outcome.worker_delay_ns])
            }
            _ => {
                let title = Title { shown: PIPE_LATENCY, ..WAKEUP };
                table(&title, wakeup, job.runtime_s) + &transfer_line(job, outcome)
            }
        },
    }
}

/// The rate of a pipe: of one worker, on average.
pub fn transfer_line(job: &Schbench, outcome: &Outcome) -> String {
    let rate = outcome.worker_rate(job.message_threads);
    let mut bytes = rate * f64::from(job.pipe_bytes.unwrap_or(0));
    let mut units = ["B", "KB", "MB", "GB", "TB", "PB", "EB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    for larger in units {
        if bytes < 1024.0 {
            break;
        }
        bytes /= 1024.0;
        unit = larger;
    }
    format!("avg worker transfer: {rate:.2} ops/sec {bytes:.2}{unit}/s\n")
}

/// The line of the classic era with `-R`.
pub fn rps_line(job: &Schbench, outcome: &Outcome) -> String {
    let Think::Spin { cpu_us } = job.think else { return String::new() };
    let (p95, p99) = (outcome.wakeup.at(95.0), outcome.wakeup.at(99.0));
    let share = |us: u32| f64::from(us) / cpu_us as f64 * 100.0;
    format!(
        "rps: {:.2} p95 (usec) {p95} p99 (usec) {p99} p95/cputime {:.2}% p99/cputime {:.2}%\n",
        outcome.average_rps(),
        share(p95),
        share(p99)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schbench::histogram::Counts;

    fn outcome(era: Era, values: &[u32]) -> Outcome {
        let mut counts = Counts::default();
        values.iter().for_each(|&v| counts.record(v));
        let summary = counts.summary(era.percents());
        Outcome {
            worker_threads: 3,
            measured_ns: 4_000_000_000,
            wakeup: summary.clone(),
            request: Some(summary.clone()),
            rps: Some(summary),
            open_loop: None,
            over: 2,
            loops: 6_000_000_000_000,
            skipped: 0,
            rps_goal: 0,
            message_delay_ns: 7_900,
            worker_delay_ns: 12_000,
            tasks: crate::kernel::TaskUse::default(),
        }
    }

    #[test]
    fn the_current_era() {
        let values: Vec<u32> = (0..1000).collect();
        let mut job = Schbench::new(Era::Current);
        let text = closing(&job, &outcome(Era::Current, &values));
        let expected = "Wakeup Latencies percentiles (usec) runtime 30 (s) (1000 total samples)\n\
            \t  50.0th: 499        (300 samples)\n\
            \t  90.0th: 899        (400 samples)\n\
            \t* 99.0th: 989        (90 samples)\n\
            \t  99.9th: 999        (10 samples)\n\
            \t  min=0, max=999\n\
            Request";
        assert_eq!(&text[..expected.len()], expected);
        let expected = "RPS percentiles (requests) runtime 30 (s) (1000 total samples)\n\
            \t  20.0th: 199        (200 samples)\n\
            \t* 50.0th: 499        (300 samples)\n\
            \t  90.0th: 899        (400 samples)\n\
            \t  min=0, max=999\n\
            average rps: 1500000000000.00\n\
            sched delay: message 7 (usec) worker 12 (usec)\n";
        assert!(text.ends_with(expected), "{text}");
        job.pipe_bytes = Some(1 << 20);
        let mut pipe = outcome(Era::Current, &values);
        (pipe.request, pipe.rps) = (None, None);
        let text = closing(&job, &pipe);
        assert!(text.contains("\t  20.0th: 199"), "{text}");
        // 5·10¹¹ a second of 1 MiB: more bytes than 64 bits count in microseconds.
        assert!(text.ends_with("transfer: 500000000000.00 ops/sec 465.66PB/s\n"), "{text}");
    }

    #[test]
    fn the_older_eras() {
        let mut job = Schbench::new(Era::First);
        let text = closing(&job, &outcome(Era::First, &[4, 4, 4, 4]));
        let expected = "Latency percentiles (usec)\n\t50.0000th: 4\n\t75.0000th: 4\n\
            \t90.0000th: 4\n\t95.0000th: 4\n\t*99.0000th: 4\n\t99.5000th: 4\n\t99.9000th: 4\n\
            \tOver=2, min=4, max=4\n";
        assert_eq!(text, expected);
        job.era = Era::Classic;
        let text = closing(&job, &outcome(Era::Classic, &[4, 4, 4, 4]));
        assert!(text.ends_with("\t99.9000th: 4\n\tmin=4, max=4\n"), "{text}");
        job.think = Think::Spin { cpu_us: 80 };
        let mut open = outcome(Era::Classic, &[2, 20]);
        open.loops = 41;
        let expected = "rps: 10.25 p95 (usec) 20 p99 (usec) 20 p95/cputime 25.00% \
            p99/cputime 25.00%\n";
        assert_eq!(rps_line(&job, &open), expected);
    }
}
