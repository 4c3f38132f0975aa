//! Random machines in random states, as the reference sees them and as a [`World`]:
//! mostly states that a kernel can be in, and some that it cannot.

use proptest::prelude::*;
use reveille_policy::{
    CpuId, LlcShape, ScanState, TaskId, Tunables, WAKE_ALONE, WAKE_IN_TASK, WAKE_SYNC, World,
    WorldShape,
};

use crate::policies::{scan, tunables};
use crate::reference::{Cpu, History, Llc, Machine, Task, Wakeup};
use crate::variants::Scan;

/// What a random machine is made of: small numbers, so that failures shrink.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Cores of each LLC.
    pub llcs: Vec<usize>,
    pub smt: usize,
    pub numbering: Numbering,
    /// The last core of each LLC has one thread only.
    pub mixed_cores: bool,
    /// Percent of CPUs that are available_idle.
    pub idle_pct: u64,
    /// States that no kernel is in, too.
    pub odd: bool,
    /// Baseline and edits; by dice if empty.
    pub policy: &'static str,
    /// Everything else.
    pub seed: u64,
}

#[derive(Clone, Copy, Debug)]
pub enum Numbering {
    /// First threads of all cores, then second ones: as x86 firmware numbers them.
    Split,
    /// Threads of a core stand together.
    Adjacent,
    /// By dice.
    Shuffled,
}

/// A state, and the wakeup to decide in it.
pub struct Scene {
    pub machine: Machine,
    pub wakeup: Wakeup,
    pub tunables: Tunables,
}

impl Recipe {
    /// Recipes of 1 to 3 LLCs with up to 150 CPUs each, or more and smaller ones, under any
    /// features.
    pub fn any() -> impl Strategy<Value = Recipe> {
        Recipe::under("")
    }

    /// A state under one policy: baseline and edits.
    pub fn under(policy: &'static str) -> impl Strategy<Value = Recipe> {
        let cpus = prop_oneof![4 => 1..20usize, 3 => 20..100usize, 2 => 100..=150usize];
        let few = prop::collection::vec(cpus, 1..=3);
        let many = prop::collection::vec(1..8usize, 4..=12);
        (
            prop_oneof![5 => few, 1 => many],
            prop::sample::select(vec![1, 2, 2, 4]),
            prop::sample::select(vec![Numbering::Split, Numbering::Adjacent, Numbering::Shuffled]),
            prop::bool::weighted(0.1),
            prop::sample::select(vec![0, 0, 1, 3, 10, 50, 90]),
            prop::bool::weighted(0.25),
            any::<u64>(),
        )
            .prop_map(move |(cpus, smt, numbering, mixed_cores, idle_pct, odd, seed)| {
                Recipe {
                    llcs: cpus.into_iter().map(|n| n.div_ceil(smt).min(150 / smt)).collect(),
                    smt,
                    numbering,
                    mixed_cores,
                    idle_pct,
                    odd,
                    policy,
                    seed,
                }
            })
    }

