//! All CPUs, caches and tasks that decisions read, and the safe way to ask for one.

use crate::array::Array;
use crate::cache_hot::Sleep;
use crate::state::{LLC_WORDS, Pick, RawWorld, ScanState, Task, WorldCpu, WorldLlc};
use crate::{CpuId, Ns, TaskId, Tunables, ffi};

/// Topology of a world: who shares a cache and who shares a core.
#[derive(Clone, Debug)]
pub struct WorldShape {
    /// The last-level caches; together they hold every CPU once.
    pub llcs: Vec<LlcShape>,
}

/// One last-level cache.
#[derive(Clone, Debug)]
pub struct LlcShape {
    /// Its cores, each the CPU numbers of its hardware threads.
    pub cores: Vec<Vec<CpuId>>,
}

/// State of all CPUs, LLCs and tasks that decisions read. Unless `CHECKED`, it trusts the numbers of
/// CPUs and tasks that it is given: see [`World::trust`].
pub struct World<const CHECKED: bool = true> {
    pub(crate) parts: Parts,
    /// All of it as C code reads it: see [`World::relink`].
    raw: RawWorld,
}

#[derive(Clone, Default)]
pub(crate) struct Parts {
    pub(crate) cpus: Array<WorldCpu>,
    pub(crate) llcs: Array<WorldLlc>,
    pub(crate) tasks: Array<Task>,
    scans: Array<ScanState>,
    pub(crate) hot_until: Array<Ns>,
    /// Of each task ([`World::fell_asleep`]).
    pub(crate) sleeps: Vec<Sleep>,
    llc_cpus: Array<u16>,
    smt_cpus: Array<u16>,
    allowed: Array<u64>,
    /// Positions in their LLC of each cluster's CPUs; empty without clusters.
    clusters: Array<[u64; LLC_WORDS]>,
    n_affinities: u32,
    smt_active: bool,
}

/// Are numbers checked?
const fn checks(checked: bool) -> bool {
    checked || cfg!(debug_assertions)
}

#[inline]
#[allow(unsafe_code)]
fn at<const CHECKED: bool, T>(items: &[T], index: usize) -> &T {
    // SAFETY: the caller of `World::trust` vouches for the index.
    if checks(CHECKED) { &items[index] } else { unsafe { items.get_unchecked(index) } }
}

#[inline]
#[allow(unsafe_code)]
fn at_mut<const CHECKED: bool, T>(items: &mut [T], index: usize) -> &mut T {
    // SAFETY: as above.
    if checks(CHECKED) { &mut items[index] } else { unsafe { items.get_unchecked_mut(index) } }
}

/// Threads of a core that has none yet.
const UNPLACED: u16 = 0;

impl World {
    /// A world of idle CPUs without tasks. Panics if the shape does not hold the
    /// CPUs 0..n once each, or an LLC has more than 4096 CPUs, a core more than 8.
    pub fn new(shape: &WorldShape) -> World {
        let n: usize = shape.llcs.iter().flat_map(|l| &l.cores).map(Vec::len).sum();
        assert!(n > 0 && n <= 1 << 16, "a world has 1 to 65536 CPUs");
        let unset = WorldCpu {
            curr: TaskId::NONE,
            capacity: 1024,
            available_idle: 1,
            smt_width: UNPLACED,
            ..WorldCpu::default()
        };
        let parts = Parts {
            cpus: vec![unset; n].into(),
            scans: vec![ScanState::default(); n].into(),
            hot_until: vec![0; n].into(),
            smt_active: shape.llcs.iter().flat_map(|l| &l.cores).any(|core| core.len() > 1),
            ..Parts::default()
        };
        let mut world = World { parts, raw: RawWorld::default() };
        for (llc, llc_shape) in shape.llcs.iter().enumerate() {
            world.add_llc(llc as u16, llc_shape);
        }
        assert!(
            world.parts.cpus.iter().all(|c| c.smt_width != UNPLACED),
            "CPU numbers are not dense"
        );
        world.add_affinity(|_| true);
        world
    }

