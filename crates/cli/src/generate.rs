//! `reveille generate`: man pages and shell completions, for `make install` and packagers.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Command;
use clap_complete::Shell;

use crate::errors::{CliError, Result};

/// Write man pages and shell completions below a directory such as /usr/local/share
#[derive(clap::Args)]
pub struct GenerateArgs {
    /// Directory that gets man/, bash-completion/, zsh/ and fish/
    #[arg(value_name = "DIR")]
    share: PathBuf,
}

/// Writes `command`'s man pages and completions below `args`' directory.
pub fn generate(args: &GenerateArgs, command: Command) -> Result<ExitCode> {
    let directory = |name: &str| {
        let path = args.share.join(name);
        match fs::create_dir_all(&path) {
            Ok(()) => Ok(path),
            Err(error) => Err(CliError::OutputFile { path, error }),
        }
    };
    let path = directory("man/man1")?;
    clap_mangen::generate_to(with_examples(command.clone()), &path)
        .map_err(|error| CliError::OutputFile { path, error })?;
    for (shell, name, file) in [
        (Shell::Bash, "bash-completion/completions", "reveille"),
        (Shell::Zsh, "zsh/site-functions", "_reveille"),
        (Shell::Fish, "fish/vendor_completions.d", "reveille.fish"),
    ] {
        let path = directory(name)?.join(file);
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut visible(&command), "reveille", &mut script);
        fs::write(&path, script).map_err(|error| CliError::OutputFile { path, error })?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The command without hidden subcommands and options.
fn visible(command: &Command) -> Command {
    let shown = command.get_subcommands().filter(|c| !c.is_hide_set()).cloned();
    Command::new("reveille").version(reveille_report::VERSION).subcommands(shown)
}

/// Man pages have no room for text ahead of the help, so the examples move.
fn with_examples(command: Command) -> Command {
    let about = command.get_long_about().or(command.get_about()).cloned().unwrap_or_default();
    let command = match command.get_before_help().cloned() {
        Some(example) => command.long_about(format!("{about}\n\n{example}")),
        None => command,
    };
    command.mut_subcommands(with_examples)
}
