//! Published figures as their source prints them, and the bounds of claims: text
//! that table, page and the record of fidelity share.

use reveille_measure::{HostContext, LoadedScheduler, at_least_text};
use reveille_study::{
    Claim, Comparison, Figure, Mode, ModeChange, Ns, Row, RowKind, Score, Skill, TrackRecord,
    Verdict,
};

use crate::group::Group;
use crate::number::{self, Unit};

/// The published figures of a row as printed, with their unit and the side that they
/// are of; `None` where only a change was published.
pub(crate) fn printed(row: &Row) -> Option<String> {
    let own = &*row.metric.unit;
    let unit = row.published_unit.as_deref();
    match (row.published_baseline, row.published_candidate) {
        (None, None) => None,
        (Some(base), Some(candidate)) => {
            Some(format!("{base} -> {}", with_unit(candidate, unit.unwrap_or_default())))
        }
        (base, candidate) => {
            let side = if base.is_some() { "base" } else { "variant" };
            let value = base.or(candidate)?;
            Some(match row.published_of {
                Some(of) => format!("{side} {value} of {of}"),
                None => format!("{side} {}", with_unit(value, unit.unwrap_or(own))),
            })
        }
    }
}

fn with_unit(value: f64, unit: &str) -> String {
    match unit {
        "" => value.to_string(),
        "%" | "ns" | "us" | "µs" | "ms" | "s" => format!("{value}{unit}"),
        "% of periods" => format!("{value}%"),
        "periods" => value.to_string(),
        unit => format!("{value} {unit}"),
    }
}

/// What a row predicts, in the terms of what was published for it.
pub(crate) fn predicted(row: &Row) -> String {
    let unit = Unit::of(&row.metric);
    let side = if row.published_baseline.is_some() { "base" } else { "variant" };
    let figure = if row.published_baseline.is_some() { row.baseline } else { row.candidate };
    match row.kind {
        RowKind::Change => changes(row).join(" "),
        RowKind::Side | RowKind::Interference => {
            let states = row.modes.as_ref().map(|m| match side {
                "base" => &m.baseline,
                _ => &m.candidate,
            });
            let size = states.and_then(|s| several(unit, s)).map(|states| states.join(" "));
            format!("{side} {}", size.unwrap_or_else(|| unit.format(figure.mean)))
        }
        RowKind::Std => {
            let sides = [row.baseline, row.candidate].map(|f| unit.format(f.mean));
            format!("{} -> {} ({})", sides[0], sides[1], number::change(row.change_pct))
        }
        RowKind::Runs => {
            format!("{side} {} of {}", figure.mean, row.detail.baseline.samples.len())
        }
    }
}

/// The figures of both sides: a mean with its spread, or the states that repeats fall
/// into, each with its share.
pub(crate) fn sides(row: &Row) -> [Vec<String>; 2] {
    let unit = Unit::of(&row.metric);
    let side = |figure: Figure, modes: Option<&Vec<Mode>>| {
        if row.too_few {
            // What is held against a published figure is judged all the same.
            return vec![match row.published_source {
                Some(_) => format!("{} ({})", unit.format(figure.mean), number::TOO_FEW),
                None => number::TOO_FEW.to_owned(),
            }];
        }
        let states = modes.and_then(|modes| several(unit, modes));
        states.unwrap_or_else(|| vec![number::figure(unit, figure, row.p_value.is_some())])
    };
    let modes = row.modes.as_ref();
    [
        side(row.baseline, modes.map(|m| &m.baseline)),
        side(row.candidate, modes.map(|m| &m.candidate)),
    ]
}

/// The predicted change, or the change between each pair of states with its share.
pub(crate) fn changes(row: &Row) -> Vec<String> {
    match &row.modes {
        None => vec![number::change(row.change_pct)],
        Some(modes) => {
            alternatives(modes.changes.iter().map(|c| (number::change(c.change_pct), c.share)))
        }
    }
}

