//! A recorded decision: the mirror of bpf/decision.h, and of the file that holds many.

use std::io::{self, BufRead, Read};

use reveille_policy::{CpuId, ScanState, Task, TaskId, Tunables};
use serde::{Deserialize, Serialize};

/// First line of a file of decisions.
pub const MAGIC: &str = "scx_reveille decisions 1\n";
/// Size of one record, `sizeof(struct decision)`.
pub const RECORD_BYTES: usize = 952;
const WORDS: usize = 8;

/// What all decisions of a file share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Per cache, per core, the kernel's CPU numbers.
    pub llcs: Vec<Vec<Vec<u16>>>,
    /// See [`Tunables`].
    pub min_granularity_ns: u64,
    /// Ticks per second.
    pub hz: u32,
    /// Of domains above SMT.
    pub imbalance_pct: u32,
    /// Of the SMT domain.
    pub smt_imbalance_pct: u32,
}

impl Header {
    /// The tunables of a decision with these features.
    pub fn tunables(&self, features: u64) -> Tunables {
        Tunables {
            features,
            min_granularity_ns: self.min_granularity_ns,
            hz: self.hz,
            imbalance_pct: self.imbalance_pct,
            smt_imbalance_pct: self.smt_imbalance_pct,
        }
    }
}

/// What was seen of a CPU.
#[derive(Clone, Copy, Debug)]
pub struct SeenCpu {
    pub cpu: u32,
    pub nr_running: u32,
    pub cfs_load: u32,
    /// The running task, if it is not the idle task.
    pub curr: Option<Task>,
}

/// What was seen of a cache; bits are positions.
#[derive(Clone, Copy, Debug)]
pub struct SeenLlc {
    pub llc: u32,
    /// SIS_UTIL's width.
    pub nr_idle_scan: u32,
    /// Is an idle core believed to exist?
    pub has_idle_cores: bool,
    pub idle: [u64; WORDS],
    /// CPUs with nothing but SCHED_IDLE tasks.
    pub sched_idle: [u64; WORDS],
    /// CPUs where the wakee may run.
    pub allowed: [u64; WORDS],
}

/// What a decision said (`struct policy_pick`), and what it left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub cpu: u32,
    /// Where wake_affine proposed to start.
    pub target: u32,
    /// Single tests before the search.
    pub tested: u8,
    /// CPUs that the search looked at.
    pub searched: u16,
    /// Number of the rule that chose.
    pub rule: u8,
    pub search: bool,
    /// For a whole core.
    pub core_search: bool,
    /// In vain, and `has_idle_cores` was cleared.
    pub cleared: bool,
    /// Its budget ended it.
    pub exhausted: bool,
    /// The wakee's last CPU but one.
    pub recent_used_cpu: u32,
    /// The waker's history: flips, when they decayed, whether this wakee is its last, and
    /// its own last CPU but one.
    pub waker: Option<(u32, u64, bool, u32)>,
    /// The waking CPU's averages.
    pub scan: ScanState,
    /// `has_idle_cores` of the target's cache.
    pub has_idle_cores: bool,
}

/// One decision with all that it was taken from.
#[derive(Clone, Debug)]
pub struct Decision {
    pub features: u64,
    /// Jiffies.
    pub now_j: u64,
    /// Where the waker runs.
    pub this_cpu: u32,
    /// POLICY_WAKE_*.
    pub flags: u32,
    /// The task that is woken, as it was before.
    pub wakee: Task,
    /// The task that wakes it, unless that is the idle task.
    pub waker: Option<Task>,
    /// Averages of the waking CPU.
    pub scan: ScanState,
    /// The waking CPU and the wakee's previous one.
    pub cpus: [SeenCpu; 2],
    /// Their caches.
    pub llcs: [SeenLlc; 2],
    /// What the kernel's program decided.
    pub outcome: Outcome,
}

