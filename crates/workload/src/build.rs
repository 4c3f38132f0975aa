//! Makes a [`Program`] of a workload for a load and parameters: one instance per
//! unit of load, each with its own tasks, channels and lists.

use std::collections::BTreeMap;
use std::ops::Range;

use reveille_place::Mistake;

use crate::amount::{Amount, MAX_TIME_NS, ParamKind};
use crate::channels::{ChannelRef, Which};
use crate::error::{Result, WorkloadError};
use crate::file::Workload;
use crate::operation::{Code, OpSource, flatten};
use crate::program::{Arrivals, ChannelKind, Op, Port, Program, Role, TaskSpec};
use crate::task::{Process, TaskSource};
use crate::trace::{self, Trace};

/// A run has no more tasks, channels or lists than this.
const MAX_TASKS: u64 = 1_000_000;
/// Wakeups from outside, in all copies of a trace.
const MAX_ARRIVALS: u64 = 20_000_000;
/// A program has no more operations than this, each member of an array counted.
const MAX_OPS: usize = 65_535;
/// Name of the task that releases the others.
pub(crate) const PARENT: &str = "parent";
/// A pipe holds 16 pages.
const PIPE_BYTES: u32 = 65_536;

/// Numbers that a load and parameters lead to.
struct Filled<'a> {
    values: &'a [u64],
    /// Tasks of each role in an instance.
    counts: &'a [u64],
    /// First channel of each name in an instance, and how many it stands for.
    channels: &'a [(u64, u64)],
}

impl Workload {
    /// Makes the tasks for `load` instances, with `params` in place of defaults. The
    /// program's metric is the first of [`metrics`](Workload::metrics).
    ///
    /// # Errors
    /// [`WorkloadError::Param`] for a parameter that does not exist or a value that
    /// is not of its kind; [`WorkloadError::Load`] for a load of 0 or of more than
    /// a million tasks; [`InputError::File`](reveille_place::InputError::File) where the file makes no sense with
    /// these parameters, such as a role without tasks or one that takes no time.
    pub fn build(&self, load: u64, params: &BTreeMap<String, String>) -> Result<Program> {
        let values = self.values(params)?;
        if load == 0 {
            let help = format!("give 1 or more {}", self.load_unit);
            return Err(self.load_error(load, "nothing would run".into(), help));
        }
        if let Some(trace) = &self.trace {
            return self.copies(trace, load, params);
        }
        let counts = self.counts(&values)?;
        let channels = self.channel_arrays(&values)?;
        let per_instance: u64 = counts.iter().sum();
        let n_channels: u64 = channels.iter().map(|c| c.1).sum();
        for (n, what) in [
            (per_instance, "tasks"),
            (n_channels, "channels"),
            (self.lists.len() as u64, "lists"),
            (self.locks.len() as u64, "locks"),
        ] {
            self.check_number(load, n, MAX_TASKS, what)?;
        }
        let filled = Filled { values: &values, counts: &counts, channels: &channels };
        let roles = (0..self.tasks.len()).map(|index| self.role(index, &filled));
        let mut roles = roles.collect::<Result<Vec<_>, _>>()?;
        let mut tasks = self.task_specs(load as u32, &filled);
        if let Some(sync) = self.release() {
            // It forks all others, and is there when they are.
            tasks.push(self.parent(roles.len() as u16, &tasks, &values));
            let ops = vec![Op::Release { sync }, Op::Wait { timeout: 0, jitter: 0 }];
            roles.push(Role { name: PARENT.to_owned(), ops });
        }
        let kinds = self.channels.iter().zip(&channels).flat_map(|(source, (_, n))| {
            std::iter::repeat_n(source.kind.value(&values), *n as usize)
        });
        let kinds: Vec<ChannelKind> = kinds.collect();
        Ok(Program {
            name: self.name.clone(),
            roles,
            tasks,
            channels: kinds.repeat(load as usize),
            n_lists: load as u32 * self.lists.len() as u32,
            n_locks: load as u32 * self.locks.len() as u32,
            arrivals: Arrivals::default(),
            records: self.records.clone(),
            metric: self.metrics[0].clone(),
        })
    }