    fn add_llc(&mut self, llc: u16, shape: &LlcShape) {
        let mut members: Vec<CpuId> = shape.cores.iter().flatten().copied().collect();
        members.sort_unstable();
        assert!(members.len() <= LLC_WORDS * 64, "an LLC has at most 4096 CPUs");
        for core in &shape.cores {
            assert!((1..=8).contains(&core.len()), "a core has 1 to 8 threads");
            let mut threads = core.clone();
            threads.sort_unstable();
            let first = self.parts.smt_cpus.len() as u16;
            for &cpu in &threads {
                let state = &mut self.parts.cpus[cpu.index()];
                assert!(state.smt_width == UNPLACED, "CPU {cpu} stands in two cores");
                state.llc = llc;
                state.smt_first = first;
                state.smt_width = threads.len() as u16;
                self.parts.smt_cpus.push(cpu.0 as u16);
            }
        }
        let mut entry = WorldLlc {
            usable: [0; LLC_WORDS],
            filter: [0; LLC_WORDS],
            first: self.parts.llc_cpus.len() as u32,
            weight: members.len() as u32,
            nr_idle_scan: 0,
            has_idle_cores: 0,
            next: u32::from(llc),
            rank: 0,
        };
        for (position, &cpu) in members.iter().enumerate() {
            self.parts.cpus[cpu.index()].position = position as u16;
            entry.usable[position / 64] |= 1 << (position % 64);
            entry.filter[position / 64] |= 1 << (position % 64);
            self.parts.llc_cpus.push(cpu.0 as u16);
        }
        self.parts.llcs.push(entry);
    }

    /// The same world, checking numbers of CPUs and tasks only in builds with debug assertions: the
    /// simulator reads it some forty times per activation.
    ///
    /// # Safety
    ///
    /// Every CPU passed to it, or stored in its tasks, must be one of its own; every task must have
    /// been added.
    #[allow(unsafe_code)]
    pub unsafe fn trust(self) -> World<false> {
        World { parts: self.parts, raw: self.raw }
    }
}

impl<const CHECKED: bool> Clone for World<CHECKED> {
    fn clone(&self) -> World<CHECKED> {
        let mut world = World { parts: self.parts.clone(), raw: RawWorld::default() };
        world.relink();
        world
    }
}

impl<const CHECKED: bool> World<CHECKED> {
    #[inline]
    fn cpu(&self, cpu: CpuId) -> &WorldCpu {
        at::<CHECKED, _>(&self.parts.cpus, cpu.index())
    }

    #[inline]
    fn cpu_mut(&mut self, cpu: CpuId) -> &mut WorldCpu {
        at_mut::<CHECKED, _>(&mut self.parts.cpus, cpu.index())
    }

    /// LLCs of one memory node are searched together (SIS_NODE): the node of each LLC.
    /// Without a call every LLC is alone. Panics if some LLC has none.
    pub fn set_nodes(&mut self, nodes: &[u32]) {
        assert_eq!(nodes.len(), self.parts.llcs.len(), "every LLC has a node");
        let mut order: Vec<usize> = (0..nodes.len()).collect();
        order.sort_by_key(|&llc| (nodes[llc], self.llc_cpus(llc)[0]));
        for ring in order.chunk_by(|&a, &b| nodes[a] == nodes[b]) {
            for (rank, &llc) in ring.iter().enumerate() {
                self.parts.llcs[llc].next = ring[(rank + 1) % ring.len()] as u32;
                self.parts.llcs[llc].rank = rank as u32;
            }
        }
    }

    /// CPUs of one cluster are searched first (SIS_CLUSTER): the cluster of each CPU,
    /// numbered densely. Without a call there are none. Panics if a CPU has none, or a
    /// cluster is in two LLCs.
    pub fn set_clusters(&mut self, clusters: &[u32]) {
        assert_eq!(clusters.len(), self.parts.cpus.len(), "every CPU has a cluster");
        let n = clusters.iter().max().map_or(0, |&highest| highest as usize + 1);
        self.parts.clusters = vec![[0; LLC_WORDS]; n].into();
        self.relink();
        let mut llcs = vec![None; n];
        for (cpu, &cluster) in self.parts.cpus.iter_mut().zip(clusters) {
            let llc = *llcs[cluster as usize].get_or_insert(cpu.llc);
            assert_eq!(llc, cpu.llc, "cluster {cluster} is in two LLCs");
            cpu.cluster = cluster;
            let at = usize::from(cpu.position);
            self.parts.clusters[cluster as usize][at / 64] |= 1 << (at % 64);
        }
    }

