//! bpf/bandwidth.h on the host: tests/bandwidth.c has what happens between CPUs, and timers that the
//! kernel doesn't start, which no guest does on demand.

use std::path::Path;
use std::process::Command;

#[path = "../src/clang.rs"]
mod clang;

#[test]
fn races_and_failed_timers_leave_no_queue_unpaid() {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bandwidth");
    let compiler = clang::clang().expect("build.rs has found one");
    // Kernel functions that it never calls remain undefined. FLAGS begins with a BPF processor.
    let status = Command::new(compiler)
        .args(&clang::FLAGS[1..])
        .args(["-Werror", "-Wno-ignored-attributes", "-Wno-unknown-attributes", "-O1", "-static"])
        .args(["-Wl,--unresolved-symbols=ignore-all", "-Itests/host", "tests/bandwidth.c", "-o"])
        .arg(&program)
        .status()
        .unwrap();
    assert!(status.success());
    let out = Command::new(program).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
}
