//! Compiles the BPF scheduler and generates the Rust face of its object.

#[path = "src/clang.rs"]
mod clang;

use std::env;
use std::fs;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

/// What the generated code has, how often, and what it gets: `--policy` brings an object of its
/// own, with a few maps more for the file's constants.
const EDITS: [(&str, usize, &str); 3] = [
    (
        "ObjectSkeletonConfigBuilder::new(&DATA)",
        1,
        "ObjectSkeletonConfigBuilder::new(object(&DATA))",
    ),
    ("    static DATA: [u8;", 1, "    pub static DATA: [u8;"),
    ("_ => panic!(\"encountered unexpected map: `{name}`\"),", 2, "_ => {}"),
];

fn main() {
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-changed=src/clang.rs");
    println!("cargo:rerun-if-changed=../../policy");
    println!("cargo:rerun-if-env-changed=SCX_CLANG");
    let skeleton =
        PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("bpf.rs");
    let clang = clang::clang().unwrap_or_else(|| {
        panic!(
            "no clang: scx_reveille needs clang-19 or newer; `make scx` installs it, \
             SCX_CLANG= names one"
        )
    });
    let built = SkeletonBuilder::new()
        .source("bpf/reveille.bpf.c")
        .clang(clang)
        .clang_args(clang::FLAGS.iter().chain(&["-Werror"]))
        .build_and_generate(&skeleton);
    if let Err(error) = built {
        panic!("the BPF scheduler does not compile: {error:?}");
    }
    let mut text = fs::read_to_string(&skeleton).expect("it was just written");
    for (from, times, to) in EDITS {
        assert_eq!(text.matches(from).count(), times, "libbpf-cargo generates other code: {from}");
        text = text.replace(from, to);
    }
    fs::write(&skeleton, text).expect("it was just written");
}
