//! How BPF sources are compiled, by build.rs and by `--policy`.

use std::process::Command;

/// Newest first; older ones lack 64-bit enumerators or `preserve_access_index` details.
const CLANGS: [&str; 5] = ["clang-19", "clang-22", "clang-21", "clang-20", "clang"];

/// From v3 on there are atomics that return what was there before.
pub const FLAGS: [&str; 5] =
    ["-mcpu=v3", "-Wall", "-Wextra", "-Wno-unused-function", "-Wno-unused-parameter"];

/// `SCX_CLANG` from the environment, or the first of [`CLANGS`] that there is.
pub fn clang() -> Option<String> {
    if let Ok(clang) = std::env::var("SCX_CLANG") {
        return Some(clang);
    }
    let is_there = |clang: &&&str| {
        Command::new(clang).arg("--version").output().is_ok_and(|out| out.status.success())
    };
    CLANGS.iter().find(is_there).map(|clang| (*clang).to_owned())
}
