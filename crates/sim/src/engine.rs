//! The simulated machine and its main loop: the earliest deadline decides which
//! CPU goes on; what it does then stands in the module of that step.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use reveille_machine::{CostModel, Machine};
use reveille_measure::{Counters, Latency, Ns, Observed, RunResult, RunSpec};
use reveille_policy::{CpuId, LlcShape, NONE, Policy, TaskId, Tunables, World, WorldShape, bits};
use reveille_workload::Program;

use crate::arrivals::Answers;
use crate::balance::Balancer;
use crate::bandwidth::{Bandwidth, GroupMoment};
use crate::channel::Channel;
use crate::clock::{Clock, NEVER};
use crate::clock_speed::Clocks;
use crate::code::Code;
use crate::contention::Line;
use crate::cpu::{Activity, Cpu, FULL_SPEED, Step, at};
use crate::fair::FairTunables;
use crate::message_cost::MessageCosts;
use crate::near::Near;
use crate::pelt::Decay;
use crate::release::Gate;
use crate::runqueue::RunQueue;
use crate::swqueue::SharedQueues;
use crate::sync::Mutex;
use crate::task::Task;

use crate::SimError;

/// The stop flag is looked at after this many events.
const STOP_CHECK_EVENTS: u64 = 4096;
/// Jiffies at the start of a run: any number above one second of any HZ.
const FIRST_JIFFY: u64 = 1 << 20;

/// A sleeping task's timer, on the CPU where it was armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timer {
    pub(crate) at: Ns,
    pub(crate) task: TaskId,
    pub(crate) number: u64,
    pub(crate) cpu: CpuId,
}

/// Time that a step takes: waiting in wall time, and work at full speed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Toll {
    pub(crate) stall: Ns,
    pub(crate) cost: Ns,
}

impl Toll {
    pub(crate) fn cost(cost: impl Into<Ns>) -> Toll {
        Toll { stall: 0, cost: cost.into() }
    }
}

impl std::ops::AddAssign for Toll {
    #[inline]
    fn add_assign(&mut self, more: Toll) {
        self.stall += more.stall;
        self.cost += more.cost;
    }
}

pub(crate) struct Sim<'a> {
    pub(crate) program: &'a Program,
    pub(crate) code: Code,
    pub(crate) cost: &'a CostModel,
    pub(crate) machine: &'a Machine,
    pub(crate) tunables: Tunables,
    pub(crate) fair: FairTunables,
    pub(crate) messages: MessageCosts,
    pub(crate) decay: Decay,
    pub(crate) near: Near,
    pub(crate) now: Ns,
    pub(crate) tick_ns: Ns,
    pub(crate) world: World,
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) channels: Vec<Channel>,
    /// Head of each list that tasks join.
    pub(crate) lists: Vec<TaskId>,
    pub(crate) mutexes: Vec<Mutex>,
    /// What tasks wait for that are released together.
    pub(crate) gate: Gate,
    /// Who has the lock that belongs to each CPU.
    pub(crate) cpu_locks: Vec<TaskId>,
    /// When the requests were sent that each task has not yet taken; empty if no role
    /// sends any.
    pub(crate) requests: Vec<VecDeque<Ns>>,
    pub(crate) clock: Clock,
    pub(crate) timers: BinaryHeap<Reverse<Timer>>,
    pub(crate) timer_number: u64,
    /// Reports to it are limited in rate (LOAD_AVG_RATELIMIT).
    pub(crate) rate_limited: bool,
    /// `tg->load_avg` of the session's task group, if it has one.
    pub(crate) group_line: Option<Line>,
    /// `sd_llc_shared` of each LLC: has_idle_cores.
    pub(crate) llc_lines: Vec<Line>,
    /// Shared wake queues (SWQUEUE).
    pub(crate) shared_queues: Option<Box<SharedQueues>>,
    pub(crate) balancer: Balancer,
    /// Task groups with quotas; nothing if there are none.
    pub(crate) bandwidth: Option<Box<Bandwidth>>,
    /// Speed of kernel work by the number of busy siblings.
    pub(crate) speeds: [u64; 8],
    /// The same for computing in user space.
    pub(crate) user_speeds: [u64; 8],
    pub(crate) clocks: Clocks,
    pub(crate) rng: Xoshiro256PlusPlus,
    noise: u64,
    pub(crate) counters: Counters,
    pub(crate) wakeup_latency: Latency,
    pub(crate) recorded_latency: Vec<Latency>,
    pub(crate) answers: Answers,
    pub(crate) operations: u64,
}

