//! A study with every name resolved and every number checked: nothing in it can
//! be wrong any more, so that running it needs no further questions.

use reveille_machine::Machine;
use reveille_policy::Policy;
use reveille_workload::{Metric, Program};

use crate::check::{self, Problem};
use crate::{Ns, StudyError};

/// Runs of each load under each policy, unless stated.
pub const DEFAULT_REPEATS: u32 = 5;
/// Most repeats: by then a mean is known to 3% of one standard deviation.
pub const MAX_REPEATS: u32 = 1000;
/// Seed, unless stated.
pub const DEFAULT_SEED: u64 = 1;
/// Virtual time before measuring starts, unless stated.
pub const DEFAULT_WARMUP: &str = "60ms";
/// Virtual time measured, unless stated.
pub const DEFAULT_DURATION: &str = "30ms";

/// A study that is ready to [`run`](crate::run).
#[derive(Clone, Debug)]
pub struct Study {
    /// Short name: `sis-short`.
    pub name: String,
    /// What it is, in a sentence.
    pub about: String,
    /// The machine that everything runs on.
    pub machine: Machine,
    /// What variants are compared with.
    pub base: Policy,
    /// At least one; no two have the same features.
    pub variants: Vec<Policy>,
    /// All randomness of all runs comes from it.
    pub seed: u64,
    /// At least one; names differ.
    pub cases: Vec<Case>,
    /// Published statements about whole curves.
    pub peaks: Vec<Peak>,
}

/// One workload over a range of loads.
#[derive(Clone, Debug)]
pub struct Case {
    /// As rows name it.
    pub name: String,
    /// Name of the workload.
    pub workload: String,
    /// What a run is judged by.
    pub metric: Metric,
    /// At least one, in the order of the file; loads differ.
    pub points: Vec<Point>,
    /// Runs of each load under each policy; at least one.
    pub repeats: u32,
    /// Virtual time before measuring starts.
    pub warmup_ns: Ns,
    /// Virtual time measured; not 0.
    pub duration_ns: Ns,
}

/// One load of a case.
#[derive(Clone, Debug)]
pub struct Point {
    /// In the workload's own unit; not 0.
    pub load: u64,
    /// The workload at this load.
    pub program: Program,
    /// At most one for each variant.
    pub published: Vec<Published>,
}

/// A published figure: the change that a variant made at one load.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// Index into [`Study::variants`].
    pub variant: usize,
    /// Change in percent; positive is better, whatever the metric. Above -100.
    pub change_pct: f64,
    /// Relative standard deviation of the baseline in percent, if published.
    pub std_base_pct: Option<f64>,
    /// Relative standard deviation of the variant in percent, if published.
    pub std_variant_pct: Option<f64>,
    /// How the source itself calls the figure noise, if it does.
    pub noise: Option<String>,
    /// Where it was published.
    pub source: String,
}

/// A published statement: the baseline's metric is best at this load.
#[derive(Clone, Debug, PartialEq)]
pub struct Peak {
    /// Index into [`Study::cases`].
    pub case: usize,
    /// One of the case's loads, with another on either side.
    pub load: u64,
    /// Where it was published.
    pub source: String,
}

impl Study {
    /// The same study with this many repeats of every case.
    ///
    /// # Errors
    /// [`StudyError::Option`] unless 1 to [`MAX_REPEATS`].
    pub fn with_repeats(mut self, repeats: u32) -> Result<Study, StudyError> {
        let checked = check::repeats(i64::from(repeats));
        let repeats = checked.map_err(|p: Problem| StudyError::option("--repeats", p))?;
        for case in &mut self.cases {
            case.repeats = repeats;
        }
        Ok(self)
    }
}
