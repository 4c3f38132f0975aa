//! The kernel is a directory, and loaders are scripts that write its files: what a kernel
//! does to a scheduler is tested in a virtual machine (tests/vm/tests/scx-compare.sh).

use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::{Duration, Instant};

use reveille_place::Mistake;

use super::*;

/// What each script begins with: it enables sched_ext, and disables it when told to end.
const GOOD: &str = r#"
put() { echo "$2" >"$dir/$1.new"; mv "$dir/$1.new" "$dir/$1"; }
enable() { mkdir -p "$dir/root"; put root/ops "$1"; put state enabled; sleep 0.02; put enable_seq "${2:-8}"; }
disable() { rm -rf "$dir/root"; put state disabled; }
wait_for_end() { while :; do sleep 0.01; done; }
trap 'disable; exit 0' TERM
echo $$ >"$dir/pid"
echo "$*" >"$dir/args"
"#;

struct Fake {
    root: tempfile::TempDir,
    kernel: SchedExt,
}

impl Fake {
    /// A kernel with a loader that does this.
    fn new(script: &str) -> Fake {
        let root = tempfile::tempdir().unwrap();
        let (dir, bin) = (root.path().join("sched_ext"), root.path().join("bin"));
        fs::create_dir(&dir).unwrap();
        fs::create_dir(&bin).unwrap();
        fs::write(dir.join("state"), "disabled\n").unwrap();
        fs::write(dir.join("enable_seq"), "7\n").unwrap();
        let text = format!("#!/bin/sh\ndir='{}'\n{GOOD}\n{script}\n", dir.display());
        fs::write(root.path().join("script"), text).unwrap();
        // Another thread's fork may hold a file open for writing that this process wrote, and
        // the kernel would not run it.
        let install = Command::new("install")
            .args(["-m", "755"])
            .args([root.path().join("script"), bin.join(SCX_REVEILLE)])
            .status();
        assert!(install.unwrap().success());
        let kernel = SchedExt { directory: dir, may_load: true, named: None, search: vec![bin] };
        Fake { root, kernel }
    }

    fn file(&self, name: &str) -> String {
        self.kernel.read(name).unwrap_or_default()
    }

    fn load(&self) -> Result<Loaded> {
        self.kernel.load(&loader(), &AtomicBool::new(false))
    }
}

fn loader() -> Loader {
    let args = ["--base", "v6.2"].map(str::to_owned).to_vec();
    Loader { program: SCX_REVEILLE.to_owned(), args }
}

fn lives(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
    !pid.is_empty() && state.is_some_and(|state| !"ZX".contains(state))
}

fn within(limit: Duration, mut is: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while !is() {
        if begin.elapsed() > limit {
            return false;
        }
        sleep(Duration::from_millis(5));
    }
    true
}

fn input(error: HostError) -> (String, String) {
    match error {
        HostError::Input(Mistake { problem, help }) => (problem, help),
        other => panic!("{other:?}"),
    }
}

#[test]
fn it_is_loaded_for_a_run_and_gone_after_it() {
    let fake =
        Fake::new("sleep 0.05; echo '12:00 WARN no limits' >&2; enable reveille; wait_for_end");
    let loaded = fake.load().unwrap();
    assert_eq!((loaded.name(), fake.file("state").as_str()), ("reveille", "enabled"));
    assert_eq!(fake.file("args"), "--base v6.2");
    assert_eq!(loaded.warnings(), ["scx_reveille: no limits"]);
    // Who comes second is refused by the name of who came first.
    let (problem, _) = input(fake.load().unwrap_err());
    assert!(problem.contains("is loaded: reveille"), "{problem}");
    assert!(lives(&fake.file("pid")));
    loaded.unload().unwrap();
    assert_eq!(fake.file("state"), "disabled");
    assert!(!lives(&fake.file("pid")));
    // Without a word, as after a panic.
    drop(fake.load().unwrap());
    assert_eq!(fake.file("state"), "disabled");
}

#[test]
fn each_reason_not_to_load_is_named() {
    let fake = Fake::new("exit 1");
    let said = |kernel: &SchedExt| input(kernel.check(&loader()).unwrap_err());
    let missing = SchedExt { directory: fake.root.path().join("no"), ..fake.kernel.clone() };
    assert!(said(&missing).0.contains("no sched_ext"));
    let user = SchedExt { may_load: false, ..fake.kernel.clone() };
    assert!(said(&user).0.contains("only root"));
    let nowhere = SchedExt { search: Vec::new(), ..fake.kernel.clone() };
    let (problem, help) = said(&nowhere);
    assert!(problem.contains("scx_reveille is not found"), "{problem}");
    assert!(help.contains("SCX_REVEILLE=") && help.contains("make scx"), "{help}");
    let named = SchedExt { named: Some("/dev/null".into()), ..fake.kernel.clone() };
    assert!(said(&named).0.contains("SCX_REVEILLE=/dev/null is no program"));
    let other = Loader { program: "scx_other".to_owned(), args: Vec::new() };
    assert!(input(fake.kernel.check(&other).unwrap_err()).0.contains("scx_other is not found"));
    fake.kernel.check(&loader()).unwrap();
    fs::write(fake.kernel.directory.join("state"), "enabled\n").unwrap();
    fs::create_dir(fake.kernel.directory.join("root")).unwrap();
    fs::write(fake.kernel.directory.join("root/ops"), "lavd_1.0\n").unwrap();
    assert!(said(&fake.kernel).0.contains("loaded: lavd_1.0"));
    assert_eq!(fake.file("pid"), "", "nothing was started");
}

