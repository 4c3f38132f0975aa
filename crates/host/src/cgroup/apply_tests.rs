//! Changing limits, on groups of this host and in directories with the files of v2; and what
//! is left after everything that can go wrong on the way.

use std::fs;
use std::io::{Seek, Write as _};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use reveille_place::Mistake;
use reveille_policy::Groups;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use super::*;
use crate::cgroup::HostGroups;
use crate::cgroup::live::read_limits;
use crate::cgroup::tests::{created, limited};

static GO_ON: AtomicBool = AtomicBool::new(false);

fn us(quota: Option<u64>, period: u64, burst: u64) -> BandwidthLimits {
    BandwidthLimits::of_us(quota, period, burst)
}

/// A group `outer` without limits and `inner` within it, on this host; `None` and a word on
/// it where that cannot be.
fn nested() -> Option<(HostGroups, LiveGroup, LiveGroup)> {
    let mut groups = vec![limited("outer", None, 50, 0), limited("inner", Some(0), 50, 0)];
    groups.iter_mut().for_each(|group| group.limits = BandwidthLimits::default());
    let made = created(&Groups { groups, ..Groups::default() })?;
    let live = |at: usize| LiveGroup::at(&made.groups[at].dirs[0]).unwrap();
    let (outer, inner) = (live(0), live(1));
    Some((made, outer, inner))
}

fn set(group: &LiveGroup, limits: BandwidthLimits) {
    let change = Change::plan(group, &limits).unwrap();
    assert_eq!(change.make(&GO_ON).unwrap(), limits);
    assert_eq!(group.limits().unwrap().limits, limits);
}

/// Settings that a kernel accepts, on both sides of its bounds.
fn accepted() -> impl Strategy<Value = BandwidthLimits> {
    let quota = prop_oneof![
        1 => Just(None),
        8 => (1000u64..400_000).prop_map(Some),
        1 => Just(Some(8_796_093_022_207u64)),
    ];
    let period = prop_oneof![1000u64..1_000_000, Just(1000u64), Just(1_000_000)];
    (quota, period, 0u64..=100).prop_map(|(quota, period, percent)| {
        us(quota, period, quota.unwrap_or(700_000) / 100 * percent)
    })
}

fn runner(cases: u32) -> TestRunner {
    TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() })
}

#[test]
fn this_kernel_accepts_every_order_and_ends_with_what_was_wanted() {
    let Some((_made, outer, inner)) = nested() else { return };
    let around = prop_oneof![Just(BandwidthLimits::default()), accepted()];
    let settings = (around, accepted(), accepted(), any::<bool>());
    let run = |(around, old, new, lower): (_, BandwidthLimits, _, bool)| {
        set(&inner, BandwidthLimits::default());
        set(&outer, BandwidthLimits::default());
        // What is changed lies in a limited group, or around one.
        let (limited, changed) = if lower { (&outer, &inner) } else { (&inner, &outer) };
        set(limited, around);
        for limits in [old, new] {
            let before = changed.limits().unwrap().limits;
            match Change::plan(changed, &limits) {
                Ok(change) => {
                    prop_assert_eq!(change.lines().is_empty(), before == limits);
                    prop_assert_eq!(change.make(&GO_ON).expect("accepted"), limits);
                    prop_assert_eq!(changed.limits().unwrap().limits, limits);
                    prop_assert!(Change::plan(changed, &limits).unwrap().lines().is_empty());
                }
                Err(error) => {
                    // Then this kernel refuses it as well.
                    let text = error.to_string();
                    prop_assert!(text.contains("CPUs"), "{}", text);
                    let writes = order::from_anything(&limits, changed.version());
                    let dir = changed.directory();
                    let refused = writes.into_iter().any(|write| {
                        let file = dir.join(write.file(changed.version()));
                        fs::write(file, write.to_string()).is_err()
                    });
                    prop_assert!(refused, "{} is accepted after all: {}", limits, text);
                    set(changed, before);
                }
            }
        }
        Ok(())
    };
    runner(48).run(&settings, run).unwrap();
}

