//! Processes with threads, the cache that each prefers, and how full caches are (SCHED_CACHE). gather.rs has
//! the steps.

use std::rc::Rc;

use reveille_machine::Machine;
use reveille_measure::Ns;
use reveille_policy::{CpuId, TaskId, bits};
use reveille_workload::Program;

use crate::ids::{CpuVec, TaskVec};
use crate::rules::Rules;

/// A process that has not been looked at for so many epochs prefers no cache
/// (llc_epoch_affinity_timeout).
const FORGOTTEN_EPOCHS: u64 = 5;
/// A cache takes more threads up to this utilisation in percent (llc_overaggr_pct), half as much again
/// where cores have one thread.
const ROOM_PCT: u64 = 50;
/// A utilisation that is larger by so many percent is larger (llc_imb_pct).
const MARGIN_PCT: u64 = 20;
/// NICE_0_LOAD, to which occupancies are scaled.
const WHOLE: u64 = 1 << 20;

/// Run time whose weight halves with each epoch.
#[derive(Clone, Copy, Default)]
struct Recent {
    epoch: u64,
    ns: Ns,
}

impl Recent {
    fn catch_up(&mut self, epoch: u64) {
        let passed = (epoch - self.epoch).min(63);
        self.ns >>= passed;
        self.epoch = epoch;
    }
}

/// A process with threads (mm->sc_stat).
#[derive(Clone)]
struct Process {
    /// Where it ran most in the cache that it prefers; `NONE` while it prefers none.
    cpu: CpuId,
    epoch: u64,
    /// Jiffy from which on its occupancy may be looked at again.
    next_scan: u64,
    /// Average number of its threads that run at once, in whole threads as the kernel keeps it.
    running_avg: i64,
    /// Run time by CPU.
    ran: CpuVec<Recent>,
}

/// What a cache looked like in the last periodic pass of the domain above it: utilisation and capacity.
#[derive(Clone, Copy, Default)]
pub(crate) struct Room {
    pub(crate) util: u64,
    pub(crate) capacity: u64,
}

/// What becomes of moving a task between two caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    /// The preference forbids it.
    Forbidden,
    /// The preference asks for it.
    Wanted,
    /// As the load has it.
    Free,
}

/// Processes with threads, the caches that they prefer, and how full those are.
#[derive(Clone)]
pub(crate) struct Gathering {
    /// By number; `None` for those of one thread.
    processes: Vec<Option<Process>>,
    /// By task, the cache that it has last known its process to prefer.
    pub(crate) preferred: TaskVec<Option<u32>>,
    /// By CPU, run time of all tasks, and the jiffy at which its next epoch begins.
    cpus: CpuVec<(Recent, u64)>,
    pub(crate) rooms: Vec<Room>,
    /// Some process prefers a cache.
    pub(crate) any: bool,
    /// Processes of any number of threads gather (SCHED_CACHE_ALL).
    all: bool,
    pub(crate) llc_of: CpuVec<u32>,
    llcs: Rc<[Vec<CpuId>]>,
    /// Threads of a core (cpu_smt_num_threads).
    smt: i64,
    /// Jiffies of an epoch (llc_epoch_period).
    period: u64,
}

