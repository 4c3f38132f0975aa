//! What a plan says in sentences, and how its figures are written: milliseconds and percent
//! with three significant digits, so that a row needs its unit once.

use reveille_measure::{duration_text, three_digits};
use reveille_plan::{
    Change, Goal, HOW_TO_KNOW, InferredFrom, Plan, Range, Recording, Subject, quantile_name,
};
use reveille_policy::BandwidthLimits;
use reveille_usage::{HeldBack, Origin};

use crate::number::TOO_FEW;

/// Work that does not end in the simulated time.
pub(super) const NEVER: &str = "never";

fn digits(value: f64) -> String {
    if value > 0.0 && value < 0.01 { "<0.01".into() } else { three_digits(value) }
}

/// Milliseconds without their unit.
pub(super) fn ms(ns: f64) -> String {
    match ns {
        ns if ns.is_nan() => TOO_FEW.into(),
        ns if ns.is_infinite() => NEVER.into(),
        ns => digits(ns / 1e6),
    }
}

/// Percent without its sign.
pub(super) fn percent(share: f64) -> String {
    // 99.97% is not all.
    if (0.9995..1.0).contains(&share) { ">99.9".into() } else { digits(100.0 * share) }
}

/// A share of few draws, in percent with its sign.
pub(super) fn of_draws(share: f64) -> String {
    format!("{}%", (1000.0 * share).round() / 10.0)
}

/// CPUs; quotas are found to less than a hundredth.
pub(super) fn cpus(cpus: f64) -> String {
    format!("{cpus:.3}")
}

/// A time with its unit, exact: `62.5ms`.
pub(super) fn exact(ns: u64) -> String {
    let text = duration_text(ns as f64);
    let end = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    // Microseconds by the hundred read better as milliseconds.
    match &text[end..] {
        "us" if ns >= 1_000_000 => format!("{} ms", ns as f64 / 1e6),
        unit => format!("{} {unit}", &text[..end]),
    }
}

/// `1234567` as `1,234,567`.
pub(super) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", thousands(n), if n == 1 { one } else { many })
}

/// A setting in words: `60 ms per 100 ms and a burst of 30 ms`.
pub(super) fn setting(limits: &BandwidthLimits) -> String {
    let Some(quota) = limits.quota_ns else { return "no quota".into() };
    let burst = match limits.burst_ns {
        0 => ", no burst".into(),
        burst => format!(" and a burst of {}", exact(burst)),
    };
    format!("{} per {}{burst}", exact(quota), exact(limits.period_ns))
}

pub(super) fn recording(of: &Recording) -> String {
    let origin = match of.origin {
        Origin::Traced => "traced".into(),
        Origin::Sampled { resolution_ns } => format!("sampled every {}", exact(resolution_ns)),
        Origin::Requests => "of requests".into(),
        Origin::Averaged { step_ns } => format!("of averages over {}", exact(step_ns)),
    };
    format!(
        "{:.1} s {origin}; {} on {}: {} CPUs on average, the longest piece {} ms",
        of.span_ns as f64 / 1e9,
        counted(of.demands as u64, "piece of work", "pieces of work"),
        counted(u64::from(of.threads), "thread", "threads") + of.origin.about_threads(),
        cpus(of.mean_cpus),
        ms(of.longest_ns as f64),
    )
}

/// What was recorded; the requests that counters let infer are none of it.
pub(super) fn recorded(plan: &Plan) -> String {
    let of = &plan.recording;
    match plan.inferred.as_ref().map(|inferred| inferred.from) {
        Some(InferredFrom::Counters { span_ns, step_ns }) => format!(
            "{:.1} s of counters every {}: {} CPUs on average; its requests are inferred",
            span_ns as f64 / 1e9,
            exact(step_ns),
            cpus(of.mean_cpus),
        ),
        _ => recording(of),
    }
}

/// The goals as the user wrote them.
pub(super) fn goals(plan: &Plan) -> String {
    let goals: Vec<&str> = plan.goals.iter().map(|goal| goal.text.as_str()).collect();
    goals.join(" and ")
}

/// Is it a recording of a live group? Then a request may be several pieces of work.
fn is_live(plan: &Plan) -> bool {
    matches!(plan.recording.origin, Origin::Traced | Origin::Sampled { .. })
}

/// What has a latency.
fn work(plan: &Plan) -> &'static str {
    if is_live(plan) { "pieces of work" } else { "requests" }
}