impl<'a> Sim<'a> {
    pub(crate) fn new(
        machine: &'a Machine,
        program: &'a Program,
        policy: &Policy,
        bandwidth: Option<Box<Bandwidth>>,
        spec: &RunSpec,
    ) -> Sim<'a> {
        let topology = &machine.topology;
        let n = topology.n_cpus();
        let tunables = policy.tunables(n, machine.hz);
        let mut llcs = vec![LlcShape { cores: Vec::new() }; topology.n_llcs()];
        for core in 0..topology.n_cores() {
            let threads = topology.core_cpus(core as u32).to_vec();
            let llc = topology.cpus()[threads[0] as usize].llc;
            llcs[llc as usize].cores.push(threads);
        }
        let fair = FairTunables::new(&tunables, n);
        let code = Code::new(program);
        let n_serving = if code.has_requests() { program.tasks.len() } else { 0 };
        let grouped = tunables.has(bits::AUTOGROUP);
        let mut world = World::new(&WorldShape { llcs });
        let place = |cpu: &CpuId| &topology.cpus()[*cpu as usize];
        let nodes = (0..topology.n_llcs()).map(|l| place(&topology.llc_cpus(l as u32)[0]).node);
        world.set_nodes(&nodes.collect::<Vec<_>>());
        if topology.n_clusters() < topology.n_cores() {
            world.set_clusters(&topology.cpus().iter().map(|p| p.cluster).collect::<Vec<_>>());
        }
        let wakes_when_freed = tunables.has(bits::PIPE_WAKE_FREED);
        let channel = |kind| {
            let mut channel = Channel::new(kind);
            channel.wakes_when_freed = wakes_when_freed;
            channel
        };
        Sim {
            program,
            code,
            cost: &machine.cost,
            machine,
            tunables,
            fair,
            messages: MessageCosts::new(&machine.cost),
            decay: Decay::new(),
            near: Near::new(machine),
            now: 0,
            tick_ns: 1_000_000_000 / Ns::from(machine.hz),
            world,
            cpus: (0..n).map(|_| Cpu::new(RunQueue::new(&fair))).collect(),
            tasks: Vec::with_capacity(program.tasks.len()),
            channels: program.channels.iter().map(|&kind| channel(kind)).collect(),
            lists: vec![NONE; program.n_lists as usize],
            mutexes: vec![Mutex::default(); program.n_locks as usize],
            gate: Gate::new(program),
            cpu_locks: vec![NONE; n],
            requests: vec![VecDeque::new(); n_serving],
            clock: Clock::new(n + 1 + usize::from(bandwidth.is_some())),
            timers: BinaryHeap::new(),
            timer_number: 0,
            rate_limited: tunables.has(bits::LOAD_AVG_RATELIMIT),
            group_line: grouped.then(|| Line::new(n)),
            llc_lines: (0..topology.n_llcs()).map(|_| Line::new(n)).collect(),
            shared_queues: None,
            balancer: Balancer::new(machine, &tunables),
            bandwidth,
            speeds: smt_speeds(machine.cost.smt_kernel_share, machine.cost.speed),
            user_speeds: smt_speeds(machine.cost.smt_share, machine.cost.speed),
            clocks: Clocks::new(machine),
            rng: Xoshiro256PlusPlus::seed_from_u64(spec.seed),
            noise: (machine.cost.noise * 1024.0) as u64,
            counters: Counters::default(),
            wakeup_latency: Latency::default(),
            recorded_latency: vec![Latency::default(); program.records.len()],
            answers: Answers::new(&program.arrivals),
            operations: 0,
        }
    }

    /// Runs warm-up and measured time; also returns what happened to groups, if that is noted.
    pub(crate) fn run(
        mut self,
        spec: &RunSpec,
        stop: &AtomicBool,
    ) -> Result<(RunResult, Vec<GroupMoment>), SimError> {
        self.start(spec);
        self.advance_to(spec.warmup_ns, stop)?;
        self.forget();
        let end = spec.warmup_ns + spec.duration_ns;
        self.advance_to(end, stop)?;
        let history = self.bandwidth.as_mut().and_then(|bandwidth| bandwidth.history.take());
        Ok((self.result(spec.duration_ns), history.unwrap_or_default()))
    }

    /// Serves every deadline before `end`.
    fn advance_to(&mut self, end: Ns, stop: &AtomicBool) -> Result<(), SimError> {
        let timers = self.cpus.len();
        let mut events = 0u64;
        loop {
            let (next, slot) = self.clock.next();
            if next >= end {
                if next >= NEVER {
                    let tasks = self.tasks.len();
                    return Err(SimError::Deadlock { at_ns: self.now, tasks });
                }
                self.now = end;
                return Ok(());
            }
            debug_assert!(next >= self.now, "an event in the past: {next} before {}", self.now);
            self.now = next;
            if slot < timers {
                self.cpu_event(slot as CpuId);
            } else if slot == timers {
                self.fire_timers();
            } else {
                self.fire_bandwidth_timers();
            }
            events += 1;
            if events % STOP_CHECK_EVENTS == 0 {
                if stop.load(Ordering::Relaxed) {
                    return Err(SimError::Interrupted);
                }
                #[cfg(debug_assertions)]
                self.check_invariants();
            }
        }
    }

    #[inline]
    fn cpu_event(&mut self, cpu: CpuId) {
        let c = &mut self.cpus[at(cpu)];
        if c.ipi_at == self.now {
            c.ipi_at = NEVER;
            self.ipi(cpu);
        } else if c.tick_at == self.now {
            self.tick(cpu);
        } else {
            debug_assert_eq!(c.end, self.now);
            c.finish(self.now);
            match c.step {
                Step::Op => self.op_end(cpu),
                Step::Commit { wakee, pick } => self.commit(cpu, wakee, pick),
                Step::IdleExit => self.idle_exit(cpu),
                Step::Drain => self.drain_ends(cpu),
                Step::Select { wakee, flags } => self.select(cpu, wakee, flags),
                Step::NewIdle => self.run_next(cpu, None, Toll::default()),
                Step::Idle => unreachable!("idle does not end by itself"),
            }
        }
        self.replan(cpu);
    }

    /// The CPU's plan has changed: its slot follows.
    #[inline]
    pub(crate) fn replan(&mut self, cpu: CpuId) {
        self.clock.set(at(cpu), self.cpus[at(cpu)].deadline());
    }

    /// Starts an activity of `cpu` now.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        cpu: CpuId,
        step: Step,
        toll: Toll,
        busy: Ns,
        until: Option<Ns>,
    ) {
        let c = &mut self.cpus[at(cpu)];
        c.step = step;
        c.activity = Activity::new(self.now, toll.stall, toll.cost, busy);
        c.activity.until = until.unwrap_or(0);
        c.plan_end();
    }

    /// `cpu` turns idle or busy: the speed of its siblings follows.
    #[inline]
    pub(crate) fn share_core(&mut self, cpu: CpuId, busy: bool) {
        if self.cpus[at(cpu)].busy_siblings == 0 {
            self.clocks.core_turns(self.near.socket(cpu), busy);
        }
        let width = self.world.smt_cpus(cpu).len();
        for k in 0..width {
            let sibling = CpuId::from(self.world.smt_cpus(cpu)[k]);
            if sibling == cpu {
                continue;
            }
            let c = &mut self.cpus[at(sibling)];
            if busy {
                c.busy_siblings += 1;
            } else {
                c.busy_siblings -= 1;
            }
            self.set_speed(sibling);
        }
    }

    /// The speed of `cpu` by its busy siblings and the clock of its socket.
    #[inline]
    pub(crate) fn set_speed(&mut self, cpu: CpuId) {
        let clock = self.clocks.of(self.near.socket(cpu));
        let c = &mut self.cpus[at(cpu)];
        let siblings = usize::from(c.busy_siblings);
        let speed = clock.scale(self.speeds[siblings]);
        let user_speed = clock.scale(self.user_speeds[siblings]);
        if (c.speed, c.user_speed) == (speed, user_speed) {
            return;
        }
        let active = c.step != Step::Idle;
        if active {
            c.settle(self.now);
        }
        (c.speed, c.user_speed) = (speed, user_speed);
        if active {
            c.plan_end();
            self.replan(cpu);
        }
    }

    /// Jiffies now.
    #[inline]
    pub(crate) fn jiffies(&self) -> u64 {
        FIRST_JIFFY + self.now / self.tick_ns
    }

    /// A cost with the variation that caches and interrupts give it.
    #[inline]
    pub(crate) fn varied(&mut self, ns: Ns) -> Ns {
        if self.noise == 0 {
            return ns;
        }
        let random = ((self.rng.next_u64() >> 32) * (2 * self.noise)) >> 32;
        ns * (1024 - self.noise + random) / 1024
    }

    /// Uniform below `limit`; 0 for a limit of 0.
    pub(crate) fn random_below(&mut self, limit: Ns) -> Ns {
        ((u128::from(self.rng.next_u64()) * u128::from(limit)) >> 64) as Ns
    }

    /// Exponentially distributed with this mean, in whole ns.
    pub(crate) fn exponential(&mut self, mean: Ns) -> Ns {
        // Of 53 random bits, and never 0, of which there is no logarithm.
        let uniform = ((self.rng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        (-uniform.ln() * mean as f64) as Ns
    }

    /// Closes the books of every CPU at the present time.
    fn close_books(&mut self) {
        let now = self.now;
        for cpu in &mut self.cpus {
            let idles = cpu.step == Step::Idle || cpu.leaves_idle();
            if idles && now > cpu.idle_task_from {
                self.counters.idle_task_ns += now - cpu.idle_task_from;
                cpu.idle_task_from = now;
            }
            if cpu.step == Step::Idle {
                cpu.account_idle(now);
            } else {
                cpu.settle(now);
            }
            let ahead = cpu.ahead(now);
            cpu.time.cost_ns -= ahead.cost_ns;
            cpu.time.idle_ns -= ahead.idle_ns;
        }
    }

    /// Ends warm-up: what was counted so far is forgotten.
    fn forget(&mut self) {
        self.close_books();
        let now = self.now;
        for cpu in &mut self.cpus {
            // What was accounted ahead belongs to the measured time.
            cpu.time = cpu.ahead(now);
        }
        self.forget_groups();
        self.counters = Counters::default();
        self.wakeup_latency = Latency::default();
        self.recorded_latency.fill(Latency::default());
        self.answers.forget();
        self.operations = 0;
    }

    fn result(mut self, elapsed_ns: Ns) -> RunResult {
        self.close_books();
        #[cfg(debug_assertions)]
        self.check_invariants();
        #[cfg(debug_assertions)]
        for (number, cpu) in self.cpus.iter().enumerate() {
            let sum = cpu.time.busy_ns + cpu.time.idle_ns + cpu.time.cost_ns;
            assert_eq!(sum, elapsed_ns, "time of CPU {number} is lost or counted twice");
        }
        let groups = self.group_results();
        RunResult {
            elapsed_ns,
            operations: self.operations,
            wakeup_latency: self.wakeup_latency,
            recorded_latency: self.recorded_latency,
            answers: self.answers.took_ns,
            observed: Observed::Everything,
            counters: self.counters,
            cpus: self.cpus.iter().map(|c| c.time).collect(),
            groups,
        }
    }

    pub(crate) fn set_flip_decay(&mut self, spec: &RunSpec) {
        // A ping-pong pair has settled long before anyone measures: half-way through
        // warm-up every task's second is over, and one flip is forgotten.
        let jiffy = FIRST_JIFFY + spec.warmup_ns / 2 / self.tick_ns;
        for task in 0..self.tasks.len() {
            self.world.task_mut(task as TaskId).wakee_flip_decay_j =
                jiffy - u64::from(self.tunables.hz);
        }
    }
}

/// Speed by busy siblings: two threads together do twice `share`, and each further
/// doubling of threads adds as much again.
fn smt_speeds(share: f64, alone: f64) -> [u64; 8] {
    std::array::from_fn(|busy_siblings| {
        let threads = (busy_siblings + 1) as f64;
        let core = 1.0 + (2.0 * share - 1.0) * threads.log2();
        ((alone * core / threads * FULL_SPEED as f64) as u64).max(1)
    })
}