impl Gathering {
    /// `None` unless SCHED_CACHE is on, a memory node has several caches (sched_cache_present), and a
    /// process has threads. The run begins at jiffy `now_j`.
    pub(crate) fn new(
        machine: &Machine,
        program: &Program,
        rules: &Rules,
        now_j: u64,
    ) -> Option<Box<Gathering>> {
        let topology = &machine.topology;
        let n_cpus = topology.n_cpus();
        if !rules.has(bits::SCHED_CACHE) || topology.n_llcs() <= topology.n_nodes() {
            return None;
        }
        let mut threads: Vec<u32> = Vec::new();
        for task in &program.tasks {
            let process = task.process as usize;
            threads.resize(threads.len().max(process + 1), 0);
            threads[process] += 1;
        }
        if threads.iter().all(|&n| n < 2) {
            return None;
        }
        let process = Process {
            cpu: CpuId::NONE,
            epoch: 0,
            next_scan: now_j,
            running_avg: 0,
            ran: CpuVec::filled(Recent::default(), n_cpus),
        };
        let cores = 0..topology.n_cores() as u32;
        let llc_of: CpuVec<u32> = topology.cpus().iter().map(|place| place.llc).collect();
        Some(Box::new(Gathering {
            processes: threads.iter().map(|&n| (n > 1).then(|| process.clone())).collect(),
            preferred: TaskVec::filled(None, program.tasks.len()),
            cpus: CpuVec::filled((Recent::default(), now_j), n_cpus),
            rooms: vec![Room::default(); topology.n_llcs()],
            any: false,
            all: rules.has(bits::SCHED_CACHE_ALL),
            llc_of,
            llcs: (0..topology.n_llcs() as u32)
                .map(|llc| topology.llc_cpus(llc).iter().map(|&cpu| CpuId(cpu)).collect())
                .collect(),
            smt: cores.map(|core| topology.core_cpus(core).len()).max().unwrap_or(1) as i64,
            period: (u64::from(machine.hz) / 100).max(1),
        }))
    }

    /// __update_mm_sched(): a CPU's epoch goes on with the jiffies. Returns it.
    fn epoch(&mut self, cpu: CpuId, jiffies: u64) -> u64 {
        let (recent, next) = &mut self.cpus[cpu];
        if jiffies > *next {
            let passed = (jiffies - *next).div_ceil(self.period);
            *next += passed * self.period;
            recent.catch_up(recent.epoch + passed);
        }
        recent.epoch
    }

    /// CPUs of the cache of `cpu` (sd_llc_size).
    pub(crate) fn llc_weight(&self, cpu: CpuId) -> u64 {
        self.llcs[self.llc_of[cpu] as usize].len() as u64
    }

    /// Has the process few enough threads that run at once for the cache of `cpu`? (invalid_llc_nr())
    fn fits_a_cache(&self, process: u32, cpu: CpuId) -> bool {
        let Some(of) = &self.processes[process as usize] else { return false };
        self.all || of.running_avg * self.smt * 1280 < self.llc_weight(cpu) as i64 * 1024
    }

    fn prefers(&self, process: u32) -> Option<u32> {
        let cpu = self.processes[process as usize].as_ref()?.cpu.some()?;
        Some(self.llc_of[cpu])
    }

    fn set_cpu(&mut self, process: u32, cpu: CpuId) {
        if let Some(of) = &mut self.processes[process as usize] {
            of.cpu = cpu;
        }
        self.any = self.processes.iter().flatten().any(|process| process.cpu != CpuId::NONE);
    }

    /// account_mm_sched(): a task of this process has run for `ran` on `cpu`.
    pub(crate) fn account(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        process: u32,
        ran: Ns,
        jiffies: u64,
    ) {
        let epoch = self.epoch(cpu, jiffies);
        self.cpus[cpu].0.ns += ran;
        let Some(of) = &mut self.processes[process as usize] else { return };
        of.ran[cpu].catch_up(epoch);
        of.ran[cpu].ns += ran;
        let forgotten = epoch.saturating_sub(of.epoch) > FORGOTTEN_EPOCHS;
        if of.cpu != CpuId::NONE && (forgotten || !self.fits_a_cache(process, cpu)) {
            self.set_cpu(process, CpuId::NONE);
        }
        self.preferred[task] = self.prefers(process);
    }

    /// task_tick_cache(): is it time that a process is looked at, at the tick of a task of it on `cpu`?
    pub(crate) fn due(&mut self, cpu: CpuId, process: u32, jiffies: u64) -> bool {
        let epoch = self.cpus[cpu].0.epoch;
        let Some(of) = &mut self.processes[process as usize] else { return false };
        if of.epoch >= epoch {
            return false;
        }
        of.epoch = epoch;
        if jiffies < of.next_scan {
            return false;
        }
        of.next_scan = jiffies + self.period;
        let fits = self.fits_a_cache(process, cpu);
        if !fits {
            self.set_cpu(process, CpuId::NONE);
        }
        fits
    }

