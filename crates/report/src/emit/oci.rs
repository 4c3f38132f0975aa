//! The OCI runtime specification: `linux.resources.cpu` of a container's `config.json`. Its
//! units are microseconds, a quota of -1 is none; `burst` came with version 1.1
//! (opencontainers/runtime-spec, config-linux.md).

use reveille_policy::BandwidthLimits;
use serde_json::json;

use super::{Emitted, us};

pub(super) fn lines(limits: &BandwidthLimits) -> Emitted {
    let mut cpu = json!({ "period": us(limits.period_ns) });
    cpu["quota"] = limits.quota_ns.map_or_else(|| json!(-1), |quota| json!(us(quota)));
    let mut notes = Vec::new();
    if limits.burst_ns > 0 {
        cpu["burst"] = json!(us(limits.burst_ns));
        notes.push(
            "`burst` needs a runtime of runtime-spec 1.1 (runc 1.2 or later) and Linux 5.14; \
             older runtimes ignore it without a word: read it back from the group"
                .to_owned(),
        );
        notes.push(
            "runc writes the burst before cpu.max if the kernel takes it, and Linux 5.14 to 6.9 \
             divide the burst by 1000 when cpu.max is written (cgroup v2): there, write \
             cpu.max.burst again after the container has started"
                .to_owned(),
        );
    } else {
        notes.push(
            "without `burst` a new container has none; an update keeps what it has".to_owned(),
        );
    }
    notes.push(
        "`runc update` without these values may set period and burst back: give all of them"
            .to_owned(),
    );
    let config = json!({ "linux": { "resources": { "cpu": cpu } } });
    Emitted { text: format!("{config:#}\n"), notes, missing: None }
}
