//! Work beside Python: the interpreter is free for other threads meanwhile, Ctrl-C ends the work,
//! and a callable hears how far it is.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Takes the number of runs done and of all.
pub type Progress<'a> = dyn Fn(usize, usize) + Sync + 'a;

/// How often signals are looked for.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Does the work in a thread of its own.
///
/// # Errors
/// What a signal's handler or `progress` raises, once the work has ended; the work panics.
pub fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&AtomicBool, &Progress<'_>) -> T + Send,
) -> PyResult<T> {
    let stop = AtomicBool::new(false);
    let (done, all) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let tell = |now: usize, of: usize| {
        done.fetch_max(now, Ordering::Relaxed);
        all.store(of, Ordering::Relaxed);
    };
    thread::scope(|scope| {
        let (ended, end) = channel();
        let (stop, tell) = (&stop, &tell);
        let worker = scope.spawn(move || {
            // Dropped at a panic, too.
            let _ended = ended;
            work(stop, tell)
        });
        let mut interrupted = Ok(());
        let mut told = (0, 0);
        // A receiver is bound to its thread: it waits in a loop of its own.
        let end = Mutex::new(end);
        let wait = || {
            let end = end.lock().unwrap_or_else(PoisonError::into_inner);
            end.recv_timeout(BETWEEN_LOOKS) == Err::<(), _>(RecvTimeoutError::Timeout)
        };
        while py.detach(wait) {
            let now = (done.load(Ordering::Relaxed), all.load(Ordering::Relaxed));
            let look = || {
                py.check_signals()?;
                match &progress {
                    Some(progress) if now != told => progress.call1(py, now).map(drop),
                    _ => Ok(()),
                }
            };
            if interrupted.is_ok() {
                interrupted = look();
                told = now;
            }
            if interrupted.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
        }
        let outcome = worker.join();
        interrupted?;
        outcome.map_err(|_| PyRuntimeError::new_err("the simulation panicked: please report it"))
    })
}
