//! Durations as people write them: a number and a unit, such as `30ms`, `1.5s`
//! or `250us`. Read with whole numbers only, so that `0.1s` is exact.

use crate::Ns;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    #[error("`{0}` is no duration")]
    Syntax(String),
    #[error("`{0}` has no unit that is known")]
    Unit(String),
    #[error("`{0}` is not a whole number of nanoseconds")]
    Fraction(String),
    #[error("`{0}` is too long")]
    TooLong(String),
}

impl DurationError {
    pub fn help(&self) -> &'static str {
        match self {
            DurationError::Fraction(_) => "use a smaller unit, down to ns",
            DurationError::TooLong(_) => "write a shorter time",
            _ => "write a number and ns, us, ms or s, such as `30ms`",
        }
    }
}

/// Units by name, in nanoseconds.
const UNITS: [(&str, u128); 5] =
    [("ns", 1), ("us", 1_000), ("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

/// Units of a span of hours or weeks, where `m` cannot be taken for thousandths.
const LONG_UNITS: [(&str, u128); 3] =
    [("m", 60_000_000_000), ("h", 3_600_000_000_000), ("d", 86_400_000_000_000)];

/// What one `unit` of time is in ns; nothing if it is no unit of time.
pub fn unit_ns(unit: &str) -> Option<u128> {
    UNITS.iter().find(|(name, _)| *name == unit).map(|(_, ns)| *ns)
}

/// A duration in the largest unit that leaves a whole number: `10ms`.
pub fn duration_text(ns: f64) -> String {
    let units = UNITS.iter().rev().filter(|(name, _)| *name != "µs");
    let mut whole = units.filter(|(_, unit)| ns >= *unit as f64 && ns % *unit as f64 == 0.0);
    whole
        .next()
        .map_or_else(|| format!("{ns}ns"), |(name, unit)| format!("{}{name}", ns / *unit as f64))
}

/// A duration of at least this, of two digits: `3.1s` for 3.02 s.
pub fn at_least_text(ns: Ns) -> String {
    let step = 10u64.pow(ns.max(1).ilog10().saturating_sub(1));
    duration_text((ns.div_ceil(step) * step) as f64)
}

/// A time in a sentence, to the millisecond: `1.250 s`.
pub fn seconds_text(ns: Ns) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}

/// Reads a duration such as `30ms`, `1.5s`, `250us` or `40ns`.
pub fn duration_ns(text: &str) -> Result<Ns, DurationError> {
    parsed(text, unit_ns)
}

/// Reads a duration as [`duration_ns`] does, or one in minutes, hours or days: `7d`.
pub fn span_ns(text: &str) -> Result<Ns, DurationError> {
    let long = |unit: &str| LONG_UNITS.iter().find(|(name, _)| *name == unit).map(|(_, ns)| *ns);
    parsed(text, |unit| unit_ns(unit).or_else(|| long(unit)))
}

fn parsed(text: &str, size: impl Fn(&str) -> Option<u128>) -> Result<Ns, DurationError> {
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return Err(DurationError::Syntax(text.to_owned()));
    }
    let unit_ns = size(unit.trim_start()).ok_or_else(|| DurationError::Unit(text.to_owned()))?;
    let too_long = || DurationError::TooLong(text.to_owned());
    let whole: u64 = whole.parse().map_err(|_| too_long())?;
    let ns = u128::from(whole) * unit_ns + fraction_ns(text, fraction, unit_ns)?;
    Ns::try_from(ns).map_err(|_| too_long())
}

/// The digits after the point, as nanoseconds.
fn fraction_ns(text: &str, digits: &str, unit_ns: u128) -> Result<u128, DurationError> {
    let digits = digits.trim_end_matches('0');
    let not_whole = || DurationError::Fraction(text.to_owned());
    if digits.is_empty() {
        return Ok(0);
    }
    // Nine digits make nanoseconds of seconds; more cannot be whole.
    let scale = u32::try_from(digits.len()).ok().filter(|n| *n <= 9).map(|n| 10u128.pow(n));
    let scale = scale.ok_or_else(not_whole)?;
    let value: u128 = digits.parse().map_err(|_| not_whole())?;
    let product = value * unit_ns;
    if product.is_multiple_of(scale) { Ok(product / scale) } else { Err(not_whole()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn units_and_fractions() {
        assert_eq!(duration_ns("30ms"), Ok(30_000_000));
        assert_eq!(duration_ns("1.5s"), Ok(1_500_000_000));
        assert_eq!(duration_ns(" 250us "), Ok(250_000));
        assert_eq!(duration_ns("250 µs"), Ok(250_000));
        assert_eq!(duration_ns("0.1s"), Ok(100_000_000));
        assert_eq!(duration_ns("0ms"), Ok(0));
        assert_eq!(duration_ns("18446744073709551615ns"), Ok(u64::MAX));
        assert_eq!(span_ns("7d"), Ok(604_800_000_000_000));
        assert_eq!(span_ns("1.5 h"), span_ns("90m"));
        assert_eq!(span_ns("30ms"), duration_ns("30ms"));
    }

    #[test]
    fn durations_are_written_as_they_are_read() {
        for text in ["10ms", "1s", "250us", "40ns", "1500ms"] {
            assert_eq!(duration_text(duration_ns(text).unwrap() as f64), text);
        }
        assert_eq!(duration_text(0.5), "0.5ns");
        assert_eq!(seconds_text(1_250_400_000), "1.250 s");
    }

    #[test]
    fn what_is_none() {
        for text in ["", "ms", "-1ms", "1.ms", ".5s", "1.2.3s", "nan s"] {
            assert_eq!(duration_ns(text), Err(DurationError::Syntax(text.into())), "{text}");
        }
        for text in ["30", "30m", "30 min", "5µ", "1e3ms"] {
            assert_eq!(duration_ns(text), Err(DurationError::Unit(text.into())), "{text}");
        }
        for text in ["0.5ns", "0.0000000001s", "1.0000001ms"] {
            assert_eq!(duration_ns(text), Err(DurationError::Fraction(text.into())), "{text}");
        }
        for text in ["18446744073709551616ns", "99999999999999999999999999s", "18446744074s"] {
            assert_eq!(duration_ns(text), Err(DurationError::TooLong(text.into())), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,40}") {
            let _ = duration_ns(&text);
        }

        #[test]
        fn nanoseconds_are_kept(ns: u64) {
            prop_assert_eq!(duration_ns(&format!("{ns}ns")), Ok(ns));
            let us = format!("{}.{:03}us", ns / 1000, ns % 1000);
            prop_assert_eq!(duration_ns(&us), Ok(ns));
        }
    }
}
