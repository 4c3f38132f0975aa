//! Which CPUs share what. The rest of Reveille numbers CPUs densely from 0 and
//! asks only two questions here: who belongs to a core, cache, node or socket,
//! and how far apart two CPUs are.

use std::fmt::Write;

use reveille_place::counted;

/// A CPU (hardware thread) of a [`Topology`]: dense, from 0.
pub type CpuId = u32;

/// Most CPUs in one machine: eight times the largest `NR_CPUS` that x86 kernels offer, and what
/// fits into the 16 bits of a CPU's number in the simulator.
pub const MAX_CPUS: usize = 65_536;

/// Most CPUs that share one last-level cache, whose idle masks are words of 64 bits: 64 words in
/// the simulator (`POLICY_LLC_WORDS`), eight in a kernel's program.
pub const MAX_LLC_CPUS: usize = 4096;

/// Most threads per core: SMT8 of POWER is the widest in use.
pub const MAX_THREADS: usize = 8;

/// Where one CPU sits. Ids are dense from 0 in each kind, over the whole machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuPlace {
    /// The number that the host's own kernel gives this CPU.
    pub os_cpu: u32,
    pub core: u32,
    /// Rank among the threads of its core, by CPU number.
    pub thread: u32,
    /// Cluster: cores that share an L2 cache or a part of the last-level cache's
    /// directory. Without any, every core is a cluster.
    pub cluster: u32,
    pub llc: u32,
    /// Memory (NUMA) node.
    pub node: u32,
    pub socket: u32,
}

/// How far a cache line travels between two CPUs, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Distance {
    Same,
    /// Another thread of the same core.
    Smt,
    /// Another core of the same cluster.
    Cluster,
    /// Another cluster of the same last-level cache.
    Llc,
    /// Another last-level cache of the same socket, in whatever memory node.
    Socket,
    Remote,
}

/// Why a set of CPUs is not a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    #[error("{what} is 0; a machine has at least one")]
    Zero {
        /// Name of the count, as in [`Shape`].
        what: &'static str,
    },
    #[error("{what} = {n} does not divide {whole} = {of}")]
    Uneven {
        /// `nodes_per_socket` or `cores_per_cluster`.
        what: &'static str,
        n: u32,
        /// `llcs_per_socket` or `cores_per_llc`.
        whole: &'static str,
        of: u32,
    },
    #[error("there is no CPU")]
    NoCpu,
    #[error("{cpus} CPUs are more than the {MAX_CPUS} that are supported")]
    TooManyCpus { cpus: u128 },
    #[error("{threads} threads per core are more than the {MAX_THREADS} that are supported")]
    TooManyThreads { threads: usize },
    #[error("{cpus} CPUs share one last-level cache; at most {MAX_LLC_CPUS} are supported")]
    LlcTooWide { cpus: u128 },
    #[error("{what} ids are not dense: {missing} is missing below {highest}")]
    NotDense {
        what: &'static str,
        /// Lowest id without a CPU.
        missing: u32,
        /// Highest id seen.
        highest: u32,
    },
    #[error("{inner} {id} lies in {outer} {first} and in {outer} {second}")]
    Split { inner: &'static str, id: u32, outer: &'static str, first: u32, second: u32 },
    #[error("two CPUs have the number {os_cpu}")]
    DuplicateCpu { os_cpu: u32 },
}

/// How many of what are in what, on a machine whose parts are all alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub sockets: u32,
    /// Memory nodes of a socket: NPS1, 2 and 4 of AMD, sub-NUMA clusters of Intel.
    pub nodes_per_socket: u32,
    /// Last-level caches of a socket; a memory node has an equal part of them.
    pub llcs_per_socket: u32,
    /// Cores of a last-level cache.
    pub cores_per_llc: u32,
    /// Cores of a cluster: 1 without clusters.
    pub cores_per_cluster: u32,
    /// Hardware threads of a core.
    pub threads: u32,
}

/// The CPUs of a machine and what they share. See [`Topology::of`] and
/// [`Topology::from_places`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    cpus: Vec<CpuPlace>,
    cores: Vec<Vec<CpuId>>,
    clusters: Vec<Vec<CpuId>>,
    llcs: Vec<Vec<CpuId>>,
    nodes: Vec<Vec<CpuId>>,
    sockets: Vec<Vec<CpuId>>,
}

impl Topology {
    /// A machine with one memory node per socket and no clusters: see [`Topology::of`].
    pub fn uniform(
        sockets: u32,
        llcs_per_socket: u32,
        cores_per_llc: u32,
        threads: u32,
    ) -> Result<Self, TopologyError> {
        let (nodes_per_socket, cores_per_cluster) = (1, 1);
        Self::of(Shape {
            sockets,
            nodes_per_socket,
            llcs_per_socket,
            cores_per_llc,
            cores_per_cluster,
            threads,
        })
    }