    /// The state.
    pub fn scene(&self) -> Scene {
        let mut dice = Dice(self.seed);
        let mut machine = self.topology(&mut dice);
        let n = machine.cpus.len();
        let this_cpu = dice.below(n);
        let near = machine.llcs[machine.cpus[this_cpu].llc].cpus.clone();
        let core = machine.cpus[this_cpu].core.clone();
        let place = |dice: &mut Dice| match dice.below(8) {
            0 => this_cpu,
            1 => core[dice.below(core.len())],
            2..=5 => near[dice.below(near.len())],
            _ => dice.below(n),
        };
        let tunables = tunables(&mut dice, n, self.policy);
        let now_j = 100_000 + dice.below(1000) as u64;
        let weight = near.len();
        let calm = dice.one_in(3); // pairs of short tasks, as SIS_SHORT looks for
        for id in 0..6 {
            let prev_cpu = place(&mut dice);
            let recent_used_cpu = place(&mut dice);
            let task = Task {
                history: History {
                    wakee_flips: flips(&mut dice, weight),
                    decay_j: now_j - dice.below(2 * tunables.hz as usize + 2) as u64,
                    last_wakee: [None, Some(0), Some(0), Some(3)][dice.below(4)],
                    recent_used_cpu,
                },
                dur_avg_ns: duration(&mut dice, tunables.min_granularity_ns),
                prev_cpu,
                load: load(&mut dice),
                allowed: vec![true; n],
                per_cpu_kthread: id > 0 && dice.one_in(6),
            };
            machine.tasks.push(if calm { calmed(task) } else { task });
        }
        let waker = self.states(&mut machine, &mut dice, this_cpu);
        if calm && dice.one_in(2) {
            machine.tasks[0].history.last_wakee = waker; // as SIS_CURRENT looks for
        }
        let hot = [2, 2, 8, 1, usize::MAX][dice.below(5)];
        for cpu in &mut machine.cpus {
            cpu.scan = scan(&mut dice, now_j);
            cpu.cache_hot = dice.one_in(hot);
        }
        machine.tasks[0].allowed = allowed(&mut dice, &machine, this_cpu);
        for llc in &mut machine.llcs {
            let one_in = [1, 2, 2, 8, usize::MAX][dice.below(5)];
            llc.icpus = llc.cpus.iter().copied().filter(|_| dice.one_in(one_in)).collect();
        }
        let wakeup = Wakeup {
            wakee: 0,
            waker,
            this_cpu,
            sync: dice.one_in(2),
            alone: dice.one_in(8),
            // The idle task wakes others from interrupts only.
            in_task: waker.is_some() && !dice.one_in(4),
            now_j,
        };
        Scene { machine, wakeup, tunables }
    }

    fn topology(&self, dice: &mut Dice) -> Machine {
        let mut cores: Vec<(usize, usize)> = Vec::new(); // LLC, threads
        for (llc, &n) in self.llcs.iter().enumerate() {
            for core in 0..n {
                let single = self.mixed_cores && n > 1 && core + 1 == n;
                cores.push((llc, if single { 1 } else { self.smt }));
            }
        }
        // (core, thread) of each CPU number.
        let mut numbers: Vec<(usize, usize)> =
            cores.iter().enumerate().flat_map(|(c, &(_, w))| (0..w).map(move |t| (c, t))).collect();
        match self.numbering {
            Numbering::Adjacent => {}
            Numbering::Split => numbers.sort_by_key(|&(core, thread)| (thread, core)),
            Numbering::Shuffled => dice.shuffle(&mut numbers),
        }
        let mut machine = Machine {
            cpus: Vec::new(),
            llcs: vec![
                Llc {
                    cpus: Vec::new(),
                    has_idle_cores: false,
                    nr_idle_scan: 0,
                    icpus: Vec::new(),
                    node: 0,
                };
                self.llcs.len()
            ],
            tasks: Vec::new(),
            has_clusters: dice.one_in(2),
        };
        let nodes = 1 + dice.below(2);
        for llc in &mut machine.llcs {
            llc.node = dice.below(nodes);
        }
        // Clusters of some cores each.
        let per_cluster = 1 + dice.below(5);
        let mut clusters = vec![0; cores.len()];
        for core in 1..cores.len() {
            let begins = cores[core].0 != cores[core - 1].0 || core % per_cluster == 0;
            clusters[core] = clusters[core - 1] + usize::from(begins);
        }
        let mut threads = vec![Vec::new(); cores.len()];
        for (cpu, &(core, _)) in numbers.iter().enumerate() {
            threads[core].push(cpu);
            machine.llcs[cores[core].0].cpus.push(cpu);
        }
        for &(core, _) in &numbers {
            machine.cpus.push(Cpu {
                available_idle: false,
                sched_idle: false,
                cache_hot: false,
                nr_running: 0,
                curr: None,
                load: 0,
                capacity: 1024,
                scan: Scan::default(),
                llc: cores[core].0,
                core: threads[core].clone(),
                cluster: clusters[core],
            });
        }
        machine
    }

