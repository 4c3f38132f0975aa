//! A setting over the time of the recording: CPU use, runtime in the bank, throttling. Only pages
//! show it, so it is computed on demand.

use std::sync::atomic::AtomicBool;

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use reveille_policy::{BandwidthLimits, Groups, TaskGroup};
use reveille_sim::GroupMoment;
use reveille_usage::Usage;

use crate::load::Load;
use crate::plan::Plan;
use crate::replay::{Phase, Stage};
use crate::request::{Request, pool};
use crate::short::pieces;
use crate::{Ns, Result};

/// Maximum number of bins in a strip.
const BINS: u64 = 600;
/// Bounds of the close-up's length.
const CLOSE_NS: [Ns; 2] = [2_000_000_000, 5_000_000_000];
/// Length of the close-up in periods, within those bounds.
const CLOSE_PERIODS: Ns = 20;
/// Period of an unreachable quota around the group, whose timer provides sampling points between
/// the group's own.
const WATCH_NS: Ns = 5_000_000;

/// A setting over time, at the phase with the median p99.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    pub limits: BandwidthLimits,
    /// The group's phase at the start of the run, from 0 to 1 period.
    pub phase: f64,
    pub whole: Strip,
    /// The worst stretch, the same for all settings; `None` if the recording is short.
    pub close: Option<Strip>,
}

/// A stretch of the recording in equal bins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Strip {
    /// Start, relative to the recording.
    pub from_ns: Ns,
    /// Length of a bin.
    pub step_ns: f64,
    /// Mean CPUs used in each bin.
    pub used_cpus: Vec<f64>,
    /// Minimum of the runtime available (`cfs_b->runtime`) in each bin; empty without a quota.
    pub least_ns: Vec<f64>,
    /// Maximum of it in each bin.
    pub most_ns: Vec<f64>,
    /// Share of each bin in which some CPU of the group was throttled.
    pub throttled_share: Vec<f64>,
}

/// Pictures of the plan's settings: today's and the recommended one, where they exist.
pub fn pictures(
    request: &Request<'_>,
    plan: &Plan,
    jobs: usize,
    stop: &AtomicBool,
) -> Result<Vec<Picture>> {
    pool(jobs)?.install(|| {
        let stage = request.stage(stop, &|| ())?;
        let mut all: Vec<&Usage> = vec![request.usage];
        all.extend(request.neighbours.iter().map(|neighbour| &neighbour.usage));
        let load = Load::new(&all);
        let limits: Vec<BandwidthLimits> =
            plan.today.iter().chain(&plan.recommended).map(|shown| shown.limits).collect();
        // Averages have no latency to choose a phase by.
        let phases = if pieces(request.usage) > 0 { request.phases } else { 1 };
        let runs = limits.iter().map(|&limits| Ran::new(&stage, &load, limits, phases));
        let runs = runs.collect::<Result<Vec<Ran>>>()?;
        let span_ns = load.span_ns();
        let whole: Vec<Strip> = runs.iter().map(|run| run.strip(0, span_ns)).collect();
        let close = whole.first().and_then(|first| worst(first, &limits, span_ns));
        let pictures = runs.iter().zip(whole).map(|(run, whole)| Picture {
            limits: run.limits,
            phase: run.phase.own,
            whole,
            close: close.map(|(from, length)| run.strip(from, length)),
        });
        Ok(pictures.collect())
    })
}

/// Start and length of the stretch with most throttling, or else most use. One stretch serves all
/// settings, so that they can be compared.
fn worst(whole: &Strip, limits: &[BandwidthLimits], span_ns: Ns) -> Option<(Ns, Ns)> {
    let longest = limits.iter().map(|limits| limits.period_ns).max()?;
    let length_ns = (CLOSE_PERIODS * longest).clamp(CLOSE_NS[0], CLOSE_NS[1]);
    if span_ns < 2 * length_ns {
        return None;
    }
    let bins = ((length_ns as f64 / whole.step_ns) as usize).max(1);
    let score = |first: usize| {
        let sum = |of: &[f64]| of.iter().skip(first).take(bins).sum::<f64>();
        (sum(&whole.throttled_share), sum(&whole.used_cpus))
    };
    let firsts = 0..whole.used_cpus.len().saturating_sub(bins) + 1;
    let first = firsts.max_by(|&a, &b| {
        let ((a, a_used), (b, b_used)) = (score(a), score(b));
        a.total_cmp(&b).then(a_used.total_cmp(&b_used))
    })?;
    // Start of its bin; the last window ends with the recording.
    Some(((first as f64 * whole.step_ns) as Ns, length_ns))
        .map(|(from, length)| (from.min(span_ns - length), length))
}

