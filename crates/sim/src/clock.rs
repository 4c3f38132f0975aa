//! Which CPU acts next: a winner tree over one deadline per CPU, plus one slot for
//! sleeping tasks and one for bandwidth timers. A CPU has one thing to do at a time, so that a changed plan is
//! an overwritten slot: nothing is queued twice, deleted or skipped.

use reveille_measure::Ns;

/// Bits of a key that hold the slot; the time stands above them.
const SLOT_BITS: u32 = 16;
/// A slot without a deadline.
pub(crate) const NEVER: Ns = Ns::MAX >> SLOT_BITS;

/// Deadlines by slot. Equal times are served in slot order, so that the history
/// of a run depends on nothing but its inputs.
pub(crate) struct Clock {
    /// Node i has children 2i and 2i+1, which lie in pair i; leaves start at `leaves`, and
    /// the root is node 1. Keys are time·slot.
    pairs: Vec<[u64; 2]>,
    leaves: usize,
}

impl Clock {
    pub(crate) fn new(slots: usize) -> Clock {
        assert!(slots < 1 << SLOT_BITS, "too many slots");
        let leaves = slots.next_power_of_two().max(2);
        Clock { pairs: vec![[u64::MAX; 2]; leaves], leaves }
    }

    /// Sets the deadline of a slot; [`NEVER`] for none.
    #[inline]
    pub(crate) fn set(&mut self, slot: usize, at: Ns) {
        let mut key = if at >= NEVER { u64::MAX } else { (at << SLOT_BITS) | slot as u64 };
        let mut node = self.leaves + slot;
        // Stops where the subtree's winner stays what it was: most plans are far off.
        while node > 1 {
            let pair = &mut self.pairs[node >> 1];
            let place = &mut pair[node & 1];
            if *place == key {
                return;
            }
            *place = key;
            key = pair[0].min(pair[1]);
            node >>= 1;
        }
        self.pairs[0][1] = key;
    }

    /// The earliest deadline and its slot.
    #[inline]
    pub(crate) fn next(&self) -> (Ns, usize) {
        let key = self.pairs[0][1];
        (key >> SLOT_BITS, (key & ((1 << SLOT_BITS) - 1)) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serves_by_time_then_slot() {
        let mut clock = Clock::new(5);
        clock.set(3, 70);
        clock.set(1, 70);
        clock.set(4, 90);
        assert_eq!(clock.next(), (70, 1));
        clock.set(1, NEVER);
        assert_eq!(clock.next(), (70, 3));
        clock.set(3, 95);
        assert_eq!(clock.next(), (90, 4));
        clock.set(4, NEVER);
        clock.set(3, NEVER);
        assert!(clock.next().0 >= NEVER);
    }
}
