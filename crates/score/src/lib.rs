//! Is a wakeup policy better everywhere? One score over a suite of machines, workloads and loads,
//! and guardrails: each fails by name on a loss that reviewers hold against such patches.
//!
//! A [`Suite`] comes from a file; [`score`] runs a [`Candidate`] over it, cheap cells first.

mod cell;
mod gain;
mod judge;
mod run;
mod suite;
mod why;

pub use cell::{Candidate, Cell, Guarded, Status};
pub use judge::Score;
pub use run::{Options, Stages, score};
pub use suite::{Guardrail, Limit, Suite, SuiteCase, names};
pub use why::DEFAULT_ARTIFACT_BYTES;