    /// Adds an allowed set and returns its index. Call after construction only.
    pub fn add_affinity(&mut self, allow: impl Fn(CpuId) -> bool) -> u32 {
        let index = self.parts.n_affinities;
        self.parts.n_affinities += 1;
        for llc in self.parts.llcs.iter() {
            let mut words = [0u64; LLC_WORDS];
            for position in 0..llc.weight as usize {
                let cpu = self.parts.llc_cpus[llc.first as usize + position];
                if allow(CpuId::from(cpu)) {
                    words[position / 64] |= 1 << (position % 64);
                }
            }
            words.into_iter().for_each(|word| self.parts.allowed.push(word));
        }
        self.relink();
        index
    }

    /// May a task with this affinity run there?
    #[inline]
    pub fn allows(&self, affinity: u32, cpu: CpuId) -> bool {
        if affinity == 0 {
            return true;
        }
        let c = self.cpu(cpu);
        let set = affinity as usize * self.parts.llcs.len() + usize::from(c.llc);
        let word = self.parts.allowed[set * LLC_WORDS + usize::from(c.position) / 64];
        word >> (c.position % 64) & 1 != 0
    }

    /// On how many CPUs may a task with this affinity run?
    #[inline]
    pub fn n_allowed(&self, affinity: u32) -> u32 {
        if affinity == 0 {
            return self.parts.cpus.len() as u32;
        }
        let words = self.parts.llcs.len() * LLC_WORDS;
        let set = &self.parts.allowed[affinity as usize * words..][..words];
        set.iter().map(|word| word.count_ones()).sum()
    }

    /// Adds a task; its `id` must be the next number.
    pub fn add_task(&mut self, task: Task) {
        assert_eq!(task.id.index(), self.parts.tasks.len(), "task ids are dense");
        self.parts.tasks.push(task);
        self.parts.sleeps.push(Sleep::default());
        self.relink();
    }

    /// Panics if there is no such task, as does [`World::task_mut`].
    #[inline]
    pub fn task(&self, id: TaskId) -> &Task {
        at::<CHECKED, _>(&self.parts.tasks, id.index())
    }

    /// Its CPUs and allowed set are checked when a decision follows them.
    #[inline]
    pub fn task_mut(&mut self, id: TaskId) -> &mut Task {
        at_mut::<CHECKED, _>(&mut self.parts.tasks, id.index())
    }

    /// Number of CPUs.
    pub fn n_cpus(&self) -> usize {
        self.parts.cpus.len()
    }

    /// Number of LLCs.
    pub fn n_llcs(&self) -> usize {
        self.parts.llcs.len()
    }

    /// The LLC of a CPU.
    #[inline]
    pub fn llc(&self, cpu: CpuId) -> usize {
        usize::from(self.cpu(cpu).llc)
    }

    /// Number of CPUs of an LLC.
    #[inline]
    pub fn llc_weight(&self, llc: usize) -> u32 {
        self.parts.llcs[llc].weight
    }

    /// CPUs of an LLC, by number.
    pub fn llc_cpus(&self, llc: usize) -> &[u16] {
        let l = &self.parts.llcs[llc];
        &self.parts.llc_cpus[l.first as usize..(l.first + l.weight) as usize]
    }

    /// Does some core have two threads (sched_smt_active)?
    #[inline]
    pub fn smt_active(&self) -> bool {
        self.parts.smt_active
    }

    /// Hardware threads of a CPU's core, itself included, by number.
    #[inline]
    pub fn smt_cpus(&self, cpu: CpuId) -> &[u16] {
        let c = self.cpu(cpu);
        &self.parts.smt_cpus[usize::from(c.smt_first)..][..usize::from(c.smt_width)]
    }

