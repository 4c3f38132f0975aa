//! try_to_wake_up() in kernel order: wait for the wakee to be switched out, select a CPU, and
//! enqueue it there, directly under that CPU's lock or through its wake list. What follows the look
//! at the selected CPU takes time, during which it still looks idle to every other waker (visible.rs):
//! the race that the SIS_SHORT patch describes.

use reveille_machine::Distance;
use reveille_measure::Ns;
use reveille_policy::{CpuId, Pick, Rule, TaskId, WAKE_ALONE, bits};

use crate::hw::cpu::{Step, Toll};
use crate::rq::runqueue::Arrival;
use crate::sim::Sim;
use crate::tasks::task::Place;

/// Lines transferred by a push to another CPU's wake list: the list head, and the pending flag with
/// the need-resched word.
const WAKE_LIST_LINES: Ns = 2;

impl Sim<'_> {
    /// The current task of `cpu` wakes `wakee`, then continues its program.
    pub(crate) fn wake(&mut self, cpu: CpuId, wakee: TaskId, flags: u32) {
        if let Place::Delayed(on) = self.tasks[wakee].place {
            let toll = self.wake_delayed(cpu, wakee, on);
            self.proceed(cpu, toll);
            return;
        }
        self.wake_begins(cpu, wakee);
        let leaves_at = self.tasks[wakee].on_cpu_until;
        if leaves_at > self.now {
            // Still being switched out: its own CPU may process it from its wake list.
            let on = self.world.task(wakee).prev_cpu;
            if self.ttwu_queue(cpu, on, true) {
                self.count_wakeup(cpu, on);
                let mut toll = Toll::cost(self.hw.cost.ttwu_ns);
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
        let t = &mut self.tasks[wakee];
        debug_assert_eq!(t.place, Place::Blocked, "only a blocked task is woken");
        t.place = Place::Waking;
        t.wake_at = self.now;
        t.waker_cpu = cpu;
        self.measured.counters.activations += 1;
    }

    /// Selects a CPU for a wakee. On the waker's own CPU it is enqueued at once, since no other CPU
    /// can interfere; elsewhere it is enqueued when the selection completes.
    pub(crate) fn select(&mut self, cpu: CpuId, wakee: TaskId, flags: u32) {
        let mut pick = Pick::default();
        let toll = self.decide(cpu, wakee, flags, &mut pick);
        self.go_to(cpu, wakee, &pick, flags, toll);
    }

    /// The wakee goes to the CPU that was selected, after `toll`.
    #[inline(always)]
    fn go_to(&mut self, cpu: CpuId, wakee: TaskId, pick: &Pick, flags: u32, toll: Toll) {
        if pick.cpu == cpu {
            let toll = self.queue_wakee(cpu, wakee, pick, toll);
            self.proceed(cpu, toll);
        } else {
            self.begin(cpu, Step::Commit { wakee, pick: *pick, flags }, toll, 0, None);
        }
    }

    /// The selection is complete: the wakee goes to the selected CPU, unless that was taken before the
    /// search came to it.
    pub(crate) fn commit(&mut self, cpu: CpuId, wakee: TaskId, pick: Pick, flags: u32) {
        if self.was_taken(cpu, &pick) {
            self.search_on(cpu, wakee, &pick, flags);
            return;
        }
        let toll = self.queue_wakee(cpu, wakee, &pick, Toll::default());
        self.reader_enqueued(cpu, wakee, toll);
        self.proceed(cpu, toll);
    }

    /// Did the selected CPU look busy when the search came to it? The selection was made as its time
    /// began, while a search looks at one CPU after the other, last at the one that it takes; `ttwu_ns`
    /// follows.
    #[inline]
    fn was_taken(&self, cpu: CpuId, pick: &Pick) -> bool {
        if self.is_free(pick.cpu) || !pick.rule().found_idle() {
            return false;
        }
        // A thread that a search for a core notes on its way is looked at early on.
        let noted_early = pick.core_search() && pick.cleared_idle_cores();
        let walk = if noted_early { self.walk(pick) } else { 0 };
        let after = self.cpus[cpu].stretch(Ns::from(self.hw.cost.ttwu_ns) + walk);
        self.cpus[pick.cpu].looks_so_from + after <= self.now
    }

    /// The search goes on, and finds what is idle by now.
    #[cold]
    fn search_on(&mut self, cpu: CpuId, wakee: TaskId, so_far: &Pick, flags: u32) {
        let mut pick = Pick::default();
        self.choose(cpu, wakee, flags, &mut pick);
        let further = self.walk(&pick).saturating_sub(self.walk(so_far)).max(self.hw.looks[0]);
        self.go_to(cpu, wakee, &pick, flags, Toll::cost(further));
    }

    /// A timer on `cpu` wakes its task in interrupt context. The interrupt is short compared with
    /// what follows, so selection and enqueue happen at once.
    pub(crate) fn wake_from_timer(&mut self, cpu: CpuId, wakee: TaskId) -> Toll {
        if let Place::Delayed(on) = self.tasks[wakee].place {
            return self.wake_delayed(cpu, wakee, on);
        }
        self.wake_begins(cpu, wakee);
        if self.world.task(wakee).sum_exec_ns == 0 {
            // wake_up_new_task(): fork has placed it, and it has no lag.
            let mut toll = self.enqueue_woken(cpu, wakee, cpu, self.now);
            toll += self.check_preempt(cpu, cpu, wakee);
            return toll;
        }
        let mut pick = Pick::default();
        let toll = self.decide(cpu, wakee, 0, &mut pick);
        let toll = self.queue_wakee(cpu, wakee, &pick, toll);
        self.set_available_idle(pick.cpu, false);
        toll
    }

    /// Asks the policy, which sees what other CPUs have shown by now.
    #[inline(always)]
    fn choose(&mut self, cpu: CpuId, wakee: TaskId, flags: u32, pick: &mut Pick) {
        self.see();
        let waker = self.world.curr(cpu);
        // wake_affine() reads the loads; it has nothing to compare where the wakee slept on this CPU.
        if self.world.task(wakee).prev_cpu != cpu || self.file.is_some() {
            self.world.task_mut(wakee).load_avg = self.task_load(wakee);
            if let Some(waker) = waker.some() {
                self.world.task_mut(waker).load_avg = self.task_load(waker);
            }
        }
        let alone = self.rules.alone_with_delayed && self.h_nr_runnable(cpu) == 1;
        let flags = if alone { flags | WAKE_ALONE } else { flags };
        self.world.set_now(self.now);
        *pick = self.select_cpu(wakee, waker, cpu, flags);
    }

    /// Asks the policy, and charges for the CPUs scanned.
    #[inline(always)]
    fn decide(&mut self, cpu: CpuId, wakee: TaskId, flags: u32, pick: &mut Pick) -> Toll {
        self.choose(cpu, wakee, flags, pick);
        let cost = &self.hw.cost;
        // A test before the search takes one line: its CPU is mostly the waker's own, or idle, and
        // then the wakeup needs the lines anyhow. A search of another LLC reads what that shares.
        // So does SIS_CACHE's question about an idle CPU that a search has found.
        let looked = (u64::from(pick.tested) + u64::from(pick.asked)) * Ns::from(cost.line_llc_ns)
            + u64::from(pick.far_llcs) * Ns::from(cost.line_socket_ns);
        let mut toll = Toll {
            stall: self.hw.near.wakee(self.tasks[wakee].warm_cpu, cpu),
            cost: Ns::from(cost.ttwu_ns) + self.walk(pick) + looked,
        };
        if reads_idle_cores(pick.rule())
            && self.world.smt_active()
            && self.rules.tunables.notes_idle_cores()
        {
            let llc = self.hw.near.llc(pick.target);
            let line = &mut self.hw.llc_lines[llc];
            let mut wait = line.read(cpu, self.now, self.now, self.hw.near.lines());
            if pick.cleared_idle_cores() {
                wait += line.write(cpu, self.now, self.now + wait, self.hw.near.lines());
            }
            toll.stall += wait;
            self.measured.counters.hot_line_wait_ns += wait;
        }
        toll
    }

    /// How long a search walks, at full speed.
    #[inline]
    fn walk(&self, pick: &Pick) -> Ns {
        let [near, far] = self.hw.looks;
        let elsewhere = u64::from(pick.far);
        (u64::from(pick.searched) - elsewhere) * near + elsewhere * far
    }

    /// A selection that stands: counts it as the schedstats of "sched/fair: Track efficiency of
    /// select_idle_sibling" do, and lets SIS_PROP learn from its search.
    #[inline]
    fn selected(&mut self, cpu: CpuId, pick: &Pick) {
        let c = &mut self.measured.counters;
        c.sis_search += 1;
        c.sis_scanned += 1;
        // A cache with one CPU has no domain to search.
        let rule = pick.rule();
        let searches = reads_idle_cores(rule) || rule == Rule::OwnBusy || pick.searched > 0;
        if searches && self.world.llc_weight(self.hw.near.llc(pick.target)) > 1 {
            c.sis_domain_search += 1;
            c.sis_scanned += u64::from(pick.siblings) + u64::from(pick.searched);
            c.sis_failed += u64::from(matches!(rule, Rule::Target | Rule::OwnBusy));
        }
        if pick.search() {
            c.idle_searches += 1;
            c.cpus_searched += u64::from(pick.searched);
            if self.rules.has(bits::SIS_PROP) {
                // The walk is timed by the clock; has_idle_cores was read before.
                let elapsed = self.cpus[cpu].stretch(self.walk(pick));
                self.world.scan_done(&self.rules.tunables, cpu, pick, elapsed);
            }
        }
    }

    #[inline]
    pub(crate) fn count_wakeup(&mut self, cpu: CpuId, dst: CpuId) {
        let c = &mut self.measured.counters;
        match self.hw.near.distance(cpu, dst) {
            Distance::Same => c.wakeups_same_cpu += 1,
            Distance::Smt => c.wakeups_sibling += 1,
            Distance::Cluster | Distance::Llc => c.wakeups_same_llc += 1,
            Distance::Socket | Distance::Remote => c.wakeups_remote += 1,
        }
    }

    /// ttwu_queue(): the wake list of the chosen CPU, or its runqueue.
    #[inline(always)]
    fn queue_wakee(&mut self, cpu: CpuId, wakee: TaskId, pick: &Pick, mut toll: Toll) -> Toll {
        let dst = pick.cpu;
        self.selected(cpu, pick);
        self.count_wakeup(cpu, dst);
        if pick.rule().found_idle() && !self.is_free(dst) {
            self.measured.counters.stacked_wakeups += 1;
        }
        self.set_task_cpu(wakee, dst);
        if self.ttwu_queue(cpu, dst, false) {
            toll += self.push_wake_list(cpu, wakee, dst);
        } else {
            toll += self.enqueue_woken(cpu, wakee, dst, self.now + toll.stall);
            if self.cpus[dst].is_idle() {
                // Need-resched is set at the enqueue, not before.
                let queued = toll.stall + self.cpus[cpu].stretch(toll.cost);
                toll += self.kick_idle(cpu, dst, queued);
            } else {
                toll += self.check_preempt(cpu, dst, wakee);
            }
        }
        toll
    }

    /// set_task_cpu(): on migration a wakee's load and vruntime stay with the old queue.
    fn set_task_cpu(&mut self, wakee: TaskId, dst: CpuId) {
        let from = self.world.task(wakee).prev_cpu;
        if from == dst {
            return;
        }
        self.measured.counters.wakeup_migrations += 1;
        self.detach(wakee, from);
        let t = &mut self.tasks[wakee];
        t.se.vruntime -= self.cpus[from].rq.origin();
        t.attaching = true;
        self.world.task_mut(wakee).prev_cpu = dst;
    }

    /// Puts the wakee on `dst`'s wake list; `dst` looks idle until the pending bit is set here.
    fn push_wake_list(&mut self, cpu: CpuId, wakee: TaskId, dst: CpuId) -> Toll {
        let mut toll = Toll {
            stall: WAKE_LIST_LINES * self.hw.near.line(dst, cpu),
            cost: Ns::from(self.hw.cost.wakelist_ns),
        };
        self.tasks[wakee].place = Place::WakeList(dst);
        let free = self.is_free(dst);
        let c = &mut self.cpus[dst];
        if free {
            c.looks_so_from = self.now;
        }
        let first = c.wake_list.is_empty();
        c.wake_list.push(wakee);
        self.set_available_idle(dst, false);
        if !first {
            return toll; // an interrupt is on its way
        }
        if self.cpus[dst].is_idle() {
            let pushed = toll.stall + self.cpus[cpu].stretch(toll.cost);
            toll += self.kick_idle(cpu, dst, pushed);
        } else if !matches!(self.cpus[dst].step, Step::IdleExit) {
            toll += self.send_ipi(cpu, dst);
        }
        toll
    }

    /// Enqueues a wakee on `dst` at `when`; `cpu` executes that and pays for it. That runqueue's
    /// lock is held throughout, including the access to load_avg's line.
    pub(crate) fn enqueue_woken(
        &mut self,
        cpu: CpuId,
        wakee: TaskId,
        dst: CpuId,
        when: Ns,
    ) -> Toll {
        let c = &mut self.cpus[dst];
        let wait = c.lock.acquire(cpu, self.now, when, self.hw.near.lines());
        self.measured.counters.lock_wait_ns += wait;
        let lines = if cpu == dst { 0 } else { self.hw.near.remote_enqueue(dst, cpu) };
        let looks_idle = cpu != dst && self.world.available_idle(dst);
        let told = self.activate(cpu, wakee, dst, when + wait + lines);
        let work = self.hw.enqueue_work();
        let stall = lines + told.stall;
        let hold = self.cpus[cpu].stretch(work + told.cost) + stall;
        self.cpus[dst].lock.hold(self.now, hold);
        if looks_idle {
            self.set_available_idle(dst, true);
            self.seen_from(dst, when + wait + hold);
        }
        Toll { stall: wait + stall, cost: work + told.cost }
    }

    /// update_rq_avg_idle(): the time since `cpu` looked for work in vain is an idle interval. Its first one
    /// replaces the mean of the idle machine before the run, as load of minutes builds up in seconds, not
    /// milliseconds. A CPU that kept that mean, and always found a task to pull, would never be idle again.
    #[inline(always)]
    pub(crate) fn end_idle(&mut self, cpu: CpuId) {
        let c = &mut self.cpus[cpu];
        if c.idle_stamp != 0 {
            let idle = self.now.saturating_sub(c.idle_stamp);
            let cap = c.max_idle_balance_cost;
            c.idle_stamp = 0;
            let first = !std::mem::replace(&mut c.has_idled, true);
            let now_j = self.jiffies();
            let scan = self.world.scan_state_mut(cpu);
            if first {
                scan.avg_idle_ns = idle;
            }
            scan.idle_ended(idle, cap, now_j);
        }
    }

    /// ttwu_do_activate() with the lock held: ends `dst`'s idle interval and enqueues the task.
    /// Returns the time beyond that work: load_avg's line, a resched of `dst`, the shared queue.
    #[inline(always)]
    pub(crate) fn activate(&mut self, cpu: CpuId, wakee: TaskId, dst: CpuId, when: Ns) -> Toll {
        if !self.rules.idle_ends_at_switch {
            self.end_idle(dst);
        }
        let told = self.charge_for(cpu, dst);
        let new = self.world.task(wakee).sum_exec_ns == 0;
        if self.rules.has(bits::SIS_CACHE) {
            self.world.woke_up(wakee, self.now);
        }
        let shared = self.goes_to_shared_queue(wakee, dst);
        self.enqueue(wakee, dst, if new { Arrival::New } else { Arrival::Woken });
        let mut toll = Toll::cost(told);
        let joins_early = shared && self.rules.has(bits::SWQUEUE_ENQUEUE);
        if joins_early {
            // __enqueue_entity(), before the group's own entity reads the line.
            let work = self.cpus[cpu].stretch(Ns::from(self.hw.cost.enqueue_ns) / 2 + toll.cost);
            toll += self.append_shared(cpu, wakee, dst, when + work);
        }
        toll.stall += self.group_load_moved(cpu, dst, when + toll.stall);
        if shared && !joins_early {
            let work = self.cpus[cpu].stretch(self.hw.enqueue_work() + toll.cost);
            toll += self.append_shared(cpu, wakee, dst, when + toll.stall + work);
        }
        toll
    }
}

/// Do the rules up to this one read `has_idle_cores`? Those that test single CPUs, and a policy file, do
/// not.
#[inline]
fn reads_idle_cores(rule: Rule) -> bool {
    !matches!(
        rule,
        Rule::TargetIdle
            | Rule::PrevIdle
            | Rule::RecentIdle
            | Rule::Kthread
            | Rule::Own
            | Rule::OwnBusy
    )
}