/// A run at the median phase.
struct Ran {
    limits: BandwidthLimits,
    phase: Phase,
    /// Stretches between measured moments, on the recording's clock.
    spans: Vec<Span>,
}

/// From one measured moment to the next.
#[derive(Clone, Copy, Debug)]
struct Span {
    from_ns: f64,
    to_ns: f64,
    used_ns: f64,
    /// Runtime available at its start and end.
    bank_ns: [f64; 2],
    throttled: bool,
}

impl Ran {
    fn new(stage: &Stage<'_>, load: &Load, limits: BandwidthLimits, phases: u32) -> Result<Ran> {
        let phase = match limits.quota_ns {
            None => Phase::of_grid(0, phases),
            Some(_) => median_phase(stage, load, limits, phases)?,
        };
        let mut groups = stage.groups(load, Some(limits), phase);
        // Run some periods past the end to get a moment there.
        let spec = stage.spec(load, &groups);
        let watch = watch(stage, &mut groups);
        let (_, history) = reveille_sim::run_with_history(
            &stage.machine,
            &load.program,
            &stage.policy,
            &groups,
            &spec,
            stage.stop,
        )?;
        let mut spans = spans(&history, watch, spec.warmup_ns, load.span_ns());
        let threads = load.program.tasks.iter().filter(|task| task.role == 0).count();
        spread(&mut spans, stage.machine.topology.n_cpus().min(threads) as f64);
        Ok(Ran { limits, phase, spans })
    }

    fn strip(&self, from_ns: Ns, length_ns: Ns) -> Strip {
        let bins = BINS as usize;
        let mut strip = Strip {
            from_ns,
            step_ns: length_ns as f64 / bins as f64,
            used_cpus: vec![0.0; bins],
            least_ns: vec![f64::INFINITY; bins],
            most_ns: vec![f64::NEG_INFINITY; bins],
            throttled_share: vec![0.0; bins],
        };
        for span in &self.spans {
            strip.add(span);
        }
        if self.limits.quota_ns.is_none() {
            (strip.least_ns, strip.most_ns) = (Vec::new(), Vec::new());
            return strip;
        }
        // Without events the bank is unchanged; at the start it is full.
        let mut before = (self.limits.quota_ns.unwrap_or(0) + self.limits.burst_ns) as f64;
        for (least, most) in strip.least_ns.iter_mut().zip(&mut strip.most_ns) {
            if *least > *most {
                (*least, *most) = (before, before);
            }
            before = *most;
        }
        strip
    }
}

fn median_phase(
    stage: &Stage<'_>,
    load: &Load,
    limits: BandwidthLimits,
    phases: u32,
) -> Result<Phase> {
    let p99 = (0..phases).into_par_iter().map(|index| {
        let outcome = stage.replay(load, Some(limits), Phase::of_grid(index, phases))?;
        Ok((stage.figures(load, &outcome, 0.0).p99_ns, index))
    });
    let mut p99: Vec<(f64, u32)> = p99.collect::<Result<_>>()?;
    p99.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    Ok(Phase::of_grid(p99[p99.len() / 2].1, phases))
}

/// Inserts a group around the load's own, behind which it is stored; returns its index.
fn watch(stage: &Stage<'_>, groups: &mut Groups) -> usize {
    let number = stage.own();
    let inner = groups.groups[number].clone();
    // More than all CPUs can draw.
    let most_ns = stage.machine.topology.n_cpus() as Ns * 2 * (WATCH_NS + stage.slice_ns);
    let limits = BandwidthLimits { quota_ns: Some(most_ns), period_ns: WATCH_NS, burst_ns: 0 };
    let name = "watch".to_owned();
    let around = TaskGroup { name, limits, phase_ns: Some(0), ..inner };
    groups.groups.insert(number, around);
    groups.groups[number + 1].parent = Some(number);
    number
}

