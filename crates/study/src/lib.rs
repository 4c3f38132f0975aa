//! A study: machine × workload × policy variants × loads, run with repeats and
//! held against what was published. It runs in virtual time ([`run`]), on this host
//! ([`measure`](measure())), or in both worlds, one held against the other ([`agree`](agree())).
//!
//! A [`Study`] comes from a file ([`load`], [`parse`]) or from command-line parts
//! ([`compare`]); [`run`] turns it into a [`Comparison`], which every view shows.
//!
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//!
//! let study = reveille_study::load("sis-short")?;
//! let stop = AtomicBool::new(false);
//! let comparison = reveille_study::run(&study, 2, &stop, &|done, total| {
//!     eprintln!("{done} of {total}");
//! })?;
//! println!("{} of {} hit", comparison.score.hits, comparison.score.counted);
//! # Ok::<(), reveille_study::StudyError>(())
//! ```

mod agree;
mod agreement;
mod bench;
mod catalogue;
mod check;
mod claim;
mod comparison;
mod error;
mod file;
mod fit;
mod fold;
mod fragile;
mod interference;
mod joint;
mod joint_rows;
mod knob;
mod matrix;
mod measure;
mod modes;
mod native;
mod objective;
mod on;
mod parts;
mod published;
mod raw;
mod row;
mod rows;
mod runner;
mod scheduler;
mod score;
mod sensitivity;
mod settings;
mod skill;
mod standing;
mod statement;
pub mod statistics;
mod study;
mod summary;
mod sweep;
mod this_host;
mod variant;
pub mod verdict;

pub use agree::{Stage, agree, check_both};
pub use agreement::{Agreement, AgreementKind, AgreementRow};
pub use bench::{BENCH_FORMAT, BenchChange, BenchComparison, BenchFigure, BenchRuns};
pub use catalogue::{BASELINES, find, load, names, predicted_names};
pub use claim::Claim;
pub use comparison::{Comparison, MachineUsed};
pub use error::StudyError;
pub use file::parse;
pub use fit::{DEFAULT_ROUNDS, Fit, FitOptions, FitRow, FitStep, FittedConstant, MAX_ROUNDS, fit};
pub use fragile::{End, FragileRow, Fragility, RowPlace, Turn, fragility};
pub use interference::{
    BurstVariant, DEFAULT_PERIODS, DemandKind, FLUID, InterferenceCase, JOINT_MEASURES,
    JointMeasure, JointPublished, LoadIs, NO_BURST,
};
pub use measure::{GROUP_FIGURES, GroupFigure, Measure, MeasureFrom};
pub use modes::{Mode, ModeChange, RowModes, Spread, modes};
pub use native::{HostRunner, HostSide, check_host, measure};
pub use objective::Objective;
pub use on::On;
pub use parts::{Parts, compare, kernel, machine};
pub use published::{Published, PublishedFigure, Side, Unpredicted};
pub use reveille_measure::{Direction, DurationError, Metric, duration_ns};
pub(crate) use reveille_measure::{duration_text, unit_ns};
pub use reveille_place::FileError;
pub use reveille_policy::TaskGroup;
pub use row::{Detail, Explanation, Row, RowKind, SideDetail};
pub use runner::{run, run_all};
pub use scheduler::Scheduler;
pub use score::Score;
pub use sensitivity::{
    ChangedRow, DEFAULT_POINTS, MAX_POINTS, MovedConstant, RangeOnMachine, Sample, SensitiveRow,
    Sensitivity, SensitivityOptions, sensitivity,
};
pub use settings::whole_group;
pub use skill::Skill;
pub use standing::{Standing, standing};
pub use statement::{Statement, StatementKind};
pub use statistics::Figure;
pub use study::{
    Case, DEFAULT_DURATION, DEFAULT_HOST_DURATION, DEFAULT_HOST_WARMUP, DEFAULT_REPEATS,
    DEFAULT_SEED, DEFAULT_WARMUP, MAX_REPEATS, Point, Study, Variant,
};
pub use summary::{MechanismScore, Summary, Total, summary};
pub use this_host::ThisHost;
pub use verdict::Verdict;

/// Nanoseconds, of virtual or of real time.
pub type Ns = reveille_measure::Ns;
