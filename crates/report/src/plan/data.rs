//! The plan as the page's script reads it.
pub(super) fn block() -> String { String::new() }
