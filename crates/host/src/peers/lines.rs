//! What each task of a run tells about itself: a cache line of shared memory that it alone
//! writes, and others read when they like.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::sys::shared::{OwnLine, SharedSlice};
use crate::sys::{clock, cpu};
use crate::{HostError, Ns};

/// How many messages pass between two looks at the CPU that a task runs on: rare enough
/// to cost nothing, often enough for hundreds of looks in a second.
pub(crate) const LOOK_EVERY: u64 = 1024;

const TASK: usize = 0;
const COUNT: usize = 1;
const END: usize = 2;
const CPU: usize = 3;
const LOOKS: usize = 4;
const SAME_CPU: usize = 5;
const LONGEST: usize = 6;
const EXCHANGES: usize = 7;
const N_CELLS: usize = 8;

/// The lines of all tasks of a run.
pub(crate) struct Lines(SharedSlice<OwnLine<[AtomicU64; N_CELLS]>>);

impl Lines {
    /// A line for each of so many tasks.
    pub fn new(tasks: usize) -> Result<Lines, HostError> {
        let lines = SharedSlice::new(tasks).map_err(|error| {
            let doing = format!("map shared memory for {tasks} tasks");
            HostError::system(doing, error, "use fewer tasks")
        })?;
        Ok(Lines(lines))
    }

    /// The line of a task.
    #[inline]
    pub fn of(&self, task: usize) -> Line<'_> {
        Line(&self.0[task])
    }

    /// Every line, in the order of the tasks.
    pub fn iter(&self) -> impl Iterator<Item = Line<'_>> {
        self.0.iter().map(|line| Line(line))
    }
}

/// One task's line. All stores are relaxed: each cell is right for itself.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a>(&'a [AtomicU64; N_CELLS]);

/// How often two sides of a pair were seen on one CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Looks {
    /// How often the two were compared.
    pub all: u64,
    /// How often they were on the same.
    pub same: u64,
}

impl Line<'_> {
    fn get(self, cell: usize) -> u64 {
        self.0[cell].load(Ordering::Relaxed)
    }

    #[inline]
    fn set(self, cell: usize, value: u64) {
        self.0[cell].store(value, Ordering::Relaxed);
    }

    /// The task says which one it is, as the kernel numbers them.
    pub fn introduce(self) {
        self.set(TASK, rustix::thread::gettid().as_raw_nonzero().get() as u64);
    }

    /// The kernel's number of the task; 0 before it is introduced.
    pub fn task(self) -> u32 {
        self.get(TASK) as u32
    }

    /// Says how many operations are done so far.
    #[inline]
    pub fn count(self, operations: u64) {
        self.set(COUNT, operations);
    }

    /// Notes the CPU from time to time; to be called with the number of each message.
    #[inline]
    pub fn look(self, message: u64) {
        if message % LOOK_EVERY == 1 {
            self.note_cpu();
        }
    }

    /// Notes the CPU.
    pub fn note_cpu(self) {
        self.set(CPU, u64::from(cpu::current()));
    }

    /// For the other side of the pair: compares the CPU with that which `first` noted at
    /// the message before.
    #[inline]
    pub fn compare(self, message: u64, first: Line<'_>) {
        if message % LOOK_EVERY == 2 {
            self.compare_cpu(first);
        }
    }

    /// Compares the CPU with that which `first` noted last.
    pub fn compare_cpu(self, first: Line<'_>) {
        let same = first.get(CPU) == u64::from(cpu::current());
        self.set(SAME_CPU, self.get(SAME_CPU) + u64::from(same));
        self.set(LOOKS, self.get(LOOKS) + 1);
    }

    /// Says how long an exchange took.
    #[inline]
    pub fn took(self, time: Ns) {
        if time > self.get(LONGEST) {
            self.set(LONGEST, time);
        }
    }

    /// The longest exchange since this was last asked; one may be missed at that moment.
    pub fn take_longest(self) -> Ns {
        self.0[LONGEST].swap(0, Ordering::Relaxed)
    }

    /// How many operations are done.
    pub fn counted(self) -> u64 {
        self.get(COUNT)
    }

    /// What [`Line::compare`] has seen.
    pub fn looks(self) -> Looks {
        Looks { all: self.get(LOOKS), same: self.get(SAME_CPU) }
    }

    /// Says how many operations were done in all, and that this was just now.
    pub fn finish(self, operations: u64) {
        self.set(END, clock::now());
        self.count(operations);
    }

    /// Says how many requests were sent and answered in all, where operations are not that.
    pub fn exchanged(self, exchanges: u64) {
        self.set(EXCHANGES, exchanges);
    }

    /// What [`Line::exchanged`] has said.
    pub fn exchanges(self) -> u64 {
        self.get(EXCHANGES)
    }

    /// When the task finished.
    pub fn finished(self) -> Ns {
        self.get(END)
    }
}