/// Stretches between measured moments, on the recording's clock. Group `watch` has the same CPU use
/// as the group after it, whose bank and throttling are shown.
fn spans(history: &[GroupMoment], watch: usize, warmup_ns: Ns, span_ns: Ns) -> Vec<Span> {
    let own = watch + 1;
    let moments: Vec<GroupMoment> =
        history.iter().filter(|m| m.group == watch || m.group == own).copied().collect();
    let mut spans = Vec::new();
    let mut add = |span: Span| cut(&mut spans, span, warmup_ns, span_ns);
    // The state is unknown before the group's own first moment.
    let mut first = moments.iter().position(|m| m.group == own).unwrap_or(0);
    while first + 1 < moments.len() {
        let next = moments[first + 1..].iter().position(|m| m.group == own);
        let last = next.map_or(moments.len() - 1, |next| first + 1 + next);
        let (a, b) = (&moments[first], &moments[last]);
        // The bank falls as CPU time is used.
        let used = (b.usage_ns - a.usage_ns).max(1) as f64;
        let end = if b.group == own { b.runtime_ns } else { a.runtime_ns };
        let fall = end as f64 - a.runtime_ns as f64;
        let bank = |usage: Ns| a.runtime_ns as f64 + fall * (usage - a.usage_ns) as f64 / used;
        let throttled = a.group == own && a.throttled_cpus > 0;
        for pair in moments[first..=last].windows(2) {
            let (from, to) = (&pair[0], &pair[1]);
            let mut from_ns = from.at_ns;
            let bank_ns = [bank(from.usage_ns), bank(to.usage_ns)];
            // The timer stops when idle; it starts a period before its next moment.
            let begins_ns = to.at_ns.saturating_sub(WATCH_NS);
            if begins_ns > from_ns {
                let (from_ns, to_ns) = (from_ns as f64, begins_ns as f64);
                add(Span { from_ns, to_ns, used_ns: 0.0, bank_ns: [bank_ns[0]; 2], throttled });
            }
            from_ns = from_ns.max(begins_ns);
            let used_ns = (to.usage_ns - from.usage_ns) as f64;
            let (from_ns, to_ns) = (from_ns as f64, to.at_ns as f64);
            add(Span { from_ns, to_ns, used_ns, bank_ns, throttled });
        }
        first = last;
    }
    spans
}

/// The kernel charges CPU time up to a tick late. Moves use that `cpus` could not have delivered
/// between two moments to before them.
fn spread(spans: &mut [Span], cpus: f64) {
    let mut before_ns = 0.0;
    for span in spans.iter_mut().rev() {
        let used_ns = span.used_ns + before_ns;
        span.used_ns = used_ns.min(cpus * (span.to_ns - span.from_ns));
        before_ns = used_ns - span.used_ns;
    }
}

/// Adds the measured part of `span`, split where the recording wraps around.
fn cut(spans: &mut Vec<Span>, span: Span, warmup_ns: Ns, span_ns: Ns) {
    let (begin, end) = (warmup_ns as f64, (warmup_ns + span_ns) as f64);
    let length = span_ns as f64;
    // The recording's end may lie inside: split into before and after.
    let again = (warmup_ns.div_ceil(span_ns) * span_ns) as f64;
    for (low, high) in [(begin, again), (again, end)] {
        let part = span.between(low, high);
        if part.to_ns > part.from_ns {
            let shift = ((part.from_ns + 0.5).max(low) / length).floor() * length;
            spans.push(Span { from_ns: part.from_ns - shift, to_ns: part.to_ns - shift, ..part });
        }
    }
}

impl Span {
    /// Its part from `low` to `high`.
    fn between(&self, low: f64, high: f64) -> Span {
        let (from_ns, to_ns) = (self.from_ns.max(low), self.to_ns.min(high));
        let length = (self.to_ns - self.from_ns).max(1.0);
        let bank = |at: f64| {
            let part = ((at - self.from_ns) / length).clamp(0.0, 1.0);
            self.bank_ns[0] + part * (self.bank_ns[1] - self.bank_ns[0])
        };
        Span {
            from_ns,
            to_ns,
            used_ns: self.used_ns * ((to_ns - from_ns) / length).max(0.0),
            bank_ns: [bank(from_ns), bank(to_ns)],
            throttled: self.throttled,
        }
    }
}

