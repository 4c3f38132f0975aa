//! Standard output: buffered text, and its width.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use crate::errors::CliError;

/// Width for files and pipes.
const PIPE_WIDTH: usize = 100;

/// Writes `text` to standard output.
///
/// # Errors
/// [`CliError::Output`]; a broken pipe is not reported to the user.
pub fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Writes `value`, an object, as indented JSON with the program's version.
///
/// # Errors
/// As [`print()`].
pub fn print_json(value: &impl Serialize) -> Result<(), CliError> {
    print(&reveille_report::json_text(value))
}

/// Columns of the terminal on standard output; `PIPE_WIDTH` if it is none.
pub fn width() -> usize {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return PIPE_WIDTH;
    }
    terminal_size::terminal_size_of(stdout).map_or(PIPE_WIDTH, |(w, _)| usize::from(w.0))
}

/// Is standard output a terminal with colours that the user has not turned off
/// (<https://no-color.org>)?
pub fn colour() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stdout().is_terminal() && !refused && !dumb
}
