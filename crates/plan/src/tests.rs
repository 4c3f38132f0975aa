//! What holds for any setting: the bound of the worst case, and that more quota does not hurt.

use std::sync::atomic::{AtomicBool, AtomicU64};

use proptest::prelude::*;
use reveille_policy::Policy;
use reveille_usage::{Demand, Origin, Usage};

use crate::Ns;
use crate::limits::limits_of;
use crate::load::Load;
use crate::plan::Range;
use crate::replay::{Phase, Stage, cpus_like};
use crate::worst_case::worst_case;

const MS: Ns = 1_000_000;

fn stage(stop: &AtomicBool) -> Stage<'_> {
    Stage {
        machine: cpus_like(&reveille_machine::load("skx-2s20c").unwrap(), 2).unwrap(),
        policy: Policy::baseline("v6.12").unwrap(),
        slice_ns: 5 * MS,
        within: None,
        neighbours: Vec::new(),
        goals: &[],
        seed: 1,
        stop,
        runs: AtomicU64::new(0),
        simulated_ns: AtomicU64::new(0),
        tell: &|| {},
    }
}

fn usage(span_ns: Ns, pieces: &[(Ns, Ns, u32)]) -> Usage {
    let piece =
        |&(at_ns, cpu_ns, thread): &(Ns, Ns, u32)| Demand { at_ns, cpu_ns, thread, done_ns: None };
    let mut demands: Vec<Demand> = pieces.iter().map(piece).collect();
    demands.sort_by_key(|demand| demand.at_ns);
    Usage {
        name: "any".into(),
        origin: Origin::Traced,
        span_ns,
        threads: 3,
        demands,
        samples: Vec::new(),
        limits: None,
        host_cpus: None,
        began_unix_ns: None,
        overhead: None,
        warnings: Vec::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_worst_case_stays_within_its_bound(
        work_us in 100u64..200_000,
        period_ms in 5u64..200,
        share in 20u64..250,
        burst in 0u64..=100,
    ) {
        let stop = AtomicBool::new(false);
        let Some(limits) = limits_of(share * 10, period_ms * MS, burst) else { return Ok(()) };
        let usage = usage(1000 * MS, &[(0, work_us * 1000, 0)]);
        let worst = worst_case(&stage(&stop), &usage, limits).unwrap().unwrap();
        prop_assert!(worst.simulated_ns >= worst.work_ns as f64, "{limits}: {worst:?}");
        let bound_ns = worst.bound_ns.unwrap() as f64;
        prop_assert!(worst.simulated_ns <= bound_ns, "{limits}: {worst:?}");
    }

    /// The median over phases, that is: by as much as phases differ it may be otherwise.
    #[test]
    fn more_quota_does_not_hurt(
        pieces in prop::collection::vec((0u64..3900, 1u64..30, 0u32..3), 20..120),
        period_ms in 10u64..200,
        burst in 0u64..=100,
    ) {
        let stop = AtomicBool::new(false);
        let stage = stage(&stop);
        let pieces: Vec<_> = pieces.iter().map(|&(at, cpu, t)| (at * MS, cpu * MS, t)).collect();
        let usage = usage(4000 * MS, &pieces);
        let load = Load::new(&[&usage]);
        let least = (usage.mean_cpus() * 1000.0) as u64;
        let mut before: Option<Range> = None;
        for millicpus in [least * 5 / 4 + 20, least * 2 + 20, least * 4 + 20] {
            let Some(limits) = limits_of(millicpus, period_ms * MS, burst) else { continue };
            let p99: Vec<f64> = (0..8)
                .map(|index| {
                    let phase = Phase::of_grid(index, 8);
                    let outcome = stage.replay(&load, Some(limits), phase).unwrap();
                    stage.figures(&load, &outcome, 0.0).p99_ns
                })
                .collect();
            let p99 = Range::over(&p99);
            if let Some(before) = before.filter(|before| before.max.is_finite()) {
                let noise = before.max - before.min + stage.tick_ns() as f64;
                prop_assert!(p99.median <= before.median + noise, "{limits}: {p99:?} {before:?}");
            }
            before = Some(p99);
        }
    }
}
