//! Distances between CPUs, and the cost of a cache line over each.

use crate::ids::CpuVec;
use reveille_machine::{CostModel, Distance, Machine};
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

#[derive(Clone, Copy)]
struct Spot {
    core: u16,
    cluster: u16,
    llc: u16,
    socket: u16,
}

/// Distances within a machine, in the few bytes per CPU that the hot path can afford.
#[derive(Clone)]
pub(crate) struct Near {
    spots: CpuVec<Spot>,
    transfer: Transfer,
    cold: [Ns; 6],
    handoff_lines: Ns,
    remote_enqueue_lines: Ns,
}

impl Near {
    pub(crate) fn new(machine: &Machine) -> Near {
        let cost = &machine.cost;
        Near {
            spots: machine
                .topology
                .cpus()
                .iter()
                .map(|c| Spot {
                    core: c.core as u16,
                    cluster: c.cluster as u16,
                    llc: c.llc as u16,
                    socket: c.socket as u16,
                })
                .collect(),
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
            handoff_lines: Ns::from(cost.handoff_lines),
            remote_enqueue_lines: Ns::from(cost.remote_enqueue_lines),
        }
    }

    #[inline]
    pub(crate) fn distance(&self, a: CpuId, b: CpuId) -> Distance {
        if a == b {
            return Distance::Same;
        }
        let (x, y) = (self.spots[a], self.spots[b]);
        if x.core == y.core {
            Distance::Smt
        } else if x.cluster == y.cluster {
            Distance::Cluster
        } else if x.llc == y.llc {
            Distance::Llc
        } else if x.socket == y.socket {
            Distance::Socket
        } else {
            Distance::Remote
        }
    }

    #[inline]
    pub(crate) fn llc(&self, cpu: CpuId) -> usize {
        usize::from(self.spots[cpu].llc)
    }

    #[inline]
    pub(crate) fn socket(&self, cpu: CpuId) -> usize {
        usize::from(self.spots[cpu].socket)
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
