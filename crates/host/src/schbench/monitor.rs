//! The main thread of a run: looks at the workers once a second, reports, forgets what was
//! measured when asked to, and turns the rate of `-A`. The workers take no part in it.

use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

use reveille_measure::Ns;

use super::histogram::{Counts, Recorder};
use super::options::{Era, Schbench, Think};
use super::run::{Crew, Places, say};
use super::threads::Worker;
use super::{Outcome, text};
use crate::error::{HostError, Result};
use crate::kernel::proc::CpuTicks;
use crate::kernel::{TaskUse, mean_run_delay};
use crate::sys::{clock, cpu};

const SECOND: Ns = 1_000_000_000;

impl Schbench {
    /// Runs it once in this process.
    pub(super) fn run_once(mut self) -> Result<Outcome> {
        let allowed = cpu::allowed()
            .map_err(|e| HostError::system("read the affinity of this process", e, "report it"))?;
        let each = (allowed.len() as u32).div_ceil(self.message_threads.max(1));
        let workers = self.worker_threads.unwrap_or(each);
        self.check(workers)?;
        let places = Places::new(&self, &allowed)?;
        if self.worker_threads.replace(workers).is_none() {
            say(&format!("setting worker threads to {workers}\n"));
        }
        self.say_split();
        let mut crew = Crew::start(self, workers, places)?;
        let watched = watch(&crew);
        let end = clock::now();
        crew.stop()?;
        Ok(watched.outcome(&crew, end))
    }

    fn say_split(&self) {
        if let Think::Matrices { footprint_kb, split_percent: Some(percent), .. } = self.think {
            let own_kb = footprint_kb * u64::from(percent) / 100;
            let common_kb = footprint_kb * u64::from(100 - percent) / 100;
            let (own, common) = self.edges();
            let rest = 100 - percent;
            say(&format!(
                "split mode: {percent}% private ({own_kb} KB per thread), {rest}% shared \
                 ({common_kb} KB total)\nmatrix sizes: private={own}, shared={common}\n"
            ));
        }
    }
}

/// What is known at the end besides the workers' histograms.
struct Watched {
    since: Ns,
    skipped: u64,
    rps: Counts,
    delays_ns: [Ns; 2],
    tasks: TaskUse,
}

impl Watched {
    /// With what the workers have recorded until they were told to stop, at `end`. Requests
    /// and latencies are counted together, so they agree even if the main thread was preempted.
    fn outcome(self, crew: &Crew, end: Ns) -> Outcome {
        let job = &crew.shared.job;
        let percents = job.era.percents();
        let sum = |recorder: fn(&Worker) -> &Recorder| crew.sum(recorder).summary(percents);
        let current = job.era == Era::Current && job.pipe_bytes.is_none();
        let open = job.rps_at_start().is_some();
        Outcome {
            worker_threads: job.worker_threads.expect("known since the start"),
            measured_ns: end - self.since,
            wakeup: sum(|w| &w.wakeup),
            request: current.then(|| sum(|w| &w.request)),
            rps: current.then(|| self.rps.summary(percents)),
            open_loop: open.then(|| sum(|w| &w.open_loop)),
            over: crew.of_now().map(|w| w.over()).sum(),
            loops: crew.of_now().map(|w| w.loops_recorded()).sum(),
            skipped: self.skipped,
            rps_goal: crew.shared.goal.get(),
            message_delay_ns: self.delays_ns[0],
            worker_delay_ns: self.delays_ns[1],
            tasks: self.tasks,
        }
    }
}

impl Crew {
    /// Workers that have followed the last order to forget.
    fn of_now(&self) -> impl Iterator<Item = &Worker> {
        let epoch = self.shared.control.epoch();
        self.workers.iter().map(AsRef::as_ref).filter(move |worker| worker.is_of(epoch))
    }

    fn sum(&self, recorder: fn(&Worker) -> &Recorder) -> Counts {
        let mut counts = Counts::default();
        self.of_now().for_each(|worker| counts.add(recorder(worker)));
        counts
    }

