//! `--html`: the page that a command also writes, and its provenance.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use chrono::DateTime;
use reveille_host::HostError;
use reveille_report::Made;

use crate::errors::{CliError, Result};
use crate::output_file::OutputFile;

/// A page to write after the run.
pub struct PageFile {
    file: OutputFile,
    made: Made,
}

impl PageFile {
    /// The page that `--html` asks for, if given.
    ///
    /// # Errors
    /// As [`OutputFile::prepare`]; and [`HostError::Input`] for an invalid `SOURCE_DATE_EPOCH`.
    pub fn prepare(path: Option<&Path>) -> Result<Option<PageFile>> {
        let Some(path) = path else { return Ok(None) };
        if !is_replaceable(path) {
            let problem = format!("{} exists and is no HTML page", path.display());
            let help = "name another file: an input, for one, is not overwritten";
            return Err(CliError::output_path("--html", path, problem, help));
        }
        let file = OutputFile::prepare("--html", path)?;
        Ok(Some(PageFile { file, made: Made { command: command_line(), date: date()? } }))
    }

    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Writes the page.
    pub fn write(&self, page: impl FnOnce(&Made) -> String) -> Result<()> {
        self.file.write(&page(&self.made))
    }
}

/// Writes the page, or returns its path if there are no rows: a partial page must not replace a
/// whole one then.
pub fn written(
    html: Option<&PageFile>,
    has_rows: bool,
    page: impl FnOnce(&Made) -> String,
) -> Result<Vec<&Path>> {
    match html {
        Some(html) if has_rows => html.write(page).map(|()| Vec::new()),
        html => Ok(html.map(PageFile::path).into_iter().collect()),
    }
}

/// Is there no file, an empty one, an HTML page, or something that is no regular file?
fn is_replaceable(path: &Path) -> bool {
    if !path.is_file() {
        return true;
    }
    let mut start = [0; 64];
    let read = File::open(path).and_then(|mut file| file.read(&mut start)).unwrap_or(0);
    let start = String::from_utf8_lossy(&start[..read]).trim_start().to_ascii_lowercase();
    start.is_empty() || start.starts_with("<!doctype html") || start.starts_with("<html")
}

/// This command line, quoted for a shell.
fn command_line() -> String {
    let given = std::env::args_os().skip(1).map(|arg| quoted(&arg.to_string_lossy()));
    std::iter::once("reveille".to_owned()).chain(given).collect::<Vec<_>>().join(" ")
}

fn quoted(arg: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "+-_=./:,@%".contains(c);
    if !arg.is_empty() && arg.chars().all(plain) {
        return arg.to_owned();
    }
    format!("'{}'", arg.replace('\'', r"'\''"))
}

/// Now, or `SOURCE_DATE_EPOCH` for reproducible pages. See
/// <https://reproducible-builds.org/specs/source-date-epoch/>.
fn date() -> Result<String, HostError> {
    const NAME: &str = "SOURCE_DATE_EPOCH";
    let seconds = match std::env::var_os(NAME) {
        None => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        Some(text) => {
            let seconds = text.to_str().and_then(|text| text.parse().ok());
            seconds.filter(|seconds| *seconds < END).ok_or_else(|| {
                let problem = format!("`{NAME}={}` is no time", text.to_string_lossy());
                HostError::input(problem, "set it to seconds since 1970, or unset it")
            })?
        }
    };
    Ok(utc(seconds))
}

/// Start of year 10000 in Unix time.
const END: u64 = 253_402_300_800;

/// `2026-03-01 12:00:00 UTC`.
fn utc(seconds: u64) -> String {
    let date = DateTime::from_timestamp(seconds as i64, 0).unwrap_or_default();
    date.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (68_169_599, "1972-02-28 23:59:59 UTC"),
            (68_169_600, "1972-02-29 00:00:00 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (951_868_800, "2000-03-01 00:00:00 UTC"),
            (1_704_067_199, "2023-12-31 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
            (END - 1, "9999-12-31 23:59:59 UTC"),
        ] {
            assert_eq!(utc(seconds), text);
        }
    }

    #[test]
    fn arguments_are_quoted_for_a_shell() {
        assert_eq!(quoted("+SIS_SHORT,-WA_IDLE"), "+SIS_SHORT,-WA_IDLE");
        assert_eq!(quoted("v6.12 +SIS_SHORT"), "'v6.12 +SIS_SHORT'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