/// Whose latency a goal limits, where it may not be that of a request, with the rule of docs/plan.md.
pub(super) fn about_latency(plan: &Plan) -> Option<String> {
    /// Pieces of the request in the example.
    const PIECES: f64 = 5.0;
    let latency = |goal: &&Goal| matches!(goal.subject, Subject::Latency(_));
    let goal = plan.goals.iter().find(latency).filter(|_| is_live(plan))?;
    let Subject::Latency(quantile) = goal.subject else { return None };
    let name = match quantile {
        1.0 => "max".into(),
        quantile => quantile_name(1.0 - (1.0 - quantile) / PIECES),
    };
    let sign = if goal.strict { '<' } else { '=' };
    let piece = match plan.recording.origin {
        Origin::Sampled { .. } => "what ran without a break",
        _ => "from wakeup to sleep",
    };
    Some(format!(
        "that of a piece of work, {piece}. A request that waits for I/O or fans out is several \
         pieces. If it is {PIECES} in turn, {name}{sign}{} for the pieces keeps {} for the request, its \
         waits apart (docs/plan.md, \"Pieces and requests\"). A table of requests (`reveille import`) \
         needs no such rule.",
        duration_text(goal.limit / PIECES),
        goal.text
    ))
}

/// Where the plan was simulated.
pub(super) fn simulated_on(plan: &Plan) -> String {
    let model = &plan.model;
    let cpus = counted(u64::from(model.cpus), "CPU", "CPUs");
    format!("on {cpus} of {}, {}", model.machine, model.base)
}

/// The answer as a sentence.
pub(super) fn answer(plan: &Plan) -> String {
    let (name, goals) = (&plan.recording.name, goals(plan));
    let Some(shown) = &plan.recommended else {
        let why = plan.obstacle.as_ref().map_or(String::new(), |why| format!(": {why}"));
        return format!("No setting was found with which {name} meets {goals}{why}");
    };
    let how = if shown.meets_goals { "meets" } else { "comes nearest to" };
    if let Some(held_back) = plan.recording.held_back
        && shown.limits.quota_ns.is_some()
    {
        let setting = setting(&shown.limits);
        let free = match held_back {
            HeldBack::Programs => "with free CPUs",
            HeldBack::LimitAround => "without the limit around it",
        };
        return format!(
            "{name} got too little CPU time to tell what it needs. With what it got it {how} {goals} \
             with {setting}. Do not set that: {free}, {name} may use more"
        );
    }
    if let Some(quantile) = plan.untold() {
        let setting = setting(&shown.limits);
        let work = work(plan);
        return format!(
            "{name} has too few {work} to tell {quantile}; as far as they go it {how} {goals} with \
             {setting}"
        );
    }
    if !plan.too_short.is_empty() && !plan.tells_no_limit() {
        let setting = setting(&shown.limits);
        return format!(
            "the recording of {name} is too short to act on; as far as it goes {name} {how} {goals} \
             with {setting}"
        );
    }
    if plan.spreads_averages() {
        let (setting, limited) = (setting(&shown.limits), shown.limits.quota_ns.is_some());
        let higher = if limited { ": the real limit has to be higher than that" } else { "" };
        return format!(
            "averages cannot tell what {name} needs. An even load is the least demanding one, and it {how} \
             {goals} with {setting}{higher}"
        );
    }
    if plan.estimates() {
        let setting = setting(&shown.limits);
        if !shown.meets_goals {
            return format!("{name} is estimated to come nearest to {goals} with {setting}");
        }
        let meets = format!("{name} is estimated to meet {goals}");
        return if stays(plan) {
            format!(
                "keep {setting}: with it {meets}, but its counters do not tell that less would do"
            )
        } else {
            format!("{meets} with {setting}")
        };
    }
    match (shown.limits.quota_ns, shown.meets_goals) {
        (None, true) => format!(
            "no quota of up to {} was found with which {name} meets {goals}: {}",
            counted(u64::from(plan.model.cpus), "CPU", "CPUs"),
            if plan.stays_unlimited() { "leave it without one" } else { "remove its quota" }
        ),
        _ => format!("{name} {how} {goals} with {}", setting(&shown.limits)),
    }
}

/// Is today's limit what is recommended?
fn stays(plan: &Plan) -> bool {
    let both = plan.today.as_ref().zip(plan.recommended.as_ref());
    both.is_some_and(|(today, recommended)| today.limits == recommended.limits)
}

/// What the answer costs, as the rest of the sentence; nothing without an answer.
pub(super) fn cost(plan: &Plan) -> Option<String> {
    if plan.tells_no_limit() {
        return None;
    }
    let reserved = plan.recommended.as_ref()?.reserved_cpus?;
    let today = plan.today.as_ref().and_then(|today| today.reserved_cpus);
    let against = match today.map(|today| reserved - today) {
        None => String::new(),
        Some(more) if more.abs() < 0.0005 => ", as today".into(),
        Some(more) if more > 0.0 => format!(", {} more than today", cpus(more)),
        Some(less) => format!(", {} less than today", cpus(-less)),
    };
    let headroom = headroom(plan).map_or(String::new(), |text| format!(" {text}."));
    Some(format!("It reserves {} CPUs{against}.{headroom}", cpus(reserved)))
}

