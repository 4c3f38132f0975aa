//! Makes a [`Program`] of a workload for a load and parameters: one instance per
//! unit of load, each with its own tasks, channels and lists.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::amount::{Amount, ParamKind};
use crate::error::Mistake;
use crate::task::{Code, OpSource, Process, TaskSource};
use crate::{Op, Program, Role, TaskSpec, Workload, WorkloadError};

/// A run has no more tasks, channels or lists than this.
const MAX_TASKS: u64 = 1_000_000;

impl Workload {
    /// Makes the tasks for `load` instances, with `params` in place of defaults. The
    /// program's metric is the first of [`metrics`](Workload::metrics).
    ///
    /// # Errors
    /// [`WorkloadError::Param`] for a parameter that does not exist or a value that
    /// is not of its kind; [`WorkloadError::Load`] for a load of 0 or of more than
    /// a million tasks; [`WorkloadError::File`] where the file makes no sense with
    /// these parameters, such as a role without tasks or one that takes no time.
    pub fn build(
        &self,
        load: u64,
        params: &BTreeMap<String, String>,
    ) -> Result<Program, WorkloadError> {
        let values = self.values(params)?;
        if load == 0 {
            let help = format!("give 1 or more {}", self.load_unit);
            return Err(self.load_error(load, "nothing would run".into(), help));
        }
        let counts = self.counts(&values)?;
        let per_instance: u64 = counts.iter().sum();
        for (n, what) in [
            (per_instance, "tasks"),
            (self.channels.len() as u64, "channels"),
            (self.lists.len() as u64, "lists"),
        ] {
            if n.checked_mul(load).is_none_or(|all| all > MAX_TASKS) {
                let problem = format!("more than {MAX_TASKS} {what}");
                let help = format!("each of the {} has {n} {what}: give fewer", self.load_unit);
                return Err(self.load_error(load, problem, help));
            }
        }
        let mut roles = Vec::with_capacity(self.tasks.len());
        for index in 0..self.tasks.len() {
            roles.push(self.role(index, &counts, &values)?);
        }
        let kinds = self.channels.iter().map(|c| c.1);
        Ok(Program {
            name: self.name.clone(),
            roles,
            tasks: self.task_specs(load as u32, &counts),
            channels: (0..load).flat_map(|_| kinds.clone()).collect(),
            n_lists: load as u32 * self.lists.len() as u32,
            metric: self.metrics[0].clone(),
        })
    }

    /// Every parameter's value, in the order of the file.
    fn values(&self, params: &BTreeMap<String, String>) -> Result<Vec<u64>, WorkloadError> {
        let wrong = |param: &str, mistake: Mistake| WorkloadError::Param {
            workload: self.name.clone(),
            param: param.to_owned(),
            problem: mistake.problem,
            help: mistake.help,
        };
        let known = self.params.iter().map(|p| p.name.as_str());
        if let Some(unknown) = params.keys().find(|name| !known.clone().any(|k| k == *name)) {
            return Err(wrong(unknown, Mistake::unknown("parameter", unknown, known)));
        }
        let value = |(param, kind): (&crate::Param, &ParamKind)| {
            let text = params.get(&param.name).unwrap_or(&param.default);
            kind.kind.parse(text.trim()).map_err(|mistake| wrong(&param.name, mistake))
        };
        self.params.iter().zip(&self.param_kinds).map(value).collect()
    }

    /// Tasks of each role in one instance.
    fn counts(&self, values: &[u64]) -> Result<Vec<u64>, WorkloadError> {
        let count = |task: &TaskSource| {
            let wrong = |problem: String, help: &str| {
                let problem = format!("task `{}` {problem}", task.name);
                self.error(&task.span, Some("count"), values, [&task.count], &problem, help)
            };
            match task.count.value(values) {
                n @ 1..=MAX_TASKS => Ok(n),
                0 => Err(wrong("has no task".to_owned(), "count from 1")),
                n => Err(wrong(
                    format!("has {n} tasks in each instance"),
                    "at most 1000000 are possible",
                )),
            }
        };
        self.tasks.iter().map(count).collect()
    }

    /// A role with its amounts filled in.
    fn role(&self, index: usize, counts: &[u64], values: &[u64]) -> Result<Role, WorkloadError> {
        let task = &self.tasks[index];
        let mut ops = Vec::with_capacity(task.ops.len());
        for op in &task.ops {
            ops.push(self.op(op, counts, values)?);
        }
        if !ops.iter().any(|op| self.takes_time(op, index, counts)) {
            let problem = format!("task `{}` would loop without taking time", task.name);
            let help = "let it run, spin, sleep, wait, or receive from another task";
            return Err(self.error(&task.span, None, values, task.amounts(), &problem, help));
        }
        Ok(Role { name: task.name.clone(), ops })
    }

