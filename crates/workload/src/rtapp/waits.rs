//! What tasks of an rt-app file wait for: who waits, who wakes, and whether the one can
//! ever come of the other. A condition is a list that waiters join and a waker takes whole.

use reveille_place::{Mistake, did_you_mean, nearest};

use super::json::{Node, Place};
use crate::error::Result;

/// Suspended tasks and condition variables have names of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Suspend,
    Condition,
}

/// Names in the order of their first use, and every use.
#[derive(Default)]
pub(super) struct Waits {
    pub(super) locks: Vec<String>,
    lists: Vec<List>,
}

struct List {
    kind: Kind,
    name: String,
    waiters: Vec<Use>,
    wakers: Vec<Use>,
}

/// An event that waits or wakes.
struct Use {
    by: Who,
    /// Wakes one waiter only.
    one: bool,
    place: Place,
}

/// The task of an event.
#[derive(Clone, Copy)]
pub(super) struct Who {
    pub(super) task: usize,
    /// How many there are of it.
    pub(super) instances: u64,
}

impl Waits {
    pub(super) fn list_names(&self) -> Vec<String> {
        self.lists.iter().map(|list| list.name.clone()).collect()
    }

    /// Index of the mutex that a value names.
    pub(super) fn lock(&mut self, name: &Node) -> Result<usize> {
        let name = name.text()?;
        let known = self.locks.iter().position(|lock| lock == name);
        Ok(known.unwrap_or_else(|| {
            self.locks.push(name.to_owned());
            self.locks.len() - 1
        }))
    }

    /// Index of the list on which an event at `node` waits.
    pub(super) fn waiter(&mut self, kind: Kind, name: &str, by: Who, node: &Node) -> usize {
        let list = self.list(kind, name);
        self.lists[list].waiters.push(Use { by, one: false, place: node.place() });
        list
    }

    /// Index of the list that an event at `node` wakes, or from which it wakes `one`.
    pub(super) fn waker(
        &mut self,
        kind: Kind,
        name: &str,
        by: Who,
        one: bool,
        node: &Node,
    ) -> usize {
        let list = self.list(kind, name);
        self.lists[list].wakers.push(Use { by, one, place: node.place() });
        list
    }

    fn list(&mut self, kind: Kind, name: &str) -> usize {
        let known = self.lists.iter().position(|l| l.kind == kind && l.name == name);
        known.unwrap_or_else(|| {
            let (waiters, wakers) = (Vec::new(), Vec::new());
            self.lists.push(List { kind, name: name.to_owned(), waiters, wakers });
            self.lists.len() - 1
        })
    }

    /// Refuses events that would wait forever, wake no task, or leave open which task to wake.
    pub(super) fn check(&self, top: &Node) -> Result<()> {
        for list in &self.lists {
            let (name, [waits, wakes]) = (&list.name, list.verbs());
            for waiter in &list.waiters {
                let lone = |waker: &Use| waker.by.task == waiter.by.task && waker.by.instances == 1;
                if list.wakers.iter().all(lone) {
                    let problem = format!("no other task would ever wake who waits for `{name}`");
                    let help = format!("give another task `\"{wakes}\": \"{name}\"`");
                    return Err(top.error_at(&waiter.place, Mistake::new(problem, help)));
                }
            }
            for waker in &list.wakers {
                if list.waiters.is_empty() {
                    let waited = self.lists.iter().filter(|l| !l.waiters.is_empty());
                    let hint = did_you_mean(nearest(name, waited.map(|l| l.name.as_str())));
                    let problem = format!("no task ever waits for `{name}`{hint}");
                    let help = match list.kind {
                        Kind::Suspend => format!("give a task `\"{waits}\": \"{name}\"`"),
                        Kind::Condition => {
                            format!("let a task `{waits}` for {{ \"ref\": \"{name}\" }}")
                        }
                    };
                    return Err(top.error_at(&waker.place, Mistake::new(problem, help)));
                }
                let waiting = list.waiting_beside(waker.by);
                if waker.one && waiting > 1 {
                    let problem = format!(
                        "{waiting} tasks can wait for `{name}`, and waking one of several is not \
                         simulated"
                    );
                    let help = "wake all with `broad`, or give each waiter a name of its own";
                    return Err(top.error_at(&waker.place, Mistake::new(problem, help)));
                }
            }
        }
        Ok(())
    }
}

impl List {
    /// The events that wait and that wake.
    fn verbs(&self) -> [&'static str; 2] {
        match self.kind {
            Kind::Suspend => ["suspend", "resume"],
            Kind::Condition => ["wait", "signal"],
        }
    }

    /// How many tasks can wait while one of `waker` runs.
    fn waiting_beside(&self, waker: Who) -> u64 {
        let mut tasks: Vec<(usize, u64)> =
            self.waiters.iter().map(|w| (w.by.task, w.by.instances)).collect();
        tasks.sort_unstable();
        tasks.dedup();
        let own = |(task, n): (usize, u64)| if task == waker.task { n - 1 } else { n };
        tasks.into_iter().map(own).sum()
    }
}
