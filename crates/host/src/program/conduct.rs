//! The coordinator: creates all processes, starts them together, reads their counters at both ends
//! of the measured time, and kills them. In between it sleeps, except for periodic checks that all
//! are alive.

use std::sync::atomic::Ordering;

use reveille_measure::{
    Counters, GroupStats, Latency, Ns, Observed, RunResult, RunSpec, UNANSWERED,
};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, kill_process_group, setpgid, wait, waitpid,
};

use super::arena::Phase;
use super::sample::CpuSample;
use super::{HostRun, Run, histogram, worker};
use crate::cgroup;
use crate::error::{HostError, Result};
use crate::kernel::TaskUse;
use crate::sys::clock;
use crate::sys::process::{Alone, Fork};

/// Interval of those checks.
const LOOK_NS: Ns = 20_000_000;
/// Interval of the checks while processes are being created.
const LOOK_AT_START_NS: Ns = 500_000;
/// Respawning stops this long after the end, should the coordinator not kill the tasks.
const LATE_NS: Ns = 1_000_000_000;

pub(super) fn conduct(run: &'static Run, spec: &RunSpec) -> Result<HostRun> {
    let crew = Crew::start(run)?;
    let arena = &run.arena;
    while arena.ready() < run.program.tasks.len() {
        clock::sleep(LOOK_AT_START_NS);
        crew.look_after()?;
    }
    let start = run.start_after(clock::now());
    crew.sleep_until(start)?;
    arena.start_at(start);
    arena.respawn_until(start + spec.warmup_ns + spec.duration_ns + LATE_NS);
    arena.enter(Phase::WarmUp);
    crew.sleep_until(start + spec.warmup_ns)?;

    let uses = crew.uses()?;
    let cpus = CpuSample::now(&run.cpus)?;
    let groups = group_stats(run)?;
    let begin = clock::now();
    let counted = arena.counted();
    arena.enter(Phase::Measure);

    crew.sleep_until(begin + spec.duration_ns)?;

    arena.enter(Phase::End);
    let end = clock::now();
    if run.respawns && !arena.respawns() {
        return Err(HostError::system(
            "end the run in time",
            std::io::Error::other("its coordinator did not come to run for a second"),
            "run fewer tasks, or nothing else beside them",
        ));
    }
    let operations = arena.counted().wrapping_sub(counted);
    let groups_after = group_stats(run)?;
    let cpus_after = CpuSample::now(&run.cpus)?;
    let uses_after = crew.uses()?;
    crew.look_after()?;
    crew.end();

    let elapsed_ns = end - begin;
    let used = used(&uses, &uses_after, elapsed_ns);
    let tasks = used.as_ref().map(total);
    let groups = groups.iter().zip(&groups_after).map(|(a, b)| cgroup::added(b, a)).collect();
    let cpu_times = cpus_after.times_since(&cpus, elapsed_ns);
    Ok(HostRun {
        result: RunResult {
            elapsed_ns,
            operations,
            wakeup_latency: Latency::default(),
            recorded_latency: recorded(run),
            answers: answers(run),
            observed: Observed::FromOutside {
                migrations: tasks
                    .filter(|_| run.kernel_tells_migrations)
                    .map(|tasks| tasks.migrations),
            },
            counters: Counters {
                context_switches: cpus_after.switches_since(&cpus),
                idle_task_ns: cpu_times.iter().map(|time| time.idle_ns).sum(),
                ..Counters::default()
            },
            cpus: cpu_times,
            groups: with_usage(run, groups, used.as_deref()),
        },
        tasks,
        loops_per_us: run.speed.rounds_per_ns * 1e3,
    })
}

/// The processes of a run, in their own process group. Dropping it kills them.
struct Crew {
    run: &'static Run,
    /// The first process, whose id is the group's.
    first: Option<Pid>,
    /// By process: its initial id.
    pids: Vec<Pid>,
}