    fn op(&self, op: &OpSource, counts: &[u64], values: &[u64]) -> Result<Op, WorkloadError> {
        let wrong = |problem: &str, help: &str| {
            let amounts = op.code.amounts();
            self.error(&op.span, Some(op.key), values, amounts, problem, help)
        };
        let positive = |amount: &Amount| match u32::try_from(amount.value(values)) {
            Ok(n @ 1..) => Ok(n),
            Ok(0) => Err(wrong("is 0", "count from 1")),
            Err(_) => Err(wrong("is too large", "at most 4294967295 is possible")),
        };
        Ok(match &op.code {
            Code::Run(time) => Op::Run(time.value(values)),
            Code::Spin(time) => Op::Spin(time.value(values)),
            Code::Send { channel, bytes } => {
                Op::Send { channel: *channel as u16, bytes: positive(bytes)? }
            }
            Code::Recv { channel } => Op::Recv { channel: *channel as u16 },
            Code::Sleep { time, jitter } => {
                Op::Sleep { time: time.value(values), jitter: jitter.value(values) }
            }
            Code::Wait { timeout: None, .. } => Op::Wait { timeout: 0, jitter: 0 },
            Code::Wait { timeout: Some(timeout), jitter } => match timeout.value(values) {
                0 => return Err(wrong("is a limit of 0", "give it a time, or `wait = true`")),
                timeout => Op::Wait { timeout, jitter: jitter.value(values) },
            },
            Code::Post { role } => {
                let first: u64 = counts[..*role].iter().sum();
                if counts[*role] > 1 {
                    let name = &self.tasks[*role].name;
                    let problem = format!("an instance has {} tasks `{name}`", counts[*role]);
                    return Err(wrong(&problem, "post a task of which each instance has one"));
                }
                let task = u16::try_from(first).map_err(|_| {
                    wrong("stands after more than 65535 tasks", "move its [[task]] to the front")
                })?;
                Op::Post { task }
            }
            Code::Join { list } => Op::Join { list: *list as u16 },
            Code::WakeList { list } => Op::WakeList { list: *list as u16 },
            Code::Record => Op::Record,
            Code::Count(n) => Op::Count(positive(n)?),
        })
    }

    /// Can this operation of role `own` take time? Receiving does not when the task
    /// has sent itself what it receives.
    fn takes_time(&self, op: &Op, own: usize, counts: &[u64]) -> bool {
        match *op {
            Op::Run(time) | Op::Spin(time) => time > 0,
            Op::Sleep { time, jitter } => time > 0 || jitter > 0,
            Op::Wait { .. } => true,
            Op::Recv { channel } => self.tasks.iter().enumerate().any(|(role, task)| {
                (role != own || counts[own] > 1) && task.sends(usize::from(channel))
            }),
            _ => false,
        }
    }

    /// All tasks, instance by instance, and in each in the order of the file.
    fn task_specs(&self, load: u32, counts: &[u64]) -> Vec<TaskSpec> {
        let per_instance = counts.iter().sum::<u64>() as u32;
        let mut specs = Vec::with_capacity(load as usize * per_instance as usize);
        let mut processes = 0..;
        let mut next = || processes.next().unwrap_or(u32::MAX);
        let shares = |how| self.tasks.iter().any(|task| task.process == how);
        let of_run = if shares(Process::Run) { next() } else { 0 };
        for instance in 0..load {
            let of_instance = if shares(Process::Instance) { next() } else { 0 };
            for (role, task) in self.tasks.iter().enumerate() {
                for _ in 0..counts[role] {
                    specs.push(TaskSpec {
                        role: role as u16,
                        process: match task.process {
                            Process::Own => next(),
                            Process::Instance => of_instance,
                            Process::Run => of_run,
                        },
                        channel_base: instance * self.channels.len() as u32,
                        list_base: instance * self.lists.len() as u32,
                        task_base: instance * per_instance,
                    });
                }
            }
        }
        specs
    }

    fn load_error(&self, load: u64, problem: String, help: String) -> WorkloadError {
        WorkloadError::Load { workload: self.name.clone(), load, problem, help }
    }

    /// A mistake in the file that may be due to parameters: says which.
    fn error<'a>(
        &self,
        span: &Range<usize>,
        key: Option<&str>,
        values: &[u64],
        amounts: impl IntoIterator<Item = &'a Amount>,
        problem: &str,
        help: &str,
    ) -> WorkloadError {
        let mut due: Vec<usize> = amounts.into_iter().filter_map(Amount::param).collect();
        due.sort_unstable();
        due.dedup();
        let due: Vec<String> =
            due.into_iter().map(|p| format!("{} = {}", self.params[p].name, values[p])).collect();
        let problem = match due.len() {
            0 => problem.to_owned(),
            _ => format!("{problem} (with {})", due.join(", ")),
        };
        self.source.error(span, key, Mistake::new(problem, help))
    }
}

impl TaskSource {
    fn amounts(&self) -> Vec<&Amount> {
        self.ops.iter().flat_map(|op| op.code.amounts()).collect()
    }

    fn sends(&self, to: usize) -> bool {
        self.ops.iter().any(|op| matches!(op.code, Code::Send { channel, .. } if channel == to))
    }
}
