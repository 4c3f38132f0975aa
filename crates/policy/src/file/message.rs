//! What the compiler, or this crate, says of a policy file.

use reveille_place::Source;
use serde::Serialize;

/// What is said of a policy file.
#[derive(Clone, Debug, Serialize)]
pub struct Message {
    /// As the user named it, or a header.
    pub file: String,
    /// From 1.
    pub line: u64,
    /// From 1.
    pub column: u64,
    /// How bad it is.
    pub kind: MessageKind,
    /// What is wrong.
    pub text: String,
    /// The fix, where the compiler did not say what is wrong.
    pub help: String,
}

/// How bad a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageKind {
    /// The file cannot be used.
    Error,
    /// It can.
    Warning,
    /// More about the message before.
    Note,
}

impl Message {
    /// An error at these bytes of the file.
    pub(super) fn error(
        source: &Source,
        at: std::ops::Range<usize>,
        text: String,
        help: &str,
    ) -> Message {
        let line_start = source.text[..at.start].rfind('\n').map_or(0, |n| n + 1);
        Message {
            file: source.file.clone(),
            line: source.line(at.start),
            column: (at.start - line_start) as u64 + 1,
            kind: MessageKind::Error,
            text,
            help: help.to_owned(),
        }
    }
}
