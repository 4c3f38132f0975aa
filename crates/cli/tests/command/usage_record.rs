//! `reveille usage record`: what it refuses before it records, and what it leaves however a
//! recording ends. Real groups; skipped, with the reason, where none can be made.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use reveille_usage::{HeldBack, Origin, Usage};

use super::{failure, reveille, send};

/// A group made for a test, in each hierarchy that counts, with a process in it that computes
/// for 2 ms and sleeps for some.
struct Loaded {
    name: String,
    dirs: Vec<PathBuf>,
    load: Child,
}

const LOAD: &str = "while :; do \
                    i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; sleep 0.008; done";

impl Loaded {
    fn new(test: &str) -> Option<Loaded> {
        let name = format!("reveille-record-{test}-{}", std::process::id());
        let v1 = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpuacct"];
        let roots: Vec<&str> = match Path::new(v1[0]).join("cpu.cfs_quota_us").exists()
            || Path::new(v1[0]).join("cgroup.procs").exists()
        {
            true => v1.to_vec(),
            false => vec!["/sys/fs/cgroup"],
        };
        let dirs: Vec<PathBuf> = roots.iter().map(|root| Path::new(root).join(&name)).collect();
        for dir in &dirs {
            match fs::create_dir(dir) {
                Ok(()) => {}
                Err(error) if dir.is_dir() => assert_eq!(error.to_string(), "", "it is another's"),
                Err(error) => {
                    eprintln!("SKIPPED: cannot make {}: {error}", dir.display());
                    return None;
                }
            }
        }
        let mut command = Command::new("sh");
        let load = command.args(["-c", LOAD]).stdout(Stdio::null()).spawn().unwrap();
        for dir in &dirs {
            fs::write(dir.join("cgroup.procs"), load.id().to_string()).unwrap();
        }
        Some(Loaded { name, dirs, load })
    }

    /// Ends the load, and then removes the group, as a container runtime does.
    fn remove(&mut self) {
        let _ = self.load.kill();
        let _ = self.load.wait();
        let begun = Instant::now();
        for dir in &self.dirs {
            // A process of the load may still be on its way out.
            while dir.exists() && begun.elapsed() < Duration::from_secs(5) {
                let _ = fs::remove_dir(dir);
                sleep(Duration::from_millis(10));
            }
        }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.remove();
    }
}

fn refused(args: &[&str]) -> String {
    failure(&mut reveille(&[&["usage", "record"], args].concat()), 2)
}

#[test]
fn what_cannot_be_recorded_is_refused_before_it_begins() {
    let Some(group) = Loaded::new("refused") else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("usage.parquet");
    let file = file.to_str().unwrap();
    let slip = group.name.replace("record", "recrod");
    let error = refused(&["--cgroup", &slip, "-o", file]);
    assert!(error.contains("did you mean") && error.contains(&group.name), "{error}");
    let of = ["--cgroup", group.name.as_str(), "-o", file];
    let error = refused(&[&of[..], &["--for", "0s"]].concat());
    assert!(error.contains("--for"), "{error}");
    for (span, said) in
        [("40d", "is not between 1 ns and 31 days"), ("4w", "ns, us, ms, s, m, h or d")]
    {
        let error = refused(&[&of[..], &["--for", span]].concat());
        assert!(error.contains("--for") && error.contains(said), "{error}");
    }
    let error = refused(&[&of[..], &["--sample", "1us"]].concat());
    assert!(error.contains("--sample"), "{error}");
    let error = refused(&["--cgroup", "/", "-o", file]);
    assert!(error.contains("root"), "{error}");
    fs::write(file, "precious").unwrap();
    let begun = Instant::now();
    let error = refused(&of);
    assert!(error.contains("it exists") && error.contains("--force"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(10), "before the recording");
    assert_eq!(fs::read_to_string(file).unwrap(), "precious");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

/// Starts a long recording and lets it see something.
fn start(group: &Loaded, file: &Path, how: &str) -> Child {
    let args = ["usage", "record", "--cgroup", &group.name, "--for", "600s", "--how", how, "-o"];
    let mut command = reveille(&args);
    let child = command.arg(file).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    sleep(Duration::from_millis(1200));
    child
}

#[test]
fn a_second_recorder_of_one_file_is_refused() {
    let Some(group) = Loaded::new("twice") else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("usage.parquet");
    let first = start(&group, &file, "sample");
    let of = ["--cgroup", group.name.as_str(), "--force", "-o", file.to_str().unwrap()];
    let error = refused(&of);
    assert!(error.contains(&format!("process {} is writing it", first.id())), "{error}");
    // Not even what others put there meanwhile is lost: the recording goes elsewhere.
    fs::write(&file, "precious").unwrap();
    send(&first, "INT");
    let output = first.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    let errors = String::from_utf8_lossy(&output.stderr);
    let kept = errors.split("kept as ").nth(1).and_then(|text| text.lines().next()).unwrap();
    assert!(!Usage::read(Path::new(kept)).unwrap().demands.is_empty());
    fs::remove_file(kept).unwrap();
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "no mark is left");
}

fn checked(output: &Output, code: i32, file: &Path) -> Usage {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{errors}");
    let usage = Usage::read(file).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(&format!("{} demands", usage.demands.len())), "{text}");
    assert!(text.contains("overhead: ") && usage.overhead.is_some(), "{text}");
    assert!(usage.span_ns < 300_000_000_000 && !usage.demands.is_empty());
    usage
}