    /// Does the CPU run the idle task, with nothing queued and no wake-up pending?
    #[inline]
    pub fn available_idle(&self, cpu: CpuId) -> bool {
        self.cpu(cpu).available_idle != 0
    }

    /// The LLC's mask of usable CPUs follows.
    #[inline]
    pub fn set_available_idle(&mut self, cpu: CpuId, idle: bool) {
        let c = self.cpu_mut(cpu);
        if c.available_idle != u8::from(idle) {
            c.available_idle = u8::from(idle);
            self.update_usable(cpu);
        }
    }

    /// Does the CPU run nothing but SCHED_IDLE tasks?
    #[inline]
    pub fn set_sched_idle(&mut self, cpu: CpuId, sched_idle: bool) {
        self.cpu_mut(cpu).sched_idle = u8::from(sched_idle);
        self.update_usable(cpu);
    }

    #[inline]
    fn update_usable(&mut self, cpu: CpuId) {
        let c = *self.cpu(cpu);
        let bit = 1u64 << (c.position % 64);
        let word = &mut self.parts.llcs[usize::from(c.llc)].usable[usize::from(c.position) / 64];
        if c.available_idle | c.sched_idle != 0 {
            *word |= bit;
        } else {
            *word &= !bit;
        }
    }

    /// Runnable tasks on a CPU, the running one included.
    #[inline]
    pub fn nr_running(&self, cpu: CpuId) -> u32 {
        self.cpu(cpu).nr_running
    }

    /// Runnable tasks on a CPU, and [`World::available_idle`], in one look.
    #[inline]
    pub fn occupancy(&self, cpu: CpuId) -> (u32, bool) {
        let c = self.cpu(cpu);
        (c.nr_running, c.available_idle != 0)
    }

    /// Sets the number of runnable tasks.
    #[inline]
    pub fn set_nr_running(&mut self, cpu: CpuId, n: u32) {
        self.cpu_mut(cpu).nr_running = n;
    }

    /// The task running on a CPU, or [`TaskId::NONE`].
    #[inline]
    pub fn curr(&self, cpu: CpuId) -> TaskId {
        self.cpu(cpu).curr
    }

    /// Panics if there is no such task.
    #[inline]
    pub fn set_curr(&mut self, cpu: CpuId, task: TaskId) {
        if checks(CHECKED) {
            assert!(
                task == TaskId::NONE || task.index() < self.parts.tasks.len(),
                "no task {task}"
            );
        }
        self.cpu_mut(cpu).curr = task;
    }

    /// PELT load of a CPU's root queue.
    #[inline]
    pub fn set_cfs_load(&mut self, cpu: CpuId, load: u32) {
        self.cpu_mut(cpu).cfs_load = load;
    }

    /// Sets the capacity of a CPU, 0 to 1024.
    pub fn set_capacity(&mut self, cpu: CpuId, capacity: u16) {
        self.cpu_mut(cpu).capacity = capacity;
    }

    /// Capacity of a CPU, 0 to 1024.
    pub fn capacity(&self, cpu: CpuId) -> u16 {
        self.cpu(cpu).capacity
    }

    /// Is an idle core believed to exist in this LLC?
    #[inline]
    pub fn has_idle_cores(&self, llc: usize) -> bool {
        self.parts.llcs[llc].has_idle_cores != 0
    }

    /// A search that finds no idle core clears it, too.
    #[inline]
    pub fn set_has_idle_cores(&mut self, llc: usize, has: bool) {
        self.parts.llcs[llc].has_idle_cores = u32::from(has);
    }

    /// How many CPUs SIS_UTIL lets a search look at.
    #[inline]
    pub fn nr_idle_scan(&self, llc: usize) -> u32 {
        self.parts.llcs[llc].nr_idle_scan
    }

    /// From [`crate::nr_idle_scan`].
    pub fn set_nr_idle_scan(&mut self, llc: usize, n: u32) {
        self.parts.llcs[llc].nr_idle_scan = n;
    }

