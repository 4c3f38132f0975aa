//! `replay`: decisions that the BPF program took in a kernel, taken again by the native
//! build that the simulator uses, from the same state. One policy means: no difference.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use reveille_policy::{CpuId, LlcShape, Task, TaskId, World, WorldShape};
use serde::Serialize;

use crate::decision::{Decision, Header, Outcome, SeenLlc, read_header, read_record};
use crate::error::ScxError;

/// Differences that are shown.
const SHOWN: usize = 5;
/// Tasks of the replayed world.
const WAKEE: TaskId = TaskId(0);
const WAKER: TaskId = TaskId(1);
const OTHER: TaskId = TaskId(2);
/// A task that is neither.
const STRANGER: TaskId = TaskId(3);

/// What a replay found.
#[derive(Debug, Default, Serialize)]
pub struct Replayed {
    /// Decisions in the file.
    pub decisions: usize,
    /// Those that came out otherwise.
    pub different: usize,
    /// By features, in hexadecimal: how many decisions.
    pub by_features: BTreeMap<String, usize>,
    /// By rule that chose.
    pub by_rule: BTreeMap<String, usize>,
    /// The first that differ.
    pub first_differences: Vec<String>,
}

/// Replays a file.
///
/// # Errors
/// A file that is none of decisions, or cannot be read.
pub fn replay(path: &Path) -> Result<Replayed, ScxError> {
    let failed = |doing: &str, error: std::io::Error| {
        ScxError::refused(
            format!("{doing} {}: {error}", path.display()),
            "give a file that `scx_reveille --record FILE` wrote to its end",
        )
    };
    let file = File::open(path).map_err(|e| failed("cannot open", e))?;
    replay_from(&mut BufReader::new(file)).map_err(|e| failed("no file of decisions:", e))
}

fn replay_from(file: &mut impl BufRead) -> std::io::Result<Replayed> {
    let mut replayer = Replayer::new(read_header(file)?)?;
    let mut found = Replayed::default();
    while let Some(bytes) = read_record(file)? {
        let decision = Decision::parse(&bytes);
        let native = replayer.decide(&decision)?;
        found.decisions += 1;
        *found.by_features.entry(format!("{:#x}", decision.features)).or_default() += 1;
        *found.by_rule.entry(rule_name(decision.outcome.rule).to_owned()).or_default() += 1;
        if native != decision.outcome {
            found.different += 1;
            if found.first_differences.len() < SHOWN {
                found.first_differences.push(format!(
                    "decision {}: kernel {:?}, native {native:?}, from {decision:?}",
                    found.decisions, decision.outcome
                ));
            }
        }
    }
    Ok(found)
}

/// The native build's world, reset for each decision.
struct Replayer {
    header: Header,
    world: World,
    /// The kernel's CPU numbers, ascending: a CPU's place is its number in the world.
    numbers: Vec<u32>,
    /// Allowed sets that the world knows, by the bits of the two caches.
    sets: HashMap<Vec<(u32, [u64; 8])>, u32>,
}

fn nonsense(what: impl Into<String>) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, what.into())
}