impl Crew {
    fn start(run: &'static Run) -> Result<Crew> {
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
                    // If it has died already, `look_after` reports it.
                    let _ = setpgid(Some(pid), Some(*crew.first.get_or_insert(pid)));
                    crew.pids.push(pid);
                }
            }
        }
        Ok(crew)
    }

    /// Sleeps, with periodic checks of the processes.
    fn sleep_until(&self, end: Ns) -> Result<()> {
        loop {
            self.look_after()?;
            let now = clock::now();
            if now >= end {
                return Ok(());
            }
            clock::sleep_until(end.min(now + LOOK_NS));
        }
    }

    /// Reaps respawned processes.
    fn look_after(&self) -> Result<()> {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if !(self.run.respawns && status.exit_status() == Some(0)) {
                // A fault reported before the exit is the better reason.
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

    /// CPU use of each task so far, with the time of the reading; `None` if tasks are respawned,
    /// since their counters go with them.
    fn uses(&self) -> Result<Option<Vec<(Ns, TaskUse)>>> {
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

    /// Kills all processes and waits until they are gone.
    fn end(self) {}
}

impl Drop for Crew {
    fn drop(&mut self) {
        let Some(first) = self.first else { return };
        loop {
            // Also hits processes that are just being forked.
            let _ = kill_process_group(first, Signal::KILL);
            // Also reaps one that died before it joined the group.
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

fn group_stats(run: &Run) -> Result<Vec<GroupStats>> {
    run.groups.iter().map(|group| group.stats.read(&group.name)).collect()
}

/// Use of each task, and the share of it within the measured time: it was read some time before the
/// start and after the end, and is assumed to be uniform in between.
fn used(
    before: &Option<Vec<(Ns, TaskUse)>>,
    after: &Option<Vec<(Ns, TaskUse)>>,
    elapsed_ns: Ns,
) -> Option<Vec<(TaskUse, f64)>> {
    let pairs = before.as_ref()?.iter().zip(after.as_ref()?);
    let share = |whole: Ns| elapsed_ns as f64 / whole.max(1) as f64;
    Some(pairs.map(|(a, b)| (b.1 - a.1, share(b.0 - a.0))).collect())
}

/// The shares of several tasks; summed before rounding, since many tasks use little.
fn total<'a>(used: impl IntoIterator<Item = &'a (TaskUse, f64)>) -> TaskUse {
    let mut sums = [0.0; 6];
    for (used, share) in used {
        let figures = [
            used.cpu_ns,
            used.run_delay_ns,
            used.timeslices,
            used.voluntary_switches,
            used.involuntary_switches,
            used.migrations,
        ];
        for (sum, figure) in sums.iter_mut().zip(figures) {
            *sum += figure as f64 * share;
        }
    }
    let [cpu_ns, run_delay_ns, timeslices, voluntary, involuntary, migrations] =
        sums.map(|sum| sum.round() as u64);
    TaskUse {
        cpu_ns,
        run_delay_ns,
        timeslices,
        voluntary_switches: voluntary,
        involuntary_switches: involuntary,
        migrations,
    }
}

/// With usage from the tasks' CPU time where no file has the group's.
fn with_usage(
    run: &Run,
    mut groups: Vec<GroupStats>,
    used: Option<&[(TaskUse, f64)]>,
) -> Vec<GroupStats> {
    for (index, group) in groups.iter_mut().enumerate().filter(|(i, _)| !run.usage_told[*i]) {
        let inside = |task: usize| run.is_in_group(task as u32, index);
        let used = used.unwrap_or(&[]).iter().enumerate().filter(|(task, _)| inside(*task));
        group.usage_ns = total(used.map(|(_, used)| used)).cpu_ns;
    }
    groups
}

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

fn answers(run: &Run) -> Vec<Ns> {
    let took = run.arena.answers.iter().map(|took| match took.load(Ordering::Relaxed) {
        0 => UNANSWERED,
        ns => ns,
    });
    took.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_added_before_they_are_rounded() {
        let once = TaskUse { voluntary_switches: 1, cpu_ns: 1000, ..TaskUse::default() };
        let before = Some(vec![(0, TaskUse::default()); 8]);
        let after = Some(vec![(400, once); 8]);
        let total = total(&used(&before, &after, 100).unwrap());
        assert_eq!((total.voluntary_switches, total.cpu_ns, total.migrations), (2, 2000, 0));
        assert!(used(&None, &after, 100).is_none());
    }
}
