//! A recording as a Parquet file: one flat table of demands and samples, told apart by `kind`, that
//! any Parquet tool can read. The footer holds everything else as JSON.

pub(crate) mod pages;
mod read;
mod write;

use serde::{Deserialize, Serialize};

use crate::Usage;

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
#[derive(Serialize)]
struct About<'a> {
    version: u32,
    #[serde(flatten)]
    usage: &'a Usage,
}
