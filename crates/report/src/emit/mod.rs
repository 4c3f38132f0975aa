//! Limits as configuration for the platform that sets them: the lines to write, and what they
//! cannot express. One file per target, each from limits to text and notes.

mod cgroup;
mod koordinator;
mod kubernetes;
mod oci;
mod systemd;
#[cfg(test)]
mod tests;

use reveille_measure::duration_text;
use reveille_policy::BandwidthLimits;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// `cpu.max` and `cpu.max.burst`, as commands of a shell.
    Cgroup2,
    /// `cpu.cfs_quota_us` and its like, as commands of a shell.
    Cgroup1,
    /// A container's resources, and what the nodes have to be set to.
    Kubernetes,
    /// `config.json` of a container runtime.
    Oci,
    /// A pod's annotation for Koordinator, and its container's resources.
    Koordinator,
    /// A drop-in file of a unit.
    Systemd,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Emitted {
    /// The lines, as the target reads them; the last ends with a line break.
    pub text: String,
    /// What the lines cannot express, and caveats, one sentence each.
    pub notes: Vec<String>,
    /// The part of the limits that has to be set by other means, and how: without it the group gets
    /// less than it should.
    pub missing: Option<String>,
}

impl Emitted {
    /// Adds a remark ahead of the lines, as a comment where the format has comments, and to the
    /// notes.
    pub fn with_remark(mut self, target: Target, remark: &str) -> Emitted {
        if target != Target::Oci {
            self.text.insert_str(0, &format!("# {remark}\n"));
        }
        self.notes.insert(0, remark.to_owned());
        self
    }
}

reveille_plan::named! { Target, "target":
    Cgroup2 "cgroup2",
    Cgroup1 "cgroup1",
    Kubernetes "k8s",
    Oci "oci",
    Koordinator "koordinator",
    Systemd "systemd",
}

impl Target {
    /// The lines that set these limits. `name` is that of the group, the container or the
    /// unit; `NAME` stands for it if it is not known.
    pub fn emit(self, limits: &BandwidthLimits, name: Option<&str>) -> Emitted {
        let name = name.unwrap_or("NAME");
        let whole = limits.in_whole_us();
        let mut emitted = match self {
            Target::Cgroup2 => cgroup::lines(&whole, false, name),
            Target::Cgroup1 => cgroup::lines(&whole, true, name),
            Target::Kubernetes => kubernetes::lines(&whole, name),
            Target::Oci => oci::lines(&whole),
            Target::Koordinator => koordinator::lines(&whole, name),
            Target::Systemd => systemd::lines(&whole, name),
        };
        if let Err(error) = whole.check() {
            emitted.notes.insert(0, format!("mainline kernels refuse these limits: {error}"));
        }
        if whole != *limits {
            let note = format!("{limits} is rounded to whole microseconds: {whole}");
            emitted.notes.insert(0, note);
        }
        emitted
    }
}

fn us(ns: u64) -> u64 {
    ns / 1000
}

/// A time as systemd and Go read it: `50ms`, `33333us`.
fn duration(ns: u64) -> String {
    duration_text((us(ns) * 1000) as f64)
}

/// That a group gets another quota than it should, by the unit that the target counts in.
fn rounded(unit: &str, wanted_us: u64, got_us: u64) -> Option<String> {
    (got_us != wanted_us).then(|| {
        let off = (got_us as f64 / wanted_us as f64 - 1.0) * 100.0;
        format!("{unit}: the quota becomes {got_us} us and not {wanted_us} us ({off:+.2}%)")
    })
}

/// A name as YAML reads it, whatever is in it.
fn yaml(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let letter = name.starts_with(|c: char| c.is_ascii_alphabetic());
    match letter && name.chars().all(plain) {
        true => name.to_owned(),
        // JSON strings are YAML.
        false => serde_json::Value::from(name).to_string(),
    }
}

/// The resources of a container in a pod's specification, by the CPUs that it may use:
/// millicores, rounded up so that the group has no less than it should.
fn container(limits: &BandwidthLimits, name: &str) -> (String, Option<u64>) {
    let name = yaml(name);
    let Some(quota) = limits.quota_ns else {
        return (format!("  - name: {name}\n    resources: {{}} # no limits.cpu\n"), None);
    };
    let millicores = (us(quota) * 1000).div_ceil(us(limits.period_ns).max(1)).max(1);
    let text =
        format!("  - name: {name}\n    resources:\n      limits:\n        cpu: {millicores}m\n");
    (text, Some(millicores))
}

/// The quota that the kubelet makes of millicores (`MilliCPUToQuota`): 1 ms at least.
fn kubelet_quota_us(millicores: u64, period_ns: u64) -> u64 {
    (millicores * us(period_ns) / 1000).max(1000)
}
