//! Real groups with a known load on this host. Skipped, with the reason, where a group cannot
//! be made or the scheduler not be traced.

use std::path::PathBuf;
use std::sync::Mutex;

use reveille_policy::{BandwidthLimits, Groups, TaskGroup};
use reveille_usage::Origin;

use super::*;
use crate::cgroup::HostGroups;

const MS: Ns = 1_000_000;

/// One at a time: they load the host.
static ALONE: Mutex<()> = Mutex::new(());

/// A fresh group; `None` where none can be made.
fn group(quota_ms: Option<u64>) -> Option<(HostGroups, LiveGroup)> {
    let limits =
        BandwidthLimits { quota_ns: quota_ms.map(|ms| ms * MS), ..BandwidthLimits::default() };
    let (name, roles) = ("recorded".to_owned(), Vec::new());
    let group = TaskGroup { name, parent: None, limits, roles, phase_ns: None };
    let groups = Groups { groups: vec![group], ..Groups::default() };
    let made = match HostGroups::create(&groups) {
        Ok(made) => made,
        Err(error @ HostError::System { .. }) => {
            eprintln!("SKIPPED: {error}");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let procs: PathBuf = made.files(&groups).unwrap()[0].procs[0].clone();
    let live = LiveGroup::open(procs.parent().unwrap().to_str().unwrap()).unwrap();
    Some((made, live))
}

/// A thread's id in a group's files.
fn join(group: &LiveGroup) {
    let file = if group.is_v1() { "tasks" } else { "cgroup.threads" };
    let id = rustix::thread::gettid().as_raw_pid();
    for dir in group.directories() {
        std::fs::write(dir.join(file), id.to_string()).unwrap();
    }
}

/// CPU time of this thread.
fn used_ns() -> Ns {
    own_cpu_ns()
}

/// Uses 2 ms of CPU time, exactly, however often it is interrupted, and sleeps for 8 ms: as
/// often as said. Its CPU time.
fn work(times: u32) -> Ns {
    let begun_ns = used_ns();
    for _ in 0..times {
        let end_ns = used_ns() + 2 * MS;
        while used_ns() < end_ns {
            std::hint::spin_loop();
        }
        clock::sleep(8 * MS);
    }
    used_ns() - begun_ns
}

const TRACE: RecordOptions =
    RecordOptions { span_ns: 700 * MS, sample_ns: Some(MS), how: How::Trace };

/// A recording of a group while `load` runs on a thread of its own, told of the group; `None`
/// where that cannot be.
fn recorded(
    quota_ms: Option<u64>,
    options: &RecordOptions,
    load: impl FnOnce(&LiveGroup) -> Ns + Send,
) -> Option<(Recording, Ns)> {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let (made, live) = group(quota_ms)?;
    if !live.is_v1() {
        eprintln!("SKIPPED: threads of this process cannot be in several groups of cgroup v2");
        return None;
    }
    let stop = AtomicBool::new(false);
    let (result, used_ns) = std::thread::scope(|scope| {
        let load = scope.spawn(|| load(&live));
        let result = record(&live, options, &stop, &mut |_| {});
        (result, load.join().unwrap())
    });
    drop(made);
    match result {
        Ok(recording) if has_holes(&recording) => None,
        Ok(recording) => Some((recording, used_ns)),
        Err(error) if options.how == How::Trace => {
            eprintln!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Has this kernel left events out? Nothing exact can be asked of such a recording.
fn has_holes(recording: &Recording) -> bool {
    let holes = recording.usage.warnings.iter().any(|text| text.contains("another is missing"));
    if holes {
        eprintln!("SKIPPED: {:?}", recording.usage.warnings);
    }
    holes
}

fn median(mut values: Vec<Ns>) -> Ns {
    values.sort_unstable();
    values[values.len() / 2]
}

#[test]
fn every_piece_of_work_is_one_demand() {
    let load = |group: &LiveGroup| {
        // It comes in while the recording runs, and its children are made in the group.
        std::thread::sleep(std::time::Duration::from_millis(250));
        join(group);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| work(20))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        })
    };
    let Some((recording, used_ns)) = recorded(None, &TRACE, load) else { return };
    let usage = &recording.usage;
    assert_eq!((usage.origin, recording.ended), (Origin::Traced, Ended::Whole));
    assert_eq!((recording.cost.lost, usage.span_ns), (0, TRACE.span_ns));
    let worked: Vec<Ns> =
        usage.demands.iter().map(|d| d.cpu_ns).filter(|&cpu_ns| cpu_ns > MS).collect();
    // On a busy host the last may not be done in time.
    assert!((45..=60).contains(&worked.len()), "{} of 60", worked.len());
    let typical = median(worked);
    assert!((2 * MS..2 * MS + MS / 5).contains(&typical), "{typical} ns");
    assert!((3..=5).contains(&usage.threads), "{}", usage.threads);
    // Some of the load's time may be after the end.
    let traced: Ns = usage.demands.iter().map(|d| d.cpu_ns).sum();
    let counted = recording.counters.usage_ns;
    let tick = clock::tick_period() * 2;
    assert!(traced.abs_diff(counted) <= counted / 50 + tick, "{traced} and {counted}");
    assert!(traced <= used_ns + used_ns / 10 + 3 * MS, "{traced} of {used_ns}");
    assert_eq!(usage.samples.len() as u64, TRACE.span_ns / MS);
    assert_eq!(usage.samples.iter().map(|sample| sample.runtime_ns).sum::<Ns>(), traced);
}

#[test]
fn throttling_takes_time_and_no_demand() {
    let load = |group: &LiveGroup| {
        join(group);
        work(20)
    };
    let Some((recording, _)) = recorded(Some(6), &TRACE, load) else { return };
    let usage = &recording.usage;
    assert_eq!(usage.limits.unwrap().quota_ns, Some(6 * MS));
    let last = usage.samples.last().unwrap();
    assert!(last.nr_throttled >= 2 && last.nr_periods >= last.nr_throttled, "{last:?}");
    assert_eq!(last.nr_throttled, recording.counters.nr_throttled);
    let done = usage.demands.iter().filter(|d| d.cpu_ns > MS && d.done_ns.is_some());
    let (cpu, took): (Vec<Ns>, Vec<Ns>) =
        done.map(|d| (d.cpu_ns, d.done_ns.unwrap() - d.at_ns)).unzip();
    assert!(cpu.len() >= 5, "{cpu:?}");
    assert!((2 * MS..2 * MS + MS / 5).contains(&median(cpu.clone())), "{cpu:?}");
    // One waits for its quota while it is under way, and takes no more for it.
    assert!(cpu.iter().all(|&ns| ns < 3 * MS), "{cpu:?}");
    assert!(took.iter().any(|&ns| ns > 30 * MS), "{took:?}");
    let waited = usage.samples.iter().filter(|s| s.runnable == Some(1) && s.runtime_ns == 0);
    assert!(waited.count() > 50, "it could run and did not, while throttled");
}

#[test]
fn a_group_that_goes_leaves_what_was_seen() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for how in [How::Trace, How::Sample] {
        let Some((made, live)) = group(None) else { return };
        if !live.is_v1() {
            eprintln!("SKIPPED: threads of this process cannot be in several groups");
            return;
        }
        let [stop, begun] = [false; 2].map(AtomicBool::new);
        let options = RecordOptions { span_ns: 60_000 * MS, sample_ns: Some(MS), how };
        let result = std::thread::scope(|scope| {
            scope.spawn(|| {
                // On a busy host a recording takes a while to begin.
                while !begun.load(Ordering::Relaxed) {
                    clock::sleep(MS);
                }
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        join(&live);
                        work(30)
                    });
                });
                drop(made);
            });
            let result =
                record(&live, &options, &stop, &mut |_| begun.store(true, Ordering::Relaxed));
            begun.store(true, Ordering::Relaxed);
            result
        });
        let recording = match result {
            Ok(recording) => recording,
            Err(error) if how == How::Trace => return eprintln!("SKIPPED: {error}"),
            Err(error) => panic!("{error}"),
        };
        assert_eq!(recording.ended, Ended::Vanished);
        if has_holes(&recording) {
            continue;
        }
        let span_ns = recording.usage.span_ns;
        assert!(span_ns < 30_000 * MS, "{span_ns}");
        let used: Ns = recording.usage.samples.iter().map(|sample| sample.runtime_ns).sum();
        assert!((40 * MS..90 * MS).contains(&used), "{how:?}: {used}");
        let warning = &recording.usage.warnings[0];
        assert!(warning.contains("removed"), "{warning}");
    }
}