    fn copies(
        &self,
        trace: &Trace,
        load: u64,
        params: &BTreeMap<String, String>,
    ) -> Result<Program> {
        let only = params.get(trace::ONLY).map_or("*", String::as_str);
        let kept = trace.kept(only).map_err(|mistake| self.param_error(trace::ONLY, mistake))?;
        self.check_number(load, kept.roles.len() as u64, MAX_TASKS, "tasks")?;
        self.check_number(load, kept.n_arrivals() as u64, MAX_ARRIVALS, "wakeups from outside")?;
        let (tasks, arrivals) = kept.copies(load);
        Ok(Program {
            name: self.name.clone(),
            roles: kept.roles,
            tasks,
            channels: Vec::new(),
            n_lists: 0,
            n_locks: 0,
            arrivals,
            records: self.records.clone(),
            metric: self.metrics[0].clone(),
        })
    }

    /// Refuses more than `most` of anything that an instance has `n` of.
    fn check_number(&self, load: u64, n: u64, most: u64, what: &str) -> Result<()> {
        if n.checked_mul(load).is_some_and(|all| all <= most) {
            return Ok(());
        }
        let problem = format!("more than {most} {what}");
        let help = format!("each of the {} has {n} {what}: give fewer", self.load_unit);
        Err(self.load_error(load, problem, help))
    }

    fn values(&self, params: &BTreeMap<String, String>) -> Result<Vec<u64>> {
        let known = self.params.iter().map(|p| p.name.as_str());
        if let Some(unknown) = params.keys().find(|name| !known.clone().any(|k| k == *name)) {
            return Err(self.param_error(unknown, Mistake::unknown("parameter", unknown, known)));
        }
        let value = |(param, kind): (&crate::file::Param, &ParamKind)| {
            let text = params.get(&param.name).unwrap_or(&param.default);
            kind.parse(text.trim()).map_err(|mistake| self.param_error(&param.name, mistake))
        };
        self.params.iter().zip(&self.param_kinds).map(value).collect()
    }

    fn param_error(&self, param: &str, mistake: Mistake) -> WorkloadError {
        WorkloadError::Param { workload: self.name.clone(), param: param.to_owned(), mistake }
    }

