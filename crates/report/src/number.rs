//! How figures are written for people: three significant digits, an SI suffix
//! and the metric's unit, so that columns stay narrow and
//! a reader never has to count digits.

use reveille_measure::three_digits;
use reveille_study::Metric;

/// Printed for a figure without a value.
pub(crate) const UNDEFINED: &str = "n/a";

/// Printed for a quantile of too few samples.
pub(crate) const TOO_FEW: &str = "too few";

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unit {
    /// A time; the figure times `to_ns` is in nanoseconds.
    Time { to_ns: f64 },
    /// Something per second.
    Rate,
    /// A share in percent.
    Percent,
    /// A share of periods in percent, of which small ones matter.
    PeriodShare,
    /// A mean number of periods, of which small differences matter.
    Periods,
    /// Anything else: a bare number.
    Count,
}

impl Unit {
    pub(crate) fn of(metric: &Metric) -> Unit {
        match &*metric.unit {
            "ns" => Unit::Time { to_ns: 1.0 },
            "us" | "µs" => Unit::Time { to_ns: 1e3 },
            "ms" => Unit::Time { to_ns: 1e6 },
            "s" => Unit::Time { to_ns: 1e9 },
            "%" => Unit::Percent,
            "% of periods" => Unit::PeriodShare,
            "periods" => Unit::Periods,
            unit if unit.ends_with("/s") => Unit::Rate,
            _ => Unit::Count,
        }
    }

    /// `value` with its suffix and unit, such as `1.23M/s` or `45.6µs`.
    pub(crate) fn format(self, value: f64) -> String {
        if !value.is_finite() {
            return UNDEFINED.into();
        }
        match self {
            Unit::Time { to_ns } => time(value * to_ns),
            Unit::Rate => format!("{}/s", si(value)),
            Unit::Percent => percent(value),
            Unit::PeriodShare => format!("{value:.2}%"),
            Unit::Periods => format!("{value:.4}"),
            Unit::Count => si(value),
        }
    }
}

/// A number with an SI suffix: `0`, `0.25`, `12.3`, `1.23k`, `4.56G`.
pub(crate) fn si(value: f64) -> String {
    if !value.is_finite() {
        return UNDEFINED.into();
    }
    let steps = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    for (size, suffix) in steps {
        // 999.6 must become 1.00k, not 1000.
        if value.abs() >= size * 0.9995 {
            return format!("{}{suffix}", three_digits(value / size));
        }
    }
    three_digits(value)
}

/// A time given in nanoseconds: `850ns`, `45.6µs`, `1.20ms`, `2.00s`.
pub(crate) fn time(ns: f64) -> String {
    if !ns.is_finite() {
        return UNDEFINED.into();
    }
    let steps = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
    for (size, unit) in steps {
        if ns.abs() >= size * 0.9995 {
            return format!("{}{unit}", three_digits(ns / size));
        }
    }
    format!("{ns:.0}ns")
}

/// A share given in percent: `0.3%`, `12.5%`, `100%`.
pub(crate) fn percent(value: f64) -> String {
    if !value.is_finite() {
        return UNDEFINED.into();
    }
    if value.abs() >= 99.95 { format!("{value:.0}%") } else { format!("{value:.1}%") }
}

/// A change given in percent, always with its sign: `+4.2%`, `-12.0%`.
pub(crate) fn change(pct: f64) -> String {
    if !pct.is_finite() {
        return UNDEFINED.into();
    }
    // Rounded first: -0.04 is no change and must not read `-0.0%`.
    let tenths = (pct * 10.0).round() / 10.0;
    if tenths == 0.0 { "0.0%".into() } else { format!("{tenths:+.1}%") }
}

/// Does a change have a star? Only a significant one that does not print as none.
pub(crate) fn has_star(significant: bool, pct: f64) -> bool {
    significant && pct.is_finite() && change(pct) != change(0.0)
}

/// A mean with its spread, `1.23M/s ± 0.4%`. Without repeats (`p_value` is
/// absent and the spread says nothing) the mean stands alone.
pub(crate) fn figure(unit: Unit, figure: reveille_study::Figure, repeated: bool) -> String {
    let mean = unit.format(figure.mean);
    if !figure.mean.is_finite() {
        return mean;
    }
    if !repeated && (figure.rel_std == 0.0 || !figure.rel_std.is_finite()) {
        return mean;
    }
    let spread = if figure.rel_std.is_finite() {
        format!("{:.1}%", 100.0 * figure.rel_std.abs())
    } else {
        UNDEFINED.into()
    };
    format!("{mean} ±{spread:>5}")
}

#[cfg(test)]
mod tests {
    use reveille_study::Direction;

    use super::*;

    #[test]
    fn suffixes_change_where_rounding_does() {
        assert_eq!(si(999.4), "999");
        assert_eq!(si(999.6), "1.00k");
        assert_eq!(si(1_234_567.0), "1.23M");
        assert_eq!(si(99_960.0), "100k");
        assert_eq!(si(-2500.0), "-2.50k");
        assert_eq!(si(0.0), "0");
        assert_eq!(time(850.0), "850ns");
        assert_eq!(time(45_600.0), "45.6µs");
        assert_eq!(time(1.2e9), "1.20s");
    }

    #[test]
    fn figures_are_written_in_their_unit() {
        let format = |unit, value| Unit::of(&Metric::new("", unit, Direction::Lower)).format(value);
        assert_eq!(format("operations/s", 1.5e6), "1.50M/s");
        assert_eq!(format("ns", 1500.0), "1.50µs");
        assert_eq!(format("s", 12.0), "12.0s");
        assert_eq!(format("%", 12.0), "12.0%");
        assert_eq!(format("periods", 1.00018), "1.0002");
        assert_eq!(format("% of periods", 0.0149), "0.01%");
        assert_eq!(format("", 12.0), "12.0");
    }

    #[test]
    fn a_change_has_a_sign_unless_it_is_none() {
        assert_eq!(change(4.21), "+4.2%");
        assert_eq!(change(-12.0), "-12.0%");
        assert_eq!(change(-0.04), "0.0%");
        assert_eq!(change(f64::NAN), "n/a");
        assert_eq!(change(f64::INFINITY), "n/a");
    }
}