#[test]
fn sampling_sees_the_same_sum_and_states_its_resolution() {
    let options = RecordOptions { how: How::Sample, ..TRACE };
    let load = |group: &LiveGroup| {
        join(group);
        work(30)
    };
    let Some((recording, used_ns)) = recorded(None, &options, load) else { return };
    let usage = &recording.usage;
    let Origin::Sampled { resolution_ns } = usage.origin else { panic!("{:?}", usage.origin) };
    assert!((MS..200 * MS).contains(&resolution_ns), "{resolution_ns}");
    let sampled: Ns = usage.samples.iter().map(|sample| sample.runtime_ns).sum();
    assert!(sampled <= used_ns + used_ns / 10 + 10 * MS, "{sampled} of {used_ns}");
    assert!(sampled >= used_ns / 2, "{sampled} of {used_ns}");
    assert_eq!(usage.samples.last().unwrap().at_ns, options.span_ns);
}

#[test]
fn it_ends_when_told_to_and_says_what_was_changed() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let Some((_made, live)) = group(Some(50)) else { return };
    let stop = AtomicBool::new(false);
    let file = match live.is_v1() {
        true => ("cpu.cfs_quota_us", "70000"),
        false => ("cpu.max", "70000 100000"),
    };
    let options = RecordOptions { span_ns: 60_000 * MS, sample_ns: Some(MS), how: How::Sample };
    let mut progress = |ns: Ns| {
        if ns > 200 * MS {
            std::fs::write(live.directory().join(file.0), file.1).unwrap();
        }
        if ns > 1500 * MS {
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    };
    let recording = record(&live, &options, &stop, &mut progress).unwrap();
    assert_eq!(recording.ended, Ended::Stopped);
    assert!(recording.usage.span_ns < 30_000 * MS, "{}", recording.usage.span_ns);
    let changed = recording.usage.warnings.iter().find(|text| text.contains("changed"));
    let changed = changed.unwrap_or_else(|| panic!("{:?}", recording.usage.warnings));
    assert!(changed.contains("from 50 ms per 100 ms") && changed.contains("to 70 ms"), "{changed}");
}
