//! The Rust face of `policy/`: which rules are on ([`Policy`]), the state that
//! they read ([`World`]), and the decisions themselves, taken by the C code.

#![warn(missing_docs)]

mod array;
mod bandwidth;
mod cache_hot;
mod features;
mod ffi;
mod file;
mod group;
mod idle_filter;
mod ids;
#[cfg(test)]
mod layout;
mod scx;
mod settings;
mod sources;
mod state;
mod swqueue;
mod world;

pub use bandwidth::{BandwidthError, BandwidthLimits, LocalRuntime, PeriodStep, Pool};
pub use features::{
    BASELINES, Baseline, FEATURES, Feature, Policy, Tunables, bits, changes, scaling_factor,
};
pub use ffi::nr_idle_scan;
pub use file::{Draft, Message, MessageKind, POLICY_INTERFACE, PolicyFile, PolicyRun, Wakeup};
pub use group::{Groups, TaskGroup};
pub use ids::{CpuId, Id, TaskId};
pub use scx::{SCX_DEFAULT_BASE, WithoutMeaning, scx_names, scx_without_meaning};
pub use settings::settings;
pub use sources::POLICY_SOURCES;
pub use state::{Pick, Rule, ScanState, Task, WAKE_ALONE, WAKE_IN_TASK, WAKE_SYNC};
pub use swqueue::{swqueue_shard, swqueue_shard_tried, swqueue_shards};
pub use world::{LlcShape, World, WorldShape};

/// A policy file to begin with, which calls itself idea.c.
pub const POLICY_TEMPLATE: &str = include_str!("../csrc/template.c");

pub use reveille_measure::Ns;
