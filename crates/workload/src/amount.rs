//! Numbers and times as files and parameters write them: `16`, `30ms`, `1.5us`,
//! `$workers`, `$sleeptime/4`, `$workers*2/3`. Exact: no value passes through a float.

use reveille_measure::{DurationError, duration_ns};
use reveille_place::Mistake;

use crate::program::Ns;

/// No time in a workload is longer than this.
pub(crate) const MAX_TIME_NS: Ns = 3_600_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Count,
    Time,
    Choice,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Count => "a whole number",
            Kind::Time => "a time",
            Kind::Choice => "a choice between names",
        }
    }

    fn example(self) -> &'static str {
        match self {
            Kind::Count => "16",
            Kind::Time => "\"30ms\"",
            Kind::Choice => "\"pipe\"",
        }
    }

    pub(crate) fn parse(self, text: &str) -> Result<u64, Mistake> {
        match self {
            Kind::Count => parse_count(text),
            Kind::Time => parse_time(text),
            Kind::Choice => {
                let fix = "use a parameter with choices where a kind or a process is named";
                Err(Mistake::new(format!("`{text}` is not a value"), fix))
            }
        }
    }

    pub(crate) fn of_default(text: &str) -> Kind {
        let number = |c: char| c.is_ascii_digit() || c == '_' || c == '+' || c == '-';
        if text.chars().all(number) { Kind::Count } else { Kind::Time }
    }
}

/// A value that may depend on parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    Fixed(u64),
    Param(usize),
    Times(Box<Amount>, Box<Amount>),
    /// Rounded down.
    Over(Box<Amount>, Box<Amount>),
    /// Rounded up.
    CeilOver(Box<Amount>, Box<Amount>),
}

/// One parameter as amounts see it.
#[derive(Clone, Debug)]
pub(crate) struct ParamKind {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Of a [`Kind::Choice`]: each name and the word that it stands for.
    pub(crate) choices: Vec<(String, String)>,
}

impl ParamKind {
    pub(crate) fn parse(&self, text: &str) -> Result<u64, Mistake> {
        if self.kind != Kind::Choice {
            return self.kind.parse(text);
        }
        let names = self.choices.iter().map(|c| c.0.as_str());
        match names.clone().position(|name| name == text) {
            Some(index) => Ok(index as u64),
            None => Err(Mistake::unknown(&format!("choice of `{}`", self.name), text, names)),
        }
    }
}

impl Amount {
    /// Reads products and quotients of numbers, times and parameters: `30ms`, `$workers*2/3`,
    /// `1s/ceil($rps/8)`. They are taken from left to right, and round down.
    pub(crate) fn parse(text: &str, kind: Kind, params: &[ParamKind]) -> Result<Amount, Mistake> {
        let mut reader = Reader { text, rest: text, params, depth: 0 };
        let (amount, found) = reader.product(kind)?;
        if !reader.rest.is_empty() {
            return Err(reader.mistake());
        }
        debug_assert_eq!(found, kind, "the first factor decides");
        Ok(amount)
    }

    pub(crate) fn value(&self, params: &[u64]) -> Result<u64, Mistake> {
        Ok(match self {
            Amount::Fixed(value) => *value,
            Amount::Param(index) => params[*index],
            Amount::Times(a, b) => {
                let (a, b) = (a.value(params)?, b.value(params)?);
                let fix = "make one of the factors smaller";
                a.checked_mul(b).ok_or_else(|| Mistake::new("is too large", fix))?
            }
            Amount::Over(a, b) => a.value(params)? / divisor(b, params)?,
            Amount::CeilOver(a, b) => a.value(params)?.div_ceil(divisor(b, params)?),
        })
    }

    /// Indices of the parameters that it depends on.
    pub(crate) fn params(&self) -> Vec<usize> {
        match self {
            Amount::Fixed(_) => Vec::new(),
            Amount::Param(index) => vec![*index],
            Amount::Times(a, b) | Amount::Over(a, b) | Amount::CeilOver(a, b) => {
                a.params().into_iter().chain(b.params()).collect()
            }
        }
    }
}

fn divisor(amount: &Amount, params: &[u64]) -> Result<u64, Mistake> {
    match amount.value(params)? {
        0 => Err(Mistake::new("divides by zero", "choose the parameters otherwise")),
        n => Ok(n),
    }
}

const MAX_PARENTHESES: u32 = 8;

/// Reads an amount from left to right.
struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    params: &'a [ParamKind],
    depth: u32,
}

impl<'a> Reader<'a> {
    fn product(&mut self, kind: Kind) -> Result<(Amount, Kind), Mistake> {
        let (mut product, kind) = self.factor(kind)?;
        while let Some(sign) = self.rest.chars().next().filter(|c| matches!(c, '*' | '/')) {
            self.skip(1);
            let factor = if sign == '/' { self.divisor()? } else { self.factor(Kind::Count)?.0 };
            let (a, b) = (Box::new(product), Box::new(factor));
            product = if sign == '*' { Amount::Times(a, b) } else { Amount::Over(a, b) };
        }
        Ok((product, kind))
    }

    fn divisor(&mut self) -> Result<Amount, Mistake> {
        let (text, fix) = (self.text, "divide by a whole number from 1, as in \"$sleeptime/4\"");
        let begin = self.rest;
        let divisor = self.factor(Kind::Count).map_err(|mistake| {
            let divisor = begin[..word_length(begin)].trim();
            if divisor.starts_with('$') || begin.trim_start().starts_with(['(', 'c']) {
                return mistake;
            }
            Mistake::new(format!("`{divisor}` in `{text}` is no divisor"), fix)
        })?;
        if divisor.0 == Amount::Fixed(0) {
            return Err(Mistake::new(format!("`{text}` divides by zero"), fix));
        }
        Ok(divisor.0)
    }

