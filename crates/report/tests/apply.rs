//! From limits to a live group and back, through the calls that a command makes: find the
//! group, show what would be written, write it, see that it works, give it back.

use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use reveille_host::HostError;
use reveille_host::cgroup::{Change, HostGroups, LiveGroup};
use reveille_policy::{BandwidthLimits, Groups, TaskGroup};
use reveille_report::emit::Target;

fn limits(quota_ms: Option<u64>, period_ms: u64, burst_ms: u64) -> BandwidthLimits {
    BandwidthLimits::of_us(quota_ms.map(|ms| ms * 1000), period_ms * 1000, burst_ms * 1000)
}

/// A group as another process would own it; `None` where this host cannot have one.
fn somebodys() -> Option<(HostGroups, LiveGroup)> {
    let groups = Groups::from(TaskGroup::new("app", limits(Some(50), 100, 0)));
    let made = match HostGroups::create(&groups) {
        Ok(made) => made,
        Err(HostError::System { doing, reason, .. }) => {
            eprintln!("SKIPPED: cannot {doing}: {reason}");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let procs = made.files(&groups).unwrap()[0].procs[0].clone();
    let live = LiveGroup::open(procs.parent().unwrap().to_str().unwrap()).unwrap();
    Some((made, live))
}

fn set(group: &LiveGroup, wanted: &BandwidthLimits) {
    Change::plan(group, wanted).unwrap().make(&AtomicBool::new(false)).unwrap();
}

#[test]
fn a_setting_is_shown_applied_felt_and_taken_back() {
    let Some((made, group)) = somebodys() else { return };
    let before = group.limits().unwrap().limits;
    let wanted = limits(Some(2), 20, 2);
    let change = Change::plan(&group, &wanted).unwrap();
    assert_eq!(change.lines().len(), if group.is_v1() { 3 } else { 2 });
    assert_eq!(group.limits().unwrap().limits, before, "a dry run");
    assert_eq!(change.make(&AtomicBool::new(false)).unwrap(), wanted);

    let mut load = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    for dir in group.directories() {
        std::fs::write(dir.join("cgroup.procs"), load.id().to_string()).unwrap();
    }
    thread::sleep(Duration::from_millis(300));
    let used = group.stats().unwrap();
    assert!(used.nr_throttled > 0 && used.throttled_ns > 0, "{used:?}");

    // What is set already is not written again: that would refill it.
    let again = Change::plan(&group, &wanted).unwrap();
    assert!(again.lines().is_empty() && again.notes().is_empty());
    set(&group, &before);
    assert_eq!(group.limits().unwrap().limits, before);
    drop(made);
    assert!(!load.wait().unwrap().success());
}

#[test]
fn the_emitted_lines_set_a_live_group_from_whatever_it_has() {
    let Some((_made, group)) = somebodys() else { return };
    let target = if group.is_v1() { Target::Cgroup1 } else { Target::Cgroup2 };
    let from = [limits(Some(50), 100, 50), limits(None, 100, 900), limits(Some(3), 7, 1)];
    let wanted = [limits(Some(2), 20, 2), limits(Some(200), 1000, 0), limits(None, 100, 0)];
    for (from, wanted) in from.iter().flat_map(|f| wanted.iter().map(move |w| (f, w))) {
        set(&group, from);
        let name = group.directory().to_str().unwrap();
        let script = target.emit(wanted, Some(name)).text;
        let status = Command::new("sh").arg("-ec").arg(&script).status().unwrap();
        assert!(status.success(), "{script}");
        assert_eq!(group.limits().unwrap().limits, *wanted, "{script}");
    }
}
