//! Numbers and times as files and parameters write them: `16`, `30ms`, `1.5us`,
//! `$workers`, `$sleeptime/4`. Exact: no value passes through a float.

use crate::Ns;
use crate::error::Mistake;

/// No time in a workload is longer than this.
pub(crate) const MAX_TIME_NS: Ns = 3_600_000_000_000;

const UNITS: [(&str, u128); 5] =
    [("ns", 1), ("us", 1_000), ("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

/// What a parameter or a key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A whole number.
    Count,
    /// Nanoseconds.
    Time,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Count => "a whole number",
            Kind::Time => "a time",
        }
    }

    fn example(self) -> &'static str {
        match self {
            Kind::Count => "16",
            Kind::Time => "\"30ms\"",
        }
    }

    /// Reads a value without `$`.
    pub(crate) fn parse(self, text: &str) -> Result<u64, Mistake> {
        match self {
            Kind::Count => parse_count(text),
            Kind::Time => parse_time(text),
        }
    }

    /// The kind of a parameter whose default is this.
    pub(crate) fn of_default(text: &str) -> Kind {
        let number = |c: char| c.is_ascii_digit() || c == '_' || c == '+' || c == '-';
        if text.chars().all(number) { Kind::Count } else { Kind::Time }
    }
}

/// A value that may depend on a parameter: `base / divisor`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Amount {
    base: Base,
    divisor: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Base {
    Fixed(u64),
    Param(usize),
}

/// One parameter as amounts see it.
#[derive(Clone, Debug)]
pub(crate) struct ParamKind {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

impl Amount {
    /// A value that no parameter changes.
    pub(crate) fn fixed(value: u64) -> Amount {
        Amount { base: Base::Fixed(value), divisor: 1 }
    }

    /// Reads `30ms`, `$param` or either with `/n` behind it.
    pub(crate) fn parse(text: &str, kind: Kind, params: &[ParamKind]) -> Result<Amount, Mistake> {
        let (base, divisor) = match text.split_once('/') {
            Some((base, divisor)) => (base.trim(), parse_divisor(text, divisor.trim())?),
            None => (text.trim(), 1),
        };
        let Some(name) = base.strip_prefix('$') else {
            return Ok(Amount { base: Base::Fixed(kind.parse(base)?), divisor });
        };
        let index = params.iter().position(|p| p.name == name).ok_or_else(|| {
            Mistake::unknown("parameter", name, params.iter().map(|p| p.name.as_str()))
        })?;
        if params[index].kind != kind {
            return Err(Mistake::new(
                format!(
                    "`${name}` is {}, but {} belongs here",
                    params[index].kind.name(),
                    kind.name()
                ),
                format!("use a parameter whose default looks like {}", kind.example()),
            ));
        }
        Ok(Amount { base: Base::Param(index), divisor })
    }

    /// The value with the parameters' values filled in.
    pub(crate) fn value(&self, params: &[u64]) -> u64 {
        match self.base {
            Base::Fixed(value) => value / self.divisor,
            Base::Param(index) => params[index] / self.divisor,
        }
    }

