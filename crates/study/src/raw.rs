//! A study file as it stands in TOML, before anything in it is checked. Every
//! value keeps its place, so that a message can point at it.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

/// Variants of the run.
pub(crate) type Texts = Spanned<Vec<Spanned<String>>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawStudy {
    pub(crate) name: Spanned<String>,
    pub(crate) about: Spanned<String>,
    pub(crate) machine: Spanned<String>,
    pub(crate) base: Spanned<String>,
    pub(crate) variants: Texts,
    pub(crate) seed: Option<Spanned<i64>>,
    pub(crate) repeats: Option<Spanned<i64>>,
    pub(crate) warmup: Option<Spanned<String>>,
    pub(crate) duration: Option<Spanned<String>>,
    #[serde(default, rename = "case")]
    pub(crate) cases: Vec<Spanned<RawCase>>,
    #[serde(default, rename = "claim")]
    pub(crate) claims: Vec<Spanned<RawClaim>>,
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
    pub(crate) repeats: Option<Spanned<i64>>,
    pub(crate) warmup: Option<Spanned<String>>,
    pub(crate) duration: Option<Spanned<String>>,
    /// Of all published figures that state none.
    pub(crate) source: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) published: Vec<Spanned<RawPublished>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawPublished {
    pub(crate) load: Spanned<i64>,
    /// May be left out if the study has one variant only.
    pub(crate) variant: Option<Spanned<String>>,
    pub(crate) change_pct: Spanned<f64>,
    pub(crate) std_base_pct: Option<Spanned<f64>>,
    pub(crate) std_variant_pct: Option<Spanned<f64>>,
    pub(crate) noise: Option<Spanned<String>>,
    pub(crate) source: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawClaim {
    pub(crate) kind: RawClaimKind,
    pub(crate) case: Spanned<String>,
    pub(crate) load: Spanned<i64>,
    pub(crate) source: Spanned<String>,
}

/// What can be claimed of a curve.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RawClaimKind {
    /// The baseline's metric is best at `load`.
    Peak,
}
