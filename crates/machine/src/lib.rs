//! What a machine is, for a scheduler: which CPUs share a core, a cache, a
//! memory node and a socket, and what each mechanism of waking a task costs
//! there.
//!
//! Machines are plain files (`machines/*.toml`): every constant has a unit, a
//! value, a plausible range and a public source, an estimate from one, a measurement on the
//! machine itself, or the word `fitted`.
//! [`load`] finds one by preset name, by path, or by reading this host.
//!
//! ```
//! let spr = reveille_machine::load("spr-2s56c")?;
//! assert_eq!(spr.topology.n_cpus(), 224);
//! assert!(spr.cost.line_remote_ns > spr.cost.line_llc_ns);
//! # Ok::<(), reveille_machine::InputError>(())
//! ```

mod cost;
mod cpulist;
mod file;
mod found;
mod hwloc;
mod load;
mod machine;
mod presets;
mod restrict;
mod schema;
mod sysfs;
mod topology;
mod tunable;
mod unlike;
mod write;

pub use cost::{CostError, CostModel, Field, Kind};
pub use cpulist::{CpuListError, parse_cpu_list};
pub use load::load;
pub use machine::{Constant, DEFAULT_HZ, IdleState, MAX_FITTED, Machine, Measured, Origin};
pub use presets::{cost_model_names, preset_names};
pub use restrict::{RestrictError, cpu_list};
pub use reveille_place::{FileError, InputError};
pub use topology::{
    CpuId, CpuPlace, Distance, MAX_CPUS, MAX_LLC_CPUS, MAX_THREADS, Shape, Topology, TopologyError,
};
pub use tunable::Tunable;

pub use file::parse_toml;
pub use hwloc::parse_hwloc;
pub use sysfs::read_sysfs;
