//! The clock of each socket: full while one core is busy, and lower the more are, since cores share
//! the socket's power. It follows the number of busy cores within a few ticks.

use reveille_machine::Machine;

use crate::hw::cpu::FULL_SPEED;

/// The clock moves an eighth of the way to its target at each tick of a busy CPU.
const FOLLOW: i64 = 8;

/// Step of the clock: 16/1024 of full speed, about 50 MHz.
const STEP: i64 = 16;

/// A clock rate, relative to that of a single busy core.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockRate(u64);

impl ClockRate {
    #[inline]
    pub(crate) fn scale(self, speed: u64) -> u64 {
        if self.0 == FULL_SPEED { speed } else { (speed * self.0 / FULL_SPEED).max(1) }
    }
}

#[derive(Clone, Debug)]
struct Socket {
    busy_cores: i64,
    cores: i64,
    /// In units 1024 times finer than [`ClockRate`]'s.
    rate: i64,
}

/// The clocks of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Clocks {
    sockets: Vec<Socket>,
    /// Slowdown with all cores busy, of [`FULL_SPEED`].
    loss: i64,
}

impl Clocks {
    pub(crate) fn new(machine: &Machine) -> Clocks {
        let topology = &machine.topology;
        let full = FULL_SPEED as i64;
        let cores = topology.n_cores() / topology.n_sockets();
        let socket = Socket { busy_cores: 0, cores: cores as i64, rate: full << 10 };
        Clocks {
            sockets: vec![socket; topology.n_sockets()],
            loss: full - (machine.cost.all_core_clock * full as f64).round() as i64,
        }
    }

    /// A core of `socket` becomes busy or idle.
    #[inline]
    pub(crate) fn core_turns(&mut self, socket: usize, busy: bool) {
        self.sockets[socket].busy_cores += if busy { 1 } else { -1 };
    }

    /// A tick on a CPU of `socket`: the clock moves towards its target.
    pub(crate) fn tick(&mut self, socket: usize) {
        let loss = self.loss;
        let s = &mut self.sockets[socket];
        let lost = loss * (s.busy_cores - 1).max(0) / (s.cores - 1).max(1);
        let target = (FULL_SPEED as i64 - lost) << 10;
        s.rate += (target - s.rate) / FOLLOW;
    }

    #[inline]
    pub(crate) fn of(&self, socket: usize) -> ClockRate {
        if self.loss == 0 {
            return ClockRate(FULL_SPEED);
        }
        let rate = (self.sockets[socket].rate >> 10).min(FULL_SPEED as i64);
        ClockRate((rate / STEP * STEP) as u64)
    }
}
