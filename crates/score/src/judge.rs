//! From cells to a score: the geometric mean of gains, and which guardrails fail.

use std::collections::BTreeMap;

use reveille_measure::three_digits;
use serde::Serialize;

use crate::cell::{Candidate, Cell, Guarded, Status, percent};
use crate::gain::Gain;
use crate::suite::{Guardrail, Limit, Suite};
use crate::why;

#[derive(Clone, Debug, Serialize)]
pub struct Score {
    pub suite: String,
    /// What the candidate is compared with.
    pub base: String,
    /// Edits or file; empty for the baseline itself.
    pub candidate: String,
    pub seed: u64,
    pub status: Status,
    /// `combined_score` and its parts.
    pub metrics: BTreeMap<String, f64>,
    /// Why, in words.
    pub artifacts: BTreeMap<&'static str, String>,
    /// Those that judged a cell, in the order of the suite.
    pub guardrails: Vec<Guarded>,
    /// What ran, in the order of stages and of the suite.
    pub cells: Vec<Cell>,
    /// What did not, of the stages asked for.
    pub not_run: Vec<String>,
}

impl Score {
    /// The score of what never ran to its end: 0, and why.
    pub fn failed(
        suite: &Suite,
        base: &str,
        candidate: &str,
        status: Status,
        why: String,
    ) -> Score {
        Score {
            suite: suite.name.clone(),
            base: base.to_owned(),
            candidate: candidate.to_owned(),
            seed: suite.seed,
            status,
            metrics: BTreeMap::from([("combined_score".to_owned(), 0.0)]),
            artifacts: BTreeMap::from([("error", why)]),
            guardrails: Vec::new(),
            cells: Vec::new(),
            not_run: Vec::new(),
        }
    }

    pub fn combined(&self) -> f64 {
        self.metric("combined_score")
    }

    /// A metric; NaN if there is none of this name.
    pub fn metric(&self, name: &str) -> f64 {
        self.metrics.get(name).copied().unwrap_or(f64::NAN)
    }

    /// Shortens the artifacts to this many bytes, the most telling first.
    pub fn limit_artifacts(&mut self, bytes: usize) {
        why::limit(&mut self.artifacts, bytes);
    }
}

/// The score of what ran; `end` if something else than the last cell ended it.
pub(crate) fn judge(
    suite: &Suite,
    base: &str,
    candidate: &Candidate,
    cells: Vec<Cell>,
    not_run: Vec<String>,
    end: Option<Status>,
) -> Score {
    let guardrails: Vec<Guarded> =
        suite.guardrails.iter().filter_map(|g| guarded(g, &cells)).collect();
    let passed = guardrails.iter().filter(|g| g.passed).count();
    let mut metrics = BTreeMap::new();
    let mut add = |name: &str, value: f64| metrics.insert(name.replace('-', "_"), value);
    let all = Gain::of_cells(cells.iter().map(|c| &c.gain));
    let combined = match all {
        None => 0.0,
        Some(all) if passed == guardrails.len() => all.gain,
        // Below no change, above a policy that does not run.
        Some(all) => all.gain.min(1.0) * (1 + passed) as f64 / (1 + guardrails.len()) as f64,
    };
    add("combined_score", combined);
    if let Some(all) = all {
        add("gain", all.gain);
        add("gain_low", all.low);
        add("gain_high", all.high);
    }
    for of in [|c: &Cell| c.workload.clone(), |c: &Cell| c.machine.clone()] {
        let mut names: Vec<String> = cells.iter().map(of).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let own = cells.iter().filter(|c| of(c) == name).map(|c| &c.gain);
            if let Some(gain) = Gain::of_cells(own) {
                add(&format!("gain_{name}"), gain.gain);
            }
        }
    }
    for guardrail in &guardrails {
        add(&format!("guardrail_{}", guardrail.name), f64::from(u8::from(guardrail.passed)));
    }
    add("guardrails_failed", (guardrails.len() - passed) as f64);
    add("cells", cells.len() as f64);
    add("cells_not_run", not_run.len() as f64);
    let failed = passed < guardrails.len();
    let status = end.unwrap_or(if failed { Status::GuardrailFailed } else { Status::Passed });
    let artifacts = why::artifacts(status, &guardrails, &cells, &not_run);
    Score {
        suite: suite.name.clone(),
        base: base.to_owned(),
        candidate: candidate.name(),
        seed: suite.seed,
        status,
        metrics,
        artifacts,
        guardrails,
        cells,
        not_run,
    }
}

/// What a guardrail says of the cells that name it; `None` if none does.
fn guarded(guardrail: &Guardrail, cells: &[Cell]) -> Option<Guarded> {
    let own: Vec<&Cell> = cells.iter().filter(|c| c.guardrails.contains(&guardrail.name)).collect();
    let all = Gain::of_cells(own.iter().map(|c| &c.gain))?;
    let mut failures = Vec::new();
    for limit in guardrail.limits.iter().map(toml::Spanned::get_ref) {
        failures.extend(own.iter().filter_map(|cell| broken(limit, cell)));
        if let Some(least) = limit.at_least.filter(|least| own.len() > 1 && all.high < *least) {
            let (gain, cells) = (percent(all.gain), own.len());
            failures.push(format!(
                "mean of {cells} cells: gain {gain}, at least {} passes",
                percent(least)
            ));
        }
    }
    Some(Guarded {
        name: guardrail.name.clone(),
        about: guardrail.about.clone(),
        passed: failures.is_empty(),
        cells: own.len(),
        failures,
    })
}

/// How a cell breaks a limit, if it does. A figure that one side lacks breaks none.
fn broken(limit: &Limit, cell: &Cell) -> Option<String> {
    let label = cell.label();
    if let Some(least) = limit.at_least {
        let says =
            || format!("{label}: gain {}, at least {} passes", cell.gain_text(), percent(least));
        return (cell.gain.high < least).then(says);
    }
    let [base, candidate] = cell.sides.each_ref().map(|side| side.figure(&limit.figure));
    let most = match (limit.times, limit.rise) {
        (Some(times), _) => (base * times).max(limit.above.unwrap_or(0.0)),
        (_, Some(rise)) => base + rise,
        _ => f64::INFINITY,
    };
    let says = || {
        let [base, candidate, most] = [base, candidate, most].map(three_digits);
        format!("{label}: {} {base} -> {candidate}, at most {most} passes", limit.figure)
    };
    (candidate > most).then(says)
}
