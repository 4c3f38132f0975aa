//! Runs a workload's program on this host's kernel: its tasks are threads and processes that
//! interpret the simulator's operations in real time, with the system calls of the original
//! programs. docs/host.md lists each operation's implementation.
//!
//! The job runs in a child ([`crate::supervise`]), the coordinator. It forks one process per
//! process of the program, and these start their threads. All share memory mapped beforehand, which
//! the coordinator reads at both ends of the measured time.

mod arena;
mod channel;
mod conduct;
mod fault;
mod gate;
mod histogram;
mod sample;
mod sync;
mod turns;
mod work;
mod worker;

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use reveille_machine::CpuId;
use reveille_measure::{Ns, RunResult, RunSpec};
use reveille_workload::{Op, Program, TaskSpec};
use rustix::process::{Pid, getpid};
use serde::{Deserialize, Serialize};

use crate::cgroup::GroupFiles;
use crate::error::{HostError, Result};
use crate::kernel::TaskUse;
use crate::supervise::{self, Job, Place, Runner};
use crate::sys::cpu;
use crate::sys::futex::Scope;
use arena::Arena;
use channel::Channel;
use gate::Gate;
use work::Speed;

/// Where a program runs, and in which task groups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// CPUs to run on; empty for all that are allowed.
    pub cpus: Vec<CpuId>,
    /// Existing task groups, parents first. A task enters the last one that names its role.
    pub groups: Vec<GroupFiles>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostRun {
    /// In the simulator's format. Of the scheduler's internals only what
    /// [`Observed::FromOutside`](reveille_measure::Observed::FromOutside) names is known; `cpus`
    /// are those that the run was allowed, ascending.
    pub result: RunResult,
    /// Use of all tasks in the measured time; `None` if tasks are respawned, since their counters
    /// go with them.
    pub tasks: Option<TaskUse>,
    /// Calibrated speed: rounds of the computing loop (six dependent operations) per us.
    pub loops_per_us: f64,
}

/// Runs a program on this host in a child of `exe`, the path of `reveille`. `spec` gives real
/// times; its seed determines sleeps and computing times.
///
/// # Errors
/// [`HostError::Input`] or [`HostError::System`] for channels, tasks, CPUs or groups that are
/// impossible here, and for a full request queue; [`HostError::Died`] if a task ends prematurely;
/// [`HostError::Interrupted`] about 20 ms after `stop` is set. Everything is killed in each case.
pub fn run(
    exe: &Path,
    program: &Program,
    setting: &Setting,
    spec: &RunSpec,
    stop: &AtomicBool,
) -> Result<HostRun> {
    let place = Place { cpus: setting.cpus.clone(), join: Vec::new() };
    let job = RunProgram { program: program.clone(), groups: setting.groups.clone(), spec: *spec };
    supervise::run(exe, &place, job, stop)
}

#[derive(Debug, Serialize, Deserialize)]
pub struct RunProgram {
    program: Program,
    groups: Vec<GroupFiles>,
    spec: RunSpec,
}

inventory::submit!(Runner::of::<RunProgram>());

impl Job for RunProgram {
    const NAME: &'static str = "program";
    type Output = HostRun;

    fn run(self) -> Result<HostRun> {
        let spec = self.spec;
        // Threads and processes refer to it for the rest of their lives.
        let run: &'static Run = Box::leak(Box::new(Run::prepare(self)?));
        conduct::conduct(run, &spec)
    }
}

/// Read-only state from before the first fork.
#[derive(Debug)]
struct Run {
    program: Program,
    groups: Vec<GroupFiles>,
    /// By group: does a file show its CPU time?
    usage_told: Vec<bool>,
    /// By role.
    group_of_role: Vec<Option<usize>>,
    seed: u64,
    channels: Vec<Channel>,
    gate: Gate,
    arena: Arena,
    speed: Speed,
    /// Tasks of each process in starting order.
    processes: Vec<Vec<u32>>,
    /// By task: is its whole instance in one process?
    instance_in_process: Vec<bool>,
    /// Futex scope of the channels.
    scope: Scope,
    /// The process that forked all others.
    coordinator: Pid,
    cpus: Vec<CpuId>,
    /// Does the program respawn tasks?
    respawns: bool,
    kernel_tells_migrations: bool,
}

