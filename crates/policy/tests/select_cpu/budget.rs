//! The bounds of SIS_PROP and SIS_AGE, as searches on a machine without idle CPUs
//! show them: how many CPUs are looked at, and how that moves with time and cost.

use proptest::prelude::*;
use reveille_policy::{
    CpuId, LlcShape, Pick, Policy, ScanState, Task, TaskId, Tunables, WAKE_IN_TASK, World,
    WorldShape,
};

const NOW_J: u64 = 1_000_000;

/// One LLC of cores with one thread, all busy; task 0 wakes task 1 on CPU 0.
fn busy_world(weight: u32, scan: ScanState) -> World {
    let cores = (0..weight).map(|cpu| vec![CpuId(cpu)]).collect();
    let mut world = World::new(&WorldShape { llcs: vec![LlcShape { cores }] });
    for id in 0..3 {
        world.add_task(Task::new(TaskId(id), CpuId(0)));
    }
    for cpu in (0..weight).map(CpuId) {
        world.set_available_idle(cpu, false);
        world.set_nr_running(cpu, 1);
        world.set_curr(cpu, TaskId(if cpu == CpuId(0) { 0 } else { 2 }));
    }
    *world.scan_state_mut(CpuId(0)) = scan;
    world
}

fn tunables(edits: &str, weight: u32) -> Tunables {
    let base = Policy::baseline("v5.13").unwrap();
    let policy = if edits.is_empty() { base } else { base.with(edits).unwrap() };
    policy.tunables(weight as usize, 250)
}

fn search(world: &mut World, tunables: &Tunables, now_j: u64) -> Pick {
    let pick = world.select_cpu(tunables, TaskId(1), TaskId(0), CpuId(0), WAKE_IN_TASK, now_j);
    assert!(pick.search() && !pick.core_search());
    pick
}

