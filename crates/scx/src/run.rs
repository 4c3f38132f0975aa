//! A run of the scheduler: from the checks to the last word.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use libbpf_rs::RingBufferBuilder;
use reveille_place::counted;
use tracing::{info, warn};

use crate::args::RunArgs;
use crate::decision::{Header, MAGIC};
use crate::error::ScxError;
use crate::journal::complain;
use crate::kernel::{self, Abilities};
use crate::output::Output;
use crate::policy_file::PolicyFile;
use crate::scheduler::{Exit, Room, Scheduler, optional_callbacks, this_machine};
use crate::scx_stats;
use crate::server::{Answer, Request, SOCKET, Server};
use crate::settings::{Settings, edited, names};
use crate::stats::{self, Stats};
use crate::topology::Tables;

/// How often the scheduler is looked after.
const TURN: Duration = Duration::from_millis(100);
/// A scheduler that the kernel ends sooner than this has lived briefly. So many in a row are the end; before the
/// others there is a pause, twice as long each time.
const BRIEF: Duration = Duration::from_secs(1);
const MOST_BRIEF: u32 = 10;
const PAUSE: Duration = Duration::from_millis(100);
/// A second signal after so long ends the process where it is.
const PATIENCE: Duration = Duration::from_secs(2);

/// Loads the scheduler and stays until it ends.
///
/// # Errors
/// Why it was not loaded, or what the kernel ended it for.
pub fn run(args: &RunArgs) -> Result<(), ScxError> {
    let mut kept = Kept::default();
    // Code 2 would keep the unit from starting it again after a reload that failed.
    stay(args, &mut kept).map_err(|error| if kept.loaded { error.after_loading() } else { error })
}

fn stay(args: &RunArgs, kept: &mut Kept) -> Result<(), ScxError> {
    // Options first: they are wrong on every machine.
    let online = std::thread::available_parallelism().map_or(1, usize::from);
    Settings::new(args, online, kernel::hz())?;
    let policy = args.policy.as_deref().map(PolicyFile::read).transpose()?;
    kernel::check(Path::new("/sys"), rustix::process::geteuid().is_root())?;
    let abilities = Abilities::of_this_kernel(&optional_callbacks())?;
    for lack in abilities.lacks() {
        warn!("{lack}");
    }
    if let Some(policy) = &policy {
        policy.install();
    }
    let stop = watch_signals()?;
    kept.output = args.stats.map(|_| Output::new(io::stdout()));
    let mut recording = None;
    let mut brief = 0;
    loop {
        let tables = this_machine(args.swqueue_shard.max(1))?;
        let mut settings = Settings::new(args, tables.n_cpus(), kernel::hz())?;
        let doing = Doing::of(&settings, &tables, policy.as_ref());
        if let Some(features) = kept.features {
            settings.policy.features = features;
        }
        if let (Some(path), None) = (&args.record, &recording) {
            recording = Some(Recording::new(path, &settings, &tables)?);
        }
        let exit =
            once(args, &settings, &tables, &abilities, &stop, kept, (&policy, &recording, &doing))?;
        if exit.is_restart() && recording.is_none() && !stop.load(Ordering::Relaxed) {
            let lived = kept.since.map_or(BRIEF, |since| since.elapsed());
            let Some(time) = pause_after(lived, &mut brief) else {
                let reason = format!("{brief} times within a second of its start: {}", exit.reason);
                return Err(ScxError::Ejected(reason));
            };
            info!("loading again: {}", exit.reason);
            pause(time, &stop);
            continue;
        }
        if let Some(recording) = &recording {
            recording.finish()?;
        }
        return last_words(&exit);
    }
}

/// How long to wait before the scheduler is loaded again; none if that is in vain.
fn pause_after(lived: Duration, brief: &mut u32) -> Option<Duration> {
    *brief = if lived < BRIEF { *brief + 1 } else { 0 };
    match *brief {
        0 => Some(Duration::ZERO),
        MOST_BRIEF.. => None,
        n => Some(PAUSE * (1 << (n - 1).min(5))),
    }
}

