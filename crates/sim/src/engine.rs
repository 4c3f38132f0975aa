//! The main loop: the earliest deadline decides which CPU proceeds; each step has a file of its
//! own.

use std::sync::atomic::{AtomicBool, Ordering};

use reveille_measure::{Ns, Observed, RunResult, RunSpec};
use reveille_policy::CpuId;

use crate::error::SimError;
use crate::followers::Follower;
use crate::hw::clock::NEVER;
use crate::hw::cpu::{Step, Toll};
use crate::rq::groups::GroupMoment;
use crate::rq::pelt::Decay;
use crate::sim::Sim;
use crate::together::Together;

/// Number of events between checks of `stop`.
const STOP_CHECK_EVENTS: u64 = 4096;

/// With more CPUs than this their state and their tasks' outgrow a core's second-level cache.
const OUTGROWS_CACHE: usize = 512;

/// Result of a run.
pub(crate) struct Ran<'a> {
    pub(crate) result: RunResult,
    /// History of the groups, if requested.
    pub(crate) history: Vec<GroupMoment>,
    /// Those that agreed to the end.
    pub(crate) followers: Vec<Follower>,
    /// Those that departed.
    pub(crate) together: Together<'a>,
}

impl<'a> Sim<'a> {
    /// Runs warm-up and measured time.
    pub(crate) fn run(mut self, spec: &RunSpec, stop: &AtomicBool) -> Result<Ran<'a>, SimError> {
        self.start(spec);
        self.go_on(spec, stop)
    }

    /// Runs what is left of warm-up and measured time.
    pub(crate) fn go_on(mut self, spec: &RunSpec, stop: &AtomicBool) -> Result<Ran<'a>, SimError> {
        let mut together = Together::default();
        if !self.warmed_up {
            let settled = self.balancer.settled_ns;
            if self.now < settled {
                let early = self.advance_to(settled, stop, &mut together);
                self.unless_file_fails(early)?;
            }
            self.rules.decay = Decay::new();
            self.rules.pace = 1;
            let warm = self.advance_to(spec.warmup_ns, stop, &mut together);
            self.unless_file_fails(warm)?;
            self.forget();
            self.warmed_up = true;
        }
        let end = spec.warmup_ns + spec.duration_ns;
        let ended = self.advance_to(end, stop, &mut together);
        self.unless_file_fails(ended)?;
        together.part(&mut self);
        let history = self.bandwidth.as_mut().and_then(|bandwidth| bandwidth.history.take());
        Ok(Ran {
            history: history.unwrap_or_default(),
            followers: std::mem::take(&mut self.followers.agreeing),
            together,
            result: self.result(spec.duration_ns),
        })
    }

    fn file_fault(&self) -> Option<&SimError> {
        self.file.as_ref()?.fault.as_ref()
    }

    /// The result of a part of the run, or the policy file's fault.
    fn unless_file_fails(&self, ended: Result<(), SimError>) -> Result<(), SimError> {
        self.file_fault().map_or(ended, |fault| Err(fault.clone()))
    }

    /// Processes every deadline before `end`.
    pub(crate) fn advance_to(
        &mut self,
        end: Ns,
        stop: &AtomicBool,
        together: &mut Together<'a>,
    ) -> Result<(), SimError> {
        let n_cpus = self.cpus.len();
        let mut events = 0u64;
        loop {
            let (next, slot) = self.agenda.next();
            if next >= end {
                if next >= NEVER {
                    let tasks = self.tasks.len();
                    return Err(SimError::Deadlock { at_ns: self.now, tasks });
                }
                self.now = end;
                return Ok(());
            }
            debug_assert!(next >= self.now, "an event in the past: {next} before {}", self.now);
            self.now = next;
            if n_cpus > OUTGROWS_CACHE {
                self.prefetch(self.agenda.second(slot));
            }
            if slot < n_cpus {
                self.cpu_event(CpuId::at(slot));
            } else if slot == n_cpus {
                self.fire_timers();
            } else {
                self.fire_bandwidth_timers();
            }
            events += 1;
            if events.is_multiple_of(STOP_CHECK_EVENTS) {
                if stop.load(Ordering::Relaxed) || self.file_fault().is_some() {
                    return Err(SimError::Interrupted);
                }
                #[cfg(debug_assertions)]
                self.check_invariants();
                together.keep_checkpoint(self, events / STOP_CHECK_EVENTS);
            }
        }
    }

    /// Begins to load what the CPU of this slot needs for its event: the paragraphs of `Cpu` and
    /// `Task` that come first.
    #[inline]
    fn prefetch(&self, slot: usize) {
        if slot < self.cpus.len() {
            let cpu = CpuId::at(slot);
            self.cpus.prefetch::<7>(cpu);
            let task = self.world.curr(cpu);
            if task.index() < self.tasks.len() {
                self.tasks.prefetch::<5>(task);
            }
        }
    }

    #[inline(always)]
    fn cpu_event(&mut self, cpu: CpuId) {
        let c = &mut self.cpus[cpu];
        if c.ipi_at == self.now {
            c.ipi_at = NEVER;
            self.ipi(cpu);
        } else if c.tick_at == self.now {
            self.tick(cpu);
        } else if c.hrtick_at == self.now {
            self.hrtick(cpu);
        } else {
            debug_assert_eq!(c.end, self.now);
            c.finish(self.now);
            match c.step {
                Step::Op => {
                    let task = self.world.curr(cpu);
                    if self.op_end(cpu, task) {
                        self.proceed_here(cpu, task, Toll::default());
                    }
                }
                Step::Commit { wakee, pick, flags } => self.commit(cpu, wakee, pick, flags),
                Step::IdleExit => self.idle_exit(cpu),
                Step::Drain => self.drain_ends(cpu),
                Step::Select { wakee, flags } => self.select(cpu, wakee, flags),
                Step::NewIdle | Step::Pick => self.run_next(cpu, None, Toll::default()),
                Step::Pull { prev } => self.run_next(cpu, Some(prev), Toll::default()),
                Step::Idle => unreachable!("idle does not end by itself"),
            }
        }
        self.replan(cpu);
    }

    /// Accounts every CPU's time up to now.
    fn close_books(&mut self) {
        let now = self.now;
        for cpu in self.cpus.iter_mut() {
            if now > cpu.idle_task_from {
                self.measured.counters.idle_task_ns += now - cpu.idle_task_from;
                cpu.idle_task_from = now;
            }
            if cpu.is_idle() {
                cpu.account_idle(now);
            } else {
                cpu.settle(now);
            }
            let ahead = cpu.ahead(now);
            cpu.time.cost_ns -= ahead.cost_ns;
            cpu.time.idle_ns -= ahead.idle_ns;
        }
    }

    /// Ends the warm-up by resetting all counters. scripts/count-instructions.sh counts
    /// instructions from this symbol on.
    #[inline(never)]
    fn forget(&mut self) {
        self.close_books();
        let now = self.now;
        for cpu in self.cpus.iter_mut() {
            // Time accounted ahead belongs to the measured part.
            cpu.time = cpu.ahead(now);
        }
        self.forget_groups();
        self.measured.forget();
    }

    fn result(mut self, elapsed_ns: Ns) -> RunResult {
        self.close_books();
        #[cfg(debug_assertions)]
        self.check_invariants();
        #[cfg(debug_assertions)]
        for (number, cpu) in self.cpus.iter().enumerate() {
            let sum = cpu.time.busy_ns + cpu.time.idle_ns + cpu.time.cost_ns;
            assert_eq!(sum, elapsed_ns, "time of CPU {number} is lost or counted twice");
        }
        let groups = self.group_results();
        RunResult {
            elapsed_ns,
            operations: self.measured.operations,
            wakeup_latency: self.measured.wakeup_latency.histogram(),
            recorded_latency: self.measured.recorded_latency,
            answers: self.measured.answers,
            observed: Observed::Everything,
            counters: self.measured.counters,
            cpus: self.cpus.iter().map(|c| c.time).collect(),
            groups,
        }
    }
}

