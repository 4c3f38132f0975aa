//! The curve that the SIS_SHORT mail shows for one socket of its machine, in short
//! runs: pairs that pass a byte, from a quarter of the CPUs to two tasks per CPU.
//! Source: Chen Yu, "[PATCH v6 2/2] sched/fair: Introduce SIS_SHORT to wake up short
//! task on current CPU", linux-kernel, 2023-02-22.

mod common;

use common::{MS, assert_near, catalogue, machine, policy, run};
use reveille_measure::RunResult;

/// 112 CPUs: one socket of spr-2s56c.
const CPUS: u64 = 112;

fn context_switches(pairs: u64, edits: &str) -> RunResult {
    let machine = machine("spr-2s56c", 1, 1, 56, 2);
    assert_eq!(machine.topology.n_cpus() as u64, CPUS);
    run(&machine, &catalogue("context_switch1", pairs, &[]), &policy(edits), 60 * MS, 10 * MS)
}

/// The mail's figure: throughput rises to half as many pairs as CPUs, then falls.
#[test]
fn throughput_peaks_at_half_as_many_pairs_as_cpus() {
    let rates: Vec<f64> = [28, 56, 84, CPUS]
        .into_iter()
        .map(|pairs| context_switches(pairs, "").throughput())
        .collect();
    let peak = rates[1];
    assert!(rates[0] < peak && peak > rates[2] && peak > rates[3], "{rates:?}");
}

/// The mail prints a factor of 10.5 for 224 pairs on 224 CPUs. Under SIS_SHORT they settle after 60 to 400 ms.
#[test]
fn sis_short_gains_as_published_when_all_cpus_are_taken() {
    let machine = reveille_machine::load("spr-2s56c").expect("a preset");
    let pairs = catalogue("context_switch1", 2 * CPUS, &[]);
    let rate = |edits| run(&machine, &pairs, &policy(edits), 400 * MS, 10 * MS).throughput();
    let (base, short) = (rate(""), rate("+SIS_SHORT"));
    assert_near("factor", short / base, 10.5, 0.2);
}

/// The functions that touch `tg->load_avg` take 31.6% of all cycles on 112 CPUs
/// (github.com/yu-chen-surf/schedtests, May 2023): within a factor of two, the rule for
/// figures of one side.
#[test]
fn the_load_of_the_task_group_is_as_hot_as_measured() {
    let share = context_switches(CPUS, "").explain().hot_line_wait_pct;
    assert!((15.8..=63.2).contains(&share), "{share}% of all CPU time");
}

/// The mail: no change of note at a quarter of the load.
#[test]
fn sis_short_changes_little_while_cores_are_idle() {
    let rate = |edits| context_switches(28, edits).throughput();
    let (base, short) = (rate(""), rate("+SIS_SHORT"));
    assert!((short / base - 1.0).abs() < 0.05, "{base} to {short} operations/s");
}
