//! Refuses workload files whose tasks could not do what they say: wait for what
//! no task does, join a list twice, or measure what nothing records.

use std::collections::BTreeMap;

use reveille_place::Mistake;

use crate::build::PARENT;
use crate::error::{Result, WorkloadError};
use crate::file::Workload;
use crate::operation::{Code, OpSource, flatten};
use crate::program::MetricKind;
use crate::table::Table;
use crate::task::TaskSource;

const MISSING: &str = "add what is missing, or leave the entry out";

impl Workload {
    /// Checks the file as a whole, then its tasks.
    pub(crate) fn check(&self, top: &Table) -> Result<()> {
        self.check_channels(top)?;
        self.check_lists(top)?;
        self.check_locks(top)?;
        self.check_params(top)?;
        self.check_metrics(top)?;
        self.check_tasks()
    }

    /// Checks each task, then that the workload can be built with its defaults.
    pub(crate) fn check_tasks(&self) -> Result<()> {
        for (role, task) in self.tasks.iter().enumerate() {
            self.check_posts(role, task)?;
            self.check_requests(role, task)?;
            self.check_joins(task)?;
            self.check_records(task)?;
            self.check_held(task)?;
            self.check_release(task)?;
        }
        self.build(1, &BTreeMap::new()).map(drop)
    }

    fn any(&self, is: impl Fn(&Code) -> bool) -> bool {
        self.tasks.iter().any(|task| task.any(&is))
    }

    fn check_channels(&self, top: &Table) -> Result<()> {
        for (index, channel) in self.channels.iter().enumerate() {
            let name = &channel.name;
            let sent = self.any(|c| matches!(c, Code::Send { to, .. } if to.channel == index));
            let received =
                self.any(|c| matches!(c, Code::Recv { from, .. } if from.channel == index));
            let lack = match (sent, received) {
                (true, true) => continue,
                (false, _) => "sends to",
                (true, false) => "receives from",
            };
            return Err(unused(top, "channels", &format!("no task {lack} channel `{name}`")));
        }
        Ok(())
    }

    fn check_lists(&self, top: &Table) -> Result<()> {
        for (index, name) in self.lists.iter().enumerate() {
            let joined = self.any(|c| matches!(c, Code::Join { list } if *list == index));
            let woken = self.any(|c| matches!(c, Code::WakeList { list } if *list == index));
            let lack = match (joined, woken) {
                (true, true) => continue,
                (false, _) => "joins",
                (true, false) => "wakes",
            };
            return Err(unused(top, "lists", &format!("no task {lack} list `{name}`")));
        }
        Ok(())
    }

    fn check_locks(&self, top: &Table) -> Result<()> {
        for (index, name) in self.locks.iter().enumerate() {
            if !self.any(|c| matches!(c, Code::Lock { lock } if *lock == index)) {
                return Err(unused(top, "locks", &format!("no task takes lock `{name}`")));
            }
        }
        Ok(())
    }

    fn check_params(&self, top: &Table) -> Result<()> {
        let mut used: Vec<usize> = Vec::new();
        for task in &self.tasks {
            let ops = flatten(&task.ops, 1);
            let amounts = ops.iter().flat_map(|op| op.code.amounts()).chain([&task.count]);
            used.extend(amounts.flat_map(|amount| amount.params()));
            used.extend(task.process.param());
        }
        for channel in &self.channels {
            used.extend(channel.count.params());
            used.extend(channel.kind.param());
        }
        for (index, param) in self.params.iter().enumerate() {
            if !used.contains(&index) {
                return Err(unused(top, "params", &format!("nothing uses `${}`", param.name)));
            }
        }
        Ok(())
    }

    fn check_metrics(&self, top: &Table) -> Result<()> {
        let places = top.require("metric", "[]")?.array("[]")?;
        for (metric, place) in self.metrics.iter().zip(places) {
            let (there, op) = match metric.kind {
                MetricKind::Throughput => (self.any(|c| matches!(c, Code::Count(_))), "count"),
                MetricKind::RecordedLatency { .. } => {
                    (self.any(|c| matches!(c, Code::Record { .. })), "record")
                }
            };
            if !there {
                let problem =
                    format!("no task has the operation `{op}` that `{}` needs", metric.name);
                return Err(place.error(Mistake::new(problem, MISSING)));
            }
        }
        Ok(())
    }

