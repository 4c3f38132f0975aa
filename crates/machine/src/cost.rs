//! What each mechanism of a wakeup costs on a machine. One list below names every
//! constant once, with its unit and meaning; the struct, its keys and the checks
//! of machine files all come from it.

use reveille_place::Mistake;

/// What a constant may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number of nanoseconds, 0 to 2³² − 1.
    Time,
    /// A whole number.
    Count,
    /// A ratio: more than 0, at most 1.
    Ratio,
    /// A factor: 0.1 to 10.
    Factor,
}

/// One constant of the [`CostModel`]: its name and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name, as in machine files and in [`CostModel`].
    pub key: &'static str,
    pub kind: Kind,
    /// What is charged, and when.
    pub meaning: &'static str,
}

impl Field {
    /// Unit for display: `ns`, `count`, `ratio` or `factor`.
    pub fn unit(&self) -> &'static str {
        self.kind.unit()
    }

    pub fn check(&self, value: f64) -> Result<(), CostError> {
        self.kind.check(self.key, value)
    }
}

impl Kind {
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Kind::Time => "ns",
            Kind::Count => "count",
            Kind::Ratio => "ratio",
            Kind::Factor => "factor",
        }
    }

    /// Can a number called `key` take this value?
    pub(crate) fn check(self, key: &str, value: f64) -> Result<(), CostError> {
        let whole = value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&value);
        let (ok, must) = match self {
            Kind::Time => (whole, "a whole number of nanoseconds, 0 to 4294967295"),
            Kind::Count => (whole, "a whole number, 0 to 4294967295"),
            Kind::Ratio => (value > 0.0 && value <= 1.0, "more than 0 and at most 1"),
            Kind::Factor => ((0.1..=10.0).contains(&value), "a factor from 0.1 to 10"),
        };
        if ok { Ok(()) } else { Err(CostError::Kind { key: key.to_owned(), value, must }) }
    }
}

