//! The score of several studies together: by mechanism, and overall.

use serde::Serialize;

use crate::judge::comparison::Comparison;
use crate::judge::score::Score;
use crate::judge::skill::Skill;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    pub score: Total,
    pub skill: Skill,
    /// Claims that agree; no part of the score.
    pub claim_hits: usize,
    pub claims: usize,
    /// One for each mechanism, in the order in which studies first name it; a study
    /// that names none stands under its own name.
    pub mechanisms: Vec<MechanismScore>,
}

/// Hits among the rows that count.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Total {
    pub hits: usize,
    pub counted: usize,
    /// Hits in percent of what counts; null if nothing does.
    pub pct: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MechanismScore {
    /// Such as `SIS_SHORT`.
    pub mechanism: String,
    pub studies: Vec<String>,
    pub hits: usize,
    pub counted: usize,
    pub pct: Option<f64>,
    pub skill: Skill,
    pub claim_hits: usize,
    pub claims: usize,
}

pub fn summary(comparisons: &[Comparison]) -> Summary {
    let mut mechanisms: Vec<MechanismScore> = Vec::new();
    let mut all = Score::default();
    for c in comparisons {
        all.hits += c.score.hits;
        all.counted += c.score.counted;
        let name = c.mechanism.as_ref().unwrap_or(&c.study);
        let at = mechanisms.iter().position(|m| m.mechanism == *name).unwrap_or_else(|| {
            mechanisms.push(MechanismScore {
                mechanism: name.clone(),
                studies: Vec::new(),
                hits: 0,
                counted: 0,
                pct: None,
                skill: Skill::default(),
                claim_hits: 0,
                claims: 0,
            });
            mechanisms.len() - 1
        });
        let m = &mut mechanisms[at];
        m.studies.push(c.study.clone());
        m.hits += c.score.hits;
        m.counted += c.score.counted;
        m.pct = Score { hits: m.hits, counted: m.counted }.pct();
        m.skill += c.skill;
        m.claim_hits += c.claim_score.hits;
        m.claims += c.claim_score.counted;
    }
    let mut skill = Skill::default();
    mechanisms.iter().for_each(|m| skill += m.skill);
    Summary {
        score: Total { hits: all.hits, counted: all.counted, pct: all.pct() },
        skill,
        claim_hits: mechanisms.iter().map(|m| m.claim_hits).sum(),
        claims: mechanisms.iter().map(|m| m.claims).sum(),
        mechanisms,
    }
}
