//! One value per CPU, or per task: indexed by that kind of number and no other, and without
//! a check. An activation follows some hundred of these numbers, and every one of them comes
//! from [`IdVec::ids`], or from the topology and the program that all vectors of a run are made
//! for, or has passed [`IdVec::checked`]; no vector shrinks. Builds with debug assertions check
//! each.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use reveille_policy::{CpuId, Id, TaskId, World};

pub(crate) type CpuVec<T> = IdVec<CpuId, T>;
pub(crate) type TaskVec<T> = IdVec<TaskId, T>;
/// A world that follows these numbers, as unchecked.
pub(crate) type Known = World<false>;

/// A number of something that only one file counts.
#[derive(Clone, Copy)]
pub(crate) struct At(pub(crate) usize);

impl Id for At {
    #[inline]
    fn index(self) -> usize {
        self.0
    }

    #[inline]
    fn at(index: usize) -> At {
        At(index)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct IdVec<I, T> {
    items: Vec<T>,
    of: PhantomData<I>,
}

impl<I: Id, T> IdVec<I, T> {
    pub(crate) fn new() -> IdVec<I, T> {
        IdVec { items: Vec::new(), of: PhantomData }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn push(&mut self, item: T) {
        self.items.push(item);
    }

    #[inline]
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }

    #[inline]
    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.items.iter_mut()
    }

    /// A number that a program or a caller has made up. Panics if nothing has it.
    #[inline]
    pub(crate) fn checked(&self, id: I) -> I {
        assert!(id.index() < self.items.len(), "no number {}", id.index());
        id
    }

    /// Begins to load the first `LINES` cache lines of a value that is soon needed.
    #[inline]
    pub(crate) fn prefetch<const LINES: usize>(&self, id: I) {
        #[cfg(target_arch = "x86_64")]
        for line in 0..LINES {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let value = self.items.as_ptr().wrapping_add(id.index()).cast::<i8>();
            // SAFETY: a hint of every x86-64, which has no effect but on caches and never faults.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(value.wrapping_add(64 * line)) }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = id;
    }

    /// Every number that has a value, ascending.
    #[inline]
    pub(crate) fn ids(&self) -> impl Iterator<Item = I> + use<I, T> {
        (0..self.items.len()).map(I::at)
    }
}

impl<I, T: Clone> IdVec<I, T> {
    /// `n` copies of `value`.
    pub(crate) fn filled(value: T, n: usize) -> IdVec<I, T> {
        IdVec { items: vec![value; n], of: PhantomData }
    }
}

impl<I, T> FromIterator<T> for IdVec<I, T> {
    fn from_iter<F: IntoIterator<Item = T>>(items: F) -> IdVec<I, T> {
        IdVec { items: items.into_iter().collect(), of: PhantomData }
    }
}

impl<I: Id, T> Index<I> for IdVec<I, T> {
    type Output = T;

    #[inline]
    fn index(&self, id: I) -> &T {
        debug_assert!(id.index() < self.items.len(), "no number {}", id.index());
        // SAFETY: numbers in use are below the length, as said above.
        unsafe { self.items.get_unchecked(id.index()) }
    }
}

impl<I: Id, T> IndexMut<I> for IdVec<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        debug_assert!(id.index() < self.items.len(), "no number {}", id.index());
        // SAFETY: as above.
        unsafe { self.items.get_unchecked_mut(id.index()) }
    }
}