#[test]
fn ctrl_c_ends_it_and_what_was_seen_is_written() {
    let Some(group) = Loaded::new("stopped") else { return };
    let directory = tempfile::tempdir().unwrap();
    for how in ["auto", "sample"] {
        let file = directory.path().join(format!("{how}.parquet"));
        let child = start(&group, &file, how);
        send(&child, "INT");
        let output = child.wait_with_output().unwrap();
        let usage = checked(&output, 130, &file);
        assert!(how == "auto" || matches!(usage.origin, Origin::Sampled { .. }));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("interrupted"), "{errors}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[test]
fn a_group_that_is_removed_leaves_its_recording() {
    let Some(mut group) = Loaded::new("removed") else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("usage.parquet");
    let child = start(&group, &file, "auto");
    group.remove();
    let output = child.wait_with_output().unwrap();
    let usage = checked(&output, 1, &file);
    assert!(usage.warnings.iter().any(|text| text.contains("removed")), "{:?}", usage.warnings);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("was removed"), "{errors}");
}

/// Files stand for the kernel's: the group has no limit, and the one around it is throttled.
#[test]
fn throttling_of_the_group_around_is_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let [par, kid] = ["par", "par/kid"].map(|name| directory.path().join(name));
    for (dir, max) in [(&par, "40000 100000\n"), (&kid, "max 100000\n")] {
        fs::create_dir(dir).unwrap();
        for (file, text) in [
            ("cgroup.procs", ""),
            ("cgroup.threads", "1\n"),
            ("cgroup.type", "domain\n"),
            ("cgroup.controllers", "cpu\n"),
            ("cpu.max", max),
        ] {
            fs::write(dir.join(file), text).unwrap();
        }
    }
    // In place and of one length: a reader sees whole numbers.
    let count = |dir: &Path, usage_us: u64, throttled: u64| {
        let periods = 2 * throttled;
        let text = format!(
            "usage_usec {usage_us:012}\nnr_periods {periods:06}\nnr_throttled {throttled:06}\n\
             throttled_usec 000000\n"
        );
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let mut file = options.open(dir.join("cpu.stat")).unwrap();
        std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    };
    let counted = |n: u64| {
        count(&kid, 1000 * n, 0);
        count(&par, 1000 * n, n);
    };
    counted(1);
    let file = directory.path().join("usage.parquet");
    let args =
        ["record", "--for", "1s", "--how", "sample", "--cgroup", kid.to_str().unwrap(), "-o"];
    let mut command = reveille(&args);
    let mut child = command.arg(&file).stdout(Stdio::piped()).spawn().unwrap();
    for n in 2.. {
        counted(n);
        sleep(Duration::from_millis(20));
        if child.try_wait().unwrap().is_some() {
            break;
        }
    }
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("no limit of its own"), "{output:?}");
    let warned = format!("{}, around the group, was throttled in ", par.display());
    assert!(text.contains(&warned) && text.contains("(40 ms per 100 ms"), "{text}");
    // The file says so to who plans with it.
    let usage = Usage::read(&file).unwrap();
    assert!(usage.warnings.iter().any(|warning| warning.contains(&warned)), "{usage:?}");
    assert_eq!(usage.held_back(), Some(HeldBack::LimitAround), "{usage:?}");
}

/// On hosts that mount the first version's `cpu` and `cpuacct` separately.
#[test]
fn a_group_without_its_accounting_is_told_so() {
    let [cpu, accounting] = ["cpu", "cpuacct"].map(|of| Path::new("/sys/fs/cgroup").join(of));
    let same = fs::canonicalize(&cpu).ok() == fs::canonicalize(&accounting).ok();
    let name = format!("reveille-cpu-only-{}", std::process::id());
    if same || fs::create_dir(cpu.join(&name)).is_err() {
        eprintln!("SKIPPED: no separate cpuacct hierarchy, or no right to make a group");
        return;
    }
    let error = refused(&["--cgroup", &name, "--how", "sample", "--for", "1s", "-o", "a.parquet"]);
    fs::remove_dir(cpu.join(&name)).unwrap();
    let make = format!("make {}", accounting.join(&name).display());
    for words in ["it is missing in the `cpuacct` hierarchy", &make] {
        assert!(error.contains(words), "{words}: {error}");
    }
}
