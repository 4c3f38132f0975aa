//! `reveille score`: one number for a policy over a suite, and the guardrails it breaks. A policy
//! file that does not compile, crashes or loops scores 0; that is not an error of the command.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use reveille_policy::Draft;
use reveille_score::{Candidate, DEFAULT_ARTIFACT_BYTES, Options, Score, Stages, Status, Suite};
use reveille_study::duration_ns;

use crate::errors::{CliError, INTERRUPTED, Result};
use crate::isolated;
use crate::output::{print_result, width};
use crate::watched::{JobsArg, watched};

#[derive(clap::Args)]
pub struct ScoreArgs {
    /// A policy file, edits of the baseline (+FEATURE,-FEATURE), or another kernel (v7.2) [default:
    /// the baseline itself, which scores 1]
    #[arg(value_name = "FILE.c[,EDITS]|EDITS", allow_hyphen_values = true)]
    candidate: Option<String>,
    /// Kernel baseline, overriding the suite
    #[arg(long, value_name = "NAME")]
    base: Option<String>,
    /// Suite: `default`, `holdout`, or the path of a .toml file
    #[arg(long, value_name = "NAME|FILE.toml", default_value = "default")]
    suite: String,
    /// Score by the suite's hold-out, which shares no machine and no workload with it
    #[arg(long)]
    holdout: bool,
    /// 1 runs the cheap cells, 2 runs all [default: the cheap ones, then the rest unless a
    /// guardrail failed]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=2))]
    stage: Option<u8>,
    /// Stop after this time, score what ran, and list what did not: 60s
    #[arg(long, value_name = "TIME", value_parser = time)]
    time_limit: Option<u64>,
    /// Maximum total size of the artifacts of --json, in bytes
    #[arg(long, value_name = "N", default_value_t = DEFAULT_ARTIFACT_BYTES)]
    artifact_bytes: usize,
    /// Random seed, overriding the suite
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    jobs: JobsArg,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
}

fn time(text: &str) -> Result<u64, String> {
    duration_ns(text).map_err(|error| error.to_string())
}

pub fn score(args: &ScoreArgs) -> Result<ExitCode> {
    let deadline = args.time_limit.map(|ns| Instant::now() + std::time::Duration::from_nanos(ns));
    let mut suite = Suite::load(&args.suite)?;
    if args.holdout {
        suite = suite.load_holdout()?;
    }
    suite.seed = args.seed.unwrap_or(suite.seed);
    let given = args.candidate.as_deref().unwrap_or_default().trim();
    let (name, edits) = given.split_once(',').unwrap_or((given, ""));
    let is_file = Path::new(name).extension().is_some_and(|e| e == "c");
    let failed = |status, why| {
        let base = args.base.as_deref().unwrap_or(&suite.base);
        show(Score::failed(&suite, base, given, status, why), args)
    };
    let mut warnings = String::new();
    let candidate = match (given, isolated::child()) {
        ("", _) => Candidate::Base,
        _ if !is_file => Candidate::Edits(given.to_owned()),
        (_, None) => {
            return match isolated::run(&[name]) {
                Err(CliError::PolicyEnded { how, help, .. }) => {
                    failed(Status::PolicyFailed, format!("{name}: {how}; {help}"))
                }
                ran => ran,
            };
        }
        (_, Some(child)) => {
            let draft = child.compile(Path::new(name))?;
            if draft.mistake().is_some() {
                return failed(Status::NotCompiled, said(&draft));
            }
            warnings = said(&draft);
            let file = child.keep(&draft)?;
            child.die_with_parent();
            Candidate::File(file, edits.to_owned())
        }
    };
    let stages = match args.stage {
        Some(1) => Stages::First,
        Some(_) => Stages::All,
        None => Stages::Cascade,
    };
    let mut scored = watched(args.jobs, |jobs, stop, tell| {
        let options = Options { stages, jobs, deadline };
        reveille_score::score(&suite, args.base.as_deref(), &candidate, &options, stop, tell)
    })?;
    if !warnings.is_empty() {
        scored.artifacts.insert("compiler", warnings);
    }
    show(scored, args)
}

/// The compiler's messages, one per line.
fn said(draft: &Draft) -> String {
    let line = |m: &reveille_policy::Message| {
        let help = if m.help.is_empty() { String::new() } else { format!("; {}", m.help) };
        format!("{}:{}:{}: {}: {}{help}\n", m.file, m.line, m.column, m.kind.name(), m.text)
    };
    draft.messages.iter().map(line).collect()
}

fn show(mut score: Score, args: &ScoreArgs) -> Result<ExitCode> {
    score.limit_artifacts(args.artifact_bytes);
    print_result(args.json, &score, || reveille_report::score_page(&score, width()))?;
    Ok(ExitCode::from(match score.status {
        Status::Passed => 0,
        Status::GuardrailFailed | Status::Rejected => 3,
        Status::NotCompiled => 4,
        Status::PolicyFailed => 5,
        Status::TimeLimit => 6,
        Status::Interrupted => INTERRUPTED,
    }))
}
