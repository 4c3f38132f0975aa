//! Refuses workload files whose tasks could not do what they say: wait for what
//! nobody does, join a list twice, or measure what nothing records.

use std::collections::BTreeMap;

use crate::error::Mistake;
use crate::table::Table;
use crate::task::{Code, OpSource, TaskSource};
use crate::{MetricKind, Workload, WorkloadError};

impl Workload {
    /// Checks the file as a whole, then that it can be built with its defaults.
    pub(crate) fn check(&self, top: &Table) -> Result<(), WorkloadError> {
        self.check_channels(top)?;
        self.check_lists(top)?;
        self.check_params(top)?;
        self.check_metrics(top)?;
        for (role, task) in self.tasks.iter().enumerate() {
            self.check_posts(role, task)?;
            self.check_joins(task)?;
        }
        self.build(1, &BTreeMap::new()).map(drop)
    }

    fn any(&self, is: impl Fn(&Code) -> bool) -> bool {
        self.tasks.iter().flat_map(|task| &task.ops).any(|op| is(&op.code))
    }

    fn check_channels(&self, top: &Table) -> Result<(), WorkloadError> {
        for (index, (name, _)) in self.channels.iter().enumerate() {
            let sent = self.any(|c| matches!(c, Code::Send { channel, .. } if *channel == index));
            let received = self.any(|c| matches!(c, Code::Recv { channel } if *channel == index));
            let lack = match (sent, received) {
                (true, true) => continue,
                (false, _) => "sends to",
                (true, false) => "receives from",
            };
            return Err(unused(top, "channels", &format!("no task {lack} channel `{name}`")));
        }
        Ok(())
    }

    fn check_lists(&self, top: &Table) -> Result<(), WorkloadError> {
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

    fn check_params(&self, top: &Table) -> Result<(), WorkloadError> {
        for (index, param) in self.params.iter().enumerate() {
            let used = self.tasks.iter().any(|task| {
                let amounts = task.ops.iter().flat_map(|op| op.code.amounts());
                amounts.chain([&task.count]).any(|amount| amount.param() == Some(index))
            });
            if !used {
                return Err(unused(top, "params", &format!("nothing uses `${}`", param.name)));
            }
        }
        Ok(())
    }

    fn check_metrics(&self, top: &Table) -> Result<(), WorkloadError> {
        for metric in &self.metrics {
            let (there, op) = match metric.kind {
                MetricKind::Throughput => (self.any(|c| matches!(c, Code::Count(_))), "count"),
                MetricKind::RecordedLatency { .. } => {
                    (self.any(|c| matches!(c, Code::Record)), "record")
                }
            };
            if !there {
                let problem =
                    format!("no task has the operation `{op}` that `{}` needs", metric.name);
                return Err(unused(top, "metric", &problem));
            }
        }
        Ok(())
    }

    /// Posts go to other tasks, which no list wakes; who waits without limit is woken.
    fn check_posts(&self, role: usize, task: &TaskSource) -> Result<(), WorkloadError> {
        let posted = self.any(|c| matches!(c, Code::Post { role: to } if *to == role));
        for op in &task.ops {
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
                    let problem = "nobody would ever wake this task";
                    let help =
                        "give `wait` a time, post the task from another, or let it join a list";
                    return Err(self.op_error(op, problem, help));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Between two joins a task waits without limit, so that it is on one list at a
    /// time; it records only what a list has noted.
    fn check_joins(&self, task: &TaskSource) -> Result<(), WorkloadError> {
        let Some(first) = task.ops.iter().position(|op| matches!(op.code, Code::Join { .. }))
        else {
            return match task.ops.iter().find(|op| matches!(op.code, Code::Record)) {
                Some(op) => {
                    let problem = "the task joins no list, so nothing notes when it is woken";
                    Err(self.op_error(op, problem, "`join` a list before, or leave `record` out"))
                }
                None => Ok(()),
            };
        };
        let mut on_list = false;
        // Once round from the first join, and that join again.
        for op in task.ops.iter().cycle().skip(first).take(task.ops.len() + 1) {
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

    fn op_error(&self, op: &OpSource, problem: &str, help: &str) -> WorkloadError {
        self.source.error(&op.span, Some(op.key), Mistake::new(problem, help))
    }
}

impl TaskSource {
    fn joins(&self) -> bool {
        self.ops.iter().any(|op| matches!(op.code, Code::Join { .. }))
    }
}

fn unused(top: &Table, key: &str, problem: &str) -> WorkloadError {
    let span = top.get(key).map_or(0..0, |entry| entry.span());
    let help = "add what is missing, or leave the entry out";
    top.source.error(&span, Some(key), Mistake::new(problem, help))
}
