//! Per-task counters from /proc: CPU time, run delay, context switches and migrations.

use std::fs;
use std::io;
use std::ops::{AddAssign, Sub};
use std::path::Path;

use reveille_measure::Ns;
use serde::{Deserialize, Serialize};

use super::proc;

/// Counters of one task since its start, or of several tasks over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskUse {
    pub cpu_ns: Ns,
    /// Time runnable and waiting for a CPU.
    pub run_delay_ns: Ns,
    /// Number of times it was put on a CPU.
    pub timeslices: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    /// Migrations; 0 where the kernel does not report them (no `CONFIG_SCHED_DEBUG`).
    pub migrations: u64,
}

impl TaskUse {
    pub fn of_thread(process: u32, thread: u32) -> io::Result<TaskUse> {
        TaskUse::read(Path::new(&format!("/proc/{process}/task/{thread}")))
    }

    fn read(task: &Path) -> io::Result<TaskUse> {
        let [cpu_ns, run_delay_ns, timeslices] = schedstat(task)?;
        let status = fs::read_to_string(task.join("status"))?;
        let sched = fs::read_to_string(task.join("sched")).unwrap_or_default();
        let count = |text: &str, key| proc::number(text, key).unwrap_or(0);
        Ok(TaskUse {
            cpu_ns,
            run_delay_ns,
            timeslices,
            voluntary_switches: count(&status, "voluntary_ctxt_switches"),
            involuntary_switches: count(&status, "nonvoluntary_ctxt_switches"),
            migrations: count(&sched, "se.nr_migrations"),
        })
    }
}

/// Time on a CPU, time waiting for one, and how often it was put on one.
fn schedstat(task: &Path) -> io::Result<[u64; 3]> {
    let text = fs::read_to_string(task.join("schedstat"))?;
    let mut numbers = text.split_ascii_whitespace().map(str::parse);
    Ok([(); 3].map(|()| numbers.next().and_then(Result::ok).unwrap_or(0)))
}

/// Mean run delay of a thread of this process per time it was put on a CPU; 0 if it never was, or
/// has ended.
pub(crate) fn mean_run_delay(thread: u32) -> Ns {
    let task = format!("/proc/self/task/{thread}");
    let [_, run_delay_ns, timeslices] = schedstat(Path::new(&task)).unwrap_or_default();
    run_delay_ns.checked_div(timeslices).unwrap_or(0)
}

impl Sub for TaskUse {
    type Output = TaskUse;

    fn sub(self, earlier: TaskUse) -> TaskUse {
        TaskUse {
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            run_delay_ns: self.run_delay_ns.saturating_sub(earlier.run_delay_ns),
            timeslices: self.timeslices.saturating_sub(earlier.timeslices),
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(earlier.involuntary_switches),
            migrations: self.migrations.saturating_sub(earlier.migrations),
        }
    }
}

impl AddAssign for TaskUse {
    fn add_assign(&mut self, other: TaskUse) {
        self.cpu_ns += other.cpu_ns;
        self.run_delay_ns += other.run_delay_ns;
        self.timeslices += other.timeslices;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
        self.migrations += other.migrations;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_works_uses_cpu_time_and_one_that_sleeps_switches() {
        let this = Path::new("/proc/thread-self");
        let before = TaskUse::read(this).unwrap();
        for _ in 0..3 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        crate::sys::clock::spin_until(crate::sys::clock::now() + 5_000_000);
        let used = TaskUse::read(this).unwrap() - before;
        assert!(used.voluntary_switches >= 3, "{used:?}");
        assert!(used.cpu_ns > 0 && used.timeslices >= 3, "{used:?}");
    }

    #[test]
    fn a_thread_that_never_ran_or_has_ended_has_no_delay() {
        // No thread has this number; one that has not run yet reads the same: 0 of 0.
        assert_eq!(mean_run_delay(u32::MAX), 0);
        let this = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let [_, run_delay_ns, timeslices] = schedstat(Path::new("/proc/thread-self")).unwrap();
        assert!(timeslices > 0);
        // Either may have grown by the second reading.
        assert!(mean_run_delay(this) <= (run_delay_ns + 1_000_000_000) / timeslices);
    }
}
