//! From a policy file to a shared object, and from what the compiler says to messages with a
//! place.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use reveille_place::{InputError, InputKind, Mistake, Source, read_input_text};

use crate::sources::{POLICY_SOURCES, SIMULATOR_SOURCES};

use super::load::Loaded;
use super::message::{Message, MessageKind};
use super::{PolicyFile, inspect};

/// Without libc and without what undefined behaviour lets an optimizer do, as the kernel has it.
const FLAGS: &str = "-std=gnu11 -O2 -fPIC -shared -nostdlib -ffreestanding -fvisibility=hidden \
    -fwrapv -fno-strict-aliasing -fno-delete-null-pointer-checks -fno-stack-protector \
    -ffp-contract=off -ftabstop=1 -fno-diagnostics-color -Wall -Wextra -Wno-unused-parameter \
    -Werror=implicit-function-declaration -Werror=return-type";

/// The fix for what the compiler refuses.
const CORRECT: &str = "correct the file; docs/policy.md lists what it can call";

impl MessageKind {
    /// As compilers write it.
    pub fn name(self) -> &'static str {
        match self {
            MessageKind::Error => "error",
            MessageKind::Warning => "warning",
            MessageKind::Note => "note",
        }
    }
}

/// A policy file after compilation, successful or not.
pub struct Draft {
    source: Source,
    object: PathBuf,
    /// What compiler and inspection have said, in that order.
    pub messages: Vec<Message>,
}

impl Draft {
    /// Compiles a file with `$CC`, else `cc`, `gcc` or `clang`. All that is written lies in
    /// `directory`, which is there and empty.
    ///
    /// # Errors
    /// The file cannot be read, there is no compiler, or the directory cannot be written.
    pub fn compile(file: &Path, directory: &Path) -> Result<Draft, InputError> {
        let name = file.display().to_string();
        let failed = |problem: String, help: &str| -> InputError {
            Mistake::new(problem, help).in_file(name.clone())
        };
        let text = read_input_text(file, InputKind::DESCRIPTION).map_err(|error| {
            failed(error.to_string(), "`reveille policy new FILE.c` writes one to begin with")
        })?;
        let source = Source::new(&name, &text);
        let object = directory.join("policy.so");
        if !text.contains("reveille_select") {
            let text = "defines no reveille_select(), which decides";
            let help = "`reveille policy new FILE.c` writes a file that does";
            let message = Message::error(&source, 0..0, text.to_owned(), help);
            return Ok(Draft { source, object, messages: vec![message] });
        }
        write_headers(directory).map_err(|error| {
            let problem = format!("cannot write headers to {}: {error}", directory.display());
            failed(problem, "free space there, or set TMPDIR to another directory")
        })?;
        let ran = run(file, directory, &object);
        let (success, said) = ran.map_err(|(problem, help)| failed(problem, help))?;
        // Messages of gcc and clang: `file:line:column: error: text`.
        let headers = format!("{}/", directory.display());
        let mut messages: Vec<Message> =
            said.lines().filter_map(|line| message(line, &headers)).collect();
        let refused = messages.iter().any(|m| m.kind == MessageKind::Error);
        if let Some(message) = in_a_library(&source, &messages, &said) {
            messages = vec![message];
        }
        if !success && !refused {
            let text = match said.trim() {
                "" => "the compiler fails and says nothing: does $CC name one?".to_owned(),
                said => format!("the compiler fails: {said}"),
            };
            messages.push(Message::error(&source, 0..0, text, CORRECT));
        } else if !refused {
            let bytes = fs::read(&object).unwrap_or_default();
            messages.extend(inspect::inspect(&source, &bytes));
        }
        Ok(Draft { source, object, messages })
    }

    /// The first error, with its place; `None` if the file can be used.
    pub fn mistake(&self) -> Option<InputError> {
        let first = self.messages.iter().find(|m| m.kind == MessageKind::Error)?;
        let help = if first.help.is_empty() { CORRECT } else { &first.help };
        let mistake = Mistake::new(first.text.clone(), help);
        if first.file != self.source.file {
            return Some(mistake.at_line(first.file.clone(), first.line));
        }
        let before = self.source.text.split_inclusive('\n').take(first.line as usize - 1);
        let start = before.map(str::len).sum::<usize>() + first.column as usize - 1;
        Some(self.source.error(&(start..start + 1), None, mistake))
    }

    /// Loads the file; its directory is not needed any more.
    ///
    /// # Errors
    /// [`Draft::mistake`], or what the system says.
    pub fn load(&self) -> Result<PolicyFile, InputError> {
        if let Some(mistake) = self.mistake() {
            return Err(mistake);
        }
        let loaded = Loaded::open(&self.object).map_err(|error| -> InputError {
            let help = "set TMPDIR to a directory from which programs may run (not noexec)";
            Mistake::new(format!("cannot be loaded: {error}"), help).in_file(&*self.source.file)
        })?;
        Ok(PolicyFile::new(&self.source.file, loaded))
    }
}