/// What the advice survives; nothing without a quota.
pub fn headroom(plan: &Plan) -> Option<String> {
    let shown = plan.recommended.as_ref()?;
    shown.reserved_cpus?;
    let percent = |share: f64| format!("{}%", (1000.0 * share).round() / 10.0);
    let model = &plan.model;
    if !plan.too_short.is_empty() || plan.tells_no_limit() {
        return None;
    }
    let estimate = format!(
        "This is an estimate: counters show neither how long a request runs nor rare long jobs. Before \
         you rely on it, {HOW_TO_KNOW}"
    );
    if !shown.meets_goals {
        let (held, asked) = (of_draws(shown.holds_share), of_draws(model.confidence));
        return Some(match plan.estimates() {
            true => format!(
                "The goals hold in {held} of the loads that fit its counters, and {asked} were asked \
                 for. {estimate}"
            ),
            false => format!("The goals hold in {held} of draws, and {asked} were asked for"),
        });
    }
    if plan.estimates() {
        return Some(estimate);
    }
    let requests = match model.growth {
        0.0 => String::new(),
        growth => format!("{} more requests (--growth) and ", percent(growth)),
    };
    let by_use = match shown.set_by_use {
        Some(true) => format!(
            ". The goals would hold with less quota, but that work would then use over {} of it",
            percent(model.most_used)
        ),
        _ => String::new(),
    };
    let as_told = if plan.of_counters() { ", as far as its counters tell" } else { "" };
    Some(match (model.headroom, model.growth) {
        (0.0, 0.0) => format!("No head-room is included (--headroom 0){by_use}"),
        (work, _) => format!(
            "The goals still hold with {requests}{} more work in every request (--headroom){as_told}{by_use}",
            percent(work)
        ),
    })
}

/// How much a setting's work may grow.
pub(super) fn growth(share: Option<f64>) -> String {
    match share {
        None => "-".into(),
        Some(share) if share >= 3.0 => "over +300%".into(),
        Some(share) => format!("+{:.0}%", (100.0 * share).floor()),
    }
}

/// What today's setting does.
pub(super) fn today(plan: &Plan) -> String {
    let Some(today) = &plan.today else {
        return "unknown: the recording has no limits, and --today is not given".into();
    };
    let effect = &today.effect;
    let with = |range: &Range, text: fn(f64) -> String| text(range.median);
    let around = plan.model.within.as_ref();
    let around = around.map_or(String::new(), |around| format!(" within {}", setting(around)));
    if plan.of_counters() {
        let range = &today.intervals.p99_ns;
        let simulated = with(&effect.throttled_share, percent);
        let counted = plan.inferred.as_ref().map(|inferred| percent(inferred.throttled_share));
        let counted = counted.filter(|_| plan.recording.limits == Some(today.limits));
        let throttled = match counted {
            Some(counted) => format!(
                "{counted}% of periods throttled, as counted ({simulated}% in the loads that fit)"
            ),
            None => format!("{simulated}% of periods throttled in the loads that fit"),
        };
        return format!(
            "{}{around}: {throttled}; p99 {} [{}…{}], an estimate; the goals hold in {} of the loads that \
             fit the counters",
            setting(&today.limits),
            with_ms(effect.p99_ns.median),
            ms(range.low),
            ms(range.high),
            of_draws(today.holds_share)
        );
    }
    // What the limit did is in counters, and the replay does not repeat it.
    let even = if plan.spreads_averages() { "simulated with an even load, " } else { "" };
    format!(
        "{}{around}: {even}{}% of periods throttled, p99 {}, goals met in {} of draws",
        setting(&today.limits),
        with(&effect.throttled_share, percent),
        with_ms(effect.p99_ns.median),
        of_draws(today.holds_share)
    )
}

