//! `--policy`: a policy file, compiled with the scheduler's sources for BPF, in place of the
//! object that this program carries.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use libbpf_rs::libbpf_sys;
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use reveille_policy::{POLICY_INTERFACE, POLICY_SOURCES};
use tracing::warn;

use crate::bpf;
use crate::clang::{FLAGS, clang};
use crate::error::ScxError;
use crate::journal::logs_to_journal;

macro_rules! sources {
    ($($path:literal),+ $(,)?) => {
        [$(($path, include_str!(concat!("../../../", $path)))),+]
    };
}

/// The scheduler's own sources, as [`POLICY_SOURCES`].
const BPF_SOURCES: [(&str, &str); 17] = sources!(
    "crates/scx/bpf/bandwidth.h",
    "crates/scx/bpf/choose.h",
    "crates/scx/bpf/clock.h",
    "crates/scx/bpf/debt.h",
    "crates/scx/bpf/decision.h",
    "crates/scx/bpf/dump.h",
    "crates/scx/bpf/group.h",
    "crates/scx/bpf/idle.h",
    "crates/scx/bpf/kernel.h",
    "crates/scx/bpf/load.h",
    "crates/scx/bpf/own.h",
    "crates/scx/bpf/queue.h",
    "crates/scx/bpf/reveille.bpf.c",
    "crates/scx/bpf/scx.h",
    "crates/scx/bpf/select.h",
    "crates/scx/bpf/state.h",
    "crates/scx/bpf/world.h",
);

/// What is an error in a policy file, beside what is one anywhere.
const STRICT: [&str; 3] =
    ["-Werror=implicit-function-declaration", "-Werror=return-type", "-Werror=undefined-internal"];

const CORRECT: &str = "correct the file; docs/policy.md lists what it can call";
const TAKEN: &str = "the name is taken, in the file or in scx_reveille's own code: choose another";
const BPF_ALLOWS: &str =
    "docs/policy.md, \"Load it\", says what BPF allows; -vv shows the verifier's whole log";
const COMPILE: &str = "`scx_reveille compile FILE.c` makes one";

/// The names of bpf/own.h, and of REVEILLE_POLICY() in policy/reveille.h.
const FILE: &str = "reveille_policy_file";
const BASE: &str = "reveille_policy_base";
const INTERFACE: &str = "reveille_interface_of_file";
const SCRATCH: &str = "own_before";

/// Where bpf/state.h has what the loader sets; other constants are the compiler's to place.
const GIVEN: &str = ".rodata.given";

/// The object that takes the place of the embedded one.
static LOADED: OnceLock<Vec<u8>> = OnceLock::new();
/// What libbpf has said while a policy file is loaded; `None` while none is.
static HEARD: Mutex<Option<String>> = Mutex::new(None);

