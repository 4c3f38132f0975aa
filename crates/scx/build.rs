//! Compiles the BPF scheduler and generates the Rust face of its object.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use libbpf_cargo::SkeletonBuilder;

/// Newest first; older ones lack 64-bit enumerators or `preserve_access_index` details.
const CLANGS: [&str; 5] = ["clang-19", "clang-22", "clang-21", "clang-20", "clang"];

fn main() {
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-changed=../../policy");
    println!("cargo:rerun-if-env-changed=SCX_CLANG");
    let skeleton =
        PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("bpf.rs");
    let built = SkeletonBuilder::new()
        .source("bpf/reveille.bpf.c")
        .clang(clang())
        // From v3 on there are atomics that return what was there before.
        .clang_args([
            "-mcpu=v3",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-unused-function",
            "-Wno-unused-parameter",
        ])
        .build_and_generate(&skeleton);
    if let Err(error) = built {
        panic!("the BPF scheduler does not compile: {error:?}");
    }
}

/// `SCX_CLANG` from the environment, or the first of [`CLANGS`] that there is.
fn clang() -> String {
    if let Ok(clang) = env::var("SCX_CLANG") {
        return clang;
    }
    let is_there = |clang: &&&str| {
        Command::new(clang).arg("--version").output().is_ok_and(|out| out.status.success())
    };
    match CLANGS.iter().find(is_there) {
        Some(clang) => (*clang).to_owned(),
        None => panic!(
            "no clang: scx_reveille needs clang-19 or newer; `make scx` installs it, \
             SCX_CLANG= names one"
        ),
    }
}
