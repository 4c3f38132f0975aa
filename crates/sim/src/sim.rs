//! The simulated machine in parts. Steps are methods of [`Sim`], each in the file of that
//! step; what belongs to one part alone is a method of that part.

use std::collections::VecDeque;

use crate::ids::{CpuVec, Known, TaskVec};
use reveille_measure::Ns;
use reveille_policy::CpuId;

use crate::chance::Chance;
use crate::followers::Followers;
use crate::hw::clock::Agenda;
use crate::hw::cpu::{Activity, Cpu, Step, Toll};
use crate::hw::hardware::Hardware;
use crate::measured::Measured;
use crate::rq::groups::Bandwidth;
use crate::rq::shared::SharedQueues;
use crate::rules::Rules;
use crate::sched::background::Background;
use crate::sched::balancer::Balancer;
use crate::sched::by_file::ByFile;
use crate::sched::gathering::Gathering;
use crate::tasks::task::Task;
use crate::tasks::work::Work;

/// Jiffies at the start of a run: any number above one second of any HZ.
pub(crate) const FIRST_JIFFY: u64 = 1 << 20;

pub(crate) struct Sim<'a> {
    pub(crate) now: Ns,
    pub(crate) warmed_up: bool,
    pub(crate) rules: Rules,
    pub(crate) hw: Hardware<'a>,
    pub(crate) agenda: Agenda,
    /// What placement decisions read of CPUs, caches and tasks.
    pub(crate) world: Known,
    pub(crate) cpus: CpuVec<Cpu>,
    pub(crate) tasks: TaskVec<Task>,
    pub(crate) work: Work<'a>,
    pub(crate) balancer: Balancer,
    /// `tg->load_avg`: the sum of what CPUs have reported of the session's task group.
    pub(crate) group_load: i64,
    /// Caches that processes prefer (SCHED_CACHE).
    pub(crate) gathering: Option<Box<Gathering>>,
    /// CPUs that have become busy or idle, and when others see it; in order of that time.
    pub(crate) unseen: VecDeque<(Ns, CpuId)>,
    /// Shared wake queues (SWQUEUE).
    pub(crate) shared_queues: Option<Box<SharedQueues>>,
    /// Task groups with quotas, if there are any.
    pub(crate) bandwidth: Option<Box<Bandwidth>>,
    /// Policies that are checked along with the one that runs.
    pub(crate) followers: Followers,
    /// The policy file that decides in place of the kernel's selection, if one does.
    pub(crate) file: Option<Box<ByFile>>,
    pub(crate) chance: Chance,
    pub(crate) background: Background,
    pub(crate) measured: Measured,
}

impl Sim<'_> {
    /// The CPU's plan has changed: its slot follows.
    #[inline]
    pub(crate) fn replan(&mut self, cpu: CpuId) {
        self.agenda.set_cpu(cpu, self.cpus[cpu].deadline());
    }

    /// Starts an activity of `cpu` now.
    #[inline(always)]
    pub(crate) fn begin(
        &mut self,
        cpu: CpuId,
        step: Step,
        toll: Toll,
        busy: Ns,
        until: Option<Ns>,
    ) {
        let c = &mut self.cpus[cpu];
        c.step = step;
        c.activity = Activity::new(self.now, toll.stall, toll.cost, busy);
        c.activity.until = until.unwrap_or(0);
        c.plan_end();
    }

    /// When `cpu` is through with `toll`, begun now.
    #[inline]
    pub(crate) fn after(&self, cpu: CpuId, toll: Toll) -> Ns {
        self.now + toll.stall + self.cpus[cpu].stretch(toll.cost)
    }

    /// Jiffies now.
    #[inline]
    pub(crate) fn jiffies(&self) -> u64 {
        FIRST_JIFFY + self.now / self.rules.tick_ns
    }
}