/// [`changes`], each with its mark: `~` if it is corrected, `=` of the same runs, `*` if it shows and is
/// significant.
pub(crate) fn marked_changes(row: &Row) -> Vec<(String, Option<char>)> {
    let mark = |change: &ModeChange| match row.is_corrected() {
        true => Some('~'),
        false if row.identical => Some('='),
        false => number::has_star(row.significant, change.change_pct).then_some('*'),
    };
    changes(row).into_iter().zip(row.changes().iter().map(mark)).collect()
}

/// `4.90/s (60%)` and `or 33.0/s (40%)`; `None` of a single state.
fn several(unit: Unit, modes: &[Mode]) -> Option<Vec<String>> {
    let states = || modes.iter().map(|m| (unit.format(m.centre), m.share));
    (modes.len() > 1).then(|| alternatives(states()))
}

fn alternatives(states: impl Iterator<Item = (String, f64)>) -> Vec<String> {
    let state = |(i, (text, share)): (usize, (String, f64))| {
        let or = if i == 0 { "" } else { "or " };
        format!("{or}{text} ({:.0}%)", 100.0 * share)
    };
    states.enumerate().map(state).collect()
}

/// What was published for a row, with the change that it amounts to.
pub(crate) fn published(row: &Row) -> String {
    let change = row.published_change_pct.map(number::change);
    match (printed(row), change) {
        (Some(printed), Some(change)) => format!("{change} ({printed})"),
        (Some(text), None) | (None, Some(text)) => text,
        (None, None) => "-".into(),
    }
}

/// The values that agree with a claim.
pub(crate) fn claimed(claim: &Claim) -> String {
    match (claim.published, claim.low, claim.high) {
        (Some(one), Some(_), Some(_)) => number::si(one),
        (_, Some(low), Some(high)) => format!("{} to {}", number::si(low), number::si(high)),
        (_, Some(low), None) => format!("at least {}", number::si(low)),
        (_, None, Some(high)) => format!("at most {}", number::si(high)),
        (one, None, None) => one.map_or_else(|| number::UNDEFINED.into(), number::si),
    }
}

pub(crate) fn claim_predicted(claim: &Claim) -> String {
    claim.predicted.map_or_else(|| "none".into(), number::si)
}

/// MISS is loud because a reader looks for it first.
pub(crate) fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Hit => "hit",
        Verdict::Miss => "MISS",
        Verdict::Informative => "info",
    }
}

pub(crate) fn score(c: &Comparison) -> String {
    let claims = match c.claim_score.counted {
        0 => String::new(),
        n => format!("; claims: {} of {n}", c.claim_score.hits),
    };
    match c.score.counted {
        0 if c.not_judged.is_some() => "score: none".to_owned(),
        0 => format!("score: no published figures to compare with{claims}"),
        _ => format!("score: {}{claims}", skill(c.score, &c.skill)),
    }
}

/// Hits beside those of "nothing ever changes", and how big and small changes fare.
pub(crate) fn skill(score: Score, skill: &Skill) -> String {
    let Skill { changes, hits, null_hits, big, big_sign, big_hits, small, small_quiet } = *skill;
    let mut text = format!("{} of {} hit", score.hits, score.counted);
    if changes > 0 && changes < score.counted {
        text += &format!("; changes: {hits} of {changes}");
    }
    if changes > 0 {
        text += &format!(" (no change: {null_hits})");
    }
    if big > 0 {
        text += &format!("; big changes: sign {big_sign} of {big}, {big_hits} hit");
    }
    if small > 0 {
        text += &format!("; small: {small_quiet} of {small} quiet");
    }
    text
}

/// Explains the words of [`skill`], as far as it uses them.
pub(crate) fn skill_legend(skill: &Skill) -> Option<&'static str> {
    (skill.changes > 0).then_some(
        "no change: hits if 0% were predicted everywhere; big: published 10% or more; \
         small: below 5%, quiet if predicted so",
    )
}