    fn loops(&self) -> u64 {
        self.workers.iter().map(|worker| worker.loops()).sum()
    }

    fn skipped(&self) -> u64 {
        self.messengers.iter().map(|m| m.skipped.load(Ordering::Relaxed)).sum()
    }

    /// Mean times waited for a CPU, of message threads and of workers. They are read while
    /// the threads are there: with a thread, its figures go.
    fn delays_ns(&self) -> [Ns; 2] {
        [&self.message_threads, &self.worker_threads].map(|threads| {
            let sum: Ns = threads.iter().map(|&thread| mean_run_delay(thread)).sum();
            sum / threads.len().max(1) as Ns
        })
    }

    /// What all threads have used since they began, warm-up included; read while they are
    /// there, too.
    fn tasks(&self) -> TaskUse {
        let mut sum = TaskUse::default();
        let threads = self.message_threads.iter().chain(&self.worker_threads);
        let process = std::process::id();
        threads.filter_map(|&t| TaskUse::of_thread(process, t).ok()).for_each(|used| sum += used);
        sum
    }
}

/// Watches a run until its time is over.
fn watch(crew: &Crew) -> Watched {
    let job = &crew.shared.job;
    let start = clock::now();
    let mut watch = Watch {
        crew,
        since: start,
        skipped_before: 0,
        last_round: start,
        last_loops: 0,
        rps: Counts::default(),
        auto: job.auto_rps_percent.map(AutoRps::new),
    };
    let (mut reported, mut zeroed) = (0, 0);
    for round in 1u32.. {
        let end = start + Ns::from(round) * SECOND;
        sleep(Duration::from_nanos(end.saturating_sub(clock::now())));
        let now = clock::now();
        let done = round == job.runtime_s;
        if round == job.warmup_s {
            say("warmup done, zeroing stats\n");
            watch.forget();
            zeroed = round;
        } else {
            let rps = watch.round(now);
            if job.interval_s.is_some_and(|s| round - reported >= s) && job.pipe_bytes.is_none() {
                reported = round;
                watch.report(round, rps);
            }
        }
        if done {
            return watch.end();
        }
        // Not in the last round: the end reports what was measured since the last time.
        if job.zero_s.is_some_and(|s| s > 0 && round - zeroed >= s) {
            zeroed = round;
            watch.forget();
        }
        watch.turn_rate();
    }
    unreachable!("a run for ever is killed")
}

struct Watch<'a> {
    crew: &'a Crew,
    /// What is measured belongs to the time since then.
    since: Ns,
    skipped_before: u64,
    last_round: Ns,
    last_loops: u64,
    rps: Counts,
    auto: Option<AutoRps>,
}

impl Watch<'_> {
    /// Takes a sample of the rate and returns it, in requests per second.
    fn round(&mut self, now: Ns) -> f64 {
        let loops = self.crew.loops();
        let time_ns = now.saturating_sub(self.last_round).max(1);
        let rps = (loops - self.last_loops) as f64 * 1e9 / time_ns as f64;
        (self.last_round, self.last_loops) = (now, loops);
        if self.auto.as_ref().is_none_or(|auto| auto.settled) {
            self.rps.record(rps.round() as u32);
        }
        rps
    }

    fn forget(&mut self) {
        self.crew.shared.control.forget();
        self.since = clock::now();
        self.rps = Counts::default();
        self.skipped_before = self.crew.skipped();
        (self.last_round, self.last_loops) = (self.since, self.crew.loops());
    }

    fn report(&self, elapsed_s: u32, rps: f64) {
        let job: &Schbench = &self.crew.shared.job;
        let percents = job.era.percents();
        let wakeup = self.crew.sum(|w| &w.wakeup).summary(percents);
        if job.era != Era::Current {
            return say(&text::old_table(&wakeup));
        }
        let request = self.crew.sum(|w| &w.request).summary(percents);
        let delays_ns = self.crew.delays_ns();
        let mut report = text::tables(&wakeup, &request, &self.rps.summary(percents), elapsed_s);
        report += &text::sched_delay(delays_ns);
        report += &format!("current rps: {rps:.2}\n");
        say(&report);
    }

    fn turn_rate(&mut self) {
        let Some(auto) = &mut self.auto else { return };
        let goal = &self.crew.shared.goal;
        let was_settled = auto.settled;
        goal.set(auto.next(goal.get()));
        if auto.settled && !was_settled {
            self.rps = Counts::default();
        }
    }

    fn end(self) -> Watched {
        Watched {
            since: self.since,
            skipped: self.crew.skipped() - self.skipped_before,
            rps: self.rps,
            delays_ns: self.crew.delays_ns(),
            tasks: self.crew.tasks(),
        }
    }
}

