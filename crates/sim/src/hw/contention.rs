//! Contention: locks and cache lines as servers with a queue. Waiting times follow from arrivals
//! and service times alone.

use crate::ids::{At, CpuVec, IdVec};
use reveille_measure::Ns;
use reveille_policy::CpuId;

/// CPUs per page of `seen`.
const PAGE: usize = 64;

type Page = [u32; PAGE];

#[cold]
fn first_page() -> Box<Page> {
    Box::new([0; PAGE])
}

/// A CPU's request for a line: made at `now`, for `when`, and a transfer of `service`.
#[derive(Clone, Copy)]
struct Request {
    cpu: CpuId,
    now: Ns,
    when: Ns,
    service: Ns,
}

/// A line's last stay in a cache: until when requests of that cache are served, the CPU of the last
/// of them, and how much longer the line may be passed on there.
#[derive(Clone, Copy, Default)]
struct Stay {
    until: Ns,
    holder: CpuId,
    left: Ns,
}

/// The caches in which requests for a line meet before they reach its home.
#[derive(Clone)]
struct Caches {
    of_cpu: CpuVec<u32>,
    stays: Vec<Stay>,
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
    caches: Option<Caches>,
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
            caches: None,
            seen: IdVec::filled(None, n_cpus.div_ceil(PAGE)),
        }
    }

    /// Requests of one cache meet there: while the next transfer to another one is under way, for as
    /// long as the last took, the line is passed on within its cache. `of_cpu` is the cache of each CPU.
    pub(crate) fn passed_on_in(self, of_cpu: impl Iterator<Item = u32>) -> Line {
        let of_cpu: CpuVec<u32> = of_cpu.collect();
        let n = of_cpu.iter().max().map_or(0, |&last| last as usize + 1);
        Line { caches: Some(Caches { of_cpu, stays: vec![Stay::default(); n] }), ..self }
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
        self.serve(Request { cpu, now, when, service }, transfer).0
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
        self.shared = false;
        let (took, last) = self.serve(Request { cpu, now, when, service }, transfer);
        if last {
            *self.seen(cpu) = self.version;
            self.writer = cpu;
        }
        took
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
        let service = transfer(self.writer, cpu);
        let written = self.write(cpu, now, when, &transfer);
        if !contested {
            return written;
        }
        let again = Request { cpu, now, when: when + written, service };
        written + self.serve(again, transfer).0
    }

    /// Queues a request. Returns how long it takes from `when`, and whether it is the last so far.
    #[inline]
    fn serve(&mut self, request: Request, transfer: impl Fn(CpuId, CpuId) -> Ns) -> (Ns, bool) {
        if self.caches.is_some()
            && let Some(ahead) = self.serve_in_cache(request, transfer)
        {
            return ahead;
        }
        let Request { now, when, service, .. } = request;
        let served = self.free_at.max(when) + service;
        self.free_at = self.free_at.max(now) + service;
        (served - when, true)
    }

    /// Serves a request where the line is or will be, if it may be passed on there; otherwise notes
    /// that the line comes to the CPU's cache in turn.
    #[inline(never)]
    fn serve_in_cache(
        &mut self,
        Request { cpu, now, when, service }: Request,
        transfer: impl Fn(CpuId, CpuId) -> Ns,
    ) -> Option<(Ns, bool)> {
        let caches = self.caches.as_mut()?;
        let stay = &mut caches.stays[caches.of_cpu[cpu] as usize];
        let within = transfer(stay.holder, cpu);
        if stay.until <= now || stay.left < within {
            let until = self.free_at.max(now) + service;
            *stay = Stay { until, holder: cpu, left: service };
            return None;
        }
        let took = stay.until.max(when) + within - when;
        let last = stay.until == self.free_at;
        *stay = Stay { until: stay.until + within, holder: cpu, left: stay.left - within };
        self.free_at += within;
        Some((took, last))
    }
}

/// A FIFO spin lock, held from grant to release. A request for later takes its turn now, as that for
/// a [`Line`] does, and others that come before it don't wait until it has been served.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lock {
    free_at: Ns,
    owner: CpuId,
}

impl Lock {
    /// Time from `when` on, at which `cpu` requests the lock, until it is granted.
    #[inline]
    pub(crate) fn acquire(
        &mut self,
        cpu: CpuId,
        now: Ns,
        when: Ns,
        transfer: impl Fn(CpuId, CpuId) -> Ns,
    ) -> Ns {
        let handoff = transfer(self.owner, cpu);
        self.owner = cpu;
        let granted = self.free_at.max(when) + handoff;
        self.free_at = self.free_at.max(now) + handoff;
        granted - when
    }

    /// Its last owner holds it for a time: after the grant, or on top of what it held it for.
    #[inline]
    pub(crate) fn hold(&mut self, now: Ns, time: Ns) {
        self.free_at = self.free_at.max(now) + time;
    }

    /// Sets the time of the release, if it is later.
    #[inline]
    pub(crate) fn release(&mut self, at: Ns) {
        self.free_at = self.free_at.max(at);
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
    fn a_contended_line_is_passed_on_within_its_cache_for_as_long_as_a_transfer() {
        let between = |from: CpuId, to: CpuId| if (from.0 < 4) == (to.0 < 4) { 50 } else { 140 };
        let mut line = Line::new(8).passed_on_in([0, 0, 0, 0, 1, 1, 1, 1].into_iter());
        let mut asks = |cpu: u32| line.write(CpuId(cpu), 1000, 1000, between);
        assert_eq!(asks(4), 140, "from the other cache");
        assert_eq!(asks(0), 140 + 140, "and back");
        assert_eq!(asks(5), 140 + 50, "from its neighbour, ahead of that");
        assert_eq!(asks(6), 190 + 50);
        assert_eq!(asks(7), 280 + 2 * 50 + 140, "behind all, after two transfers of 50 in 140");
        assert_eq!(asks(1), 280 + 50);
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
        assert_eq!(lock.acquire(CpuId(1), 100, 100, far), 70);
        lock.hold(100, 230);
        assert_eq!(lock.acquire(CpuId(1), 200, 200, far), 200);
        lock.hold(200, 50);
        lock.hold(200, 50);
        assert_eq!(lock.acquire(CpuId(2), 490, 490, far), 10 + 70);
    }

    #[test]
    fn a_lock_asked_for_later_delays_nobody_before_it() {
        let mut lock = Lock::default();
        assert_eq!(lock.acquire(CpuId(1), 100, 5000, far), 70);
        lock.hold(100, 300);
        assert_eq!(lock.acquire(CpuId(2), 200, 200, far), 270 + 70, "only its turn is ahead");
        assert_eq!(lock.acquire(CpuId(3), 800, 800, far), 70, "and over by now");
    }
}
