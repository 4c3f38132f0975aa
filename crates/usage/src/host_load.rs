//! Whether a recorded group got the CPU time that it would have used.

use reveille_measure::seconds_text;

use crate::{HeldBack, HostLoad, Usage};

/// Other programs are worth a word if they use more than this share of all CPU time.
pub const NOTABLE_OTHERS: f64 = 0.05;

/// Shares of the recording's time during which the host was full, and of the group's CPU time that
/// its threads waited, above which its use is uncertain ...
const PARTLY: f64 = 0.1;
/// ... and above which it tells no limit.
const MOSTLY: f64 = 0.5;
/// Share of throttled periods of a group around it above which it tells no limit: nothing shows how
/// much more the group would have used in those.
const THROTTLED_AROUND: f64 = 0.01;

impl Usage {
    /// What kept so much CPU time from the group that its use tells no limit.
    pub fn held_back(&self) -> Option<HeldBack> {
        if self.throttled_around.is_some_and(|share| share > THROTTLED_AROUND) {
            return Some(HeldBack::LimitAround);
        }
        self.crowded_beyond(MOSTLY).map(|_| HeldBack::Programs)
    }

    /// A warning if other programs may have kept CPU time from the group.
    pub fn crowding(&self) -> Option<String> {
        let load = self.crowded_beyond(PARTLY)?;
        let limited = self.limits.is_some_and(|limits| limits.quota_ns.is_some());
        let waited = load.waited_ns.map_or(String::new(), |ns| {
            let what = if limited { "a CPU or for quota" } else { "a CPU" };
            let share = 100.0 * self.waited_share(ns);
            format!(
                " Its threads waited {} in all for {what}, {share:.0}% of the time that they ran.",
                seconds_text(ns)
            )
        });
        Some(format!(
            "Other programs used {:.0}% of the host's CPU time, and for {:.0}% of the recording hardly \
             any was idle: what the group would use with free CPUs cannot be told from this. Record \
             when the host has idle time.{waited}",
            100.0 * load.others,
            100.0 * load.full
        ))
    }

    fn crowded_beyond(&self, share: f64) -> Option<HostLoad> {
        let load = self.host_load?;
        let waited = load.waited_ns.is_none_or(|ns| self.waited_share(ns) > share);
        (load.others > NOTABLE_OTHERS && load.full > share && waited).then_some(load)
    }

    fn waited_share(&self, waited_ns: crate::Ns) -> f64 {
        waited_ns as f64 / (self.mean_cpus() * self.span_ns as f64).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Demand;

    const S: u64 = 1_000_000_000;

    fn beside(others: f64, full: f64, waited_ns: Option<u64>) -> Usage {
        let demand = Demand { at_ns: 0, cpu_ns: S / 2, thread: 0, done_ns: None };
        let host_load = Some(HostLoad { others, full, waited_ns });
        Usage { demands: vec![demand], threads: 1, host_load, ..Usage::idle("app") }
    }

    #[test]
    fn only_a_full_host_keeps_cpu_time_from_a_group() {
        for (others, full, waited_ns, warned, crowded_out) in [
            (0.94, 1.0, None, true, true),
            (0.94, 0.3, None, true, false),
            (0.6, 0.0, None, false, false),
            // The group itself fills the host.
            (0.02, 1.0, None, false, false),
            (0.94, 1.0, Some(S), true, true),
            (0.94, 1.0, Some(S / 10), true, false),
            (0.94, 1.0, Some(S / 100), false, false),
        ] {
            let usage = beside(others, full, waited_ns);
            assert_eq!(usage.crowding().is_some(), warned, "{:?}", usage.host_load);
            let held_back = crowded_out.then_some(HeldBack::Programs);
            assert_eq!(usage.held_back(), held_back, "{:?}", usage.host_load);
        }
        let said = beside(0.94, 1.0, Some(S)).crowding().unwrap_or_default();
        assert!(said.contains("used 94% of") && said.contains("waited 1.000 s in all"), "{said}");
    }

    #[test]
    fn throttling_around_a_group_keeps_cpu_time_from_it() {
        for (share, held_back) in [
            (None, None),
            (Some(0.0), None),
            (Some(0.01), None),
            (Some(0.02), Some(HeldBack::LimitAround)),
        ] {
            let usage = Usage { throttled_around: share, ..beside(0.0, 0.0, None) };
            assert_eq!(usage.held_back(), held_back, "{share:?}");
        }
    }

    #[test]
    fn a_file_without_the_load_is_read() {
        let usage = Usage { host_load: None, ..beside(0.0, 0.0, None) };
        let text = serde_json::to_string(&usage).unwrap();
        let old = text.replace(",\"host_load\":null,\"throttled_around\":null", "");
        assert!(old != text && usage.crowding().is_none());
        let read = serde_json::from_str::<Usage>(&old).unwrap();
        assert_eq!((read.host_load, read.throttled_around), (None, None));
    }
}
