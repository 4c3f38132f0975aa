//! The only place that loads and calls code from a policy file. Nothing here can vouch for that
//! code: the command runs it in a process of its own, which it may only harm itself.
#![allow(unsafe_code)]

use std::path::Path;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::Wakeup;
use crate::state::{Pick, RawWorld};
use crate::{CpuId, TaskId, Tunables};

/// `reveille_entry()` of csrc/policy_file.h.
type Entry = unsafe extern "C" fn(
    w: *mut RawWorld,
    t: *const Tunables,
    p: TaskId,
    waker: TaskId,
    this_cpu: CpuId,
    flags: u32,
    now_j: u64,
    pick: *mut Pick,
);

pub(super) struct Loaded {
    entry: Entry,
    /// `entry` lies in it.
    _library: Library,
}

impl Loaded {
    /// Loads a shared object that [`super::inspect`] has passed.
    pub(super) fn open(object: &Path) -> Result<Loaded, libloading::Error> {
        // SAFETY: inspection refuses constructors and destructors, so that loading runs no code.
        let library = unsafe { Library::open(Some(object), RTLD_NOW | RTLD_LOCAL)? };
        // SAFETY: csrc/policy_file.h, compiled into every object, defines it with this type.
        let entry = unsafe { *library.get::<Entry>(b"reveille_entry\0")? };
        Ok(Loaded { entry, _library: library })
    }

    pub(super) fn select_cpu(&self, world: &mut RawWorld, t: &Tunables, wakeup: &Wakeup) -> Pick {
        let Wakeup { wakee, waker, this_cpu, flags, now_j } = *wakeup;
        let mut pick = Pick::default();
        // SAFETY: the world points into live vectors, the caller checked the ids, and accessors
        // of the world check every number that the file passes. What the file does beyond them
        // ends its process at worst.
        unsafe { (self.entry)(world, t, wakee, waker, this_cpu, flags, now_j, &mut pick) };
        pick
    }
}
