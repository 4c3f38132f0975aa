//! What a figure is of, and its unit: apart from where it is measured to where it is shown.

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};

/// A metric, such as `p99 wakeup latency` in `ns`. As text the unit stands behind it, in
/// parentheses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Without the unit.
    pub name: Cow<'static, str>,
    /// Empty for a bare number.
    pub unit: Cow<'static, str>,
}

impl Metric {
    /// `name` in `unit`.
    pub fn new(name: impl Into<Cow<'static, str>>, unit: &'static str) -> Metric {
        Metric { name: name.into(), unit: unit.into() }
    }

    /// What workload files write: `p99 wakeup latency (ns)`.
    pub fn read(text: &str) -> Metric {
        let unit = text.strip_suffix(')').and_then(|text| text.rsplit_once(" ("));
        let (name, unit) = unit.unwrap_or((text, ""));
        Metric { name: name.to_owned().into(), unit: unit.to_owned().into() }
    }

    /// Another figure in the same unit.
    pub(crate) fn named(&self, name: String) -> Metric {
        Metric { name: name.into(), unit: self.unit.clone() }
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
            let metric = Metric::read(text);
            assert_eq!((&*metric.name, &*metric.unit), (name, unit));
            assert_eq!(metric.to_string(), text);
        }
    }
}
