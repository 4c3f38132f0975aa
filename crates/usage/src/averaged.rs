//! Demands from averages: each step's CPU time, spread evenly over the step.

use reveille_place::Mistake;

use crate::{Demand, MAX_THREADS, Ns, Sample};

/// Within a step, each thread gets one demand per slot of this length.
const SLOT_NS: Ns = 10_000_000;
/// Maximum number of demands; slots become longer to stay below it.
const MAX_DEMANDS: u128 = 2_000_000;
/// Maximum number of threads summed over steps; each has at least one demand.
const MAX_SHARES: u128 = 5_000_000;

/// The demands made from averages.
pub(crate) struct Spread {
    pub(crate) threads: u32,
    pub(crate) demands: Vec<Demand>,
    pub(crate) slot_ns: Ns,
}

impl Spread {
    /// Is a slot longer than usual, to limit the number of demands?
    pub(crate) fn is_coarse(&self) -> bool {
        self.slot_ns > SLOT_NS
    }
}

/// A step: start, end, and the CPU time used in it.
type Step = (Ns, Ns, Ns);

fn steps(samples: &[Sample]) -> impl Iterator<Item = Step> {
    let begins = std::iter::once(0).chain(samples.iter().map(|sample| sample.at_ns));
    begins.zip(samples).map(|(from_ns, sample)| (from_ns, sample.at_ns, sample.runtime_ns))
}

/// Threads that a step needs.
fn threads_of((from_ns, until_ns, used_ns): Step) -> f64 {
    let cpus = used_ns as f64 / (until_ns - from_ns).max(1) as f64;
    // Reading a counter slightly late must not add a thread.
    (cpus - 1e-6).ceil().max(1.0)
}

/// Spreads each step's CPU time over as many threads as it needs, and over slots.
pub(crate) fn spread(samples: &[Sample]) -> Result<Spread, Mistake> {
    let (mut thread_time_ns, mut shares) = (0, 0);
    let mut threads = 1;
    for step in steps(samples) {
        let (from_ns, until_ns, used_ns) = step;
        let count = threads_of(step);
        if count > f64::from(MAX_THREADS) {
            let (used_s, step_s) = (used_ns as f64 / 1e9, (until_ns - from_ns) as f64 / 1e9);
            let problem = format!("a step took {used_s} s of CPU time in {step_s} s");
            let fix = "query the counter of one container, in seconds: this may be milliseconds or \
                       nanoseconds";
            return Err(Mistake::new(problem, fix));
        }
        threads = threads.max(count as u32);
        thread_time_ns += u128::from(until_ns - from_ns) * count as u128;
        shares += count as u128;
    }
    if shares > MAX_SHARES {
        let problem = format!("has {shares} steps times threads, more than {MAX_SHARES}");
        return Err(Mistake::new(problem, "query with a longer step, or a shorter range"));
    }
    let times = (thread_time_ns / u128::from(SLOT_NS)).div_ceil(MAX_DEMANDS).max(1) as Ns;
    let slot_ns = SLOT_NS * times;
    let mut demands = Vec::new();
    for step in steps(samples) {
        let (from_ns, until_ns, used_ns) = step;
        let count = threads_of(step) as Ns;
        let (length_ns, used_ns) = (until_ns - from_ns, u128::from(used_ns));
        let up_to_thread = |thread: Ns| used_ns * u128::from(thread) / u128::from(count);
        for thread in 0..count {
            let share_ns = up_to_thread(thread + 1) - up_to_thread(thread);
            // Used from the start of the step; exact in sum.
            let up_to = |ns: Ns| (share_ns * u128::from(ns) / u128::from(length_ns)) as Ns;
            // Threads run in turn, so that their slots do not all begin at once.
            let mut begin_ns = 0;
            let mut end_ns = slot_ns * (thread + 1) / count;
            while begin_ns < length_ns {
                end_ns = end_ns.min(length_ns);
                let cpu_ns = up_to(end_ns) - up_to(begin_ns);
                let at_ns = from_ns + begin_ns;
                if cpu_ns > 0 {
                    demands.push(Demand { at_ns, cpu_ns, thread: thread as u32, done_ns: None });
                }
                (begin_ns, end_ns) = (end_ns, end_ns + slot_ns);
            }
        }
    }
    demands.sort_by_key(|demand| demand.at_ns);
    Ok(Spread { threads, demands, slot_ns })
}
