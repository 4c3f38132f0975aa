//! Sweeps: the baseline and every edit under many conditions (machine × kernel × workload ×
//! load × constants × seed, as a grid or a sample), as one table with a row per cell and metric.
//!
//! A [`Spec`] is a file; with its machines, workloads and policy files it becomes a [`Sweep`].
//! What is to be run is its [`Design`], plain data that stands in every result. A [`Journal`]
//! keeps finished cells, so that a sweep goes on where it was killed. The [`Table`] is the same,
//! byte for byte, however the work was split: rows are ordered by cell, and a cell's id comes from
//! its content alone.

mod design;
mod draw;
mod effect;
mod error;
mod journal;
mod merge;
mod parquet_file;
mod run;
mod spec;
mod table;

pub use design::{Cell, CellId, Design, Edit, MODEL, Point};
pub use effect::{Effect, effects};
pub use error::SweepError;
pub use journal::{Journal, MetricRuns, Outcome, Outcomes, crashed};
pub use merge::merge;
pub use parquet_file::{Finished, read};
pub use run::{Progress, Sweep};
pub use spec::Spec;
pub use table::{Column, Table, Values};
