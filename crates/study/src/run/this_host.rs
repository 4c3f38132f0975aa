//! This host as a runner: task groups are made, features switched and CPUs named for each
//! run, and all of it is gone after it.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use reveille_host::cgroup::HostGroups;
use reveille_host::features::{KernelFeatures, Switch};
use reveille_host::program::{self, Setting};
use reveille_host::sched_ext::{Loaded, Loader, SCX_REVEILLE, SchedExt};
use reveille_host::{HostError, Watch, supervise};
use reveille_measure::{HostContext, LoadedScheduler, RunResult, RunSpec};
use reveille_workload::Program;

use crate::run::native::{HostRunner, HostSide};

/// How long the host is watched before anything runs on it: what is busy then is others.
const PROBE: Duration = Duration::from_millis(400);

/// Features that mainline kernels let one switch, of those that the model knows.
const SWITCHABLE: [&str; 19] = [
    "WA_IDLE",
    "WA_WEIGHT",
    "SIS_UTIL",
    "SIS_PROP",
    "TTWU_QUEUE",
    "WAKEUP_PREEMPTION",
    "GENTLE_FAIR_SLEEPERS",
    "START_DEBIT",
    "LAST_BUDDY",
    "UTIL_EST",
    "PLACE_LAG",
    "RUN_TO_PARITY",
    "PREEMPT_SHORT",
    "DELAY_DEQUEUE",
    "DELAY_ZERO",
    "NI_RANDOM",
    "NI_RATE",
    "HRTICK",
    "SCHED_CACHE",
];

/// The host that this process runs on.
#[derive(Debug)]
pub struct ThisHost {
    command: PathBuf,
    sched_ext: SchedExt,
    /// What was loaded until now, and what its loader warned of.
    loaded: Mutex<Vec<(LoadedScheduler, Vec<String>)>>,
}

impl ThisHost {
    /// `command` is the `reveille` command: every run has a process of its own.
    pub fn new(command: PathBuf) -> ThisHost {
        ThisHost { command, sched_ext: SchedExt::of_this_kernel(), loaded: Mutex::default() }
    }

    /// Loads a scheduler for one run, and takes note of it.
    fn load(&self, loader: &Loader, stop: &AtomicBool) -> Result<Loaded, HostError> {
        let loaded = self.sched_ext.load(loader, stop)?;
        let name = loaded.name().to_owned();
        let seen = LoadedScheduler { name, command: loader.command() };
        let mut warnings = loaded.warnings();
        if loader.program != SCX_REVEILLE {
            let program = &loader.program;
            warnings.push(format!("{program} has rules of its own: nothing is predicted for it"));
        }
        let mut all = self.loaded.lock().expect("nothing panics under this lock");
        if all.iter().all(|(other, _)| *other != seen) {
            all.push((seen, warnings));
        }
        Ok(loaded)
    }
}

impl HostRunner for ThisHost {
    fn check(&self, side: &HostSide<'_>) -> Result<(), HostError> {
        supervise::check_cpus(side.cpus)?;
        check_switches(&side.switches)?;
        if let Some(loader) = &side.loader {
            self.sched_ext.check(loader)?;
        }
        // Made and gone again: a kernel says best what it can do.
        HostGroups::create(side.groups).map(drop)
    }

    fn run(
        &self,
        side: &HostSide<'_>,
        program: &Program,
        spec: &RunSpec,
        stop: &AtomicBool,
    ) -> Result<RunResult, HostError> {
        let _switched = match side.switches.as_slice() {
            [] => None,
            switches => Some(KernelFeatures::of_this_kernel()?.switch(switches)?),
        };
        let made = HostGroups::create(side.groups)?;
        let setting = Setting { cpus: side.cpus.to_vec(), groups: made.files(side.groups)? };
        let loaded = side.loader.as_ref().map(|loader| self.load(loader, stop)).transpose()?;
        let ran = program::run(&self.command, program, &setting, spec, stop);
        if let Some(loaded) = loaded {
            match (loaded.unload(), &ran) {
                (Err(_), Err(HostError::Interrupted)) => {}
                // A scheduler that was lost explains what went wrong with the run as well.
                (unloaded, _) => unloaded?,
            }
        }
        Ok(ran?.result)
    }

    fn observe(&self, work: &mut dyn FnMut()) -> HostContext {
        let idle = Watch::begin();
        thread::sleep(PROBE);
        let before = idle.others();
        let watch = Watch::begin();
        work();
        let mut context = watch.end(false);
        let loaded = self.loaded.lock().expect("nothing panics under this lock").clone();
        for (scheduler, warnings) in loaded {
            context.loaded.push(scheduler);
            for warning in warnings {
                if !context.warnings.contains(&warning) {
                    context.warnings.push(warning);
                }
            }
        }
        context.warnings.extend(before.map(|w| format!("before the first run: {w}")));
        context
    }
}

fn check_switches(switches: &[Switch]) -> Result<(), HostError> {
    if switches.is_empty() {
        return Ok(());
    }
    match KernelFeatures::of_this_kernel() {
        Ok(features) => features.check(switches),
        Err(error) => {
            match switches.iter().find(|(name, _)| !SWITCHABLE.contains(&name.as_str())) {
                None => Err(error),
                Some((name, _)) => {
                    let help = "on a host, vary the CPUs (cpus=0-1), the settings of a task group \
                            (quota=, period=, burst=), or, as root with debugfs, features that \
                            its kernel can switch";
                    let problem = format!("a running kernel cannot be given or denied {name}");
                    Err(HostError::input(problem, format!("{help}: {}", SWITCHABLE.join(", "))))
                }
            }
        }
    }
}
