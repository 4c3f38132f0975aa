//! Recordings as Parquet files: what is written is read, and what is wrong is refused.

use proptest::prelude::*;
use reveille_policy::BandwidthLimits;
use reveille_usage::{Demand, HostLoad, MAX_SPAN_NS, Origin, Sample, Usage};

fn origin() -> impl Strategy<Value = Origin> {
    prop_oneof![
        Just(Origin::Traced),
        Just(Origin::Requests),
        (1..u64::MAX).prop_map(|resolution_ns| Origin::Sampled { resolution_ns }),
        (1..u64::MAX).prop_map(|step_ns| Origin::Averaged { step_ns }),
    ]
}

fn limits() -> impl Strategy<Value = Option<BandwidthLimits>> {
    let limited = (1_000_000..1_000_000_000_000u64, 1_000_000..=1_000_000_000u64, 0.0..=1.0)
        .prop_map(|(quota_ns, period_ns, burst): (u64, u64, f64)| BandwidthLimits {
            quota_ns: Some(quota_ns),
            period_ns,
            burst_ns: (quota_ns as f64 * burst) as u64,
        });
    prop_oneof![Just(None), Just(Some(BandwidthLimits::default())), limited.prop_map(Some)]
}

prop_compose! {
    fn demands(span_ns: u64, threads: u32)(
        rows in prop::collection::vec(
            (0..span_ns, 0..=MAX_SPAN_NS, 0..threads, prop::option::of(0..MAX_SPAN_NS)),
            0..200,
        )
    ) -> Vec<Demand> {
        let demand = |(at_ns, cpu_ns, thread, took): (u64, u64, u32, Option<u64>)| Demand {
            at_ns, cpu_ns, thread, done_ns: took.map(|took| at_ns + took),
        };
        let mut demands: Vec<Demand> = rows.into_iter().map(demand).collect();
        demands.sort_by_key(|demand| demand.at_ns);
        demands
    }
}

prop_compose! {
    fn samples(span_ns: u64)(
        rows in prop::collection::btree_map(
            0..=span_ns,
            (0..=MAX_SPAN_NS, prop::option::of(any::<u32>()), [0..1u64 << 50, 0..1u64 << 50, 0..1u64 << 50]),
            0..100,
        )
    ) -> Vec<Sample> {
        let mut counters = [0; 3];
        rows.into_iter().map(|(at_ns, (runtime_ns, runnable, more))| {
            for (counter, more) in counters.iter_mut().zip(more) {
                *counter += more;
            }
            let [nr_periods, nr_throttled, throttled_ns] = counters;
            Sample { at_ns, runtime_ns, runnable, nr_periods, nr_throttled, throttled_ns }
        }).collect()
    }
}

fn usage() -> impl Strategy<Value = Usage> {
    let outline = (1..=MAX_SPAN_NS, 1..=65_536u32);
    outline.prop_flat_map(|(span_ns, threads)| {
        let rows = (demands(span_ns, threads), samples(span_ns));
        let known = (
            prop::option::of(any::<u32>()),
            prop::option::of(any::<u64>()),
            prop::option::of(any::<u64>()),
        );
        let overhead = prop::option::of(prop::num::f64::POSITIVE | prop::num::f64::ZERO);
        let share = || 0.0..=1.0f64;
        let around = prop::option::of(share());
        let load = (share(), share(), prop::option::of(any::<u64>()));
        let load = load.prop_map(|(others, full, waited_ns)| HostLoad { others, full, waited_ns });
        let load = prop::option::of(load);
        let text = (".*", prop::collection::vec(".*", 0..3));
        (rows, origin(), limits(), known, (overhead, load, around), text).prop_map(
            move |(
                (demands, samples),
                origin,
                limits,
                known,
                (overhead, host_load, throttled_around),
                (name, warnings),
            )| Usage {
                name,
                origin,
                span_ns,
                threads,
                demands,
                samples,
                limits,
                host_cpus: known.0,
                began_unix_ns: known.1,
                unseen_ns: known.2,
                overhead: overhead.map(f64::abs),
                host_load,
                throttled_around,
                warnings,
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]

    #[test]
    fn what_is_written_is_read(usage in usage()) {
        let bytes = usage.to_parquet().unwrap();
        prop_assert_eq!(Usage::from_parquet("a.parquet", bytes).unwrap(), usage);
    }

    #[test]
    fn a_file_that_is_cut_off_is_refused(usage in usage(), cut in 0.0..1.0f64) {
        let bytes = usage.to_parquet().unwrap();
        let kept = (bytes.len() as f64 * cut) as usize;
        let error = Usage::from_parquet("a.parquet", bytes[..kept].to_vec()).unwrap_err();
        prop_assert!(error.to_string().starts_with("a.parquet: "), "{}", error);
    }

    /// Some changes cannot be noticed: those of a number. Nothing else is accepted, and
    /// nothing stops the program.
    #[test]
    fn changed_bytes_give_an_error_or_a_valid_recording(
        usage in usage(), changes in prop::collection::vec((0.0..1.0f64, any::<u8>()), 1..4)
    ) {
        let mut bytes = usage.to_parquet().unwrap();
        for (at, byte) in changes {
            let at = (bytes.len() as f64 * at) as usize;
            bytes[at] = byte;
        }
        if let Ok(read) = Usage::from_parquet("a.parquet", bytes) {
            read.validate().unwrap();
        }
    }
}
