//! Standard output: buffered text, and its width.

use std::error::Error;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use crate::errors::Result;

/// Width for files and pipes.
const PIPE_WIDTH: usize = 100;

/// Writes `text` to standard output.
///
/// # Errors
/// [`crate::errors::CliError::Output`]; a broken pipe is not reported to the user.
pub fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Writes `value`, an object, as indented JSON with the program's version.
pub fn print_json(value: &impl Serialize) -> Result<()> {
    print(&reveille_report::json_text(value))
}

/// Prints `value` as JSON if that is asked for, and this text otherwise.
pub fn print_result(
    json: bool,
    value: &impl Serialize,
    text: impl FnOnce() -> String,
) -> Result<()> {
    if json { print_json(value) } else { print(&text()) }
}

/// As [`print_result`], or as CSV.
pub fn print_as<E: Into<Box<dyn Error + Send + Sync>>>(
    (json, csv): (bool, bool),
    value: &impl Serialize,
    rows: impl FnOnce() -> Result<String, E>,
    text: impl FnOnce() -> String,
) -> Result<()> {
    match csv && !json {
        true => print(&rows().map_err(io::Error::other)?),
        false => print_result(json, value, text),
    }
}

/// Columns of the terminal on standard output; `PIPE_WIDTH` if it is none.
pub fn width() -> usize {
    terminal_width().unwrap_or(PIPE_WIDTH)
}

/// Columns of the terminal on standard output, if it is one.
pub fn terminal_width() -> Option<usize> {
    let stdout = io::stdout();
    let size = stdout.is_terminal().then(|| terminal_size::terminal_size_of(stdout))?;
    size.map(|(w, _)| usize::from(w.0))
}

/// Is standard output a terminal with colours that the user has not turned off
/// (<https://no-color.org>)?
pub fn colour() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stdout().is_terminal() && !refused && !dumb
}
