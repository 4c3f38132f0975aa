//! The keys of a machine file, as parsed. Unknown ones are refused, so
//! that a misspelt constant is not silently the inherited one.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

/// Constants by name; both keep their place in the file, for messages.
pub(crate) type RawConstants = BTreeMap<Spanned<String>, Spanned<RawConstant>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawMachine {
    pub name: Spanned<String>,
    pub about: Spanned<String>,
    pub source: Spanned<String>,
    pub cost: Spanned<String>,
    pub hz: Option<Spanned<u32>>,
    pub topology: Spanned<RawTopology>,
    #[serde(default)]
    pub constants: RawConstants,
    #[serde(default)]
    pub idle: Vec<Spanned<RawIdle>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawCostModel {
    pub name: Spanned<String>,
    pub about: Spanned<String>,
    pub constants: RawConstants,
    pub idle: Vec<Spanned<RawIdle>>,
}

#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table with `sockets`, `llcs_per_socket`, `cores_per_llc` and `threads`"
)]
pub(crate) struct RawTopology {
    pub sockets: Spanned<u32>,
    pub nodes_per_socket: Option<Spanned<u32>>,
    pub llcs_per_socket: Spanned<u32>,
    pub cores_per_llc: Spanned<u32>,
    pub cores_per_cluster: Option<Spanned<u32>>,
    pub threads: Spanned<u32>,
}

/// The lowest and the highest value. An array of serde's would take a longer list, and leave out the rest.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "Vec<T>")]
pub(crate) struct Bounds<T>(pub [T; 2]);

impl<T> TryFrom<Vec<T>> for Bounds<T> {
    type Error = String;

    fn try_from(values: Vec<T>) -> Result<Bounds<T>, String> {
        let given = values.len();
        let two = values.try_into().map(Bounds);
        two.map_err(|_| format!("a range has two numbers, the lowest and the highest, not {given}"))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with `value`, `range` and a source")]
pub(crate) struct RawConstant {
    pub value: Spanned<f64>,
    pub range: Spanned<Bounds<f64>>,
    pub source: Option<String>,
    pub estimate: Option<String>,
    pub measured: Option<RawMeasured>,
    pub fitted: Option<String>,
}

#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table with `name`, `exit_ns`, `residency_ns`, `polling` and `range`"
)]
pub(crate) struct RawIdle {
    pub name: String,
    pub exit_ns: u32,
    pub residency_ns: u32,
    pub polling: bool,
    pub range: Bounds<u32>,
    pub source: Option<String>,
    pub estimate: Option<String>,
    pub measured: Option<RawMeasured>,
    pub fitted: Option<String>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawMeasured {
    pub how: String,
    pub p10: f64,
    pub p90: f64,
    pub samples: u64,
}