prop_compose! {
    fn states()(
        avg_idle_ns in 0u64..=1_000_000,
        avg_scan_cost_ns in 0u64..50_000,
        wake_avg_idle_ns in 0u64..=500_000,
        age_j in 0u64..80,
    ) -> ScanState {
        ScanState { avg_idle_ns, avg_scan_cost_ns, wake_avg_idle_ns, wake_stamp_j: NOW_J - age_j }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Counted down before each test, a budget of n looks at n - 1 CPUs, and no budget
    /// is below 4.
    #[test]
    fn a_budget_of_n_looks_at_one_less(weight in 2u32..=300, scan in states()) {
        let tunables = tunables("", weight);
        let pick = search(&mut busy_world(weight, scan), &tunables, NOW_J);
        let span = u64::from(weight) * (scan.avg_idle_ns / 512);
        let nr = (span / (scan.avg_scan_cost_ns + 1)).max(4);
        prop_assert_eq!(u64::from(pick.searched), (nr - 1).min(weight.into()));
        prop_assert_eq!(pick.exhausted(), nr - 1 < weight.into());
    }

    #[test]
    fn idle_time_halves_with_every_jiffy(scan in states(), jiffies in 0u64..100) {
        let mut world = busy_world(8, scan);
        let start = ScanState { wake_stamp_j: NOW_J, ..scan };
        *world.scan_state_mut(CpuId(0)) = start;
        search(&mut world, &tunables("+SIS_AGE", 8), NOW_J + jiffies);
        let end = *world.scan_state(CpuId(0));
        prop_assert_eq!(end.wake_avg_idle_ns, scan.wake_avg_idle_ns.checked_shr(jiffies as u32).unwrap_or(0));
        // The stamp follows only while something is left to halve.
        let steps = u64::from(64 - scan.wake_avg_idle_ns.leading_zeros());
        prop_assert_eq!(end.wake_stamp_j, NOW_J + jiffies.min(steps));
        prop_assert_eq!((end.avg_idle_ns, end.avg_scan_cost_ns), (scan.avg_idle_ns, scan.avg_scan_cost_ns));
    }

    /// While the CPU stays busy neither time nor searches of equal cost widen its search.
    #[test]
    fn ageing_never_widens_a_search(
        weight in 2u32..=300, scan in states(), waits in prop::collection::vec(0u64..3, 1..20),
    ) {
        let tunables = tunables("+SIS_AGE", weight);
        let mut world = busy_world(weight, scan);
        let mut now_j = NOW_J;
        let mut before = u16::MAX;
        for wait in waits {
            now_j += wait;
            let pick = search(&mut world, &tunables, now_j);
            prop_assert!(pick.searched <= before, "{} after {before}", pick.searched);
            before = pick.searched;
            let left = world.scan_state(CpuId(0)).wake_avg_idle_ns;
            let elapsed = world.scan_state(CpuId(0)).avg_scan_cost_ns;
            world.scan_done(&tunables, CpuId(0), &pick, elapsed);
            let charged = if pick.exhausted() { 0 } else { left.min(elapsed) };
            prop_assert_eq!(world.scan_state(CpuId(0)).wake_avg_idle_ns, left - charged);
        }
    }

    /// The search that its budget cut short says nothing of what searches cost, nor does
    /// one that no such budget bounds.
    #[test]
    fn only_whole_searches_tell_their_cost(weight in 2u32..=300, scan in states(), elapsed in 0u64..100_000) {
        let mut world = busy_world(weight, scan);
        let by_cost = tunables("", weight);
        let pick = search(&mut world, &by_cost, NOW_J);
        world.scan_done(&by_cost, CpuId(0), &pick, elapsed);
        let moved = (elapsed as i64 - scan.avg_scan_cost_ns as i64) / 8;
        let expected = scan.avg_scan_cost_ns as i64 + if pick.exhausted() { 0 } else { moved };
        prop_assert_eq!(world.scan_state(CpuId(0)).avg_scan_cost_ns as i64, expected);
        prop_assert_eq!(world.scan_state(CpuId(0)).wake_avg_idle_ns, scan.wake_avg_idle_ns);
    }
}

/// SIS_UTIL bounds a search alone, also where SIS_PROP is on.
#[test]
fn utilisation_goes_before_cost() {
    let both = tunables("+SIS_UTIL", 64);
    let hopeless = ScanState { avg_idle_ns: 0, avg_scan_cost_ns: 50_000, ..ScanState::default() };
    let mut world = busy_world(64, hopeless);
    world.set_nr_idle_scan(0, 20);
    let pick = search(&mut world, &both, NOW_J);
    assert_eq!(pick.searched, 20);
    world.set_nr_idle_scan(0, 64);
    let pick = search(&mut world, &both, NOW_J);
    assert_eq!((pick.searched, pick.exhausted()), (64, false));
    world.scan_done(&both, CpuId(0), &pick, 1000);
    assert_eq!(world.scan_state(CpuId(0)).avg_scan_cost_ns, 50_000);
}

/// v5.13 looks at the target first, which it knows to be busy: of the least budget two
/// CPUs are left. v5.15 and v6.2 begin behind the target.
#[test]
fn the_search_of_v5_13_begins_at_the_target() {
    let hopeless = ScanState { avg_idle_ns: 0, ..ScanState::default() };
    let mut world = busy_world(64, hopeless);
    world.set_available_idle(CpuId(3), true);
    world.set_curr(CpuId(3), TaskId::NONE);
    world.set_nr_running(CpuId(3), 0);
    let pick = search(&mut world, &tunables("", 64), NOW_J);
    assert_eq!((pick.cpu, pick.searched), (CpuId(0), 3), "CPUs 0, 1 and 2");
    world.set_nr_idle_scan(0, 3);
    for behind in ["v5.15", "v6.2"] {
        let behind = Policy::baseline(behind).unwrap().tunables(64, 250);
        let pick = search(&mut world, &behind, NOW_J);
        assert_eq!((pick.cpu, pick.searched), (CpuId(3), 3), "CPUs 1, 2 and 3");
    }
}

/// On v4.5 a wakee stays on its busy core although every other core has an idle
/// thread; the patch takes the first of these.
#[test]
fn groups_overlook_idle_threads_that_the_first_idle_search_finds() {
    let cores = (0..4).map(|core| vec![CpuId(core), CpuId(core + 4)]).collect();
    let mut world = World::new(&WorldShape { llcs: vec![LlcShape { cores }] });
    for id in 0..3 {
        world.add_task(Task::new(TaskId(id), CpuId(2)));
    }
    for cpu in [0, 1, 2, 3, 6].map(CpuId) {
        world.set_available_idle(cpu, false);
        world.set_nr_running(cpu, 1);
        world.set_curr(cpu, TaskId(if cpu == CpuId(2) { 0 } else { 2 }));
    }
    let v45 = Policy::baseline("v4.5").unwrap();
    let of = |world: &mut World, policy: &Policy| {
        world
            .select_cpu(
                &policy.tunables(8, 250),
                TaskId(1),
                TaskId(0),
                CpuId(2),
                WAKE_IN_TASK,
                NOW_J,
            )
            .cpu
            .0
    };
    assert_eq!(of(&mut world, &v45), 2, "no core is idle: stacked");
    assert_eq!(of(&mut world, &v45.with("+SIS_FIRST").unwrap()), 4, "the first idle thread");
    // The sibling of the target turns idle: it is a group of its own.
    world.set_available_idle(CpuId(6), true);
    world.set_nr_running(CpuId(6), 0);
    assert_eq!(of(&mut world, &v45), 6);
    // A whole core turns idle: it goes before.
    world.set_available_idle(CpuId(1), true);
    world.set_nr_running(CpuId(1), 0);
    assert_eq!(of(&mut world, &v45), 1);
}
