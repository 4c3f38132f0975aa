//! Which numbers of a machine can be moved to see how a result depends on them:
//! every constant and the exit latency of every idle state, by one kind of name,
//! so that a sweep needs no two ways to set a number.

use reveille_place::Mistake;

use crate::cost::{CostError, CostModel, Kind};
use crate::machine::{Machine, Origin};

/// A number of a machine that [`Machine::set`] can move.
#[derive(Clone, Debug, PartialEq)]
pub struct Tunable {
    pub key: String,
    pub kind: Kind,
    /// Value at present, in [`unit`](Tunable::unit).
    pub value: f64,
    /// Lowest plausible value. The exit from an idle state is not faster than from
    /// the lighter one before it.
    pub low: f64,
    /// Highest plausible value. The exit from an idle state is not slower than from
    /// the deeper one after it.
    pub high: f64,
    pub origin: Origin,
}

impl Tunable {
    pub fn unit(&self) -> &'static str {
        self.kind.unit()
    }

    /// The value at a relative position in the range, 0 being its low end and 1 its
    /// high end. Times and counts are rounded to whole numbers, ratios to six digits.
    pub fn at(&self, position: f64) -> f64 {
        let exact = self.low + position * (self.high - self.low);
        let rounded = match self.kind {
            Kind::Time | Kind::Count => exact.round(),
            Kind::Ratio | Kind::Factor => (exact * 1e6).round() / 1e6,
        };
        rounded.clamp(self.low, self.high)
    }
}

impl Machine {
    /// Every number that [`Machine::set`] can move: constants in the order of
    /// [`CostModel::FIELDS`], then idle states, lightest first.
    pub fn tunables(&self) -> Vec<Tunable> {
        let constants = CostModel::FIELDS.iter().filter_map(|field| {
            let c = self.constant(field.key)?;
            Some(Tunable {
                key: field.key.to_owned(),
                kind: field.kind,
                value: c.value,
                low: c.low,
                high: c.high,
                origin: c.origin.clone(),
            })
        });
        let idle = self.idle.iter().enumerate().map(|(i, state)| {
            let (low, high) = self.exit_bounds_ns(i);
            Tunable {
                key: exit_key(&state.name),
                kind: Kind::Time,
                value: f64::from(state.exit_ns),
                low: f64::from(low),
                high: f64::from(high),
                origin: state.origin.clone(),
            }
        });
        constants.chain(idle).collect()
    }

    /// Sets the exit latency of the idle state that `key` names.
    pub(crate) fn set_exit(&mut self, key: &str, value: f64) -> Result<(), CostError> {
        let Some(i) = self.idle.iter().position(|s| exit_key(&s.name) == key) else {
            let keys: Vec<String> = self.idle.iter().map(|s| exit_key(&s.name)).collect();
            return Err(Mistake::unknown("constant", key, keys).into());
        };
        Kind::Time.check(key, value)?;
        let (low, high) = self.exit_bounds_ns(i);
        if value < f64::from(low) || value > f64::from(high) {
            let (low, high) = (f64::from(low), f64::from(high));
            return Err(CostError::Range { key: key.to_owned(), value, low, high });
        }
        self.idle[i].exit_ns = value as u32;
        Ok(())
    }

    /// The plausible range of a state's exit latency that keeps states in order. If
    /// neighbours leave nothing of it, only the present value.
    fn exit_bounds_ns(&self, i: usize) -> (u32, u32) {
        let state = &self.idle[i];
        let lighter = i.checked_sub(1).map_or(0, |before| self.idle[before].exit_ns);
        let deeper = self.idle.get(i + 1).map_or(u32::MAX, |after| after.exit_ns);
        let low = state.exit_low_ns.max(lighter).min(state.exit_ns);
        let high = state.exit_high_ns.min(deeper).max(state.exit_ns);
        (low, high)
    }
}

/// What the exit latency of an idle state is called.
fn exit_key(state: &str) -> String {
    format!("idle.{state}.exit_ns")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::load::load;

    #[test]
    fn every_shipped_number_can_be_moved_to_both_ends_and_back() {
        for name in crate::preset_names() {
            let shipped = load(name).unwrap();
            for t in shipped.tunables() {
                let mut machine = shipped.clone();
                for value in [t.low, t.high, t.at(0.5)] {
                    machine.set(&t.key, value).unwrap_or_else(|e| panic!("{name}: {e}"));
                    let moved = machine.tunables().into_iter().find(|m| m.key == t.key).unwrap();
                    assert_eq!(moved.value, value);
                }
                machine.set(&t.key, t.value).unwrap();
                assert_eq!(machine, shipped, "{name}: {}", t.key);
            }
        }
    }

    #[test]
    fn an_idle_state_stays_between_its_neighbours() {
        let mut machine = load("icx-2s32c").unwrap();
        // The ranges of C1 and C1E touch at 1 us.
        machine.set("idle.C1E.exit_ns", 1000.0).unwrap();
        machine.set("idle.C1.exit_ns", 500.0).unwrap();
        assert_eq!(machine.idle[1].exit_ns, 500);
        let error = machine.set("idle.C1E.exit_ns", 400.0).unwrap_err();
        assert!(error.to_string().contains("[1000, 4000]"), "{error}");
        let error = machine.set("idle.C1.exit_sn", 500.0).unwrap_err();
        assert!(error.to_string().contains("did you mean `idle.C1.exit_ns`"), "{error}");
        assert!(machine.set("idle.C1.exit_ns", 600.5).is_err());
    }

    proptest! {
        #[test]
        fn positions_stay_in_the_range_and_in_order(a in 0.0..=1.0f64, b in 0.0..=1.0f64) {
            let machine = load("spr-2s56c").unwrap();
            for t in machine.tunables() {
                let (low, high) = (t.at(a.min(b)), t.at(a.max(b)));
                prop_assert!(t.low <= low && low <= high && high <= t.high, "{}", t.key);
                prop_assert!(machine.clone().set(&t.key, low).is_ok(), "{} {low}", t.key);
            }
        }
    }
}