/// Reads little-endian numbers one after the other.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let (first, rest) = self.0.split_first_chunk::<N>().expect("a record is RECORD_BYTES long");
        self.0 = rest;
        *first
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes())
    }

    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.bytes())
    }

    fn flag(&mut self) -> bool {
        self.bytes::<1>()[0] != 0
    }

    fn words(&mut self) -> [u64; WORDS] {
        std::array::from_fn(|_| self.u64())
    }

    /// `struct policy_task`.
    fn task(&mut self) -> Task {
        Task {
            wakee_flip_decay_j: self.u64(),
            sum_exec_ns: self.u64(),
            prev_sleep_sum_ns: self.u64(),
            dur_avg_ns: self.u64() as i64,
            id: TaskId(self.u32()),
            last_wakee: TaskId(self.u32()),
            wakee_flips: self.u32(),
            prev_cpu: CpuId(self.u32()),
            recent_used_cpu: CpuId(self.u32()),
            load_avg: self.u32(),
            affinity: self.u32(),
            flags: self.u32(),
        }
    }

    /// `struct policy_scan_state`.
    fn scan(&mut self) -> ScanState {
        ScanState {
            avg_idle_ns: self.u64(),
            avg_scan_cost_ns: self.u64(),
            wake_avg_idle_ns: self.u64(),
            wake_stamp_j: self.u64(),
        }
    }

    fn seen_cpu(&mut self) -> SeenCpu {
        let (cpu, nr_running, cfs_load) = (self.u32(), self.u32(), self.u32());
        let has_curr = self.u32() != 0;
        let curr = self.task();
        SeenCpu { cpu, nr_running, cfs_load, curr: has_curr.then_some(curr) }
    }

    fn seen_llc(&mut self) -> SeenLlc {
        let (llc, nr_idle_scan) = (self.u32(), self.u32());
        let has_idle_cores = self.u32() != 0;
        self.u32();
        SeenLlc {
            llc,
            nr_idle_scan,
            has_idle_cores,
            idle: self.words(),
            sched_idle: self.words(),
            allowed: self.words(),
        }
    }
}

impl Decision {
    /// Reads one record.
    pub fn parse(bytes: &[u8; RECORD_BYTES]) -> Decision {
        let mut c = Cursor(bytes);
        let (features, now_j) = (c.u64(), c.u64());
        let (this_cpu, flags) = (c.u32(), c.u32());
        let has_waker = c.u32() != 0;
        let has_idle_cores = c.u32() != 0;
        let (wakee, waker, scan) = (c.task(), c.task(), c.scan());
        let cpus = [c.seen_cpu(), c.seen_cpu()];
        let llcs = [c.seen_llc(), c.seen_llc()];
        let (wakee_after, waker_after, scan_after) = (c.task(), c.task(), c.scan());
        let outcome = Outcome {
            cpu: c.u32(),
            target: c.u32(),
            tested: c.bytes::<2>()[0],
            searched: {
                let searched = c.u16();
                c.u16(); // of other LLCs, which are not searched here
                searched
            },
            rule: c.bytes::<1>()[0],
            search: c.flag(),
            core_search: c.flag(),
            cleared: c.flag(),
            exhausted: c.flag(),
            recent_used_cpu: wakee_after.recent_used_cpu.0,
            waker: has_waker.then_some((
                waker_after.wakee_flips,
                waker_after.wakee_flip_decay_j,
                waker_after.last_wakee == wakee.id,
                waker_after.recent_used_cpu.0,
            )),
            scan: scan_after,
            has_idle_cores,
        };
        Decision {
            features,
            now_j,
            this_cpu,
            flags,
            wakee,
            waker: has_waker.then_some(waker),
            scan,
            cpus,
            llcs,
            outcome,
        }
    }
}

/// Reads a file's first two lines.
///
/// # Errors
/// A file of another kind.
pub fn read_header(file: &mut impl BufRead) -> io::Result<Header> {
    let mut line = String::new();
    file.by_ref().take(MAGIC.len() as u64 + 1).read_line(&mut line)?;
    if line != MAGIC {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it does not begin as one"));
    }
    let mut line = Vec::new();
    file.by_ref().take(1 << 20).read_until(b'\n', &mut line)?;
    serde_json::from_slice(&line).map_err(io::Error::from)
}

/// The next record, or none at the end of the file.
///
/// # Errors
/// A record that is cut off, or a file that cannot be read.
pub fn read_record(file: &mut impl Read) -> io::Result<Option<[u8; RECORD_BYTES]>> {
    let mut bytes = [0; RECORD_BYTES];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read(&mut bytes[filled..])? {
            0 if filled == 0 => return Ok(None),
            0 => {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the last record is cut off",
                ));
            }
            n => filled += n,
        }
    }
    Ok(Some(bytes))
}
