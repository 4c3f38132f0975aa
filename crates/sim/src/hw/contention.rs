//! Contention: locks and cache lines as servers with a queue. Waiting times follow from arrivals
//! and service times alone.

use crate::ids::{At, IdVec};
use reveille_measure::Ns;
use reveille_policy::CpuId;

/// CPUs per page of `seen`.
const PAGE: usize = 64;

type Page = [u32; PAGE];

#[cold]
fn first_page() -> Box<Page> {
    Box::new([0; PAGE])
}

/// A shared cache line, served first come, first served. A write, or the first read after one,
/// fetches the line from its last writer; later reads hit in the cache and don't delay others. A
/// request may be for later (`when`) than `now`, as a CPU that waits for a lock first; it takes
/// its turn now, and others that come before it don't wait until it has been served.
#[derive(Clone)]
pub(crate) struct Line {
    free_at: Ns,
    writer: CpuId,
    last_reader: CpuId,
    version: u32,
    shared: bool,
    /// Version that each CPU last saw, paged by CPU: most CPUs never touch most lines.
    seen: IdVec<At, Option<Box<Page>>>,
}

impl Line {
    pub(crate) fn new(n_cpus: usize) -> Line {
        Line {
            free_at: 0,
            writer: CpuId(0),
            last_reader: CpuId(0),
            version: 0,
            shared: false,
            seen: IdVec::filled(None, n_cpus.div_ceil(PAGE)),
        }
    }

    #[inline]
    fn seen(&mut self, cpu: CpuId) -> &mut u32 {
        let page = &mut self.seen[At(cpu.index() / PAGE)];
        &mut page.get_or_insert_with(first_page)[cpu.index() % PAGE]
    }

    /// Duration of a read by `cpu`, requested at `when`.
    #[inline]
    pub(crate) fn read(
        &mut self,
        cpu: CpuId,
        now: Ns,
        when: Ns,
        transfer: impl Fn(CpuId, CpuId) -> Ns,
    ) -> Ns {
        let version = self.version;
        let seen = self.seen(cpu);
        if *seen == version {
            return 0;
        }
        *seen = version;
        self.last_reader = cpu;
        let service = transfer(self.writer, cpu);
        if self.shared {
            return self.free_at.max(when) + service - when;
        }
        self.shared = true;
        self.serve(now, when, service)
    }

    /// Duration of a write by `cpu`, requested at `when`. The line is taken from the last writer and
    /// from the readers since.
    #[inline]
    pub(crate) fn write(
        &mut self,
        cpu: CpuId,
        now: Ns,
        when: Ns,
        transfer: impl Fn(CpuId, CpuId) -> Ns,
    ) -> Ns {
        if self.writer == cpu && !self.shared {
            return 0;
        }
        let reader = if self.shared { self.last_reader } else { cpu };
        let service = transfer(self.writer, cpu).max(transfer(reader, cpu));
        self.version = self.version.wrapping_add(1);
        *self.seen(cpu) = self.version;
        self.writer = cpu;
        self.shared = false;
        self.serve(now, when, service)
    }

    /// Duration of a write and of a read soon after it. Others that come while the write waits
    /// take the line before the read.
    #[inline]
    pub(crate) fn write_and_read(
        &mut self,
        cpu: CpuId,
        now: Ns,
        when: Ns,
        transfer: impl Fn(CpuId, CpuId) -> Ns,
    ) -> Ns {
        let contested = self.free_at > when;
        let again = transfer(self.writer, cpu);
        let written = self.write(cpu, now, when, &transfer);
        if !contested {
            return written;
        }
        written + self.serve(now, when + written, again)
    }

    /// Queues a request. Returns how long it takes from `when`.
    #[inline]
    fn serve(&mut self, now: Ns, when: Ns, service: Ns) -> Ns {
        let served = self.free_at.max(when) + service;
        self.free_at = self.free_at.max(now) + service;
        served - when
    }
}