    /// Posts go to other tasks, which no list wakes; who waits without limit is woken.
    fn check_posts(&self, role: usize, task: &TaskSource) -> Result<()> {
        let posted = self.any(|c| matches!(c, Code::Post { role: to } if *to == role));
        for op in flatten(&task.ops, 1) {
            match op.code {
                Code::Post { role: to } if to == role => {
                    let problem = "the task would wake itself";
                    return Err(self.op_error(op, problem, "post another task"));
                }
                Code::Post { role: to } if self.tasks[to].joins() => {
                    let problem = format!(
                        "task `{}` joins a list, whose waker posts it",
                        self.tasks[to].name
                    );
                    return Err(self.op_error(op, &problem, "wake it by `wake_list` only"));
                }
                Code::Wait { timeout: None, .. } if !posted && !task.joins() => {
                    let problem = "no task ever wakes this one";
                    let help =
                        "give `wait` a time, post the task from another, or let it join a list";
                    return Err(self.op_error(op, problem, help));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Requests go to other tasks, which serve them.
    fn check_requests(&self, role: usize, task: &TaskSource) -> Result<()> {
        let requested = self.any(|c| matches!(c, Code::Request { role: to, .. } if *to == role));
        for op in flatten(&task.ops, 1) {
            match &op.code {
                Code::Request { role: to, .. } if *to == role => {
                    let problem = "the task would send itself requests";
                    return Err(self.op_error(op, problem, "send them to another task"));
                }
                Code::Request { role: to, .. }
                    if !self.tasks[*to].any(&|c| matches!(c, Code::Serve)) =>
                {
                    let problem = format!("task `{}` serves no requests", self.tasks[*to].name);
                    return Err(self.op_error(op, &problem, "let it `serve = true`"));
                }
                Code::Serve if !requested => {
                    let problem = "no task sends this one requests";
                    return Err(self.op_error(op, problem, "let another task `request` it"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Between two joins a task waits without limit, so that it is on one list at a time.
    fn check_joins(&self, task: &TaskSource) -> Result<()> {
        let mut on_list = false;
        let round = flatten(&task.ops, 2);
        for op in round.iter().chain(&round) {
            match op.code {
                Code::Join { .. } if on_list => {
                    let problem = "the task could still be on a list";
                    return Err(self.op_error(op, problem, "let it `wait = true` after each join"));
                }
                Code::Join { .. } => on_list = true,
                Code::Wait { timeout: None, .. } => on_list = false,
                _ => {}
            }
        }
        Ok(())
    }

    /// A task records only the time since something that was noted.
    fn check_records(&self, task: &TaskSource) -> Result<()> {
        let notes = |c: &Code| {
            matches!(c, Code::Join { .. } | Code::Period { .. } | Code::Serve | Code::Note)
        };
        if task.any(&notes) {
            return Ok(());
        }
        for op in flatten(&task.ops, 1) {
            if matches!(op.code, Code::Record { .. }) {
                let problem = "the task joins no list, so nothing notes when it is woken";
                let help = "`join` a list, `serve`, `note` or let a `period` end before, or leave `record` out";
                return Err(self.op_error(op, problem, help));
            }
        }
        Ok(())
    }

    /// A task takes each lock once before it gives it back, and holds none when it exits
    /// or starts over.
    fn check_held(&self, task: &TaskSource) -> Result<()> {
        let mut held: Vec<Option<usize>> = Vec::new();
        let round = flatten(&task.ops, 2);
        for op in round.iter().chain(&round) {
            let (taken, given) = match op.code {
                Code::LockCpu => (Some(None), None),
                Code::UnlockCpu => (None, Some(None)),
                Code::Lock { lock } => (Some(Some(lock)), None),
                Code::Unlock { lock } => (None, Some(Some(lock))),
                Code::Respawn if !held.is_empty() => {
                    let problem = "the task exits with a lock held, which no other task could take";
                    return Err(self.op_error(op, problem, "give the lock back before"));
                }
                _ => (None, None),
            };
            if let Some(lock) = taken {
                if held.contains(&lock) {
                    let problem = "the task has this lock already";
                    return Err(self.op_error(op, problem, "give it back before"));
                }
                held.push(lock);
            }
            if let Some(lock) = given {
                let Some(at) = held.iter().position(|h| *h == lock) else {
                    let problem = "the task does not have this lock";
                    return Err(self.op_error(op, problem, "take it before"));
                };
                held.remove(at);
            }
        }
        Ok(())
    }

    /// One call releases all tasks that await it, and one task makes it.
    fn check_release(&self, task: &TaskSource) -> Result<()> {
        let Some(first) = self.release() else { return Ok(()) };
        for op in &task.ops {
            if matches!(op.code, Code::AwaitRelease { sync } if sync != first) {
                let problem = "differs from that of another task";
                return Err(self.op_error(op, problem, "release all of them in one way"));
            }
        }
        if task.name == PARENT {
            let problem = format!("`{PARENT}` is the task that releases the others");
            let mistake = Mistake::new(problem, "give this task another name");
            return Err(self.source.error(&task.span, Some("name"), mistake));
        }
        Ok(())
    }

    fn op_error(&self, op: &OpSource, problem: &str, help: &str) -> WorkloadError {
        self.source.error(&op.span, Some(&op.key), Mistake::new(problem, help))
    }
}

impl TaskSource {
    fn joins(&self) -> bool {
        self.any(&|code| matches!(code, Code::Join { .. }))
    }

    /// Is there such an operation, in loops as well?
    pub(crate) fn any(&self, is: &impl Fn(&Code) -> bool) -> bool {
        flatten(&self.ops, 1).iter().any(|op| is(&op.code))
    }
}

fn unused(top: &Table, key: &str, problem: &str) -> WorkloadError {
    let span = top.get(key).map_or(0..0, |entry| entry.span());
    top.source.error(&span, Some(key), Mistake::new(problem, MISSING))
}
