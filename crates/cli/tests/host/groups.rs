//! Tasks enter their groups, and what the kernel counts for a group is read.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use reveille_host::HostError;
use reveille_host::cgroup::{GroupFiles, StatFiles};
use reveille_host::program::{HostRun, Setting};
use reveille_workload::Program;

use crate::{MS, program, run_until, two_counts};

fn runners(process: &str) -> Program {
    program(&format!(
        "[[task]]\nname = \"limited\"\ncount = 2\nprocess = \"{process}\"\n\
         program = [{{ run = \"100us\" }}, {{ count = 1 }}]\n\
         [[task]]\nname = \"free\"\nprocess = \"{process}\"\n\
         program = [{{ sleep = \"100us\" }}, {{ count = 1000000 }}]\n"
    ))
}

fn group(dir: &Path, threads: bool) -> GroupFiles {
    GroupFiles {
        name: "limit".into(),
        parent: None,
        roles: vec![0],
        procs: vec![dir.join("cgroup.procs")],
        threads: threads.then(|| dir.join("tasks")).into_iter().collect(),
        phase: None,
        stats: StatFiles { cpu_stat: dir.join("cpu.stat"), usage: None },
    }
}

/// A group of the first version that may use 1 of each 20 ms, removed when dropped.
struct Limited(PathBuf);

impl Limited {
    /// Nothing where this user cannot make one.
    fn new(name: &str) -> Option<Limited> {
        let dir = format!("/sys/fs/cgroup/cpu/reveille-test-{name}-{}", std::process::id());
        let made = fs::create_dir(&dir).map(|()| Limited((&dir).into())).and_then(|limited| {
            fs::write(format!("{dir}/cpu.cfs_period_us"), "20000")?;
            fs::write(format!("{dir}/cpu.cfs_quota_us"), "1000")?;
            Ok(limited)
        });
        made.inspect_err(|e| eprintln!("SKIPPED: no task group of the first version: {e}")).ok()
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        // It may take a moment until the kernel has forgotten those that were in it.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn a_quota_holds_those_whose_role_is_in_the_group() {
    // Processes of their own, and threads of one of which only some are in the group.
    for process in ["own", "run"] {
        let Some(limited) = Limited::new(process) else { return };
        let setting =
            Setting { cpus: Vec::new(), groups: vec![group(&limited.0, process == "run")] };
        let stop = AtomicBool::new(false);
        let run = || run_until(&runners(process), &setting, (20, 200), &stop).unwrap();
        let throttled = |host: &HostRun| {
            let stats = &host.result.groups[0];
            stats.nr_throttled > 0 && stats.throttled_ns > 0
        };
        // On a busy machine the tasks may get less than they are allowed.
        let host = (0..5).map(|_| run()).find(throttled).expect("throttled once in five runs");
        let [stats] = &host.result.groups[..] else { panic!("one group") };
        assert_eq!(stats.name, "limit");
        assert!(stats.nr_periods >= stats.nr_throttled, "{stats:?}");
        // What each CPU drew before may be used besides.
        let most = host.result.elapsed_ns / 20 + 25 * MS;
        assert!((1..most).contains(&stats.usage_ns), "{stats:?} in {} ns", host.result.elapsed_ns);
        let (_, free) = two_counts(host.result.operations);
        assert!(free > 0, "the other task did not go on");
        let dir = limited.0.clone();
        drop(limited);
        assert!(!dir.exists(), "something is left in {}", dir.display());
    }
}

#[test]
fn a_group_that_cannot_be_entered_is_named_as_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("cpu.stat"), "nr_periods 0\nusage_usec 0\n").unwrap();
    let mut own = group(dir.path(), false);
    own.procs = vec![dir.path().join("none/cgroup.procs")];
    let try_with = |program: &Program, group: &GroupFiles| {
        let setting = Setting { cpus: Vec::new(), groups: vec![group.clone()] };
        run_until(program, &setting, (1, 10), &AtomicBool::new(false)).unwrap_err()
    };
    let error = try_with(&runners("own"), &own);
    assert!(matches!(error, HostError::System { .. }), "{error}");
    assert!(error.to_string().contains("(limited) put into its task group"), "{error}");

    let error = try_with(&runners("run"), &own);
    assert!(matches!(error, HostError::Input(_)), "{error}");
    assert!(error.to_string().contains("in different task groups"), "{error}");

    own.stats.cpu_stat = dir.path().join("none/cpu.stat");
    let error = try_with(&runners("own"), &own);
    assert!(error.to_string().contains("none/cpu.stat"), "{error}");
}