    /// Where does `wakee` run, woken on `this_cpu` by `waker` ([`TaskId::NONE`]: the idle
    /// task was current)? Updates both tasks' history and the LLC's
    /// `has_idle_cores` as the kernel would.
    #[inline(always)]
    pub fn select_cpu(
        &mut self,
        tunables: &Tunables,
        wakee: TaskId,
        waker: TaskId,
        this_cpu: CpuId,
        flags: u32,
        now_j: u64,
    ) -> Pick {
        if checks(CHECKED) {
            self.check_wakeup(wakee, waker, this_cpu);
        }
        ffi::select_cpu(&mut self.raw, tunables, wakee, waker, this_cpu, flags, now_j)
    }

    /// Panics if a decision would follow a number that does not exist.
    #[inline]
    pub(crate) fn check_wakeup(&self, wakee: TaskId, waker: TaskId, this_cpu: CpuId) {
        let p = &self.parts.tasks[wakee.index()];
        assert!(waker == TaskId::NONE || waker.index() < self.parts.tasks.len(), "no task {waker}");
        assert!(
            self.has(this_cpu)
                && self.has(p.prev_cpu)
                && self.has(p.recent_used_cpu)
                && self.knows(p.affinity),
            "task {wakee} refers to a CPU or affinity set that does not exist"
        );
    }

    /// Reports that the search of `pick` took `elapsed_ns` on `this_cpu`: updates SIS_PROP's cost
    /// of searches and SIS_AGE's idle time. No effect for other policies and picks.
    #[inline]
    pub fn scan_done(&mut self, tunables: &Tunables, this_cpu: CpuId, pick: &Pick, elapsed_ns: Ns) {
        assert!(self.has(this_cpu), "no such CPU");
        ffi::scan_done(&mut self.raw, tunables, this_cpu, pick, elapsed_ns);
    }

    /// What a CPU remembers of its idle time and its searches.
    #[inline]
    pub fn scan_state(&self, cpu: CpuId) -> &ScanState {
        at::<CHECKED, _>(&self.parts.scans, cpu.index())
    }

    /// As [`World::scan_state`].
    #[inline]
    pub fn scan_state_mut(&mut self, cpu: CpuId) -> &mut ScanState {
        at_mut::<CHECKED, _>(&mut self.parts.scans, cpu.index())
    }

    /// May a wake-up from `this_cpu` go to the wake list of `cpu`? `on_cpu`: the wakee
    /// still switches away, on that CPU.
    #[inline]
    pub fn ttwu_queue(
        &mut self,
        tunables: &Tunables,
        this_cpu: CpuId,
        cpu: CpuId,
        on_cpu: bool,
    ) -> bool {
        assert!(!checks(CHECKED) || self.has(this_cpu) && self.has(cpu), "no such CPU");
        ffi::ttwu_queue(&mut self.raw, tunables, this_cpu, cpu, on_cpu)
    }

    #[inline]
    pub(crate) fn has(&self, cpu: CpuId) -> bool {
        cpu.index() < self.parts.cpus.len()
    }

    pub(crate) fn knows(&self, affinity: u32) -> bool {
        affinity < self.parts.n_affinities
    }

    /// As C code reads it.
    #[inline]
    pub(crate) fn raw(&mut self) -> &mut RawWorld {
        &mut self.raw
    }

    /// Tells C code where the arrays are, after one has grown.
    fn relink(&mut self) {
        self.raw = RawWorld {
            cpus: self.parts.cpus.address(),
            llcs: self.parts.llcs.address(),
            tasks: self.parts.tasks.address(),
            scans: self.parts.scans.address(),
            hot_until: self.parts.hot_until.address(),
            llc_cpus: self.parts.llc_cpus.address(),
            smt_cpus: self.parts.smt_cpus.address(),
            allowed: self.parts.allowed.address(),
            clusters: self.parts.clusters.address().cast(),
            now_ns: self.raw.now_ns,
            n_llcs: self.parts.llcs.len() as u32,
            n_cpus: self.parts.cpus.len() as u32,
            n_tasks: self.parts.tasks.len() as u32,
            n_affinities: self.parts.n_affinities,
            smt_active: u32::from(self.parts.smt_active),
            cluster_active: u32::from(!self.parts.clusters.is_empty()),
        };
    }
}