    /// A machine whose parts are all alike, numbered as x86 firmware does: the first
    /// threads of all cores, socket by socket, get CPUs 0 to cores − 1, the second
    /// threads follow, and so on.
    ///
    /// # Errors
    /// A count of 0, `nodes_per_socket` or `cores_per_cluster` that do not divide what
    /// they split, more than [`MAX_THREADS`] threads, more than [`MAX_LLC_CPUS`] CPUs
    /// per cache or [`MAX_CPUS`] in all.
    pub fn of(shape: Shape) -> Result<Self, TopologyError> {
        let Shape { sockets, llcs_per_socket, cores_per_llc, threads, .. } = shape;
        let counts = [
            ("sockets", sockets),
            ("llcs_per_socket", llcs_per_socket),
            ("cores_per_llc", cores_per_llc),
            ("threads", threads),
        ];
        let parts = [
            ("nodes_per_socket", shape.nodes_per_socket, "llcs_per_socket", llcs_per_socket),
            ("cores_per_cluster", shape.cores_per_cluster, "cores_per_llc", cores_per_llc),
        ];
        let mut all = counts.into_iter().chain(parts.map(|(what, n, ..)| (what, n)));
        if let Some((what, _)) = all.find(|(_, n)| *n == 0) {
            return Err(TopologyError::Zero { what });
        }
        if let Some(&(what, n, whole, of)) = parts.iter().find(|(_, n, _, of)| of % n != 0) {
            return Err(TopologyError::Uneven { what, n, whole, of });
        }
        if threads as usize > MAX_THREADS {
            return Err(TopologyError::TooManyThreads { threads: threads as usize });
        }
        let cpus = counts.iter().map(|&(_, n)| u128::from(n)).product::<u128>();
        if cpus > MAX_CPUS as u128 {
            return Err(TopologyError::TooManyCpus { cpus });
        }
        let n_cores = sockets * llcs_per_socket * cores_per_llc;
        let llcs_per_node = llcs_per_socket / shape.nodes_per_socket;
        let place = |cpu: u32| {
            let core = cpu % n_cores;
            let llc = core / cores_per_llc;
            CpuPlace {
                os_cpu: cpu,
                core,
                thread: cpu / n_cores,
                cluster: core / shape.cores_per_cluster,
                llc,
                node: llc / llcs_per_node,
                socket: llc / llcs_per_socket,
            }
        };
        Self::from_places((0..n_cores * threads).map(place).collect())
    }

    /// A machine from the place of each CPU; the index is the CPU's [`CpuId`].
    /// `thread` is computed here, whatever it was.
    ///
    /// # Errors
    /// No CPU, too many (see [`MAX_CPUS`], [`MAX_LLC_CPUS`], [`MAX_THREADS`]),
    /// ids with gaps, a core in two clusters, a cluster in two caches, a cache in two
    /// nodes or sockets, or two CPUs with one host number.
    pub fn from_places(mut cpus: Vec<CpuPlace>) -> Result<Self, TopologyError> {
        if cpus.is_empty() {
            return Err(TopologyError::NoCpu);
        }
        if cpus.len() > MAX_CPUS {
            return Err(TopologyError::TooManyCpus { cpus: cpus.len() as u128 });
        }
        let mut os_cpus: Vec<u32> = cpus.iter().map(|p| p.os_cpu).collect();
        os_cpus.sort_unstable();
        if let Some(pair) = os_cpus.windows(2).find(|w| w[0] == w[1]) {
            return Err(TopologyError::DuplicateCpu { os_cpu: pair[0] });
        }

        let cores = members(&cpus, "core", |p| p.core)?;
        let clusters = members(&cpus, "cluster", |p| p.cluster)?;
        let llcs = members(&cpus, "llc", |p| p.llc)?;
        let nodes = members(&cpus, "node", |p| p.node)?;
        let sockets = members(&cpus, "socket", |p| p.socket)?;
        within(&cpus, &cores, "core", "llc", |p| p.llc)?;
        within(&cpus, &cores, "core", "cluster", |p| p.cluster)?;
        within(&cpus, &clusters, "cluster", "llc", |p| p.llc)?;
        within(&cpus, &llcs, "llc", "node", |p| p.node)?;
        within(&cpus, &llcs, "llc", "socket", |p| p.socket)?;
        if let Some(llc) = llcs.iter().find(|m| m.len() > MAX_LLC_CPUS) {
            return Err(TopologyError::LlcTooWide { cpus: llc.len() as u128 });
        }
        for core in &cores {
            if core.len() > MAX_THREADS {
                return Err(TopologyError::TooManyThreads { threads: core.len() });
            }
            for (rank, &cpu) in core.iter().enumerate() {
                cpus[cpu as usize].thread = rank as u32;
            }
        }
        Ok(Self { cpus, cores, clusters, llcs, nodes, sockets })
    }

