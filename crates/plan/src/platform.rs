//! Who sets the limit, and what that can set.

use crate::Ns;
use crate::search::Row;

/// The period that the kubelet sets, unless its node is configured otherwise.
const KUBELET_PERIOD_NS: Ns = 100_000_000;

/// What sets a group's limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Platform {
    /// A container's CPU limit: millicores, one period for the node, and no burst.
    #[default]
    Kubernetes,
    /// The same, with a burst by annotation.
    Koordinator,
    /// `CPUQuota=` and `CPUQuotaPeriodSec=` of a unit: whole percent, and no burst.
    Systemd,
    /// `--cpu-quota` and `--cpu-period`: no burst.
    Docker,
    /// The kernel's own files: anything.
    Cgroup2,
}

impl Platform {
    /// All of them.
    pub const ALL: [Platform; 5] = [
        Platform::Kubernetes,
        Platform::Koordinator,
        Platform::Systemd,
        Platform::Docker,
        Platform::Cgroup2,
    ];

    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Platform::Kubernetes => "kubernetes",
            Platform::Koordinator => "koordinator",
            Platform::Systemd => "systemd",
            Platform::Docker => "docker",
            Platform::Cgroup2 => "cgroup2",
        }
    }

    /// The platform of this name.
    pub fn from_name(name: &str) -> Option<Platform> {
        Platform::ALL.into_iter().find(|platform| platform.name() == name)
    }
}

/// Which settings may be recommended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Allowed {
    /// What sets them.
    pub platform: Platform,
    /// The only period; the platform's own if there is none, else any.
    pub period_ns: Option<Ns>,
    /// No burst, even where the platform has one.
    pub no_burst: bool,
    /// The longest piece of work may take no longer, by the bound of docs/plan.md.
    pub worst_case_ns: Option<Ns>,
}

impl Allowed {
    /// Anything that a kernel accepts.
    pub const ANY: Allowed = Allowed {
        platform: Platform::Cgroup2,
        period_ns: None,
        no_burst: false,
        worst_case_ns: None,
    };

    /// The only period, if there is one.
    pub(crate) fn period(&self) -> Option<Ns> {
        self.period_ns.or(match self.platform {
            Platform::Kubernetes | Platform::Koordinator => Some(KUBELET_PERIOD_NS),
            Platform::Systemd | Platform::Docker | Platform::Cgroup2 => None,
        })
    }

    /// May a setting of this period and burst be recommended?
    pub(crate) fn row(&self, row: &Row) -> bool {
        let burst = match self.platform {
            Platform::Koordinator | Platform::Cgroup2 => !self.no_burst,
            Platform::Kubernetes | Platform::Systemd | Platform::Docker => false,
        };
        self.period().is_none_or(|only| only == row.period_ns) && (burst || row.burst == 0)
    }

    /// The next larger quota that can be written, in thousandths of a CPU.
    pub(crate) fn rounded_up(&self, millicpus: u64) -> u64 {
        match self.platform {
            Platform::Systemd => millicpus.next_multiple_of(10),
            _ => millicpus,
        }
    }
}
