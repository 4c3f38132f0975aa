//! A recording as a Parquet file: one flat table of demands and samples, told apart by `kind`, that
//! any Parquet tool can read. The footer holds everything else as JSON.

pub(crate) mod pages;
mod read;
mod write;

use reveille_policy::BandwidthLimits;
use serde::{Deserialize, Serialize};

use crate::{Ns, Origin, Usage};

/// First and last bytes of every Parquet file.
pub(crate) const MAGIC: &[u8; 4] = b"PAR1";
/// Key of that JSON in the footer.
const KEY: &str = "reveille.usage";
/// Incremented when older readers would misread a file.
const VERSION: u32 = 1;
/// Version of a file of averages without demands, which are recomputed from its samples.
const WITHOUT_DEMANDS: u32 = 2;

/// The columns besides `kind`, all integers; `at_ns` is never null.
const COLUMNS: [&str; 9] = [
    "at_ns",
    "thread",
    "cpu_ns",
    "done_ns",
    "runtime_ns",
    "runnable",
    "nr_periods",
    "nr_throttled",
    "throttled_ns",
];

/// A row's numbers, in the order of [`COLUMNS`].
type Row = [Option<u64>; COLUMNS.len()];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Demand,
    Sample,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Demand => "demand",
            Kind::Sample => "sample",
        }
    }
}

/// The version alone: a later version may change the rest.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// The JSON in the footer.
#[derive(Serialize, Deserialize)]
struct About {
    version: u32,
    name: String,
    origin: Origin,
    span_ns: Ns,
    threads: u32,
    limits: Option<BandwidthLimits>,
    host_cpus: Option<u32>,
    began_unix_ns: Option<u64>,
    overhead: Option<f64>,
    warnings: Vec<String>,
}

impl About {
    fn of(usage: &Usage, version: u32) -> About {
        About {
            version,
            name: usage.name.clone(),
            origin: usage.origin,
            span_ns: usage.span_ns,
            threads: usage.threads,
            limits: usage.limits,
            host_cpus: usage.host_cpus,
            began_unix_ns: usage.began_unix_ns,
            overhead: usage.overhead,
            warnings: usage.warnings.clone(),
        }
    }

    /// The recording, still without its rows.
    fn into_usage(self) -> Usage {
        Usage {
            name: self.name,
            origin: self.origin,
            span_ns: self.span_ns,
            threads: self.threads,
            demands: Vec::new(),
            samples: Vec::new(),
            limits: self.limits,
            host_cpus: self.host_cpus,
            began_unix_ns: self.began_unix_ns,
            overhead: self.overhead,
            warnings: self.warnings,
        }
    }
}
