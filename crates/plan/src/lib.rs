//! Which quota, period and burst does a group need to meet a goal, at what cost, and at whose
//! expense? Replays a recording of the group's demand in the simulator under many settings, at many
//! phases of the period, and resampled. See docs/plan.md.

#[cfg(test)]
mod advice;
pub mod circle;
mod counters;
mod error;
mod facts;
mod fleet;
mod fluid;
mod goal;
mod growth;
mod lean;
mod limits;
mod load;
mod make;
mod neighbours;
mod observed;
mod picture;
mod plan;
mod platform;
mod possible;
mod range;
mod recover;
mod replay;
mod replica;
mod search;
mod sketch;
#[cfg(test)]
mod tests;
mod threads;
mod verify;
mod worst_case;

pub use error::PlanError;
pub use fleet::{Container, Failed, Fleet, Likely, fleet, in_shard};
pub use goal::{Goal, Subject, quantile_name};
pub use limits::parse_limits;
pub use make::{Neighbour, Request, plan};
pub use observed::Observed;
pub use picture::{Picture, Strip, pictures};
pub use plan::{
    Alternative, CdfPoint, Change, ClosedForm, Counts, Figures, Interval, Map, Model,
    NeighbourEffect, NeighbourGiven, Pair, Plan, Range, Recording, Shown, WorstCase,
};
pub use platform::{Allowed, Platform};
pub use recover::{Inferred, InferredFrom, Recovered, recovered};
pub use replay::cpus_like;
pub use reveille_measure::Ns;
pub use threads::{Brief, OfThreads, plan_threads};
pub use verify::{Control, Measured, Trial, Verdict, Verification, Verified, verify};