impl Run {
    fn prepare(job: RunProgram) -> Result<Run> {
        let RunProgram { program, groups, spec } = job;
        let channels = channel::open(&program)?;
        let arena = Arena::new(&program).map_err(|error| {
            let doing = format!("map memory for {} tasks", program.tasks.len());
            HostError::system(doing, error, "run fewer tasks")
        })?;
        let processes = processes(&program);
        let respawns = program.roles.iter().any(|role| role.ops.contains(&Op::Respawn));
        let usage_told: Vec<bool> =
            groups.iter().map(|group| group.stats.tell_usage()).collect::<Result<_, _>>()?;
        let cpus = cpu::allowed()
            .map_err(|error| HostError::system("read the affinity", error, "report it"))?;
        let run = Run {
            group_of_role: group_of_role(&program, &groups),
            groups,
            usage_told,
            seed: spec.seed,
            channels,
            arena,
            gate: Gate::new(&program)?,
            speed: Speed::measure(),
            instance_in_process: instances_in_processes(&program),
            scope: if processes.len() == 1 { Scope::Private } else { Scope::Shared },
            processes,
            coordinator: getpid(),
            cpus,
            respawns,
            kernel_tells_migrations: fs::read_to_string("/proc/self/sched")
                .is_ok_and(|text| text.contains("se.nr_migrations")),
            program,
        };
        run.check_groups()?;
        Ok(run)
    }

    fn check_groups(&self) -> Result<()> {
        for tasks in &self.processes {
            let own = |task: &&u32| self.group_of(**task).is_some();
            let Some(&task) = tasks.iter().find(own) else { continue };
            let mixed = self.common_group(tasks).is_none();
            let stuck = |group: usize| self.groups[group].threads.is_empty();
            if mixed && tasks.iter().filter_map(|&t| self.group_of(t)).any(stuck) {
                let role = usize::from(self.program.tasks[task as usize].role);
                let problem = format!(
                    "tasks of one process of `{}` are in different task groups, `{}` among them",
                    self.program.name, self.program.roles[role].name
                );
                let help = "mount the first version of the cpu controller, or let all roles of \
                            a process be in one group";
                return Err(HostError::input(problem, help));
            }
        }
        match self.usage_told.iter().position(|told| !told) {
            Some(group) if self.respawns => {
                let problem = format!(
                    "no file tells the CPU time of group `{}`, whose tasks are replaced",
                    self.groups[group].name
                );
                Err(HostError::input(problem, "mount the cpuacct controller together with cpu"))
            }
            _ => Ok(()),
        }
    }

    /// The first moment from `now` on at which the group with a requested phase, the first that has
    /// one, is at that phase.
    fn start_after(&self, now: Ns) -> Ns {
        self.groups.iter().find_map(|group| group.phase).map_or(now, |phase| phase.start_after(now))
    }

    fn group_of(&self, task: u32) -> Option<usize> {
        self.group_of_role[usize::from(self.program.tasks[task as usize].role)]
    }

    /// The group that all of these tasks enter, if it is one.
    fn common_group(&self, tasks: &[u32]) -> Option<usize> {
        let first = self.group_of(*tasks.first()?)?;
        tasks.iter().all(|&task| self.group_of(task) == Some(first)).then_some(first)
    }

    /// Is a task in this group or a descendant of it?
    fn is_in_group(&self, task: u32, group: usize) -> bool {
        let mut own = self.group_of(task);
        while let Some(index) = own {
            if index == group {
                return true;
            }
            // Parents come first.
            own = self.groups[index].parent.filter(|&parent| parent < index);
        }
        false
    }

    /// Futex scope of a task's instance.
    fn scope_of(&self, task: &TaskSpec) -> Scope {
        match self.instance_in_process[task.task_base as usize] {
            true => Scope::Private,
            false => Scope::Shared,
        }
    }
}

/// For each role the last group that names it.
fn group_of_role(program: &Program, groups: &[GroupFiles]) -> Vec<Option<usize>> {
    let names = |group: &GroupFiles, role: usize| {
        group.roles.is_empty() || group.roles.contains(&(role as u16))
    };
    let last = |role| groups.iter().rposition(|group| names(group, role));
    (0..program.roles.len()).map(last).collect()
}

/// Tasks of each process; processes are sorted by their first tasks.
fn processes(program: &Program) -> Vec<Vec<u32>> {
    let mut processes: Vec<Vec<u32>> = Vec::new();
    let mut index_of = std::collections::HashMap::new();
    for (number, task) in program.tasks.iter().enumerate() {
        let index = *index_of.entry(task.process).or_insert(processes.len());
        if index == processes.len() {
            processes.push(Vec::new());
        }
        processes[index].push(number as u32);
    }
    processes
}

/// By first task of each instance: are all of its tasks in one process?
fn instances_in_processes(program: &Program) -> Vec<bool> {
    let mut within = vec![true; program.tasks.len()];
    for task in &program.tasks {
        let first = &program.tasks[task.task_base as usize];
        if first.process != task.process {
            within[task.task_base as usize] = false;
        }
    }
    within
}
