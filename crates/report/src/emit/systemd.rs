//! systemd: a drop-in file with `CPUQuota=`, hundredths of a percent of one CPU, and
//! `CPUQuotaPeriodSec=` (systemd.resource-control(5)). It knows no burst (systemd/systemd
//! issue 26658, pull request 40958, open).

use reveille_policy::BandwidthLimits;

use super::{Emitted, duration, rounded, us};

/// Hundredths of a percent of one CPU.
const PER_CPU: u64 = 10_000;

/// The drop-in file of a unit.
pub(super) fn lines(limits: &BandwidthLimits, name: &str) -> Emitted {
    let (unit, kind) = match name.rsplit_once('.') {
        Some((_, kind @ ("service" | "slice" | "scope" | "socket" | "mount" | "swap"))) => {
            (name.to_owned(), kind)
        }
        _ => (format!("{name}.service"), "service"),
    };
    let section = kind[..1].to_uppercase() + &kind[1..];
    let mut text = format!("# systemctl edit {unit}\n[{section}]\n");
    let mut notes = Vec::new();
    let mut missing = None;
    match limits.quota_ns {
        Some(quota) => {
            let period = us(limits.period_ns).max(1);
            let share = (us(quota) * PER_CPU).div_ceil(period);
            text.push_str(&format!("CPUQuota={}%\n", percent(share)));
            text.push_str(&format!("CPUQuotaPeriodSec={}\n", duration(limits.period_ns)));
            let got = share * period / PER_CPU;
            notes.extend(rounded("CPUQuota= counts in hundredths of a percent", us(quota), got));
            if !share.is_multiple_of(100) {
                notes.push(
                    "fractions of a percent are read from unit files; `systemctl set-property` of \
                     older versions cuts them off"
                        .to_owned(),
                );
            }
            notes.push("CPUQuotaPeriodSec= needs systemd 242".to_owned());
        }
        None => text.push_str("CPUQuota=\nCPUQuotaPeriodSec=\n"),
    }
    if limits.burst_ns > 0 {
        let burst = us(limits.burst_ns);
        let by_hand = format!("write {burst} to its cpu.max.burst after every start and reload");
        match kind {
            "service" => {
                text.push_str(&format!(
                    "ExecStartPost=-+/bin/sh -c 'echo {burst} > \
                     /sys/fs/cgroup$$(sed -n s/^0:://p /proc/self/cgroup)/cpu.max.burst'\n"
                ));
                notes.push(format!(
                    "systemd cannot set a burst: ExecStartPost= does it at each start (cgroup v2, \
                     without Delegate=); {by_hand} otherwise"
                ));
            }
            _ => missing = Some(format!("systemd cannot set a burst: {by_hand}")),
        }
        notes.push(
            "systemd writes cpu.max again at `daemon-reload` and `set-property`: each refills the \
             group, and on Linux 5.14 to 6.9 divides the burst by 1000"
                .to_owned(),
        );
    }
    Emitted { text, notes, missing }
}

/// `12.5` for 1250.
fn percent(share: u64) -> String {
    match (share / 100, share % 100) {
        (whole, 0) => whole.to_string(),
        (whole, part) if part % 10 == 0 => format!("{whole}.{}", part / 10),
        (whole, part) => format!("{whole}.{part:02}"),
    }
}