fn write_headers(directory: &Path) -> io::Result<()> {
    for (path, text) in POLICY_SOURCES.iter().chain(SIMULATOR_SOURCES) {
        let path = directory.join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, text)?;
    }
    Ok(())
}

/// Runs the compiler: did it succeed, and what has it said? Errors: the problem and the fix.
fn run(
    file: &Path,
    directory: &Path,
    object: &Path,
) -> Result<(bool, String), (String, &'static str)> {
    let wanted = std::env::var("CC").ok().filter(|cc| !cc.trim().is_empty());
    let compilers = wanted.as_deref().map_or(vec!["cc", "gcc", "clang"], |cc| vec![cc]);
    // A path that begins with a dash would be taken for an option.
    let dash = file.as_os_str().as_encoded_bytes().starts_with(b"-");
    let path = if dash { Path::new(".").join(file) } else { file.to_owned() };
    let mut problem = String::new();
    for compiler in &compilers {
        let mut words = compiler.split_whitespace();
        let out = Command::new(words.next().unwrap_or_default())
            .args(words)
            .args(FLAGS.split_whitespace())
            .args(cfg!(target_arch = "x86_64").then_some("-mpopcnt"))
            .arg("-I")
            .arg(directory.join("policy"))
            .arg("-include")
            .arg(directory.join("crates/policy/csrc/policy_file.h"))
            .arg("-o")
            .arg(object)
            .args(["-x", "c"])
            .arg(&path)
            // Messages are read, and temporary files go with the directory.
            .envs([("LC_ALL", Path::new("C")), ("TMPDIR", directory)])
            .stdin(Stdio::null())
            .output();
        match out {
            Ok(out) => {
                let said = String::from_utf8_lossy(&out.stderr).into_owned();
                return Ok((out.status.success(), said));
            }
            Err(error) if problem.is_empty() => {
                problem = format!("the C compiler `{compiler}` cannot be run: {error}");
            }
            Err(_) => {}
        }
    }
    Err(match wanted {
        Some(_) => (problem, "set CC to gcc or clang, or unset it"),
        None => (problem, "install gcc or clang, or name one: CC=/path/to/clang"),
    })
}

/// Where the file includes a header of the system that does not compile.
fn in_a_library(source: &Source, messages: &[Message], said: &str) -> Option<Message> {
    let first = messages.iter().find(|m| m.kind == MessageKind::Error)?;
    // Names of this file and of Reveille's headers are relative to something known.
    if first.file == source.file || !first.file.starts_with('/') {
        return None;
    }
    let from = format!("from {}:", source.file);
    let line = said.lines().find_map(|line| line.split_once(&from)?.1.split([':', ',']).next());
    let before = line?.parse::<usize>().ok()?.checked_sub(1)?;
    let at = source.text.split_inclusive('\n').take(before).map(str::len).sum::<usize>();
    // A header of the user's own stands in quotes.
    source.text[at..].lines().next().filter(|line| line.contains('<'))?;
    let text = "includes a header of the C library, which policy files do not have".to_owned();
    Some(Message::error(source, at..at, text, "remove the #include, and what the file uses of it"))
}

fn message(line: &str, headers: &str) -> Option<Message> {
    let kinds = [
        (": fatal error: ", MessageKind::Error),
        (": error: ", MessageKind::Error),
        (": warning: ", MessageKind::Warning),
        (": note: ", MessageKind::Note),
    ];
    let found = kinds.iter().filter_map(|(mark, kind)| Some((line.find(mark)?, mark, kind)));
    let (at, mark, &kind) = found.min_by_key(|(at, ..)| *at)?;
    let (rest, column) = line[..at].rsplit_once(':')?;
    let (file, number) = rest.rsplit_once(':')?;
    // Headers include each other by relative paths.
    let header = file.strip_prefix(headers).map(|f| f.rsplit_once("../").map_or(f, |(_, f)| f));
    Some(Message {
        file: header.unwrap_or(file).to_owned(),
        line: number.parse().ok().filter(|n| *n > 0)?,
        column: column.parse().ok().filter(|n| *n > 0)?,
        kind,
        text: line[at + mark.len()..].to_owned(),
        help: String::new(),
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_interface_has_one_number() {
        let (_, header) =
            super::POLICY_SOURCES.iter().find(|(path, _)| path.ends_with("reveille.h")).unwrap();
        let line = format!("#define REVEILLE_INTERFACE {}\n", crate::POLICY_INTERFACE);
        assert!(header.contains(&line));
    }
}
