//! A user's policy file: C against policy/reveille.h that decides in place of the kernel's
//! selection. Compiled by the system's compiler, inspected, loaded, and asked once a wakeup.

mod compile;
mod inspect;
mod load;
mod message;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use reveille_place::Mistake;

use crate::state::Pick;
use crate::{CpuId, TaskId, Tunables, World};

pub use compile::Draft;
use load::Loaded;
pub use message::{Message, MessageKind};

/// Version of the interface in policy/reveille.h.
pub const POLICY_INTERFACE: u32 = 1;

/// A policy file that is loaded. Clones are the same file.
#[derive(Clone)]
pub struct PolicyFile(Arc<Inner>);

struct Inner {
    name: String,
    loaded: Loaded,
    beats: Mutex<Vec<Beat>>,
}

/// The decisions of one run, as seen from outside: odd while one is under way.
struct Beat {
    count: Weak<AtomicU64>,
    last: u64,
    /// How often the same decision was found under way.
    found: u32,
}

impl PartialEq for PolicyFile {
    fn eq(&self, other: &PolicyFile) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for PolicyFile {}

impl fmt::Debug for PolicyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PolicyFile").field(&self.0.name).finish()
    }
}

impl PolicyFile {
    fn new(name: &str, loaded: Loaded) -> PolicyFile {
        let name = name.to_owned();
        PolicyFile(Arc::new(Inner { name, loaded, beats: Mutex::default() }))
    }

    /// Its path as the user gave it.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Begins a run, which one thread at a time may use.
    pub fn start(&self) -> PolicyRun {
        let count = Arc::new(AtomicU64::new(0));
        let beat = Beat { count: Arc::downgrade(&count), last: 0, found: 0 };
        self.0.beats.lock().unwrap_or_else(PoisonError::into_inner).push(beat);
        PolicyRun { file: self.clone(), count }
    }

    /// For a watcher that calls this at intervals: at how many calls in a row the longest
    /// decision has been under way. Time in which the whole process stands still does not count.
    pub fn longest_decision(&self) -> u32 {
        let mut beats = self.0.beats.lock().unwrap_or_else(PoisonError::into_inner);
        beats.retain_mut(|beat| {
            let Some(count) = beat.count.upgrade() else { return false };
            let now = count.load(Ordering::Relaxed);
            let same = now == beat.last && now % 2 == 1;
            beat.found = if same { beat.found + 1 } else { 0 };
            beat.last = now;
            true
        });
        beats.iter().map(|beat| beat.found).max().unwrap_or(0)
    }
}

/// A run whose decisions a policy file takes.
pub struct PolicyRun {
    file: PolicyFile,
    count: Arc<AtomicU64>,
}

/// What [`World::select_cpu`] is asked.
#[derive(Clone, Copy, Debug)]
pub struct Wakeup {
    /// The task that is woken.
    pub wakee: TaskId,
    /// The task that runs on `this_cpu`, or [`TaskId::NONE`].
    pub waker: TaskId,
    /// Where the wakeup comes from.
    pub this_cpu: CpuId,
    /// `WAKE_*`.
    pub flags: u32,
    /// Jiffies.
    pub now_j: u64,
}

impl<const CHECKED: bool> World<CHECKED> {
    /// [`World::select_cpu`] by a policy file.
    ///
    /// # Errors
    /// What the simulator cannot follow, such as a CPU that is not there.
    pub fn select_cpu_by(
        &mut self,
        run: &PolicyRun,
        tunables: &Tunables,
        wakeup: &Wakeup,
    ) -> Result<Pick, Mistake> {
        self.check_wakeup(wakeup.wakee, wakeup.waker, wakeup.this_cpu);
        let began = run.count.load(Ordering::Relaxed);
        run.count.store(began + 1, Ordering::Relaxed);
        // A copy, for the file may write to it.
        let pick = run.file.0.loaded.select_cpu(&mut { *self.raw() }, tunables, wakeup);
        run.count.store(began + 2, Ordering::Relaxed);
        let (wakee, all, of) = (self.task(wakeup.wakee), self.n_cpus(), wakeup.wakee);
        if !self.has(pick.cpu) {
            let problem = format!(
                "chose CPU {} for task {of}, and there are {all}, numbered from 0",
                pick.cpu
            );
            let help = "return pick.target if you find none; `cpus=` makes a machine of its CPUs \
                        only and numbers them anew";
            return Err(Mistake::new(problem, help));
        }
        if !self.allows(wakee.affinity, pick.cpu) {
            let problem = format!("chose CPU {} for task {of}, not allowed there", pick.cpu);
            return Err(Mistake::new(problem, "ask world_allowed() first"));
        }
        if !self.has(pick.target) {
            let problem = format!("set pick.target to {}, and there are {all} CPUs", pick.target);
            return Err(Mistake::new(problem, "policy_select_target() sets it"));
        }
        let waker = if wakeup.waker == TaskId::NONE { wakee } else { self.task(wakeup.waker) };
        match [wakee, waker].into_iter().find(|task| !self.has(task.recent_used_cpu)) {
            Some(task) => {
                let (id, cpu) = (task.id, task.recent_used_cpu);
                let problem =
                    format!("set recent_used_cpu of task {id} to {cpu}, and there are {all} CPUs");
                Err(Mistake::new(problem, "leave it alone"))
            }
            None => Ok(pick),
        }
    }
}