/// The object to load; the generated code asks.
pub fn object(embedded: &'static [u8]) -> &'static [u8] {
    LOADED.get().map_or(embedded, Vec::as_slice)
}

/// A policy file that was compiled and fits this program.
#[derive(Debug)]
pub struct PolicyFile {
    /// The file's name without directories, as the verifier writes it.
    pub name: String,
    object: Vec<u8>,
}

impl PolicyFile {
    /// Compiles a C file; takes an object as `scx_reveille compile` has made it.
    ///
    /// # Errors
    /// What is wrong with it, with the file's line.
    pub fn read(path: &Path) -> Result<PolicyFile, ScxError> {
        let bytes = fs::read(path).map_err(|error| {
            let help = match error.kind() {
                io::ErrorKind::PermissionDenied if logs_to_journal() => {
                    "the systemd unit cannot read /home, /root, and files that only another user may read: \
                     put it elsewhere, such as /etc/scx_reveille"
                }
                io::ErrorKind::PermissionDenied => "make it readable for this user",
                _ => "`reveille policy new FILE.c` writes one to begin with",
            };
            ScxError::refused(format!("{} cannot be read: {error}", path.display()), help)
        })?;
        if bytes.starts_with(b"\x7fELF") {
            return PolicyFile::check(path, bytes);
        }
        if !String::from_utf8_lossy(&bytes).contains("reveille_select") {
            return Err(ScxError::refused(
                format!("{} defines no reveille_select(), which decides", path.display()),
                "`reveille policy new FILE.c` writes a file that does",
            ));
        }
        PolicyFile::check(path, compile(path)?)
    }

    /// Writes the object.
    ///
    /// # Errors
    /// The file is there and no object, or cannot be written.
    pub fn write(&self, to: &Path) -> Result<(), ScxError> {
        if fs::read(to).is_ok_and(|bytes| !bytes.starts_with(b"\x7fELF") && !bytes.is_empty()) {
            return Err(ScxError::refused(
                format!("{} is there, and is no object", to.display()),
                "name another file with -o",
            ));
        }
        fs::write(to, &self.object).map_err(|error| {
            ScxError::io(
                format!("cannot write {}", to.display()),
                error,
                "name another file with -o",
            )
        })
    }

    /// From now on this is what is loaded.
    pub fn install(&self) {
        // A second one would be another file; there is one a run.
        let _ = LOADED.set(self.object.clone());
    }

    /// The object must have the variables that the loader sets and reads where it expects
    /// them, no memory of its own, and nothing from elsewhere.
    fn check(path: &Path, object: Vec<u8>) -> Result<PolicyFile, ScxError> {
        let shown = path.display();
        let refused = |problem: String, help: &str| Err(ScxError::refused(problem, help));
        let Some(own) = Variables::of(&object) else {
            return refused(format!("{shown} is no BPF object"), COMPILE);
        };
        let Some(file) = own.text(FILE) else {
            return refused(format!("{shown} is an object, but of no policy file"), COMPILE);
        };
        let name = file.rsplit('/').next().unwrap_or_default().to_owned();
        if own.number(BASE) != Some(fingerprint()) {
            return refused(
                format!("{shown} was compiled by another version of scx_reveille"),
                "compile it again, with this one",
            );
        }
        match own.number(INTERFACE) {
            Some(version) if version == u64::from(POLICY_INTERFACE) => {}
            version => {
                let problem = match version {
                    Some(other) => format!(
                        "{shown} is written for version {other} of the interface; this \
                         scx_reveille has version {POLICY_INTERFACE}"
                    ),
                    None => {
                        format!("{shown} does not say which version of the interface it is for")
                    }
                };
                let help = format!(
                    "compare it with docs/policy.md, then write REVEILLE_POLICY({POLICY_INTERFACE});"
                );
                return refused(problem, &help);
            }
        }
        let Some(base) = Variables::of(&bpf::DATA) else {
            return refused("the embedded BPF object is damaged".to_owned(), "build it again");
        };
        let fits = |name: &&String| base.places.contains_key(*name) || *name == SCRATCH;
        if let Some(variable) = own.places.keys().find(|name| !fits(name)) {
            // A function's static variable has the function's name before its own.
            let variable = variable.rsplit('.').find(|part| part.parse::<u32>().is_err());
            let variable = variable.unwrap_or_default();
            return refused(
                format!("{shown}: `{variable}` outlives a decision"),
                "make it const, or keep it on the stack",
            );
        }
        if let Some(name) = own.undefined.difference(&base.undefined).next() {
            return refused(
                format!("{shown}: `{name}` is not defined: a policy file has no library"),
                "define it in the file, or do without it",
            );
        }
        for (variable, place) in &base.places {
            if own.places.get(variable) != Some(place) {
                return refused(
                    format!("{shown}: the compiler has put `{variable}` of scx_reveille elsewhere"),
                    "compile it with the clang that scx_reveille was built with (SCX_CLANG)",
                );
            }
        }
        Ok(PolicyFile { name, object })
    }

    /// What the verifier minds, if it has refused the program: `heard` is what libbpf said.
    pub fn refusal(&self, heard: &str) -> Option<ScxError> {
        if !heard.contains("BEGIN PROG LOAD LOG") {
            return None;
        }
        let message = last_message(heard).unwrap_or("it does not say why");
        let place = last_line(heard, &self.name);
        let name = match place {
            Some(line) => format!("{}:{line}", self.name),
            None => self.name.clone(),
        };
        Some(ScxError::refused(format!("{name}: the verifier refuses it: {message}"), BPF_ALLOWS))
    }
}

/// Keeps what libbpf says, until [`heard`] asks.
pub fn listen() {
    *HEARD.lock().unwrap_or_else(PoisonError::into_inner) = Some(String::new());
}

/// Takes libbpf's words if somebody listens.
pub fn keep(words: &str) -> bool {
    let mut heard = HEARD.lock().unwrap_or_else(PoisonError::into_inner);
    heard.as_mut().map(|heard| heard.push_str(words)).is_some()
}

/// What libbpf has said since [`listen`].
pub fn heard() -> String {
    HEARD.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
}

/// The file's line that the verifier came to last: `; x = y; @ idea.c:12`.
fn last_line(log: &str, name: &str) -> Option<u64> {
    let mark = format!(" @ {name}:");
    let lines = log.lines().rev().filter(|line| line.starts_with(';'));
    let mut found = lines.filter_map(|line| line.rsplit_once(&mark)?.1.trim().parse().ok());
    found.next()
}

/// The verifier's last words that are neither state nor instructions.
fn last_message(log: &str) -> Option<&str> {
    const STATE: [&str; 16] = [
        ";",
        "from ",
        "frame",
        "mark_precise",
        "processed ",
        "verification time",
        "stack depth",
        "max_states",
        "old state",
        "cur state",
        "regs=",
        "arg#",
        "Func#",
        "Validating ",
        "parent ",
        "--",
    ];
    // `R1=ctx() R2=...` is state, `R1 invalid mem access` is a message.
    let is_register = |line: &str| {
        line.starts_with('R') && line.split(' ').next().is_some_and(|word| word.contains('='))
    };
    let is_state = |line: &&str| {
        line.is_empty()
            || line.starts_with(|c: char| c.is_ascii_digit())
            || is_register(line)
            || STATE.iter().any(|word| line.starts_with(word))
    };
    // After the log libbpf goes on with its own words.
    let end = log.rfind("-- END PROG LOAD LOG").unwrap_or(log.len());
    log[..end].lines().rev().map(str::trim).find(|line| !is_state(line))
}

/// All that a policy file is compiled with.
fn sources() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    BPF_SOURCES.iter().chain(POLICY_SOURCES)
}

