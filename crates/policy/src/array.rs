//! Arrays whose addresses C code keeps: each is reached through one raw pointer, from which every
//! reference is derived, and none is alive when C code runs. With a `Vec` that would be wrong, whose
//! references to elements end the use of an earlier pointer.
#![allow(unsafe_code)]

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

pub(crate) struct Array<T> {
    first: *mut T,
    len: usize,
    capacity: usize,
}

impl<T> Array<T> {
    /// Its address, until the next [`Array::push`].
    pub(crate) fn address(&self) -> *mut T {
        self.first
    }

    pub(crate) fn push(&mut self, item: T) {
        let mut items = Vec::from(std::mem::take(self));
        items.push(item);
        *self = Array::from(items);
    }
}

impl<T> From<Vec<T>> for Array<T> {
    fn from(items: Vec<T>) -> Array<T> {
        let mut items = ManuallyDrop::new(items);
        Array { first: items.as_mut_ptr(), len: items.len(), capacity: items.capacity() }
    }
}

impl<T> From<Array<T>> for Vec<T> {
    fn from(array: Array<T>) -> Vec<T> {
        let array = ManuallyDrop::new(array);
        // SAFETY: these are the parts of a vector, which the array no longer has.
        unsafe { Vec::from_raw_parts(array.first, array.len, array.capacity) }
    }
}

impl<T> Drop for Array<T> {
    fn drop(&mut self) {
        // SAFETY: as above.
        drop(unsafe { Vec::from_raw_parts(self.first, self.len, self.capacity) });
    }
}

impl<T> Default for Array<T> {
    fn default() -> Array<T> {
        Array::from(Vec::new())
    }
}

impl<T: Clone> Clone for Array<T> {
    fn clone(&self) -> Array<T> {
        Array::from(self.to_vec())
    }
}

impl<T> Deref for Array<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: that many items are there, and no reference to them can change them.
        unsafe { std::slice::from_raw_parts(self.first, self.len) }
    }
}

impl<T> DerefMut for Array<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and this is the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.first, self.len) }
    }
}
