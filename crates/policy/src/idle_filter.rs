//! SIS_FILTER's mask: the CPUs of a cache that have gone idle since a search last found
//! none. Searches read and empty it in policy/idle_search.h; here CPUs join.
#![allow(unsafe_code)]

use crate::state::RawWorld;
use crate::{CpuId, World};

unsafe extern "C" {
    fn reveille_joins_filter(w: *const RawWorld, cpu: CpuId) -> bool;
}

impl<const CHECKED: bool> World<CHECKED> {
    /// May a search under SIS_FILTER look at this CPU?
    pub fn in_filter(&self, cpu: CpuId) -> bool {
        let c = &self.parts.cpus[cpu.index()];
        let word = self.parts.llcs[usize::from(c.llc)].filter[usize::from(c.position) / 64];
        word >> (c.position % 64) & 1 != 0
    }

    /// Puts a CPU into the mask, or takes it out.
    pub fn set_in_filter(&mut self, cpu: CpuId, is: bool) {
        let c = &self.parts.cpus[cpu.index()];
        let bit = 1 << (c.position % 64);
        let word = &mut self.parts.llcs[usize::from(c.llc)].filter[usize::from(c.position) / 64];
        *word = if is { *word | bit } else { *word & !bit };
    }

    /// `cpu` goes idle, and joins the mask unless its core is represented there. Returns
    /// whether it joined. Mail of 2022-09-09, SIS_FILTER v5 5/5.
    pub fn join_filter(&mut self, cpu: CpuId) -> bool {
        assert!(self.has(cpu), "no CPU {cpu}");
        // SAFETY: the world points into live vectors, and the CPU was checked.
        let joins = unsafe { reveille_joins_filter(self.raw(), cpu) };
        if joins {
            self.set_in_filter(cpu, true);
        }
        joins
    }
}