/// Tells the scheduler's sources of one version from those of another (FNV-1a).
fn fingerprint() -> u64 {
    let bytes = sources().flat_map(|(path, text)| [path, text]).flat_map(|s| s.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Variables of a BPF object.
struct Variables {
    /// Section, offset and size of what the loader sets or reads.
    places: BTreeMap<String, (String, u64, u64)>,
    undefined: BTreeSet<String>,
    /// What [`FILE`], [`BASE`] and [`INTERFACE`] hold.
    marks: BTreeMap<String, Vec<u8>>,
}

impl Variables {
    fn of(bytes: &[u8]) -> Option<Variables> {
        let file = object::File::parse(bytes).ok()?;
        let mut found = Variables {
            places: BTreeMap::new(),
            undefined: BTreeSet::new(),
            marks: BTreeMap::new(),
        };
        for symbol in file.symbols() {
            let name = symbol.name().ok()?.to_owned();
            if symbol.is_undefined() && !name.is_empty() {
                found.undefined.insert(name);
                continue;
            }
            if symbol.kind() != SymbolKind::Data || symbol.size() == 0 {
                continue;
            }
            let Some(section) = symbol.section_index() else { continue };
            let section = file.section_by_index(section).ok()?;
            let in_section = section.name().ok()?.to_owned();
            if [FILE, BASE, INTERFACE].contains(&&*name) {
                let data = section.data_range(symbol.address(), symbol.size());
                found.marks.insert(name, data.ok().flatten().unwrap_or_default().to_vec());
            } else if !in_section.starts_with(".rodata") || in_section == GIVEN {
                found.places.insert(name, (in_section, symbol.address(), symbol.size()));
            }
        }
        Some(found)
    }

    fn number(&self, name: &str) -> Option<u64> {
        let data = self.marks.get(name)?;
        match data.len() {
            4 => Some(u32::from_ne_bytes(data[..].try_into().ok()?).into()),
            8 => Some(u64::from_ne_bytes(data[..].try_into().ok()?)),
            _ => None,
        }
    }

    fn text(&self, name: &str) -> Option<String> {
        let data = self.marks.get(name)?;
        Some(String::from_utf8_lossy(data).trim_end_matches('\0').to_owned())
    }
}

/// The processor, as libbpf's headers name it.
fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        "powerpc64" => "powerpc",
        "s390x" => "s390",
        "riscv64" => "riscv",
        "loongarch64" => "loongarch",
        other => other,
    }
}

fn write_sources(directory: &Path) -> io::Result<()> {
    let headers = libbpf_sys::API_HEADERS.iter();
    let headers = headers.map(|(name, text)| (format!("libbpf/bpf/{name}"), *text));
    let sources = sources().map(|(path, text)| ((*path).to_owned(), *text));
    for (path, text) in sources.chain(headers) {
        let path = directory.join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, text)?;
    }
    Ok(())
}

