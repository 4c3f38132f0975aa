//! Which quota, period and burst does a group need to meet a goal, at what cost, and at whose
//! expense? Replays a recording of the group's demand in the simulator under many settings, at many
//! phases of the period, and resampled. See docs/plan.md.

#[cfg(test)]
mod advice;
pub mod circle;
mod counters;
mod error;
mod facts;
mod figures;
mod fleet;
mod fluid;
mod goal;
mod grid;
mod growth;
mod inferred;
mod lean;
mod limits;
mod load;
mod make;
mod neighbours;
mod observed;
mod obstacle;
mod picture;
mod plan;
mod platform;
mod possible;
mod recover;
mod replay;
mod replica;
mod request;
mod search;
mod short;
mod sketch;
#[cfg(test)]
mod tests;
mod threads;
mod verify;
mod worst_case;

pub use error::PlanError;
pub(crate) use error::Result;
pub use figures::{CdfPoint, Figures, Interval, Range};
pub use fleet::{Container, Failed, Fleet, Likely, Skipped, fleet, in_shard};
pub use goal::{Goal, Subject, quantile_name};
pub use inferred::{HOW_TO_KNOW, Inferred, InferredFrom};
pub use limits::parse_limits;
pub use make::plan;
pub use observed::Observed;
pub use picture::{Picture, Strip, pictures};
pub use plan::{
    Alternative, Brief, Change, ClosedForm, Counts, Map, Model, NeighbourEffect, NeighbourGiven,
    OfThreads, Pair, Plan, Recording, Shown, WorstCase,
};
pub use platform::{Allowed, Platform};
pub use recover::{Recovered, recovered};
pub use replay::cpus_like;
pub use request::{Neighbour, Request};
pub use reveille_measure::Ns;
pub use short::{Lacking, TooShort};
pub use threads::plan_threads;
pub use verify::{Control, Measured, Trial, Verdict, Verification, Verified, verify};
