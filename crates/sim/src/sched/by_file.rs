//! Decisions of a user's policy file. An invalid one ends the run.

use reveille_measure::Ns;
use reveille_policy::{Pick, Policy, PolicyRun, Wakeup};

use crate::error::SimError;
use crate::sim::Sim;

pub(crate) struct ByFile {
    run: PolicyRun,
    /// The first invalid decision.
    fault: Option<(Ns, String)>,
}

impl ByFile {
    pub(crate) fn new(policy: &Policy) -> Option<Box<ByFile>> {
        let file = policy.file.as_ref()?;
        Some(Box::new(ByFile { run: file.start(), fault: None }))
    }
}

impl Sim<'_> {
    /// After a fault, wakees stay on their previous CPU until the run ends.
    pub(crate) fn select_cpu_by_file(&mut self, wakeup: Wakeup) -> Pick {
        let stay = Pick::unsearched(self.world.task(wakeup.wakee).prev_cpu);
        let Some(file) = &mut self.file else { return stay };
        if file.fault.is_some() {
            return stay;
        }
        match self.world.select_cpu_by(&file.run, &self.rules.tunables, &wakeup) {
            Ok(pick) => pick,
            Err(problem) => {
                file.fault = Some((self.now, problem));
                stay
            }
        }
    }

    pub(crate) fn file_at_fault(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.fault.is_some())
    }

    /// The result of a part of the run, or the file's fault.
    pub(crate) fn unless_at_fault(&self, ended: Result<(), SimError>) -> Result<(), SimError> {
        match self.file.as_ref().and_then(|file| file.fault.clone()) {
            Some((at_ns, problem)) => Err(SimError::Policy { at_ns, problem }),
            None => ended,
        }
    }
}
