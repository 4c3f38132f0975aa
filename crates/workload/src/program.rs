//! What a workload is once its load and parameters are known: tasks that run
//! short programs in a loop, and the channels, futexes and lists they share. The
//! simulator and the host runner interpret the same value.

use serde::{Deserialize, Serialize};

pub use reveille_measure::Ns;

/// A workload with all numbers filled in, ready to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Program {
    pub name: String,
    /// The task programs; many tasks share one.
    pub roles: Vec<Role>,
    /// One entry per task, in the order in which they are started.
    pub tasks: Vec<TaskSpec>,
    /// One entry per channel; a task reaches those of its instance.
    pub channels: Vec<ChannelKind>,
    /// Number of lists that tasks join to be woken as a batch.
    pub n_lists: u32,
    pub n_locks: u32,
    /// Work that arrives from outside; empty if the tasks make all of theirs.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// Names of the latencies that tasks record, by the number in [`Op::Record`].
    pub records: Vec<String>,
    pub metric: Metric,
}

impl Program {
    /// Number of tasks without the one that releases the others and then has nothing to do.
    pub fn working_tasks(&self) -> usize {
        let releases = |role: &Role| role.ops.iter().any(|op| matches!(op, Op::Release { .. }));
        self.tasks.iter().filter(|t| !releases(&self.roles[usize::from(t.role)])).count()
    }
}

/// A task program: its operations are repeated until the run ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Role {
    pub name: String,
    /// Never empty, and never without an operation that takes time or blocks.
    pub ops: Vec<Op>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSpec {
    /// Index into [`Program::roles`].
    pub role: u16,
    /// Tasks of one process share an address space.
    pub process: u32,
    /// Channel 0 of the task's instance.
    pub channel_base: u32,
    /// List 0 of the task's instance.
    pub list_base: u32,
    /// Task 0 of the task's instance.
    pub task_base: u32,
    /// Mutex 0 of the task's instance.
    pub lock_base: u32,
    /// Number of the task among those of its role and instance, from 0.
    pub own: u16,
    /// The operation of its role that it begins with.
    #[serde(default)]
    pub first_op: u32,
}

impl TaskSpec {
    pub fn of_role(role: u16) -> TaskSpec {
        TaskSpec { role, ..TaskSpec::default() }
    }

    /// The channel, among all of the run, that a port of this task leads to.
    #[inline]
    pub fn channel(&self, port: Port) -> usize {
        let own = u32::from(self.own) * u32::from(port.own);
        (self.channel_base + u32::from(port.first) + own) as usize
    }
}

/// Work that comes at given times, whatever has become of earlier work: an open load, as a
/// recording has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrivals {
    /// The first repetition begins so long after the run does.
    #[serde(default)]
    pub begin_ns: Ns,
    /// After this time all of it comes again, and so on for ever; not 0 if there is any.
    pub span_ns: Ns,
    /// By task, in rising order and within one `span_ns`. A task without any must not ask.
    pub of_task: Vec<Vec<Arrival>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival {
    /// When it comes, from the start of the run or of the repetition.
    pub at_ns: Ns,
    /// The time that it takes: of a CPU, or on the wall, as the operation has it.
    pub work_ns: Ns,
}

impl Arrivals {
    pub fn some(&self) -> bool {
        self.of_task.iter().any(|arrivals| !arrivals.is_empty())
    }

    /// Where a task's work begins if that of all tasks lies one after the other.
    pub fn first_of_task(&self) -> Vec<usize> {
        let mut next = 0;
        let begins = self.of_task.iter().map(|own| {
            let begin = next;
            next += own.len();
            begin
        });
        begins.collect()
    }

    pub fn count(&self) -> usize {
        self.of_task.iter().map(Vec::len).sum()
    }
}

/// Where a task sends to or receives from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// Channel within the instance.
    pub first: u16,
    /// `first` begins an array, of which each task of the role uses that with its own number.
    pub own: bool,
}

impl From<u16> for Port {
    fn from(first: u16) -> Port {
        Port { first, own: false }
    }
}

/// How a message travels; its costs are the machine's. A receiver takes one message
/// at a time and blocks while there is none; a sender blocks while there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ChannelKind {
    /// A pipe of 16 pages. A writer wakes a reader only if the pipe was empty, a reader
    /// a writer only if it was full; both in process context.
    Pipe,
    /// UDP over loopback: the wake-up happens in softirq on the sender's CPU. A datagram
    /// for which the receiver's buffer has no room is lost.
    Udp,
    /// TCP over loopback: likewise, but the sender waits for room.
    Tcp,
    /// A Unix stream socket: each message wakes a reader that waits, in process context.
    Unix,
}