    /// What runs on every CPU, and what the LLCs remember. Returns the waker.
    fn states(&self, machine: &mut Machine, dice: &mut Dice, this_cpu: usize) -> Option<usize> {
        for (index, cpu) in machine.cpus.iter_mut().enumerate() {
            cpu.load = load(dice);
            if dice.one_in(4) {
                cpu.capacity = dice.below(1025) as u16;
            }
            let waking = index == this_cpu && !dice.one_in(5);
            match dice.below(100) as u64 {
                p if p < self.idle_pct && !waking => cpu.available_idle = true,
                p if p % 25 == 24 && !waking => {} // idle, with a wake-up pending
                _ => {
                    cpu.curr = Some(1 + dice.below(5));
                    cpu.nr_running = 1 + [0, 0, 0, 1, 2][dice.below(5)];
                    cpu.sched_idle = dice.one_in(30);
                }
            }
            if self.odd {
                cpu.available_idle ^= dice.one_in(10);
                cpu.sched_idle ^= dice.one_in(10);
                if dice.one_in(10) {
                    cpu.nr_running = dice.below(3) as u32;
                }
                if dice.one_in(10) {
                    cpu.curr = None;
                }
            }
        }
        for llc in &mut machine.llcs {
            llc.has_idle_cores = dice.one_in(2);
            llc.nr_idle_scan = match dice.below(4) {
                0 => dice.below(4) as u32,
                1 => llc.cpus.len() as u32,
                _ => dice.below(llc.cpus.len() + 1) as u32,
            };
        }
        machine.cpus[this_cpu].curr
    }
}

/// When decisions are taken.
const NOW: u64 = 1_000_000;

impl Scene {
    /// The state as the policy's input.
    pub fn world(&self) -> World {
        let machine = &self.machine;
        let llcs = (0..machine.llcs.len()).map(|llc| LlcShape {
            cores: machine
                .cpus
                .iter()
                .enumerate()
                .filter(|(index, cpu)| cpu.llc == llc && cpu.core[0] == *index)
                .map(|(_, cpu)| cpu.core.iter().map(|&c| CpuId::at(c)).collect())
                .collect(),
        });
        let mut world = World::new(&WorldShape { llcs: llcs.collect() });
        world.set_now(NOW);
        world.set_nodes(&machine.llcs.iter().map(|llc| llc.node as u32).collect::<Vec<_>>());
        if machine.has_clusters {
            let clusters = machine.cpus.iter().map(|cpu| cpu.cluster as u32);
            world.set_clusters(&clusters.collect::<Vec<_>>());
        }
        for (id, task) in machine.tasks.iter().enumerate() {
            let mut copy = reveille_policy::Task::new(TaskId::at(id), CpuId::at(task.prev_cpu));
            copy.wakee_flip_decay_j = task.history.decay_j;
            copy.wakee_flips = task.history.wakee_flips;
            copy.last_wakee = task.history.last_wakee.map_or(TaskId::NONE, TaskId::at);
            copy.recent_used_cpu = CpuId::at(task.history.recent_used_cpu);
            copy.dur_avg_ns = task.dur_avg_ns as i64;
            copy.load_avg = task.load;
            copy.flags = u32::from(task.per_cpu_kthread);
            if task.allowed.contains(&false) {
                copy.affinity = world.add_affinity(|cpu| task.allowed[cpu.index()]);
            }
            world.add_task(copy);
        }
        for (index, cpu) in machine.cpus.iter().enumerate() {
            let index = CpuId::at(index);
            world.set_available_idle(index, cpu.available_idle);
            world.expect_back(index, NOW + u64::from(cpu.cache_hot));
            world.set_sched_idle(index, cpu.sched_idle);
            world.set_nr_running(index, cpu.nr_running);
            world.set_curr(index, cpu.curr.map_or(TaskId::NONE, TaskId::at));
            world.set_cfs_load(index, cpu.load);
            world.set_capacity(index, cpu.capacity);
            *world.scan_state_mut(index) = ScanState {
                avg_idle_ns: cpu.scan.avg_idle,
                avg_scan_cost_ns: cpu.scan.avg_scan_cost,
                wake_avg_idle_ns: cpu.scan.wake_avg_idle,
                wake_stamp_j: cpu.scan.wake_stamp,
            };
        }
        for (index, llc) in machine.llcs.iter().enumerate() {
            world.set_has_idle_cores(index, llc.has_idle_cores);
            world.set_nr_idle_scan(index, llc.nr_idle_scan);
            for &cpu in &llc.cpus {
                world.set_in_filter(CpuId::at(cpu), llc.icpus.contains(&cpu));
            }
        }
        world
    }

