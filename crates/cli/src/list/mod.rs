//! The lists: one line per entry, or one entry in full, as text or JSON. Each list defines its JSON
//! beside its text, so that the two stay in step.

mod interference;
mod layout;
mod machines;
mod policies;
mod studies;
mod study_json;
mod workloads;

pub use layout::{ListArgs, columns};
pub use machines::machines;
pub use policies::policies;
pub use studies::studies;
pub use workloads::workloads;
