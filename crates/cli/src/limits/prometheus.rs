//! `reveille record --prometheus`: records one container, or all, from a server's history.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use reveille_measure::{Shard, span_ns};
use reveille_place::{CHECK_PATH, InputKind, Mistake, read_input};
use reveille_plan::{Failed, Skipped, in_shard};
use reveille_prometheus::{Access, Container, Selector, Server, ServerError, Span, Workload};
use reveille_usage::{Select, Usage};

use crate::errors::{CliError, Result};
use crate::limits::fleet::{Look, LookArgs, Recording};
use crate::limits::import::Written;
use crate::limits::show::text;
use crate::output;
use crate::output_file::OutputFile;
use crate::progress::Progress;
use crate::signals::watch_signals;

/// Containers queried in parallel.
const CONNECTIONS: usize = 4;
const S: u64 = 1_000_000_000;
/// Longest recording.
const MOST_S: u64 = 31 * 86_400;

#[derive(clap::Args)]
#[command(next_help_heading = "From Prometheus")]
pub struct PrometheusArgs {
    /// Record from a server with Prometheus' HTTP API (Thanos, Mimir, VictoriaMetrics): its URL,
    /// up to /api/v1
    #[arg(long, value_name = "URL", conflicts_with_all = ["cgroup", "span", "sample", "how"])]
    pub prometheus: Option<String>,
    /// Containers in this namespace
    #[arg(long, value_name = "NAME", requires = "prometheus", conflicts_with = "cgroup")]
    namespace: Option<String>,
    /// Containers of this workload's pods: deploy/web, sts/db, ds/agent, job/report, cronjob/backup
    /// or pod/web-0. Records the busiest of several pods
    #[arg(long, value_name = "KIND/NAME", requires = "prometheus", conflicts_with = "cgroup")]
    workload: Option<Workload>,
    /// Containers with this name
    #[arg(long, value_name = "NAME", requires = "prometheus", conflicts_with = "cgroup")]
    container: Option<String>,
    /// Series with this label; repeat the option for several
    #[arg(long, value_name = "LABEL=VALUE", requires = "prometheus", conflicts_with = "cgroup")]
    select: Vec<Select>,
    /// Record every matching container to the directory of --output, and print a table of those at
    /// risk. Existing recordings are kept, so rerun the command to resume
    #[arg(long, requires = "prometheus", conflicts_with = "cgroup")]
    all: bool,
    /// With --all, one shard of the containers: 2/8 is the second of eight
    #[arg(long, value_name = "I/N", requires = "all", conflicts_with = "cgroup")]
    shard: Option<Shard>,
    /// Length of the recording, in s, m, h or d
    #[arg(long, value_name = "TIME", default_value = "1d", value_parser = seconds,
          requires = "prometheus", conflicts_with = "cgroup")]
    since: u64,
    /// End of the recording, in seconds of Unix time [default: now]
    #[arg(long, value_name = "TIME", requires = "prometheus", conflicts_with = "cgroup")]
    until: Option<u64>,
    /// Time between samples [default: the scrape interval]
    #[arg(long, value_name = "TIME", value_parser = seconds, requires = "prometheus", conflicts_with = "cgroup")]
    step: Option<u64>,
    /// File with a bearer token
    #[arg(long, value_name = "FILE", requires = "prometheus", conflicts_with = "cgroup")]
    token_file: Option<PathBuf>,
    /// User for basic authentication
    #[arg(long, value_name = "NAME", requires = "password_file", conflicts_with = "token_file")]
    user: Option<String>,
    /// File with that user's password
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,
    /// CA certificates to trust instead of the system's, in PEM
    #[arg(long, value_name = "FILE", requires = "prometheus", conflicts_with = "cgroup")]
    ca_file: Option<PathBuf>,
    /// Header to send with every query, such as 'X-Scope-OrgID: shop'; repeat the option
    #[arg(long, value_name = "NAME: VALUE", value_parser = header, requires = "prometheus", conflicts_with = "cgroup")]
    header: Vec<(String, String)>,
    #[command(flatten)]
    look: LookArgs,
}

/// Where to write recordings.
pub struct To<'a> {
    /// A file; with `--all`, a directory.
    pub output: &'a Path,
    pub force: bool,
}

/// A time such as `7d` in whole seconds.
fn seconds(text: &str) -> Result<u64, String> {
    let found = span_ns(text).ok().filter(|ns| ns.is_multiple_of(S)).map(|ns| ns / S);
    let found = found.filter(|seconds| (1..=MOST_S).contains(seconds));
    found.ok_or_else(|| "write a whole number of s, m, h or d, up to 31d".into())
}

