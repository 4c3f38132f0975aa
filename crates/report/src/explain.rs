//! The numbers that explain a row, for people: shares instead of parallel rates, and one line per
//! mechanism that a placement policy affects.

use reveille_measure::Explain;
use reveille_study::Row;

use crate::number;

/// One explaining number: what it is called and how it is read off.
pub(crate) struct Line {
    /// Short enough for the first column of an 80-column table.
    pub(crate) label: &'static str,
    /// Is it a part of the line above?
    pub(crate) part: bool,
    /// The number with its unit.
    pub(crate) value: fn(&Explain) -> String,
}

const fn whole(label: &'static str, value: fn(&Explain) -> String) -> Line {
    Line { label, part: false, value }
}

const fn part(label: &'static str, value: fn(&Explain) -> String) -> Line {
    Line { label, part: true, value }
}

/// All explaining numbers, in the order of a wakeup: how full the machine was,
/// where wakees went, what finding a CPU took, what it cost, what the task felt.
const LINES: [Line; 24] = [
    whole("idle", |e| percent(e.idle_pct)),
    part("kernel's count", |e| percent(e.idle_task_pct)),
    whole("wakeups/s", |e| si(e.ttwu_count_per_s)),
    part("same CPU", |e| share(e.wakeups_same_cpu_per_s, e)),
    part("sibling", |e| share(e.wakeups_sibling_per_s, e)),
    part("same LLC", |e| share(e.wakeups_same_llc_per_s, e)),
    part("remote", |e| share(e.wakeups_remote_per_s, e)),
    whole("idle searches/s", |e| si(e.idle_searches_per_s)),
    part("CPUs looked at", |e| si(e.cpus_per_search)),
    whole("search success", |e| percent(e.search_success_pct)),
    part("fast path", |e| percent(e.fast_path_pct)),
    part("efficiency", |e| percent(e.search_efficiency_pct)),
    part("in the cache", |e| percent(e.domain_efficiency_pct)),
    whole("stacked wakeups/s", |e| si(e.stacked_wakeups_per_s)),
    whole("migrations/s", |e| si(e.migrations_per_s)),
    part("new-idle pulls/s", |e| si(e.lb_gained_newidle_per_s)),
    whole("IPIs/s", |e| si(e.ipis_per_s)),
    whole("switches/s", |e| si(e.context_switches_per_s)),
    whole("scheduling cost", |e| percent(e.cost_pct)),
    part("lock wait", |e| percent(e.lock_wait_pct)),
    part("hot-line wait", |e| percent(e.hot_line_wait_pct)),
    whole("wakeup p50", |e| quantile(e.wakeup_p50_ns, e)),
    whole("wakeup p99", |e| quantile(e.wakeup_p99_ns, e)),
    whole("wakeup max", |e| time(e.wakeup_max_ns)),
];

/// What the shared wake queue did; of interest only where a policy has one.
const SHARED_QUEUE: [Line; 4] = [
    whole("shared-queue pulls/s", |e| si(e.swqueue_pulls_per_s)),
    part("wait to append", |e| percent(e.swqueue_append_wait_pct)),
    part("wait to remove", |e| percent(e.swqueue_remove_wait_pct)),
    part("waits of busy time", |e| percent(e.swqueue_wait_busy_pct)),
];

/// Printed for a number that was not observed.
const NOT_OBSERVED: &str = "–";

fn si(value: f64) -> String {
    observed(value, number::si)
}

fn percent(value: f64) -> String {
    observed(value, number::percent)
}

fn time(ns: f64) -> String {
    observed(ns, number::time)
}

/// Latencies that were seen, but too few of them, leave no number either.
fn quantile(ns: f64, e: &Explain) -> String {
    if ns.is_nan() && e.latencies.is_some() { number::TOO_FEW.into() } else { time(ns) }
}

fn observed(value: f64, format: fn(f64) -> String) -> String {
    if value.is_nan() { NOT_OBSERVED.into() } else { format(value) }
}

/// The lines that say something about these rows: not those of which neither side of any
/// row observed anything.
pub(crate) fn lines<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Vec<&'static Line> {
    let sides: Vec<&Explain> =
        rows.into_iter().flat_map(|row| [&row.explain.baseline, &row.explain.candidate]).collect();
    let shared_queue = sides.iter().any(|e| e.swqueue_wait_busy_pct > 0.0);
    let more: &[Line] = if shared_queue { &SHARED_QUEUE } else { &[] };
    let known = |line: &&Line| sides.iter().any(|e| (line.value)(e) != NOT_OBSERVED);
    LINES.iter().chain(more).filter(known).collect()
}

/// `part` of all wake-ups in percent; 0 of none is 0.
fn share(part: f64, e: &Explain) -> String {
    let all = e.ttwu_count_per_s;
    percent(if all == 0.0 { 0.0 } else { 100.0 * part / all })
}
