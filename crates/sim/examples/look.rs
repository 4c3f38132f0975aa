use std::sync::atomic::AtomicBool;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let machine = reveille_machine::load(&a[1]).unwrap();
    let w = reveille_workload::find(&a[2]).unwrap();
    let base = reveille_policy::Policy::baseline("v6.2").unwrap();
    let (warm, dur): (u64, u64) = (a[4].parse().unwrap(), a[5].parse().unwrap());
    let seeds: u64 = a.get(6).map_or(1, |s| s.parse().unwrap());
    for load in a[3].split(',') {
        let p = w.build(load.parse().unwrap(), &Default::default()).unwrap();
        for edits in ["", "+SIS_SHORT"] {
            let pol = if edits.is_empty() { base.clone() } else { base.with(edits).unwrap() };
            for seed in 0..seeds {
                let t = std::time::Instant::now();
                let r = reveille_sim::run(
                    &machine,
                    &p,
                    &pol,
                    &reveille_sim::RunSpec {
                        seed,
                        warmup_ns: warm * 1_000_000,
                        duration_ns: dur * 1_000_000,
                    },
                    &AtomicBool::new(false),
                )
                .unwrap();
                let e = r.explain();
                let el = t.elapsed().as_secs_f64();
                println!(
                    "{load:>4} {edits:11} tput {:>11.0} rec99 {:>8} idle {:4.1} cost {:4.1} same {:5.1}M sib {:4.1}M llc {:5.1}M rem {:4.1}M srch {:5.1}M cps {:5.1} ok {:4.0}% stk {:4.1}M mig {:5.1}M bal {:6} lock {:4.1}% line {:4.1}% p50 {} p99 {} max {} | {:.2}s {:.2}M act/s",
                    r.throughput(),
                    r.recorded_latency.quantile(0.99),
                    e.idle_pct,
                    e.cost_pct,
                    e.wakeups_same_cpu_per_s / 1e6,
                    e.wakeups_sibling_per_s / 1e6,
                    e.wakeups_same_llc_per_s / 1e6,
                    e.wakeups_remote_per_s / 1e6,
                    e.idle_searches_per_s / 1e6,
                    e.cpus_per_search,
                    e.search_success_pct,
                    e.stacked_wakeups_per_s / 1e6,
                    e.migrations_per_s / 1e6,
                    r.counters.balance_migrations,
                    e.lock_wait_pct,
                    e.hot_line_wait_pct,
                    e.wakeup_p50_ns,
                    e.wakeup_p99_ns,
                    e.wakeup_max_ns,
                    el,
                    r.counters.activations as f64 * (warm + dur) as f64 / dur as f64 / el / 1e6
                );
            }
        }
    }
}