fn header(text: &str) -> Result<(String, String), String> {
    let valid = |name: &str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    };
    match text.split_once(':').map(|(name, value)| (name.trim(), value.trim())) {
        Some((name, value)) if valid(name) && value.bytes().all(|b| (b' '..=b'~').contains(&b)) => {
            Ok((name.into(), value.into()))
        }
        _ => Err("write NAME: VALUE in ASCII".into()),
    }
}

impl PrometheusArgs {
    /// An option that has no meaning for a task group, if one is given.
    pub fn stray(&self) -> Option<&'static str> {
        self.look.stray()
    }

    /// Was `--json` given?
    pub fn json(&self) -> bool {
        self.look.json
    }

    fn access(&self, url: &str) -> Result<Access> {
        let ca = self.ca_file.as_deref().map(|path| {
            read_input(path, InputKind::DESCRIPTION).map_err(|error| {
                let problem = format!("{}: {error}", path.display());
                ServerError::option("--ca-file", problem, CHECK_PATH)
            })
        });
        let mut access =
            Access { url: url.into(), headers: self.header.clone(), ca: ca.transpose()? };
        if let Some(file) = &self.token_file {
            access.bearer(file)?;
        }
        if let (Some(user), Some(file)) = (&self.user, &self.password_file) {
            access.basic(user, file)?;
        }
        Ok(access)
    }

    fn span(&self) -> Span {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
        Span { until_s: self.until.unwrap_or_else(now), length_s: self.since, step_s: self.step }
    }

    fn selector(&self) -> Selector {
        Selector {
            namespace: self.namespace.clone(),
            workload: self.workload.clone(),
            container: self.container.clone(),
            labels: self.select.clone(),
        }
    }
}

/// Records from the server at `url`.
pub fn record_prometheus(url: &str, args: &PrometheusArgs, to: &To<'_>) -> Result<ExitCode> {
    let look = Look::new(&args.look)?;
    let stop = watch_signals()?;
    let server = Server::new(args.access(url)?, &stop)?;
    if args.all { all(args, &server, to, &look, &stop) } else { one(args, &server, to) }
}

/// A pod is new for so long at most: busy with its start.
const NEW_NS: u64 = 3_600_000_000_000;

