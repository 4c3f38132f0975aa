//! What the scheduler counts, what each figure means, and how it is shown.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

macro_rules! counters {
    ($($name:ident: $about:expr;)*) => {
        /// Sums over all CPUs since the scheduler was loaded.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct Counters {
            $(#[doc = $about] pub $name: u64,)*
            /// Wakeups by the rule that chose the CPU.
            pub rules: BTreeMap<String, u64>,
        }

        impl Counters {
            /// Name and meaning of each figure.
            pub const MEANINGS: &[(&str, &str)] = &[$((stringify!($name), $about),)*];

            /// What was counted since `before`.
            pub fn since(&self, before: &Counters) -> Counters {
                Counters {
                    $($name: self.$name.saturating_sub(before.$name),)*
                    rules: self.rules.iter().map(|(rule, n)| {
                        let then = before.rules.get(rule).copied().unwrap_or(0);
                        (rule.clone(), n.saturating_sub(then))
                    }).collect(),
                }
            }
        }

        /// Adds the counters of one CPU.
        macro_rules! add_counters {
            ($sum:expr, $cpu:expr) => { $($sum.$name += $cpu.$name;)* };
        }
        pub(crate) use add_counters;
    };
}

counters! {
    wakeups: "Decisions of policy/: wakeups of tasks that may run on more than one CPU";
    forks: "New tasks that were placed";
    searches: "Wakeups that searched a cache for an idle CPU";
    searched: "CPUs that these searches looked at";
    lost_claims: "Idle CPUs that another waker claimed first; the decision was taken again";
    direct: "Tasks put straight onto an idle CPU, or their CPU's own kernel threads onto theirs";
    queued: "Tasks put on a CPU's queue";
    shared: "Wakees put on a cache's shared queue (SWQUEUE)";
    preempted: "Wakees that took the CPU from the running task (WAKEUP_PREEMPTION)";
    pulled: "Tasks that a CPU took off a shared queue";
    stolen_near: "Tasks taken off another CPU's queue in the same cache";
    stolen_far: "Tasks taken off a CPU's queue in another cache";
    kept: "Tasks that ran on at the end of their turn: no other was before them";
    helped: "Idle CPUs that were sent to look for a task that waits";
    parked: "Tasks of throttled groups that were put aside";
    released: "Parked tasks that were let go";
    lifted: "Tasks that went first: they had waited for a quarter of the watchdog's time, were killed, or kept others waiting";
    wrong_cpu: "Answers of the --policy file with a CPU that is not there or not allowed; the task \
                went to its last CPU";
    dropped: "Recorded decisions for which there was no room";
}

/// A task group with a limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupCounters {
    /// Its directory below the mount of cgroup v2, or its id.
    pub cgroup: String,
    /// Quota per period, us.
    pub quota_us: u64,
    /// Period, us.
    pub period_us: u64,
    /// Burst, us.
    pub burst_us: u64,
    /// Periods that ended while it was active.
    pub nr_periods: u64,
    /// Those at whose end a CPU of the group was throttled.
    pub nr_throttled: u64,
    /// Time that its CPUs were throttled, summed, us.
    pub throttled_us: u64,
    /// Refills that found more than a quota used.
    pub nr_bursts: u64,
    /// Runtime used beyond a quota per period, us.
    pub burst_us_used: u64,
}

/// Name and meaning of what is as it is now.
pub const NOW_MEANINGS: &[(&str, &str)] = &[
    ("policy", "The --policy file that selects CPUs; null without one"),
    (
        "limits_refused",
        "Groups whose cpu.max is not kept as written, since all limits are in use: the nearest limit \
         above holds, or the smallest of these for all of them together",
    ),
    ("groups_without_weight", "Groups beyond 65534, which count as their parents"),
];

/// Names and meanings of a group's figures.
pub const GROUP_MEANINGS: &[(&str, &str)] = &[
    ("cgroup", "Directory of the group below the mount of cgroup v2"),
    ("quota_us, period_us, burst_us", "cpu.max and cpu.max.burst"),
    ("nr_periods", "Periods that ended while the group was active"),
    ("nr_throttled", "Those at whose end a CPU of the group was throttled"),
    ("throttled_us", "Time that CPUs of the group were throttled, summed over CPUs"),
    ("nr_bursts", "Refills that found more than a quota used"),
    ("burst_us_used", "Runtime used beyond a quota per period"),
];

/// What `--stats` and `--monitor` show, and what the socket answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Milliseconds since the scheduler was loaded.
    pub at_ms: u64,
    /// Features that are on, of those that mean something to scx_reveille.
    pub features: Vec<String>,
    /// The policy file that selects CPUs.
    #[serde(default)]
    pub policy: Option<String>,
    /// Sums since then.
    pub counters: Counters,
    /// Task groups with a limit.
    pub groups: Vec<GroupCounters>,
    /// Task groups beyond the 65,534 with a weight of their own: they count as their parents.
    pub groups_without_weight: u64,
    /// Task groups whose `cpu.max` is not kept as written, since all limits are in use.
    pub limits_refused: u64,
}

