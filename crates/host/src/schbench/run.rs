//! One run: starts all threads, lets them go at once, watches them, and stops them. A
//! thread that cannot be started ends the run before it has begun.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use reveille_machine::CpuId;

use super::closed;
use super::matrix::Matrices;
use super::open::{self, Goal};
use super::options::{Cpus, Era, Schbench};
use super::think::{CpuLocks, Thinking};
use super::threads::{Control, Messenger, SCOPE, Worker};
use crate::error::{HostError, Result};
use crate::sys::{cpu, futex};

/// Stack of a thread, which calls little.
const STACK_BYTES: usize = 128 << 10;

/// Writes to standard error; ignores errors.
pub(super) fn say(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Where threads may run; `None`: anywhere.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Places {
    message: Option<Vec<CpuId>>,
    workers: Option<Vec<CpuId>>,
}

impl Places {
    pub fn new(job: &Schbench, allowed: &[CpuId]) -> Result<Places> {
        match (&job.message_cpus, &job.worker_cpus) {
            (Cpus::Auto, Cpus::List(_)) | (Cpus::List(_), Cpus::Auto) => Err(HostError::input(
                "one of `-M` and `-W` is `auto`, which places message threads and workers both, \
                 and the other a list",
                "give lists to both, or leave the list out",
            )),
            (Cpus::Auto, _) | (_, Cpus::Auto) => Places::auto(job.message_threads, allowed),
            (message, workers) => Ok(Places {
                message: of_list("-M", message, allowed)?,
                workers: of_list("-W", workers, allowed)?,
            }),
        }
    }

    /// A CPU for each message thread, the others for the workers.
    fn auto(message_threads: u32, allowed: &[CpuId]) -> Result<Places> {
        let count = message_threads as usize;
        if count >= allowed.len() {
            return Err(HostError::input(
                format!(
                    "`auto` gives each of {count} message threads a CPU and leaves none of {} to \
                     the workers",
                    allowed.len()
                ),
                "use fewer message threads (-m), or lists of CPUs for -M and -W",
            ));
        }
        say("auto pinning message and worker threads\n");
        let (message, workers) = allowed.split_at(count);
        Ok(Places { message: Some(message.to_vec()), workers: Some(workers.to_vec()) })
    }
}

fn of_list(option: &str, cpus: &Cpus, allowed: &[CpuId]) -> Result<Option<Vec<CpuId>>> {
    let Cpus::List(list) = cpus else { return Ok(None) };
    let missing = list.iter().find(|cpu| !allowed.contains(cpu));
    match missing {
        None if !list.is_empty() => Ok(Some(list.clone())),
        None => Err(HostError::input(format!("`{option}` names no CPU"), "such as 0-3,8")),
        Some(cpu) => Err(HostError::input(
            format!("`{option}`: CPU {cpu} is not among those that this run may use: {allowed:?}"),
            "name CPUs of this list",
        )),
    }
}

/// What all threads read.
#[derive(Debug)]
pub(super) struct Shared {
    pub job: Schbench,
    pub control: Control,
    pub goal: Goal,
    gate: Gate,
    places: Places,
    common: Arc<Matrices>,
    locks: Arc<CpuLocks>,
}

/// Holds threads until all are there.
#[derive(Debug, Default)]
struct Gate(AtomicU32);

const CLOSED: u32 = 0;
const OPEN: u32 = 1;
const CALLED_OFF: u32 = 2;

impl Gate {
    fn set(&self, state: u32) {
        self.0.store(state, Ordering::SeqCst);
        futex::wake(&self.0, i32::MAX as u32, SCOPE);
    }

    /// Waits. False if there will be no run.
    fn pass(&self) -> bool {
        while self.0.load(Ordering::SeqCst) == CLOSED {
            futex::wait(&self.0, CLOSED, SCOPE, None);
        }
        self.0.load(Ordering::SeqCst) == OPEN
    }
}

/// A thread that waits at the gate, with its number in the kernel.
enum Ready {
    Messenger { thread: u32 },
    Worker { thread: u32, of: usize, index: usize, worker: Arc<Worker> },
}

type Report = Result<Ready>;

pub(super) struct Crew {
    pub shared: Arc<Shared>,
    pub messengers: Vec<Arc<Messenger>>,
    pub workers: Vec<Arc<Worker>>,
    pub message_threads: Vec<u32>,
    pub worker_threads: Vec<u32>,
    handles: Vec<JoinHandle<()>>,
}

impl Crew {
    /// Starts the threads and opens the gate.
    pub fn start(job: Schbench, workers: u32, places: Places) -> Result<Crew> {
        let common = Matrices::new(job.edges().1).map_err(no_memory)?;
        let goal = Goal::default();
        goal.set(job.rps_at_start().unwrap_or(0));
        let messengers = (0..job.message_threads).map(|_| Arc::default()).collect();
        let mut crew = Crew {
            shared: Arc::new(Shared {
                job,
                control: Control::default(),
                goal,
                gate: Gate::default(),
                places,
                common: Arc::new(common),
                locks: Arc::new(CpuLocks::new()),
            }),
            messengers,
            workers: Vec::new(),
            message_threads: Vec::new(),
            worker_threads: Vec::new(),
            handles: Vec::new(),
        };
        let started =
            crew.start_threads(workers).and_then(|reports| crew.assemble(workers, reports));
        match started {
            Ok(()) => crew.shared.gate.set(OPEN),
            Err(error) => {
                crew.shared.gate.set(CALLED_OFF);
                crew.join()?;
                return Err(error);
            }
        }
        Ok(crew)
    }

    fn start_threads(&mut self, workers: u32) -> Result<Receiver<Report>> {
        let (report, reports) = channel();
        for (of, messenger) in self.messengers.iter().enumerate() {
            let (shared, own, to) =
                (Arc::clone(&self.shared), Arc::clone(messenger), report.clone());
            let run = move || message_thread(&shared, &own, of, to);
            self.handles.push(start_thread("schbench-msg", run)?);
            for index in 0..workers as usize {
                let (shared, own, to) =
                    (Arc::clone(&self.shared), Arc::clone(messenger), report.clone());
                let run = move || worker_thread(&shared, &own, of, index, to);
                self.handles.push(start_thread("schbench-worker", run)?);
            }
        }
        Ok(reports)
    }

    /// Waits until all threads are ready, and tells message threads their workers.
    fn assemble(&mut self, workers: u32, reports: Receiver<Report>) -> Result<()> {
        let mut of_each = vec![Vec::new(); self.messengers.len()];
        for report in reports {
            match report? {
                Ready::Messenger { thread } => self.message_threads.push(thread),
                Ready::Worker { thread, of, index, worker } => {
                    self.worker_threads.push(thread);
                    self.workers.push(Arc::clone(&worker));
                    of_each[of].push((index, worker));
                }
            }
        }
        for (messenger, mut own) in self.messengers.iter().zip(of_each) {
            if own.len() != workers as usize {
                return Err(died());
            }
            own.sort_by_key(|(index, _)| *index);
            let own = own.into_iter().map(|(_, worker)| worker).collect();
            messenger.workers.set(own).expect("set once");
        }
        Ok(())
    }

    pub fn stop(&mut self) -> Result<()> {
        self.shared.control.stop();
        self.messengers.iter().for_each(|messenger| messenger.bell().post(SCOPE));
        self.workers.iter().for_each(|worker| worker.bell().post(SCOPE));
        self.join()
    }

    fn join(&mut self) -> Result<()> {
        let ends: Vec<_> = self.handles.drain(..).map(JoinHandle::join).collect();
        if ends.iter().all(Result::is_ok) { Ok(()) } else { Err(died()) }
    }
}

fn died() -> HostError {
    HostError::Died { who: "a thread of schbench".into(), how: "ended before its time".into() }
}

fn no_memory(_: std::collections::TryReserveError) -> HostError {
    let help = "use less cache footprint (-F) or fewer workers (-m, -t)";
    HostError::system("allocate the matrices", std::io::ErrorKind::OutOfMemory, help)
}

fn start_thread(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).stack_size(STACK_BYTES).spawn(run).map_err(|error| {
        let help = "use fewer message threads (-m) or workers (-t), or raise the limit \
                    (`ulimit -u`, `pids.max` of the task group)";
        HostError::system("start all threads", error, help)
    })
}