#[test]
fn this_kernel_refuses_what_the_check_refuses() {
    let Some((_made, outer, _)) = nested() else { return };
    let near = |bound: u64| bound.saturating_sub(2)..bound + 3;
    let quota = prop_oneof![
        Just(None),
        near(0).prop_map(Some),
        near(1000).prop_map(Some),
        near(17_592_186_044_415).prop_map(Some),
        near(8_796_093_022_207).prop_map(Some),
    ];
    let period = prop_oneof![near(0), near(1000), near(1_000_000), Just(100_000)];
    let above = prop_oneof![Just(0i64), -2..3i64];
    let run = |(quota, period, with_burst, above): (Option<u64>, u64, bool, i64)| {
        let burst = quota.unwrap_or(5000).saturating_add_signed(above);
        let limits = us(quota, period, if with_burst { burst } else { 0 });
        set(&outer, BandwidthLimits::default());
        let write = |write: Write| {
            let file = outer.directory().join(write.file(outer.version()));
            fs::write(file, write.to_string()).is_ok()
        };
        // After each write the kernel looks at all three.
        let mut expected = BandwidthLimits::default();
        for step in order::from_anything(&limits, outer.version()) {
            let after = step.after(expected);
            prop_assert_eq!(write(step), after.check().is_ok(), "{} in {}", step, after);
            if after.check().is_ok() {
                expected = after;
            }
            prop_assert_eq!(outer.limits().unwrap().limits, expected);
        }
        Ok(())
    };
    runner(64).run(&(quota, period, any::<bool>(), above), run).unwrap();
    set(&outer, BandwidthLimits::default());
}

#[test]
fn mainline_refuses_a_burst_above_the_quota_and_it_is_found_out_by_trying() {
    match burst_is_capped() {
        Ok(capped) => {
            // What a planned change says must agree with what was found.
            let Some((_made, outer, _)) = nested() else { return };
            let planned = Change::plan(&outer, &us(Some(10_000), 100_000, 10_001));
            assert_eq!(planned.is_err(), capped);
        }
        Err(error) => eprintln!("SKIPPED: {error}"),
    }
}

#[test]
fn a_limit_from_an_order_and_a_refusal_midway_give_back_what_was_set() {
    let Some((_made, outer, inner)) = nested() else { return };
    if !inner.is_v1() {
        eprintln!("SKIPPED: cgroup v2 refuses nothing for the groups around");
        return;
    }
    let before = us(Some(20_000), 100_000, 5000);
    set(&inner, before);
    let change = Change::plan(&inner, &us(Some(30_000), 50_000, 30_000)).unwrap();
    assert_eq!(change.lines().len(), 3);
    // Somebody lowers the group around: 0.6 CPUs are too much for it now.
    set(&outer, us(Some(25_000), 100_000, 0));
    let error = change.make(&GO_ON).unwrap_err();
    let HostError::System { doing, reason, .. } = &error else { panic!("{error}") };
    assert!(doing.contains("cpu.cfs_"), "{doing}");
    assert!(reason.contains("Invalid argument"), "{reason}");
    assert!(reason.contains(&format!("in force again: {before}")), "{reason}");
    assert_eq!(inner.limits().unwrap().limits, before);

    // Planned now, it is refused before anything is written, and it says by whom.
    let error = Change::plan(&inner, &us(Some(30_000), 50_000, 30_000)).unwrap_err();
    let HostError::Input(Mistake { problem, help }) = &error else { panic!("{error}") };
    assert!(problem.contains("0.600 CPUs, more than the 0.250"), "{problem}");
    assert!(help.contains(outer.directory().to_str().unwrap()), "{help}");
    let error = Change::plan(&outer, &us(Some(10_000), 100_000, 0)).unwrap_err();
    let HostError::Input(Mistake { problem, help }) = &error else { panic!("{error}") };
    assert!(problem.contains("a group within it has 0.200"), "{problem}");
    assert!(help.contains(inner.directory().to_str().unwrap()), "{help}");
}

#[test]
fn a_group_that_goes_midway_is_said_to_be_gone() {
    let Some((made, _outer, inner)) = nested() else { return };
    let change = Change::plan(&inner, &us(Some(20_000), 50_000, 20_000)).unwrap();
    let mut made = Some(made);
    let mut written = 0;
    let mut sink = |write: Write| {
        if written == 1 {
            made = None;
        }
        written += 1;
        change.write(write)
    };
    let error = change.make_with(&GO_ON, &mut sink).unwrap_err().to_string();
    assert!(error.contains("the group is gone, and its limits with it"), "{error}");
    assert!(!inner.directory().exists());
    assert!(Change::plan(&inner, &BandwidthLimits::default()).is_err());
    assert!(change.make(&GO_ON).unwrap_err().to_string().contains("No such file"));
}