    fn counts(&self, values: &[u64]) -> Result<Vec<u64>> {
        let count = |task: &TaskSource| {
            let wrong = |problem: String, help: &str| {
                let problem = format!("task `{}` {problem}", task.name);
                self.error(&task.span, Some("count"), values, [&task.count], &problem, help)
            };
            let count = task.count.value(values).map_err(|m| wrong(m.problem, &m.help))?;
            match count {
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

    /// First channel and number of channels of each name in one instance.
    fn channel_arrays(&self, values: &[u64]) -> Result<Vec<(u64, u64)>> {
        let mut first = 0;
        let mut arrays = Vec::with_capacity(self.channels.len());
        for channel in &self.channels {
            let wrong = |problem: String, help: &str| {
                let problem = format!("channel `{}` {problem}", channel.name);
                self.error(
                    &channel.span,
                    Some("channels"),
                    values,
                    [&channel.count],
                    &problem,
                    help,
                )
            };
            let n = channel.count.value(values).map_err(|m| wrong(m.problem, &m.help))?;
            if n == 0 {
                return Err(wrong("has no member".into(), "count from 1"));
            }
            arrays.push((first, n));
            first += n;
            if n > u64::from(u16::MAX) || first > u64::from(u16::MAX) {
                let help = "at most 65535 channels are possible in one instance";
                return Err(wrong(format!("has {n} members"), help));
            }
        }
        Ok(arrays)
    }

    /// A role with its amounts filled in.
    fn role(&self, index: usize, filled: &Filled) -> Result<Role> {
        let task = &self.tasks[index];
        let mut ops = Vec::with_capacity(task.ops.len());
        self.ops(&task.ops, index, 0, filled, &mut ops)?;
        let wrong = |problem: String, help: &str| {
            self.error(&task.span, None, filled.values, task.amounts(), &problem, help)
        };
        if !ops.iter().any(|op| self.takes_time(op, index, filled)) {
            let problem = format!("task `{}` would loop without taking time", task.name);
            let help = "let it run, spin, sleep, wait, or receive from another task";
            return Err(wrong(problem, help));
        }
        Ok(Role { name: task.name.clone(), ops })
    }

    /// Operations of role `own` one after the other, loops and arrays written out.
    fn ops(
        &self,
        sources: &[OpSource],
        own: usize,
        depth: u8,
        filled: &Filled,
        ops: &mut Vec<Op>,
    ) -> Result<()> {
        for source in sources {
            if ops.len() > MAX_OPS {
                let task = &self.tasks[own];
                let problem = format!("task `{}` has too many operations", task.name);
                let help = "65535 are possible, each member of an array counted";
                let (span, values) = (&task.span, filled.values);
                return Err(self.error(span, None, values, task.amounts(), &problem, help));
            }
            let wrong = |problem: &str, help: &str| {
                let amounts = source.code.amounts();
                self.error(&source.span, Some(&source.key), filled.values, amounts, problem, help)
            };
            match &source.code {
                Code::Send { to, .. } | Code::Recv { from: to, .. } => {
                    let ports =
                        self.ports(*to, own, filled).map_err(|m| wrong(&m.problem, &m.help))?;
                    for port in ports {
                        ops.push(self.op(source, Some(port), filled)?);
                    }
                }
                Code::Repeat { times, ops: inner } => {
                    let times =
                        times.value(filled.values).map_err(|m| wrong(&m.problem, &m.help))?;
                    let times = match u32::try_from(times) {
                        Ok(times @ 1..) => times,
                        Ok(0) => return Err(wrong("is 0", "count from 1")),
                        Err(_) => {
                            return Err(wrong("is too large", "at most 4294967295 is possible"));
                        }
                    };
                    let first = ops.len();
                    self.ops(inner, own, depth + 1, filled, ops)?;
                    if ops[first..].iter().all(is_bookkeeping) {
                        let help = "let something run, wait or be sent in each round";
                        return Err(wrong("would loop without taking time", help));
                    }
                    let back = u16::try_from(ops.len() - first)
                        .map_err(|_| wrong("has too many operations", "65535 are possible"))?;
                    ops.push(Op::Again { back, times, depth });
                }
                _ => ops.push(self.op(source, None, filled)?),
            }
        }
        Ok(())
    }

    /// The channels that an operation is about, in turn.
    fn ports(&self, to: ChannelRef, own: usize, filled: &Filled) -> Result<Vec<Port>, Mistake> {
        let (first, n) = filled.channels[to.channel];
        let name = &self.channels[to.channel].name;
        let port = |index: u64| Port::from((first + index) as u16);
        match to.which {
            Which::One if n > 1 => Err(Mistake::new(
                format!("`{name}` is {n} channels"),
                format!("write `{name}[own]` for one of them, or `{name}[*]` for all"),
            )),
            Which::Own if filled.counts[own] > n => Err(Mistake::new(
                format!(
                    "`{name}` is {n} channels for {} tasks `{}`",
                    filled.counts[own], self.tasks[own].name
                ),
                "give each task its channel",
            )),
            Which::One => Ok(vec![port(0)]),
            Which::Own => Ok(vec![Port { own: true, ..port(0) }]),
            Which::Each => Ok((0..n).map(port).collect()),
        }
    }

    fn op(&self, op: &OpSource, port: Option<Port>, filled: &Filled) -> Result<Op> {
        let wrong = |problem: &str, help: &str| {
            let amounts = op.code.amounts();
            self.error(&op.span, Some(&op.key), filled.values, amounts, problem, help)
        };
        let value =
            |amount: &Amount| amount.value(filled.values).map_err(|m| wrong(&m.problem, &m.help));
        let time = |amount: &Amount| match value(amount)? {
            time @ 0..=MAX_TIME_NS => Ok(time),
            _ => Err(wrong("is more than an hour", "no time in a workload is longer")),
        };
        let positive = |amount: &Amount| match u32::try_from(value(amount)?) {
            Ok(n @ 1..) => Ok(n),
            Ok(0) => Err(wrong("is 0", "count from 1")),
            Err(_) => Err(wrong("is too large", "at most 4294967295 is possible")),
        };
        let task_number = |role: usize| {
            let first: u64 = filled.counts[..role].iter().sum();
            u16::try_from(first).map_err(|_| {
                wrong("stands after more than 65535 tasks", "move its [[task]] to the front")
            })
        };
        let channel = port.unwrap_or(Port::from(0));
        Ok(match &op.code {
            Code::Run { time: mean, random: true } => Op::RunRandom(time(mean)?),
            Code::Run { time: t, .. } => Op::Run(time(t)?),
            Code::Spin(t) => Op::Spin(time(t)?),
            Code::Send { to, bytes } => {
                if value(bytes)? == 0 {
                    return Err(wrong("sends no bytes", "write `bytes = 1` or more"));
                }
                let bytes = positive(bytes)?;
                let kind = self.channels[to.channel].kind.value(filled.values);
                if kind == ChannelKind::Pipe && bytes > PIPE_BYTES {
                    return Err(wrong("is more than a pipe holds", "send 65536 bytes or fewer"));
                }
                Op::Send { channel, bytes }
            }
            Code::Recv { from, framed, discard } => {
                let kind = self.channels[from.channel].kind.value(filled.values);
                if *framed && kind == ChannelKind::Udp {
                    let help = "leave `framed` out: one call receives a datagram";
                    return Err(wrong("has no stream of bytes to read a length from", help));
                }
                if *discard && kind != ChannelKind::Tcp {
                    return Err(wrong("cannot discard", "only tcp does: leave `discard` out"));
                }
                Op::Recv { channel, framed: *framed, discard: *discard }
            }
            Code::Syscall(t) => Op::Syscall(time(t)?),
            Code::Sleep { time: mean, random: true, .. } => Op::SleepRandom(time(mean)?),
            Code::Sleep { time: t, jitter, .. } => {
                Op::Sleep { time: time(t)?, jitter: time(jitter)? }
            }
            Code::Period { period, restart } => match time(period)? {
                0 => return Err(wrong("is a period of 0", "give it a time")),
                period => Op::Period { period, restart: *restart },
            },
            Code::Wait { timeout: None, .. } => Op::Wait { timeout: 0, jitter: 0 },
            Code::Wait { timeout: Some(timeout), jitter } => match time(timeout)? {
                0 => return Err(wrong("is a limit of 0", "give it a time, or `wait = true`")),
                timeout => Op::Wait { timeout, jitter: time(jitter)? },
            },
            Code::Post { role } => {
                let n = filled.counts[*role];
                if n > 1 {
                    let name = &self.tasks[*role].name;
                    let problem = format!("an instance has {n} tasks `{name}`");
                    return Err(wrong(&problem, "post a task of which each instance has one"));
                }
                Op::Post { task: task_number(*role)? }
            }
            Code::Join { list } => Op::Join { list: *list as u16 },
            Code::WakeList { list } => Op::WakeList { list: *list as u16 },
            Code::Request { role, batch } => Op::Request {
                first: task_number(*role)?,
                among: filled.counts[*role] as u32,
                count: positive(batch)?,
            },
            Code::Serve => Op::Serve,
            Code::Note => Op::Note,
            Code::Record { record, less } => {
                let number = self.records.iter().position(|r| r == record).unwrap_or(0);
                Op::Record { record: number as u8, less: time(less)? }
            }
            Code::LockCpu => Op::LockCpu,
            Code::UnlockCpu => Op::UnlockCpu,
            Code::Lock { lock } => Op::Lock { lock: *lock as u16 },
            Code::Unlock { lock } => Op::Unlock { lock: *lock as u16 },
            Code::Respawn => Op::Respawn,
            Code::Count(n) => Op::Count(positive(n)?),
            Code::AwaitRelease { sync } => Op::AwaitRelease { sync: *sync },
            Code::Repeat { .. } => unreachable!("a loop is written out by its caller"),
        })
    }

    /// Can this operation of role `own` take time? Receiving does not when the task has
    /// sent itself what it receives; sending does when it can come to wait for room.
    fn takes_time(&self, op: &Op, own: usize, filled: &Filled) -> bool {
        match *op {
            Op::Run(time) | Op::RunRandom(time) | Op::Spin(time) | Op::SleepRandom(time) => {
                time > 0
            }
            Op::Sleep { time, jitter } => time > 0 || jitter > 0,
            Op::Wait { .. } | Op::Serve | Op::Period { .. } => true,
            Op::Send { channel, .. } => {
                let index = self.channel_name(channel, filled);
                self.channels[index].kind.value(filled.values) != ChannelKind::Udp
                    && self.others(own, filled, |task| task.receives(index))
            }
            Op::Recv { channel, .. } => {
                let index = self.channel_name(channel, filled);
                self.others(own, filled, |task| task.sends(index))
            }
            _ => false,
        }
    }

    /// Index of the name that a port belongs to.
    fn channel_name(&self, port: Port, filled: &Filled) -> usize {
        filled.channels.partition_point(|(first, _)| *first <= u64::from(port.first)) - 1
    }

    /// Is there another task than one of role `own` for which `does` holds?
    fn others(&self, own: usize, filled: &Filled, does: impl Fn(&TaskSource) -> bool) -> bool {
        let other = |role: usize| role != own || filled.counts[own] > 1;
        self.tasks.iter().enumerate().any(|(role, task)| other(role) && does(task))
    }

    /// All tasks, instance by instance, and in each in the order of the file.
    fn task_specs(&self, load: u32, filled: &Filled) -> Vec<TaskSpec> {
        let counts = filled.counts;
        let n_channels = filled.channels.iter().map(|c| c.1).sum::<u64>() as u32;
        let per_instance = counts.iter().sum::<u64>() as u32;
        let mut specs = Vec::with_capacity(load as usize * per_instance as usize);
        let mut processes = 0..;
        let mut next = || processes.next().unwrap_or(u32::MAX);
        let shares = |how| self.tasks.iter().any(|t| t.process.value(filled.values) == how);
        let of_run = if shares(Process::Run) { next() } else { 0 };
        for instance in 0..load {
            let of_instance = if shares(Process::Instance) { next() } else { 0 };
            for (role, task) in self.tasks.iter().enumerate() {
                for own in 0..counts[role] {
                    specs.push(TaskSpec {
                        first_op: 0,
                        role: role as u16,
                        process: match task.process.value(filled.values) {
                            Process::Own => next(),
                            Process::Instance => of_instance,
                            Process::Run => of_run,
                        },
                        channel_base: instance * n_channels,
                        list_base: instance * self.lists.len() as u32,
                        task_base: instance * per_instance,
                        lock_base: instance * self.locks.len() as u32,
                        own: own as u16,
                    });
                }
            }
        }
        specs
    }

    /// Are tasks released together, and by a sync wakeup?
    pub(crate) fn release(&self) -> Option<bool> {
        let ops = self.tasks.iter().flat_map(|task| flatten(&task.ops, 1));
        let mut ways = ops.filter_map(|op| match op.code {
            Code::AwaitRelease { sync } => Some(sync),
            _ => None,
        });
        ways.next()
    }

    /// The task that releases all that await it. It shares the run's process, if there is one.
    fn parent(&self, role: u16, tasks: &[TaskSpec], values: &[u64]) -> TaskSpec {
        let of_run =
            |t: &&TaskSpec| self.tasks[usize::from(t.role)].process.value(values) == Process::Run;
        let process = match tasks.iter().find(of_run) {
            Some(task) => task.process,
            None => tasks.iter().map(|t| t.process + 1).max().unwrap_or(0),
        };
        TaskSpec { process, task_base: tasks.len() as u32, ..TaskSpec::of_role(role) }
    }

    fn load_error(&self, load: u64, problem: String, help: String) -> WorkloadError {
        let mistake = Mistake::new(problem, help);
        WorkloadError::Load { workload: self.name.clone(), load, mistake }
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
        let mut due: Vec<usize> = amounts.into_iter().flat_map(Amount::params).collect();
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
        flatten(&self.ops, 1).into_iter().flat_map(|op| op.code.amounts()).collect()
    }

    fn sends(&self, channel: usize) -> bool {
        self.any(&|code| matches!(code, Code::Send { to, .. } if to.channel == channel))
    }

    fn receives(&self, channel: usize) -> bool {
        self.any(&|code| matches!(code, Code::Recv { from, .. } if from.channel == channel))
    }
}

/// Can the operation take no time? Uncontended locks do not.
fn is_bookkeeping(op: &Op) -> bool {
    matches!(
        op,
        Op::Join { .. }
            | Op::Note
            | Op::Record { .. }
            | Op::Count(_)
            | Op::Again { .. }
            | Op::LockCpu
            | Op::UnlockCpu
            | Op::Lock { .. }
            | Op::Unlock { .. }
            | Op::Syscall(_)
            | Op::AwaitRelease { .. }
            | Op::Run(0)
            | Op::RunRandom(0)
            | Op::Spin(0)
    )
}
