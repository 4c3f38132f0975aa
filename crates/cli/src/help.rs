//! The top of `--help`: commands grouped by purpose, with an example of each.

use std::fmt::Write;

use clap::{Arg, Command, CommandFactory};

use crate::args::Args;

/// Commands by purpose, each with a working example.
pub const GROUPS: [(&str, &[(&str, &str)]); 4] = [
    (
        "Lab: predict what a scheduler change does",
        &[
            ("study", "reveille study sis-short"),
            (
                "compare",
                "reveille compare --machine zen4-7950x --workload tcp_rr --load 16 --base v6.2 \
                 --with v6.12",
            ),
            ("policy", "reveille policy new idea.c"),
            ("sweep", "reveille sweep sweep.toml -o sweep.parquet"),
            ("merge", "reveille merge sweep.parquet part1.parquet part2.parquet"),
            ("score", "reveille score idea.c --stage 1"),
            ("sensitivity", "reveille sensitivity aged-idle --points 3"),
            ("fit", "reveille fit --machine spr-2s56c -o fitted.toml"),
        ],
    ),
    (
        "Limits: choose a CPU limit from a recording",
        &[
            ("record", "reveille record --cgroup system.slice -o usage.parquet --for 60s"),
            ("import", "reveille import requests.csv -o usage.parquet"),
            ("show", "reveille show usage.parquet"),
            ("plan", "reveille plan usage.parquet --goal p99=20ms"),
            ("fleet", "reveille fleet recordings/ --goal p99=50ms"),
        ],
    ),
    (
        "Host: measure this machine",
        &[
            ("calibrate", "reveille calibrate -o host.toml"),
            ("bench", "reveille bench --repeats 20 -- make -j4"),
        ],
    ),
    (
        "Lists: what there is to choose from",
        &[
            ("studies", "reveille studies sis-short"),
            ("machines", "reveille machines spr-2s56c"),
            ("workloads", "reveille workloads schbench"),
            ("policies", "reveille policies SIS_SHORT"),
        ],
    ),
];

/// What each list shows in full: the name of the value, and help.
const LISTS: [(&str, &str, &str); 4] = [
    ("studies", "NAME|FILE", "Show this study in full: a name, or a file"),
    ("machines", "NAME|FILE", "Show this machine in full: a name, a file, or `host`"),
    ("workloads", "NAME|FILE", "Show this workload in full: a name, or a file"),
    ("policies", "NAME", "Show this baseline or feature in full"),
];

/// The command line with its examples and groups.
pub fn command() -> Command {
    let mut command = Args::command();
    for (name, example) in GROUPS.iter().flat_map(|(_, commands)| *commands) {
        let example = format!("Example: {example}");
        command = command.mut_subcommand(name, |c| c.before_help(example));
    }
    for (list, value, help) in LISTS {
        let full = |arg: Arg| arg.value_name(value).help(help);
        command = command.mut_subcommand(list, |c| c.mut_arg("name", full));
    }
    let command = minus_is_a_value(command);
    let template = template(&command);
    command.help_template(template)
}

/// Lets numbers and times begin with a minus, so that their own error says what is wrong.
fn minus_is_a_value(command: Command) -> Command {
    let lenient = |arg: Arg| match arg.get_value_names() {
        Some([one]) if ["N", "TIME", "SECONDS"].contains(&one.as_str()) => {
            arg.allow_hyphen_values(true)
        }
        _ if arg.get_action().takes_values() => arg.allow_negative_numbers(true),
        _ => arg,
    };
    command.mut_args(lenient).mut_subcommands(minus_is_a_value)
}

/// A help template with groups, which clap does not support for subcommands.
fn template(command: &Command) -> String {
    let styles = command.get_styles();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (title, commands) in GROUPS {
        let _ = writeln!(text, "\n{header}{title}{header:#}");
        for (name, _) in commands {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {literal}{name:<12}{literal:#} {about}");
        }
    }
    let _ = writeln!(text, "\n{header}Options:{header:#}");
    text + "{options}{after-help}"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_stands_in_one_group() {
        let command = Args::command();
        let shown = command.get_subcommands().filter(|c| !c.is_hide_set()).map(Command::get_name);
        let mut shown: Vec<&str> = shown.collect();
        let mut grouped: Vec<&str> =
            GROUPS.iter().flat_map(|(_, commands)| *commands).map(|(name, _)| *name).collect();
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, shown, "the groups of help.rs");
    }

    #[test]
    fn examples_are_commands() {
        for (name, example) in GROUPS.iter().flat_map(|(_, commands)| *commands) {
            let matches = command().try_get_matches_from(example.split_whitespace());
            let matches = matches.unwrap_or_else(|error| panic!("{example}: {error}"));
            assert_eq!(matches.subcommand_name(), Some(*name));
        }
    }
}
