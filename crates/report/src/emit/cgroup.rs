//! The kernel's own files, of cgroup v2 and v1.

use std::path::Path;

use reveille_host::cgroup::lines_from_anything;
use reveille_policy::BandwidthLimits;

use super::Emitted;

/// Commands of a shell, for a group of this name or with this directory.
pub(super) fn lines(limits: &BandwidthLimits, v1: bool, name: &str) -> Emitted {
    let mount = Path::new(if v1 { "/sys/fs/cgroup/cpu" } else { "/sys/fs/cgroup" });
    let dir = match name.starts_with("/sys/") {
        true => Path::new(name).to_owned(),
        false => mount.join(name.trim_start_matches('/')),
    };
    let lines = lines_from_anything(limits, v1, &dir);
    let mut notes = vec![
        "every line refills the group and ends its throttling, even if it changes nothing: run \
         them once; --apply writes only what differs"
            .to_owned(),
    ];
    if limits.burst_ns > 0 {
        notes.push("a burst needs Linux 5.14 or later".to_owned());
    }
    if v1 {
        notes.push(
            "the group has no limit of its own until the quota is written: that order is \
             accepted whatever was set before; a quota above that of the groups around it is \
             refused"
                .to_owned(),
        );
    } else {
        notes.push("a parent group with less CPU still limits it, without an error".to_owned());
    }
    notes.push(
        "a container runtime or systemd that updates the group may set it back: tell them"
            .to_owned(),
    );
    Emitted { text: lines.join("\n") + "\n", notes, missing: None }
}
