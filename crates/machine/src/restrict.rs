//! A machine of which only some CPUs are used, as a process with an affinity mask sees it.

use crate::found::{FoundCpu, numbered};
use crate::machine::Machine;
use crate::topology::CpuId;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestrictError {
    #[error("no CPU is named")]
    None,
    #[error("{machine} has no CPU {cpu}: its CPUs are {known}")]
    Unknown {
        machine: String,
        cpu: u32,
        /// Those that it has, such as `0-3,8`.
        known: String,
    },
}

impl Machine {
    /// The machine with these CPUs alone, named by the numbers that its own kernel gives
    /// them and numbered densely in their order. What only other CPUs were in is gone.
    ///
    /// A kernel whose other CPUs merely stay idle scales its time slices by all of them;
    /// the restricted machine by those that are left.
    pub fn restricted(&self, os_cpus: &[u32]) -> Result<Machine, RestrictError> {
        if os_cpus.is_empty() {
            return Err(RestrictError::None);
        }
        let places = self.topology.cpus();
        if let Some(&cpu) = os_cpus.iter().find(|c| places.iter().all(|p| p.os_cpu != **c)) {
            let known: Vec<u32> = places.iter().map(|p| p.os_cpu).collect();
            let (machine, known) = (self.name.clone(), cpu_list(&known));
            return Err(RestrictError::Unknown { machine, cpu, known });
        }
        let kept = places.iter().filter(|p| os_cpus.contains(&p.os_cpu)).map(|p| FoundCpu {
            os_cpu: p.os_cpu,
            core: p.core.into(),
            cluster: Some(p.cluster.into()),
            llc: p.llc.into(),
            node: p.node.into(),
            socket: p.socket.into(),
        });
        let topology = numbered(kept.collect()).expect("a part of a machine is one");
        Ok(Machine { topology, ..self.clone() })
    }
}

/// CPU numbers as the kernel writes them: `0-3,8`.
pub fn cpu_list(cpus: &[CpuId]) -> String {
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let runs = sorted.chunk_by(|a, b| *b == a + 1).map(|run| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    });
    runs.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpulist::parse_cpu_list;
    use crate::load::load;
    use crate::topology::Distance;
    use proptest::prelude::*;

    #[test]
    fn what_is_left_keeps_its_distances() {
        let whole = load("spr-2s56c").unwrap();
        let part = whole.restricted(&[0, 112, 60, 3]).unwrap();
        let os: Vec<u32> = part.topology.cpus().iter().map(|p| p.os_cpu).collect();
        assert_eq!(os, [0, 3, 60, 112]);
        assert_eq!((part.topology.n_cores(), part.topology.n_llcs()), (3, 2));
        assert_eq!(part.topology.distance(0, 3), Distance::Smt);
        assert_eq!(part.topology.distance(0, 2), Distance::Remote);
        assert_eq!((&part.name, &part.cost), (&whole.name, &whole.cost));
    }

    #[test]
    fn cpus_that_are_not_there_are_named() {
        let machine = load("quad-1s4c").unwrap();
        assert_eq!(machine.restricted(&[]), Err(RestrictError::None));
        let error = machine.restricted(&[1, 99]).unwrap_err().to_string();
        assert!(error.contains("no CPU 99") && error.contains("0-"), "{error}");
    }

    proptest! {
        #[test]
        fn lists_are_read_back(cpus in proptest::collection::btree_set(0u32..200, 0..40)) {
            let cpus: Vec<u32> = cpus.into_iter().collect();
            prop_assert_eq!(parse_cpu_list(&cpu_list(&cpus)).unwrap(), cpus);
        }

        #[test]
        fn any_part_is_a_machine(cpus in proptest::collection::btree_set(0u32..112, 1..60)) {
            let cpus: Vec<u32> = cpus.into_iter().collect();
            let whole = load("hsw-2s12c").unwrap();
            let there = cpus.iter().all(|c| (*c as usize) < whole.topology.n_cpus());
            match whole.restricted(&cpus) {
                Ok(part) => prop_assert!(there && part.topology.n_cpus() == cpus.len()),
                Err(_) => prop_assert!(!there),
            }
        }
    }
}