fn this_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

fn pin(cpus: &[CpuId]) -> Result<()> {
    cpu::pin(cpus).map_err(|error| {
        HostError::system(format!("run on CPUs {cpus:?}"), error, "name CPUs that are online")
    })
}

fn message_thread(shared: &Shared, own: &Messenger, of: usize, report: Sender<Report>) {
    let pinned = shared.places.message.as_ref().map_or(Ok(()), |cpus| {
        let cpu = cpus[of % cpus.len()];
        say(&format!("Pinning to message thread index {of} cpu {cpu}\n"));
        pin(&[cpu])
    });
    // The receiver is gone after the first problem.
    let _ = report.send(pinned.map(|()| Ready::Messenger { thread: this_thread() }));
    drop(report);
    if !shared.gate.pass() {
        return;
    }
    let (job, control) = (&shared.job, &shared.control);
    let workers = own.workers.get().expect("set before the gate opens");
    let share = || open::share(shared.goal.get(), job.message_threads, of as u32);
    match (job.rps_at_start(), job.era) {
        (None, _) => closed::answer(control, own, workers, job, of as u32),
        (Some(_), Era::Current) => open::send_each_second(control, own, workers, share),
        (Some(_), _) => open::send_batches(control, own, workers, share()),
    }
}

fn worker_thread(
    shared: &Shared,
    messenger: &Messenger,
    of: usize,
    index: usize,
    report: Sender<Report>,
) {
    let (job, control) = (&shared.job, &shared.control);
    let pinned = shared.places.workers.as_ref().map_or(Ok(()), |cpus| pin(cpus));
    let thinking =
        pinned.and_then(|()| Thinking::new(job, &shared.common, &shared.locks).map_err(no_memory));
    let thinking = match thinking {
        Ok(thinking) => thinking,
        Err(error) => {
            let _ = report.send(Err(error));
            return;
        }
    };
    let worker = Arc::new(Worker::new(job));
    let ready = Ready::Worker { thread: this_thread(), of, index, worker: Arc::clone(&worker) };
    let _ = report.send(Ok(ready));
    drop(report);
    if !shared.gate.pass() {
        return;
    }
    let pipe = job.pipe_bytes.is_some();
    let index = index as u32;
    match (job.era, job.rps_at_start()) {
        (Era::Current, None) => {
            let thinking = (!pipe).then_some(&thinking);
            closed::work_after_wakeup(control, messenger, &worker, index, thinking);
        }
        (_, None) => {
            closed::spin_before_message(control, messenger, &worker, index, &thinking, pipe);
        }
        (Era::Current, Some(_)) => open::serve_requests(control, &worker, &thinking),
        (_, Some(_)) => open::serve_spinning(control, &worker, &thinking),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_gives_message_threads_the_first_cpus_and_workers_only_the_rest() {
        let mut job = Schbench::new(Era::Current);
        job.message_threads = 2;
        for (message, workers) in [(Cpus::Auto, Cpus::Any), (Cpus::Any, Cpus::Auto)] {
            (job.message_cpus, job.worker_cpus) = (message, workers);
            let places = Places::new(&job, &[1, 4, 5, 9]).unwrap();
            let expected = Places { message: Some(vec![1, 4]), workers: Some(vec![5, 9]) };
            assert_eq!(places, expected);
        }
        assert!(Places::new(&job, &[0, 1]).is_err(), "no CPU is left");
        job.message_cpus = Cpus::List(vec![1]);
        assert!(Places::new(&job, &[1, 4, 5, 9]).is_err(), "auto and a list");
    }

    #[test]
    fn a_thread_that_cannot_be_set_up_calls_the_run_off() {
        let mut job = Schbench::new(Era::Current);
        job.message_threads = 2;
        // The highest CPU that the mask can name; a host that has it passes trivially.
        let places = Places { message: None, workers: Some(vec![1023]) };
        if cpu::allowed().unwrap().contains(&1023) {
            return;
        }
        // Returns at all only if every thread that was started has ended.
        let error = Crew::start(job, 3, places).err().expect("no such CPU");
        assert!(matches!(error, HostError::System { .. }), "{error}");
        assert!(error.to_string().contains("run on CPUs [1023]"), "{error}");
    }

    #[test]
    fn a_list_names_cpus_that_may_be_used() {
        let mut job = Schbench::new(Era::Current);
        job.worker_cpus = Cpus::List(vec![4, 7]);
        let places = Places::new(&job, &[1, 4, 5, 7]).unwrap();
        assert_eq!(places, Places { message: None, workers: Some(vec![4, 7]) });
        let error = Places::new(&job, &[1, 4]).unwrap_err().to_string();
        assert!(error.contains("`-W`") && error.contains("CPU 7"), "{error}");
    }
}
