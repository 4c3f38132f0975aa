//! Every target for the same limits, read back by the target's own arithmetic.

use std::fs;
use std::process::Command;

use super::*;
use reveille_host::cgroup::LiveGroup;

fn limits(quota_us: Option<u64>, period_us: u64, burst_us: u64) -> BandwidthLimits {
    BandwidthLimits::of_us(quota_us, period_us, burst_us)
}

/// A fifth of a CPU, as most would set it.
fn usual() -> BandwidthLimits {
    limits(Some(20_000), 100_000, 10_000)
}

/// Limits that only the kernel's own files can express exactly.
fn odd() -> BandwidthLimits {
    limits(Some(12_345), 33_333, 5000)
}

fn text(target: Target, limits: &BandwidthLimits) -> String {
    target.emit(limits, Some("app")).text
}

#[test]
fn targets_are_found_by_their_names() {
    for target in Target::ALL {
        assert_eq!(Target::from_name(target.name()), Some(target));
        let emitted = target.emit(&usual(), None);
        assert!(emitted.text.ends_with('\n') && !emitted.notes.is_empty(), "{target:?}");
        assert!(emitted.text.contains("NAME") != (target == Target::Oci), "{target:?}");
        for note in &emitted.notes {
            assert!(!note.contains("  ") && !note.ends_with('.'), "{note}");
        }
    }
    assert_eq!(Target::from_name("docker"), None);
}

/// Limits that a target can express, and such as it must round, drop or warn about: the least,
/// none, and a burst above the quota, which mainline refuses.
#[test]
fn every_target_says_what_it_sets_and_what_it_cannot() {
    let fraction = BandwidthLimits { quota_ns: Some(20_000_400), ..usual() };
    let all = [
        usual(),
        odd(),
        limits(None, 100_000, 0),
        limits(Some(1000), 1_000_000, 0),
        limits(Some(125_500), 1_000_000, 0),
        limits(Some(20_000), 100_000, 30_000),
        fraction,
    ];
    for target in Target::ALL {
        let mut said = String::new();
        for (limits, name) in all.iter().zip(["app", "app.slice", "yes: no"].iter().cycle()) {
            let emitted = target.emit(limits, Some(name));
            said += &format!("== {limits}, {name}\n{}", emitted.text);
            emitted.notes.iter().for_each(|note| said += &format!("! {note}\n"));
            emitted.missing.iter().for_each(|missing| said += &format!("missing: {missing}\n"));
        }
        insta::assert_snapshot!(target.name(), said);
    }
    assert_eq!(kubelet_quota_us(1, 100_000_000), 1000);
}

/// What the lines do in a shell is what a group then has.
#[test]
fn the_lines_set_a_group() {
    for burst_file in [true, false] {
        let top = tempfile::tempdir().unwrap();
        let dir = top.path().join("a group");
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("cpu.max"), "50000 100000\n").unwrap();
        if burst_file {
            fs::write(dir.join("cpu.max.burst"), "50000\n").unwrap();
        }
        let wanted = limits(Some(20_000), 50_000, if burst_file { 10_000 } else { 0 });
        let named = format!("/sys/{}", dir.display());
        let script = Target::Cgroup2.emit(&wanted, Some(&named)).text.replace("/sys//", "/");
        let status = Command::new("sh").arg("-ec").arg(&script).status().unwrap();
        assert!(status.success(), "{script}");
        let live = LiveGroup::at(&dir).unwrap().limits().unwrap();
        assert_eq!((live.limits, live.has_burst), (wanted, burst_file));
    }
}

#[test]
fn json_in_the_lines_is_json() {
    let cpu: serde_json::Value = serde_json::from_str(&text(Target::Oci, &odd())).unwrap();
    assert_eq!(cpu["linux"]["resources"]["cpu"]["burst"].as_u64(), Some(5000));
    let pod = text(Target::Koordinator, &odd());
    let line = pod.lines().find(|line| line.contains("cpuBurst:")).unwrap();
    let burst: serde_json::Value = serde_json::from_str(line.split('\'').nth(1).unwrap()).unwrap();
    // 5000 us of 37100 us in 100 ms are 13.5%.
    assert_eq!(burst["cpuBurstPercent"].as_u64(), Some(13));
}

/// `$$` is systemd's way to write `$`: the command finds the file of the group it is in.
#[test]
fn systemds_command_names_the_burst_of_its_own_group() {
    let text = Target::Systemd.emit(&usual(), None).text;
    let line = text.lines().find_map(|line| line.strip_prefix("ExecStartPost=-+")).unwrap();
    let command = line.split('\'').nth(1).unwrap().replace("$$", "$");
    let shown = command.replace("echo 10000 > ", "echo ");
    let output = Command::new("sh").arg("-c").arg(&shown).output().unwrap();
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let Some(path) = own.lines().find_map(|line| line.strip_prefix("0::")) else {
        eprintln!("SKIPPED: no unified hierarchy");
        return;
    };
    let expected = format!("/sys/fs/cgroup{path}/cpu.max.burst\n");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}
