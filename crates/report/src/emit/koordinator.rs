//! Koordinator: a burst by a pod's annotation, in percent of the container's CPU limit over
//! 100 ms, whatever the node's period is, and never more than the quota (koordlet,
//! `calcStaticCPUBurstVal` and `calcSafeCPUBurstVal`).

use reveille_policy::BandwidthLimits;
use serde_json::json;

use super::{Emitted, container, duration, kubelet_quota_us, kubernetes, rounded, us};

/// What Koordinator takes 100% of: a limit's CPU time in this.
const BASE_US: u64 = 100_000;
/// The largest percentage that it accepts.
const MOST: u64 = 10_000;

/// The pod's annotation and its container's resources.
pub(super) fn lines(limits: &BandwidthLimits, name: &str) -> Emitted {
    let (resources, millicores) = container(limits, name);
    let mut notes = Vec::new();
    let burst = us(limits.burst_ns);
    let config = match millicores {
        Some(millicores) if burst > 0 => {
            let (percent, got) = percent(burst, millicores);
            if got != burst {
                notes.push(format!(
                    "cpuBurstPercent is a whole percentage of the limit: the burst becomes {got} \
                     us and not {burst} us"
                ));
            }
            json!({ "policy": "cpuBurstOnly", "cpuBurstPercent": percent })
        }
        _ => json!({ "policy": "none" }),
    };
    if burst > 0 && millicores.is_none() {
        notes.push("without limits.cpu Koordinator sets no burst".to_owned());
    }
    let mut text = format!(
        "metadata:\n  annotations:\n    koordinator.sh/cpuBurst: '{config}'\nspec:\n  \
         containers:\n{resources}"
    );
    if let (Some(quota), Some(millicores)) = (limits.quota_ns, millicores) {
        let got = kubelet_quota_us(millicores, limits.period_ns);
        notes.extend(rounded("limits.cpu counts in millicores", us(quota), got));
    }
    notes.extend(kubernetes::period(limits, &mut text));
    if burst > 0 {
        notes.push(
            "koordlet must run with the feature gate CPUBurst; it sets the burst of pods of the \
             class LS (not LSE, LSR, BE), on the pod's group too, and has one percentage for all \
             containers of the pod"
                .to_owned(),
        );
        notes.push(
            "it cannot set a burst above the quota or apart from the limit; `cpuBurstOnly` keeps \
             it from raising the quota as well, which `auto` does"
                .to_owned(),
        );
    }
    if limits.period_ns != kubernetes::PERIOD_NS && burst > 0 {
        notes.push(format!(
            "the percentage is of the limit's CPU time in 100ms, not in the period of {}",
            duration(limits.period_ns)
        ));
    }
    Emitted { text, notes, missing: None }
}

/// The percentage that comes nearest to a burst, and the burst that koordlet makes of it.
fn percent(burst_us: u64, millicores: u64) -> (u64, u64) {
    let base = millicores * BASE_US / 1000;
    let percent = ((burst_us * 100 + base / 2) / base.max(1)).clamp(1, MOST);
    (percent, base * percent / 100)
}
