//! Numbers of things in messages.

use std::fmt::Display;

/// `1 file`, `2 files`.
pub fn counted<N: Display + PartialEq + From<u8>>(n: N, noun: &str) -> String {
    let ending = if n == N::from(1) { "" } else { "s" };
    format!("{n} {noun}{ending}")
}

#[cfg(test)]
#[test]
fn one_is_no_plural() {
    let said = [
        counted(1_u32, "thread"),
        counted(2_usize, "thread"),
        counted(1.0, "CPU"),
        counted(1.5, "CPU"),
    ];
    assert_eq!(said, ["1 thread", "2 threads", "1 CPU", "1.5 CPUs"]);
}
