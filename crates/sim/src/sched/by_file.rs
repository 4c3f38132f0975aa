//! Decisions of a user's policy file. An invalid one ends the run.

use reveille_measure::Ns;
use reveille_policy::{Pick, Policy, PolicyRun, Tunables, Wakeup};

use crate::error::SimError;
use crate::ids::Known;

pub(crate) struct ByFile {
    run: PolicyRun,
    /// The first invalid decision.
    pub(crate) fault: Option<SimError>,
}

impl ByFile {
    pub(crate) fn new(policy: &Policy) -> Option<Box<ByFile>> {
        let file = policy.file.as_ref()?;
        Some(Box::new(ByFile { run: file.start(), fault: None }))
    }

    /// After a fault, wakees stay on their previous CPU until the run ends.
    pub(crate) fn select_cpu(
        &mut self,
        world: &mut Known,
        tunables: &Tunables,
        wakeup: &Wakeup,
        now: Ns,
    ) -> Pick {
        let stay = Pick::unsearched(world.task(wakeup.wakee).prev_cpu);
        if self.fault.is_some() {
            return stay;
        }
        world.select_cpu_by(&self.run, tunables, wakeup).unwrap_or_else(|mistake| {
            let (problem, help) = (mistake.problem, mistake.help);
            self.fault = Some(SimError::Policy { at_ns: now, problem, help });
            stay
        })
    }
}
