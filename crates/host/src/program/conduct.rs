//! The coordinator: makes all processes, starts them together, reads what they have counted
//! at both ends of the measured time, and ends them. While they run it sleeps, but for a
//! look every now and then at whether all are still there.

use reveille_measure::{GroupStats, Latency, Observed, RunResult, RunSpec};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, kill_process_group, setpgid, wait, waitpid,
};

use super::arena::Phase;
use super::sample::{self, CpuSample};
use super::{HostRun, Run, histogram, worker};
use crate::sys::clock;
use crate::sys::process::{Alone, Fork};
use crate::{HostError, Ns, TaskUse};

/// How often the coordinator looks after the processes.
const LOOK_NS: Ns = 20_000_000;
/// The same while they are being made.
const LOOK_AT_START_NS: Ns = 500_000;

/// Runs it.
pub(super) fn conduct(run: &'static Run, spec: &RunSpec) -> Result<HostRun, HostError> {
    let crew = Crew::start(run)?;
    let arena = &run.arena;
    while arena.ready() < run.program.tasks.len() {
        clock::sleep(LOOK_AT_START_NS);
        crew.look_after()?;
    }
    arena.enter(Phase::WarmUp);
    crew.sleep_until(clock::now() + spec.warmup_ns)?;

    let uses = crew.uses()?;
    let cpus = CpuSample::now(&run.cpus)?;
    let groups = group_stats(run)?;
    let begin = clock::now();
    let counted = arena.counted();
    arena.enter(Phase::Measure);

    crew.sleep_until(begin + spec.duration_ns)?;

    arena.enter(Phase::End);
    let end = clock::now();
    let operations = arena.counted().wrapping_sub(counted);
    let groups_after = group_stats(run)?;
    let cpus_after = CpuSample::now(&run.cpus)?;
    let uses_after = crew.uses()?;
    crew.look_after()?;
    crew.end();

    let elapsed_ns = end - begin;
    let used = used(&uses, &uses_after, elapsed_ns);
    let groups = groups.iter().zip(&groups_after).map(|(a, b)| sample::added(b, a)).collect();
    Ok(HostRun {
        result: RunResult {
            elapsed_ns,
            operations,
            wakeup_latency: Latency::default(),
            recorded_latency: recorded(run),
            observed: Observed::FromOutside {
                migrations: if run.kernel_tells_migrations {
                    used.as_ref().map(|used| total(used).migrations)
                } else {
                    None
                },
            },
            counters: reveille_measure::Counters {
                context_switches: cpus_after.switches_since(&cpus),
                idle_task_ns: cpus_after
                    .times_since(&cpus, elapsed_ns)
                    .iter()
                    .map(|time| time.idle_ns)
                    .sum(),
                ..Default::default()
            },
            cpus: cpus_after.times_since(&cpus, elapsed_ns),
            groups: with_usage(run, groups, used.as_deref()),
        },
        tasks: used.as_deref().map(total),
        loops_per_us: run.speed.rounds_per_ns * 1e3,
    })
}

/// The processes of a run, in a process group of their own. Dropped, they are gone.
struct Crew {
    run: &'static Run,
    /// Its first process, whose id is that of the group.
    first: Option<Pid>,
    /// By process: its id at the start.
    pids: Vec<Pid>,
}

impl Crew {
    fn start(run: &'static Run) -> Result<Crew, HostError> {
        let refused = |error| {
            let doing = format!("start {} processes", run.processes.len());
            HostError::system(doing, error, "allow more processes (ulimit -u), or run fewer tasks")
        };
        let alone = Alone::check().map_err(refused)?;
        let mut crew = Crew { run, first: None, pids: Vec::with_capacity(run.processes.len()) };
        for tasks in &run.processes {
            match alone.fork().map_err(refused)? {
                Fork::Child => {
                    std::mem::forget(crew);
                    worker::live(run, tasks, alone)
                }
                Fork::Parent(pid) => {
                    // If it has died already, looking after it will tell.
                    let _ = setpgid(Some(pid), Some(*crew.first.get_or_insert(pid)));
                    crew.pids.push(pid);
                }
            }
        }
        Ok(crew)
    }

    /// Sleeps, and looks after the processes.
    fn sleep_until(&self, end: Ns) -> Result<(), HostError> {
        loop {
            self.look_after()?;
            let now = clock::now();
            if now >= end {
                return Ok(());
            }
            clock::sleep_until(end.min(now + LOOK_NS));
        }
    }

