//! A published figure, in the form in which its source prints it.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    Base,
    Variant,
}

/// A published figure of one load, variant and metric of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// Index into the case's variants.
    pub variant: usize,
    /// Index into the case's metrics.
    pub metric: usize,
    pub figure: PublishedFigure,
    /// Relative standard deviation of the baseline in percent, if published.
    pub std_base_pct: Option<f64>,
    pub std_variant_pct: Option<f64>,
    /// How the source itself calls the figure noise, if it does.
    pub noise: Option<String>,
    pub source: String,
}

#[derive(Clone, Debug, PartialEq)]
pub enum PublishedFigure {
    /// How much better the variant was.
    Change {
        /// In percent; positive is better, whatever the metric. Above -100.
        change_pct: f64,
    },
    /// Both sides; only their ratio is judged, since the machines differ.
    Pair {
        /// Under the baseline, as printed; above 0.
        base: f64,
        variant: f64,
        /// Unit as printed.
        unit: Option<String>,
    },
    /// One side alone, judged by its own size.
    Side {
        side: Side,
        /// As printed; not negative.
        value: f64,
        /// Unit as printed; the metric's own if there is none.
        unit: Option<String>,
        /// `value` in the metric's unit.
        own: f64,
    },
    /// The standard deviation over runs of both sides, never counted.
    Std { base: f64, variant: f64, unit: Option<String> },
    /// How many runs of one side went above a bound.
    RunsAbove {
        side: Side,
        /// The bound, in the metric's unit.
        above: f64,
        /// The bound as written.
        above_text: String,
        /// Runs above it; at most `of`.
        runs: u32,
        /// Runs altogether; at least 1.
        of: u32,
    },
}

/// Something published that no run of the study is held against.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unpredicted {
    pub what: String,
    pub figures: String,
    pub reason: String,
    pub source: String,
}

impl Published {
    /// Do both say the same kind of thing of the same side, so that one is too many?
    pub(crate) fn same_place(&self, other: &Published) -> bool {
        use PublishedFigure::{Change, Pair, RunsAbove, Side, Std};
        let figures = match (&self.figure, &other.figure) {
            (Change { .. } | Pair { .. }, Change { .. } | Pair { .. }) => true,
            (Side { side: a, .. }, Side { side: b, .. }) => a == b,
            (Std { .. }, Std { .. }) => true,
            (RunsAbove { side: a, above: x, .. }, RunsAbove { side: b, above: y, .. }) => {
                a == b && x == y
            }
            _ => false,
        };
        figures && self.variant == other.variant && self.metric == other.metric
    }
}
