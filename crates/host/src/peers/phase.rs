//! How far a timed run has come: one word that all tasks read and only the parent writes.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::HostError;
use crate::sys::shared::{OwnLine, SharedSlice};

/// What tasks are to do. A mapping that is new is zero: it begins with the warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Run, and nothing counts.
    WarmUp = 0,
    /// Run.
    Measure = 1,
    /// End.
    Stop = 2,
}

/// The word.
pub(crate) struct PhaseWord(SharedSlice<OwnLine<AtomicU32>>);

impl PhaseWord {
    /// A word that says warm-up.
    pub fn new() -> Result<PhaseWord, HostError> {
        let word = SharedSlice::new(1);
        let word = word.map_err(|e| HostError::system("map shared memory", e, "free memory"))?;
        Ok(PhaseWord(word))
    }

    /// Moves all tasks on.
    pub fn set(&self, phase: Phase) {
        self.0[0].store(phase as u32, Ordering::SeqCst);
    }

    /// Is the run still on?
    #[inline]
    pub fn goes_on(&self) -> bool {
        self.0[0].load(Ordering::Relaxed) != Phase::Stop as u32
    }

    /// Where it is.
    #[inline]
    pub fn get(&self) -> Phase {
        match self.0[0].load(Ordering::Relaxed) {
            0 => Phase::WarmUp,
            1 => Phase::Measure,
            _ => Phase::Stop,
        }
    }
}