    /// The place of every CPU, in CPU order.
    pub fn cpus(&self) -> &[CpuPlace] {
        &self.cpus
    }

    pub fn n_cpus(&self) -> usize {
        self.cpus.len()
    }

    pub fn n_cores(&self) -> usize {
        self.cores.len()
    }

    /// Number of clusters: that of the cores, if cores are in none.
    pub fn n_clusters(&self) -> usize {
        self.clusters.len()
    }

    pub fn n_llcs(&self) -> usize {
        self.llcs.len()
    }

    /// Number of memory nodes that have CPUs.
    pub fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    pub fn n_sockets(&self) -> usize {
        self.sockets.len()
    }

    pub fn core_cpus(&self, core: u32) -> &[CpuId] {
        &self.cores[core as usize]
    }

    pub fn llc_cpus(&self, llc: u32) -> &[CpuId] {
        &self.llcs[llc as usize]
    }

    /// How far apart two CPUs are. Symmetric. Panics if there is no such CPU.
    pub fn distance(&self, a: CpuId, b: CpuId) -> Distance {
        let (p, q) = (&self.cpus[a as usize], &self.cpus[b as usize]);
        if a == b {
            Distance::Same
        } else if p.core == q.core {
            Distance::Smt
        } else if p.cluster == q.cluster {
            Distance::Cluster
        } else if p.llc == q.llc {
            Distance::Llc
        } else if p.socket == q.socket {
            Distance::Socket
        } else {
            Distance::Remote
        }
    }

    /// One line for people, such as
    /// `2 sockets x 56 cores x 2 threads = 224 CPUs, 2 LLCs of 112 CPUs`.
    pub fn describe(&self) -> String {
        let cpus = self.n_cpus();
        let (cores, sockets) = (self.n_cores(), self.n_sockets());
        let mut out = counted(sockets, "socket");
        let per_socket = self.sockets.iter().map(|s| self.cores_among(s));
        match (same(per_socket), same(self.cores.iter().map(Vec::len))) {
            (Some(c), Some(t)) => {
                let _ = write!(out, " x {} x {}", counted(c, "core"), counted(t, "thread"));
                let _ = write!(out, " = {}", counted(cpus, "CPU"));
            }
            _ => {
                let _ = write!(out, ", {}, {}", counted(cores, "core"), counted(cpus, "CPU"));
            }
        }
        let widths = self.llcs.iter().map(Vec::len);
        let (low, high) = (widths.clone().min().unwrap_or(0), widths.max().unwrap_or(0));
        let _ = write!(out, ", {} of ", counted(self.n_llcs(), "LLC"));
        if low != high {
            let _ = write!(out, "{low} to ");
        }
        let _ = write!(out, "{}", counted(high, "CPU"));
        if self.n_clusters() != cores {
            let _ = write!(out, ", {}", counted(self.n_clusters(), "cluster"));
        }
        if self.n_nodes() != sockets {
            let _ = write!(out, ", {}", counted(self.n_nodes(), "memory node"));
        }
        out
    }

    fn cores_among(&self, cpus: &[CpuId]) -> usize {
        cpus.iter().filter(|&&c| self.cpus[c as usize].thread == 0).count()
    }
}

/// CPUs by id of one kind; the ids must be dense.
fn members(
    cpus: &[CpuPlace],
    what: &'static str,
    id: impl Fn(&CpuPlace) -> u32,
) -> Result<Vec<Vec<CpuId>>, TopologyError> {
    let highest = cpus.iter().map(&id).max().unwrap_or(0);
    let mut lists = vec![Vec::new(); (highest as usize + 1).min(cpus.len())];
    for (cpu, place) in cpus.iter().enumerate() {
        if let Some(list) = lists.get_mut(id(place) as usize) {
            list.push(cpu as CpuId);
        }
    }
    match lists.iter().position(Vec::is_empty) {
        Some(gap) => Err(TopologyError::NotDense { what, missing: gap as u32, highest }),
        None if lists.len() <= highest as usize => {
            Err(TopologyError::NotDense { what, missing: lists.len() as u32, highest })
        }
        None => Ok(lists),
    }
}

/// Every part lies inside one whole.
fn within(
    cpus: &[CpuPlace],
    parts: &[Vec<CpuId>],
    inner: &'static str,
    outer: &'static str,
    whole: impl Fn(&CpuPlace) -> u32,
) -> Result<(), TopologyError> {
    for (id, part) in parts.iter().enumerate() {
        let first = whole(&cpus[part[0] as usize]);
        let other = part.iter().map(|&c| whole(&cpus[c as usize])).find(|&w| w != first);
        if let Some(second) = other {
            return Err(TopologyError::Split { inner, id: id as u32, outer, first, second });
        }
    }
    Ok(())
}

/// The value that all items have, if they have one.
fn same(mut items: impl Iterator<Item = usize>) -> Option<usize> {
    let first = items.next()?;
    items.all(|n| n == first).then_some(first)
}