    /// task_cache_work(): the cache in which the process occupies most, if that is twice of what it does in
    /// the one that it prefers so far. `on` looks; `running` says whether its threads run on a CPU.
    pub(crate) fn look(
        &mut self,
        process: u32,
        on: CpuId,
        jiffies: u64,
        running: impl Fn(CpuId) -> bool,
    ) {
        let (mut most, mut most_cpu, mut so_far, mut n_running) = (0, CpuId::NONE, 0, 0);
        let (known, llcs) = (self.prefers(process), Rc::clone(&self.llcs));
        let Some(mut of) = self.processes[process as usize].take() else { return };
        for (llc, cpus) in llcs.iter().enumerate() {
            let (mut sum, mut best, mut best_cpu) = (0, 0, CpuId::NONE);
            for &cpu in cpus {
                let epoch = self.epoch(cpu, jiffies);
                let ran = &mut of.ran[cpu];
                ran.catch_up(epoch);
                let occupied = WHOLE * ran.ns / (self.cpus[cpu].0.ns + 1);
                sum += occupied;
                if occupied > best {
                    (best, best_cpu) = (occupied, cpu);
                }
                n_running += i64::from(running(cpu));
            }
            if sum > most {
                (most, most_cpu) = (sum, best_cpu);
            }
            if known == Some(llc as u32) {
                so_far = sum;
            }
        }
        let divisor = (self.llc_weight(on) / 4).clamp(2, 8) as i64;
        of.running_avg += (n_running - of.running_avg) / divisor;
        self.processes[process as usize] = Some(of);
        if most > 2 * so_far {
            self.set_cpu(process, most_cpu);
        }
    }

    /// fits_llc_capacity(): is there room in a cache of this utilisation?
    fn has_room(&self, util: u64, capacity: u64) -> bool {
        let pct = if self.smt == 1 { ROOM_PCT * 3 / 2 } else { ROOM_PCT };
        util * 100 < capacity * pct
    }

    /// can_migrate_llc(): may `util` go from cache `src` to `dst`, `to` the preferred one or away from it?
    pub(crate) fn may_move(&self, src: u32, dst: u32, util: u64, to: bool) -> Move {
        let [src, dst] = [src, dst].map(|llc| self.rooms[llc as usize]);
        let (src_util, dst_util) = (src.util.saturating_sub(util), dst.util + util);
        let src_room = self.has_room(src_util, src.capacity);
        let dst_room = self.has_room(dst_util, dst.capacity);
        let greater = |a: u64, b: u64| a * 100 > b * (100 + MARGIN_PCT);
        match to {
            _ if !dst_room && !src_room => Move::Free,
            true if !dst_room && greater(dst_util, src_util) => Move::Forbidden,
            false if src_room || !greater(src_util, dst_util) => Move::Forbidden,
            _ => Move::Wanted,
        }
    }

    /// can_migrate_llc_task().
    pub(crate) fn may_move_task(
        &mut self,
        src: CpuId,
        dst: CpuId,
        process: u32,
        util: u64,
    ) -> Move {
        let Some(prefers) = self.prefers(process) else { return Move::Free };
        let fits = self.fits_a_cache(process, dst);
        let (src, dst) = (self.llc_of[src], self.llc_of[dst]);
        if src == dst {
            return Move::Free;
        }
        if !fits {
            self.set_cpu(process, CpuId::NONE);
            return Move::Free;
        }
        match prefers {
            llc if llc == dst => self.may_move(src, dst, util, true),
            llc if llc == src => self.may_move(src, dst, util, false),
            _ => Move::Free,
        }
    }
}

#[cfg(test)]
mod tests {
    use reveille_policy::Policy;

    use super::*;

    const BEGIN: u64 = 1 << 20;
    const JIFFY: u64 = BEGIN + 100;

