//! Reads the rings of all CPUs, merged in the order of time.

use std::io::{self, ErrorKind};

use reveille_measure::Ns;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::Timespec;

use super::tracepoints::{Event, Kind, Tracepoints};
use crate::error::{HostError, Result};
use crate::sys::perf::{Record, Ring};
use crate::sys::{clock, cpu};

/// Size of all rings together; half of it is the margin while the reader waits for a CPU.
const ALL_RINGS: usize = 128 << 20;
/// Largest and smallest ring of a CPU.
const RING: [usize; 2] = [4 << 20, 64 << 10];

/// Events older than this are certainly in their ring: the kernel takes the timestamp before it
/// writes, and a hypervisor may preempt it in between.
const SETTLED_NS: Ns = 10_000_000;

/// Number and length of a thread's sleeps on each CPU, to observe it going idle.
const NAPS: u32 = 20;
const NAP_NS: Ns = 1_000_000;

/// This process' view of the host's scheduling.
#[derive(Debug)]
pub(super) struct Tracer {
    points: Tracepoints,
    rings: Vec<CpuRing>,
    /// Read, but too recent to be in order.
    pending: Vec<Event>,
    pub events: u64,
    /// Events that did not fit into a ring.
    pub lost: u64,
}

#[derive(Debug)]
struct CpuRing {
    cpu: u32,
    ring: Ring,
    /// Time of the last event that was read.
    last_ns: Ns,
}

impl Tracer {
    /// Opens a ring for each of these CPUs, disabled.
    ///
    /// # Errors
    /// [`HostError::System`] without permission to trace, or on a kernel without tracepoints.
    pub fn open(cpus: &[u32]) -> Result<Tracer> {
        let points = Tracepoints::find()?;
        let ids = points.ids();
        allow_files(cpus.len() * ids.len());
        let [largest, smallest] = RING;
        let share = ALL_RINGS / cpus.len().max(1);
        let mut bytes = largest.min(1 << share.max(1).ilog2()).max(smallest);
        let rings = loop {
            let open = cpus.iter().map(|&cpu| {
                Ok(CpuRing { cpu, ring: Ring::open(cpu, &ids, bytes)?, last_ns: clock::now() })
            });
            match open.collect::<io::Result<Vec<CpuRing>>>() {
                Ok(rings) => break rings,
                // Unprivileged tracers have a limit on locked memory.
                Err(error) if is_short(&error) && bytes > smallest => bytes /= 2,
                Err(error) => return Err(refused(error)),
            }
        };
        Ok(Tracer { points, rings, pending: Vec::new(), events: 0, lost: 0 })
    }

    pub fn enable(&self, on: bool) -> Result<()> {
        self.rings.iter().try_for_each(|one| one.ring.enable(on)).map_err(refused)
    }

    pub fn enable_on(&self, cpu: u32, on: bool) -> Result<()> {
        let mut rings = self.rings.iter().filter(|one| one.cpu == cpu);
        rings.try_for_each(|one| one.ring.enable(on)).map_err(refused)
    }

    /// Runs this thread briefly on each CPU, so that each has a switch that shows what it runs.
    /// CPUs outside the affinity mask are left out.
    pub fn visit_cpus(&self) {
        let Ok(allowed) = cpu::allowed() else { return };
        for one in &self.rings {
            let _ = cpu::pin(&[one.cpu]);
        }
        let _ = cpu::pin(&allowed);
    }

    /// Share of switches from idle CPUs before which an event is missing, observed while a thread
    /// sleeps on each CPU for some moments.
    pub fn broken_share_from_idle(&mut self) -> Result<f64> {
        self.enable(true)?;
        std::thread::scope(|scope| {
            for one in &self.rings {
                let cpu = one.cpu;
                scope.spawn(move || {
                    if cpu::pin(&[cpu]).is_ok() {
                        (0..NAPS).for_each(|_| clock::sleep(NAP_NS));
                    }
                });
            }
        });
        self.enable(false)?;
        self.read();
        let (mut switches, mut broken) = (0u32, 0u32);
        let mut runs: Vec<(u32, u32)> = Vec::new();
        self.take(Ns::MAX, true, |event| {
            let Kind::Switch { prev, next, .. } = event.kind else { return };
            switches += 1;
            match runs.iter_mut().find(|(cpu, _)| *cpu == event.cpu) {
                Some((_, thread)) => {
                    broken += u32::from(*thread != prev);
                    *thread = next;
                }
                None => runs.push((event.cpu, next)),
            }
        });
        self.forget();
        Ok(f64::from(broken) / f64::from(switches.max(1)))
    }

    /// Waits until a ring is half full, or for `ns`.
    pub fn wait(&self, ns: Ns) {
        let rings = self.rings.iter().map(|one| one.ring.readable());
        let files = rings.map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN));
        let mut files: Vec<PollFd<'_>> = files.collect();
        let time =
            Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 };
        // A signal ends the wait too.
        let _ = poll(&mut files, Some(&time));
    }

    /// Reads all rings and returns the number of events. [`Tracer::take`] hands them out.
    pub fn read(&mut self) -> u64 {
        let before = self.events;
        let Tracer { points, rings, pending, events, lost } = self;
        for CpuRing { cpu, ring, last_ns } in rings {
            let cpu = *cpu;
            ring.drain(|record| match record {
                Record::Passed { at_ns, fields } => {
                    *events += 1;
                    *last_ns = at_ns;
                    if let Some(kind) = points.decode(fields) {
                        pending.push(Event { at_ns, cpu, kind });
                    }
                }
                Record::Lost(count) => {
                    *lost += count;
                    pending.push(Event { at_ns: *last_ns, cpu, kind: Kind::Lost });
                }
            });
        }
        self.events - before
    }

    /// When threads first moved between groups, among events not yet taken.
    pub fn moved_ns(&self) -> Option<Ns> {
        self.pending.iter().filter(|e| e.kind == Kind::Moved).map(|e| e.at_ns).min()
    }

    /// Adds an event to those read.
    pub fn add(&mut self, event: Event) {
        self.pending.push(event);
    }

    /// Hands out, in order, events from before `read_ns`, the start of the last read, that have
    /// settled; with `last`, all from before it.
    pub fn take(&mut self, read_ns: Ns, last: bool, mut each: impl FnMut(&Event)) {
        // Concatenation of sorted runs, one per CPU.
        self.pending.sort_by_key(|event| event.at_ns);
        let until_ns = if last { read_ns } else { read_ns.saturating_sub(SETTLED_NS) };
        let count = self.pending.partition_point(|event| event.at_ns < until_ns);
        self.pending.drain(..count).for_each(|event| each(&event));
    }

    pub fn forget(&mut self) {
        self.pending.clear();
        (self.events, self.lost) = (0, 0);
    }
}

fn is_short(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::OutOfMemory)
}

fn refused(error: io::Error) -> HostError {
    let help = match error.kind() {
        ErrorKind::PermissionDenied => {
            "run as root or with CAP_PERFMON, or record with --how sample, which needs no privilege"
        }
        _ => "record with --how sample",
    };
    HostError::system("trace the scheduler (perf_event_open)", error, help)
}

/// Raises the soft limit of open files as needed and permitted.
fn allow_files(more: usize) {
    let limit = getrlimit(Resource::Nofile);
    // In addition to those already open.
    let wanted = more as u64 + 256;
    if let Some(current) = limit.current.filter(|&current| current < wanted) {
        let raised = limit.maximum.map_or(wanted, |most| most.min(wanted)).max(current);
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..limit });
    }
}
