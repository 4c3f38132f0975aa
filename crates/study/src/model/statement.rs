//! Published statements about whole curves, such as where a throughput peaks or a
//! gain starts.

use crate::model::published::Side;

/// A published statement about a curve of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Index into [`Study::cases`](crate::Study::cases).
    pub case: usize,
    /// Index into the case's metrics.
    pub metric: usize,
    pub kind: StatementKind,
    pub source: String,
}

/// What can be stated of a curve. Variants are indices into those of the case, loads
/// are among those that it runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StatementKind {
    /// The baseline's metric is best at this load, give or take 15%.
    Peak {
        /// Has another load on either side.
        load: u64,
    },
    /// The gain starts between two loads: the smallest load from which on the change
    /// stays large enough is one of them or between them.
    Onset {
        variant: usize,
        from: u64,
        to: u64,
        /// From this change on it is a gain, in percent.
        above_pct: f64,
    },
    /// The metric falls at least by a factor.
    Fall {
        variant: usize,
        load: u64,
        /// Baseline divided by variant is at least this.
        factor: f64,
    },
    /// The metric of one side lies between two values.
    Between {
        /// Of which variant, if the side is the variant.
        variant: usize,
        side: Side,
        load: u64,
        /// The least value in the metric's unit, if there is one.
        min: Option<f64>,
        /// The largest value in the metric's unit, if there is one.
        max: Option<f64>,
    },
    /// The standard deviation over runs falls at least by a factor.
    Steadier {
        variant: usize,
        /// At this load and at all higher ones.
        from: u64,
        /// Baseline divided by variant is at least this.
        factor: f64,
    },
}

impl StatementKind {
    /// As study files and JSON name it.
    pub fn name(&self) -> &'static str {
        match self {
            StatementKind::Peak { .. } => "peak",
            StatementKind::Onset { .. } => "onset",
            StatementKind::Fall { .. } => "fall",
            StatementKind::Between { .. } => "between",
            StatementKind::Steadier { .. } => "steadier",
        }
    }
}
