//! Invariants of every recording, checked once so that no user has to check again.

use reveille_place::Mistake;

use crate::{InputError, Ns, Origin, Usage};

/// Longest recording: 31 days. Sums of a billion such times fit 128 bits, differences 63.
pub const MAX_SPAN_NS: Ns = 31 * 86_400 * 1_000_000_000;
pub const MAX_THREADS: u32 = 65_536;
/// Maximum number of demands and samples together.
pub const MAX_ROWS: usize = 50_000_000;

impl Usage {
    /// Can the recording be written, resampled and replayed? All readers and importers of this
    /// crate check it.
    ///
    /// # Errors
    /// [`InputError::File`] with the first rule that it breaks, by the recording's name.
    pub fn validate(&self) -> Result<(), InputError> {
        self.first_mistake().map_or(Ok(()), |mistake| Err(mistake.in_file(&self.name)))
    }

    /// The recording, unless it breaks a rule.
    pub(crate) fn checked(self) -> Result<Usage, Mistake> {
        self.first_mistake().map_or(Ok(self), Err)
    }

    pub(crate) fn first_mistake(&self) -> Option<Mistake> {
        let mistake = |problem: String, help: &str| Some(Mistake::new(problem, help));
        let (span_ns, threads) = (self.span_ns, self.threads);
        if span_ns == 0 || span_ns > MAX_SPAN_NS {
            return mistake(
                format!("a length of {span_ns} ns is not between 1 ns and 31 days"),
                "record again, or correct the times that it was made from",
            );
        }
        if threads > MAX_THREADS {
            let fix = "use --threads when importing, or record fewer tasks";
            return mistake(format!("{threads} threads are more than {MAX_THREADS}"), fix);
        }
        if self.demands.len().saturating_add(self.samples.len()) > MAX_ROWS {
            let fix = "take a shorter part of the recording";
            return mistake(format!("more than {MAX_ROWS} demands and samples"), fix);
        }
        match self.origin {
            Origin::Sampled { resolution_ns: 0 } | Origin::Averaged { step_ns: 0 } => {
                return mistake("its resolution is 0 ns".into(), "give the time between readings");
            }
            _ => {}
        }
        if let Some(Err(error)) = self.limits.map(|limits| limits.check()) {
            let fix = "record the group again: no kernel accepts these limits";
            return mistake(format!("its limits are impossible: {error}"), fix);
        }
        if self.overhead.is_some_and(|cpus| !cpus.is_finite() || cpus < 0.0) {
            return mistake("its overhead is not a number of CPUs".into(), "leave it out");
        }
        let share = |of: f64| (0.0..=1.0).contains(&of);
        if self.host_load.is_some_and(|load| !share(load.others) || !share(load.full)) {
            return mistake("the load of its host is no share".into(), "leave `host_load` out");
        }
        if self.throttled_around.is_some_and(|of| !share(of)) {
            let fix = "leave `throttled_around` out";
            return mistake("the throttling around it is no share".into(), fix);
        }
        self.mistaken_demand().or_else(|| self.mistaken_sample())
    }

    /// Averages cannot lie far above a limit; a limit that changed on the way is none of theirs. Imports
    /// and plans refuse what [`Usage::validate`] can accept: a number is no damage to a file.
    pub fn beyond_its_limit(&self) -> Option<Mistake> {
        const FAR: f64 = 2.0;
        let limit = self.limits?.cpus()?;
        let used = self.samples.iter().map(|sample| sample.runtime_ns).sum::<Ns>() as f64;
        let used = used / self.span_ns as f64;
        let averages = matches!(self.origin, Origin::Averaged { .. });
        (averages && used > FAR * limit).then(|| {
            let problem =
                format!("it used {used:.3} CPUs on average under a limit of {limit} CPUs");
            let fix = "check the units: container_cpu_usage_seconds_total counts seconds, \
                       container_spec_cpu_quota and _period are microseconds per period";
            Mistake::new(problem, fix)
        })
    }

    fn mistaken_demand(&self) -> Option<Mistake> {
        let mut before_ns = 0;
        for (number, demand) in self.demands.iter().enumerate() {
            let (at_ns, thread) = (demand.at_ns, demand.thread);
            let problem = if at_ns < before_ns {
                format!("arrives at {at_ns} ns, before the previous demand")
            } else if at_ns >= self.span_ns {
                format!("arrives at {at_ns} ns, after the end at {} ns", self.span_ns)
            } else if demand.cpu_ns > MAX_SPAN_NS {
                format!("takes {} ns of CPU time, more than 31 days", demand.cpu_ns)
            } else if thread >= self.threads {
                format!("is of thread {thread}, but there are {} threads", self.threads)
            } else if demand.done_ns.is_some_and(|done| done < at_ns) {
                "is completed before it arrives".into()
            } else if demand.done_ns.is_some_and(|done| done > 2 * MAX_SPAN_NS) {
                "is completed more than 62 days after the start".into()
            } else {
                before_ns = at_ns;
                continue;
            };
            let fix = "correct the program that wrote it: demands are in order of arrival, within the recording";
            return Some(Mistake::new(format!("demand {number} {problem}"), fix));
        }
        None
    }

    fn mistaken_sample(&self) -> Option<Mistake> {
        for (number, sample) in self.samples.iter().enumerate() {
            let before = number.checked_sub(1).map(|n| &self.samples[n]);
            let counters = |of: &crate::Sample| [of.nr_periods, of.nr_throttled, of.throttled_ns];
            let fell = |before| counters(sample).iter().zip(counters(before)).any(|(n, b)| *n < b);
            let problem = if before.is_some_and(|before| sample.at_ns <= before.at_ns) {
                format!("was taken at {} ns, not after the previous sample", sample.at_ns)
            } else if sample.at_ns > self.span_ns {
                format!("was taken at {} ns, after the end at {}", sample.at_ns, self.span_ns)
            } else if before.is_some_and(fell) {
                "has a counter below that of the previous sample".into()
            } else if sample.runtime_ns > MAX_SPAN_NS {
                format!("has a run time of {} ns, more than 31 days", sample.runtime_ns)
            } else if counters(sample).iter().any(|&n| n > i64::MAX as u64) {
                "has a counter of 2^63 or more".into()
            } else {
                continue;
            };
            let fix = "correct the program that wrote it: samples are in order of time, and counters never fall";
            return Some(Mistake::new(format!("sample {number} {problem}"), fix));
        }
        None
    }
}
