//! How a run begins: tasks are forked one after the other and placed where the
//! fork's slow path would put them, on a machine that has been idle for long.

use std::collections::VecDeque;

use crate::ids::{Known, TaskVec};
use reveille_machine::{Machine, Topology};
use reveille_measure::{Ns, RunSpec};
use reveille_policy::{CpuId, LlcShape, Policy, TaskId, World, WorldShape, bits};
use reveille_workload::Program;

use crate::chance::Chance;
use crate::followers::Followers;
use crate::hw::clock::Agenda;
use crate::hw::cpu::Cpu;
use crate::hw::hardware::Hardware;
use crate::measured::Measured;
use crate::rq::groups::Bandwidth;
use crate::rq::pelt::{Decay, WINDOW_NS};
use crate::rq::runqueue::RunQueue;
use crate::rq::shared::SharedQueues;
use crate::rules::Rules;
use crate::sched::background::Background;
use crate::sched::balancer::Balancer;
use crate::sched::by_file::ByFile;
use crate::sched::gathering::Gathering;
use crate::sim::{FIRST_JIFFY, Sim};
use crate::tasks::code::Code;
use crate::tasks::task::Task;
use crate::tasks::work::Work;

/// Where the program runs that forks all tasks. It is no task itself and takes no time.
const FORKER: CpuId = CpuId(0);

/// Tasks that all start at once wake each other as in a long run after this time: some ten rounds of
/// twenty tasks on a CPU.
const TURNS_NS: Ns = 600_000_000;

/// In warm-up tasks take turns at most so many times as fast.
const MAX_PACE: u64 = 8;

/// Time between two forks of the starting program.
const FORK_INTERVAL_NS: Ns = 20_000;

/// All tasks have been forked after this share of the warm-up, however many they are.
const FORK_SHARE_OF_WARMUP: Ns = 8;

impl<'a> Sim<'a> {
    pub(crate) fn new(
        machine: &'a Machine,
        program: &'a Program,
        code: &'a Code,
        policy: &Policy,
        bandwidth: Option<Box<Bandwidth>>,
        spec: &RunSpec,
    ) -> Sim<'a> {
        let n_cpus = machine.topology.n_cpus();
        let rules = Rules::new(policy, machine);
        let world = world(&machine.topology);
        Sim {
            now: 0,
            warmed_up: false,
            hw: Hardware::new(machine, rules.has(bits::AUTOGROUP)),
            agenda: Agenda::new(n_cpus),
            cpus: (0..n_cpus).map(|_| Cpu::new(RunQueue::new(&rules.fair))).collect(),
            tasks: TaskVec::new(),
            work: Work::new(program, code, machine, &rules.tunables),
            balancer: Balancer::new(machine, &rules),
            group_load: 0,
            gathering: Gathering::new(machine, program, &rules, FIRST_JIFFY),
            shared_queues: SharedQueues::new(&rules.tunables, &world),
            bandwidth,
            followers: Followers::default(),
            file: ByFile::new(policy),
            unseen: VecDeque::new(),
            chance: Chance::new(spec.seed, machine.cost.noise),
            background: Background::new(
                spec.seed,
                machine.cost.background_wakes,
                rules.tick_ns,
                n_cpus,
                program.tasks.len(),
            ),
            measured: Measured::new(program),
            world,
            rules,
        }
    }
}

/// The machine as placement decisions see it.
#[allow(unsafe_code)]
fn world(topology: &Topology) -> Known {
    let mut llcs = vec![LlcShape { cores: Vec::new() }; topology.n_llcs()];
    for core in 0..topology.n_cores() {
        let threads: Vec<CpuId> =
            topology.core_cpus(core as u32).iter().map(|&c| CpuId(c)).collect();
        let llc = topology.cpus()[threads[0].index()].llc;
        llcs[llc as usize].cores.push(threads);
    }
    let mut world = World::new(&WorldShape { llcs });
    let node = |llc: usize| topology.cpus()[topology.llc_cpus(llc as u32)[0] as usize].node;
    world.set_nodes(&(0..topology.n_llcs()).map(node).collect::<Vec<_>>());
    if topology.n_clusters() < topology.n_cores() {
        world.set_clusters(&topology.cpus().iter().map(|p| p.cluster).collect::<Vec<_>>());
    }
    // SAFETY: numbers in use are those of the topology and of added tasks, as in ids.rs.
    unsafe { world.trust() }
}

