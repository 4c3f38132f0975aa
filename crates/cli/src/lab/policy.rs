//! `reveille policy`, and the policy files of `reveille compare`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use reveille_host::HostError;
use reveille_policy::{MessageKind, POLICY_INTERFACE, POLICY_TEMPLATE, PolicyFile};
use reveille_study::On;

use crate::errors::{Result, WRONG_INPUT};
use crate::isolated;
use crate::output::{print, print_json};
use crate::output_file::OutputFile;

/// Subcommands on a policy file.
#[derive(clap::Subcommand)]
pub enum PolicyCommand {
    /// Write a documented policy template
    #[command(before_help = "Example: reveille policy new idea.c")]
    New(NewArgs),
    /// Compile a policy file and report its mistakes
    #[command(before_help = "Example: reveille policy check idea.c")]
    Check(CheckArgs),
}

#[derive(clap::Args)]
pub struct NewArgs {
    /// File to write
    #[arg(value_name = "FILE.c")]
    file: PathBuf,
    /// Overwrite the file
    #[arg(long)]
    force: bool,
}

#[derive(clap::Args)]
pub struct CheckArgs {
    /// File to check; $CC, else cc, gcc or clang compiles it
    #[arg(value_name = "FILE.c")]
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn policy(command: &PolicyCommand) -> Result<ExitCode> {
    match command {
        PolicyCommand::New(args) => new(args),
        PolicyCommand::Check(args) => check(args),
    }
}

fn new(args: &NewArgs) -> Result<ExitCode> {
    nameable(&args.file)?;
    let file = OutputFile::prepare("policy new", &args.file)?.claim("policy new", args.force)?;
    let name = args.file.display().to_string();
    file.write(&POLICY_TEMPLATE.replace("idea.c", &name))?;
    print(&format!("wrote {name}; next: reveille policy check {name}\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn check(args: &CheckArgs) -> Result<ExitCode> {
    nameable(&args.file)?;
    let name = args.file.display().to_string();
    let Some(child) = isolated::child() else { return isolated::run(&[&name]) };
    let draft = child.compile(&args.file)?;
    let messages = &draft.messages;
    let errors = messages.iter().filter(|m| m.kind == MessageKind::Error).count();
    if args.json {
        let ok = errors == 0;
        let interface = POLICY_INTERFACE;
        print_json(&reveille_report::object! { file: name, ok, interface, messages })?;
        return Ok(if ok { ExitCode::SUCCESS } else { ExitCode::from(WRONG_INPUT) });
    }
    messages.iter().for_each(isolated::show);
    match errors {
        0 => {
            print(&format!("{name}: ok, version {POLICY_INTERFACE} of the interface\n"))?;
            Ok(ExitCode::SUCCESS)
        }
        _ => Ok(ExitCode::from(WRONG_INPUT)),
    }
}

/// Refuses a path that `--policy` cannot name.
fn nameable(file: &Path) -> Result<()> {
    match file.as_os_str().as_encoded_bytes().contains(&b',') {
        false => Ok(()),
        true => {
            let problem =
                format!("`{}` has a comma, behind which --policy reads edits", file.display());
            Err(HostError::input(problem, "name it without a comma").into())
        }
    }
}

/// Policy files of a comparison.
pub enum Files {
    /// Each file with the edits that follow it.
    Loaded(Vec<(PolicyFile, String)>),
    /// A child process has loaded them and run the command.
    Ran(ExitCode),
}

/// Loads the files of `--policy`, in the child.
///
/// # Errors
/// A file's mistake; or `on` is not the simulator.
pub fn files(given: &[String], on: On) -> Result<Files> {
    if given.is_empty() {
        return Ok(Files::Loaded(Vec::new()));
    }
    if on != On::Sim {
        let problem = format!("`--policy`: `--on {on}` runs this host's kernel, not a file");
        return Err(HostError::input(problem, "leave out --on: the simulator runs it").into());
    }
    let given: Vec<(&str, &str)> =
        given.iter().map(|text| text.split_once(',').unwrap_or((text, ""))).collect();
    for (file, edits) in given.iter().filter(|(_, edits)| !edits.is_empty()) {
        let text = format!("{file},{edits}");
        let no_edits = || !edits.starts_with(['+', '-']) && !edits.contains('=');
        if Path::new(&text).exists() || no_edits() && !Path::new(file).exists() {
            let problem = format!(
                "`--policy`: the file is `{file}`, since what follows the comma in `{text}` is read \
                 as edits"
            );
            let help = "check the path, or rename the file: its path can have no comma";
            return Err(HostError::input(problem, help).into());
        }
    }
    let Some(child) = isolated::child() else {
        let names: Vec<&str> = given.iter().map(|(file, _)| *file).collect();
        return isolated::run(&names).map(Files::Ran);
    };
    let mut loaded: Vec<(PolicyFile, String)> = Vec::new();
    for (name, edits) in given {
        let same = loaded.iter().find(|(file, _)| file.name() == name).map(|(f, _)| f.clone());
        let file = same.map_or_else(|| child.load(Path::new(name)), Ok)?;
        loaded.push((file, edits.to_owned()));
    }
    child.die_with_parent();
    Ok(Files::Loaded(loaded))
}