/// Records one container: of its replicas the busiest, but none that is new, seen for less than a quarter
/// of the longest and less than [`NEW_NS`].
fn one(args: &PrometheusArgs, server: &Server<'_>, to: &To<'_>) -> Result<ExitCode> {
    let file = OutputFile::prepare("--output", to.output)?.claim("--output", to.force)?;
    let span = args.span();
    let found = server.containers(&args.selector(), span)?;
    let replicas = replicas(&found, args.workload.is_some())?;
    let (mut seen, mut failed) = (Vec::<Usage>::new(), Vec::new());
    for container in replicas {
        match server.recording(container, span) {
            Ok(usage) => {
                // One that was seen for less and used less can't be it.
                let beats =
                    |a: &Usage, b: &Usage| a.span_ns >= b.span_ns && a.mean_cpus() >= b.mean_cpus();
                if !seen.iter().any(|other| beats(other, &usage)) {
                    seen.retain(|other| !beats(&usage, other));
                    seen.push(usage);
                }
            }
            // Such as a pod that has been seen once.
            Err(error) if error.is_input() => failed.push(error),
            Err(error) => return Err(error.into()),
        }
    }
    let longest_ns = seen.iter().map(|usage| usage.span_ns).max().unwrap_or(0);
    let is_new = |usage: &Usage| usage.span_ns < NEW_NS.min(longest_ns / 4);
    let busier_is_new = seen.iter().any(is_new);
    seen.retain(|usage| !is_new(usage));
    let busiest = seen.into_iter().max_by(|a, b| a.mean_cpus().total_cmp(&b.mean_cpus()));
    let Some(mut usage) = busiest else {
        return Err(failed.swap_remove(0).into());
    };
    if replicas.len() > 1 {
        usage.warnings.push(format!(
            "{} is the busiest of {} pods; a limit is the same for all of them.",
            usage.name,
            replicas.len()
        ));
    }
    if busier_is_new {
        usage.warnings.push("A busier one has just started, and is left out.".into());
    }
    if let Some(error) = failed.first() {
        let n = failed.len();
        usage.warnings.push(format!("{n} of them could not be read, the first because {error}."));
    }
    let content = usage.to_parquet()?;
    file.write(&content)?;
    let (path, summary) = (to.output.display().to_string(), usage.summary());
    if args.json() {
        output::print_json(&Written { file: path, bytes: content.len(), usage: summary })?;
    } else {
        output::print(&text(&path, &summary, output::width()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Pods of one workload that run the same container; an error if `found` is ambiguous.
fn replicas(found: &[Container], of_workload: bool) -> Result<&[Container]> {
    let parts = |container: &Container| {
        let name = container.name();
        let mut parts: Vec<String> = name.split('/').map(str::to_owned).collect();
        // Strip the random suffix of the pod's name.
        if let Some(pod) = parts.len().checked_sub(2).and_then(|at| parts.get_mut(at)) {
            // A workload's pods have other names after a rollout, and in every run of a cron job.
            *pod = match of_workload {
                true => String::new(),
                false => pod.trim_end_matches(|c| c != '-').to_owned(),
            };
        }
        parts
    };
    if found.windows(2).all(|pair| parts(&pair[0]) == parts(&pair[1])) {
        return Ok(found);
    }
    let mut names: Vec<String> = found.iter().take(20).map(Container::name).collect();
    if found.len() > names.len() {
        names.push(format!("and {} more", found.len() - names.len()));
    }
    let problem = format!("{} containers: {}", found.len(), names.join("; "));
    let help = "choose one by --workload, --container or --select, or take --all";
    Err(ServerError::option("--prometheus", problem, help).into())
}

/// Records every matching container, and prints a table of them.
fn all(
    args: &PrometheusArgs,
    server: &Server<'_>,
    to: &To<'_>,
    look: &Look<'_>,
    stop: &AtomicBool,
) -> Result<ExitCode> {
    let shard = args.shard.unwrap_or(Shard::WHOLE);
    let refuse = |error: std::io::Error| {
        let help = "name a directory that you may write to";
        CliError::output_path("--output", to.output, error.to_string(), help)
    };
    fs::create_dir_all(to.output).map_err(refuse)?;
    let span = args.span();
    let mut found = server.containers(&args.selector(), span)?;
    found.retain(|container| in_shard(shard, &container.name()));
    let progress = Progress::of("containers");
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (failed, short) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let fetched: Mutex<Vec<Recording>> = Mutex::new(Vec::new());
    let work = || {
        while let Some(container) = found.get(next.fetch_add(1, Ordering::Relaxed)) {
            let name = container.name();
            let path = to.output.join(file_of(&name));
            match keep(server, container, span, &path, to.force) {
                Ok(()) => push(&fetched, Recording { name, path }),
                Err(CliError::Prometheus(ServerError::Interrupted)) => return,
                Err(error) => {
                    let is_short = matches!(error, CliError::Prometheus(ServerError::Short(_)));
                    let to = if is_short { &short } else { &failed };
                    push(to, Failed { name, mistake: Mistake::of(&error, CHECK_PATH) });
                }
            }
            progress.tell(1 + done.fetch_add(1, Ordering::Relaxed), found.len());
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..CONNECTIONS.min(found.len()) {
            scope.spawn(work);
        }
    });
    progress.finish();
    if stop.load(Ordering::Relaxed) {
        return Err(ServerError::Interrupted.into());
    }
    let mut recordings = fetched.into_inner().unwrap_or_default();
    recordings.sort();
    let mut failed = failed.into_inner().unwrap_or_default();
    let mut short = short.into_inner().unwrap_or_default();
    if recordings.is_empty() {
        failed.append(&mut short);
    }
    let skipped = |short: Failed| Skipped {
        name: file_of(&short.name).display().to_string(),
        why: "seen less than twice, too short to record".into(),
    };
    look.at(&recordings, shard, (failed, short.into_iter().map(skipped).collect()), stop)
}

fn push<T>(to: &Mutex<Vec<T>>, value: T) {
    to.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(value);
}

/// Records a container unless its recording exists.
fn keep(
    server: &Server<'_>,
    container: &Container,
    span: Span,
    path: &Path,
    force: bool,
) -> Result<()> {
    if path.exists() && !force {
        return Ok(());
    }
    let content = server.recording(container, span)?.to_parquet()?;
    if let Some(directory) = path.parent() {
        let error = |error| CliError::OutputFile { path: directory.into(), error };
        fs::create_dir_all(directory).map_err(error)?;
    }
    OutputFile::prepare("--output", path)?.write(&content)
}

/// A container's path from its labels; none of its parts can leave the directory.
fn file_of(name: &str) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let part = |part: &str| {
        let safe: String = part.chars().map(plain).collect();
        if safe.trim_matches('.').is_empty() { "_".repeat(safe.len().max(1)) } else { safe }
    };
    let path: PathBuf = name.split('/').map(part).collect();
    let mut file = path.into_os_string();
    file.push(".parquet");
    file.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_lead_to_no_other_directory() {
        assert_eq!(file_of("shop/web-0/app"), Path::new("shop/web-0/app.parquet"));
        assert_eq!(file_of("../../etc"), Path::new("__/__/etc.parquet"));
        assert_eq!(file_of("/docker/a b"), Path::new("_/docker/a_b.parquet"));
    }

    #[test]
    fn times_have_a_unit() {
        assert_eq!(seconds("7d"), Ok(604_800));
        assert_eq!((seconds("90m"), seconds("1.5h")), (Ok(5400), Ok(5400)));
        for wrong in ["7", "0s", "32d", "1w", "-1d"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