/// Waits for so long, or for a signal.
fn pause(time: Duration, stop: &AtomicBool) {
    let end = Instant::now() + time;
    while Instant::now() < end && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(TURN.min(time));
    }
}

/// What outlives a loading: hotplug may make another one necessary.
#[derive(Default)]
struct Kept {
    /// It has been loaded once.
    loaded: bool,
    /// When it was loaded last.
    since: Option<Instant>,
    /// When `--exit-after` is over.
    until: Option<Instant>,
    /// As `set` has left them.
    features: Option<u64>,
    /// Clients wait while it is loaded again.
    server: Option<Server>,
    /// Where `--stats` go; none once the reader is gone.
    output: Option<Output>,
}

fn last_words(exit: &Exit) -> Result<(), ScxError> {
    if exit.is_error() {
        if !exit.dump.is_empty() {
            complain(&exit.dump);
        }
        return Err(ScxError::Ejected(exit.reason.clone()));
    }
    match exit {
        exit if exit.is_sysrq() => Err(ScxError::Sysrq),
        exit if exit.is_asked_for() => {
            info!("ended; every task is back with the kernel's own scheduler");
            Ok(())
        }
        _ => Err(ScxError::Ejected(exit.reason.clone())),
    }
}

/// From one loading to the end of it.
fn once(
    args: &RunArgs,
    settings: &Settings,
    tables: &Tables,
    abilities: &Abilities,
    stop: &AtomicBool,
    kept: &mut Kept,
    (policy, recording, doing): (&Option<PolicyFile>, &Option<Recording>, &Doing),
) -> Result<Exit, ScxError> {
    let (policy, recording) = (policy.as_ref(), recording.as_ref());
    let mut room = Room::uninit();
    let mut scheduler =
        Scheduler::load(&mut room, settings, tables, abilities, recording.is_some(), policy)?;
    kept.loaded = true;
    kept.since = Some(Instant::now());
    let server = match kept.server.take() {
        Some(server) => server,
        None => {
            let mut server = Server::listen(Path::new(SOCKET))?;
            if let Err(error) = server.listen_also(Path::new(scx_stats::SOCKET)) {
                warn!("scxtop and scxstats will see nothing: {error}");
            }
            server
        }
    };
    // Once the sockets are there: a unit ordered after this one may ask at once.
    announce(&doing.with(settings.policy.features));
    // From the first loading on: a restart does not start over.
    if let (None, Some(seconds)) = (kept.until, args.exit_after) {
        kept.until = Some(Instant::now() + Duration::from_secs_f64(seconds));
    }
    let every = args.stats.map(Duration::from_secs_f64);
    let mut shown = scheduler.stats();
    let mut show_at = every.filter(|_| kept.output.is_some()).map(|e| Instant::now() + e);
    let due = |at: Option<Instant>| at.is_some_and(|at| Instant::now() >= at);
    let mut exit = None;
    let records = match recording {
        Some(recording) => {
            let mut builder = RingBufferBuilder::new();
            let failed = |e: libbpf_rs::Error| ScxError::Kernel {
                what: "the ring of recorded decisions",
                reason: e.to_string(),
                help: "run it without --record".to_owned(),
            };
            builder.add(scheduler.records(), |bytes| recording.take(bytes)).map_err(failed)?;
            Some(builder.build().map_err(failed)?)
        }
        None => None,
    };
    while exit.is_none() && !stop.load(Ordering::Relaxed) && !due(kept.until) {
        let wait = if let Some(ring) = &records {
            // An interrupted wait is tried again in the next turn.
            let _ = ring.poll(TURN);
            if recording.is_some_and(|r| r.is_full(args.record_limit)) {
                break;
            }
            Duration::ZERO
        } else {
            TURN
        };
        server.serve(wait, |request| answer(&mut scheduler, doing, request));
        scheduler.watch_exits();
        for complaint in scheduler.complaints() {
            warn!("{complaint}");
        }
        if due(show_at) {
            let now = scheduler.stats();
            let text = self::shown(args.json, &shown, &now)?;
            shown = now;
            show_at = every.map(|e| Instant::now() + e);
            if let Some(Err(error)) = kept.output.as_ref().map(|output| output.print(text)) {
                warn!("no more statistics are printed: {error}");
                (kept.output, show_at) = (None, None);
            }
        }
        exit = scheduler.ended();
    }
    kept.server = Some(server);
    kept.features = Some(scheduler.policy().features);
    let ended = scheduler.end();
    if let Some(ring) = &records {
        let _ = ring.consume();
    }
    Ok(exit.unwrap_or(ended))
}

