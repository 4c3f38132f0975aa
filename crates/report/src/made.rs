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

#[derive(Serialize)]
struct Versioned<'a, T> {
    version: &'static str,
    #[serde(flatten)]
    value: &'a T,
}

/// An object as indented JSON, ending in a newline, with the program's `version` before its
/// own keys.
///
/// # Panics
/// If `value` is no object or has keys that are no text.
pub fn json_text(value: &impl Serialize) -> String {
    let versioned = Versioned { version: VERSION, value };
    let text = serde_json::to_string_pretty(&versioned);
    text.expect("results are objects with text keys") + "\n"
}
