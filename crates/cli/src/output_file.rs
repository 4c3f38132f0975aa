//! Output files, such as the page with plots: checked for writability before the run, and replaced
//! atomically.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use tempfile::NamedTempFile;

use crate::errors::{CliError, Result};

pub struct OutputFile {
    given: PathBuf,
    /// With symlinks resolved, so that writing replaces the target and not the link.
    target: PathBuf,
}

impl OutputFile {
    /// Checks that a file can be written to `path`, which `option` gives. Writes nothing.
    pub fn prepare(option: &'static str, path: &Path) -> Result<OutputFile> {
        let refuse =
            |problem: String, help| Err(CliError::output_path(option, path, problem, help));
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let slash = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        if slash || target.is_dir() || target.file_name().is_none() {
            return refuse("it is no file name".into(), "name a file in it");
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

    /// Writes the content to a temporary file beside the target and renames it.
    pub fn write(&self, content: &(impl AsRef<[u8]> + ?Sized)) -> Result<()> {
        self.write_over(content, true)
    }

    fn write_over(&self, content: &(impl AsRef<[u8]> + ?Sized), overwrite: bool) -> Result<()> {
        let write = || -> io::Result<()> {
            let mut file = self.temporary()?;
            file.write_all(content.as_ref())?;
            file.as_file().sync_all()?;
            if let Ok(old) = fs::metadata(&self.target) {
                file.as_file().set_permissions(old.permissions())?;
            }
            match overwrite {
                true => file.persist(&self.target)?,
                false => file.persist_noclobber(&self.target)?,
            };
            Ok(())
        };
        write().map_err(|error| CliError::OutputFile { path: self.given.clone(), error })
    }

    /// Locks the path against other processes that claim it, for as long as the result lives.
    ///
    /// # Errors
    /// [`CliError::OutputPath`] if another process holds it (named by its id), or if the file
    /// exists and `overwrite` is false.
    pub fn claim(self, option: &'static str, overwrite: bool) -> Result<ClaimedFile> {
        let refuse =
            |problem: String, help| Err(CliError::output_path(option, &self.given, problem, help));
        let mark = match Mark::set(&self.mark_path()) {
            Ok(Ok(mark)) => mark,
            Ok(Err(owner)) => {
                let help = "name another file, or wait until that process has ended";
                return refuse(format!("{owner} is writing it"), help);
            }
            Err(error) => {
                let help = "name a file in a directory that you may write to";
                return refuse(error.to_string(), help);
            }
        };
        // Checked after the claim: the previous owner may have written it.
        if self.target.exists() && !overwrite {
            return refuse("it exists".into(), "name another file, or overwrite it with --force");
        }
        Ok(ClaimedFile { file: self, overwrite, _mark: mark })
    }

    /// Path of the lock file: hidden, beside the target.
    fn mark_path(&self) -> PathBuf {
        let name = self.target.file_name().unwrap_or_default().to_string_lossy();
        self.directory().join(format!(".{name}.reveille-lock"))
    }

    pub fn path(&self) -> &Path {
        &self.given
    }

    fn directory(&self) -> &Path {
        let parent = self.target.parent().filter(|p| !p.as_os_str().is_empty());
        parent.unwrap_or(Path::new("."))
    }

    /// A temporary file in the target's directory, removed on drop.
    fn temporary(&self) -> io::Result<NamedTempFile> {
        tempfile::Builder::new()
            .prefix(".reveille-")
            // The mode of any new file, subject to the umask.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(self.directory())
    }
}

/// An output path that this process has locked; see [`OutputFile::claim`].
pub struct ClaimedFile {
    file: OutputFile,
    overwrite: bool,
    _mark: Mark,
}

impl ClaimedFile {
    /// As [`OutputFile::write`], but never replaces a file unless `claim` allowed it.
    pub fn write(&self, content: &(impl AsRef<[u8]> + ?Sized)) -> Result<()> {
        self.file.write_over(content, self.overwrite)
    }
}

/// A lock file that holds its owner's process id; the kernel releases the lock however the process
/// ends.
struct Mark {
    path: PathBuf,
    file: File,
}

/// Paths of the lock files that this process holds.
static MARKS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn marks() -> MutexGuard<'static, Vec<PathBuf>> {
    MARKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all of this process's lock files, before it exits without unwinding.
pub fn remove_marks() {
    for path in marks().drain(..) {
        let _ = fs::remove_file(path);
    }
}

impl Mark {
    /// Takes the lock, or returns its holder.
    fn set(path: &Path) -> io::Result<Result<Mark, String>> {
        loop {
            let mut file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => {
                    let mut owner = String::new();
                    file.read_to_string(&mut owner)?;
                    return Ok(Err(match owner.trim() {
                        "" => "another process".to_owned(),
                        id => format!("process {id}"),
                    }));
                }
                Err(error) => return Err(error.into()),
            }
            // The previous owner may have unlinked the file between open and lock.
            let same = fs::metadata(path).is_ok_and(|now| {
                file.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (now.dev(), now.ino()))
            });
            if same {
                let mut mark = Mark { path: path.to_owned(), file };
                mark.file.set_len(0)?;
                writeln!(mark.file, "{}", std::process::id())?;
                marks().push(path.to_owned());
                return Ok(Ok(mark));
            }
        }
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        // Unlink before unlocking, or another process could lock an unlinked file.
        marks().retain(|path| *path != self.path);
        let _ = fs::remove_file(&self.path);
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}
