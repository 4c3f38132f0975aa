//! `reveille import`: a recording from a table of requests or from Prometheus' answers, told apart
//! by their content.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use reveille_place::{InputError, Mistake};
use reveille_usage::{CsvOptions, DEFAULT_THREADS, Format, Select, Summary, Usage, UsageFile};
use serde::Serialize;

use crate::errors::{CliError, Result};
use crate::limits::show::text;
use crate::output::{print, print_json, width};
use crate::output_file::{ClaimedFile, OutputFile};

/// Make a recording from a table of requests or from Prometheus
///
/// A table is CSV with the columns at_UNIT (when a request arrived) and cpu_UNIT (its CPU time),
/// and optionally thread (which thread served it) and done_UNIT (when it completed, on the clock of
/// `at`); UNIT is s, ms, us or ns. Other columns are ignored.
///
/// Prometheus data are saved responses to range queries for container_cpu_usage_seconds_total and,
/// optionally, container_cpu_cfs_* and container_spec_cpu_*: one or several files, each with one
/// response or an array of them.
#[derive(clap::Args)]
pub struct UsageImportArgs {
    /// A CSV table, or JSON files from Prometheus
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// File to write, in Parquet [default: the first file's name with .parquet]
    #[arg(short, long, value_name = "FILE.parquet")]
    output: Option<PathBuf>,
    #[arg(long, value_name = "N", help = threads_help())]
    threads: Option<u32>,
    /// Accept a table whose rows are not sorted by time
    #[arg(long)]
    unordered: bool,
    /// Of several Prometheus series, use the one with this label; repeat the option for several
    /// labels
    #[arg(long, value_name = "LABEL=VALUE")]
    select: Vec<Select>,
    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
}

fn threads_help() -> String {
    format!(
        "Threads at most that the requests of a table without threads are spread over \
         [default: {DEFAULT_THREADS}]"
    )
}

/// The object of `--json`: a recording that was written.
#[derive(Serialize)]
pub struct Written {
    pub file: String,
    pub bytes: usize,
    pub usage: Summary,
}

/// Imports, writes, and prints a summary.
pub fn usage_import(args: &UsageImportArgs) -> Result<ExitCode> {
    if let Some(directory) = args.files.iter().find(|file| file.is_dir()) {
        UsageFile::read(directory)?;
    }
    let first = &args.files[0];
    let output = args.output.clone().unwrap_or_else(|| first.with_extension("parquet"));
    let file = new_file(&output, args)?;
    let usage = import(args)?;
    let content = usage.to_parquet()?;
    file.write(&content)?;
    let summary = usage.summary();
    let path = output.display().to_string();
    if args.json {
        print_json(&Written { file: path, bytes: content.len(), usage: summary })?;
    } else {
        print(&text(&path, &summary, width()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The output file; refuses to replace an existing one unless `--force`.
fn new_file(path: &Path, args: &UsageImportArgs) -> Result<ClaimedFile> {
    let refuse = |problem: &str, help| Err(CliError::output_path("--output", path, problem, help));
    let real = |path: &Path| fs::canonicalize(path).ok();
    if real(path).is_some_and(|output| args.files.iter().any(|f| real(f).as_ref() == Some(&output)))
    {
        return refuse("it is what is imported", "name another file with -o");
    }
    OutputFile::prepare("--output", path)?.claim("--output", args.force)
}

fn import(args: &UsageImportArgs) -> Result<Usage> {
    let read = args.files.iter().map(|path| UsageFile::read(path));
    let files = read.collect::<Result<Vec<UsageFile>, InputError>>()?;
    let first = &files[0];
    let refuse = |file: &UsageFile, problem: &str, help: &str| {
        Err(Mistake::new(problem, help).in_file(file.shown()))
    };
    match first.format {
        Format::Parquet => refuse(
            first,
            "is a Parquet file already",
            "show it by `reveille show`; other tables are imported as CSV",
        ),
        Format::Csv if files.len() > 1 => {
            refuse(first, "is a table, and only one is imported", "import each by itself")
        }
        Format::Csv if !args.select.is_empty() => {
            refuse(first, "is a table, which --select means nothing for", "leave --select out")
        }
        Format::Csv => {
            let options = CsvOptions { threads: args.threads, unordered: args.unordered };
            Ok(Usage::from_csv(&first.shown(), &first.stem(), &first.bytes, options)?)
        }
        Format::Prometheus if args.threads.is_some() || args.unordered => refuse(
            first,
            "is of Prometheus, which --threads and --unordered mean nothing for",
            "leave them out",
        ),
        Format::Prometheus => {
            if let Some(other) = files.iter().find(|f| f.format != Format::Prometheus) {
                let problem = format!("is no answer of Prometheus, as {} is", first.shown());
                return refuse(other, &problem, "import it by itself");
            }
            let name = first.stem();
            let files: Vec<_> = files.into_iter().map(|f| (f.shown(), f.bytes)).collect();
            Ok(Usage::from_prometheus(&name, &files, &args.select)?)
        }
    }
}