/// What it does, as the log and systemd's status say it.
struct Doing {
    what: String,
    /// Features of the options.
    given: u64,
}

impl Doing {
    /// `settings` are those of the options, before `set` changed them.
    fn of(settings: &Settings, tables: &Tables, policy: Option<&PolicyFile>) -> Doing {
        let what = format!(
            "scheduling {} in {} as {}{}",
            counted(tables.n_cpus(), "CPU"),
            counted(tables.llcs.len(), "cache"),
            format!("{} {}", settings.policy.base, settings.policy.edits).trim_end(),
            policy.map_or_else(String::new, |p| format!("; {} selects the CPU", p.name))
        );
        Doing { what, given: settings.policy.features }
    }

    /// With these features in force.
    fn with(&self, features: u64) -> String {
        let set = [('+', features & !self.given), ('-', self.given & !features)];
        let edit = |(sign, of)| names(of).into_iter().map(move |name| format!("{sign}{name}"));
        let edits: Vec<String> = set.into_iter().flat_map(edit).collect();
        if edits.is_empty() {
            return self.what.clone();
        }
        format!("{}; set: {}", self.what, edits.join(","))
    }
}

/// Logs what it does, and tells systemd, which shows it in the unit's status.
fn announce(what: &str) {
    info!("{what}");
    if let Some(socket) = std::env::var_os("NOTIFY_SOCKET") {
        tell_systemd(Path::new(&socket), &format!("READY=1\nSTATUS={what}"));
    }
}

/// Sends systemd a message of sd_notify(3).
fn tell_systemd(socket: &Path, message: &str) {
    let address = match socket.as_os_str().as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(socket),
    };
    let sent =
        address.and_then(|to| UnixDatagram::unbound()?.send_to_addr(message.as_bytes(), &to));
    if let Err(error) = sent {
        warn!("systemd cannot be told that it schedules: {error}");
    }
}

fn answer(scheduler: &mut Scheduler<'_>, doing: &Doing, request: Request) -> Answer {
    match request {
        Request::Stats => Answer::Stats(Box::new(scheduler.stats())),
        Request::Set(edits) => match edited(&scheduler.policy(), &edits) {
            Ok(policy) => {
                scheduler.set_policy(&policy);
                announce(&doing.with(policy.features));
                Answer::Features(names(policy.features))
            }
            Err(ScxError::Refused { problem, help }) => Answer::Refused { problem, help },
            Err(other) => Answer::Refused { problem: other.to_string(), help: String::new() },
        },
    }
}

/// An interval, as it is printed.
pub fn shown(json: bool, before: &Stats, now: &Stats) -> Result<String, ScxError> {
    if !json {
        return Ok(stats::show(before, now));
    }
    let text = serde_json::to_string(now).map_err(io::Error::from).map_err(ScxError::Output)?;
    Ok(text + "\n")
}

/// A flag that SIGINT, SIGTERM and SIGHUP set. A signal more than [`PATIENCE`] after the first ends the process,
/// for the loop may be stuck writing to standard error; the kernel then takes the scheduler out.
pub fn watch_signals() -> Result<Arc<AtomicBool>, ScxError> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let mut first = None;
    let asked = move || {
        flag.store(true, Ordering::Relaxed);
        if first.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            std::process::exit(1);
        }
    };
    ctrlc::set_handler(asked).map_err(|error| {
        ScxError::io("cannot watch signals", io::Error::other(error), "run it again")
    })?;
    Ok(stop)
}