    /// Takes the remains of those that were replaced.
    ///
    /// # Errors
    /// A task could not go on; a process has died that should not.
    fn look_after(&self) -> Result<(), HostError> {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if !(self.run.respawns && status.exit_status() == Some(0)) {
                // What it said before it ended is the better reason.
                return Err(self.fault().unwrap_or_else(|| self.died(pid, status)));
            }
        }
        self.fault().map_or(Ok(()), Err)
    }

    fn fault(&self) -> Option<HostError> {
        self.run.arena.fault().map(|fault| fault.error(&self.run.program))
    }

    fn died(&self, pid: Pid, status: WaitStatus) -> HostError {
        let process = self.pids.iter().position(|&p| p == pid);
        let roles: Vec<&str> = process.map_or(Vec::new(), |process| {
            let role = |&task: &u32| usize::from(self.run.program.tasks[task as usize].role);
            let tasks = self.run.processes[process].iter().map(role);
            let mut roles: Vec<usize> = tasks.collect();
            roles.sort_unstable();
            roles.dedup();
            roles.iter().map(|&role| self.run.program.roles[role].name.as_str()).collect()
        });
        let of = if roles.is_empty() { String::new() } else { format!(" ({})", roles.join(", ")) };
        let how = match (status.terminating_signal(), status.exit_status()) {
            (Some(signal), _) => format!("was killed by signal {signal}"),
            (None, Some(code)) => format!("ended with exit code {code}"),
            (None, None) => "ended".to_owned(),
        };
        HostError::Died { who: format!("process {pid}{of}"), how }
    }

    /// What each task has used so far, and when it was asked; nothing if tasks are replaced,
    /// who take their figures with them.
    fn uses(&self) -> Result<Option<Vec<(Ns, TaskUse)>>, HostError> {
        if self.run.respawns {
            return Ok(None);
        }
        let of = |own: &super::arena::Own| {
            let [process, thread] =
                [&own.process, &own.thread].map(|id| id.load(std::sync::atomic::Ordering::Acquire));
            let at = clock::now();
            TaskUse::of_thread(process, thread).map(|used| (at, used))
        };
        let uses: Result<Vec<_>, _> = self.run.arena.own.iter().map(|own| of(own)).collect();
        uses.map(Some).or_else(|error| {
            self.look_after()?;
            Err(HostError::system("read what tasks used", error, "mount /proc"))
        })
    }

    /// Ends all processes; returns when nothing is left of them.
    fn end(self) {}
}

impl Drop for Crew {
    fn drop(&mut self) {
        let Some(first) = self.first else { return };
        loop {
            // Those that are just being started are hit as well, or not started at all.
            let _ = kill_process_group(first, Signal::KILL);
            // One that died before it came into the group is reaped here, too.
            for &pid in &self.pids {
                let _ = waitpid(Some(pid), WaitOptions::NOHANG);
            }
            match wait(WaitOptions::NOHANG) {
                Err(Errno::CHILD) => return,
                Ok(Some(_)) => {}
                _ => clock::sleep(LOOK_AT_START_NS / 5),
            }
        }
    }
}

fn group_stats(run: &Run) -> Result<Vec<GroupStats>, HostError> {
    run.groups.iter().map(sample::group_stats).collect()
}

/// What each task used in the measured time: it was asked some time before its begin and
/// some time after its end, and is taken to have used as much per time.
fn used(
    before: &Option<Vec<(Ns, TaskUse)>>,
    after: &Option<Vec<(Ns, TaskUse)>>,
    elapsed_ns: Ns,
) -> Option<Vec<TaskUse>> {
    let pairs = before.as_ref()?.iter().zip(after.as_ref()?);
    Some(pairs.map(|(a, b)| share(b.1 - a.1, elapsed_ns, b.0 - a.0)).collect())
}

fn share(used: TaskUse, part: Ns, whole: Ns) -> TaskUse {
    let of = |n: u64| (u128::from(n) * u128::from(part) / u128::from(whole.max(1))) as u64;
    TaskUse {
        cpu_ns: of(used.cpu_ns),
        run_delay_ns: of(used.run_delay_ns),
        timeslices: of(used.timeslices),
        voluntary_switches: of(used.voluntary_switches),
        involuntary_switches: of(used.involuntary_switches),
        migrations: of(used.migrations),
    }
}

fn total(used: &[TaskUse]) -> TaskUse {
    let mut total = TaskUse::default();
    for &task in used {
        total += task;
    }
    total
}

/// The same with the CPU time of tasks where no file tells that of the group.
fn with_usage(run: &Run, groups: Vec<GroupStats>, used: Option<&[TaskUse]>) -> Vec<GroupStats> {
    let mut groups = groups;
    for (index, group) in groups.iter_mut().enumerate().filter(|(i, _)| !run.usage_told[*i]) {
        let inside = |task: usize| run.is_in_group(task as u32, index);
        let used = used.unwrap_or(&[]).iter().enumerate().filter(|(task, _)| inside(*task));
        group.usage_ns = used.map(|(_, used)| used.cpu_ns).sum();
    }
    groups
}

/// The latencies of all tasks.
fn recorded(run: &Run) -> Vec<Latency> {
    let mut latencies = vec![Latency::default(); run.program.records.len()];
    for (number, task) in run.program.tasks.iter().enumerate() {
        let cells = &run.arena.latencies[run.arena.histograms(number, task.role)];
        let records = &run.arena.recorded_by[usize::from(task.role)];
        for (cells, &record) in cells.chunks(histogram::CELLS).zip(records) {
            histogram::add_to(cells, &mut latencies[usize::from(record)]);
        }
    }
    latencies
}