/// One operation of a task. Channels, lists and tasks are counted within the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Computes for this much CPU time.
    Run(Ns),
    /// Computes for a random CPU time, exponentially distributed with this mean.
    RunRandom(Ns),
    /// Spins until this much wall-clock time has passed; preemption counts as work.
    Spin(Ns),
    /// Sends one message of `bytes`, whole; wakes a receiver as the channel's kind has it
    /// (sync). Blocks while there is no room.
    Send { channel: Port, bytes: u32 },
    /// Receives one message; blocks while there is none.
    Recv {
        channel: Port,
        /// The message's length is received by a call of its own before the rest.
        framed: bool,
        /// The kernel drops the contents instead of copying them (`MSG_TRUNC`).
        discard: bool,
    },
    /// Makes a system call that concerns no other task: entry, exit and this much kernel work.
    Syscall(Ns),
    /// Sleeps for `time` plus a uniform random part below `jitter`.
    Sleep {
        time: Ns,
        /// Random part is below this; 0 for none.
        jitter: Ns,
    },
    /// Sleeps for a random time, exponentially distributed with this mean.
    SleepRandom(Ns),
    /// Sleeps until a period has passed since the last time this ended, or since the task
    /// began; does not sleep if that is over. Notes the moment for `Record`: that at which
    /// the sleep is to end, or the present one if there is none.
    Period {
        period: Ns,
        /// Late once, the next period is counted from the lateness on; otherwise the task
        /// catches up.
        restart: bool,
    },
    /// Sleeps until the task's next arrival (see [`Arrivals`]); does not sleep if that has
    /// come already. Notes when it came for `Record` and `Answer`.
    Arrive,
    /// Computes for the CPU time that this arrival takes.
    RunArrived,
    /// Spins for as much wall-clock time; preemption counts as work.
    SpinArrived,
    /// Keeps the time since this arrival with it, for the result of the run.
    Answer,
    /// Waits for a device, which answers after this time: no timer's slack comes on top.
    Device(Ns),
    /// Waits on the task's own futex until posted, or until the time is over.
    Wait {
        /// 0 waits without limit.
        timeout: Ns,
        /// Drawn once per task and added to the timeout; 0 for none.
        jitter: Ns,
    },
    /// Posts the futex of a task; wakes it if it waits (not sync).
    Post { task: u16 },
    /// Puts itself at the head of a list.
    Join { list: u16 },
    /// Resets the task's own futex, takes a whole list, notes the time once, and posts
    /// each task on it, last in first.
    WakeList { list: u16 },
    /// Sends a request, stamped with its time, to each of the next `count` tasks in turn
    /// of those from `first` on; wakes those that wait for one (not sync).
    Request {
        /// First of them within the instance.
        first: u16,
        among: u32,
        /// To how many requests are sent now.
        count: u32,
    },
    /// Takes the oldest request sent to the task, and notes when it was sent; blocks while
    /// there is none.
    Serve,
    /// Notes the present time for `Record`.
    Note,
    /// Records the time since the moment noted last, by the task itself, by `Serve` or for
    /// it by a `WakeList`.
    Record {
        /// Number in [`Program::records`].
        record: u8,
        /// This much is taken off; what would be negative is 0.
        less: Ns,
    },
    /// Takes the lock of the CPU that the task runs on, spinning while another task has
    /// it. A task has one such lock at most.
    LockCpu,
    /// Gives that lock back, on whatever CPU the task runs now.
    UnlockCpu,
    /// Takes a mutex; blocks while another task has it. First come, first served.
    Lock { lock: u16 },
    /// Gives a mutex back, and wakes the task that has waited longest (not sync).
    Unlock { lock: u16 },
    /// Counts this many finished operations.
    Count(u32),
    /// Says that the task is there, and blocks until `Release`; goes on at once after that.
    AwaitRelease {
        /// It polls a pipe: its wakeup is sync.
        sync: bool,
    },
    /// Blocks until all tasks that await release are there, and wakes them one after the other
    /// by one system call.
    Release {
        /// The call is a write to the pipe that all poll.
        sync: bool,
    },
    /// Goes `back` operations, until those have been done `times` times.
    Again {
        back: u16,
        /// How often in all; 1 or more.
        times: u32,
        /// How many loops this one stands in; below [`MAX_DEPTH`].
        depth: u8,
    },
    /// The task exits, and a new one takes its place: without a past, and where the slow
    /// path of fork would put a child of the task that exits.
    Respawn,
}

/// A loop of this many rounds does not end within a run.
pub const FOR_EVER: u32 = u32::MAX;
pub const MAX_DEPTH: usize = 4;

/// What a run is judged by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Name with unit, such as `throughput (round trips/s)` or `p99 wakeup latency (ns)`.
    pub name: String,
    pub kind: MetricKind,
}

/// How a metric is taken from a run's result.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum MetricKind {
    /// Counted operations per second; higher is better.
    Throughput,
    /// This quantile of a recorded latency in ns; lower is better.
    RecordedLatency {
        /// Number in [`Program::records`].
        record: u8,
        /// Above 0; 1 is the largest.
        quantile: f64,
    },
}

impl MetricKind {
    pub fn higher_is_better(&self) -> bool {
        matches!(self, MetricKind::Throughput)
    }
}