/// What `act` finds with so many pairs of context_switch1 under v6.4, forked but not yet run.
#[cfg(test)]
pub(crate) fn with_pairs<R>(pairs: u64, act: impl FnOnce(&mut Sim) -> R) -> R {
    with_pairs_under(&Policy::baseline("v6.4").unwrap(), pairs, act)
}

#[cfg(test)]
pub(crate) fn with_pairs_under<R>(
    policy: &Policy,
    pairs: u64,
    act: impl FnOnce(&mut Sim) -> R,
) -> R {
    let machine = reveille_machine::load("icx-2s32c").unwrap();
    let workload = reveille_workload::find("context_switch1").unwrap();
    let program = workload.build(pairs, &std::collections::BTreeMap::new()).unwrap();
    let code = Code::new(&program);
    let spec = RunSpec { seed: 1, warmup_ns: 1_000_000, duration_ns: 1_000_000 };
    let mut sim = Sim::new(&machine, &program, &code, policy, None, &spec);
    sim.start(&spec);
    act(&mut sim)
}

#[cfg(test)]
impl Sim<'_> {
    /// Lets time pass.
    pub(crate) fn pass(&mut self, time: Ns) {
        let (stop, mut together) = (std::sync::atomic::AtomicBool::new(false), Default::default());
        self.advance_to(self.now + time, &stop, &mut together).unwrap();
    }

    /// Lets time pass in steps until `find` finds what it looks for.
    pub(crate) fn pass_until<T>(&mut self, step: Ns, find: impl Fn(&Self) -> Option<T>) -> T {
        loop {
            self.pass(step);
            if let Some(found) = find(self) {
                return found;
            }
        }
    }
}

impl Sim<'_> {
    /// Forks every task of the program.
    pub(crate) fn start(&mut self, spec: &RunSpec) {
        self.spread_balance_phases(spec.warmup_ns);
        // At the kernel's pace a CPU that is busy from the start would seem 80% busy after 75 ms,
        // and tasks that start together would still take turns by whole slices.
        let settled = self.balancer.settled_ns;
        self.rules.decay = Decay::forgetting_within(settled);
        self.rules.pace = (TURNS_NS / settled.max(1)).clamp(1, MAX_PACE);
        let now_j = self.jiffies();
        for cpu in self.cpus.ids() {
            self.world.scan_state_mut(cpu).wake_stamp_j = now_j;
            // rq_clock_pelt() leaves out interrupts, so that CPUs drift apart.
            self.cpus[cpu].window_phase = self.chance.below(WINDOW_NS);
            self.set_speed(cpu);
        }
        for llc in 0..self.world.n_llcs() {
            // An idle machine has been balanced often: the whole LLC may be searched.
            let weight = self.world.llc_weight(llc);
            self.world.set_nr_idle_scan(llc, weight);
            let smt = self.world.smt_cpus(CpuId::from(self.world.llc_cpus(llc)[0])).len() > 1;
            self.world.set_has_idle_cores(llc, smt);
        }
        let n = self.work.program.tasks.len() as Ns;
        let interval =
            FORK_INTERVAL_NS.min(spec.warmup_ns / FORK_SHARE_OF_WARMUP / n.max(1)).max(1);
        for (number, &task) in self.work.program.tasks.iter().enumerate() {
            let id = TaskId::at(number);
            self.world.add_task(reveille_policy::Task::new(id, FORKER));
            let first_op = self.work.code.begin(task.role) + task.first_op;
            self.tasks.push(Task::new(task, first_op, FORKER));
            self.fork(id, FORKER, 1 + number as Ns * interval);
        }
        self.set_flips(spec);
        self.agenda.replan_timers();
        self.start_bandwidth();
    }

    /// A ping-pong pair has settled long before anyone measures: half-way through warm-up every task's
    /// second is over, and the flip of its first wakeup is forgotten. Interrupts have left others.
    fn set_flips(&mut self, spec: &RunSpec) {
        let jiffy = FIRST_JIFFY + spec.warmup_ns / 2 / self.rules.tick_ns;
        for task in self.tasks.ids() {
            let memory = self.world.task_mut(task);
            memory.wakee_flip_decay_j = jiffy - u64::from(self.rules.tunables.hz);
            // Two, and one for the task's first wakeup, are halved to one there. A higher count would
            // matter to wake_wide() alone, and is left out.
            memory.wakee_flips = if self.background.has_hit() { 2 } else { 0 };
        }
    }
}
