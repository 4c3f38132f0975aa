//! The clock of each socket: full while one core is busy, and lower the more are, since cores share
//! the socket's power. It follows the number of busy cores within a few ticks.

use reveille_machine::Machine;
use reveille_measure::Ns;

use crate::rq::pelt::FULL_CLOCK;

/// Full speed; a core with a busy sibling is slower.
pub(crate) const FULL_SPEED: u64 = 1024;

/// The clock moves an eighth of the way to its target at each tick of a busy CPU.
const FOLLOW: i64 = 8;

/// Step of the clock: 16/1024 of full speed, about 50 MHz.
const STEP: i64 = 16;

/// Hardware threads of a core.
const MAX_THREADS: usize = 8;

/// A speed in 1024ths of full speed. Every event divides by one several times, so each carries its
/// reciprocal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Speed {
    /// Twice the share less one: what rounds up a doubled dividend.
    round_up: u32,
    /// The share is at most two to the power of this, and more than half of that.
    shift: u32,
    /// 2^(63 + shift) / share, rounded up: 64 bits, exact for dividends below 2^63.
    reciprocal: u64,
}

impl Speed {
    pub(crate) const FULL: Speed = Speed::new(FULL_SPEED);

    const fn new(share: u64) -> Speed {
        let shift = u64::BITS - (share - 1).leading_zeros();
        let reciprocal = (1u128 << (63 + shift)).div_ceil(share as u128) as u64;
        Speed { round_up: 2 * (share as u32 - 1), shift, reciprocal }
    }

    /// Wall time of nominal work, rounded up.
    #[inline]
    pub(crate) fn stretch(self, nominal: Ns) -> Ns {
        let doubled = nominal * (2 * FULL_SPEED) + u64::from(self.round_up);
        let product = u128::from(doubled) * u128::from(self.reciprocal);
        (product >> 64) as u64 >> self.shift
    }

    /// Nominal work done in this wall time.
    #[inline]
    pub(crate) fn done_in(self, wall: Ns) -> Ns {
        wall * u64::from(self.round_up / 2 + 1) / FULL_SPEED
    }
}

/// Speeds of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Speeds {
    /// Of kernel work.
    pub(crate) kernel: Speed,
    /// Of user space, whose times are those of the machine itself.
    pub(crate) user: Speed,
}

impl Speeds {
    pub(crate) const FULL: Speeds = Speeds { kernel: Speed::FULL, user: Speed::FULL };
}

#[derive(Clone, Debug)]
struct Socket {
    busy_cores: i64,
    cores: i64,
    /// 1024 times finer than a speed.
    rate: i64,
    /// Where the rate goes, by the busy cores at that time.
    target: i64,
    counted_at: Ns,
    /// Speeds at this rate, by the number of busy siblings.
    speeds: [Speeds; MAX_THREADS],
}

/// The clocks of a machine, and what its CPUs run at.
#[derive(Clone, Debug)]
pub(crate) struct Clocks {
    sockets: Vec<Socket>,
    /// Slowdown with all cores busy, of [`FULL_SPEED`].
    loss: i64,
    /// The clock at which a busy CPU counts as fully used, of [`FULL_SPEED`].
    full_use: u64,
    /// Shares of full speed by the number of busy siblings, at the full clock: kernel and user.
    shares: Vec<[u64; 2]>,
}

impl Clocks {
    pub(crate) fn new(machine: &Machine) -> Clocks {
        let (topology, cost) = (&machine.topology, &machine.cost);
        let full = FULL_SPEED as i64;
        let cores = (topology.n_cores() / topology.n_sockets()) as i64;
        let widths = (0..topology.n_cores()).map(|core| topology.core_cpus(core as u32).len());
        let share = |siblings| {
            let kernel = smt_speed(cost.smt_kernel_share, cost.speed, siblings);
            [kernel, smt_speed(cost.smt_share, 1.0, siblings)]
        };
        let shares: Vec<_> = (0..widths.max().unwrap_or(1)).map(share).collect();
        let speeds = speeds_at(FULL_SPEED, &shares);
        let rate = full << 10;
        let socket =
            Socket { busy_cores: 0, cores, rate, target: rate, counted_at: Ns::MAX, speeds };
        Clocks {
            sockets: vec![socket; topology.n_sockets()],
            full_use: (cost.full_use_clock * full as f64).round() as u64,
            loss: full - (cost.all_core_clock * full as f64).round() as i64,
            shares,
        }
    }

