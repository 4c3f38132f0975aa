//! Files of recordings. Their content decides the format, by the same rule for every command.

use std::path::{Path, PathBuf};

use reveille_place::{CHECK_PATH, InputError, InputKind, read_input};

use crate::parquet_file::MAGIC;
use crate::{CsvOptions, Usage};

/// Formats that hold a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Written by `reveille record` and `import`.
    Parquet,
    /// Prometheus' answers, in JSON.
    Prometheus,
    /// A table of requests.
    Csv,
}

impl Format {
    /// Detects the format from the first bytes, after a byte order mark and blanks.
    pub fn of(bytes: &[u8]) -> Format {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        match bytes.trim_ascii_start() {
            [b'{' | b'[', ..] => Format::Prometheus,
            _ if bytes.starts_with(MAGIC) => Format::Parquet,
            _ => Format::Csv,
        }
    }
}

/// The content of a file that holds a recording or a part of one.
#[derive(Clone, Debug)]
pub struct UsageFile {
    pub path: PathBuf,
    pub bytes: Vec<u8>,
    pub format: Format,
}

impl UsageFile {
    /// Reads a regular file of at most 4 GiB.
    pub fn read(path: &Path) -> Result<UsageFile, InputError> {
        let bytes = read_input(path, InputKind::RECORDING)
            .map_err(|error| InputError::unreadable(path, error, CHECK_PATH))?;
        Ok(UsageFile { path: path.to_owned(), format: Format::of(&bytes), bytes })
    }

    /// The path for messages.
    pub fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// File name without extension: the default name of its recording.
    pub fn stem(&self) -> String {
        let stem = self.path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        stem.unwrap_or_else(|| self.shown())
    }
}

impl Usage {
    /// Reads a recording of any format.
    ///
    /// # Errors
    /// [`InputError`] with the file, the place in it, what is wrong, and the fix.
    pub fn read(path: &Path) -> Result<Usage, InputError> {
        let file = UsageFile::read(path)?;
        let (shown, name) = (file.shown(), file.stem());
        let named_parquet = path.extension().is_some_and(|e| e == "parquet");
        match file.format {
            Format::Prometheus => Usage::from_prometheus(&name, &[(shown, file.bytes)], &[]),
            Format::Csv if !named_parquet => {
                Usage::from_csv(&shown, &name, &file.bytes, CsvOptions::default())
            }
            Format::Csv | Format::Parquet => Usage::from_parquet(&shown, file.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_and_blanks_tell_nothing() {
        for (bytes, format) in [
            (&b"{}"[..], Format::Prometheus),
            (b"\xef\xbb\xbf\n [", Format::Prometheus),
            (b"PAR1", Format::Parquet),
            (b"PAR2", Format::Csv),
            (b"\xef\xbb\xbfat_ms,cpu_ms", Format::Csv),
            (b"", Format::Csv),
        ] {
            assert_eq!(Format::of(bytes), format, "{bytes:?}");
        }
    }
}
