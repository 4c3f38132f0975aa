//! The command as a user has it: what is refused, how, and with which exit code. Nothing
//! here loads a scheduler; tests/vm does.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output};

fn scx(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_scx_reveille")).args(args).output().unwrap()
}

/// Refused with exit code 2, nothing on standard output, and these words on the other.
fn refused(args: &[&str], words: &[&str]) {
    let out = scx(args);
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{args:?}: {said}");
    assert!(out.stdout.is_empty(), "{args:?} printed something");
    for word in words {
        assert!(said.contains(word), "{args:?} does not say `{word}`:\n{said}");
    }
}

#[test]
fn wrong_options_are_named_with_their_fix() {
    refused(&["--base", "v6.3"], &["--base", "v6.3", "`v6.2` is the nearest"]);
    refused(&["--with", "+SIS_SHROT"], &["--with", "did you mean `SIS_SHORT`"]);
    refused(&["--with", "SIS_SHORT"], &["write `+SIS_SHORT`"]);
    refused(&["--with", "+SIS_UTIL"], &["changes nothing"]);
    refused(&["--with", "-TTWU_QUEUE"], &["TTWU_QUEUE means nothing to scx_reveille", "wake list"]);
    refused(&["--base", "v6.4", "--with", "+HRTICK"], &["without EEVDF", ": leave it out"]);
    refused(&["--with", "-EEVDF"], &["EEVDF means nothing", "virtual time"]);
    refused(&["--with", "-THROTTLE_EXIT"], &["THROTTLE_EXIT means nothing", "user mode"]);
    refused(&["--slice-us", "99"], &["--slice-us 99", "from 100 to 100000"]);
    refused(&["--slice-us", "18446744073709551615"], &["from 100 to 100000"]);
    refused(&["--slice-us", "-1"], &["-1"]);
    refused(&["--swqueue-shard", "0"], &["--swqueue-shard 0", "from 1 to 512"]);
    refused(&["--watchdog-ms", "31000"], &["--watchdog-ms 31000"]);
    refused(&["--bandwidth-slice-us", "1"], &["--bandwidth-slice-us 1"]);
    refused(&["--exit-after", "0"], &["--exit-after", "0.1 to"]);
    refused(&["--exit-after", "soon"], &["a number of seconds"]);
    refused(&["--stats", "NaN"], &["--stats"]);
    refused(&["--no-such-flag"], &["--no-such-flag"]);
    refused(&["--monitor", "1", "--stats", "1"], &["cannot be used with"]);
    refused(&["--record-limit", "5"], &["--record"]);
    refused(&["--policy", "idea.c", "--record", "decisions"], &["cannot be used with"]);
    refused(&["--policy", "idea.c", "--monitor", "1"], &["cannot be used with"]);
    refused(&["--policy", "/no/such/idea.c"], &["/no/such/idea.c cannot be read"]);
}

#[test]
fn a_kernel_without_sched_ext_is_refused() {
    if Path::new("/sys/kernel/sched_ext").exists() {
        eprintln!("SKIPPED: this kernel has sched_ext");
        return;
    }
    refused(&[], &["has no sched_ext", "CONFIG_SCHED_CLASS_EXT=y"]);
    refused(&["--with", "+SIS_SHORT", "--exit-after", "1"], &["has no sched_ext"]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("decisions");
    refused(&["--record", file.to_str().unwrap()], &["has no sched_ext"]);
    assert!(!file.exists(), "nothing is left behind");
}

#[test]
fn who_asks_a_scheduler_that_does_not_run_is_told_so() {
    if Path::new("/run/scx_reveille/socket").exists() {
        eprintln!("SKIPPED: scx_reveille runs here");
        return;
    }
    refused(&["--monitor", "1"], &["no scx_reveille runs here", "sudo scx_reveille"]);
    refused(&["set", "+SWQUEUE", "-SIS_UTIL"], &["no scx_reveille runs here"]);
    refused(&["set"], &["EDITS"]);
}

#[test]
fn a_policy_file_is_compiled_or_its_line_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/policies/first_fit.c");
    let out = scx(&["compile", example, "-o", &at("first_fit.o")]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(String::from_utf8_lossy(&out.stdout).contains("scx_reveille --policy"));
    assert!(std::fs::read(at("first_fit.o")).unwrap().starts_with(b"\x7fELF"));

    let text = std::fs::read_to_string(example).unwrap();
    let line = 1 + text.lines().position(|line| line.contains("pick.cpu = cpu;")).unwrap();
    std::fs::write(at("broken.c"), text.replace("pick.cpu = cpu;", "pick.cpu = gpu;")).unwrap();
    let told = format!("broken.c:{line}:15: error: use of undeclared identifier 'gpu'");
    refused(&["compile", &at("broken.c")], &[&told, "docs/policy.md"]);
    refused(&["--policy", &at("broken.c")], &[&told]);
    assert!(!Path::new(&at("broken.o")).exists());
    std::fs::write(at("taken.c"), text + "static int take(int cpu)\n{\n\treturn cpu;\n}\n")
        .unwrap();
    refused(&["compile", &at("taken.c")], &["conflicting types for 'take'", "choose another"]);
    refused(&["compile", example, "-o", &at("broken.c")], &["is no object"]);

    let out = Command::new(env!("CARGO_BIN_EXE_scx_reveille"))
        .args(["compile", example, "-o", &at("other.o")])
        .env("SCX_CLANG", "/no/such/clang")
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(2));
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(said.contains("`/no/such/clang` cannot be run"), "{said}");
}

