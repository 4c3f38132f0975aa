//! What a run needs of the system's limits, looked at before anything is started: to run
//! into them on the way takes long and disturbs everybody else.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::HostError;

/// Files that are open in a child anyway.
const SPARE_FILES: u64 = 32;

/// Makes sure that a process may open so many files, as far as the hard limit goes.
pub(crate) fn allow_files(needed: u64, fewer: &str) -> Result<(), HostError> {
    let needed = needed + SPARE_FILES;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|soft| soft >= needed) {
        return Ok(());
    }
    if let Some(hard) = limit.maximum
        && hard < needed
    {
        return Err(HostError::input(
            format!("{needed} open files are needed, and the limit is {hard} (ulimit -Hn)"),
            format!("{fewer}, or raise the limit"),
        ));
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum: limit.maximum })
        .map_err(|e| HostError::system(format!("allow {needed} open files"), e, fewer))
}

/// Makes sure that the kernel has numbers and room for so many tasks.
pub(crate) fn allow_tasks(tasks: u64, fewer: &str) -> Result<(), HostError> {
    for file in ["/proc/sys/kernel/threads-max", "/proc/sys/kernel/pid_max"] {
        let text = fs::read_to_string(file).unwrap_or_default();
        if let Ok(limit) = text.trim().parse::<u64>()
            && tasks >= limit
        {
            let problem =
                format!("{tasks} tasks are more than this kernel allows ({limit}, {file})");
            return Err(HostError::input(problem, format!("{fewer}, or raise the limit")));
        }
    }
    Ok(())
}

/// Refuses a number that must not be 0.
pub(crate) fn at_least_one(value: u64, option: &str, what: &str) -> Result<(), HostError> {
    if value > 0 {
        return Ok(());
    }
    Err(HostError::input(format!("`{option} 0`: no {what}"), "use 1 or more".to_owned()))
}