/// Recorded latency beside the model's.
pub(super) fn observed(plan: &Plan) -> Option<String> {
    /// Factor within which model and recording agree.
    const CLOSE: f64 = 1.25;
    let seen = plan.observed?;
    let model = &seen.model_p99_ns;
    let text = format!(
        "p50 {} and p99 {} of {} {}; the model has {} and {} ({}…{}) under the limits of \
         that time",
        with_ms(seen.p50_ns),
        with_ms(seen.p99_ns),
        thousands(seen.requests as u64),
        work(plan),
        with_ms(seen.model_p50_ns.median),
        with_ms(model.median),
        ms(model.min),
        ms(model.max),
    );
    Some(if seen.p99_ns > CLOSE * model.max {
        let more = with_ms(seen.p99_ns - model.median);
        match plan.recording.origin {
            // From wakeup to sleep: the thread ran or was ready to.
            Origin::Traced => format!(
                "{text}. For {more} of the p99 a thread waited for a CPU that others used: no limit \
                 shortens that, a larger share does (CPU requests, cpu.weight). Goals refer to the \
                 model's latency."
            ),
            _ => format!(
                "{text}. {more} of the p99 is not explained by CPU time: queueing before a worker, \
                 locks or I/O, which no CPU limit shortens. Goals refer to the model's latency."
            ),
        }
    } else if CLOSE * seen.p99_ns < model.min {
        format!("{text}. The model is too slow: check the CPU time, --cpus and the limits.")
    } else {
        format!("{text}: they agree.")
    })
}

/// Milliseconds with their unit.
pub(super) fn with_ms(ns: f64) -> String {
    let unit = if ns.is_finite() { " ms" } else { "" };
    ms(ns) + unit
}

/// A column's head for an alternative.
pub(super) fn change(change: Change) -> &'static str {
    match change {
        Change::Burst => "with a burst",
        Change::LongerPeriod => "longer period",
        Change::Quota => "larger quota",
        Change::Cheapest => "cheapest",
    }
}

/// How to write the recommended setting to a group by hand, in an order that every kernel
/// accepts whatever was set before.
pub(super) fn by_hand(limits: &BandwidthLimits) -> String {
    let [max, burst] = files(limits);
    let first = "echo 0 >cpu.max.burst; ";
    match limits.burst_ns {
        0 => format!("{first}echo {max} >cpu.max"),
        _ => format!("{first}echo {max} >cpu.max; echo {burst} >cpu.max.burst"),
    }
}

/// Contents of `cpu.max` and `cpu.max.burst`.
pub(super) fn files(limits: &BandwidthLimits) -> [String; 2] {
    let us = |ns: u64| (ns / 1000).to_string();
    let quota = limits.quota_ns.map_or("max".into(), us);
    [format!("{quota} {}", us(limits.period_ns)), us(limits.burst_ns)]
}

/// What ranges and intervals are.
pub(super) fn footnote(plan: &Plan) -> String {
    let any = plan.alternatives.first().map(|alternative| &alternative.shown);
    let any = plan.recommended.as_ref().or(plan.today.as_ref()).or(any);
    let phases = any.map_or(0, |shown| shown.phases);
    let over = match plan.inferred {
        None => format!("{phases} phases of the period, which the kernel leaves to chance"),
        Some(_) => format!("the {} draws, whose loads are equally likely", plan.model.draws),
    };
    let mut note = format!(
        "12.3 (4.5…67.8): median and range over {over}. [3.4…78.9]: 90% of {} draws of a phase and a resampled recording; \
         goals met: share of these draws in which all goals hold, {} asked for.",
        plan.model.draws,
        of_draws(plan.model.confidence)
    );
    let in_table = |q: &String| {
        let asked =
            |goal: &Goal| matches!(goal.subject, Subject::Latency(of) if quantile_name(of) == *q);
        ["p50", "p99"].contains(&q.as_str()) || plan.goals.iter().any(asked)
    };
    if plan.too_few.iter().any(in_table) {
        let why = match plan.recording.origin {
            Origin::Averaged { .. } => "averages tell no latency",
            _ if plan.estimates() => "fewer than 10 inferred requests lie beyond the quantile",
            _ => "fewer than 10 pieces of work lie beyond the quantile; record for longer",
        };
        note += &format!(" {TOO_FEW}: {why}.");
    }
    note += " Work may grow: in every request, at all of 8 phases, before a goal fails. Worst case: \
             the longest piece of work, alone, when quota and burst are used up; ≤: by the \
             closed form.";
    note
}

/// Legend of the neighbours' tables.
pub(super) const ABOUT_NEIGHBOURS: &str = "P(miss): share of a neighbour's periods whose work ends more than a tick later than without \
     this group; late: by how much, over all of its work; by burst: compared with the same setting \
     with a burst of 0; both within, both beyond: periods in which the group and the neighbour both \
     demand at most, or both more than, their quotas, if they are independent, and as recorded. \
     As a fluid: demand per period, ignoring threads and slices; overcommitted: periods in which \
     the CPUs cannot serve what all quotas and bursts allow; owed: CPU time still due at the end of \
     a period, at most the sum of the bursts while the quotas fit the CPUs.";