/// The scheduler's object with this file in it.
fn compile(path: &Path) -> Result<Vec<u8>, ScxError> {
    let Some(clang) = clang() else {
        return Err(ScxError::refused(
            format!("{} cannot be compiled: there is no clang", path.display()),
            "install clang 19 or newer, name one with SCX_CLANG=, or compile the file elsewhere: \
             `scx_reveille compile FILE.c -o FILE.o`",
        ));
    };
    let temporary =
        |error| ScxError::io("cannot make a temporary directory", error, "set TMPDIR to another");
    let file = fs::canonicalize(path).map_err(temporary)?;
    let include = match file.to_str() {
        Some(text) if !text.contains(['"', '\\', '\n']) => text,
        _ => {
            return Err(ScxError::refused(
                format!("the path of {} cannot be written in C", path.display()),
                "rename the file or its directory",
            ));
        }
    };
    let directory = tempfile::tempdir().map_err(temporary)?;
    let at = |name: &str| directory.path().join(name);
    write_sources(directory.path()).map_err(temporary)?;
    let object = at("policy.o");
    let out = Command::new(&clang)
        .args(FLAGS)
        .args(STRICT)
        .args(["-fno-caret-diagnostics", "-fno-color-diagnostics", "-fno-stack-protector"])
        .arg("-I")
        .arg(at("libbpf"))
        .arg("-I")
        .arg(at("policy"))
        .arg(format!("-D__TARGET_ARCH_{}", arch()))
        .arg(format!("-DREVEILLE_POLICY_FILE=\"{include}\""))
        .arg(format!("-DREVEILLE_POLICY_BASE={:#x}ull", fingerprint()))
        .args(["-g", "-O2", "-target", "bpf", "-c"])
        .arg(at("crates/scx/bpf/reveille.bpf.c"))
        .arg("-o")
        .arg(&object)
        .envs([("LC_ALL", Path::new("C")), ("TMPDIR", directory.path())])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| {
            let problem = format!("the compiler `{clang}` cannot be run: {error}");
            ScxError::refused(problem, "set SCX_CLANG to clang 19 or newer, or unset it")
        })?;
    let said = String::from_utf8_lossy(&out.stderr);
    let said = said.replace(include, &path.display().to_string());
    let said = said.replace(&format!("{}/", directory.path().display()), "");
    let with = |mark: &str| -> Vec<&str> { said.lines().filter(|l| l.contains(mark)).collect() };
    if !out.status.success() {
        let errors = [with(" error: "), with(" fatal error: ")].concat();
        let errors = if errors.is_empty() { said.trim().to_owned() } else { errors.join("\n") };
        let taken =
            ["conflicting types for", "redefinition of"].iter().any(|&mark| errors.contains(mark));
        return Err(ScxError::refused(errors, if taken { TAKEN } else { CORRECT }));
    }
    for warning in with(" warning: ") {
        warn!("{warning}");
    }
    fs::read(&object).map_err(temporary)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    #[test]
    fn no_source_is_left_out() {
        let in_tree = |directory: &str| {
            let entries = fs::read_dir(root().join(directory)).unwrap();
            let directory = directory.to_owned();
            entries.map(move |e| format!("{directory}/{}", e.unwrap().file_name().display()))
        };
        let there: BTreeSet<String> = in_tree("crates/scx/bpf").chain(in_tree("policy")).collect();
        assert_eq!(there, sources().map(|(path, _)| (*path).to_owned()).collect());
    }

    /// Each is compiled in place of the embedded object, with the variables where they were.
    #[test]
    fn policy_files_that_are_shipped_fit() {
        let mut files: Vec<PathBuf> = fs::read_dir(root().join("docs/examples/policies"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert!(files.len() >= 3);
        files.push(root().join("crates/policy/csrc/template.c"));
        for file in files {
            let policy = PolicyFile::read(&file).unwrap();
            assert_eq!(policy.name, file.file_name().unwrap().to_str().unwrap());
            let parsed = object::File::parse(policy.object.as_slice()).unwrap();
            assert!(parsed.section_by_name(".BTF.ext").is_some(), "no lines for the verifier");
        }
    }

    fn refused(body: &str) -> String {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("idea.c");
        fs::write(&file, body).unwrap();
        let error = PolicyFile::read(&file).unwrap_err();
        assert!(matches!(error, ScxError::Refused { .. }), "{error:?}");
        error.to_string().replace(&format!("{}/", directory.path().display()), "")
    }

    /// A file with these lines, from the fifth on, in its function.
    fn with(before: &str, lines: &str) -> String {
        format!(
            "#include <reveille.h>\nREVEILLE_POLICY(1);\n{before}\nstruct policy_pick \
             reveille_select(struct world *w, const struct policy_tunables *t, struct policy_task \
             *p, struct policy_task *waker, u32 this_cpu, u32 flags, u64 now_j) {{ struct \
             policy_pick pick = {{ 0 }};\n{lines}\nreturn pick; }}\n"
        )
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        assert!(refused("int x;\n").contains("no reveille_select()"));
        let said = refused(&with("", "pick.cpu = nobody;"));
        assert!(said.starts_with("idea.c:5:12: error: use of undeclared"), "{said}");
        let said = refused(&with("", "\npick.cpu = getpid();"));
        assert!(said.starts_with("idea.c:6:12: error: call to undeclared function"), "{said}");
        let said = refused(&with("", "s64 a = (s64)now_j; pick.cpu = a / (s64)flags;"));
        assert!(said.contains("idea.c:5:"), "{said}");
        let said = refused(&with("extern u32 far_away(void);", "pick.cpu = far_away();"));
        assert!(said.contains("far_away"), "{said}");
        let said = refused(&with("static u32 turn;", "pick.cpu = turn++;"));
        assert!(said.contains("`turn` outlives a decision"), "{said}");
        let said = refused(&with("", "static u32 turn = 5; pick.cpu = turn++;"));
        assert!(said.contains("`turn` outlives a decision"), "{said}");
        let said = refused(&with("", "").replace("POLICY(1)", "POLICY(9)"));
        assert!(said.contains("version 9 of the interface"), "{said}");
        let said = refused(&with("", "").replace("REVEILLE_POLICY(1);", ""));
        assert!(said.contains("which version of the interface"), "{said}");
        assert!(refused("\x7fELF").contains("no BPF object"));
    }

    #[test]
    fn constant_tables_and_loops_move_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("table.c");
        let lines = "POLICY_FOR(i, 4) pick.cpu += table[flags & 3]; POLICY_FOR(i, 4) pick.cpu ^= \
                     __builtin_ctzll(now_j | 1ull << i);";
        fs::write(&file, with("static const u32 table[4] = { 3, 1, 2, 7 };", lines)).unwrap();
        PolicyFile::read(&file).unwrap();
    }

    #[test]
    fn an_object_of_another_version_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("old.o");
        let source = root().join("docs/examples/policies/first_fit.c");
        let mut object = PolicyFile::read(&source).unwrap().object;
        let mark = fingerprint().to_ne_bytes();
        let at = object.windows(8).position(|bytes| bytes == mark).unwrap();
        object[at] ^= 1;
        fs::write(&file, &object).unwrap();
        let said = PolicyFile::read(&file).unwrap_err().to_string();
        assert!(said.contains("another version of scx_reveille"), "{said}");
        object[at] ^= 1;
        object.truncate(object.len() / 2);
        fs::write(&file, &object).unwrap();
        assert!(PolicyFile::read(&file).unwrap_err().to_string().contains("no BPF object"));
        fs::write(&file, &bpf::DATA[..]).unwrap();
        assert!(PolicyFile::read(&file).unwrap_err().to_string().contains("of no policy file"));
    }

    #[test]
    fn the_verifiers_last_words_have_a_line() {
        let policy = PolicyFile { name: "idea.c".to_owned(), object: Vec::new() };
        let log = "libbpf: prog 'reveille_select_cpu': BPF program load failed: -EINVAL\n\
                   libbpf: prog 'reveille_select_cpu': -- BEGIN PROG LOAD LOG --\n\
                   Validating choose_own() func#4...\n\
                   ; pick.cpu = table[flags]; @ idea.c:12\n\
                   30: (61) r1 = *(u32 *)(r7 +0)         ; R1_w=scalar() R7=map_value()\n\
                   ; x = word & 1; @ select.h:40\n\
                   31: (79) r2 = *(u64 *)(r1 +0)\n\
                   R1 invalid mem access 'scalar'\n\
                   processed 31 insns (limit 1000000) max_states_per_insn 0 total_states 2\n\
                   -- END PROG LOAD LOG --\n\
                   libbpf: prog 'reveille_select_cpu': failed to load: -EINVAL\n";
        let said = policy.refusal(log).unwrap().to_string();
        assert_eq!(said, "idea.c:12: the verifier refuses it: R1 invalid mem access 'scalar'");
        assert!(policy.refusal("libbpf: failed to find valid kernel BTF\n").is_none());
        let endless = "-- BEGIN PROG LOAD LOG --\n; for (;;) @ idea.c:7\n\
                       infinite loop detected at insn 12\n\
                       cur state: R0=scalar() R6=mem() fp-8=0\nold state: R0=scalar()\n\
                       processed 13 insns (limit 1000000)\n-- END PROG LOAD LOG --\n";
        let said = policy.refusal(endless).unwrap().to_string();
        assert_eq!(said, "idea.c:7: the verifier refuses it: infinite loop detected at insn 12");
    }
}
