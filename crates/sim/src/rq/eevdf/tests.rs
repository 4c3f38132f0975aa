//! Single decisions of the timeline, with figures that can be worked out by hand.

use super::*;

pub(super) const MS: u32 = 1_000_000;
pub(super) const BASE: u32 = 3 * MS;
pub(super) const TICK: u32 = MS;

pub(super) fn rules() -> EevdfRules {
    EevdfRules {
        base_slice_ns: BASE,
        unscaled_slice_ns: BASE / 4,
        tick_ns: TICK,
        place_lag: true,
        run_to_parity: true,
        preempt_short: true,
        delay_dequeue: true,
        delay_zero: true,
        slice_protect: false,
        delayed_hidden: false,
        pick_preempts: false,
    }
}

/// Task 0 runs, the others wait.
fn timeline(rules: EevdfRules, slices: &[u32]) -> Eevdf {
    let mut eevdf = Eevdf::new(rules);
    for (task, &slice_ns) in (0..).zip(slices) {
        eevdf.enqueue(TaskId(task), 1024, slice_ns, Carried::default(), false);
        if task == 0 {
            assert_eq!(eevdf.pick(), Some(Next::Run(TaskId(0))));
        }
    }
    eevdf
}

fn owed(vlag: i64) -> Carried {
    Carried { vlag, deadline: None }
}

#[test]
fn a_wakee_with_the_same_slice_waits_while_the_current_task_is_owed_time() {
    for slice_protect in [false, true] {
        let rules = EevdfRules { slice_protect, ..rules() };
        // Alone with each other, task 0 has used nothing of its slice, or half of it.
        for used in [0, BASE / 2] {
            let mut eevdf = timeline(rules, &[BASE]);
            eevdf.charge(u64::from(used));
            eevdf.enqueue(TaskId(1), 1024, BASE, owed(0), false);
            assert!(eevdf.preempts(TaskId(1), false).is_none(), "{used} ns used");
        }
        let parity = EevdfRules { run_to_parity: false, slice_protect: false, ..rules };
        let mut eevdf = timeline(parity, &[BASE]);
        eevdf.charge(u64::from(BASE / 2));
        eevdf.enqueue(TaskId(1), 1024, BASE, owed(0), false);
        // Both are eligible, and task 0 has the earlier deadline.
        assert!(eevdf.preempts(TaskId(1), false).is_none());
        // What is owed to the wakee makes task 0 a debtor.
        let mut eevdf = timeline(rules, &[BASE]);
        eevdf.charge(u64::from(BASE / 2));
        eevdf.enqueue(TaskId(1), 1024, BASE, owed(i64::from(MS)), false);
        assert!(eevdf.preempts(TaskId(1), false).is_some());
    }
}

#[test]
fn a_wakee_with_a_shorter_slice_cuts_the_current_one_short() {
    for slice_protect in [false, true] {
        let short = |preempt_short| {
            let rules = EevdfRules { slice_protect, preempt_short, ..rules() };
            let mut eevdf = timeline(rules, &[BASE]);
            eevdf.enqueue(TaskId(1), 1024, MS, owed(0), false);
            let preempts = eevdf.preempts(TaskId(1), false).is_some();
            eevdf.put_back();
            assert_eq!(eevdf.pick(), Some(Next::Run(TaskId(preempts.into()))));
            preempts
        };
        assert!(short(true));
        assert!(!short(false));
    }
}

/// v6.17: a short slice among the waiting ones is all that the current task is left.
#[test]
fn a_wakeup_that_does_not_preempt_shrinks_the_protection() {
    let rules =
        EevdfRules { slice_protect: true, pick_preempts: true, preempt_short: false, ..rules() };
    let mut eevdf = timeline(rules, &[BASE]);
    eevdf.enqueue(TaskId(1), 1024, MS, owed(0), false);
    assert!(eevdf.preempts(TaskId(1), false).is_none());
    assert!(!eevdf.charge(u64::from(MS) - 1));
    assert!(eevdf.charge(1), "a millisecond after the wake-up");
    // A quiet one leaves it alone.
    let mut eevdf = timeline(rules, &[BASE]);
    eevdf.enqueue(TaskId(1), 1024, MS, owed(0), false);
    assert!(eevdf.preempts(TaskId(1), true).is_none());
    assert!(!eevdf.charge(u64::from(MS) + 1));
    assert!(eevdf.charge(u64::from(BASE)), "the end of the slice");
}

#[test]
fn a_task_that_sleeps_in_debt_is_delayed_until_its_turn() {
    let mut eevdf = timeline(rules(), &[BASE, BASE]);
    eevdf.charge(u64::from(MS));
    assert_eq!(eevdf.block(), None);
    assert!(eevdf.queued().iter().any(|e| e.task == TaskId(0) && e.delayed));
    assert_eq!(eevdf.pick(), Some(Next::Run(TaskId(1))));
    // Task 1 catches up and overtakes: at its next pick task 0 is gone, with no claim.
    eevdf.charge(u64::from(2 * MS));
    eevdf.put_back();
    assert_eq!(eevdf.pick(), Some(Next::Asleep(TaskId(0), 0)));
    assert_eq!(eevdf.pick(), Some(Next::Run(TaskId(1))));
    assert!(eevdf.queued().is_empty());
}