    /// A process of `threads` threads on two caches of 4 cores, or 8 CPUs; CPU 4 is the first of the second.
    fn two_caches(threads: u32, act: impl FnOnce(Gathering)) {
        let topology = reveille_machine::Topology::uniform(1, 2, 4, 2).unwrap();
        let machine = Machine { topology, ..reveille_machine::load("icx-2s32c").unwrap() };
        let params = [("mode", "thread"), ("fds", "1")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        let params = params.into_iter().collect();
        let workload = reveille_workload::find("hackbench").unwrap();
        let program = workload.build(u64::from(threads / 2), &params).unwrap();
        let rules = Rules::new(&Policy::baseline("v7.2").unwrap(), &machine);
        act(*Gathering::new(&machine, &program, &rules, BEGIN).unwrap())
    }

    /// By the conditions of can_migrate_llc(): rows are the source's utilisation, 30% to 60%, columns the
    /// destination's.
    #[test]
    fn moves_depend_on_how_full_both_caches_are() {
        two_caches(4, |mut gathering| {
            let mut table = |to| {
                let mut cell = |src: u64, dst: u64| {
                    let room = |pct: u64| Room { util: pct * 80, capacity: 8000 };
                    gathering.rooms = vec![room(src), room(dst)];
                    match gathering.may_move(0, 1, 0, to) {
                        Move::Wanted => 'Y',
                        Move::Forbidden => 'N',
                        Move::Free => 'G',
                    }
                };
                [30, 40, 50, 60].map(|src| {
                    [30, 40, 50, 60].map(|dst| cell(src, dst)).iter().collect::<String>()
                })
            };
            assert_eq!(table(true), ["YYNN", "YYNN", "YYGG", "YYGG"]);
            assert_eq!(table(false), ["NNNN", "NNNN", "YYGG", "YYGG"]);
        });
    }

    #[test]
    fn a_process_prefers_the_cache_where_it_runs_twice_as_much() {
        two_caches(4, |mut gathering| {
            let mut at = |jiffy: u64, ran: &[(u32, Ns)]| {
                for &(cpu, ns) in ran {
                    gathering.account(CpuId(cpu), TaskId(0), 0, ns, jiffy);
                }
                if gathering.due(CpuId(ran[0].0), 0, jiffy) {
                    gathering.look(0, CpuId(0), jiffy, |_| false);
                }
                gathering.prefers(0)
            };
            assert_eq!(at(JIFFY, &[(0, 1_000_000), (4, 600_000), (5, 600_000)]), Some(1));
            // What counts is each CPU's share, and two CPUs have run nothing else there.
            let three = [0, 1, 2].map(|cpu| (cpu, 9_000_000));
            assert_eq!(at(JIFFY + 1, &three), Some(1), "not due");
            assert_eq!(at(JIFFY + 3, &three), Some(1), "less than twice as much");
            let five = [0, 1, 2, 3, 8].map(|cpu| (cpu, 1_000_000));
            assert_eq!(at(JIFFY + 6, &five), Some(0));
            assert_eq!(at(JIFFY + 100, &[(4, 1_000_000)]), Some(1), "forgotten meanwhile");
        });
    }

    #[test]
    fn many_threads_that_run_at_once_gather_nowhere() {
        two_caches(16, |mut gathering| {
            let mut look = |jiffy: u64, running: bool| {
                gathering.account(CpuId(0), TaskId(0), 0, 1_000, jiffy);
                if gathering.due(CpuId(0), 0, jiffy) {
                    gathering.look(0, CpuId(0), jiffy, |_| running);
                }
                let of = gathering.processes[0].as_ref().unwrap();
                (gathering.prefers(0), of.running_avg)
            };
            assert_eq!(look(JIFFY, true), (Some(0), 8));
            assert_eq!(look(JIFFY + 4, true), (None, 8));
            gathering.all = true;
            gathering.account(CpuId(0), TaskId(0), 0, 1_000, JIFFY + 8);
            assert!(gathering.fits_a_cache(0, CpuId(0)));
        });
    }
}
