//! A study file as parsed from TOML, before anything in it is checked. Every
//! value keeps its place, so that a message can point at it.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

/// Several texts, such as the variants of a run.
pub(crate) type Texts = Spanned<Vec<Spanned<String>>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawStudy {
    pub(crate) name: Spanned<String>,
    pub(crate) about: Spanned<String>,
    pub(crate) mechanism: Option<Spanned<String>>,
    /// These three of every study that has cases with workloads.
    pub(crate) machine: Option<Spanned<String>>,
    pub(crate) base: Option<Spanned<String>>,
    pub(crate) variants: Option<Texts>,
    pub(crate) on: Option<Spanned<String>>,
    /// Are figures of one side held within the tolerance of baselines?
    #[serde(default)]
    pub(crate) baselines: bool,
    pub(crate) seed: Option<Spanned<i64>>,
    pub(crate) repeats: Option<Spanned<i64>>,
    pub(crate) warmup: Option<Spanned<String>>,
    pub(crate) duration: Option<Spanned<String>>,
    #[serde(default, rename = "case")]
    pub(crate) cases: Vec<Spanned<RawCase>>,
    #[serde(default)]
    pub(crate) interference: Vec<Spanned<RawInterference>>,
    #[serde(default, rename = "claim")]
    pub(crate) claims: Vec<Spanned<RawClaim>>,
    #[serde(default)]
    pub(crate) unpredicted: Vec<RawUnpredicted>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawCase {
    pub(crate) name: Spanned<String>,
    pub(crate) workload: Spanned<String>,
    #[serde(default)]
    pub(crate) params: BTreeMap<Spanned<String>, Spanned<toml::Value>>,
    pub(crate) loads: Spanned<Vec<Spanned<i64>>>,
    pub(crate) metric: Option<Spanned<String>>,
    /// Several metrics of the same runs, in place of `metric`.
    pub(crate) metrics: Option<Texts>,
    /// These three in place of the study's own.
    pub(crate) machine: Option<Spanned<String>>,
    pub(crate) base: Option<Spanned<String>>,
    pub(crate) variants: Option<Texts>,
    /// The only task group.
    pub(crate) group: Option<Spanned<RawGroup>>,
    /// Several task groups, parents first, in place of `group`.
    pub(crate) groups: Option<Spanned<Vec<Spanned<RawGroup>>>>,
    /// What a CPU draws from its group's quota at a time.
    pub(crate) slice: Option<Spanned<String>>,
    pub(crate) repeats: Option<Spanned<i64>>,
    pub(crate) warmup: Option<Spanned<String>>,
    pub(crate) duration: Option<Spanned<String>>,
    /// Of all published figures that state none.
    pub(crate) source: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) published: Vec<Spanned<RawPublished>>,
}

/// A task group under bandwidth control.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawGroup {
    pub(crate) name: Option<Spanned<String>>,
    pub(crate) parent: Option<Spanned<String>>,
    pub(crate) tasks: Option<Texts>,
    pub(crate) quota: Option<Spanned<String>>,
    pub(crate) period: Option<Spanned<String>>,
    pub(crate) burst: Option<Spanned<String>>,
    pub(crate) phase: Option<Spanned<String>>,
}

/// A published figure of any kind; which keys go together is checked later.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawPublished {
    pub(crate) load: Spanned<i64>,
    /// Text: the variant that the figure is of. Number: the variant's figure.
    pub(crate) variant: Option<Spanned<toml::Value>>,
    /// Names the variant where `variant` is a number.
    pub(crate) with: Option<Spanned<String>>,
    pub(crate) metric: Option<Spanned<String>>,
    pub(crate) change_pct: Option<Spanned<f64>>,
    pub(crate) base: Option<Spanned<f64>>,
    pub(crate) side: Option<Spanned<String>>,
    pub(crate) value: Option<Spanned<f64>>,
    pub(crate) unit: Option<Spanned<String>>,
    /// One printed unit in the metric's own.
    pub(crate) times: Option<Spanned<f64>>,
    /// How much was done in the printed time.
    pub(crate) work: Option<Spanned<f64>>,
    pub(crate) stat: Option<Spanned<String>>,
    pub(crate) runs_above: Option<Spanned<toml::Value>>,
    pub(crate) of: Option<Spanned<i64>>,
    pub(crate) std_base_pct: Option<Spanned<f64>>,
    pub(crate) std_variant_pct: Option<Spanned<f64>>,
    pub(crate) std_base: Option<Spanned<f64>>,
    pub(crate) std_variant: Option<Spanned<f64>>,
    pub(crate) noise: Option<Spanned<String>>,
    pub(crate) source: Option<Spanned<String>>,
}

/// Groups that share CPUs by chance.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawInterference {
    pub(crate) name: Spanned<String>,
    pub(crate) demand: Spanned<String>,
    /// One request in percent of the quota, of `poisson` demand.
    pub(crate) step_pct: Option<Spanned<f64>>,
    /// The power of the tail, of `pareto` demand.
    pub(crate) alpha: Option<Spanned<f64>>,
    pub(crate) groups: Spanned<i64>,
    pub(crate) cpus: Option<Spanned<f64>>,
    pub(crate) load_is: Option<Spanned<String>>,
    pub(crate) loads: Spanned<Vec<Spanned<i64>>>,
    pub(crate) variants: Texts,
    pub(crate) metrics: Texts,
    pub(crate) periods: Option<Spanned<i64>>,
    pub(crate) repeats: Option<Spanned<i64>>,
    /// Of all published figures that state none.
    pub(crate) source: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) published: Vec<Spanned<RawJointPublished>>,
}

/// A published figure of such groups.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawJointPublished {
    pub(crate) load: Spanned<i64>,
    pub(crate) variant: Spanned<String>,
    pub(crate) metric: Spanned<String>,
    pub(crate) side: Spanned<String>,
    pub(crate) value: Spanned<f64>,
    pub(crate) source: Option<Spanned<String>>,
}

/// A published statement; which keys go with which kind is checked later.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawClaim {
    pub(crate) kind: RawClaimKind,
    pub(crate) case: Spanned<String>,
    pub(crate) metric: Option<Spanned<String>>,
    pub(crate) variant: Option<Spanned<String>>,
    pub(crate) side: Option<Spanned<String>>,
    pub(crate) load: Option<Spanned<i64>>,
    pub(crate) from: Option<Spanned<i64>>,
    pub(crate) to: Option<Spanned<i64>>,
    pub(crate) above_pct: Option<Spanned<f64>>,
    pub(crate) factor: Option<Spanned<f64>>,
    pub(crate) min: Option<Spanned<f64>>,
    pub(crate) max: Option<Spanned<f64>>,
    pub(crate) unit: Option<Spanned<String>>,
    pub(crate) source: Spanned<String>,
}

/// What can be claimed of a curve.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RawClaimKind {
    /// The baseline's metric is best at `load`.
    Peak,
    /// The gain starts between the loads `from` and `to`.
    Onset,
    /// The metric falls by `factor` at `load`.
    Fall,
    /// The metric of one side lies between `min` and `max` at `load`.
    Between,
    /// The spread of runs falls by `factor` from load `from` on.
    Steadier,
}

/// Something published that is left out on purpose.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawUnpredicted {
    pub(crate) what: Spanned<String>,
    pub(crate) figures: Spanned<String>,
    pub(crate) reason: Spanned<String>,
    pub(crate) source: Spanned<String>,
}
