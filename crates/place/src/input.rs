//! What may be read as input: a regular file of bounded size. A device never ends, a pipe may
//! never begin, and neither can be read twice.

use std::fs::{self, File, FileType};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use miette::Diagnostic;
use thiserror::Error;

const MIB: u64 = 1 << 20;

/// A kind of input, and how large a file of it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputKind {
    name: &'static str,
    most_bytes: u64,
}

impl InputKind {
    /// TOML, JSON or XML that describes a machine, a workload or a study. The largest in use, an
    /// hwloc export of 8,192 CPUs, has about 10 MiB.
    pub const DESCRIPTION: InputKind = InputKind { name: "a description", most_bytes: 32 * MIB };
    /// A trace of the scheduler as text: some 8 million events.
    pub const TRACE: InputKind = InputKind { name: "a trace", most_bytes: 1024 * MIB };
    /// A recording: the 50 million rows that one may have, at up to 80 bytes a line of text.
    pub const RECORDING: InputKind = InputKind { name: "a recording", most_bytes: 4096 * MIB };
}

#[derive(Debug, Error, Diagnostic)]
#[error("cannot read {}: {error}", path.display())]
pub struct ReadError {
    /// As the user gave it.
    pub path: PathBuf,
    pub error: io::Error,
    #[help]
    pub help: String,
}

/// The fix for a file that cannot be read, where nothing more is known of it.
pub const CHECK_PATH: &str = "check that the path is right and that you may read it";

/// The content of a regular file.
///
/// # Errors
/// What the system says; [`ErrorKind::InvalidInput`] for a directory, a device, a pipe or a
/// socket, which is not opened, and [`ErrorKind::FileTooLarge`] beyond the limit of its kind.
pub fn read_input(path: &Path, kind: InputKind) -> io::Result<Vec<u8>> {
    regular(fs::metadata(path)?.file_type())?;
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    // Another file may have taken the name.
    regular(metadata.file_type())?;
    let InputKind { name, most_bytes } = kind;
    let mut bytes = Vec::new();
    if metadata.len() <= most_bytes {
        // Files of /proc have no length, and others may grow.
        file.take(most_bytes + 1).read_to_end(&mut bytes)?;
    }
    if metadata.len().max(bytes.len() as u64) > most_bytes {
        let problem = format!("it is larger than the {} MiB of {name}", most_bytes / MIB);
        return Err(io::Error::new(ErrorKind::FileTooLarge, problem));
    }
    Ok(bytes)
}

/// Reads a file as UTF-8 text.
///
/// # Errors
/// As [`read_input`]; [`ErrorKind::InvalidData`] if it is not UTF-8.
pub fn read_input_text(path: &Path, kind: InputKind) -> io::Result<String> {
    let bytes = read_input(path, kind)?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to() + 1;
        io::Error::new(ErrorKind::InvalidData, format!("it is not UTF-8 text from byte {at} on"))
    })
}

fn regular(found: FileType) -> io::Result<()> {
    let what = if found.is_file() {
        return Ok(());
    } else if found.is_dir() {
        "a directory"
    } else if found.is_fifo() {
        "a pipe"
    } else if found.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    let problem = format!("it is {what}; name a regular file");
    Err(io::Error::new(ErrorKind::InvalidInput, problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_end_is_not_read() {
        let refused = |path: &str| read_input(Path::new(path), InputKind::DESCRIPTION).unwrap_err();
        assert!(refused("/dev/zero").to_string().contains("it is a device"));
        assert!(refused("/").to_string().contains("it is a directory"));
        assert_eq!(refused("/no/such/file").kind(), ErrorKind::NotFound);
        let small = InputKind { name: "a test", most_bytes: MIB };
        let own = std::env::current_exe().unwrap();
        let error = read_input(&own, small).unwrap_err();
        assert_eq!(error.to_string(), "it is larger than the 1 MiB of a test");
        // No length is given, and yet there is text.
        assert!(!read_input_text(Path::new("/proc/self/stat"), small).unwrap().is_empty());
    }
}
