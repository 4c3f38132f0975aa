//! do_idle(): a CPU enters the idle task, selects a state, reports an idle core, and exits on
//! request.

use reveille_measure::Ns;
use reveille_policy::{CpuId, bits};

use crate::hw::clock::NEVER;
use crate::hw::cpu::{Activity, Step, Toll};
use crate::hw::governor::choose_state;
use crate::sim::Sim;

impl Sim<'_> {
    /// Switches to the idle task and selects an idle state.
    pub(crate) fn enter_idle(&mut self, cpu: CpuId, toll: Toll) {
        let dequeued = self.after(cpu, toll);
        if dequeued > self.now {
            self.seen_from(cpu, dequeued);
        } else {
            self.becomes_visible(cpu, true);
        }
        let hot = self.note_idle_core(cpu);
        let to_timer = self.agenda.next_timer().saturating_sub(self.now);
        let c = &mut self.cpus[cpu];
        let predicted = c.governor.predict(to_timer);
        c.hrtick_at = NEVER;
        c.idle_state = choose_state(self.hw.idle_states, predicted, to_timer) as u8;
        c.tick_stopped = predicted > self.rules.tick_ns;
        if c.tick_stopped {
            c.tick_at = NEVER;
            self.balancer.sleepers.insert(cpu);
        }
        let work = toll.cost + Ns::from(self.hw.cost.switch_idle_ns);
        let entering = toll.stall + hot + c.stretch(work);
        let was_busy = !c.is_idle();
        c.averages.pass_idle(&self.rules.decay, std::mem::take(&mut c.uncounted_ns));
        c.step = Step::Idle;
        c.end = NEVER;
        c.idle_from = self.now + entering;
        c.idle_accounted = c.idle_from;
        c.idle_task_from = c.idle_task_from.min(c.idle_from);
        c.lock.release(c.idle_from); // to the end of the switch, as in run_next()
        c.time.cost_ns += entering;
        self.measured.counters.context_switches += 1;
        if was_busy {
            self.share_core(cpu, false);
        }
        // During balancing a task may have been put on the wake list, or a timer may have fired.
        if !self.cpus[cpu].wake_list.is_empty() {
            self.set_available_idle(cpu, false);
            self.leave_idle(cpu, self.now);
        }
    }

    /// A CPU that goes idle reads whether its cache has an idle core, and writes it if its own core is one
    /// now: the time that takes. [`Sim::becomes_visible`] sets it. With SIS_FILTER the CPU joins the
    /// mask of its cache.
    fn note_idle_core(&mut self, cpu: CpuId) -> Ns {
        if !self.notes_idle_cores(cpu) {
            return 0;
        }
        let filters = self.rules.has(bits::SIS_FILTER);
        if filters && !self.cpus[cpu].wake_list.is_empty() {
            return 0; // a wake-up is pending: it is not idle (v5 3/5)
        }
        let llc = self.hw.near.llc(cpu);
        let reports = !self.world.has_idle_cores(llc) && self.siblings_are(cpu, Self::is_free);
        let line = &mut self.hw.llc_lines[llc];
        let mut wait = line.read(cpu, self.now, self.now, self.hw.near.lines());
        // The mask shares a line with has_idle_cores.
        if filters && self.world.join_filter(cpu) || reports {
            wait += line.write(cpu, self.now, self.now + wait, self.hw.near.lines());
        }
        self.measured.counters.hot_line_wait_ns += wait;
        wait
    }

    /// A request to exit idle reaches the CPU at `arrival`.
    pub(crate) fn leave_idle(&mut self, cpu: CpuId, arrival: Ns) {
        let c = &mut self.cpus[cpu];
        if !c.is_idle() {
            return;
        }
        let now = self.now;
        let entered = c.idle_from;
        let exit = if arrival <= entered {
            0 // need-resched is seen before the state is entered
        } else {
            Ns::from(self.hw.idle_states[usize::from(c.idle_state)].exit_ns)
        };
        let asked = arrival.max(now).max(entered);
        c.account_idle(asked);
        if arrival > entered {
            c.governor.record(arrival - entered); // else cpuidle was not asked
        }
        c.step = Step::IdleExit;
        c.activity = Activity::new(asked, exit, 0, 0);
        c.plan_end();
        if c.tick_at == NEVER {
            c.tick_at = (now / self.rules.tick_ns + 1) * self.rules.tick_ns;
        }
        c.tick_stopped = false;
        self.balancer.sleepers.remove(cpu);
        self.share_core(cpu, true);
        self.replan(cpu);
    }

    /// After the idle exit: interrupts first, then the wake list, then a NOHZ balance or the runqueue.
    pub(crate) fn idle_exit(&mut self, cpu: CpuId) {
        let mut toll = self.serve_interrupts(cpu);
        if self.drains_unseen(cpu) {
            self.cpus[cpu].nohz_next = 0;
            self.drain_begins(cpu, toll);
            return;
        }
        toll += self.drain_wake_list(cpu);
        if self.nohz_balance(cpu, &mut toll) {
            self.begin(cpu, Step::IdleExit, toll, 0, None);
            return;
        }
        self.schedule_idle(cpu, toll);
    }

    /// The idle loop gives way to the runqueue, which has been filled after `toll`.
    pub(crate) fn schedule_idle(&mut self, cpu: CpuId, mut toll: Toll) {
        self.cpus[cpu].need_resched = false;
        if self.shared_queues.is_none() || self.world.nr_running(cpu) == 0 {
            return self.run_next(cpu, None, toll);
        }
        toll.cost += self.hw.half_switch_idle_ns();
        self.begin(cpu, Step::Pick, toll, 0, None);
    }
}