#[cfg(test)]
mod tests {
    use reveille_policy::Policy;
    use reveille_workload::Op;

    use super::*;
    use crate::start::{with_pairs, with_pairs_under};

    /// Lets an interrupt ask the CPU of the first task that is in an operation such as `is` to
    /// reschedule in the middle of it. Is the task preempted at once, and at the end?
    fn preempted(is: impl Fn(&Op) -> bool) -> (bool, bool) {
        with_pairs(8, |sim| {
            let cpu = sim.pass_until(50, |sim| {
                sim.cpus.ids().find(|&cpu| {
                    let curr = sim.world.curr(cpu);
                    let runs = curr.index() < sim.tasks.len();
                    runs && sim.cpus[cpu].step == Step::Op && is(sim.op(curr))
                })
            });
            let before = sim.measured.counters.preemptions;
            sim.cpus[cpu].need_resched = true;
            sim.resched_if_needed(cpu);
            sim.replan(cpu);
            let at_once = sim.measured.counters.preemptions > before;
            sim.pass(20_000);
            (at_once, sim.measured.counters.preemptions > before)
        })
    }

    /// Without CONFIG_PREEMPT a message is there before its sender gives way.
    #[test]
    fn an_interrupt_does_not_cut_a_send() {
        assert_eq!(preempted(|op| matches!(op, Op::Send { .. })), (false, true));
        assert_eq!(preempted(|op| matches!(op, Op::Recv { .. })), (true, true));
    }

    /// Under v7.2 a task that comes while its CPU looks for work ends no idle interval, and leaves none open.
    #[test]
    fn what_comes_during_a_new_idle_pass_ends_no_idle_interval() {
        with_pairs_under(&Policy::baseline("v7.2").unwrap(), 8, |sim| {
            let cpu = sim.pass_until(50, |sim| {
                sim.cpus.ids().find(|&cpu| sim.world.curr(cpu).some().is_some())
            });
            let before = sim.world.scan_state(cpu).avg_idle_ns;
            let prev = sim.put_back(cpu);
            sim.cpus[cpu].idle_stamp = 1;
            sim.run_next(cpu, Some(prev), Toll::default());
            let after = sim.world.scan_state(cpu).avg_idle_ns;
            assert_eq!((sim.cpus[cpu].idle_stamp, after), (0, before));
        });
    }
}
