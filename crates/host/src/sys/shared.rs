//! Memory shared with forked processes, for the words that tasks count in and wait on.

use std::io;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Alignment to a pair of cache lines, since processors prefetch the neighbouring line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct OwnLine<T>(pub T);

impl<T> std::ops::Deref for OwnLine<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// Types that may live in shared memory.
///
/// # Safety
/// All bytes zero must be a valid value, all changes must go through `&self` and atomics,
/// and it must hold no pointer and need no drop.
pub unsafe trait Shareable: Sync {}

// SAFETY: atomics are valid when zero, and so is what is made of them.
unsafe impl Shareable for std::sync::atomic::AtomicU32 {}
// SAFETY: as above.
unsafe impl Shareable for std::sync::atomic::AtomicU64 {}
// SAFETY: as above.
unsafe impl Shareable for super::futex::Doorbell {}
// SAFETY: adds nothing but alignment.
unsafe impl<T: Shareable> Shareable for OwnLine<T> {}

/// Declares a struct of shareable fields that is itself [`Shareable`].
macro_rules! shareable {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Default)]
        $vis struct $name {
            $($(#[$field_meta])* $field_vis $field: $type,)*
        }

        // SAFETY: each field is shareable, which the bounds check, and there is nothing else.
        unsafe impl $crate::sys::shared::Shareable for $name
        where
            $($type: $crate::sys::shared::Shareable,)*
        {
        }
    };
}
pub(crate) use shareable;

/// A slice of zeroed values that stays shared over a fork. Pages that are never touched
/// take no memory.
#[derive(Debug)]
pub struct SharedSlice<T: Shareable> {
    start: NonNull<T>,
    len: usize,
}

// SAFETY: gives out `&T` alone, and `T` is `Sync`.
unsafe impl<T: Shareable> Sync for SharedSlice<T> {}
// SAFETY: as above; unmapping may happen on any thread.
unsafe impl<T: Shareable> Send for SharedSlice<T> {}

impl<T: Shareable> SharedSlice<T> {
    /// Maps `len` values, all zero.
    pub fn new(len: usize) -> io::Result<SharedSlice<T>> {
        let bytes = Self::bytes(len)?;
        if bytes == 0 {
            return Ok(SharedSlice { start: NonNull::dangling(), len });
        }
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::NORESERVE;
        // SAFETY: a new mapping of its own, at an address that the kernel chooses.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(SharedSlice { start, len })
    }

    fn bytes(len: usize) -> io::Result<usize> {
        len.checked_mul(size_of::<T>()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }
}

impl<T: Shareable> std::ops::Deref for SharedSlice<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: mapped for `len` values until dropped, page-aligned and zeroed, which is valid
        // for every `Shareable`; there is no `&mut` to any of it.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Shareable> Drop for SharedSlice<T> {
    fn drop(&mut self) {
        if let Ok(bytes @ 1..) = Self::bytes(self.len) {
            // SAFETY: the mapping made in `new`, which nothing borrows any more.
            let _ = unsafe { munmap(self.start.as_ptr().cast(), bytes) };
        }
    }
}