    /// WF_* flags of the wakeup.
    pub fn flags(&self) -> u32 {
        let sync = if self.wakeup.sync { WAKE_SYNC } else { 0 };
        let in_task = if self.wakeup.in_task { WAKE_IN_TASK } else { 0 };
        let alone = if self.wakeup.alone { WAKE_ALONE } else { 0 };
        sync | in_task | alone
    }
}

/// Around the numbers at which wake_wide() turns.
fn flips(dice: &mut Dice, weight: usize) -> u32 {
    let around = match dice.below(6) {
        0 | 1 => 0,
        2 => dice.below(4),
        3 => (weight + dice.below(5)).saturating_sub(2),
        4 => (weight * weight + dice.below(2 * weight + 5)).saturating_sub(weight + 2),
        _ => dice.below(10_000),
    };
    around as u32
}

/// Around the bound of SIS_CURRENT.
const HALF_MS: std::ops::Range<u64> = 499_998..500_003;

/// Around the eighth of the minimal granularity, or the 0.5 ms, that divide short from long.
fn duration(dice: &mut Dice, min_granularity_ns: u64) -> u64 {
    match dice.below(7) {
        0 => 0,
        1 => min_granularity_ns / 8 + dice.below(5) as u64 - 2,
        2 => dice.below(10_000_000) as u64,
        3 => HALF_MS.start + dice.below(5) as u64,
        _ => 1 + dice.below(100_000) as u64,
    }
}

/// A task that wakes task 0 only, and sleeps soon or within about 0.5 ms.
fn calmed(mut task: Task) -> Task {
    task.history.wakee_flips = 0;
    task.history.last_wakee = Some(0);
    if !HALF_MS.contains(&task.dur_avg_ns) {
        task.dur_avg_ns = task.dur_avg_ns.min(50_000);
    }
    task
}

fn load(dice: &mut Dice) -> u32 {
    match dice.below(4) {
        0 => 0,
        1 => 1024,
        2 => dice.below(1025) as u32,
        _ => dice.below(100_000) as u32,
    }
}

/// All CPUs, or some; rarely without the previous CPU or this one, or just one.
fn allowed(dice: &mut Dice, machine: &Machine, this_cpu: usize) -> Vec<bool> {
    let n = machine.cpus.len();
    let prev = machine.tasks[0].prev_cpu;
    let mut set = vec![true; n];
    match dice.below(8) {
        0 => set = (0..n).map(|_| dice.one_in(2)).collect(),
        1 => set = (0..n).map(|_| dice.one_in(20)).collect(),
        2 => set = (0..n).map(|_| !dice.one_in(10)).collect(),
        3 => set = machine.cpus.iter().map(|c| c.llc == machine.cpus[prev].llc).collect(),
        4 => set[this_cpu] = false,
        _ => {}
    }
    if !dice.one_in(10) || !set.contains(&true) {
        set[prev] = true;
    }
    set
}

/// SplitMix64: the whole state follows from one number.
pub struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.roll() % n as u64) as usize
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}
