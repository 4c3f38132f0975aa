//! The static part of a machine: costs, distances, speeds, and the lines that all CPUs share.

use reveille_machine::{CostModel, Distance, IdleState, Machine};
use reveille_measure::Ns;
use reveille_policy::CpuId;

use crate::hw::clock_speed::Clocks;
use crate::hw::contention::Line;
use crate::hw::cpu::FULL_SPEED;
use crate::hw::distance::Near;

pub(crate) struct Hardware<'a> {
    pub(crate) cost: &'a CostModel,
    pub(crate) idle_states: &'a [IdleState],
    pub(crate) near: Near,
    pub(crate) clocks: Clocks,
    /// Speed of kernel work by the number of busy siblings.
    speeds: [u64; 8],
    /// Speed of user space by the number of busy siblings; its times are those of the machine
    /// itself.
    user_speeds: [u64; 8],
    /// `tg->load_avg` of the session's task group, if it has one.
    pub(crate) group_line: Option<Line>,
    /// `sd_llc_shared` of each LLC: has_idle_cores.
    pub(crate) llc_lines: Vec<Line>,
}

impl<'a> Hardware<'a> {
    /// `grouped` means that the session has a task group.
    pub(crate) fn new(machine: &'a Machine, grouped: bool) -> Hardware<'a> {
        let (cost, n_cpus) = (&machine.cost, machine.topology.n_cpus());
        Hardware {
            cost,
            idle_states: &machine.idle,
            near: Near::new(machine),
            clocks: Clocks::new(machine),
            speeds: smt_speeds(cost.smt_kernel_share, cost.speed),
            user_speeds: smt_speeds(cost.smt_share, 1.0),
            group_line: grouped.then(|| Line::new(n_cpus)),
            llc_lines: (0..machine.topology.n_llcs()).map(|_| Line::new(n_cpus)).collect(),
        }
    }

    /// Speeds of kernel work and user space on `cpu` with this many busy siblings.
    #[inline]
    pub(crate) fn speeds(&self, cpu: CpuId, busy_siblings: u8) -> (u64, u64) {
        let clock = self.clocks.of(self.near.socket(cpu));
        let siblings = usize::from(busy_siblings);
        (clock.scale(self.speeds[siblings]), clock.scale(self.user_speeds[siblings]))
    }

    /// Time from sending an interrupt to its arrival.
    pub(crate) fn ipi_flight(&self, cpu: CpuId, dst: CpuId) -> Ns {
        let extra = match self.near.distance(cpu, dst) {
            Distance::Remote => self.cost.ipi_remote_ns,
            _ => 0,
        };
        Ns::from(self.cost.ipi_flight_ns) + Ns::from(extra)
    }

    /// Kernel work of an enqueue or dequeue in the session's task group.
    #[inline]
    pub(crate) fn group_level_ns(&self) -> Ns {
        if self.group_line.is_some() { Ns::from(self.cost.group_level_ns) } else { 0 }
    }

    /// Kernel work of one enqueue.
    #[inline]
    pub(crate) fn enqueue_work(&self) -> Ns {
        Ns::from(self.cost.enqueue_ns) + self.group_level_ns()
    }
}

/// Speed by number of busy siblings: two threads together run at twice `share`, and each further
/// doubling of threads adds as much again.
fn smt_speeds(share: f64, alone: f64) -> [u64; 8] {
    std::array::from_fn(|busy_siblings| {
        let threads = (busy_siblings + 1) as f64;
        let core = 1.0 + (2.0 * share - 1.0) * threads.log2();
        ((alone * core / threads * FULL_SPEED as f64) as u64).max(1)
    })
}
