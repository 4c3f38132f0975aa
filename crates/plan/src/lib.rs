//! Which quota, period and burst does a group need to meet a goal, what does that cost, and
//! who pays? A recording of the group's demand is replayed in the simulator under many
//! settings, at many phases of the period, and resampled. docs/plan.md says how.

mod error;
mod fluid;
mod goal;
mod limits;
mod load;
mod make;
mod neighbours;
mod picture;
mod plan;
mod range;
mod replay;
mod replica;
mod search;
#[cfg(test)]
mod tests;
mod worst_case;

pub use error::PlanError;
pub use goal::{Goal, Subject};
pub use limits::Limits;
pub use make::{Neighbour, Request, plan};
pub use picture::{Picture, Strip, pictures};
pub use plan::{
    Alternative, CdfPoint, Change, ClosedForm, Counts, Figures, Interval, Map, Model,
    NeighbourEffect, NeighbourGiven, Pair, Plan, Range, Recording, Shown, WorstCase,
};
pub use reveille_measure::Ns;
