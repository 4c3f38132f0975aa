//! Tracepoints of one CPU in a ring buffer that the kernel writes and this process reads
//! (`perf_event_open(2)`). All tracepoints of a CPU share one ring, which preserves their order;
//! the kernel wakes the reader only when the ring is half full.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings::{
    self, perf_event_attr, perf_event_header, perf_event_mmap_page,
};
use perf_event_open_sys::{ioctls, perf_event_open};
use reveille_measure::Ns;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;

#[derive(Debug)]
pub enum Record<'a> {
    Passed {
        /// Time on the clock of [`super::clock`].
        at_ns: Ns,
        /// Its fields, in the layout of the tracepoint's `format` file.
        fields: &'a [u8],
    },
    /// This many records did not fit into the ring.
    Lost(u64),
}

#[derive(Debug)]
pub struct Ring {
    /// The events; the first one owns the ring.
    events: Vec<OwnedFd>,
    map: NonNull<u8>,
    /// Size of the data, excluding the page before it.
    bytes: usize,
    /// Copy of a record that wraps around the end of the ring.
    whole: Vec<u8>,
}

// SAFETY: the mapping belongs to this value alone, and is read through `&mut self`.
unsafe impl Send for Ring {}

impl Ring {
    /// Opens the tracepoints with these ids on a CPU, not yet enabled. `bytes` is a power
    /// of two and at least a page.
    ///
    /// # Errors
    /// What the kernel says: `EACCES` or `EPERM` without the permission to trace.
    pub fn open(cpu: u32, tracepoints: &[u64], bytes: usize) -> io::Result<Ring> {
        let events = tracepoints.iter().map(|&id| open(cpu, id, bytes));
        let events = events.collect::<io::Result<Vec<OwnedFd>>>()?;
        let length = page_size() + bytes;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let map =
            unsafe { mmap(ptr::null_mut(), length, protection, MapFlags::SHARED, &events[0], 0)? };
        let map = NonNull::new(map.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let ring = Ring { events, map, bytes, whole: Vec::new() };
        for event in &ring.events[1..] {
            // SAFETY: both are events that this value owns.
            check(unsafe { ioctls::SET_OUTPUT(event.as_raw_fd(), ring.events[0].as_raw_fd()) })?;
        }
        Ok(ring)
    }

    /// Enables or disables the tracepoints.
    pub fn enable(&self, on: bool) -> io::Result<()> {
        for event in &self.events {
            let fd = event.as_raw_fd();
            // SAFETY: an event that this value owns; the argument means nothing else.
            check(unsafe { if on { ioctls::ENABLE(fd, 0) } else { ioctls::DISABLE(fd, 0) } })?;
        }
        Ok(())
    }

    /// Becomes readable when the ring is half full.
    pub fn readable(&self) -> BorrowedFd<'_> {
        self.events[0].as_fd()
    }

