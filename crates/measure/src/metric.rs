//! What a figure is of, its unit and which way is better: one value from where it is measured
//! to where it is shown.

use std::borrow::Cow;
use std::fmt;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

/// Which way a figure has to move to be better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    Higher,
    /// A time, a latency, a cost.
    Lower,
    /// Neither way: a share of idle time, a rate of wakeups. Changes are plain.
    Neither,
}

/// A metric, such as `p99 wakeup latency` in `ns`. As text the unit stands behind it, in
/// parentheses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Without the unit.
    pub name: Cow<'static, str>,
    /// Empty for a bare number.
    pub unit: Cow<'static, str>,
    /// Which way is better.
    pub direction: Direction,
}

impl Metric {
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        unit: &'static str,
        direction: Direction,
    ) -> Metric {
        Metric { name: name.into(), unit: unit.into(), direction }
    }

    /// What workload files write: `p99 wakeup latency (ns)`. Nothing else is read so.
    pub fn read(text: &str, direction: Direction) -> Metric {
        let unit = text.strip_suffix(')').and_then(|text| text.rsplit_once(" ("));
        let (name, unit) = unit.unwrap_or((text, ""));
        Metric { name: name.to_owned().into(), unit: unit.to_owned().into(), direction }
    }

    /// Another figure in the same unit.
    pub fn named(&self, name: String) -> Metric {
        Metric { name: name.into(), ..self.clone() }
    }

    /// Writes the two keys `metric` and `direction`, for a row to be flattened into.
    pub fn with_direction<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut keys = serializer.serialize_struct("Metric", 2)?;
        keys.serialize_field("metric", self)?;
        keys.serialize_field("direction", &self.direction)?;
        keys.end()
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.unit {
            "" => f.write_str(&self.name),
            unit => write!(f, "{} ({unit})", self.name),
        }
    }
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Three significant digits; whole where there are more.
pub fn three_digits(value: f64) -> String {
    let magnitude = value.abs();
    // The bounds are those at which rounding would add a digit.
    if magnitude >= 99.95 || magnitude == 0.0 {
        format!("{value:.0}")
    } else if magnitude >= 9.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_is_what_stands_in_the_last_parentheses() {
        for (text, name, unit) in [
            ("p99 (ns)", "p99", "ns"),
            ("idle (mean) (%)", "idle (mean)", "%"),
            ("score", "score", ""),
        ] {
            let metric = Metric::read(text, Direction::Lower);
            assert_eq!((&*metric.name, &*metric.unit), (name, unit));
            assert_eq!(metric.to_string(), text);
        }
    }
}
