//! What there is: one line each, or one in full, as text or as JSON. Each list
//! keeps its own JSON shape beside its text, so that the two stay together.

mod interference;
mod layout;
mod machines;
mod policies;
mod studies;
mod study_json;
mod workloads;

pub use layout::columns;
pub use machines::machines;
pub use policies::policies;
pub use studies::studies;
pub use workloads::workloads;