impl Replayer {
    fn new(header: Header) -> std::io::Result<Replayer> {
        let mut numbers: Vec<u32> =
            header.llcs.iter().flatten().flatten().map(|&cpu| cpu.into()).collect();
        numbers.sort_unstable();
        if numbers.is_empty() || numbers.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(nonsense("its header holds no CPU, or one twice"));
        }
        let cores_fit = header.llcs.iter().flatten().all(|core| (1..=8).contains(&core.len()));
        if !cores_fit || header.llcs.iter().any(|l| l.iter().map(Vec::len).sum::<usize>() > 512) {
            return Err(nonsense("its header holds a core or a cache that no world has"));
        }
        let dense = |cpu: &u16| {
            CpuId::at(
                numbers.binary_search(&u32::from(*cpu)).expect("collected from the same list"),
            )
        };
        let llcs = header.llcs.iter().map(|llc| LlcShape {
            cores: llc.iter().map(|core| core.iter().map(dense).collect()).collect(),
        });
        let mut world = World::new(&WorldShape { llcs: llcs.collect() });
        for id in [WAKEE, WAKER, OTHER, STRANGER] {
            world.add_task(Task::new(id, CpuId(0)));
        }
        Ok(Replayer { header, world, numbers, sets: HashMap::new() })
    }

    fn dense(&self, cpu: u32) -> std::io::Result<CpuId> {
        let found = self.numbers.binary_search(&cpu);
        found
            .map(CpuId::at)
            .map_err(|_| nonsense(format!("it names CPU {cpu}, which the header lacks")))
    }

    fn set_llc(&mut self, seen: &SeenLlc) -> std::io::Result<()> {
        let llc = seen.llc as usize;
        if llc >= self.world.n_llcs() {
            return Err(nonsense(format!("it names cache {llc}, which the header lacks")));
        }
        let cpus: Vec<u16> = self.world.llc_cpus(llc).to_vec();
        for (position, cpu) in cpus.into_iter().enumerate() {
            let bit = |words: &[u64; 8]| words[position / 64] >> (position % 64) & 1 != 0;
            self.world.set_available_idle(cpu.into(), bit(&seen.idle));
            self.world.set_sched_idle(cpu.into(), bit(&seen.sched_idle));
        }
        self.world.set_has_idle_cores(llc, seen.has_idle_cores);
        self.world.set_nr_idle_scan(llc, seen.nr_idle_scan);
        Ok(())
    }

    /// The world's number of the wakee's allowed set.
    fn affinity(&mut self, decision: &Decision) -> u32 {
        if decision.wakee.affinity == 0 {
            return 0;
        }
        let key: Vec<_> = decision.llcs.iter().map(|l| (l.llc, l.allowed)).collect();
        if let Some(&known) = self.sets.get(&key) {
            return known;
        }
        let mut allowed = vec![false; self.numbers.len()];
        for (llc, words) in &key {
            for (position, &cpu) in self.world.llc_cpus(*llc as usize).iter().enumerate() {
                allowed[usize::from(cpu)] = words[position / 64] >> (position % 64) & 1 != 0;
            }
        }
        let set = self.world.add_affinity(|cpu| allowed[cpu.index()]);
        self.sets.insert(key, set);
        set
    }

    /// A recorded task as the world numbers it.
    fn task(&self, id: TaskId, task: &Task, wakee: &Task, affinity: u32) -> std::io::Result<Task> {
        // A task that has not run here yet may name a CPU that is none.
        let cpu = |cpu: CpuId| {
            self.dense(cpu.0).or_else(|e| if id == WAKEE { Err(e) } else { Ok(CpuId(0)) })
        };
        Ok(Task {
            id,
            last_wakee: if task.last_wakee == wakee.id { WAKEE } else { STRANGER },
            prev_cpu: cpu(task.prev_cpu)?,
            recent_used_cpu: cpu(task.recent_used_cpu)?,
            affinity,
            ..*task
        })
    }

    fn decide(&mut self, d: &Decision) -> std::io::Result<Outcome> {
        for llc in &d.llcs {
            self.set_llc(llc)?;
        }
        let affinity = self.affinity(d);
        let this = self.dense(d.this_cpu)?;
        let prev = self.dense(d.wakee.prev_cpu.0)?;
        *self.world.task_mut(WAKEE) = self.task(WAKEE, &d.wakee, &d.wakee, affinity)?;
        for seen in &d.cpus {
            let cpu = self.dense(seen.cpu)?;
            self.world.set_nr_running(cpu, seen.nr_running);
            self.world.set_cfs_load(cpu, seen.cfs_load);
        }
        // The task of the wakee's CPU first: if that is the waking CPU, the waker is on it.
        if let Some(curr) = &d.cpus[1].curr {
            *self.world.task_mut(OTHER) = self.task(OTHER, curr, &d.wakee, 0)?;
        }
        self.world.set_curr(prev, if d.cpus[1].curr.is_some() { OTHER } else { TaskId::NONE });
        if let Some(waker) = &d.waker {
            *self.world.task_mut(WAKER) = self.task(WAKER, waker, &d.wakee, 0)?;
        }
        let waker = if d.waker.is_some() { WAKER } else { TaskId::NONE };
        self.world.set_curr(this, waker);
        *self.world.scan_state_mut(this) = d.scan;
        let tunables = self.header.tunables(d.features);
        let pick = self.world.select_cpu(&tunables, WAKEE, waker, this, d.flags, d.now_j);
        let os = |cpu: CpuId| self.numbers[cpu.index()];
        let after = self.world.task(WAKER);
        let recent_of_waker = d.waker.as_ref().map(|before| {
            // Only what the decision has changed is known by the world's numbers.
            let unchanged = self.task(WAKER, before, &d.wakee, 0).map(|t| t.recent_used_cpu);
            match unchanged {
                Ok(cpu) if cpu == after.recent_used_cpu => before.recent_used_cpu.0,
                _ => os(after.recent_used_cpu),
            }
        });
        Ok(Outcome {
            cpu: os(pick.cpu),
            target: os(pick.target),
            tested: pick.tested,
            searched: pick.searched,
            rule: pick.rule() as u8,
            search: pick.search(),
            core_search: pick.core_search(),
            cleared: pick.cleared_idle_cores(),
            exhausted: pick.exhausted(),
            recent_used_cpu: os(self.world.task(WAKEE).recent_used_cpu),
            waker: recent_of_waker.map(|recent| {
                (after.wakee_flips, after.wakee_flip_decay_j, after.last_wakee == WAKEE, recent)
            }),
            scan: *self.world.scan_state(this),
            has_idle_cores: self.world.has_idle_cores(self.world.llc(pick.target)),
        })
    }
}