    /// Index of the parameter that it depends on.
    pub(crate) fn param(&self) -> Option<usize> {
        match self.base {
            Base::Fixed(_) => None,
            Base::Param(index) => Some(index),
        }
    }
}

fn parse_divisor(text: &str, divisor: &str) -> Result<u64, Mistake> {
    let fix = "divide by a whole number from 1, as in \"$sleeptime/4\"";
    match parse_count(divisor) {
        Ok(0) => Err(Mistake::new(format!("`{text}` divides by zero"), fix)),
        Ok(n) => Ok(n),
        Err(_) => Err(Mistake::new(format!("`{divisor}` in `{text}` is no divisor"), fix)),
    }
}

fn parse_count(text: &str) -> Result<u64, Mistake> {
    let fix = "write a whole number from 1, such as 16";
    if text.starts_with('-') {
        return Err(Mistake::new(format!("`{text}` is negative"), fix));
    }
    let digits: String = text.chars().filter(|c| *c != '_').collect();
    if digits.is_empty() || !digits.chars().all(|c| c.is_ascii_digit()) {
        return Err(Mistake::new(format!("`{text}` is not a whole number"), fix));
    }
    digits.parse().map_err(|_| Mistake::new(format!("`{text}` is too large"), fix))
}

fn parse_time(text: &str) -> Result<Ns, Mistake> {
    let fix = "write a number and ns, us, ms or s, such as \"30ms\" or \"1.5us\"";
    let not_a_time = || Mistake::new(format!("`{text}` is not a time"), fix);
    if text.starts_with('-') {
        return Err(Mistake::new(format!("`{text}` is negative, and no time is"), fix));
    }
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_');
    let (number, unit) = text.split_at(unit_at.unwrap_or(text.len()));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |s: &str| s.replace('_', "");
    let (whole, fraction) = (digits(whole), digits(fraction));
    if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
        return Err(not_a_time());
    }
    let Some((_, unit_ns)) = UNITS.iter().find(|(name, _)| *name == unit.trim_start()) else {
        return Err(match unit {
            "" => Mistake::new(format!("`{text}` has no unit of time"), fix),
            _ => not_a_time(),
        });
    };
    let too_long = || {
        Mistake::new(
            format!("`{text}` is more than an hour"),
            "no time in a workload is longer than 3600s",
        )
    };
    // At most 13 digits of seconds: far above an hour, and no overflow in u128.
    if whole.trim_start_matches('0').len() > 13 {
        return Err(too_long());
    }
    let whole: u128 = whole.parse().map_err(|_| not_a_time())?;
    let fraction = fraction.trim_end_matches('0');
    let scale = 10u128.pow(fraction.len().min(10) as u32);
    let part: u128 = match fraction.len() {
        0 => 0,
        1..=9 => fraction.parse().map_err(|_| not_a_time())?,
        _ => scale - 1, // finer than a nanosecond in every unit
    };
    if part * unit_ns % scale != 0 {
        return Err(Mistake::new(
            format!("`{text}` is finer than a nanosecond"),
            "round it to whole nanoseconds",
        ));
    }
    let ns = whole * unit_ns + part * unit_ns / scale;
    if ns > u128::from(MAX_TIME_NS) {
        return Err(too_long());
    }
    Ok(ns as Ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        for (text, ns) in [
            ("30ms", 30_000_000),
            ("1.5us", 1_500),
            ("1.5 µs", 1_500),
            ("0.001us", 1),
            ("3600s", MAX_TIME_NS),
            ("0.000000001s", 1),
            ("1_000ns", 1_000),
            ("1.50000000000000us", 1_500),
        ] {
            assert_eq!(parse_time(text), Ok(ns), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused_with_its_reason() {
        for (text, reason) in [
            ("-1ms", "negative"),
            ("NaN", "not a time"),
            ("inf", "not a time"),
            ("1e3ms", "not a time"),
            ("30", "no unit"),
            ("ms", "not a time"),
            (".5ms", "not a time"),
            ("1.ms", "not a time"),
            ("1.2.3ms", "not a time"),
            ("30min", "not a time"),
            ("0.5ns", "finer than a nanosecond"),
            ("0.00000000001s", "finer than a nanosecond"),
            ("3600.000000001s", "more than an hour"),
            ("99999999999999999999999999999999999999999s", "more than an hour"),
        ] {
            let problem = parse_time(text).unwrap_err().problem;
            assert!(problem.contains(reason), "{text}: {problem}");
        }
    }

    #[test]
    fn amounts_divide_whole_numbers() {
        let params = [ParamKind { name: "sleeptime".into(), kind: Kind::Time }];
        let quarter = Amount::parse("$sleeptime/4", Kind::Time, &params).unwrap();
        assert_eq!(quarter.value(&[30_000_000]), 7_500_000);
        assert_eq!(quarter.value(&[7]), 1);
        assert_eq!(Amount::parse("30ms / 4", Kind::Time, &params).unwrap().value(&[0]), 7_500_000);
        for (text, kind, reason) in [
            ("$sleeptime/0", Kind::Time, "divides by zero"),
            ("$sleeptime/x", Kind::Time, "no divisor"),
            ("$sleeptime/2/2", Kind::Time, "no divisor"),
            ("$sleeptme", Kind::Time, "did you mean `sleeptime`"),
            ("$sleeptime", Kind::Count, "a whole number belongs here"),
            ("18446744073709551616", Kind::Count, "too large"),
            ("-3", Kind::Count, "negative"),
        ] {
            let problem = Amount::parse(text, kind, &params).unwrap_err().problem;
            assert!(problem.contains(reason), "{text}: {problem}");
        }
    }
}
