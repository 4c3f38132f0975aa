//! How to reproduce a result: the program's version in every JSON and on every page. Command line
//! and date are on pages only, so that JSON depends on the input alone.

use serde::Serialize;

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Clone, Debug)]
pub struct Made {
    /// The command line, as a shell takes it.
    pub command: String,
    /// Day and time, UTC.
    pub date: String,
}

/// A JSON object with these keys in this order; `key` alone is the variable of this name. A key may
/// have serde's attributes.
#[macro_export]
macro_rules! object {
    (@value $key:ident) => { $key };
    (@value $key:ident $value:expr) => { $value };
    ($($(#[$attribute:meta])* $key:ident $(: $value:expr)?),+ $(,)?) => {{
        // Each key is the type of its value as well.
        #[allow(non_camel_case_types)]
        mod of_keys {
            #[derive(serde::Serialize)]
            pub struct Object<$($key),+> {
                $($(#[$attribute])* pub $key: $key),+
            }
        }
        of_keys::Object { $($key: $crate::object!(@value $key $($value)?)),+ }
    }};
}
pub(crate) use object;

/// Appends formatted text to a `String`.
macro_rules! push {
    ($out:ident, $($part:tt)+) => {{
        use std::fmt::Write as _;
        $out.write_fmt(format_args!($($part)+)).expect("writing to a String cannot fail");
    }};
}
pub(crate) use push;

#[derive(Serialize)]
struct Versioned<'a, T> {
    version: &'static str,
    #[serde(flatten)]
    value: &'a T,
}

/// An object as indented JSON, ending in a newline, with the program's `version` before its
/// own keys.
///
/// Keys are in the order of the value's fields and are the stable interface. JSON has no NaN and
/// no infinity: a figure without a finite value is `null`, as an absent one is. So `null` always
/// reads "there is no such number" and never stands for zero. In a comparison it is the usual value
/// of `p_value` (with one repeat) and of the `published_` keys, `ratio` and `verdict` (nothing
/// published); elsewhere it appears only where arithmetic has no answer: `change_pct` and `rel_std`
/// when a mean is zero.
///
/// # Panics
/// If `value` is no object or has keys that are no text.
pub fn json_text(value: &impl Serialize) -> String {
    let versioned = Versioned { version: VERSION, value };
    let text = serde_json::to_string_pretty(&versioned);
    text.expect("results are objects with text keys") + "\n"
}
