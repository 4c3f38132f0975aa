//! Resampled recordings, to see how far a result depends on chance.

use reveille_measure::Random;

use crate::{Demand, Ns, Usage};

impl Usage {
    /// A recording of equal length, assembled from blocks of this one that begin at random (a
    /// circular block bootstrap). Demands move with their block and keep their thread, so what is
    /// correlated within a block mostly stays so. The last block is cut at the end. Samples cannot
    /// be resampled and are left out.
    ///
    /// Deterministic in `seed`.
    ///
    /// # Panics
    /// If `block_ns` is 0.
    pub fn resampled(&self, block_ns: Ns, seed: u64) -> Usage {
        assert!(block_ns > 0, "blocks have a length");
        let mut random = Random::new(seed);
        let mut demands = Vec::with_capacity(self.demands.len());
        let mut to_ns = 0;
        while to_ns < self.span_ns {
            let length_ns = block_ns.min(self.span_ns - to_ns);
            let from_ns = random.below(self.span_ns);
            let (end_ns, wrapped) = match from_ns + length_ns {
                end if end <= self.span_ns => (end, 0),
                end => (self.span_ns, end - self.span_ns),
            };
            let moved = |demand: &Demand, at_ns: Ns| Demand {
                at_ns,
                done_ns: demand.done_ns.map(|done| at_ns + (done - demand.at_ns)),
                ..*demand
            };
            let first = self.arriving(from_ns, end_ns);
            demands.extend(first.iter().map(|d| moved(d, to_ns + (d.at_ns - from_ns))));
            let rest = self.arriving(0, wrapped);
            demands.extend(rest.iter().map(|d| moved(d, to_ns + (end_ns - from_ns) + d.at_ns)));
            to_ns += length_ns;
        }
        Usage { demands, ..self.outline() }
    }

    /// Demands that arrive in `from_ns..before_ns`.
    fn arriving(&self, from_ns: Ns, before_ns: Ns) -> &[Demand] {
        let position = |ns: Ns| self.demands.partition_point(|demand| demand.at_ns < ns);
        &self.demands[position(from_ns)..position(before_ns)]
    }

    /// The recording without demands and samples.
    fn outline(&self) -> Usage {
        Usage {
            origin: self.origin,
            span_ns: self.span_ns,
            threads: self.threads,
            limits: self.limits,
            host_cpus: self.host_cpus,
            began_unix_ns: self.began_unix_ns,
            overhead: self.overhead,
            ..Usage::idle(self.name.clone())
        }
    }
}
