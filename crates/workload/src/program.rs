//! What a workload is once its load and parameters are known: tasks that run
//! short programs in a loop, and the channels, futexes and lists they share. The
//! simulator and the host runner interpret the same value.

/// Nanoseconds.
pub type Ns = u64;

/// A workload with all numbers filled in, ready to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// Name of the workload.
    pub name: String,
    /// The task programs; many tasks share one.
    pub roles: Vec<Role>,
    /// One entry per task, in the order in which they are started.
    pub tasks: Vec<TaskSpec>,
    /// One entry per channel; a task reaches those of its instance.
    pub channels: Vec<ChannelKind>,
    /// Number of lists that tasks join to be woken as a batch.
    pub n_lists: u32,
    /// What the result of a run is.
    pub metric: Metric,
}

/// A task program: its operations are repeated until the run ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Role {
    /// Such as `worker`.
    pub name: String,
    /// Never empty, and never without an operation that takes time or blocks.
    pub ops: Vec<Op>,
}

/// One task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

/// How a message travels; its costs are the machine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChannelKind {
    /// A pipe: the writer wakes the reader in process context.
    Pipe,
    /// UDP over loopback: the wake-up happens in softirq on the sender's CPU.
    Udp,
    /// TCP over loopback: likewise.
    Tcp,
}

/// One operation of a task. Channels, lists and tasks are counted within the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Computes for this much CPU time.
    Run(Ns),
    /// Spins until this much wall-clock time has passed; preemption counts as work.
    Spin(Ns),
    /// Sends one message of `bytes`; wakes a receiver that waits for it (sync).
    Send {
        /// Channel within the instance.
        channel: u16,
        /// Size of the message.
        bytes: u32,
    },
    /// Receives one message; blocks while there is none.
    Recv {
        /// Channel within the instance.
        channel: u16,
    },
    /// Sleeps for `time` plus a uniform random part below `jitter`.
    Sleep {
        /// Fixed part.
        time: Ns,
        /// Random part is below this; 0 for none.
        jitter: Ns,
    },
    /// Waits on the task's own futex until posted, or until the time is over.
    Wait {
        /// 0 waits without limit.
        timeout: Ns,
        /// Drawn once per task and added to the timeout; 0 for none.
        jitter: Ns,
    },
    /// Posts the futex of a task; wakes it if it waits (not sync).
    Post {
        /// Task within the instance.
        task: u16,
    },
    /// Puts itself at the head of a list.
    Join {
        /// List within the instance.
        list: u16,
    },
    /// Resets the task's own futex, takes a whole list, notes the time once, and posts
    /// each task on it, last in first.
    WakeList {
        /// List within the instance.
        list: u16,
    },
    /// Records the time since the task was noted by a `WakeList`.
    Record,
    /// Counts this many finished operations.
    Count(u32),
}

/// What a run is judged by.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Name with unit, such as `throughput (round trips/s)` or `p99 wakeup latency (ns)`.
    pub name: String,
    /// How it is taken from a run.
    pub kind: MetricKind,
}

/// How a metric is taken from a run's result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricKind {
    /// Counted operations per second; higher is better.
    Throughput,
    /// This quantile of the recorded latency in ns; lower is better.
    RecordedLatency {
        /// Between 0 and 1.
        quantile: f64,
    },
}

impl MetricKind {
    /// Is a higher figure better?
    pub fn higher_is_better(&self) -> bool {
        matches!(self, MetricKind::Throughput)
    }
}
