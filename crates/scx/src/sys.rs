//! The only place for unsafe code: memory that the BPF program shares with the loader.
#![allow(unsafe_code)]

use std::ptr;

/// What the BPF program may be writing at this moment, as it is now.
pub fn live<T: Copy>(at: &T) -> T {
    // SAFETY: a reference is valid for reads of its type. The other writer is the BPF
    // program, by single stores; a copy that mixes old and new counters is no wrong one.
    unsafe { ptr::read_volatile(at) }
}

/// Stores what the BPF program reads from now on.
pub fn set_live<T: Copy>(at: &mut T, value: T) {
    // SAFETY: an exclusive reference is valid for writes of its type; the program reads it
    // by single loads.
    unsafe { ptr::write_volatile(at, value) }
}

/// The table of callbacks of a scheduler that is not loaded yet.
///
/// `at` comes from an opened skeleton, which lives and is not touched meanwhile.
pub fn callbacks<T>(at: *mut T) -> Option<&'static mut T> {
    // SAFETY: the skeleton sets the pointer to the map's initial value, of this type, or
    // leaves it null; callers drop the reference before they load the skeleton.
    unsafe { at.as_mut() }
}

/// A map's value as the generated type.
pub fn value_of<T: Copy>(bytes: &[u8]) -> Option<T> {
    if bytes.len() < size_of::<T>() {
        return None;
    }
    // SAFETY: there are as many bytes as T has, and T is one of the generated C types, all
    // of whose members are integers: any bytes are one.
    Some(unsafe { ptr::read_unaligned(bytes.as_ptr().cast()) })
}
