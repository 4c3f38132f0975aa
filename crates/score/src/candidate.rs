//! What is scored.

use reveille_policy::PolicyFile;

#[derive(Clone, Debug)]
pub enum Candidate {
    /// The baseline itself, which scores 1.
    Base,
    /// Edits of the baseline: `+SIS_SHORT`; or another kernel: `v7.2`.
    Edits(String),
    /// A policy file, and edits besides.
    File(PolicyFile, String),
}

impl Candidate {
    /// The file or the edits; empty for the baseline.
    pub fn name(&self) -> String {
        match self {
            Candidate::Base => String::new(),
            Candidate::Edits(edits) => edits.clone(),
            Candidate::File(file, edits) if edits.is_empty() => file.name().to_owned(),
            Candidate::File(file, edits) => format!("{},{edits}", file.name()),
        }
    }
}