/// Said where rows have a quantile of too few samples; `enough_ns` has enough in each of them. A
/// study's durations are not those of the command line.
pub(crate) fn too_few(study: &str, enough_ns: impl Iterator<Item = Option<Ns>>) -> Option<String> {
    let enough_ns = enough_ns.max()?;
    Some(match study {
        "compare" => measure_longer(enough_ns, " (--duration)"),
        _ => measure_longer(None, ""),
    })
}

/// What is too few, and how long is enough; `option` says where that is given.
pub(crate) fn measure_longer(enough_ns: Option<Ns>, option: &str) -> String {
    let time =
        enough_ns.map_or("longer".to_owned(), |ns| format!("for at least {}", at_least_text(ns)));
    format!(
        "too few: fewer than 10 samples beyond the quantile, or no operation, in some run; measure \
         {time}{option}"
    )
}

pub(crate) fn too_few_of(c: &Comparison) -> Option<String> {
    too_few(&c.study, c.rows.iter().filter(|row| row.too_few).map(|row| row.enough_ns))
}

/// Where 8 of 10 published changes lay when the model predicted alike; marked where it has misled.
pub(crate) fn likely(row: &Row) -> Option<String> {
    let record = row.track_record?;
    let mark = if record.misled { '?' } else { '\u{a0}' };
    Some(format!("{:+.0}…{:+.0}%{mark}", record.low_pct, record.high_pct))
}

/// Said where a row's change is not that of its figures.
pub(crate) const CORRECTED: &str = "~: the simulated change is larger, but tasks migrate \
     differently or repeats disagree, so its size means nothing";

/// Said where both sides are the same runs.
pub(crate) const IDENTICAL: &str =
    "=: the same runs on both sides: nothing in them meets what the change alters";

/// Explains [`likely`], if a group shows it.
pub(crate) fn likely_legend(groups: &[Group<'_>]) -> Option<String> {
    let mut shown = groups.iter().filter(|g| g.shows_likely()).flat_map(|g| &g.rows).peekable();
    shown.peek()?;
    let mut text =
        "likely: 8 of 10 published changes lay there where the model predicted alike".to_owned();
    if shown.any(|r| r.track_record.is_some() && TrackRecord::is_large(r.change_pct)) {
        let (held, of) = TrackRecord::HELD;
        text += &format!(
            "; of changes predicted at 5% and more, ranges from other tables held {held} of {of}"
        );
    }
    Some(text)
}
pub(crate) const MISLED: &str = "?: in such cases 0% was the better prediction";

/// Is one of the rows marked as one that misleads?
pub(crate) fn misleads(rows: &[Row]) -> bool {
    rows.iter().filter_map(|row| row.track_record).any(|record| record.misled)
}

/// Said where a row has several states.
pub(crate) const STATES: &str = "x (60%) or y (40%): repeats fall into several states; a hit if \
     half of all probability agrees";

pub(crate) fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |ch| ch.to_uppercase().chain(chars).collect())
}

/// The case of a row's group, what it compares, and on which machine if that is not
/// the study's own.
pub(crate) fn heading(c: &Comparison, row: &Row) -> String {
    let machine =
        if row.machine == c.machine { String::new() } else { format!(" on {}", row.machine) };
    match row.variant.as_str() {
        "" => format!("{}{machine}", row.base),
        variant => format!("{variant} against {}{machine}", row.base),
    }
}

/// The host that a result was measured on, for the head of a report.
pub(crate) fn host_facts(host: &HostContext) -> Vec<(&'static str, String)> {
    let cpus = if host.cpus == 1 { "CPU" } else { "CPUs" };
    let mut facts = vec![
        ("Measured", format!("on Linux {}, {} {cpus}", host.kernel, host.cpus)),
        ("Processor", host.cpu.clone()),
    ];
    facts.extend(host.governor.iter().map(|g| ("Governor", g.clone())));
    facts.extend(host.virtualisation.iter().map(|v| ("Guest of", v.clone())));
    facts.extend(host.sched_ext.iter().map(|s| ("sched_ext", s.clone())));
    let loaded = |l: &LoadedScheduler| ("Loaded", format!("{} by {}", l.name, l.command));
    facts.extend(host.loaded.iter().map(loaded));
    facts
}
