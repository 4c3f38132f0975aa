//! Policies that one run stands for, as long as they decide as the one that runs.

use reveille_policy::{Pick, Task, Tunables};

/// A policy that has decided as the one that runs, so far.
#[derive(Clone)]
pub(crate) struct Follower {
    pub(crate) index: usize,
    pub(crate) tunables: Tunables,
    /// What it would last have decided, and what it would have left in wakee and waker.
    pub(crate) decided: Option<(Pick, [Task; 2])>,
}

/// Policies that the run is checked against.
#[derive(Default)]
pub(crate) struct Followers {
    /// Those that have always agreed.
    pub(crate) agreeing: Vec<Follower>,
    /// Those that have departed since the last checkpoint.
    pub(crate) departed: Vec<Follower>,
}

impl Followers {
    /// Goes on with the followers that `agree`; the others depart.
    pub(crate) fn retain(&mut self, mut agree: impl FnMut(&Follower) -> bool) {
        if self.agreeing.iter().all(&mut agree) {
            return;
        }
        let (agreeing, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.agreeing).into_iter().partition(agree);
        self.agreeing = agreeing;
        self.departed.extend(others);
    }
}