/// Why a constant was not set.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CostError {
    #[error(transparent)]
    Unknown(#[from] Mistake),
    #[error("`{key}` = {value:?} must be {must}")]
    Kind { key: String, value: f64, must: &'static str },
    #[error("`{key}` = {value} lies outside its plausible range [{low}, {high}]")]
    Range { key: String, value: f64, low: f64, high: f64 },
}

macro_rules! cost_model {
    (@type Ratio) => { f64 };
    (@type Factor) => { f64 };
    (@type $kind:ident) => { u32 };
    ($($key:ident: $kind:ident, $meaning:literal;)*) => {
        /// What the mechanisms of one machine cost: the plain numbers that a
        /// simulator charges. Where they come from is in
        /// [`Machine::constants`](crate::Machine::constants).
        #[derive(Clone, Debug, PartialEq)]
        pub struct CostModel {
            $(#[doc = $meaning] pub $key: cost_model!(@type $kind),)*
        }

        impl CostModel {
            /// Every constant, in the order in which a wakeup meets them.
            pub const FIELDS: &[Field] = &[
                $(Field { key: stringify!($key), kind: Kind::$kind, meaning: $meaning },)*
            ];

            /// The names in [`CostModel::FIELDS`].
            pub const KEYS: &[&str] = &[$(stringify!($key),)*];

            /// All zero: to be filled key by key.
            pub(crate) fn blank() -> Self {
                Self { $($key: Default::default(),)* }
            }

            /// The value of a constant by name; `None` if there is no such name.
            pub fn get(&self, key: &str) -> Option<f64> {
                match key {
                    $(stringify!($key) => Some(f64::from(self.$key)),)*
                    _ => None,
                }
            }

            /// Sets a constant by name.
            ///
            /// # Errors
            /// [`CostError::Unknown`] if there is no such name,
            /// [`CostError::Kind`] if the constant cannot take this value.
            pub fn set(&mut self, key: &str, value: f64) -> Result<(), CostError> {
                Self::field(key)?.check(value)?;
                match key {
                    $(stringify!($key) => self.$key = value as cost_model!(@type $kind),)*
                    _ => unreachable!("field() knows only the names above"),
                }
                Ok(())
            }
        }
    };
}

impl CostModel {
    /// What a constant means, by name.
    ///
    /// # Errors
    /// There is none of this name; with the most similar one.
    pub fn field(key: &str) -> Result<&'static Field, Mistake> {
        let found = Self::FIELDS.iter().find(|f| f.key == key);
        found.ok_or_else(|| Mistake::unknown("constant", key, Self::KEYS))
    }
}

cost_model! {
    line_smt_ns: Time, "One-way transfer of a modified cache line to another thread of the same core.";
    line_cluster_ns: Time, "One-way transfer of a modified cache line to another core of the same cluster.";
    line_llc_ns: Time, "One-way transfer of a modified cache line to another core, or cluster, of the same last-level cache.";
    line_socket_ns: Time, "One-way transfer of a modified cache line to another last-level cache of the same socket.";
    line_remote_ns: Time, "One-way transfer of a modified cache line to another socket.";
    scan_lines: Factor, "Idle search: a look at a CPU takes this many times as long as a modified cache line.";
    speed: Factor, "Speed of kernel work, of one busy core, against that at which the costs below are stated.";
    all_core_clock: Ratio, "Clock of a socket whose cores are all busy, against that of one busy core.";
    full_use_clock: Factor, "Clock at which a busy CPU counts as fully used (arch_scale_freq_capacity()), against that of one busy core.";
    smt_share: Ratio, "Speed of computing while another thread of the core is busy; 1 is alone.";
    smt_kernel_share: Ratio, "The same for system calls and scheduling, which stall more than they compute.";
    noise: Ratio, "Variation of every piece of work, caches and interrupts being what they are: uniform within plus or minus this share.";
    cold_smt_ns: Time, "Cache refill of a task with a small working set that last ran on another thread of this core.";
    cold_llc_ns: Time, "Cache refill of a task with a small working set that last ran on another core of this cache, in whatever cluster.";
    cold_socket_ns: Time, "Cache refill of a task with a small working set that last ran under another cache of this socket.";
    cold_remote_ns: Time, "Cache refill of a task with a small working set that last ran on another socket.";
    cold_shared_ns: Time, "Cache refill of a task per switch to other tasks since its CPU last ran it, from the second switch to the seventh: two tasks that take turns pay none.";
    wakee_lines: Count, "Cache lines of a wakee (its lock, state and CPU, its entity) that the waker takes from where the wakee last ran.";
    handoff_lines: Count, "Cache lines (task, entity, wait queue) that a wakee pulls in when it runs on another CPU than its waker.";
    pipe_lines: Count, "Cache lines besides its lock (head and tail, descriptor, data) that a pipe moves to the CPU that writes or reads next, less those whose transfers overlap.";
    unix_lines: Count, "The same of a Unix socket.";
    udp_lines: Count, "The same of a UDP socket.";
    tcp_lines: Count, "The same of a TCP connection.";
    remote_enqueue_lines: Count, "Cache lines (runqueue, timeline, entities, load) that an enqueue on another CPU's runqueue moves besides its lock.";
    ttwu_ns: Time, "Fixed part of try_to_wake_up: wakee lock, state check, prologue of the CPU selection.";
    enqueue_ns: Time, "Enqueue of a task on a runqueue and the preemption check, lines local.";
    dequeue_ns: Time, "Dequeue of a task that blocks.";
    switch_ns: Time, "Switch from one task to another of the same address space, pick included.";
    switch_mm_ns: Time, "Extra of a switch to another address space.";
    switch_idle_ns: Time, "Switch to or from the idle task, with the software part of entering or leaving the idle loop.";
    group_level_ns: Time, "Extra of an enqueue or dequeue for each cgroup level above the task.";
    wakelist_ns: Time, "Push of a wakee on another CPU's wake list, software part without the line transfers.";
    swqueue_hold_ns: Time, "Append to or removal from a shared wake queue under its lock, software part without the line transfers.";
    ipi_send_ns: Time, "Sender's time for one inter-processor interrupt.";
    ipi_flight_ns: Time, "From sending an inter-processor interrupt to the first instruction of its handler, same socket, target awake.";
    ipi_remote_ns: Time, "Extra flight time of an inter-processor interrupt to another socket.";
    irq_ns: Time, "Entry to and exit from an interrupt handler.";
    tick_ns: Time, "One scheduler tick on a busy CPU, balancing excluded.";
    background_wakes: Count, "Wakeups a second, by interrupts on all CPUs together, of kernel threads and daemons that may run on several CPUs: each counts as made by the task that is interrupted.";
    timer_slack_ns: Time, "How late a task's own timer may fire so that timers can be batched.";
    balance_base_ns: Time, "One load-balancing pass over one domain, without its per-CPU part.";
    balance_cpu_ns: Time, "Load balancing: reading the runqueue of one CPU.";
    blocked_ns: Time, "update_blocked_averages() before a new-idle pass: bringing the averages of all task groups up to date.";
    blocked_worst_ns: Time, "The longest update_blocked_averages() of the last seconds: a CPU that expects to idle for less does not balance first.";
    migrate_ns: Time, "Detaching one task from a runqueue and attaching it to another in load balancing, line transfers included.";
    syscall_ns: Time, "Entry to and exit from a system call, with the processor's mitigations.";
    pipe_write_ns: Time, "Write of a few bytes to a pipe, without system call entry and wakeup.";
    pipe_read_ns: Time, "Read of a few bytes from a pipe that has them, without system call entry.";
    unix_send_ns: Time, "Send of a small message on a Unix stream socket, without system call entry and wakeup.";
    unix_queued_ns: Time, "Extra of a receipt on a Unix socket for each message queued behind it, if that was sent on the same core: buffers that have left its caches.";
    unix_recv_ns: Time, "Receipt of a small message that a Unix stream socket holds, without system call entry.";
    udp_send_ns: Time, "Send of a small datagram over loopback, receive softirq included up to the wakeup.";
    udp_recv_ns: Time, "Receipt of a small datagram that the socket holds, without system call entry.";
    tcp_send_ns: Time, "Send of a small message over loopback TCP, receive softirq included up to the wakeup.";
    tcp_recv_ns: Time, "Receipt of a small message that a TCP socket holds, acknowledgement included, without system call entry.";
    copy_kib_ns: Time, "Copy of 1 KiB between user and kernel.";
    futex_wake_ns: Time, "FUTEX_WAKE: hash bucket and wake queue, without system call entry and wakeup.";
    futex_wait_ns: Time, "FUTEX_WAIT: hash bucket and queueing, without system call entry, dequeue and switch.";
}
