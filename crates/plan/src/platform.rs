//! Platforms that set the limit, and which settings each can write.

use crate::Ns;
use crate::grid::Row;

/// The kubelet's default period.
const KUBELET_PERIOD_NS: Ns = 100_000_000;

/// Gives the values of an enum their names on the command line.
#[macro_export]
macro_rules! named {
    ($type:ident, $what:literal: $($value:ident $name:literal,)+) => {
        impl $type {
            /// All of them, in the order in which help lists them.
            pub const ALL: [$type; [$($name),+].len()] = [$($type::$value),+];

            /// Name on the command line.
            pub fn name(self) -> &'static str {
                match self { $($type::$value => $name),+ }
            }

            pub fn from_name(name: &str) -> Option<$type> {
                $type::ALL.into_iter().find(|value| value.name() == name)
            }

            /// As [`Self::from_name`], with what to say if there is none.
            pub fn parse(name: &str) -> Result<$type, String> {
                let names = [$($name),+].join(", ");
                $type::from_name(name)
                    .ok_or_else(|| format!(concat!("there is no such ", $what, ": use {}"), names))
            }
        }
    };
}

/// A platform that sets a group's limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Platform {
    /// A container's CPU limit: millicores, one period per node, no burst.
    #[default]
    Kubernetes,
    /// As Kubernetes, with a burst by annotation.
    Koordinator,
    /// A unit's `CPUQuota=` and `CPUQuotaPeriodSec=`: whole percent, no burst.
    Systemd,
    /// `--cpu-quota` and `--cpu-period`: no burst.
    Docker,
    /// The kernel's own files: any setting.
    Cgroup2,
}

named! { Platform, "platform":
    Kubernetes "kubernetes",
    Koordinator "koordinator",
    Systemd "systemd",
    Docker "docker",
    Cgroup2 "cgroup2",
}

/// Settings that may be recommended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Allowed {
    pub platform: Platform,
    /// The only period allowed; by default the platform's fixed one, else any.
    pub period_ns: Option<Ns>,
    /// Forbid a burst, even where the platform has one.
    pub no_burst: bool,
    /// Upper bound on the longest request's latency by docs/plan.md's closed form.
    pub worst_case_ns: Option<Ns>,
}

impl Allowed {
    /// Any setting that a kernel accepts.
    pub const ANY: Allowed = Allowed {
        platform: Platform::Cgroup2,
        period_ns: None,
        no_burst: false,
        worst_case_ns: None,
    };

    /// The only period allowed, if there is one.
    pub(crate) fn period(&self) -> Option<Ns> {
        self.period_ns.or(match self.platform {
            Platform::Kubernetes | Platform::Koordinator => Some(KUBELET_PERIOD_NS),
            Platform::Systemd | Platform::Docker | Platform::Cgroup2 => None,
        })
    }

    /// Is this period and burst allowed?
    pub(crate) fn row(&self, row: &Row) -> bool {
        let burst = match self.platform {
            Platform::Koordinator | Platform::Cgroup2 => !self.no_burst,
            Platform::Kubernetes | Platform::Systemd | Platform::Docker => false,
        };
        self.period().is_none_or(|only| only == row.period_ns) && (burst || row.burst == 0)
    }

    /// The next larger quota that the platform can write, in thousandths of a CPU.
    pub(crate) fn rounded_up(&self, millicpus: u64) -> u64 {
        match self.platform {
            Platform::Systemd => millicpus.next_multiple_of(10),
            _ => millicpus,
        }
    }
}