/// The files of a v2 group, and the group.
fn v2(dir: &Path, max: &str, burst: Option<&str>) -> LiveGroup {
    fs::write(dir.join("cpu.max"), max).unwrap();
    if let Some(burst) = burst {
        fs::write(dir.join("cpu.max.burst"), burst).unwrap();
    }
    LiveGroup::at(dir).unwrap()
}

fn shown(dir: &Path) -> BandwidthLimits {
    read_limits(dir, Version::V2).unwrap().limits
}

#[test]
fn a_dry_run_writes_nothing_and_shows_the_lines() {
    let dir = tempfile::tempdir().unwrap();
    let group = v2(dir.path(), "20000 100000\n", Some("20000\n"));
    let change = Change::plan(&group, &us(Some(10_000), 50_000, 5000)).unwrap();
    let at = dir.path().display();
    let expected =
        [format!("echo 5000 > {at}/cpu.max.burst"), format!("echo '10000 50000' > {at}/cpu.max")];
    assert_eq!(change.lines(), expected);
    assert!(change.notes()[0].contains("refills the group"), "{:?}", change.notes());
    assert!(change.notes()[1].contains("5.14 to 6.9"), "{:?}", change.notes());
    assert_eq!(*change.from(), us(Some(20_000), 100_000, 20_000));
    assert_eq!(shown(dir.path()), *change.from());

    let stopped = change.make(&AtomicBool::new(true)).unwrap_err();
    assert_eq!(stopped, HostError::Interrupted);
    assert_eq!(shown(dir.path()), *change.from());

    // Stopped after the first write, it is finished.
    let stop = AtomicBool::new(false);
    let mut sink = |write: Write| {
        stop.store(true, Ordering::Relaxed);
        change.write(write)
    };
    assert_eq!(change.make_with(&stop, &mut sink).unwrap(), *change.to());
    assert_eq!(shown(dir.path()), *change.to());
}

#[test]
fn the_lines_do_in_a_shell_what_make_does() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a\\x2d slice's");
    fs::create_dir(&path).unwrap();
    let group = v2(&path, "max 100000\n", Some("900000\n"));
    let change = Change::plan(&group, &us(Some(10_000), 50_000, 5000)).unwrap();
    let script = change.lines().join("\n");
    let status = std::process::Command::new("sh").arg("-ec").arg(&script).status().unwrap();
    assert!(status.success(), "{script}");
    assert_eq!(shown(&path), *change.to());
}

#[test]
fn wrong_wishes_are_refused_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let group = v2(dir.path(), "20000 100000\n", None);
    let problem = |limits: BandwidthLimits| match Change::plan(&group, &limits).unwrap_err() {
        HostError::Input(Mistake { problem, .. }) => problem,
        other => panic!("{other}"),
    };
    assert!(problem(us(Some(20_000), 100_000, 1)).contains("knows no burst"));
    assert!(problem(us(Some(0), 100_000, 0)).contains("less than 1 ms"));
    assert!(problem(us(Some(999), 100_000, 0)).contains("less than 1 ms"));
    assert!(problem(us(Some(20_000), 1_000_001, 0)).contains("more than 1 s"));
    let odd = BandwidthLimits { quota_ns: Some(20_000_500), ..us(Some(20_000), 100_000, 0) };
    assert!(problem(odd).contains("whole microseconds"));
    assert_eq!(shown(dir.path()), us(Some(20_000), 100_000, 0));
    // Without the file of the burst, all else can be changed.
    set(&group, us(Some(30_000), 60_000, 0));
}

