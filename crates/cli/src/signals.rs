//! Ctrl-C and its like end the run, not the command: finished work is shown, and set-up is undone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::errors::{INTERRUPTED, Result};
use crate::output_file;

/// A flag that the first SIGINT, SIGTERM or SIGHUP sets; a second one ends the
/// command at once.
pub fn watch_signals() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            reveille_host::cgroup::remove_all();
            output_file::remove_marks();
            std::process::exit(i32::from(INTERRUPTED));
        }
    })?;
    Ok(stop)
}
