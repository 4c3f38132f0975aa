//! The JSON of Prometheus' answer to a range query.

use std::collections::BTreeMap;

use reveille_place::Mistake;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::series::{QUOTA, Series};
use crate::decimal::nanoseconds;
use crate::{MAX_ROWS, Ns};

const QUERY: &str = "save what /api/v1/query_range answers, such as curl 'http://HOST:9090/api/v1/query_range?query=…'";

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(default)]
    status: String,
    #[serde(default)]
    error: String,
    #[serde(borrow)]
    data: Option<Data<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    result_type: String,
    /// Depends on the type.
    #[serde(borrow)]
    result: &'a RawValue,
}

#[derive(Deserialize)]
struct Matrix<'a> {
    metric: BTreeMap<String, String>,
    /// Seconds of Unix time, and a number as text.
    #[serde(borrow)]
    values: Vec<(&'a RawValue, String)>,
}

/// All series in one file: an answer, or an array of answers.
pub(super) fn points(bytes: &[u8]) -> Result<Vec<Series>, Mistake> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Mistake::new("is no UTF-8 text", QUERY))?
        .trim_start_matches('\u{feff}');
    let array = text.trim_start().starts_with('[');
    let answers: Vec<Answer> = if array {
        serde_json::from_str(text)
    } else {
        serde_json::from_str(text).map(|answer| vec![answer])
    }
    .map_err(|error| Mistake::new(format!("is no answer of Prometheus: {error}"), QUERY))?;
    let mut series = Vec::new();
    for (number, answer) in answers.iter().enumerate() {
        let place = if array { format!("answer {}: ", number + 1) } else { String::new() };
        let within = |m: Mistake| Mistake::new(format!("{place}{}", m.problem), m.help);
        series.extend(read(answer).map_err(within)?);
    }
    if series.iter().map(|one| one.points.len()).sum::<usize>() > MAX_ROWS {
        return Err(Mistake::new(format!("more than {MAX_ROWS} points"), "query a shorter range"));
    }
    Ok(series)
}

fn read(answer: &Answer) -> Result<Vec<Series>, Mistake> {
    if answer.status == "error" || !answer.error.is_empty() {
        let problem = format!("Prometheus answered with an error: {}", answer.error);
        return Err(Mistake::new(problem, "correct the query and ask again"));
    }
    let data = answer.data.as_ref().ok_or_else(|| Mistake::new("has no `data`", QUERY))?;
    if data.result_type != "matrix" {
        let problem =
            format!("is of resultType `{}`, which has no course of time", data.result_type);
        return Err(Mistake::new(problem, QUERY));
    }
    let matrix: Vec<Matrix> = serde_json::from_str(data.result.get())
        .map_err(|error| Mistake::new(format!("has no series in its result: {error}"), QUERY))?;
    let mut all = Vec::new();
    for one in matrix {
        let mut labels = one.metric;
        let name = labels.remove("__name__").unwrap_or_default();
        let mut points = Vec::with_capacity(one.values.len());
        for (number, (at, value)) in one.values.iter().enumerate() {
            let place = |problem: String, fix: &str| {
                let name = if name.is_empty() { "a series without a name" } else { &name };
                Mistake::new(format!("{name}, value {}: {problem}", number + 1), fix)
            };
            let at_ns = time(at.get()).map_err(|problem| {
                place(problem, "Prometheus gives Unix time in seconds: divide milliseconds by 1000")
            })?;
            let value = number_of(&name, value).map_err(|problem| {
                place(problem, "query the plain counter; a value is a finite number, not negative")
            })?;
            points.push((at_ns, value));
        }
        if !points.is_empty() {
            all.push(Series { name, labels, points, resets: 0 });
        }
    }
    Ok(all)
}

fn time(text: &str) -> Result<Ns, String> {
    let ns = nanoseconds(text, 1_000_000_000).and_then(|ns| Ns::try_from(ns).ok());
    ns.filter(|&ns| ns <= i64::MAX as Ns).ok_or_else(|| format!("`{text}` is no time in seconds"))
}

fn number_of(name: &str, text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    if !value.is_finite() {
        return Err(format!("`{text}` is not a finite number"));
    }
    // A quota of -1 means none.
    if value < 0.0 && name != QUOTA {
        return Err(format!("`{text}` is negative"));
    }
    // Exactly representable as a count, and a thousand CPUs for decades.
    if value > 1e15 {
        return Err(format!("`{text}` is too large"));
    }
    Ok(value)
}
