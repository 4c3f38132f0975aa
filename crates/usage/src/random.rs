//! A random load by queueing theory, for use without a recording.

use reveille_measure::Random;

use crate::{Demand, Ns, Usage};

const SHORTEST_NS: f64 = 10_000.0;

impl Usage {
    /// The beginning of a recording, no longer than `span_ns`.
    pub fn first(&self, span_ns: Ns) -> Usage {
        let span_ns = span_ns.min(self.span_ns);
        let mut first = Usage { span_ns, ..self.clone() };
        first.demands.retain(|demand| demand.at_ns < span_ns);
        first.samples.retain(|sample| sample.at_ns <= span_ns);
        first
    }

    /// Requests that arrive at each of `threads` as a Poisson process and have exponentially
    /// distributed CPU times with mean `work_ns`. They are scaled to use exactly `cpus` on average
    /// over `span_ns`.
    pub fn random(
        name: &str,
        threads: u32,
        cpus: f64,
        work_ns: Ns,
        span_ns: Ns,
        seed: u64,
    ) -> Usage {
        let mut random = Random::new(seed);
        let work = work_ns as f64;
        let gap = work * f64::from(threads) / cpus;
        let mut demands = Vec::new();
        for thread in 0..threads {
            let mut at = random.exponential(gap);
            while at < span_ns as f64 {
                let cpu_ns = random.exponential(work).max(SHORTEST_NS) as Ns;
                demands.push(Demand { at_ns: at as Ns, cpu_ns, thread, done_ns: None });
                at += random.exponential(gap);
            }
        }
        demands.sort_by_key(|demand| (demand.at_ns, demand.thread));
        let sum: Ns = demands.iter().map(|demand| demand.cpu_ns).sum();
        let stretch = cpus * span_ns as f64 / sum.max(1) as f64;
        for demand in &mut demands {
            demand.cpu_ns = (demand.cpu_ns as f64 * stretch) as Ns;
        }
        Usage { span_ns, threads, demands, ..Usage::idle(name) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_load_asks_for_what_it_should() {
        let of = |seed| Usage::random("load", 3, 0.6, 5_000_000, 10_000_000_000, seed);
        let usage = of(1);
        assert!((usage.mean_cpus() - 0.6).abs() < 1e-3, "{}", usage.mean_cpus());
        let (n, threads) = (usage.demands.len(), usage.demands.iter().map(|d| d.thread));
        assert!((1000..1400).contains(&n), "{n}");
        assert_eq!(threads.max(), Some(2));
        assert!(usage.demands.is_sorted_by_key(|d| d.at_ns));
        assert_eq!(usage, of(1));
        assert_ne!(usage, of(2));
    }
}