/// The file that decisions go to.
struct Recording {
    file: RefCell<BufWriter<File>>,
    count: Cell<u64>,
    failed: RefCell<Option<io::Error>>,
    path: String,
}

impl Recording {
    fn new(path: &Path, settings: &Settings, tables: &Tables) -> Result<Recording, ScxError> {
        let cores = |cpus: &[u16]| -> Vec<Vec<u16>> {
            let rows = cpus.iter().map(|&cpu| &tables.cpus[usize::from(cpu)].smt);
            rows.zip(cpus)
                .filter(|(smt, cpu)| smt.first() == Some(cpu))
                .map(|(s, _)| s.clone())
                .collect()
        };
        let header = Header {
            llcs: tables.llcs.iter().map(|llc| cores(&llc.cpus)).collect(),
            min_granularity_ns: settings.tunables.min_granularity_ns,
            hz: settings.tunables.hz,
            imbalance_pct: settings.tunables.imbalance_pct,
            smt_imbalance_pct: settings.tunables.smt_imbalance_pct,
        };
        let name = path.display().to_string();
        let begun = || -> io::Result<BufWriter<File>> {
            let mut file = BufWriter::new(File::create(path)?);
            file.write_all(MAGIC.as_bytes())?;
            serde_json::to_writer(&mut file, &header)?;
            file.write_all(b"\n")?;
            Ok(file)
        };
        let file = begun().map_err(|e| Recording::error(&name, e))?;
        Ok(Recording {
            file: RefCell::new(file),
            count: Cell::new(0),
            failed: RefCell::new(None),
            path: name,
        })
    }

    fn error(path: &str, error: io::Error) -> ScxError {
        ScxError::io(format!("cannot write {path}"), error, "name another file with --record")
    }

    /// Takes one decision out of the ring.
    fn take(&self, bytes: &[u8]) -> i32 {
        if let Err(error) = self.file.borrow_mut().write_all(bytes) {
            *self.failed.borrow_mut() = Some(error);
        }
        self.count.set(self.count.get() + 1);
        0
    }

    fn is_full(&self, limit: Option<u64>) -> bool {
        self.failed.borrow().is_some() || limit.is_some_and(|limit| self.count.get() >= limit)
    }

    fn finish(&self) -> Result<(), ScxError> {
        let failed = self.failed.borrow_mut().take();
        failed
            .map_or_else(|| self.file.borrow_mut().flush(), Err)
            .map_err(|e| Recording::error(&self.path, e))?;
        info!("{} decisions are in {}", self.count.get(), self.path);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use reveille_policy::bits;

    use super::*;

    #[test]
    fn systemd_is_told() {
        let doing = Doing { what: "scheduling".into(), given: bits::SIS_SHORT | bits::SIS_UTIL };
        assert_eq!(doing.with(doing.given), "scheduling");
        assert_eq!(
            doing.with(bits::SWQUEUE | bits::SIS_UTIL),
            "scheduling; set: +SWQUEUE,-SIS_SHORT"
        );
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let systemd = UnixDatagram::bind(&path).unwrap();
        tell_systemd(&path, "READY=1");
        let mut heard = [0; 16];
        let n = systemd.recv(&mut heard).unwrap();
        assert_eq!(&heard[..n], b"READY=1");
    }

    #[test]
    fn reloads_that_do_not_last_come_later_and_end() {
        let mut brief = 0;
        let mut after = |ms| pause_after(Duration::from_millis(ms), &mut brief);
        assert_eq!(after(1000), Some(Duration::ZERO));
        assert_eq!([after(10), after(10)], [Some(PAUSE), Some(PAUSE * 2)]);
        assert_eq!(after(5000), Some(Duration::ZERO));
        let pauses: Vec<_> = std::iter::from_fn(|| after(999)).collect();
        assert_eq!(pauses.len(), 9);
        assert_eq!((pauses[0], pauses[8]), (PAUSE, PAUSE * 32));
    }
}