#[test]
fn files_that_hold_no_decisions_are_refused_by_replay() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let path = path.to_str().unwrap();
    let out = scx(&["replay", path]);
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("cannot open"));
    for bytes in
        [&b""[..], b"scx_reveille decisions 1\n{}\n", b"scx_reveille decisions 9\n", &[0; 5000]]
    {
        std::fs::write(path, bytes).unwrap();
        let out = scx(&["replay", path]);
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(said.contains("no file of decisions"), "{said}");
    }
    let header = r#"{"llcs":[[[0,1]]],"min_granularity_ns":1,"hz":250,"imbalance_pct":117,"smt_imbalance_pct":110}"#;
    std::fs::write(path, format!("scx_reveille decisions 1\n{header}\n")).unwrap();
    refused_replay(path, "holds no decision", 2);
    std::fs::write(path, format!("scx_reveille decisions 1\n{header}\nhalf a record")).unwrap();
    refused_replay(path, "cut off", 2);
    // A record of zeros names CPU 0, where nobody is idle: the kernel's answer, rule 0, is none.
    let mut bytes = format!("scx_reveille decisions 1\n{header}\n").into_bytes();
    bytes.extend([0; 952]);
    std::fs::write(path, bytes).unwrap();
    refused_replay(path, "1 of 1 decisions differ", 1);
}

#[test]
fn a_file_that_cannot_be_written_is_refused() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/policies/first_fit.c");
    let no_directory = "/dev/null/first_fit.o";
    refused(&["compile", example, "-o", no_directory], &[no_directory]);
    refused(&["generate", "/dev/null"], &["completions to /dev/null"]);
    refused(&["replay", "/dev"], &["/dev"]);
}

#[test]
fn packagers_get_man_pages_and_completions() {
    let dir = tempfile::tempdir().unwrap();
    assert!(scx(&["generate", dir.path().to_str().unwrap()]).status.success());
    for (file, word) in [
        ("man/man1/scx_reveille.1", "/etc/default/scx_reveille"),
        ("man/man1/scx_reveille-set.1", "+FEATURE"),
        ("bash-completion/completions/scx_reveille", "--slice-us"),
        ("zsh/site-functions/_scx_reveille", "#compdef scx_reveille"),
        ("fish/vendor_completions.d/scx_reveille.fish", "replay"),
    ] {
        let text = std::fs::read_to_string(dir.path().join(file)).unwrap();
        assert!(text.contains(word), "{file} does not say {word}");
        assert!(!text.contains("generate"), "{file} shows a hidden command");
    }
}

#[test]
fn journald_gets_levels() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("stderr");
    for (options, word) in
        [(["--slice-us", "5"], "--slice-us 5"), (["--no-such-flag", "5"], "--no-such-flag")]
    {
        let file = std::fs::File::create(&path).unwrap();
        let meta = file.metadata().unwrap();
        let stream = format!("{}:{}", meta.dev(), meta.ino());
        let mut command = Command::new(env!("CARGO_BIN_EXE_scx_reveille"));
        let status =
            command.args(options).env("JOURNAL_STREAM", stream).stderr(file).status().unwrap();
        assert_eq!(status.code(), Some(2));
        let said = std::fs::read_to_string(&path).unwrap();
        assert!(said.contains(word) && said.lines().all(|line| line.starts_with("<3>")), "{said}");
    }
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let full = std::fs::File::create("/dev/full").unwrap();
    let out = Command::new(env!("CARGO_BIN_EXE_scx_reveille"))
        .arg("--help-stats")
        .stdout(full)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot write to standard output"), "{said}");
}

fn refused_replay(path: &str, word: &str, code: i32) {
    let out = scx(&["replay", path]);
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(code), "{said}");
    assert!(said.contains(word), "{said}");
}

#[test]
fn help_says_what_every_figure_is() {
    let out = scx(&["--help-stats"]);
    assert!(out.status.success());
    let text = String::from_utf8(out.stdout).unwrap();
    for name in ["wakeups", "lost_claims", "nr_throttled", "burst_us_used"] {
        assert!(text.contains(name), "{text}");
    }
    let help = String::from_utf8(scx(&["--help"]).stdout).unwrap();
    for word in [
        "Exit codes",
        "--swqueue-shard",
        "--exit-after",
        "--monitor",
        "--policy",
        "replay",
        "compile",
    ] {
        assert!(help.contains(word), "{help}");
    }
}
