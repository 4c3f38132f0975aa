//! A measured number with its spread, and arithmetic that propagates the spread.

use std::ops::{Add, Mul, Sub};

use super::samples::Measurement;

/// A median, its distances to p10 and p90, and the number of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Value {
    pub mid: f64,
    below: f64,
    above: f64,
    pub samples: u64,
}

impl Value {
    /// Without spread: a table value.
    pub fn exact(mid: f64) -> Value {
        Value { mid, below: 0.0, above: 0.0, samples: u64::MAX }
    }

    pub fn low(&self) -> f64 {
        self.mid - self.below
    }

    pub fn high(&self) -> f64 {
        self.mid + self.above
    }

    /// Mean of two values that should be equal; covers the spread of both.
    pub fn between(a: Value, b: Value) -> Value {
        let mid = (a.mid + b.mid) / 2.0;
        Value {
            mid,
            below: mid - a.low().min(b.low()),
            above: a.high().max(b.high()) - mid,
            samples: a.samples.min(b.samples),
        }
    }

    /// Clamped at zero.
    pub fn or_zero(self) -> Value {
        if self.mid >= 0.0 { self } else { Value { mid: 0.0, below: 0.0, ..self } }
    }
}

impl From<&Measurement> for Value {
    fn from(m: &Measurement) -> Value {
        let (below, above) = (m.median - m.p10, m.p90 - m.median);
        Value { mid: m.median, below, above, samples: m.samples }
    }
}

impl Value {
    /// Divided by a positive value.
    pub fn over(self, other: Value) -> Value {
        let share =
            |own: f64, others: f64| (own / other.mid).hypot(self.mid * others / other.mid.powi(2));
        Value {
            mid: self.mid / other.mid,
            below: share(self.below, other.above),
            above: share(self.above, other.below),
            samples: self.samples.min(other.samples),
        }
    }
}

// Independent spreads add in quadrature; a sum is as reliable as its smallest sample.
impl Add for Value {
    type Output = Value;

    fn add(self, other: Value) -> Value {
        Value {
            mid: self.mid + other.mid,
            below: self.below.hypot(other.below),
            above: self.above.hypot(other.above),
            samples: self.samples.min(other.samples),
        }
    }
}

impl Sub for Value {
    type Output = Value;

    fn sub(self, other: Value) -> Value {
        self + Value { mid: -other.mid, below: other.above, above: other.below, ..other }
    }
}

/// By a positive number.
impl Mul<f64> for Value {
    type Output = Value;

    fn mul(self, factor: f64) -> Value {
        Value {
            mid: self.mid * factor,
            below: self.below * factor,
            above: self.above * factor,
            samples: self.samples,
        }
    }
}

pub(super) struct Figures<'a>(pub &'a [Measurement]);

impl Figures<'_> {
    pub fn get(&self, name: &str) -> Option<Value> {
        self.0.iter().find(|m| m.name == name).map(Value::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_add_as_squares_and_turn_around_when_subtracted() {
        let a = Value { mid: 100.0, below: 3.0, above: 30.0, samples: 50 };
        let b = Value { mid: 10.0, below: 40.0, above: 4.0, samples: 70 };
        let sum = a + b;
        assert_eq!((sum.mid, sum.samples), (110.0, 50));
        assert!((sum.below - 40.11).abs() < 0.01 && (sum.above - 30.27).abs() < 0.01);
        let difference = a - b;
        assert_eq!((difference.below, difference.above, difference.mid), (5.0, 50.0, 90.0));
        assert_eq!((a - Value::exact(1.0)).samples, 50);
        assert_eq!(((b - a).or_zero().mid, (b - a).or_zero().low()), (0.0, 0.0));
    }

    #[test]
    fn a_quotient_spreads_by_both() {
        let a = Value { mid: 100.0, below: 6.0, above: 8.0, samples: 50 };
        let b = Value { mid: 10.0, below: 0.6, above: 0.8, samples: 70 };
        let quotient = a.over(b);
        // 6% and 8% downwards, 8% and 6% upwards.
        assert!((quotient.below - 1.0).abs() < 1e-9 && (quotient.above - 1.0).abs() < 1e-9);
        assert_eq!((quotient.mid, quotient.samples), (10.0, 50));
    }

    #[test]
    fn a_mean_spreads_as_far_as_either() {
        let a = Value { mid: 10.0, below: 1.0, above: 1.0, samples: 5 };
        let b = Value { mid: 20.0, below: 1.0, above: 5.0, samples: 9 };
        let mean = Value::between(a, b);
        assert_eq!((mean.mid, mean.low(), mean.high(), mean.samples), (15.0, 9.0, 25.0, 5));
    }
}
