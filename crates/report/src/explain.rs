//! The numbers that explain a row, as people read them: shares instead of
//! parallel rates, and one line per mechanism that a placement policy can move.

use reveille_measure::Explain;
use reveille_study::Row;

use crate::number;

/// One explaining number: what it is called and how it is read off.
pub(crate) struct Line {
    /// Short enough for the first column of an 80-column table.
    pub(crate) label: &'static str,
    /// The number with its unit.
    pub(crate) value: fn(&Explain) -> String,
}

/// All explaining numbers, in the order of a wakeup: how full the machine was,
/// where wakees went, what finding a CPU took, what it cost, what the task felt.
const LINES: [Line; 24] = [
    Line { label: "idle", value: |e| percent(e.idle_pct) },
    Line { label: "  kernel's count", value: |e| percent(e.idle_task_pct) },
    Line { label: "wakeups/s", value: |e| si(e.ttwu_count_per_s) },
    Line { label: "  same CPU", value: |e| share(e.wakeups_same_cpu_per_s, e) },
    Line { label: "  sibling", value: |e| share(e.wakeups_sibling_per_s, e) },
    Line { label: "  same LLC", value: |e| share(e.wakeups_same_llc_per_s, e) },
    Line { label: "  remote", value: |e| share(e.wakeups_remote_per_s, e) },
    Line { label: "idle searches/s", value: |e| si(e.idle_searches_per_s) },
    Line { label: "  CPUs looked at", value: |e| si(e.cpus_per_search) },
    Line { label: "search success", value: |e| percent(e.search_success_pct) },
    Line { label: "  fast path", value: |e| percent(e.fast_path_pct) },
    Line { label: "  efficiency", value: |e| percent(e.search_efficiency_pct) },
    Line { label: "  in the cache", value: |e| percent(e.domain_efficiency_pct) },
    Line { label: "stacked wakeups/s", value: |e| si(e.stacked_wakeups_per_s) },
    Line { label: "migrations/s", value: |e| si(e.migrations_per_s) },
    Line { label: "  new-idle pulls/s", value: |e| si(e.lb_gained_newidle_per_s) },
    Line { label: "IPIs/s", value: |e| si(e.ipis_per_s) },
    Line { label: "switches/s", value: |e| si(e.context_switches_per_s) },
    Line { label: "scheduling cost", value: |e| percent(e.cost_pct) },
    Line { label: "  lock wait", value: |e| percent(e.lock_wait_pct) },
    Line { label: "  hot-line wait", value: |e| percent(e.hot_line_wait_pct) },
    Line { label: "wakeup p50", value: |e| quantile(e.wakeup_p50_ns, e) },
    Line { label: "wakeup p99", value: |e| quantile(e.wakeup_p99_ns, e) },
    Line { label: "wakeup max", value: |e| time(e.wakeup_max_ns) },
];

/// What the shared wake queue did; of interest only where a policy has one.
const SHARED_QUEUE: [Line; 4] = [
    Line { label: "shared-queue pulls/s", value: |e| si(e.swqueue_pulls_per_s) },
    Line { label: "  wait to append", value: |e| percent(e.swqueue_append_wait_pct) },
    Line { label: "  wait to remove", value: |e| percent(e.swqueue_remove_wait_pct) },
    Line { label: "  waits of busy time", value: |e| percent(e.swqueue_wait_busy_pct) },
];

/// What stands for a number that was not observed.
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
