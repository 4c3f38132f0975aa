//! Recordings of what CPU time a group of tasks asked for, and when: the one value that
//! recorders fill in, files hold, and the planner and the replay start from.

mod recording;

pub use recording::{Demand, Ns, Origin, Sample, Usage};
