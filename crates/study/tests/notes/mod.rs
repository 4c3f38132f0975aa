//! A host that notes what it is told of each side, and has nothing measured.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use reveille_host::HostError;
use reveille_host::sched_ext::Loader;
use reveille_measure::{HostContext, RunResult, RunSpec};
use reveille_study::{HostRunner, HostSide};
use reveille_workload::Program;

/// What to load for a side, and what to switch in the kernel's own scheduler.
pub type Told = (Option<Loader>, Vec<(String, bool)>);

/// Notes what it is told, and has nothing measured.
#[derive(Default)]
pub struct Notes(Mutex<Vec<Told>>);

impl HostRunner for Notes {
    fn check(&self, side: &HostSide<'_>) -> Result<(), HostError> {
        self.0.lock().unwrap().push((side.loader.clone(), side.switches.clone()));
        Ok(())
    }

    fn run(
        &self,
        _: &HostSide<'_>,
        _: &Program,
        _: &RunSpec,
        _: &AtomicBool,
    ) -> Result<RunResult, HostError> {
        Err(HostError::Interrupted)
    }

    fn observe(&self, work: &mut dyn FnMut()) -> HostContext {
        work();
        HostContext::default()
    }
}

impl Notes {
    /// In the order in which it was told.
    pub fn told(self) -> Vec<Told> {
        self.0.into_inner().unwrap()
    }
}