/// From v6.18 on the check whether a wakee preempts picks as a switch does.
#[test]
fn a_wakeup_dequeues_the_delayed_task_that_a_pick_would_reach() {
    for pick_preempts in [false, true] {
        let rules = EevdfRules { pick_preempts, run_to_parity: false, ..rules() };
        let mut eevdf = timeline(rules, &[BASE, BASE]);
        eevdf.charge(u64::from(MS));
        assert_eq!(eevdf.block(), None);
        assert_eq!(eevdf.pick(), Some(Next::Run(TaskId(1))));
        // Task 1 overtakes the sleeper, which then has the earlier deadline, and so has task 2.
        eevdf.charge(u64::from(2 * MS));
        eevdf.enqueue(TaskId(2), 1024, BASE, owed(i64::from(MS)), false);
        let first = eevdf.preempts(TaskId(2), false);
        if pick_preempts {
            assert_eq!(first, Some(Next::Asleep(TaskId(0), 0)));
            assert_eq!(eevdf.preempts(TaskId(2), false), Some(Next::Run(TaskId(2))));
        } else {
            assert_eq!(first, None, "the sleeper is in the way");
        }
    }
}

#[test]
fn a_delayed_task_that_wakes_keeps_its_debt_but_no_claim() {
    for (delay_zero, claim) in [(true, 0), (false, i64::from(MS))] {
        let mut eevdf = timeline(EevdfRules { delay_zero, ..rules() }, &[BASE, BASE]);
        eevdf.charge(u64::from(MS));
        assert_eq!(eevdf.block(), None);
        assert_eq!(eevdf.pick(), Some(Next::Run(TaskId(1))));
        let mut early = timeline(EevdfRules { delay_zero, ..rules() }, &[BASE, BASE]);
        early.charge(u64::from(MS));
        assert_eq!(early.block(), None);
        assert_eq!(early.pick(), Some(Next::Run(TaskId(1))));
        early.wake_delayed(TaskId(0));
        assert_eq!(early.average() - early.queued()[0].vruntime, -i64::from(MS) / 2);
        // Later task 1 is two milliseconds ahead of it.
        eevdf.charge(u64::from(3 * MS) - 1);
        eevdf.wake_delayed(TaskId(0));
        let lag = eevdf.average() - eevdf.queued()[0].vruntime;
        assert!((lag - claim).abs() <= 1, "{lag} for {claim}");
    }
}

#[test]
fn a_task_that_is_moved_keeps_its_lag_and_its_time_to_the_deadline() {
    let mut from = timeline(rules(), &[BASE, BASE]);
    from.charge(u64::from(MS));
    let carried = from.remove(TaskId(1));
    let half = i64::from(MS) / 2;
    assert_eq!(carried, Carried { vlag: half, deadline: Some(i64::from(BASE)) });
    let mut to = timeline(rules(), &[BASE, BASE]);
    to.charge(u64::from(2 * MS));
    to.enqueue(TaskId(7), 1024, BASE, carried, false);
    let moved = *to.queued().iter().find(|e| e.task == TaskId(7)).expect("it is there");
    assert_eq!(moved.deadline - moved.vruntime, i64::from(BASE));
    let lag = to.average() - moved.vruntime;
    assert!((lag - half).abs() <= 1, "{lag}");
}

#[test]
fn a_new_task_asks_for_half_a_slice_first() {
    let mut eevdf = timeline(rules(), &[BASE]);
    eevdf.enqueue(TaskId(1), 1024, BASE, Carried::default(), true);
    let new = eevdf.queued()[0];
    assert_eq!(new.deadline - new.vruntime, i64::from(BASE) / 2);
}

#[test]
fn tasks_share_the_cpu_in_proportion_to_their_weights() {
    const TICKS: u32 = 10_000;
    for slice_protect in [false, true] {
        let weights = [335, 1024, 1024, 3121];
        let mut eevdf = Eevdf::new(EevdfRules { slice_protect, ..rules() });
        for (task, weight) in (0..).zip(weights) {
            eevdf.enqueue(TaskId(task), weight, BASE, Carried::default(), false);
        }
        let mut served = [0u32; 4];
        let mut next = eevdf.pick();
        for _ in 0..TICKS {
            let Some(Next::Run(task)) = next else { panic!("no task sleeps") };
            served[task.index()] += 1;
            if eevdf.charge(u64::from(TICK)) {
                eevdf.put_back();
                next = eevdf.pick();
            }
        }
        for (served, weight) in served.into_iter().zip(weights) {
            let share = f64::from(weight) / f64::from(weights.iter().sum::<u32>());
            let off = f64::from(served) - share * f64::from(TICKS);
            // A slice and a tick, in ticks, and as much for the place where it began.
            assert!(off.abs() <= 8.0, "weight {weight}: {served} of {TICKS}");
        }
    }
}
