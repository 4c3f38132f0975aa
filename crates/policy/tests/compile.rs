//! The decision code compiles wherever it is meant to run: natively with gcc and
//! clang, and for BPF, where it may call nothing and use no libc.

use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};

const WARNINGS: [&str; 5] = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror"];
/// What a freestanding compiler may still call: compilers copy and clear structs
/// with these, and libgcc counts bits where the processor cannot.
const FREESTANDING: [&str; 5] = ["memcpy", "memmove", "memset", "memcmp", "__popcountdi2"];

/// Programs of tests/bpf_world.c.
const WORLD_PROGRAMS: [&str; 4] = ["select_cpu", "enqueue", "quiescent", "update_idle"];

fn is_there(compiler: &str) -> bool {
    Command::new(compiler).arg("--version").output().is_ok_and(|out| out.status.success())
}

/// `CLANG` from the environment, or every clang from 14 to 22 on the PATH.
fn clangs() -> Vec<String> {
    if let Ok(clang) = std::env::var("CLANG") {
        assert!(is_there(&clang), "CLANG={clang} cannot be run");
        return vec![clang];
    }
    let versions = (14..=22).rev().map(|version| format!("clang-{version}"));
    let found: Vec<String> =
        std::iter::once("clang".to_owned()).chain(versions).filter(|c| is_there(c)).collect();
    assert!(
        !found.is_empty(),
        "no clang on the PATH: install the package `clang` (Debian, Ubuntu, Fedora, Arch), \
         or name one with CLANG="
    );
    found
}

/// Compiles a file of this crate and returns the object, or fails with what the
/// compiler said.
fn compile(compiler: &str, flags: &[&str], source: &str, dir: &Path) -> Vec<u8> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let object: PathBuf = dir.join("out.o");
    let out = Command::new(compiler)
        .args(WARNINGS)
        .args(flags)
        .arg("-c")
        .arg(&source)
        .arg("-o")
        .arg(&object)
        .current_dir(dir)
        .output()
        .unwrap_or_else(|e| panic!("{compiler}: {e}; install it"));
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{compiler} {flags:?} {}:\n{said}", source.display());
    std::fs::read(object).unwrap()
}

/// Names that the linker would have to find elsewhere.
fn undefined(file: &object::File) -> Vec<String> {
    let names = file.symbols().filter(|s| s.is_undefined()).map(|s| s.name().unwrap().to_owned());
    names.filter(|name| !name.is_empty()).collect()
}

#[test]
fn the_native_build_needs_no_library() {
    let dir = tempfile::tempdir().unwrap();
    let mut compilers = clangs();
    compilers.push("gcc".to_owned());
    for compiler in compilers {
        for (source, function) in
            [("csrc/policy.c", "reveille_select_cpu"), ("csrc/bandwidth.c", "reveille_bw_account")]
        {
            let bytes = compile(&compiler, &["-ffreestanding"], source, dir.path());
            let file = object::File::parse(bytes.as_slice()).unwrap();
            let foreign: Vec<String> = undefined(&file)
                .into_iter()
                .filter(|n| !FREESTANDING.contains(&n.as_str()))
                .collect();
            assert!(foreign.is_empty(), "{compiler} {source}: {foreign:?}");
            assert!(file.symbols().any(|s| s.name() == Ok(function)), "{compiler} {source}");
        }
    }
}

#[test]
fn bpf_programs_call_nothing() {
    check_programs("tests/bpf_world.c", &WORLD_PROGRAMS, &[]);
    let bandwidth = ["stopping", "tick", "timer", "cgroup_set_bandwidth"];
    check_programs("tests/bpf_bandwidth.c", &bandwidth, &[]);
}

/// Policy files that the project ships.
fn policy_files() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let examples = std::fs::read_dir(own.join("../../docs/examples/policies")).unwrap();
    let mut files: Vec<PathBuf> = examples.map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 3);
    files.push(own.join("csrc/template.c"));
    files
}

#[test]
fn policy_files_compile_for_the_simulator() {
    for file in policy_files() {
        let dir = tempfile::tempdir().unwrap();
        let draft = reveille_policy::Draft::compile(&file, dir.path()).unwrap();
        assert!(draft.messages.is_empty(), "{}: {:?}", file.display(), draft.messages);
        draft.load().unwrap();
    }
}

/// A program that asks a policy file, in the world of tests/bpf_world.c.
const OWN_PROGRAM: &str = r#"
SEC("struct_ops/own") u32 own(struct wakeup *wakeup)
{
	struct policy_task *wakee = task_of(&world_state, wakeup->wakee);

	if (!wakee)
		return wakeup->this_cpu;
	return reveille_select(&world_state, &tunables, wakee,
			       task_of(&world_state, wakeup->waker), wakeup->this_cpu,
			       wakeup->flags, wakeup->now_j)
		.cpu;
}
"#;

#[test]
fn policy_files_compile_for_bpf() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let headers = format!("-I{}", own.join("../../policy").display());
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("own.c");
    for file in policy_files() {
        let world = own.join("tests/bpf_world.c");
        let text = format!("#include {world:?}\n#include {file:?}\n{OWN_PROGRAM}");
        std::fs::write(&program, text).unwrap();
        let names = [&WORLD_PROGRAMS[..], &["own"]].concat();
        check_programs(program.to_str().unwrap(), &names, &[&headers, "-Wno-unused-parameter"]);
    }
}

/// The file compiles for every BPF version to just these programs.
fn check_programs(source: &str, names: &[&str], more: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    for clang in clangs() {
        for cpu in ["-mcpu=v1", "-mcpu=v2", "-mcpu=v3"] {
            let flags = [&["-target", "bpf", "-g", cpu], more].concat();
            let bytes = compile(&clang, &flags, source, dir.path());
            let file = object::File::parse(bytes.as_slice()).unwrap();
            assert_eq!(file.architecture(), object::Architecture::Bpf);
            assert_eq!(undefined(&file), [""; 0], "{clang} {cpu}");
            assert!(file.section_by_name(".BTF").is_some(), "{clang} {cpu}: no type information");
            for name in names {
                let section = file.section_by_name(&format!("struct_ops/{name}"));
                let section = section.unwrap_or_else(|| panic!("{clang} {cpu}: no {name}"));
                assert_eq!(section.kind(), SectionKind::Text);
                check_program(&clang, name, section.data().unwrap());
            }
            let functions = file
                .symbols()
                .filter(|s| s.kind() == SymbolKind::Text && s.is_definition())
                .count();
            assert_eq!(functions, names.len(), "{clang} {cpu}: every decision is inlined");
        }
    }
}

/// No calls, and no more instructions than a program may have had before 5.2.
fn check_program(clang: &str, name: &str, code: &[u8]) {
    const CALL: u8 = 0x85;
    const MAX: usize = 4096;
    let instructions: Vec<&[u8]> = code.chunks(8).collect();
    assert!(!instructions.is_empty() && instructions.len() <= MAX, "{clang}: {name}");
    let mut at = 0;
    while at < instructions.len() {
        let opcode = instructions[at][0];
        assert_ne!(opcode, CALL, "{clang}: {name} calls at instruction {at}");
        // A 64-bit constant takes two slots, the second without an opcode.
        at += if opcode == 0x18 { 2 } else { 1 };
    }
}
