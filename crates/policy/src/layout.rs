//! The mirrors of C structs, held against the C compiler field by field.

use std::io::Write;
use std::process::Command;

/// What C must say of a struct that Rust mirrors: size, and of each field name, offset and
/// size. Does not compile if a field of the Rust struct is left out.
macro_rules! layout {
    ($type:ident, $c:literal, $($field:ident),+ $(,)?) => {{
        let _all = |all: $type| { let $type { $($field: _),+ } = all; };
        let mut c = format!("_Static_assert(sizeof({0}) == {1}, \"{0}\");\n", $c, size_of::<$type>());
        $(c += &crate::layout::field(
            $c,
            stringify!($field),
            std::mem::offset_of!($type, $field),
            |all: &$type| &all.$field,
        );)+
        c
    }};
}
pub(crate) use layout;

pub(crate) fn field<T, F>(
    c: &str,
    name: &str,
    offset: usize,
    _: impl for<'a> Fn(&'a T) -> &'a F,
) -> String {
    let size = size_of::<F>();
    format!(
        "_Static_assert(__builtin_offsetof({c}, {name}) == {offset}, \"{c}.{name}: offset\");\n\
         _Static_assert(sizeof((({c} *)0)->{name}) == {size}, \"{c}.{name}: size\");\n"
    )
}

/// Compiles the assertions; returns what the compiler said, if it refused them.
fn refused(asserts: &str) -> Option<String> {
    let root = env!("CARGO_MANIFEST_DIR");
    let mut file = tempfile::Builder::new().suffix(".c").tempfile().unwrap();
    let headers = ["csrc/sim_world.h", "../../policy/features.h", "../../policy/bandwidth.h"];
    for header in headers {
        writeln!(file, "#include \"{root}/{header}\"").unwrap();
    }
    file.write_all(asserts.as_bytes()).unwrap();
    let cc = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let out = Command::new(&cc).args(["-std=c11", "-fsyntax-only"]).arg(file.path()).output();
    let out = out.unwrap_or_else(|error| panic!("{cc}: {error}; install a C compiler"));
    (!out.status.success()).then(|| String::from_utf8_lossy(&out.stderr).into_owned())
}

#[test]
fn c_and_rust_agree_on_every_field() {
    let asserts =
        [crate::state::c_layout(), crate::features::c_layout(), crate::bandwidth::c_layout()]
            .concat();
    assert_eq!(asserts.matches("sizeof(struct").count(), 9, "{asserts}");
    assert_eq!(refused(&asserts), None);
    // The check itself can fail: by a field that has moved, and by one of another size.
    for (right, wrong) in [("flags) == 60", "flags) == 56"), ("->llc) == 2", "->llc) == 4")] {
        assert!(asserts.contains(right), "{right}");
        assert!(refused(&asserts.replace(right, wrong)).is_some(), "{wrong}");
    }
}
