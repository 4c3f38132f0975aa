//! Counts of hits.

use serde::Serialize;

use crate::judge::row::Row;
use crate::judge::verdict::Verdict;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Score {
    /// Rows (or claims) that agree.
    pub hits: usize,
    /// Rows (or claims) that have a published figure and count.
    pub counted: usize,
}

impl Score {
    /// Hits in percent of what counts; `None` if nothing does.
    pub fn pct(self) -> Option<f64> {
        (self.counted > 0).then(|| 100.0 * self.hits as f64 / self.counted as f64)
    }
}

pub(crate) fn score(rows: &[Row]) -> Score {
    count(rows.iter().filter_map(|r| r.verdict))
}

pub(crate) fn count(verdicts: impl Iterator<Item = Verdict>) -> Score {
    let mut score = Score::default();
    for verdict in verdicts {
        score.hits += usize::from(verdict == Verdict::Hit);
        score.counted += usize::from(verdict != Verdict::Informative);
    }
    score
}
