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

// A room imports only the rooms below it: tune, run, judge and read, model.
mod judge;
mod model;
mod read;
mod run;
mod tune;

pub use judge::agreement::{Agreement, AgreementKind, AgreementRow};
pub use judge::bench::{BENCH_FORMAT, BenchChange, BenchComparison, BenchFigure, BenchRuns};
pub use judge::change::{Change, Runs, nothing};
pub use judge::claim::Claim;
pub use judge::comparison::{Comparison, MachineUsed};
pub use judge::modes::{Mode, ModeChange, RowModes, Spread, modes};
pub use judge::row::{Detail, Explanation, Row, RowKind, SideDetail};
pub use judge::score::Score;
pub use judge::skill::Skill;
pub use judge::standing::{Standing, standing};
pub use judge::statistics::Figure;
pub use judge::summary::{MechanismScore, Summary, Total, summary};
pub use judge::track_record::TrackRecord;
pub use judge::verdict::Verdict;
pub use judge::{statistics, verdict};
pub use model::error::StudyError;
pub use model::interference::{
    BurstVariant, DEFAULT_PERIODS, DemandKind, FLUID, InterferenceCase, JOINT_MEASURES,
    JointMeasure, JointPublished, LoadIs, NO_BURST,
};
pub use model::measure::{GROUP_FIGURES, GroupFigure, Measure, MeasureFrom};
pub use model::on::On;
pub use model::published::{Published, PublishedFigure, Side, Unpredicted};
pub use model::scheduler::Scheduler;
pub use model::statement::{Statement, StatementKind};
pub use model::study::{
    Case, DEFAULT_DURATION, DEFAULT_HOST_DURATION, DEFAULT_HOST_WARMUP, DEFAULT_REPEATS,
    DEFAULT_SEED, DEFAULT_WARMUP, MAX_REPEATS, Point, Study, Variant,
};
pub use read::catalogue::{BASELINES, find, load, names, predicted_names};
pub use read::check::param_text;
pub use read::file::parse;
pub use read::parts::{Parts, compare, compare_on, kernel, machine};
pub use read::settings::whole_group;
pub use reveille_measure::{Direction, DurationError, Metric, duration_ns};
pub use reveille_place::{FileError, InputError};
pub use reveille_policy::TaskGroup;
pub use run::agree::{Stage, agree, check_both};
pub use run::native::{HostRunner, HostSide, check_host, measure};
pub use run::runner::{predictable, run, run_all};
pub use run::sides::run_sides;
pub use run::this_host::ThisHost;
pub use tune::fit::{
    DEFAULT_ROUNDS, Fit, FitOptions, FitRow, FitStep, FittedConstant, MAX_ROUNDS, fit,
};
pub use tune::fragile::{FragileRow, Fragility, RowPlace, fragility};
pub use tune::objective::Objective;
pub use tune::sensitivity::{
    ChangedRow, DEFAULT_POINTS, MAX_POINTS, MovedConstant, RangeOnMachine, Sample, SensitiveRow,
    Sensitivity, SensitivityOptions, sensitivity,
};

pub use reveille_measure::Ns;