/// Every figure with its meaning.
pub fn help() -> String {
    let mut text = String::from("counted since the last line; with --json, since loading:\n");
    for (name, about) in Counters::MEANINGS {
        let _ = writeln!(text, "  {name:<14} {about}");
    }
    let _ = writeln!(text, "  {:<14} Wakeups by the rule of policy/ that chose the CPU", "rules");
    text.push_str("now:\n");
    for (name, about) in NOW_MEANINGS {
        let _ = writeln!(text, "  {name:<14} {about}");
    }
    text.push_str("of each task group with a limit, since its limit was set:\n");
    for (name, about) in GROUP_MEANINGS {
        let _ = writeln!(text, "  {name:<14} {about}");
    }
    text
}

/// One interval, for people: rates per second, and shares of the wakeups.
pub fn show(before: &Stats, now: &Stats) -> String {
    let c = now.counters.since(&before.counters);
    let seconds = now.at_ms.saturating_sub(before.at_ms).max(1) as f64 / 1000.0;
    let rate = |n: u64| n as f64 / seconds;
    let share = |n: u64| 100.0 * n as f64 / c.wakeups.max(1) as f64;
    let mut text = format!(
        "wakeups/s {:.0}  searches/s {:.0} (looked at {:.1})  direct/s {:.0}  queued/s {:.0}  \
         shared/s {:.0}  preempted/s {:.0}  stolen/s {:.0}  lost claims/s {:.0}\n",
        rate(c.wakeups),
        rate(c.searches),
        c.searched as f64 / c.searches.max(1) as f64,
        rate(c.direct),
        rate(c.queued),
        rate(c.shared),
        rate(c.preempted),
        rate(c.stolen_near + c.stolen_far),
        rate(c.lost_claims),
    );
    if let Some(file) = &now.policy {
        let _ = write!(text, "  policy      {file}");
        let _ = match c.wrong_cpu {
            0 => writeln!(text),
            n => writeln!(text, ": {n} answers with a CPU that is not there or not allowed"),
        };
    }
    let rules: Vec<String> = c
        .rules
        .iter()
        .filter(|(_, n)| **n > 0)
        .map(|(rule, n)| format!("{rule} {:.1}%", share(*n)))
        .collect();
    if !rules.is_empty() {
        let _ = writeln!(text, "  chosen by   {}", rules.join("  "));
    }
    for (n, one, many) in [
        (
            now.limits_refused,
            "limit is NOT kept as written: all are in use; the nearest above it holds, or this one",
            "limits are NOT kept as written: all are in use; the nearest above each holds, or the \
             smallest of these for all together",
        ),
        (
            now.groups_without_weight,
            "group has no weight and no limit of its own: there are too many groups",
            "groups have no weights and no limits of their own: there are too many groups",
        ),
    ] {
        if n > 0 {
            let _ = writeln!(text, "  {n} {}", if n == 1 { one } else { many });
        }
    }
    for group in &now.groups {
        let _ = writeln!(
            text,
            "  group {}  {}/{} us burst {} us: throttled in {} of {} periods, {} us; bursts {}, {} us",
            group.cgroup,
            group.quota_us,
            group.period_us,
            group.burst_us,
            group.nr_throttled,
            group.nr_periods,
            group.throttled_us,
            group.nr_bursts,
            group.burst_us_used,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_shows_rates_and_shares() {
        let counters = |wakeups, idle| Counters {
            wakeups,
            rules: [("idle_cpu".to_owned(), idle)].into(),
            ..Counters::default()
        };
        let before = Stats { at_ms: 1000, counters: counters(100, 50), ..Stats::default() };
        let now = Stats { at_ms: 3000, counters: counters(300, 100), ..Stats::default() };
        let text = show(&before, &now);
        assert!(text.contains("wakeups/s 100 "), "{text}");
        assert!(text.contains("idle_cpu 25.0%"), "{text}");
    }

    #[test]
    fn the_policy_file_and_its_mistakes_are_shown() {
        let before = Stats { policy: Some("idea.c".to_owned()), ..Stats::default() };
        assert!(show(&before, &before).contains("  policy      idea.c\n"));
        let counters = Counters { wrong_cpu: 3, ..Counters::default() };
        let text = show(&before, &Stats { counters, ..before.clone() });
        assert!(text.contains("idea.c: 3 answers with a CPU"), "{text}");
    }

    #[test]
    fn limits_without_a_slot_are_shown() {
        let quiet = Stats::default();
        assert!(!show(&quiet, &quiet).contains("NOT kept"));
        let one = Stats { limits_refused: 1, ..Stats::default() };
        assert!(show(&quiet, &one).contains("  1 limit is NOT kept"));
        let both = Stats { limits_refused: 2, groups_without_weight: 3, ..Stats::default() };
        let text = show(&quiet, &both);
        assert!(text.contains("  2 limits are NOT kept"), "{text}");
        assert!(text.contains("  3 groups have no weights"), "{text}");
        for name in ["limits_refused", "groups_without_weight"] {
            assert!(help().contains(name), "--help-stats lacks {name}");
        }
    }

    #[test]
    fn every_counter_is_described() {
        let json = serde_json::to_value(Counters::default()).unwrap();
        for name in json.as_object().unwrap().keys() {
            assert!(help().contains(name.as_str()), "--help-stats lacks {name}");
        }
    }
}