/// A FIFO spin lock, held from grant to release.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lock {
    free_at: Ns,
    owner: CpuId,
}

impl Lock {
    /// Time until `cpu`, which requests the lock at `now`, is granted it.
    #[inline]
    pub(crate) fn acquire(
        &mut self,
        cpu: CpuId,
        now: Ns,
        transfer: impl Fn(CpuId, CpuId) -> Ns,
    ) -> Ns {
        let handoff = transfer(self.owner, cpu);
        self.owner = cpu;
        now.max(self.free_at) + handoff - now
    }

    /// The CPU that last held it.
    #[inline]
    pub(crate) fn owner(&self) -> CpuId {
        self.owner
    }

    /// Would a CPU that requests it at `now` wait?
    #[inline]
    pub(crate) fn held_at(&self, now: Ns) -> bool {
        self.free_at > now
    }

    /// Sets the time of the release.
    #[inline]
    pub(crate) fn release(&mut self, at: Ns) {
        self.free_at = self.free_at.max(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn far(from: CpuId, to: CpuId) -> Ns {
        if from == to { 0 } else { 70 }
    }

    #[test]
    fn writers_queue_and_readers_share() {
        let mut line = Line::new(8);
        assert_eq!(line.write(CpuId(1), 1000, 1000, far), 70);
        assert_eq!(line.write(CpuId(2), 1000, 1000, far), 140, "the second waits for the first");
        assert_eq!(line.write(CpuId(2), 1200, 1200, far), 0, "the owner writes for free");
        assert_eq!(line.read(CpuId(3), 1200, 1200, far), 70);
        assert_eq!(line.read(CpuId(4), 1210, 1210, far), 60 + 70, "waits until the line is shared");
        assert_eq!(line.read(CpuId(5), 1300, 1300, far), 70, "then reads do not queue");
        assert_eq!(line.read(CpuId(5), 1400, 1400, far), 0, "a seen version is cached");
        assert_eq!(line.write(CpuId(2), 1400, 1400, far), 70, "readers are invalidated");
    }

    #[test]
    fn a_request_for_later_delays_nobody_before_it() {
        let mut line = Line::new(8);
        assert_eq!(line.write(CpuId(1), 1000, 9000, far), 70);
        assert_eq!(line.write(CpuId(2), 1000, 1000, far), 70 + 70, "only its turn is ahead");
        assert_eq!(line.write(CpuId(3), 2000, 2000, far), 70, "and over by now");
    }

    #[test]
    fn a_line_that_others_wait_for_is_gone_before_it_is_read() {
        let mut line = Line::new(8);
        assert_eq!(line.write_and_read(CpuId(1), 1000, 1000, far), 70, "uncontended");
        assert_eq!(line.write_and_read(CpuId(2), 1010, 1010, far), 60 + 70 + 70);
        assert_eq!(line.write_and_read(CpuId(3), 1500, 1500, far), 70);
    }

    #[test]
    fn a_write_takes_the_line_from_its_farthest_holder() {
        let remote = |from: CpuId, to: CpuId| if (from.0 < 4) == (to.0 < 4) { 70 } else { 140 };
        let mut line = Line::new(8);
        line.write(CpuId(1), 1000, 1000, remote);
        assert_eq!(line.read(CpuId(5), 2000, 2000, remote), 140);
        assert_eq!(line.write(CpuId(2), 3000, 3000, remote), 140);
        assert_eq!(line.write(CpuId(3), 4000, 4000, remote), 70);
    }

    #[test]
    fn a_lock_is_granted_when_released() {
        let mut lock = Lock::default();
        assert_eq!(lock.acquire(CpuId(1), 100, far), 70);
        lock.release(400);
        assert_eq!(lock.acquire(CpuId(1), 200, far), 200);
        lock.release(500);
        assert_eq!(lock.acquire(CpuId(2), 600, far), 70);
    }
}