#[test]
fn a_kernel_that_divides_the_burst_by_1000_is_corrected() {
    // Linux 5.14 to 6.9: a write of cpu.max stores the microseconds of the burst as nanoseconds.
    let dir = tempfile::tempdir().unwrap();
    let group = v2(dir.path(), "20000 100000\n", Some("10000\n"));
    let burst = dir.path().join("cpu.max.burst");
    let spoiling = |change: &Change, write: Write| {
        change.write(write)?;
        if matches!(write, Write::Max(..)) {
            let us: u64 = fs::read_to_string(&burst).unwrap().trim().parse().unwrap();
            fs::write(&burst, (us / 1000).to_string()).unwrap();
        }
        Ok(())
    };
    for to in [
        us(Some(30_000), 100_000, 10_000),
        us(Some(15_000), 50_000, 8000),
        us(Some(60_000), 50_000, 60_000),
        us(Some(10_000), 50_000, 10_000),
        us(None, 100_000, 10_000),
        us(Some(10_000), 50_000, 0),
    ] {
        let change = Change::plan(&group, &to).unwrap();
        let made = change.make_with(&GO_ON, &mut |write| spoiling(&change, write));
        assert_eq!(made.unwrap(), to);
        assert_eq!(shown(dir.path()), to);
    }
    // It is given back so, too.
    let before = us(Some(40_000), 100_000, 20_000);
    set(&group, before);
    let change = Change::plan(&group, &us(Some(50_000), 100_000, 50_000)).unwrap();
    let mut failing = |write: Write| match write {
        Write::Burst(50_000_000) => {
            Err(HostError::system("write", ErrorKind::PermissionDenied, ""))
        }
        write => spoiling(&change, write),
    };
    let error = change.make_with(&GO_ON, &mut failing).unwrap_err().to_string();
    assert!(error.contains(&format!("in force again: {before}")), "{error}");
    assert_eq!(shown(dir.path()), before);
}

#[test]
fn what_somebody_else_sets_meanwhile_is_theirs() {
    let dir = tempfile::tempdir().unwrap();
    let group = v2(dir.path(), "20000 100000\n", Some("10000\n"));
    let change = Change::plan(&group, &us(Some(30_000), 50_000, 20_000)).unwrap();

    // Between comparing and writing: nothing is written.
    fs::write(dir.path().join("cpu.max"), "25000 100000\n").unwrap();
    let error = change.make(&GO_ON).unwrap_err().to_string();
    assert!(error.contains("another process"), "{error}");
    assert!(error.contains("quota 25000 us") && error.contains("nothing was written"), "{error}");
    assert_eq!(shown(dir.path()), us(Some(25_000), 100_000, 10_000));

    // Between two writes: what was written is taken back, what they wrote stays.
    let change = Change::plan(&group, &us(Some(30_000), 50_000, 20_000)).unwrap();
    let mut meddled = false;
    let mut sink = |write: Write| {
        change.write(write)?;
        if !std::mem::replace(&mut meddled, true) {
            fs::write(dir.path().join("cpu.max.burst"), "7000\n").unwrap();
        }
        Ok(())
    };
    let error = change.make_with(&GO_ON, &mut sink).unwrap_err().to_string();
    let left = us(Some(25_000), 100_000, 7000);
    assert!(error.contains(&format!("what others set stays: {left}")), "{error}");
    assert_eq!(shown(dir.path()), left);
}

/// A file that can be read, and not written even by root.
fn sealed(text: &str) -> fs::File {
    let flags = MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC;
    let mut file = fs::File::from(memfd_create("burst", flags).unwrap());
    file.write_all(text.as_bytes()).unwrap();
    file.rewind().unwrap();
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW).unwrap();
    file
}

#[test]
fn without_permission_midway_what_was_set_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let file = sealed("0\n");
    let target = format!("/proc/self/fd/{}", file.as_raw_fd());
    std::os::unix::fs::symlink(target, dir.path().join("cpu.max.burst")).unwrap();
    let group = v2(dir.path(), "20000 100000\n", None);
    let change = Change::plan(&group, &us(Some(30_000), 50_000, 20_000)).unwrap();
    assert_eq!(change.lines().len(), 2);
    let HostError::System { doing, reason, help } = change.make(&GO_ON).unwrap_err() else {
        panic!()
    };
    assert!(doing.contains("write `20000`") && doing.contains("cpu.max.burst"), "{doing}");
    assert!(reason.starts_with("Operation not permitted"), "{reason}");
    assert!(reason.contains("in force again: quota 20000 us per 100000 us"), "{reason}");
    assert!(help.contains("run as root"), "{help}");
    assert_eq!(shown(dir.path()), us(Some(20_000), 100_000, 0));
}

