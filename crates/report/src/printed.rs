//! Published figures as their source prints them, and the bounds of claims: text
//! that table, page and the record of fidelity share.

use reveille_study::{Claim, Comparison, Row, RowKind, Verdict};

use crate::number;

/// The published figures of a row as printed, with their unit and the side that they
/// are of; `None` where only a change was published.
pub(crate) fn printed(row: &Row) -> Option<String> {
    let own = number::unit_text(&row.metric);
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
    let unit = number::Unit::of_metric(&row.metric);
    let side = if row.published_baseline.is_some() { "base" } else { "variant" };
    let figure = if row.published_baseline.is_some() { row.baseline } else { row.candidate };
    match row.kind {
        RowKind::Change => number::change(row.change_pct),
        RowKind::Side | RowKind::Interference => format!("{side} {}", unit.format(figure.mean)),
        RowKind::Std => {
            let sides = [row.baseline, row.candidate].map(|f| unit.format(f.mean));
            format!("{} -> {} ({})", sides[0], sides[1], number::change(row.change_pct))
        }
        RowKind::Runs => {
            format!("{side} {} of {}", figure.mean, row.detail.baseline.samples.len())
        }
    }
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

/// The predicted value of a claim.
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

/// How many predictions agree with what was published.
pub(crate) fn score(c: &Comparison) -> String {
    let claims = match c.claim_score.counted {
        0 => String::new(),
        n => format!("; claims: {} of {n}", c.claim_score.hits),
    };
    match c.score.counted {
        0 => format!("score: no published figures to compare with{claims}"),
        counted => format!("score: {} of {counted} counted rows hit{claims}", c.score.hits),
    }
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
