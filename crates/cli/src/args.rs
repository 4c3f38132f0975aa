//! The command line: all commands, each with the arguments of its own file.

use clap::{Parser, Subcommand};

use crate::generate::GenerateArgs;
use crate::host::bench::BenchArgs;
use crate::host::calibrate::CalibrateArgs;
use crate::lab::fit::FitArgs;
use crate::lab::policy::PolicyCommand;
use crate::lab::score::ScoreArgs;
use crate::lab::sensitivity::SensitivityArgs;
use crate::lab::study_args::{CompareArgs, StudyArgs};
use crate::lab::sweep::{MergeArgs, SweepArgs};
use crate::limits::fleet::FleetArgs;
use crate::limits::import::UsageImportArgs;
use crate::limits::plan::PlanArgs;
use crate::limits::record::UsageRecordArgs;
use crate::limits::show::UsageShowArgs;
use crate::limits::usage::UsageCommand;
use crate::list::ListArgs;

/// Try scheduler wakeup policies on hardware you don't have, and choose CPU limits
#[derive(Parser)]
#[command(name = "reveille", version, arg_required_else_help = true, after_help = AFTER_HELP)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

const AFTER_HELP: &str = "\
Exit codes: 0 done, 1 failed while running, 2 wrong input, 3 `plan --verify` was
disturbed by other programs, or a guardrail of `score` fails, 130 interrupted
(what is finished is printed). `reveille help COMMAND` shows what a command
takes.";

#[derive(Subcommand)]
pub enum Command {
    /// Run a study and compare it with its published figures
    Study(StudyArgs),
    /// Compare policies on a machine, a workload and loads you choose
    Compare(CompareArgs),
    /// Write your own scheduling policy in C, and check it
    ///
    /// `new` writes a template, `check` compiles it with the system's C compiler, and `reveille
    /// compare --policy FILE` simulates it. See docs/policy.md.
    Policy {
        #[command(subcommand)]
        command: PolicyCommand,
    },
    Sweep(SweepArgs),
    Merge(MergeArgs),
    /// Score a policy over many machines and loads, with guardrails
    ///
    /// The score is the geometric mean of gains over a suite. The guardrails are the objections
    /// that reviewers raise against wakeup patches; each fails by name. Exit codes: 0 every
    /// guardrail holds, 3 one fails, 4 the policy does not compile, 5 it crashes or loops, 6 the
    /// time limit ended the run. See docs/score.md.
    Score(ScoreArgs),
    Sensitivity(SensitivityArgs),
    Fit(FitArgs),
    Record(UsageRecordArgs),
    Import(UsageImportArgs),
    /// Summarize a recording, and what it is too short to tell
    Show(UsageShowArgs),
    Plan(PlanArgs),
    Fleet(FleetArgs),
    /// Measure this host's scheduling costs and write a machine file
    Calibrate(CalibrateArgs),
    /// Time a command over repeated runs, or run schbench
    ///
    /// Runs COMMAND in a fresh task group for each repeat and prints quantiles of wall and CPU
    /// time, context switches, and CPU time used by other tasks meanwhile. `--save` keeps the runs;
    /// `--before` and `--after` compare two saved files. See docs/bench.md.
    Bench(BenchArgs),
    #[command(hide = true)]
    Generate(GenerateArgs),
    /// The former name of record, import and show
    #[command(hide = true)]
    Usage {
        #[command(subcommand)]
        command: UsageCommand,
    },
    /// List studies, or show one in full
    Studies(ListArgs),
    /// List machines, or show one with the sources of its constants
    Machines(ListArgs),
    /// List workloads, or show one in full
    Workloads(ListArgs),
    /// List baselines and features, or show one in full
    Policies(ListArgs),
}