    /// A core of `socket` becomes busy or idle.
    #[inline]
    pub(crate) fn core_turns(&mut self, socket: usize, busy: bool) {
        self.sockets[socket].busy_cores += if busy { 1 } else { -1 };
    }

    /// A tick on a CPU of `socket`: the clock moves towards its target. Ticks of all CPUs coincide, and
    /// what they start, such as an idle CPU that is to balance, is not load: the first of them counts.
    pub(crate) fn tick(&mut self, socket: usize, now: Ns) {
        let loss = self.loss;
        if loss == 0 {
            return;
        }
        let s = &mut self.sockets[socket];
        if s.counted_at != now {
            let lost = (loss << 10) * (s.busy_cores - 1).max(0) / (s.cores - 1).max(1);
            (s.target, s.counted_at) = (((FULL_SPEED as i64) << 10) - lost, now);
        }
        let before = clock(s.rate);
        s.rate += (s.target - s.rate) / FOLLOW;
        if clock(s.rate) != before {
            s.speeds = speeds_at(clock(s.rate), &self.shares);
        }
    }

    /// The clock of `socket`, of [`FULL_CLOCK`] (arch_scale_freq_capacity()).
    pub(crate) fn counted(&self, socket: usize) -> u32 {
        let full = u64::from(FULL_CLOCK);
        (clock(self.sockets[socket].rate) * full / self.full_use).min(full) as u32
    }

    /// Speeds of a CPU of `socket` with this many busy siblings.
    #[inline]
    pub(crate) fn speeds(&self, socket: usize, busy_siblings: u8) -> &Speeds {
        &self.sockets[socket].speeds[usize::from(busy_siblings)]
    }
}

/// The clock at a rate, of [`FULL_SPEED`]: the nearest step.
fn clock(rate: i64) -> u64 {
    ((rate + (STEP << 9)) / (STEP << 10) * STEP) as u64
}

/// Speeds at a clock, by the number of busy siblings.
fn speeds_at(clock: u64, shares: &[[u64; 2]]) -> [Speeds; MAX_THREADS] {
    let mut speeds = [Speeds::FULL; MAX_THREADS];
    for (speeds, shares) in speeds.iter_mut().zip(shares) {
        let [kernel, user] = shares.map(|share| Speed::new((share * clock / FULL_SPEED).max(1)));
        *speeds = Speeds { kernel, user };
    }
    speeds
}

/// Speed by number of busy siblings: two threads together run at twice `share`, and each further
/// doubling of threads adds as much again.
fn smt_speed(share: f64, alone: f64, busy_siblings: usize) -> u64 {
    let threads = (busy_siblings + 1) as f64;
    let core = 1.0 + (2.0 * share - 1.0) * threads.log2();
    ((alone * core / threads * FULL_SPEED as f64) as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reciprocal_divides_exactly() {
        for share in (1..=10_240).filter(|n| n % 7 == 1 || *n < 1100) {
            let speed = Speed::new(share);
            let large = [1 << 20, (1 << 52) - 1].map(|n: u64| n / share * share);
            let near = large.iter().flat_map(|&n| [n.saturating_sub(1), n, n + 1]);
            for nominal in (0..70).chain(near) {
                let wall = (nominal * FULL_SPEED).div_ceil(share);
                assert_eq!(speed.stretch(nominal), wall, "{nominal} at {share}");
            }
        }
    }
}
