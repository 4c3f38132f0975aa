//! Which quota, period and burst does a group need to meet a goal, what does that cost, and
//! who pays? A recording of the group's demand is replayed in the simulator under many
//! settings, at many phases of the period, and resampled. docs/plan.md says how.

pub mod circle;
mod error;
mod limits;
mod plan;

pub use error::PlanError;
pub use limits::Limits;
pub use plan::{
    Alternative, CdfPoint, Change, ClosedForm, Counts, Figures, Interval, Map, Model,
    NeighbourEffect, NeighbourGiven, Pair, Plan, Range, Recording, Shown, WorstCase,
};
pub use reveille_measure::Ns;
