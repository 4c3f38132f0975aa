//! Which containers there are, and how one is chosen.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use reveille_place::Mistake;
use reveille_usage::Select;
use serde::Deserialize;

use crate::{Server, ServerError, Span};

const USAGE: &str = "container_cpu_usage_seconds_total";
/// Labels that say which container a series is of; `cluster` where a server knows several.
const NAMING: [&str; 4] = ["cluster", "namespace", "pod", "container"];
/// What Kubernetes makes the random ends of pods' names of.
const RANDOM: &str = "[bcdfghjklmnpqrstvwxz2456789]";

/// Which containers are meant; all if nothing is given.
#[derive(Clone, Debug, Default)]
pub struct Selector {
    pub namespace: Option<String>,
    /// Of this workload's pods.
    pub workload: Option<Workload>,
    pub container: Option<String>,
    /// Whose series have these labels.
    pub labels: Vec<Select>,
}

/// What makes pods, as `deploy/web`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    kind: Kind,
    name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Deployment,
    StatefulSet,
    DaemonSet,
    Job,
    CronJob,
    Pod,
}

/// As kubectl calls them, and in short.
const KINDS: [(Kind, &[&str]); 6] = [
    (Kind::Deployment, &["deploy", "deployment", "deployments"]),
    (Kind::StatefulSet, &["sts", "statefulset", "statefulsets"]),
    (Kind::DaemonSet, &["ds", "daemonset", "daemonsets"]),
    (Kind::Job, &["job", "jobs"]),
    (Kind::CronJob, &["cj", "cronjob", "cronjobs"]),
    (Kind::Pod, &["po", "pod", "pods"]),
];

impl FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Workload, String> {
        let known = |kind: &str| KINDS.into_iter().find(|(_, names)| names.contains(&kind));
        let valid = |name: &str| {
            let fits = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
            !name.is_empty() && name.bytes().all(fits)
        };
        match text.split_once('/').map(|(kind, name)| (known(kind), name)) {
            Some((Some((kind, _)), name)) if valid(name) => {
                Ok(Workload { kind, name: name.into() })
            }
            _ => Err("write KIND/NAME, such as deploy/web, sts/db, ds/agent, job/report, \
                      cronjob/backup or pod/web-0"
                .into()),
        }
    }
}

impl Workload {
    /// A regular expression of its pods' names.
    fn pods(&self) -> String {
        let name = self.name.replace('.', "[.]");
        match self.kind {
            Kind::Deployment => format!("{name}-{RANDOM}{{1,10}}-{RANDOM}{{5}}"),
            Kind::StatefulSet => format!("{name}-[0-9]+"),
            Kind::DaemonSet | Kind::Job => format!("{name}-{RANDOM}{{5}}"),
            Kind::CronJob => format!("{name}-[0-9]+-{RANDOM}{{5}}"),
            Kind::Pod => name,
        }
    }
}

/// One container of one pod, by the labels that name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Container {
    labels: BTreeMap<String, String>,
}

impl Container {
    /// Such as `shop/web-6d5f-x7k2p/app`.
    pub fn name(&self) -> String {
        let named: Vec<&str> =
            NAMING.iter().filter_map(|label| self.labels.get(*label)).map(String::as_str).collect();
        match named.as_slice() {
            [] => self.labels.values().map(String::as_str).collect::<Vec<_>>().join("/"),
            named => named.join("/"),
        }
    }

    /// Conditions of a query for this container alone.
    pub(crate) fn conditions(&self) -> String {
        let conditions = self.labels.iter().map(|(label, value)| condition(label, "=", value));
        conditions.collect::<Vec<_>>().join(",")
    }
}

fn condition(label: &str, operator: &str, value: &str) -> String {
    let quoted = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{label}{operator}\"{quoted}\"")
}

impl Selector {
    fn conditions(&self) -> Vec<String> {
        let mut all = Vec::new();
        let mut equal = |label: &str, value: &Option<String>| {
            all.extend(value.as_ref().map(|value| condition(label, "=", value)));
        };
        equal("namespace", &self.namespace);
        equal("container", &self.container);
        all.extend(self.workload.as_ref().map(|w| condition("pod", "=~", &w.pods())));
        all.extend(self.labels.iter().map(|s| condition(&s.label, "=", &s.value)));
        all
    }

    /// Series that name no container are of pods and machines; outside of Kubernetes no series
    /// names one, and labels that the user gives choose.
    fn names_containers(&self) -> bool {
        self.labels.is_empty() || self.namespace.is_some() || self.workload.is_some()
    }
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    data: Vec<BTreeMap<String, String>>,
}

impl Server<'_> {
    /// The containers that are meant and were seen within `span`, in the order of their names.
    ///
    /// # Errors
    /// [`InputError::Option`](reveille_place::InputError::Option) if there is none.
    pub fn containers(
        &self,
        selector: &Selector,
        span: Span,
    ) -> Result<Vec<Container>, ServerError> {
        let given = selector.conditions();
        let mut conditions = given.clone();
        if selector.names_containers() && selector.container.is_none() {
            conditions.push("container!=\"\",container!=\"POD\"".into());
        }
        let matching = format!("{USAGE}{{{}}}", conditions.join(","));
        let (start, end) = (span.begin_s().to_string(), span.end_s().to_string());
        let query = [("match[]", matching.as_str()), ("start", &start), ("end", &end)];
        let bytes = self.ask("series", &query)?;
        let answer: Answer = serde_json::from_slice(&bytes).map_err(|error| {
            let mistake = Mistake::new(
                format!("its list of series cannot be read: {error}"),
                "check that --prometheus names a Prometheus",
            );
            ServerError::Server { url: "api/v1/series".into(), mistake }
        })?;
        let chosen: BTreeSet<&str> =
            selector.labels.iter().map(|select| select.label.as_str()).collect();
        let names = |label: &str| NAMING.contains(&label) || chosen.contains(label);
        let container = |mut labels: BTreeMap<String, String>| {
            labels.retain(|label, _| names(label));
            Container { labels }
        };
        let found: BTreeSet<Container> = answer.data.into_iter().map(container).collect();
        if found.is_empty() {
            let what = if given.is_empty() {
                String::new()
            } else {
                format!(" with {}", given.join(", "))
            };
            let problem = format!("no {USAGE} of a container{what} in that time");
            let help = "check the names by `count by (namespace, pod, container) \
                        (container_cpu_usage_seconds_total)`; outside of Kubernetes choose by \
                        --select LABEL=VALUE";
            return Err(ServerError::option("--prometheus", problem, help));
        }
        Ok(found.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_are_patterns_of_pods() {
        let pods = |text: &str| text.parse::<Workload>().map(|workload| workload.pods());
        assert_eq!(pods("sts/db.main").unwrap(), "db[.]main-[0-9]+");
        assert_eq!(pods("pod/web-0").unwrap(), "web-0");
        let deployment = pods("deployment/web").unwrap();
        assert!(
            deployment.starts_with("web-[bcdf") && deployment.ends_with("]{5}"),
            "{deployment}"
        );
        for wrong in ["web", "deploy/", "deploy/A", "deploy/a.*", "replica/web"] {
            assert!(pods(wrong).unwrap_err().contains("deploy/web"), "{wrong}");
        }
    }

    #[test]
    fn conditions_are_quoted() {
        assert_eq!(condition("pod", "=", "a\"b\\c"), "pod=\"a\\\"b\\\\c\"");
    }
}
