//! Distances between CPUs, and the cost of a cache line over each.

use std::num::NonZero;

use crate::ids::CpuVec;
use reveille_machine::{CostModel, CpuPlace, Distance, Machine};
use reveille_measure::Ns;
use reveille_policy::CpuId;

/// One-way transfer time of a cache line by distance.
#[derive(Clone, Copy, Debug)]
struct Transfer([Ns; 6]);

impl Transfer {
    fn new(cost: &CostModel) -> Transfer {
        Transfer([
            0,
            Ns::from(cost.line_smt_ns),
            Ns::from(cost.line_cluster_ns),
            Ns::from(cost.line_llc_ns),
            Ns::from(cost.line_socket_ns),
            Ns::from(cost.line_remote_ns),
        ])
    }

    #[inline]
    fn ns(&self, distance: Distance) -> Ns {
        self.0[distance as usize]
    }
}

/// Numbers of a CPU's socket, cache, cluster and core, the socket's in the highest bits: the first
/// in which two CPUs differ tells their distance.
#[derive(Clone, Copy)]
struct Spot(u64);

/// Bits of each number.
const PART_BITS: u32 = 16;

impl Spot {
    fn new(place: &CpuPlace) -> Spot {
        let parts = [place.socket, place.llc, place.cluster, place.core];
        Spot(parts.iter().fold(0, |spot, &part| (spot << PART_BITS) | u64::from(part as u16)))
    }

    #[inline]
    fn part(self, number: u32) -> u16 {
        (self.0 >> (number * PART_BITS)) as u16
    }
}

/// By the part in which two CPUs differ.
const DISTANCES: [Distance; 4] =
    [Distance::Cluster, Distance::Llc, Distance::Socket, Distance::Remote];

/// Switches to other tasks, besides the first, after which a task's data has left the private caches.
const COLD_AFTER: u32 = 6;

/// Distances within a machine, in the few bytes per CPU that the hot path can afford.
#[derive(Clone)]
pub(crate) struct Near {
    spots: CpuVec<Spot>,
    transfer: Transfer,
    cold: [Ns; 6],
    cold_shared: Ns,
    wakee_lines: Ns,
    handoff_lines: Ns,
    remote_enqueue_lines: Ns,
}

impl Near {
    pub(crate) fn new(machine: &Machine) -> Near {
        let cost = &machine.cost;
        Near {
            spots: machine.topology.cpus().iter().map(Spot::new).collect(),
            transfer: Transfer::new(cost),
            cold: [
                0,
                Ns::from(cost.cold_smt_ns),
                // A core's private caches are private in a cluster, too.
                Ns::from(cost.cold_llc_ns),
                Ns::from(cost.cold_llc_ns),
                Ns::from(cost.cold_socket_ns),
                Ns::from(cost.cold_remote_ns),
            ],
            cold_shared: Ns::from(cost.cold_shared_ns),
            wakee_lines: Ns::from(cost.wakee_lines),
            handoff_lines: Ns::from(cost.handoff_lines),
            remote_enqueue_lines: Ns::from(cost.remote_enqueue_lines),
        }
    }

    #[inline]
    pub(crate) fn distance(&self, a: CpuId, b: CpuId) -> Distance {
        if a == b {
            return Distance::Same;
        }
        match NonZero::new(self.spots[a].0 ^ self.spots[b].0) {
            None => Distance::Smt,
            Some(differ) => DISTANCES[(differ.ilog2() / PART_BITS) as usize],
        }
    }

    #[inline]
    pub(crate) fn llc(&self, cpu: CpuId) -> usize {
        usize::from(self.spots[cpu].part(2))
    }

    #[inline]
    pub(crate) fn socket(&self, cpu: CpuId) -> usize {
        usize::from(self.spots[cpu].part(3))
    }

    /// One-way transfer of a line.
    #[inline]
    pub(crate) fn line(&self, from: CpuId, to: CpuId) -> Ns {
        self.transfer.ns(self.distance(from, to))
    }

    /// [`Near::line`] as a closure for locks and lines.
    #[inline]
    pub(crate) fn lines(&self) -> impl Fn(CpuId, CpuId) -> Ns {
        |from, to| self.line(from, to)
    }

    /// Cache refill of a task that migrates from `from` to `to`.
    #[inline]
    pub(crate) fn cold(&self, from: CpuId, to: CpuId) -> Ns {
        self.cold[self.distance(from, to) as usize]
    }

    /// Cache refill of a task that its CPU last switched to `switches` ago. The second is the first to
    /// another task; two tasks that take turns leave each other's data in the cache.
    #[inline]
    pub(crate) fn cold_shared(&self, switches: u32) -> Ns {
        self.cold_shared * Ns::from(switches.saturating_sub(2).min(COLD_AFTER))
    }

    /// Transfer to the waker, `by`, of the lines of a wakee that last ran on `on`.
    #[inline]
    pub(crate) fn wakee(&self, on: CpuId, by: CpuId) -> Ns {
        self.wakee_lines * self.line(on, by)
    }

    /// Transfer of the task's, wait queue's and message's lines from the waker to a wakee on `to`.
    #[inline]
    pub(crate) fn handoff(&self, from: CpuId, to: CpuId) -> Ns {
        self.handoff_lines * self.line(from, to)
    }

    /// Transfer of the lines of `of`'s runqueue, besides its lock, for an enqueue by `by`.
    #[inline]
    pub(crate) fn remote_enqueue(&self, of: CpuId, by: CpuId) -> Ns {
        self.remote_enqueue_lines * self.line(of, by)
    }
}
