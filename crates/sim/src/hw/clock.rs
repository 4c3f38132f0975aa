//! Which CPU acts next: a winner tree with a deadline per CPU, and one slot each for sleeping tasks
//! and bandwidth timers. A CPU has one next event, so replanning overwrites its slot: nothing is
//! queued twice, deleted or skipped.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use reveille_measure::Ns;
use reveille_policy::{CpuId, TaskId};

use crate::ids::{At, IdVec};

/// Bits of a key that hold the slot; the time is above them.
const SLOT_BITS: u32 = 17;

/// Levels below the root in which the second deadline is looked for.
const SECOND_LEVELS: u32 = 6;

/// A slot without a deadline.
pub(crate) const NEVER: Ns = Ns::MAX >> SLOT_BITS;

#[inline]
fn slot_of(key: u64) -> usize {
    (key & ((1 << SLOT_BITS) - 1)) as usize
}

/// Deadlines by slot. Ties are processed in slot order, so that a run depends on its inputs alone.
#[derive(Clone)]
struct Clock {
    /// Node i has children 2i and 2i+1, and the earlier key of both. Node 1 is the root, and the
    /// slots come last. Keys are time·slot.
    keys: IdVec<At, u64>,
    slots: usize,
}

impl Clock {
    fn new(slots: usize) -> Clock {
        assert!(slots < 1 << SLOT_BITS, "too many slots");
        let mut keys = IdVec::filled(u64::MAX, 2 * slots);
        keys[At(0)] = 0;
        Clock { keys, slots }
    }

    /// Sets the deadline of a slot; [`NEVER`] for none.
    #[inline]
    fn set(&mut self, slot: usize, at: Ns) {
        let mut key = (at.min(NEVER) << SLOT_BITS) | slot as u64;
        let mut node = self.slots + slot;
        // Stop where the subtree's winner is unchanged, since most deadlines are far away, and at
        // node 0, which is earlier than all.
        while self.keys[At(node)] != key {
            self.keys[At(node)] = key;
            key = key.min(self.keys[At(node ^ 1)]);
            node >>= 1;
        }
    }

    /// The slot that is probably next after this one, which is first: the earliest of those that it
    /// beat on the upper [`SECOND_LEVELS`] levels. They stand for all slots but one in 64.
    #[inline]
    fn second(&self, slot: usize) -> usize {
        let leaf = self.slots + slot;
        let mut node = leaf >> leaf.ilog2().saturating_sub(SECOND_LEVELS);
        let mut key = u64::MAX;
        while node > 1 {
            key = key.min(self.keys[At(node ^ 1)]);
            node >>= 1;
        }
        slot_of(key)
    }

    /// The earliest deadline and its slot.
    #[inline]
    fn next(&self) -> (Ns, usize) {
        let key = self.keys[At(1)];
        (key >> SLOT_BITS, slot_of(key))
    }
}

/// A sleeping task's timer, on the CPU where it was armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timer {
    pub(crate) at: Ns,
    pub(crate) task: TaskId,
    pub(crate) number: u64,
    pub(crate) cpu: CpuId,
}

/// All future events: deadlines of CPUs, timers of sleeping tasks, bandwidth timers.
#[derive(Clone)]
pub(crate) struct Agenda {
    clock: Clock,
    n_cpus: usize,
    timers: BinaryHeap<Reverse<Timer>>,
    timer_number: u64,
}

impl Agenda {
    pub(crate) fn new(n_cpus: usize) -> Agenda {
        let clock = Clock::new(n_cpus + 2);
        Agenda { clock, n_cpus, timers: BinaryHeap::new(), timer_number: 0 }
    }

    /// The earliest deadline ([`NEVER`] if none) and its slot: a CPU's or, after those, that of
    /// sleeping tasks or of bandwidth timers.
    #[inline]
    pub(crate) fn next(&self) -> (Ns, usize) {
        self.clock.next()
    }

    /// The slot that is probably next after `slot`, which is first.
    #[inline]
    pub(crate) fn second(&self, slot: usize) -> usize {
        self.clock.second(slot)
    }

    #[inline]
    pub(crate) fn set_cpu(&mut self, cpu: CpuId, deadline: Ns) {
        self.clock.set(cpu.index(), deadline);
    }

    pub(crate) fn set_bandwidth(&mut self, deadline: Ns) {
        self.clock.set(self.n_cpus + 1, deadline);
    }

    /// Arms a timer and returns its number; a timer whose number differs from its task's is void.
    /// Call [`Agenda::replan_timers`] afterwards.
    pub(crate) fn arm(&mut self, cpu: CpuId, task: TaskId, at_ns: Ns) -> u64 {
        self.timer_number += 1;
        let number = self.timer_number;
        self.timers.push(Reverse(Timer { at: at_ns, task, number, cpu }));
        number
    }

    /// Deadline of the first sleeping task's timer.
    #[inline]
    pub(crate) fn next_timer(&self) -> Ns {
        self.timers.peek().map_or(NEVER, |t| t.0.at)
    }

    /// Takes a timer that is due.
    pub(crate) fn due_timer(&mut self, now: Ns) -> Option<Timer> {
        let Reverse(timer) = *self.timers.peek()?;
        if timer.at > now {
            return None;
        }
        self.timers.pop();
        Some(timer)
    }

    pub(crate) fn replan_timers(&mut self) {
        self.clock.set(self.n_cpus, self.next_timer());
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

    #[test]
    fn any_number_of_slots_keeps_its_earliest_and_second() {
        for slots in 2..70 {
            let mut clock = Clock::new(slots);
            let mut times = vec![NEVER; slots];
            for step in 0..500u64 {
                let slot = (step * 7919 % slots as u64) as usize;
                let time = step * 104_729 % 997;
                times[slot] = if time < 100 { NEVER } else { time };
                clock.set(slot, times[slot]);
                let earliest = (0..slots).map(|s| (times[s], s)).min().unwrap();
                let next = clock.next();
                assert!(next == earliest || earliest.0 == NEVER && next.0 >= NEVER, "{slots}");
                let second = (0..slots).filter(|&s| s != next.1).map(|s| (times[s], s)).min();
                let (at, slot) = second.unwrap();
                let all = 2 * slots <= 2 << SECOND_LEVELS;
                assert!(!all || at == NEVER || clock.second(next.1) == slot, "{slots}: {at}");
            }
        }
    }
}