#[test]
fn what_a_loader_refuses_is_passed_on() {
    let refusal = r#"printf '  \303\227 the base is odd\n  help: take another\n' >&2; exit 2"#;
    let (problem, help) = input(Fake::new(refusal).load().unwrap_err());
    assert_eq!(problem, "scx_reveille: the base is odd");
    assert_eq!(help, "take another");
    let failure = "echo 'x the kernel refused the BPF program: -22' >&2; exit 1";
    let error = Fake::new(failure).load().unwrap_err();
    assert!(matches!(&error, HostError::System { reason, .. } if reason.ends_with("program: -22")));
    let silent = Fake::new("exit 1").load().unwrap_err();
    assert!(silent.to_string().contains("ended with exit code 1"), "{silent}");
    let strange = Fake::new("enable lavd_1.0; wait_for_end");
    let (problem, _) = input(strange.load().unwrap_err());
    assert!(problem.contains("another sched_ext scheduler was loaded: lavd_1.0"), "{problem}");
    assert!(within(Duration::from_secs(2), || !lives(&strange.file("pid"))));
}

#[test]
fn a_scheduler_that_the_kernel_ends_is_an_error_with_its_reason() {
    let stall = "echo 'CPU 0: error: a dump' >&2; sleep 0.05
        echo '  x the kernel ended the scheduler: runnable task stall (yes[12])' >&2
        echo '  help: report it' >&2; exit 1";
    let fake = Fake::new(&format!("enable reveille; sleep 0.1; disable; {stall}"));
    let loaded = fake.load().unwrap();
    assert!(within(Duration::from_secs(5), || fake.file("state") == "disabled"));
    let error = loaded.unload().unwrap_err();
    let HostError::Died { who, how } = &error else { panic!("{error:?}") };
    assert_eq!(who, "scx_reveille");
    assert!(how.contains("runnable task stall (yes[12])"), "{how}");
    // Loaded twice is not loaded all the time.
    let fake = Fake::new("enable reveille; sleep 0.1; enable reveille 9; wait_for_end");
    let loaded = fake.load().unwrap();
    assert!(within(Duration::from_secs(5), || fake.file("enable_seq") == "9"));
    let error = loaded.unload().unwrap_err();
    assert!(error.to_string().contains("loaded again"), "{error}");
    assert_eq!(fake.file("state"), "disabled");
}

#[test]
fn a_stop_while_it_loads_ends_the_loader() {
    let fake = Fake::new("wait_for_end");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let load = scope.spawn(|| fake.kernel.load(&loader(), &stop).map(drop));
        assert!(within(Duration::from_secs(5), || lives(&fake.file("pid"))));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(load.join().unwrap().unwrap_err(), HostError::Interrupted);
    });
    assert!(!lives(&fake.file("pid")));
}

/// Directory of the fake kernel for the process to be killed.
const TO_BE_KILLED: &str = "REVEILLE_TEST_TO_BE_KILLED";

#[test]
fn a_loader_dies_with_its_parent() {
    if let Some(root) = std::env::var_os(TO_BE_KILLED) {
        let root = Path::new(&root);
        let directory = root.join("sched_ext");
        let search = vec![root.join("bin")];
        let kernel = SchedExt { directory, may_load: true, named: None, search };
        let _loaded = kernel.load(&loader(), &AtomicBool::new(false)).unwrap();
        sleep(Duration::from_secs(60));
        return;
    }
    // It ignores SIGTERM, so only the kernel can end it.
    let fake = Fake::new("trap '' TERM INT HUP; enable reveille_1.0; while :; do sleep 0.05; done");
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kernel::sched_ext::tests::a_loader_dies_with_its_parent"])
        .env(TO_BE_KILLED, fake.root.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    assert!(within(Duration::from_secs(10), || fake.file("state") == "enabled"));
    let pid = fake.file("pid");
    assert!(lives(&pid));
    // Time to see it enabled, so that nothing but the kill can end it.
    sleep(Duration::from_millis(50));
    parent.kill().unwrap();
    parent.wait().unwrap();
    assert!(within(Duration::from_secs(5), || !lives(&pid)), "the loader outlives its parent");
}

#[test]
fn schedulers_are_known_by_their_name_with_and_without_a_version() {
    let of = |program: &str| Loader { program: program.to_owned(), args: Vec::new() };
    assert!(of("scx_reveille").is_called("reveille"));
    assert!(of("scx_reveille").is_called("reveille_0.1.0"));
    assert!(of("scx_bpfland").is_called("bpfland_1.0.11_x86_64_unknown_linux_gnu"));
    assert!(!of("scx_reveille").is_called("reveilles"));
    assert!(!of("scx_lavd").is_called("bpfland_1.0"));
}