    fn factor(&mut self, kind: Kind) -> Result<(Amount, Kind), Mistake> {
        self.skip(0);
        if let Some(inner) = self.rest.strip_prefix("ceil(") {
            self.open(inner)?;
            let (a, kind) = self.factor(kind)?;
            if !self.rest.starts_with('/') {
                return Err(self.mistake());
            }
            self.skip(1);
            let amount = Amount::CeilOver(Box::new(a), Box::new(self.divisor()?));
            return self.close((amount, kind));
        }
        if let Some(inner) = self.rest.strip_prefix('(') {
            self.open(inner)?;
            let product = self.product(kind)?;
            return self.close(product);
        }
        let (word, rest) = self.rest.split_at(word_length(self.rest));
        self.rest = rest;
        let Some(name) = word.trim().strip_prefix('$') else {
            return Ok((Amount::Fixed(kind.parse(word.trim())?), kind));
        };
        let index = self.params.iter().position(|p| p.name == name).ok_or_else(|| {
            Mistake::unknown("parameter", name, self.params.iter().map(|p| p.name.as_str()))
        })?;
        let found = self.params[index].kind;
        if found != kind {
            return Err(Mistake::new(
                format!("`${name}` is {}, but {} belongs here", found.name(), kind.name()),
                format!("use a parameter whose default looks like {}", kind.example()),
            ));
        }
        Ok((Amount::Param(index), kind))
    }

    fn open(&mut self, inner: &'a str) -> Result<(), Mistake> {
        self.depth += 1;
        if self.depth > MAX_PARENTHESES {
            return Err(self.mistake());
        }
        self.rest = inner;
        Ok(())
    }

    fn close(&mut self, inner: (Amount, Kind)) -> Result<(Amount, Kind), Mistake> {
        if !self.rest.starts_with(')') {
            return Err(self.mistake());
        }
        self.depth -= 1;
        self.skip(1);
        Ok(inner)
    }

    /// Skips this many bytes, and the blanks after them.
    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest[bytes..].trim_start();
    }

    fn mistake(&self) -> Mistake {
        let fix = "write products and quotients, such as \"$sleeptime/4\", \"$workers*2/3\" or \"1s/ceil($rps/8)\"";
        Mistake::new(format!("`{}` cannot be read as an amount", self.text), fix)
    }
}

/// Bytes up to the next sign or parenthesis.
fn word_length(text: &str) -> usize {
    text.find(['*', '/', '(', ')']).unwrap_or(text.len())
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
    if text.starts_with('-') {
        return Err(Mistake::new(format!("`{text}` is negative, and no time is"), fix));
    }
    let bare = text.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    match duration_ns(&text.replace('_', "")) {
        Ok(ns) if ns <= MAX_TIME_NS => Ok(ns),
        Ok(_) | Err(DurationError::TooLong(_)) => {
            let fix = "no time in a workload is longer than 3600s";
            Err(Mistake::new(format!("`{text}` is more than an hour"), fix))
        }
        Err(DurationError::Fraction(_)) => {
            let problem = format!("`{text}` is finer than a nanosecond");
            Err(Mistake::new(problem, "round it to whole nanoseconds"))
        }
        Err(DurationError::Unit(_)) if bare => {
            Err(Mistake::new(format!("`{text}` has no unit of time"), fix))
        }
        Err(DurationError::Syntax(_) | DurationError::Unit(_)) => {
            Err(Mistake::new(format!("`{text}` is not a time"), fix))
        }
    }
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
        let param = |name: &str, kind| ParamKind { name: name.into(), kind, choices: vec![] };
        let params = [param("sleeptime", Kind::Time), param("rps", Kind::Count)];
        let value = |text: &str, kind, values: [u64; 2]| {
            Amount::parse(text, kind, &params).unwrap().value(&values)
        };
        for (text, expected) in [
            ("$sleeptime/4", 7_500_000),
            ("30ms / 4", 7_500_000),
            ("$sleeptime/2/2", 7_500_000),
            ("$sleeptime * 3 / 4", 22_500_000),
            ("1s/ceil($rps/(3*2/3))", 200_000_000),
            ("1s/ceil($rps/4)", 333_333_333),
            ("(1s/$rps)", 100_000_000),
        ] {
            assert_eq!(value(text, Kind::Time, [30_000_000, 10]), Ok(expected), "{text}");
        }
        assert_eq!(value("$sleeptime/4", Kind::Time, [7, 0]), Ok(1));
        assert_eq!(value("$rps*2/3", Kind::Count, [0, 16]), Ok(10));
        let zero = value("1s/($rps*2/3)", Kind::Time, [0, 1]).unwrap_err().problem;
        assert_eq!(zero, "divides by zero");
        let large = value("$rps*$rps", Kind::Count, [0, u64::MAX]).unwrap_err().problem;
        assert_eq!(large, "is too large");
        for (text, kind, reason) in [
            ("$sleeptime/0", Kind::Time, "divides by zero"),
            ("$sleeptime/x", Kind::Time, "no divisor"),
            ("$sleeptime/2/", Kind::Time, "no divisor"),
            ("1s/($rps", Kind::Time, "cannot be read"),
            ("1s/$rps)", Kind::Time, "cannot be read"),
            ("ceil(1s*2)", Kind::Time, "cannot be read"),
            ("2*1s", Kind::Time, "no unit"),
            ("1s*$sleeptime", Kind::Time, "a whole number belongs here"),
            ("((((((((((1s))))))))))", Kind::Time, "cannot be read"),
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
