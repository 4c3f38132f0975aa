//! try_to_wake_up() in kernel order: wait for the wakee to leave its CPU, select
//! one, and queue it there: directly under that CPU's lock, or on its wake list.
//! Between selection and queueing time passes, and the chosen CPU still looks idle
//! to every other waker: the race that the SIS_SHORT mail describes.

use reveille_machine::Distance;
use reveille_measure::Ns;
use reveille_policy::{CpuId, Pick, Rule, TaskId, bits};

use crate::balance::Published;
use crate::clock::NEVER;
use crate::cpu::{Step, at};
use crate::engine::{Sim, Toll};
use crate::pelt::window_passed;
use crate::runqueue::Arrival;
use crate::task::Place;

/// Lines that a push on another CPU's wake list moves: the list head and the
/// pending flag with the need-resched word.
const WAKE_LIST_LINES: Ns = 2;

/// LOAD_AVG_RATELIMIT: a queue reports its load once in this time (v6.7, commit 1528c661c24b).
const REPORT_INTERVAL_NS: Ns = 1_000_000;

impl Sim<'_> {
    /// The current task of `cpu` wakes `wakee`, then goes on with its program.
    pub(crate) fn wake(&mut self, cpu: CpuId, wakee: TaskId, flags: u32) {
        if let Place::Delayed(on) = self.tasks[at(wakee)].place {
            let toll = self.wake_delayed(cpu, wakee, on);
            self.proceed(cpu, toll);
            return;
        }
        self.wake_begins(cpu, wakee);
        let leaves_at = self.tasks[at(wakee)].on_cpu_until;
        if leaves_at > self.now {
            // Still switching away: its own CPU may take it back from its wake list.
            let on = self.world.task(wakee).prev_cpu;
            if self.world.ttwu_queue(&self.tunables, cpu, on, true) {
                self.count_wakeup(cpu, on);
                let mut toll = Toll::cost(self.cost.ttwu_ns);
                toll += self.push_wake_list(cpu, wakee, on);
                self.proceed(cpu, toll);
                return;
            }
            let spin = Toll { stall: leaves_at - self.now, cost: 0 };
            self.begin(cpu, Step::Select { wakee, flags }, spin, 0, None);
            return;
        }
        self.select(cpu, wakee, flags);
    }

    fn wake_begins(&mut self, cpu: CpuId, wakee: TaskId) {
        let t = &mut self.tasks[at(wakee)];
        debug_assert_eq!(t.place, Place::Blocked, "only a blocked task is woken");
        t.place = Place::Waking;
        t.wake_at = self.now;
        t.waker_cpu = cpu;
        self.counters.activations += 1;
    }

    /// Selects a CPU for a wakee. On the waker's own CPU it is queued at once, for
    /// nobody else can come in between; elsewhere only when the selection's time is over.
    pub(crate) fn select(&mut self, cpu: CpuId, wakee: TaskId, flags: u32) {
        let (pick, toll) = self.decide(cpu, wakee, flags);
        if pick.cpu == cpu {
            let toll = self.queue_wakee(cpu, wakee, pick, toll);
            self.proceed(cpu, toll);
        } else {
            self.begin(cpu, Step::Commit { wakee, pick }, toll, 0, None);
        }
    }

    /// Selection is over: the wakee goes to the chosen CPU, whatever happened there.
    pub(crate) fn commit(&mut self, cpu: CpuId, wakee: TaskId, pick: Pick) {
        let toll = self.queue_wakee(cpu, wakee, pick, Toll::default());
        self.proceed(cpu, toll);
    }

    /// A timer on `cpu` wakes its task, in interrupt context. The interrupt is short
    /// against what follows, so that selection and queueing happen at once.
    pub(crate) fn wake_from_timer(&mut self, cpu: CpuId, wakee: TaskId) -> Toll {
        if let Place::Delayed(on) = self.tasks[at(wakee)].place {
            return self.wake_delayed(cpu, wakee, on);
        }
        self.wake_begins(cpu, wakee);
        if self.world.task(wakee).sum_exec_ns == 0 {
            // wake_up_new_task(): the fork has placed it, and it is in nobody's debt.
            let mut toll = self.enqueue_woken(cpu, wakee, cpu, self.now);
            toll += self.check_preempt(cpu, cpu, wakee);
            return toll;
        }
        let (pick, toll) = self.decide(cpu, wakee, 0);
        self.queue_wakee(cpu, wakee, pick, toll)
    }

    /// Asks the policy, and charges what it looked at.
    #[inline(always)]
    fn decide(&mut self, cpu: CpuId, wakee: TaskId, flags: u32) -> (Pick, Toll) {
        let waker = self.world.curr(cpu);
        let now_j = self.jiffies();
        let pick = self.world.select_cpu(&self.tunables, wakee, waker, cpu, flags, now_j);
        // Of another LLC a search reads what its CPUs share, and a line of each CPU.
        let far = u64::from(pick.far);
        let near = u64::from(pick.tested) + u64::from(pick.searched) - far;
        let looked = near * Ns::from(self.cost.scan_cpu_ns)
            + (far + u64::from(pick.far_llcs)) * Ns::from(self.cost.line_socket_ns);
        let mut toll = Toll::cost(Ns::from(self.cost.ttwu_ns) + looked);
        let asked_for_cores = !matches!(
            pick.rule(),
            Rule::TargetIdle | Rule::PrevIdle | Rule::RecentIdle | Rule::Kthread
        );
        self.count_search(&pick, !asked_for_cores);
        if asked_for_cores && self.world.smt_active() && self.tunables.notes_idle_cores() {
            let llc = self.near.llc(pick.target);
            let near = &self.near;
            let line = &mut self.llc_lines[llc];
            let mut wait = line.read(cpu, self.now, |a, b| near.line(a, b));
            if pick.cleared_idle_cores() {
                wait += line.write(cpu, self.now + wait, |a, b| near.line(a, b));
            }
            toll.stall += wait;
            self.counters.hot_line_wait_ns += wait;
        }
        if pick.search() {
            self.counters.idle_searches += 1;
            self.counters.cpus_searched += u64::from(pick.searched);
            if self.tunables.has(bits::SIS_PROP) {
                // By the clock around the walk: has_idle_cores was read before.
                let walk = Ns::from(pick.searched) * Ns::from(self.cost.scan_cpu_ns);
                let elapsed = self.cpus[at(cpu)].stretch(walk);
                self.world.scan_done(&self.tunables, cpu, &pick, elapsed);
            }
        }
        (pick, toll)
    }

    /// As the schedstats of "sched/fair: Track efficiency of select_idle_sibling" do.
    #[inline]
    fn count_search(&mut self, pick: &Pick, fast: bool) {
        let c = &mut self.counters;
        c.sis_search += 1;
        c.sis_scanned += 1;
        // A cache of one CPU has no domain to search.
        if !fast && self.world.llc_cpus(self.near.llc(pick.target)).len() > 1 {
            c.sis_domain_search += 1;
            c.sis_scanned += u64::from(pick.siblings) + u64::from(pick.searched);
            c.sis_failed += u64::from(pick.rule() == Rule::Target);
        }
    }

    #[inline]
    pub(crate) fn count_wakeup(&mut self, cpu: CpuId, dst: CpuId) {
        let c = &mut self.counters;
        match self.near.distance(cpu, dst) {
            Distance::Same => c.wakeups_same_cpu += 1,
            Distance::Smt => c.wakeups_sibling += 1,
            Distance::Cluster | Distance::Llc => c.wakeups_same_llc += 1,
            Distance::Socket | Distance::Remote => c.wakeups_remote += 1,
        }
    }

    /// ttwu_queue(): the wake list of the chosen CPU, or its runqueue.
    fn queue_wakee(&mut self, cpu: CpuId, wakee: TaskId, pick: Pick, mut toll: Toll) -> Toll {
        let dst = pick.cpu;
        self.count_wakeup(cpu, dst);
        if pick.rule() != Rule::Target
            && pick.rule() != Rule::Short
            && !self.world.available_idle(dst)
        {
            self.counters.stacked_wakeups += 1;
        }
        self.set_task_cpu(wakee, dst);
        if self.world.ttwu_queue(&self.tunables, cpu, dst, false) {
            toll += self.push_wake_list(cpu, wakee, dst);
        } else {
            toll += self.enqueue_woken(cpu, wakee, dst, self.now + toll.stall);
            if self.cpus[at(dst)].step == Step::Idle {
                // Need-resched is set when the task is queued, not before.
                let queued = toll.stall + self.cpus[at(cpu)].stretch(toll.cost);
                toll += self.kick_idle(cpu, dst, queued);
            } else {
                toll += self.check_preempt(cpu, dst, wakee);
            }
        }
        toll
    }

    /// set_task_cpu(): a wakee that changes CPU leaves its load and its place on the
    /// timeline behind.
    fn set_task_cpu(&mut self, wakee: TaskId, dst: CpuId) {
        let from = self.world.task(wakee).prev_cpu;
        if from == dst {
            return;
        }
        self.counters.wakeup_migrations += 1;
        self.detach(wakee, from);
        let t = &mut self.tasks[at(wakee)];
        t.vruntime -= self.cpus[at(from)].rq.origin();
        t.attaching = true;
        self.world.task_mut(wakee).prev_cpu = dst;
    }

    /// Takes a sleeping task's averages out of the queue that it slept on.
    pub(crate) fn detach(&mut self, task: TaskId, from: CpuId) {
        self.advance_cpu(from);
        let t = &mut self.tasks[at(task)];
        t.averages.advance(&self.decay, self.now, false, 0, 0);
        let c = &mut self.cpus[at(from)];
        c.averages.detach(&t.averages);
        c.removed = true;
        self.publish_load(from);
    }

    /// Puts the wakee on the wake list of `dst`, which stays idle to the eye until
    /// the pending bit is set here.
    fn push_wake_list(&mut self, cpu: CpuId, wakee: TaskId, dst: CpuId) -> Toll {
        let mut toll = Toll {
            stall: WAKE_LIST_LINES * self.near.line(dst, cpu),
            cost: Ns::from(self.cost.wakelist_ns),
        };
        self.tasks[at(wakee)].place = Place::WakeList(dst);
        let c = &mut self.cpus[at(dst)];
        let first = c.wake_list.is_empty();
        c.wake_list.push(wakee);
        self.world.set_available_idle(dst, false);
        if !first {
            return toll; // an interrupt is on its way
        }
        if self.cpus[at(dst)].step == Step::Idle {
            let pushed = toll.stall + self.cpus[at(cpu)].stretch(toll.cost);
            toll += self.kick_idle(cpu, dst, pushed);
        } else if self.cpus[at(dst)].step != Step::IdleExit {
            toll += self.send_ipi(cpu, dst);
        }
        toll
    }

    /// Sends an interrupt to a CPU that runs something.
    pub(crate) fn send_ipi(&mut self, cpu: CpuId, dst: CpuId) -> Toll {
        let arrival = self.now + self.ipi_flight(cpu, dst);
        let c = &mut self.cpus[at(dst)];
        if c.ipi_at == NEVER {
            c.ipi_at = arrival;
            self.replan(dst);
        }
        self.counters.ipis += 1;
        Toll::cost(self.cost.ipi_send_ns)
    }

    fn ipi_flight(&self, cpu: CpuId, dst: CpuId) -> Ns {
        let extra = match self.near.distance(cpu, dst) {
            Distance::Remote => self.cost.ipi_remote_ns,
            _ => 0,
        };
        Ns::from(self.cost.ipi_flight_ns) + Ns::from(extra)
    }

    /// Makes an idle CPU leave idle: by its need-resched word if it watches that
    /// (MWAIT, polling), by an interrupt otherwise; `after` so much time from now.
    pub(crate) fn kick_idle(&mut self, cpu: CpuId, dst: CpuId, after: Ns) -> Toll {
        debug_assert_eq!(self.cpus[at(dst)].step, Step::Idle);
        let state = &self.machine.idle[usize::from(self.cpus[at(dst)].idle_state)];
        if cpu == dst {
            self.leave_idle(dst, self.now + after);
            Toll::default()
        } else if state.polling {
            let arrival = self.now + after + self.near.line(cpu, dst);
            self.leave_idle(dst, arrival);
            Toll::default()
        } else {
            let arrival = self.now + after + self.ipi_flight(cpu, dst);
            self.leave_idle(dst, arrival);
            self.counters.ipis += 1;
            Toll::cost(self.cost.ipi_send_ns)
        }
    }

    /// Queues a woken task on `dst`, by the hand of `cpu`, from `when` on. The lock
    /// of that runqueue is held all the while, load_avg's line included.
    pub(crate) fn enqueue_woken(
        &mut self,
        cpu: CpuId,
        wakee: TaskId,
        dst: CpuId,
        when: Ns,
    ) -> Toll {
        let near = &self.near;
        let c = &mut self.cpus[at(dst)];
        let wait = c.lock.acquire(cpu, when, |a, b| near.line(a, b));
        self.counters.lock_wait_ns += wait;
        let lines = if cpu == dst { 0 } else { self.near.remote_enqueue(dst, cpu) };
        let told = self.activate(cpu, wakee, dst, when + wait + lines);
        let work = self.enqueue_work();
        let stall = lines + told.stall;
        let hold = self.cpus[at(cpu)].stretch(work + told.cost) + stall;
        self.cpus[at(dst)].lock.release(when + wait + hold);
        Toll { stall: wait + stall, cost: work + told.cost }
    }

    /// Kernel work of one enqueue.
    #[inline]
    pub(crate) fn enqueue_work(&self) -> Ns {
        Ns::from(self.cost.enqueue_ns) + self.group_level_ns()
    }

    /// ttwu_do_activate(), the lock being held: the idle stretch of `dst` ends, and the
    /// task is on its queue. Returns the time of what comes on top of the work:
    /// load_avg's line, a resched of `dst`, the shared queue.
    #[inline(always)]
    pub(crate) fn activate(&mut self, cpu: CpuId, wakee: TaskId, dst: CpuId, when: Ns) -> Toll {
        let c = &mut self.cpus[at(dst)];
        if c.idle_stamp != 0 {
            let idle = self.now.saturating_sub(c.idle_stamp);
            let cap = c.max_idle_balance_cost;
            c.idle_stamp = 0;
            let now_j = self.jiffies();
            self.world.scan_state_mut(dst).idle_ended(idle, cap, now_j);
        }
        let told = self.charge_for(cpu, dst);
        let new = self.world.task(wakee).sum_exec_ns == 0;
        let shared = self.goes_to_shared_queue(wakee, dst);
        self.enqueue(wakee, dst, if new { Arrival::New } else { Arrival::Woken });
        let mut toll = Toll { stall: self.group_load_moved(cpu, dst, when), cost: told };
        if shared {
            let work = self.cpus[at(cpu)].stretch(self.enqueue_work() + toll.cost);
            toll += self.append_shared(cpu, wakee, dst, when + toll.stall + work);
        }
        toll
    }

    /// Puts a task on the timeline of `dst`, unless its group is throttled there.
    #[inline]
    pub(crate) fn enqueue(&mut self, task: TaskId, dst: CpuId, arrival: Arrival) {
        if self.bandwidth.is_none() || self.enqueue_groups(task, dst) {
            self.put_on_timeline(task, dst, arrival);
        }
    }

    /// The task joins the timeline of `dst`.
    pub(crate) fn put_on_timeline(&mut self, task: TaskId, dst: CpuId, arrival: Arrival) {
        self.advance_cpu(dst);
        let t = &mut self.tasks[at(task)];
        let c = &mut self.cpus[at(dst)];
        t.averages.advance(&self.decay, self.now, false, 0, 0);
        if t.attaching {
            t.attaching = false;
            t.vruntime += c.rq.origin();
            c.averages.attach(&t.averages);
            c.removed = true;
        }
        t.place = Place::Queued(dst);
        c.rq.arrive(task, t, arrival, &self.fair);
        if self.tunables.has(bits::UTIL_EST) {
            c.util_est += t.util_est();
        }
        let load = t.averages.load;
        self.world.task_mut(task).load_avg = load as u32;
        let nr = self.world.nr_running(dst) + 1;
        self.world.set_nr_running(dst, nr);
        self.world.set_available_idle(dst, false);
        if nr >= 2 {
            self.balancer.overload = true;
        }
        self.publish_load(dst);
    }

    /// `tg->load_avg` is read at every enqueue and dequeue, and written when this
    /// queue's share has moved by more than 1/64. Returns the time that takes.
    pub(crate) fn group_load_moved(&mut self, by: CpuId, of: CpuId, when: Ns) -> Ns {
        if self.reports_load(of, self.now) {
            return self.report_load(by, when);
        }
        let booked = self.booked(when);
        let Some(line) = &mut self.group_line else { return 0 };
        let near = &self.near;
        let wait = line.read(by, booked, |a, b| near.line(a, b));
        self.counters.hot_line_wait_ns += wait;
        wait
    }

    /// update_blocked_averages() only writes, if a window has ended since the last report.
    pub(crate) fn group_load_decayed(&mut self, cpu: CpuId, when: Ns) -> Ns {
        if self.reports_load(cpu, when) { self.report_load(cpu, when) } else { 0 }
    }

    /// Has the load of a CPU moved far enough to be reported? If so it counts as reported.
    fn reports_load(&mut self, cpu: CpuId, when: Ns) -> bool {
        let c = &mut self.cpus[at(cpu)];
        if !std::mem::take(&mut c.removed) && !window_passed(c.reported_at, when) {
            return false;
        }
        c.reported_at = when;
        if self.rate_limited && when < c.report_again_at {
            return false;
        }
        let moved = (c.averages.load - c.group_contrib).abs() > c.group_contrib / 64.0;
        if moved {
            c.group_contrib = c.averages.load;
            c.report_again_at = when + REPORT_INTERVAL_NS;
        }
        moved
    }

    fn report_load(&mut self, by: CpuId, when: Ns) -> Ns {
        let booked = self.booked(when);
        let Some(line) = &mut self.group_line else { return 0 };
        let near = &self.near;
        let wait = line.write(by, booked, |a, b| near.line(a, b));
        self.counters.hot_line_wait_ns += wait;
        wait
    }

    #[inline]
    pub(crate) fn group_level_ns(&self) -> Ns {
        if self.group_line.is_some() { Ns::from(self.cost.group_level_ns) } else { 0 }
    }

    /// Brings the averages of a CPU's queue up to now.
    #[inline]
    pub(crate) fn advance_cpu(&mut self, cpu: CpuId) {
        let running = self.world.curr(cpu) != reveille_policy::NONE;
        let c = &mut self.cpus[at(cpu)];
        let nr = self.world.nr_running(cpu) - c.rq.delayed_running;
        c.averages.advance(&self.decay, self.now, running, c.rq.weight, nr);
    }

    #[inline]
    pub(crate) fn publish_load(&mut self, cpu: CpuId) {
        let c = &self.cpus[at(cpu)];
        self.world.set_cfs_load(cpu, c.averages.load as u32);
        self.balancer.published[at(cpu)] = Published {
            load: c.averages.load as f32,
            runnable: c.averages.runnable as f32,
            util: c.util() as u32,
        };
    }
}
