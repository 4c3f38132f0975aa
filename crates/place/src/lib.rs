//! Files that a user gives: how they are read, and how a mistake in one is reported, with file,
//! line, key, what is wrong, and the fix.

mod counted;
mod error;
mod input;
mod mistake;
mod source;

pub use counted::counted;
pub use error::{FileError, InputError, read_description};
pub use input::{CHECK_PATH, InputKind, ReadError, read_input, read_input_text};
pub use mistake::{Mistake, did_you_mean, likeness, nearest};
pub use source::Source;