/// `-A`: a rate that makes the whole machine as busy as asked for.
struct AutoRps {
    goal_percent: f64,
    before: CpuTicks,
    /// Has the goal come near once?
    settled: bool,
}

impl AutoRps {
    fn new(goal_percent: u32) -> AutoRps {
        AutoRps { goal_percent: f64::from(goal_percent), before: CpuTicks::now(), settled: false }
    }

    /// The rate for the next second.
    fn next(&mut self, rps: u32) -> u32 {
        let now = CpuTicks::now();
        let passed = now.since(std::mem::replace(&mut self.before, now));
        if passed.total == 0 {
            return rps;
        }
        let busy = 100.0 - passed.idle as f64 / passed.total as f64 * 100.0;
        let (next, near) = scaled(rps, busy, self.goal_percent);
        self.settled |= near;
        next
    }
}

/// The next rate and whether the goal is near: in proportion, with smaller steps the nearer
/// it is, and never more than thrice or less than 0.3 times the last. Factors are the
/// original's. It lets the rate fall to nothing, from where it cannot rise again.
fn scaled(rps: u32, busy: f64, goal: f64) -> (u32, bool) {
    let ratio = goal / busy;
    let (factor, near) = match ratio {
        r if r >= 3.0 => (3.0, false),
        r if r >= 1.5 => (r, false),
        r if r >= 1.2 => (1.0 + (r - 1.0) / 4.0, false),
        r if r > 1.0 => (1.0 + (r - 1.0) / 8.0, 1.0 + (r - 1.0) / 8.0 < 1.05),
        1.0 => (1.0, true),
        r if r > 0.9 => (r + (1.0 - r) / 8.0, r + (1.0 - r) / 8.0 > 0.95),
        r if r > 0.8 => (r + (1.0 - r) / 4.0, false),
        r => (r.max(0.3), false),
    };
    let next = f64::from(rps) * factor;
    let next = if factor > 1.0 { next.ceil() } else { next.floor() };
    if next > f64::from(i32::MAX) {
        // There are not enough threads to reach the goal.
        return (rps, near);
    }
    ((next as u32).max(1), near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_follows_the_goal_and_never_falls_to_nothing() {
        assert_eq!(scaled(10, 0.0, 50.0), (30, false));
        assert_eq!(scaled(100, 25.0, 50.0), (200, false));
        assert_eq!(scaled(100, 40.0, 50.0), (107, false));
        assert_eq!(scaled(1000, 49.0, 50.0), (1003, true));
        assert_eq!(scaled(1000, 50.0, 50.0), (1000, true));
        assert_eq!(scaled(1000, 51.0, 50.0), (982, true));
        assert_eq!(scaled(1000, 60.0, 50.0), (875, false));
        assert_eq!(scaled(1000, 100.0, 10.0), (300, false));
        assert_eq!(scaled(1, 100.0, 10.0), (1, false));
        assert_eq!(scaled(i32::MAX as u32, 10.0, 50.0), (i32::MAX as u32, false));
    }
}