impl Strip {
    fn add(&mut self, span: &Span) {
        let (from, bins) = (self.from_ns as f64, self.used_cpus.len());
        let place = |at: f64| (at - from) / self.step_ns;
        if place(span.to_ns) <= 0.0 || place(span.from_ns) >= bins as f64 {
            return;
        }
        let first = place(span.from_ns).max(0.0) as usize;
        let last = (place(span.to_ns).ceil() as usize).min(bins);
        for bin in first..last {
            let low = from + bin as f64 * self.step_ns;
            let part = span.between(low, low + self.step_ns);
            let length = part.to_ns - part.from_ns;
            if length <= 0.0 {
                continue;
            }
            self.used_cpus[bin] += part.used_ns / self.step_ns;
            for bank in part.bank_ns {
                self.least_ns[bin] = self.least_ns[bin].min(bank);
                self.most_ns[bin] = self.most_ns[bin].max(bank);
            }
            if part.throttled {
                self.throttled_share[bin] += length / self.step_ns;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Ns = 1_000_000;

    /// A moment of the group itself, inside group 0.
    fn moment(at_ms: Ns, runtime_ms: Ns, usage_ms: Ns, throttled_cpus: u32) -> GroupMoment {
        let (at_ns, runtime_ns, usage_ns) = (at_ms * MS, runtime_ms * MS, usage_ms * MS);
        GroupMoment { at_ns, group: 1, runtime_ns, usage_ns, throttled_cpus }
    }

    /// A moment of the group around it.
    fn watched(at_ms: Ns, usage_ms: Ns) -> GroupMoment {
        GroupMoment { group: 0, ..moment(at_ms, 999, usage_ms, 0) }
    }

    fn ran(moments: &[GroupMoment], warmup_ms: Ns, span_ms: Ns) -> Ran {
        let limits = BandwidthLimits { quota_ns: Some(50 * MS), period_ns: 100 * MS, burst_ns: 0 };
        let spans = spans(moments, 0, warmup_ms * MS, span_ms * MS);
        Ran { limits, phase: Phase::of_grid(0, 1), spans }
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6
    }

    /// 50 ms are used in the first half of a period, then it is throttled until the refill.
    #[test]
    fn use_bank_and_throttling_are_where_they_were() {
        let mut moments = vec![moment(0, 50, 0, 0)];
        moments.extend((1..10).map(|i| watched(5 * i, 5 * i)));
        moments.extend([
            moment(50, 0, 50, 1),
            moment(100, 0, 50, 1),
            moment(100, 50, 50, 0),
            moment(600, 50, 50, 0),
        ]);
        let strip = ran(&moments, 0, 600).strip(0, 600 * MS);
        // 1 ms each.
        assert!(near(strip.used_cpus[10], 1.0) && strip.used_cpus[60] == 0.0);
        assert!(near(strip.used_cpus.iter().sum::<f64>(), 50.0));
        assert!(near(strip.throttled_share.iter().sum::<f64>(), 50.0));
        assert_eq!((strip.throttled_share[49], strip.throttled_share[50]), (0.0, 1.0));
        assert_eq!((strip.least_ns[75], strip.most_ns[75]), (0.0, 0.0));
        assert!((strip.least_ns[25] - 24.0 * MS as f64).abs() < 1.0);
        assert_eq!((strip.least_ns[300], strip.most_ns[599]), (50.0 * MS as f64, 50.0 * MS as f64));
    }

    /// The timer stopped: what was used was used just before the next moment, and the bank fell
    /// as it was used.
    #[test]
    fn use_after_idle_time_is_at_its_end() {
        let moments = [moment(0, 50, 0, 0), watched(405, 4), moment(600, 40, 10, 0)];
        let strip = ran(&moments, 0, 600).strip(0, 600 * MS);
        assert_eq!(strip.used_cpus[399], 0.0);
        assert!(near(strip.used_cpus[402], 0.8) && near(strip.used_cpus[597], 1.2));
        assert!(near(strip.used_cpus.iter().sum::<f64>(), 10.0));
        assert!(near(strip.most_ns[500], 46.0 * MS as f64));
    }

    #[test]
    fn no_more_is_used_than_the_cpus_have() {
        let moments = [moment(0, 50, 0, 0), watched(595, 4), moment(600, 40, 10, 0)];
        let mut ran = ran(&moments, 0, 600);
        spread(&mut ran.spans, 1.0);
        let used = ran.strip(0, 600 * MS).used_cpus;
        assert!(near(used[597], 1.0) && near(used[592], 1.0), "{used:?}");
        assert!(near(used.iter().sum::<f64>(), 10.0));
    }

    /// What is measured begins in the middle of the recording and goes on from its beginning.
    #[test]
    fn time_is_that_of_the_recording() {
        let mut moments = vec![moment(150, 50, 0, 0)];
        // Half a CPU all the time, up to behind the end.
        moments.extend((1..100).map(|i| watched(150 + 4 * i, 2 * i)));
        moments.push(moment(550, 50, 200, 0));
        let strip = ran(&moments, 200, 300).strip(0, 300 * MS);
        assert!(strip.used_cpus.iter().all(|&used| near(used, 0.5)), "{:?}", strip.used_cpus);
    }

    #[test]
    fn the_worst_part_is_where_it_is_throttled() {
        let mut whole = Strip { step_ns: 100.0 * MS as f64, ..Strip::default() };
        whole.used_cpus = vec![0.5; 600];
        whole.throttled_share = vec![0.0; 600];
        whole.throttled_share[300..310].fill(1.0);
        let limits =
            [BandwidthLimits { quota_ns: Some(50 * MS), period_ns: 100 * MS, burst_ns: 0 }];
        let (from, length) = worst(&whole, &limits, 60_000 * MS).unwrap();
        assert_eq!(length, 2000 * MS);
        assert!(from <= 30_000 * MS && from + length >= 31_000 * MS, "{from}");
        assert_eq!(worst(&whole, &limits, 3000 * MS), None);
    }
}
