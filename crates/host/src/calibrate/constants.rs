//! Constants derived so far, each stored in the machine with its range and provenance if it is
//! plausible.

use reveille_machine::{Constant, CostModel, Machine, Measured, Origin};
use serde::Serialize;

use super::value::Value;

/// A measured constant may exceed the default's plausible range, which is another machine's, by
/// this factor; beyond it the measurement is considered wrong.
const STRETCH: f64 = 2.5;
/// The same in a guest for constants that involve the hypervisor: an interrupt between CPUs of a nested
/// one costs its sender some 10 us.
const GUEST_STRETCH: f64 = 50.0;
const IN_HYPERVISOR: [&str; 5] =
    ["ipi_send_ns", "ipi_flight_ns", "ipi_remote_ns", "irq_ns", "tick_ns"];

/// CPUs that the policy tests for a wakeup across two idle CPUs.
const LOOKED_ACROSS: f64 = 2.0;
/// Cache lines that a push to a wake list transfers.
const WAKE_LIST_LINES: f64 = 2.0;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Derived {
    pub key: String,
    /// `measured`, or `estimated` if only a common factor was measured.
    pub kind: &'static str,
    pub value: f64,
    /// `ns`, `count` or `ratio`.
    pub unit: &'static str,
    /// Lower end of its spread or, if estimated, of its range.
    pub low: f64,
    /// Upper end of the same.
    pub high: f64,
    /// The default model's value.
    pub default: f64,
    pub how: String,
}

pub(super) struct Constants {
    pub machine: Machine,
    pub derived: Vec<Derived>,
    pub warnings: Vec<String>,
    guest: bool,
}

impl Constants {
    pub fn new(machine: Machine, guest: bool) -> Constants {
        Constants { machine, derived: Vec::new(), warnings: Vec::new(), guest }
    }

    /// The current value: measured, or the default.
    pub fn now(&self, key: &str) -> Value {
        Value::exact(self.machine.cost.get(key).unwrap_or(0.0))
    }

    /// What a wakeup by wake list takes of its waker, at `line` ns a cache line.
    pub fn wake_by_list(&self, line: Value) -> Value {
        self.now("ttwu_ns")
            + self.now("line_llc_ns") * LOOKED_ACROSS
            + self.now("wakelist_ns")
            + line * (WAKE_LIST_LINES + self.now("wakee_lines").mid)
    }

    /// Warns that `what` keeps its default, and why.
    pub fn warn(&mut self, what: &str, why: impl std::fmt::Display) {
        self.warnings.push(format!("{what} keeps its default: {why}"));
    }

    /// Sets a constant to a measured value. Returns false if it is implausible.
    pub fn measured(&mut self, key: &'static str, value: Value, how: &str) -> bool {
        let (low, high) = self.plausible(key);
        if !(low..=high).contains(&value.mid) {
            let unit = CostModel::field(key).map_or("", |f| f.unit());
            let mid = if unit == "ratio" { value.mid } else { value.mid.round() };
            self.warn(key, format!("{mid} {unit} ({how}) is outside of {low} to {high}"));
            return false;
        }
        let origin = Origin::Measured(Measured {
            how: how.to_owned(),
            p10: tenths(value.low().max(0.0)),
            p90: tenths(value.high()),
            samples: value.samples,
        });
        self.put(key, value.mid, value.low(), value.high(), origin)
    }

    /// Sets a constant to `factor` times its default, for code that is not measured itself:
    /// `factor` is this host's speed on the same path.
    pub fn scaled(&mut self, key: &'static str, factor: f64, how: &str) -> bool {
        let Some(default) = self.machine.constant(key).cloned() else { return false };
        let how =
            format!("the default of {} {} times {factor:.3}, {how}", default.value, default.unit);
        let (low, high) = (default.low * factor, default.high * factor);
        self.put(key, default.value * factor, low, high, Origin::Estimated(how))
    }

    /// Sets a constant to a value that follows by definition.
    pub fn stated(&mut self, key: &'static str, value: f64, how: &str) -> bool {
        self.put(key, value, value, value, Origin::Estimated(how.to_owned()))
    }

    fn put(&mut self, key: &'static str, value: f64, low: f64, high: f64, origin: Origin) -> bool {
        let Some(at) = self.machine.constants.iter().position(|c| c.key == key) else {
            return false;
        };
        let default = self.machine.constants[at].clone();
        let ratio = default.unit == "ratio";
        let round = |x: f64| if ratio { (x * 1000.0).round() / 1000.0 } else { x.round() };
        let value = round(value);
        let [low, high] = match ratio {
            true => [round(low).clamp(0.001, value), round(high).clamp(value, 1.0)],
            false => [low.floor().clamp(0.0, value), high.ceil().max(value)],
        };
        if let Err(error) = self.machine.cost.set(key, value) {
            self.warn(key, error);
            return false;
        }
        self.derived.push(Derived {
            key: key.to_owned(),
            kind: origin.kind(),
            value,
            unit: default.unit,
            low,
            high,
            default: default.value,
            how: origin.text().to_owned(),
        });
        self.machine.constants[at] =
            Constant { value, low, high, origin, inherited: false, ..default };
        true
    }

    fn plausible(&self, key: &str) -> (f64, f64) {
        let Some(default) = self.machine.constant(key) else { return (0.0, 0.0) };
        let up = if self.guest && IN_HYPERVISOR.contains(&key) { GUEST_STRETCH } else { STRETCH };
        let most = if default.unit == "ratio" { 1.0 } else { f64::MAX };
        // All of a message's transfers may overlap.
        let low = if default.unit == "count" { 0.0 } else { default.low };
        // Ranges refer to the reference's speed.
        let fastest = match (default.unit, self.machine.constant("speed")) {
            ("ns", Some(speed)) => speed.high.max(1.0),
            _ => 1.0,
        };
        (low / (STRETCH * fastest), (default.high * up).min(most))
    }
}

/// Rounds times to a tenth of a nanosecond, ratios to a thousandth.
pub(super) fn tenths(x: f64) -> f64 {
    let unit = if x.abs() < 10.0 { 1000.0 } else { 10.0 };
    (x * unit).round() / unit
}
