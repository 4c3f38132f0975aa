//! The static part of a machine: costs, distances, speeds, and the lines that all CPUs share.

use reveille_machine::{CostModel, Distance, IdleState, Machine};
use reveille_measure::Ns;
use reveille_policy::CpuId;

use crate::hw::clock_speed::Clocks;
use crate::hw::contention::Line;
use crate::hw::distance::Near;

#[derive(Clone)]
pub(crate) struct Hardware<'a> {
    pub(crate) cost: &'a CostModel,
    pub(crate) idle_states: &'a [IdleState],
    pub(crate) near: Near,
    pub(crate) clocks: Clocks,
    /// A search's look at a CPU of its LLC, and of another.
    pub(crate) looks: [Ns; 2],
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
            looks: [cost.line_llc_ns, cost.line_socket_ns]
                .map(|line| (f64::from(line) * cost.scan_lines).round() as Ns),
            group_line: grouped.then(|| group_line(machine)),
            llc_lines: (0..machine.topology.n_llcs()).map(|_| Line::new(n_cpus)).collect(),
        }
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

    /// The switch from the idle task up to the pick.
    pub(crate) fn half_switch_idle_ns(&self) -> Ns {
        Ns::from(self.cost.switch_idle_ns) / 2
    }
}

/// A memory node of several caches is home to lines outside of them all.
fn group_line(machine: &Machine) -> Line {
    let topology = &machine.topology;
    let line = Line::new(topology.n_cpus());
    match topology.n_llcs() > topology.n_nodes() {
        true => line.passed_on_in(topology.cpus().iter().map(|place| place.llc)),
        false => line,
    }
}