#[test]
fn a_restore_that_fails_says_what_stands_and_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let group = v2(dir.path(), "20000 100000\n", Some("0\n"));
    let change = Change::plan(&group, &us(Some(30_000), 50_000, 20_000)).unwrap();
    let mut left = 1;
    let mut sink = |write: Write| {
        if left == 0 {
            return Err(HostError::system("write", ErrorKind::PermissionDenied, "run as root"));
        }
        left -= 1;
        change.write(write)
    };
    let HostError::System { reason, help, .. } = change.make_with(&GO_ON, &mut sink).unwrap_err()
    else {
        panic!()
    };
    assert!(reason.contains("did not come back"), "{reason}");
    assert!(reason.contains("in force is quota 30000 us per 50000 us, burst 0 us"), "{reason}");
    let at = dir.path().display();
    let by_hand = format!("echo 0 > {at}/cpu.max.burst; echo '20000 100000' > {at}/cpu.max");
    assert!(help.contains(&by_hand), "{help}");
}

#[test]
fn the_end_of_the_process_waits_for_a_change() {
    let dir = tempfile::tempdir().unwrap();
    let group = v2(dir.path(), "20000 100000\n", Some("0\n"));
    let to = us(Some(30_000), 50_000, 20_000);
    let change = Change::plan(&group, &to).unwrap();
    let mut waiter = None;
    let mut sink = |write: Write| {
        change.write(write)?;
        if waiter.is_none() {
            let dir = dir.path().to_owned();
            waiter = Some(thread::spawn(move || {
                remove::wait_for_changes();
                shown(&dir)
            }));
            thread::sleep(Duration::from_millis(30));
        }
        Ok(())
    };
    change.make_with(&GO_ON, &mut sink).unwrap();
    assert_eq!(waiter.unwrap().join().unwrap(), to);
}

#[test]
fn a_group_of_v2_is_told_that_the_group_around_has_less() {
    let top = tempfile::tempdir().unwrap();
    let inner = top.path().join("inner");
    fs::create_dir(&inner).unwrap();
    v2(top.path(), "10000 100000\n", Some("0\n"));
    let group = v2(&inner, "max 100000\n", Some("0\n"));
    let change = Change::plan(&group, &us(Some(30_000), 100_000, 0)).unwrap();
    assert!(change.notes().iter().any(|note| note.contains("0.100 CPUs at most")));
}

#[test]
fn a_group_is_told_that_the_group_around_lets_less_through_at_once() {
    let top = tempfile::tempdir().unwrap();
    let inner = top.path().join("inner");
    fs::create_dir(&inner).unwrap();
    v2(top.path(), "50000 100000\n", Some("0\n"));
    let group = v2(&inner, "max 100000\n", Some("0\n"));
    let told = |quota, period, burst| {
        let notes = Change::plan(&group, &us(Some(quota), period, burst)).unwrap().notes();
        notes.iter().any(|note| note.contains("throttles it before"))
    };
    // A burst, and a longer period, are of no use within a quota of 50 ms per 100 ms.
    assert!(told(50_000, 100_000, 50_000) && told(300_000, 1_000_000, 0));
    assert!(
        !told(50_000, 100_000, 0) && !told(20_000, 100_000, 20_000) && !told(25_000, 50_000, 0)
    );
    fs::write(top.path().join("cpu.max.burst"), "50000\n").unwrap();
    assert!(!told(50_000, 100_000, 50_000));
    let [old, kid] = ["old", "old/kid"].map(|name| top.path().join(name));
    fs::create_dir_all(&kid).unwrap();
    for dir in [&old, &kid] {
        for (file, text) in [("quota", "50000\n"), ("period", "100000\n"), ("burst", "0\n")] {
            fs::write(dir.join(format!("cpu.cfs_{file}_us")), text).unwrap();
        }
    }
    // cgroup v1 accepts the burst just the same.
    let change = Change::plan(&LiveGroup::at(&kid).unwrap(), &us(Some(50_000), 100_000, 50_000));
    assert!(change.unwrap().notes().iter().any(|note| note.contains("throttles it before")));
}