/// A rule's name, by its number in policy/types.h.
pub fn rule_name(rule: u8) -> &'static str {
    const NAMES: [&str; 12] = [
        "none",
        "target_idle",
        "prev_idle",
        "kthread",
        "recent_idle",
        "sibling_idle",
        "idle_core",
        "idle_cpu",
        "short",
        "target",
        "own",
        "own_busy",
    ];
    NAMES.get(usize::from(rule)).copied().unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::{MAGIC, RECORD_BYTES};
    use reveille_policy::ScanState;

    /// Two cores of two threads in each of two caches, with CPU 4 and 9 away.
    const HEADER: &str = r#"{"llcs":[[[0,5],[1,6]],[[2,7],[3,8]]],"min_granularity_ns":3000000,"hz":250,"imbalance_pct":117,"smt_imbalance_pct":110}"#;

    #[derive(Default)]
    struct Bytes(Vec<u8>);

    impl Bytes {
        fn u64(&mut self, v: u64) -> &mut Self {
            self.0.extend(v.to_le_bytes());
            self
        }

        fn u32(&mut self, v: u32) -> &mut Self {
            self.0.extend(v.to_le_bytes());
            self
        }

        fn task(&mut self, id: u32, prev: u32, recent: u32, flips: u32) -> &mut Self {
            self.u64(0).u64(9000).u64(0).u64(5000);
            self.u32(id).u32(77).u32(flips).u32(prev).u32(recent).u32(1024).u32(0).u32(0)
        }

        fn scan(&mut self) -> &mut Self {
            let s = ScanState::default();
            self.u64(s.avg_idle_ns).u64(s.avg_scan_cost_ns).u64(s.wake_avg_idle_ns).u64(0)
        }
    }

    /// Task 77 on CPU 7, woken on CPU 0 by task 50, goes to `cpu` by `rule`: the kernel says so.
    fn record(cpu: u32, rule: u8, idle_of_second_cache: u64) -> Vec<u8> {
        let mut b = Bytes::default();
        b.u64(reveille_policy::Policy::baseline("v6.2").unwrap().features).u64(1000);
        b.u32(0).u32(0).u32(1).u32(0);
        b.task(77, 7, 7, 3).task(50, 0, 0, 2).scan();
        for (cpu, nr_running, has_curr) in [(0, 2, 1), (7, 1, 0)] {
            b.u32(cpu).u32(nr_running).u32(512).u32(has_curr).task(50, 0, 0, 2);
        }
        for (llc, idle) in [(0, 0), (1, idle_of_second_cache)] {
            b.u32(llc).u32(4).u32(0).u32(0);
            for word in [idle, 0, 0b1111] {
                b.u64(word);
                for _ in 1..8 {
                    b.u64(0);
                }
            }
        }
        // The waker's flips decay, for a second has passed; its last wakee is the same.
        b.task(77, 7, 7, 3);
        b.u64(1000).u64(9000).u64(0).u64(5000);
        b.u32(50).u32(77).u32(1).u32(0).u32(0).u32(1024).u32(0).u32(0);
        b.scan().u32(cpu).u32(7).0.extend([1, 0, 0, 0, 0, 0, rule, 0, 0, 0, 0, 0]);
        // tested: the previous CPU for wake_affine, and the target for the search.
        let tested = RECORD_BYTES - 16;
        b.0[tested] = 2;
        b.u32(0);
        assert_eq!(b.0.len(), RECORD_BYTES);
        b.0
    }

    fn replayed(records: &[Vec<u8>]) -> Replayed {
        let mut file = format!("{MAGIC}{HEADER}\n").into_bytes();
        records.iter().for_each(|r| file.extend(r));
        replay_from(&mut file.as_slice()).unwrap()
    }

    #[test]
    fn a_decision_of_the_native_build_is_found_identical() {
        // CPU 7 has position 2 in its cache (2, 3, 7, 8): idle, so it is taken at once.
        let found = replayed(&[record(7, 1, 0b0100)]);
        assert_eq!((found.decisions, found.different), (1, 0), "{:?}", found.first_differences);
        assert_eq!(found.by_rule["target_idle"], 1);
    }

    #[test]
    fn another_cpu_or_another_rule_is_a_difference() {
        let found = replayed(&[record(8, 1, 0b0100), record(7, 2, 0b0100), record(7, 1, 0b0100)]);
        assert_eq!((found.decisions, found.different), (3, 2));
        assert_eq!(found.first_differences.len(), 2);
    }
}
