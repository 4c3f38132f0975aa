//! The statistics as tools of sched_ext read them: the `scx_stats` protocol, for scxtop and
//! exporters. The crate of that name is GPL-2.0-only, which Apache-2.0 dependencies exclude.
//!
//! A line asks, `{"req":"stats","args":{"target":"top"}}` or `{"req":"stats_meta"}`; a line answers,
//! `{"errno":0,"args":{"resp":…}}`. A connection stays open for more.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::stats::{Counters, GROUP_MEANINGS, NOW_MEANINGS, Stats};

/// Where such tools look.
pub const SOCKET: &str = "/run/scx/root/stats";
const EINVAL: i32 = 22;

/// A line of the protocol.
#[derive(Deserialize)]
pub struct Asked {
    req: String,
    #[serde(default)]
    args: BTreeMap<String, String>,
}

impl Asked {
    /// The answer; `stats` gets the figures.
    pub fn answer<E>(&self, stats: impl FnOnce() -> Result<Stats, E>) -> Result<Value, E> {
        let target = self.args.get("target").map_or("top", String::as_str);
        Ok(match (self.req.as_str(), target) {
            ("stats", "top") => said(0, flat(&stats()?)),
            ("stats_meta", _) => said(0, meta()),
            (req, target) => said(EINVAL, json!(format!("unknown request {req} of {target}"))),
        })
    }
}

fn said(errno: i32, resp: Value) -> Value {
    json!({ "errno": errno, "args": { "resp": resp } })
}

/// Counters at the top, groups by name.
fn flat(stats: &Stats) -> Value {
    let groups: Map<String, Value> =
        stats.groups.iter().map(|group| (group.cgroup.clone(), json!(group))).collect();
    let mut all = json!(stats.counters);
    all["at_ms"] = json!(stats.at_ms);
    all["features"] = json!(stats.features);
    all["policy"] = json!(stats.policy.as_deref().unwrap_or_default());
    all["groups"] = Value::Object(groups);
    all["groups_without_weight"] = json!(stats.groups_without_weight);
    all["limits_refused"] = json!(stats.limits_refused);
    all
}

/// What each figure is.
fn meta() -> Value {
    let number = |about: &str| json!({ "datum": "u64", "desc": about });
    let mut top: Map<String, Value> = Counters::MEANINGS
        .iter()
        .map(|(name, about)| ((*name).to_owned(), number(about)))
        .collect();
    let dict = |key: &str, datum: Value, about: &str| json!({ "dict": { "key": key, "datum": datum }, "desc": about });
    for (name, about) in NOW_MEANINGS {
        let text = json!({ "datum": "string", "desc": about });
        top.insert((*name).to_owned(), if *name == "policy" { text } else { number(about) });
    }
    top.insert("at_ms".to_owned(), number("Milliseconds since the scheduler was loaded"));
    top.insert("features".to_owned(), json!({ "array": "string", "desc": "Features that are on" }));
    top.insert(
        "rules".to_owned(),
        dict("string", json!("u64"), "Wakeups by the rule that chose the CPU"),
    );
    let of = json!({ "struct": "Group" });
    top.insert("groups".to_owned(), dict("string", of, "Task groups with a limit, by directory"));
    let mut group: Map<String, Value> = GROUP_MEANINGS
        .iter()
        .flat_map(|(names, about)| names.split(", ").map(|name| (name.to_owned(), number(about))))
        .collect();
    group.insert("cgroup".to_owned(), json!({ "datum": "string", "desc": "Its directory" }));
    json!({
        "Stats": { "name": "Stats", "top": "true", "desc": "scx_reveille", "fields": top },
        "Group": { "name": "Group", "desc": "A task group with a limit", "fields": group },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::GroupCounters;

    #[test]
    fn every_figure_is_in_the_metadata_and_unknown_requests_are_refused() {
        let group = GroupCounters { cgroup: "/a".to_owned(), ..GroupCounters::default() };
        let stats = Stats { groups: vec![group], at_ms: 7, ..Stats::default() };
        let ask = |line: &str| {
            let asked: Asked = serde_json::from_str(line).unwrap();
            asked.answer(|| Ok::<_, ()>(stats.clone())).unwrap()
        };
        let got = ask(r#"{"req":"stats","args":{"target":"top"}}"#);
        assert_eq!((&got["errno"], &got["args"]["resp"]["at_ms"]), (&json!(0), &json!(7)));
        let meta = ask(r#"{"req":"stats_meta"}"#);
        let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        let fields = |name: &str| keys(&meta["args"]["resp"][name]["fields"]);
        assert_eq!(keys(&got["args"]["resp"]), fields("Stats"));
        assert_eq!(keys(&got["args"]["resp"]["groups"]["/a"]), fields("Group"));
        for wrong in [r#"{"req":"what"}"#, r#"{"req":"stats","args":{"target":"cpu"}}"#] {
            assert_eq!(ask(wrong)["errno"], EINVAL);
        }
    }
}
