//! Files that a run leaves, such as the page with plots: refused before the run if
//! they cannot be written, and written so that a reader never sees half of one.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::errors::CliError;

/// A place that text can be written to.
pub struct OutputFile {
    /// As given.
    given: PathBuf,
    /// With links followed, so that a link stays one.
    target: PathBuf,
}

impl OutputFile {
    /// Makes sure that a file can be written to `path`, which `option` gives, and writes
    /// nothing.
    ///
    /// # Errors
    /// [`CliError::OutputPath`] with the reason.
    pub fn prepare(option: &'static str, path: &Path) -> Result<OutputFile, CliError> {
        let refuse = |problem: String, help| {
            Err(CliError::OutputPath { option, path: path.to_owned(), problem, help })
        };
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let slash = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        if slash || target.is_dir() || target.file_name().is_none() {
            return refuse("it is no file name".into(), "name a file in it, such as report.html");
        }
        if target.exists() {
            if !target.is_file() {
                return refuse("it is no regular file".into(), "name another file");
            }
            if let Err(error) = OpenOptions::new().append(true).open(&target) {
                return refuse(error.to_string(), "make the file writable, or name another");
            }
        }
        let file = OutputFile { given: path.to_owned(), target };
        if !file.directory().is_dir() {
            let problem = format!("{} is no directory", file.directory().display());
            return refuse(problem, "make it first, or name a file elsewhere");
        }
        match file.temporary() {
            Ok(_) => Ok(file),
            Err(error) => {
                let reason = io::Error::from(error.kind()).to_string();
                refuse(reason, "name a file in a directory that you may write to")
            }
        }
    }

    /// Writes the content to a file beside the target and then renames it.
    ///
    /// # Errors
    /// [`CliError::OutputFile`] with what the system said.
    pub fn write(&self, content: &(impl AsRef<[u8]> + ?Sized)) -> Result<(), CliError> {
        let write = || -> io::Result<()> {
            let mut file = self.temporary()?;
            file.write_all(content.as_ref())?;
            file.as_file().sync_all()?;
            if let Ok(old) = fs::metadata(&self.target) {
                file.as_file().set_permissions(old.permissions())?;
            }
            file.persist(&self.target)?;
            Ok(())
        };
        write().map_err(|error| CliError::OutputFile { path: self.given.clone(), error })
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.given
    }

    fn directory(&self) -> &Path {
        let parent = self.target.parent().filter(|p| !p.as_os_str().is_empty());
        parent.unwrap_or(Path::new("."))
    }

    /// A file in the directory of the target, gone when dropped.
    fn temporary(&self) -> io::Result<NamedTempFile> {
        tempfile::Builder::new()
            .prefix(".reveille-")
            // As any new file: the user's umask takes its share.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(self.directory())
    }
}