    /// Hands out all records and frees their space.
    pub fn drain(&mut self, mut each: impl FnMut(Record<'_>)) {
        let page = self.map.as_ptr().cast::<perf_event_mmap_page>();
        // SAFETY: both lie in the mapped first page, are aligned, and are changed by the
        // kernel and by this process with atomic stores alone.
        let (head, tail) = unsafe {
            (
                AtomicU64::from_ptr(&raw mut (*page).data_head),
                AtomicU64::from_ptr(&raw mut (*page).data_tail),
            )
        };
        // The kernel publishes the head after the data before it, and reuses no place
        // before it sees the tail beyond.
        let end = head.load(Ordering::Acquire);
        let mut at = tail.load(Ordering::Relaxed);
        while at < end {
            let size = self.record_size(at);
            let Some(record) = self.bytes_at(at, size) else { break };
            if let Some(record) = parse(record) {
                each(record);
            }
            at += size as u64;
        }
        tail.store(end, Ordering::Release);
    }

    /// Size of the record at this place. Records are multiples of 8 bytes, so that a header
    /// is never cut in two.
    fn record_size(&mut self, at: u64) -> usize {
        let header = self.bytes_at(at, size_of::<perf_event_header>());
        header.map_or(0, |bytes| usize::from(u16::from_ne_bytes([bytes[6], bytes[7]])))
    }

    /// Bytes that the kernel has finished writing; `None` for sizes that no record has.
    fn bytes_at(&mut self, at: u64, size: usize) -> Option<&[u8]> {
        if size < size_of::<perf_event_header>() || size > self.bytes {
            return None;
        }
        let from = (at % self.bytes as u64) as usize;
        let first = size.min(self.bytes - from);
        // SAFETY: within the mapping, which is a page and `bytes` long; the kernel does not
        // write between tail and head.
        let (data, begin) = unsafe {
            let data = self.map.as_ptr().add(page_size());
            (data, std::slice::from_raw_parts(data.add(from), first))
        };
        if first == size {
            return Some(begin);
        }
        self.whole.clear();
        self.whole.extend_from_slice(begin);
        // SAFETY: as above, from the start of the ring.
        self.whole.extend_from_slice(unsafe { std::slice::from_raw_parts(data, size - first) });
        Some(&self.whole)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `open`, which nothing borrows any more.
        let _ = unsafe { munmap(self.map.as_ptr().cast(), page_size() + self.bytes) };
    }
}

fn open(cpu: u32, tracepoint: u64, ring_bytes: usize) -> io::Result<OwnedFd> {
    let mut attr = perf_event_attr::default();
    attr.type_ = bindings::PERF_TYPE_TRACEPOINT;
    attr.size = size_of::<perf_event_attr>() as u32;
    attr.config = tracepoint;
    attr.sample_type = u64::from(bindings::PERF_SAMPLE_TIME | bindings::PERF_SAMPLE_RAW);
    attr.clockid = libc::CLOCK_MONOTONIC;
    attr.__bindgen_anon_1.sample_period = 1;
    attr.__bindgen_anon_2.wakeup_watermark = (ring_bytes / 2) as u32;
    attr.set_disabled(1);
    attr.set_watermark(1);
    attr.set_use_clockid(1);
    let flags = u64::from(bindings::PERF_FLAG_FD_CLOEXEC);
    // SAFETY: the attributes are whole, of the size that they say, and ask for nothing that
    // writes to this process's memory.
    let fd = check(unsafe { perf_event_open(&raw mut attr, -1, cpu as i32, -1, flags) })?;
    // SAFETY: just opened, and not owned elsewhere.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn check(answer: i32) -> io::Result<i32> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

fn parse(record: &[u8]) -> Option<Record<'_>> {
    let kind = u32::from_ne_bytes(record.get(..4)?.try_into().ok()?);
    let word = |at: usize| Some(u64::from_ne_bytes(record.get(at..at + 8)?.try_into().ok()?));
    match kind {
        bindings::PERF_RECORD_SAMPLE => {
            let size = u32::from_ne_bytes(record.get(16..20)?.try_into().ok()?) as usize;
            Some(Record::Passed { at_ns: word(8)?, fields: record.get(20..20 + size)? })
        }
        // Its first word is the event.
        bindings::PERF_RECORD_LOST => Some(Record::Lost(word(16)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_that_are_cut_short_are_none() {
        let mut sample = Vec::new();
        sample.extend(bindings::PERF_RECORD_SAMPLE.to_ne_bytes());
        sample.extend([0, 0, 24, 0]);
        sample.extend(77u64.to_ne_bytes());
        sample.extend(4u32.to_ne_bytes());
        sample.extend([1, 2, 3, 4]);
        match parse(&sample) {
            Some(Record::Passed { at_ns: 77, fields: [1, 2, 3, 4] }) => {}
            other => panic!("{other:?}"),
        }
        for length in 0..sample.len() {
            assert!(parse(&sample[..length]).is_none(), "{length}");
        }
        let mut lost = Vec::new();
        lost.extend(bindings::PERF_RECORD_LOST.to_ne_bytes());
        lost.extend([0, 0, 24, 0]);
        lost.extend(1u64.to_ne_bytes());
        lost.extend(9u64.to_ne_bytes());
        assert!(matches!(parse(&lost), Some(Record::Lost(9))));
    }
}
