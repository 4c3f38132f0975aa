//! Finding groups and reading them, on the hierarchy of this host and in directories.

use super::*;
use crate::cgroup::tests::{created, limited};
use reveille_place::Mistake;
use reveille_policy::Groups;

const MS: Ns = 1_000_000;

/// A directory with the files of a v2 group.
fn v2_files(dir: &Path, max: &str, burst: Option<&str>) {
    fs::create_dir_all(dir).unwrap();
    for (file, text) in [("cgroup.procs", ""), ("cgroup.type", "domain\n"), ("cpu.max", max)] {
        fs::write(dir.join(file), text).unwrap();
    }
    fs::write(dir.join("cgroup.controllers"), "cpu\n").unwrap();
    if let Some(burst) = burst {
        fs::write(dir.join("cpu.max.burst"), burst).unwrap();
    }
}

#[test]
fn a_group_of_this_host_is_found_by_its_name_and_its_directory() {
    let groups = vec![limited("all", None, 50, 0), limited("app", Some(0), 20, 10)];
    let groups = Groups { groups, ..Groups::default() };
    let Some(made) = created(&groups) else { return };
    let dir = made.groups[1].dirs[0].clone();
    let by_dir = LiveGroup::open(dir.to_str().unwrap()).unwrap();
    let at = hierarchy::mounted_cpu().unwrap().at;
    let name = dir.strip_prefix(&at).unwrap().to_str().unwrap();
    let by_name = LiveGroup::open(name).unwrap();
    let by_path = LiveGroup::open(&format!("/{name}")).unwrap();
    assert_eq!(by_name.directories(), by_path.directories());
    assert_eq!(by_name.directories(), by_dir.directories());
    assert_eq!(by_name.directories(), made.groups[1].dirs);
    assert_eq!((by_name.name(), by_name.version()), (name, made.groups[1].version));

    let live = by_name.limits().unwrap();
    assert!(live.has_burst);
    let expected =
        BandwidthLimits { quota_ns: Some(20 * MS), period_ns: 100 * MS, burst_ns: 10 * MS };
    assert_eq!(live.limits, expected);
    let around = by_name.around().unwrap();
    assert_eq!(around[0].0, made.groups[0].dirs[0]);
    assert_eq!(around[0].1.quota_ns, Some(50 * MS));
    let outer = LiveGroup::at(&made.groups[0].dirs[0]).unwrap();
    assert_eq!(outer.within().unwrap(), [(dir.clone(), expected)]);
    let cpus = by_name.effective_cpus().unwrap().unwrap();
    assert!((cpus - 0.2).abs() < 1e-5, "{cpus}");
    assert_eq!(by_name.stats().unwrap().nr_periods, 0);

    assert_eq!(outer.threads().unwrap(), 0);
    let mut sleeper = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    fs::write(dir.join("cgroup.procs"), sleeper.id().to_string()).unwrap();
    assert_eq!((outer.threads().unwrap(), by_name.threads().unwrap()), (1, 1));
    drop(made);
    sleeper.wait().unwrap();
    let error = by_name.limits().unwrap_err().to_string();
    assert!(error.contains("No such file"), "{error}");
    assert!(by_name.stats().is_err() && by_name.threads().is_err());
}

#[test]
fn what_is_no_group_is_refused_with_where_it_was_looked_for() {
    let Ok(mounted) = hierarchy::mounted_cpu() else {
        eprintln!("SKIPPED: no cgroup hierarchy is mounted");
        return;
    };
    let text = |name: &str| LiveGroup::open(name).unwrap_err().to_string();
    assert!(text("no/such/group").contains("no task group `no/such/group`"));
    assert!(text("/no/such/group").contains(mounted.at.to_str().unwrap()));
    assert!(text("a/../b").contains(".."));
    for root in ["/", "", mounted.at.to_str().unwrap()] {
        assert!(text(root).contains("root group"), "{root}: {}", text(root));
    }
    assert!(text("/tmp").contains("is no task group"), "{}", text("/tmp"));
}

#[test]
fn the_files_of_both_versions_say_the_same() {
    let top = tempfile::tempdir().unwrap();
    let dir = top.path().join("g");
    v2_files(&dir, "20000 50000\n", Some("10000\n"));
    let group = LiveGroup::at(&dir).unwrap();
    let live = group.limits().unwrap();
    let limits = BandwidthLimits { quota_ns: Some(20 * MS), period_ns: 50 * MS, burst_ns: 10 * MS };
    assert_eq!(live, LiveLimits { limits, has_burst: true });
    fs::write(dir.join("cpu.max"), "max 100000\n").unwrap();
    fs::remove_file(dir.join("cpu.max.burst")).unwrap();
    let live = group.limits().unwrap();
    assert_eq!(live, LiveLimits { limits: BandwidthLimits::default(), has_burst: false });

    let old = top.path().join("old");
    fs::create_dir(&old).unwrap();
    for (file, text) in [
        ("cpu.cfs_quota_us", "20000\n"),
        ("cpu.cfs_period_us", "50000\n"),
        ("cpu.cfs_burst_us", "10000\n"),
    ] {
        fs::write(old.join(file), text).unwrap();
    }
    let first = LiveGroup::at(&old).unwrap();
    assert!(first.is_v1() && !group.is_v1());
    assert_eq!(first.limits().unwrap(), LiveLimits { limits, has_burst: true });
    fs::write(old.join("cpu.cfs_quota_us"), "-1\n").unwrap();
    assert_eq!(first.limits().unwrap().limits.quota_ns, None);

    for bad in ["", "max", "x 100000", "20000 -5"] {
        fs::write(dir.join("cpu.max"), bad).unwrap();
        let error = group.limits().unwrap_err().to_string();
        assert!(error.contains("cpu.max"), "{error}");
    }
}

#[test]
fn a_group_without_the_controller_says_how_to_enable_it() {
    let top = tempfile::tempdir().unwrap();
    let dir = top.path().join("g");
    v2_files(&dir, "max 100000\n", None);
    fs::remove_file(dir.join("cpu.max")).unwrap();
    let HostError::Input(Mistake { problem, help }) = LiveGroup::at(&dir).unwrap_err() else {
        panic!()
    };
    assert!(problem.contains("no `cpu` controller"), "{problem}");
    assert!(help.contains("+cpu") && help.contains(top.path().to_str().unwrap()), "{help}");
}
