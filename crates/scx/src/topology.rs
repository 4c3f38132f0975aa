//! This machine as the BPF scheduler's tables have it: by the kernel's own CPU numbers.

use std::fs;
use std::path::Path;

use reveille_machine::{Distance, Topology, read_sysfs};

use crate::error::ScxError;

/// Sizes of the tables in bpf/state.h.
pub const MAX_CPUS: usize = 1024;
/// Most last-level caches.
pub const MAX_LLCS: usize = 256;
/// Most words of 64 CPUs, each cache beginning a new one.
pub const MAX_WORDS: usize = 256;

/// Where a CPU stands; the kernel numbers it by its index in [`Tables::cpus`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuRow {
    pub llc: u16,
    /// Its rank in it.
    pub position: u16,
    /// Threads of its core, itself included, ascending; empty for a number without a CPU.
    pub smt: Vec<u16>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LlcRow {
    /// Its CPUs, ascending.
    pub cpus: Vec<u16>,
    /// Its first word in an allowed set.
    pub first_word: u32,
    /// Its first shared queue, and how many it may have.
    pub first_shard: u32,
    pub n_shards: u32,
    /// The other caches, nearest first.
    pub order: Vec<u8>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// By the kernel's CPU number.
    pub cpus: Vec<CpuRow>,
    pub llcs: Vec<LlcRow>,
    /// Words of all allowed sets.
    pub n_words: u32,
    /// Shared queues of all caches.
    pub n_shards: u32,
    /// How often CPUs had come or gone before the machine was read: the kernel does not
    /// take a scheduler for whom that is out of date. 0 if it does not tell.
    pub hotplug_seq: u64,
}

impl Tables {
    /// Reads the CPUs that are online from the sysfs mounted at `root`.
    ///
    /// # Errors
    /// Files that are missing or make no sense; a machine beyond the tables.
    pub fn read(root: &Path, shard_cpus: u32) -> Result<Tables, ScxError> {
        let seq = fs::read_to_string(root.join("kernel/sched_ext/hotplug_seq"));
        let machine = read_sysfs(root).map_err(|error| {
            ScxError::refused(
                format!("the topology of this machine cannot be read: {error}"),
                "mount sysfs at /sys",
            )
        })?;
        let mut tables = Tables::of(&machine.topology, shard_cpus)?;
        tables.hotplug_seq = seq.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        Ok(tables)
    }

    pub fn of(topology: &Topology, shard_cpus: u32) -> Result<Tables, ScxError> {
        let os = |cpu: u32| topology.cpus()[cpu as usize].os_cpu;
        let highest = (0..topology.n_cpus() as u32).map(os).max().unwrap_or(0) as usize;
        let mut tables = Tables { cpus: vec![CpuRow::default(); highest + 1], ..Tables::default() };
        if highest >= MAX_CPUS || topology.n_llcs() > MAX_LLCS {
            return Err(too_large(highest + 1, topology.n_llcs()));
        }
        for llc in 0..topology.n_llcs() as u32 {
            let mut cpus: Vec<u16> =
                topology.llc_cpus(llc).iter().map(|&cpu| os(cpu) as u16).collect();
            cpus.sort_unstable();
            for (position, &cpu) in cpus.iter().enumerate() {
                let row = &mut tables.cpus[usize::from(cpu)];
                row.llc = llc as u16;
                row.position = position as u16;
            }
            let n_shards = (cpus.len() as u32).div_ceil(shard_cpus);
            let row = LlcRow {
                first_word: tables.n_words,
                first_shard: tables.n_shards,
                n_shards,
                order: nearest(topology, llc),
                cpus,
            };
            tables.n_words += (row.cpus.len() as u32).div_ceil(64);
            tables.n_shards += n_shards;
            tables.llcs.push(row);
        }
        if tables.n_words as usize > MAX_WORDS {
            return Err(too_large(highest + 1, topology.n_llcs()));
        }
        for cpu in 0..topology.n_cpus() as u32 {
            let mut smt: Vec<u16> = topology
                .core_cpus(topology.cpus()[cpu as usize].core)
                .iter()
                .map(|&sibling| os(sibling) as u16)
                .collect();
            smt.sort_unstable();
            tables.cpus[os(cpu) as usize].smt = smt;
        }
        Ok(tables)
    }

    /// Has some core two threads?
    pub fn smt_active(&self) -> bool {
        self.cpus.iter().any(|cpu| cpu.smt.len() > 1)
    }

    pub fn n_cpus(&self) -> usize {
        self.cpus.iter().filter(|cpu| !cpu.smt.is_empty()).count()
    }
}

/// The other caches by distance; those equally far by number, counted on from this one, so
/// that not all look at the same first.
fn nearest(topology: &Topology, llc: u32) -> Vec<u8> {
    let n = topology.n_llcs() as u32;
    let first = |llc: u32| topology.llc_cpus(llc)[0];
    let mut others: Vec<u32> = (1..n).map(|k| (llc + k) % n).collect();
    others.sort_by_key(|&other| -> Distance { topology.distance(first(llc), first(other)) });
    others.into_iter().map(|other| other as u8).collect()
}

fn too_large(cpus: usize, llcs: usize) -> ScxError {
    ScxError::refused(
        format!("this machine has CPU numbers up to {} and {llcs} last-level caches", cpus - 1),
        format!(
            "scx_reveille is built for CPUs 0 to {} and {MAX_LLCS} caches; raise MAX_CPUS and MAX_LLCS in bpf/state.h and src/topology.rs",
            MAX_CPUS - 1
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_siblings_and_order_of_two_sockets() {
        // 2 sockets x 4 cores x 2 threads: CPU 0..3 and 8..11 share the first cache.
        let topology = Topology::uniform(2, 1, 4, 2).unwrap();
        let tables = Tables::of(&topology, 3).unwrap();
        assert_eq!(tables.llcs[0].cpus, [0, 1, 2, 3, 8, 9, 10, 11]);
        assert_eq!(tables.cpus[9].position, 5);
        assert_eq!(tables.cpus[9].smt, [1, 9]);
        assert_eq!(tables.llcs[1].order, [0]);
        assert_eq!((tables.llcs[1].first_word, tables.n_words), (1, 2));
        assert_eq!((tables.llcs[1].first_shard, tables.n_shards), (3, 6));
        assert!(tables.smt_active());
        assert_eq!(tables.n_cpus(), 16);
    }

    #[test]
    fn caches_of_the_same_socket_come_before_others() {
        let topology = Topology::uniform(2, 3, 2, 1).unwrap();
        let tables = Tables::of(&topology, 6).unwrap();
        assert_eq!(tables.llcs[1].order, [2, 0, 3, 4, 5]);
        assert!(!tables.smt_active());
    }

    #[test]
    fn more_cpus_than_the_tables_hold_are_refused() {
        let topology = Topology::uniform(4, 4, 65, 1).unwrap();
        let error = Tables::of(&topology, 6).unwrap_err().to_string();
        assert!(error.contains("1039"), "{error}");
    }
}
