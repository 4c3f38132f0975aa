//! The C decisions are those of an independent walk over the CPUs, on random
//! machines in random states: same CPU, same reason, same count of what was looked at.

mod budget;
mod machine;
mod policies;
mod reference;
mod variants;

use machine::{Recipe, Scene};
use std::collections::BTreeMap;
use variants::{Era, Scan, era};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use reference::{Decision, History};
use reveille_policy::{CpuId, Pick, Rule, TaskId, World, bits};

const CASES: u32 = 30_000;

fn decision(pick: &Pick) -> Decision {
    Decision {
        cpu: pick.cpu.index(),
        target: pick.target.index(),
        rule: pick.rule(),
        tested: pick.tested.into(),
        searched: pick.searched.into(),
        siblings: pick.siblings.into(),
        far: pick.far.into(),
        far_llcs: pick.far_llcs.into(),
        asked: pick.asked.into(),
        search: pick.search(),
        core_search: pick.core_search(),
        cleared: pick.cleared_idle_cores(),
        exhausted: pick.exhausted(),
    }
}

fn scan(world: &World, cpu: usize) -> Scan {
    let s = world.scan_state(CpuId::at(cpu));
    Scan {
        avg_idle: s.avg_idle_ns,
        avg_scan_cost: s.avg_scan_cost_ns,
        wake_avg_idle: s.wake_avg_idle_ns,
        wake_stamp: s.wake_stamp_j,
    }
}

fn history(world: &World, task: TaskId) -> History {
    let task = world.task(task);
    History {
        wakee_flips: task.wakee_flips,
        decay_j: task.wakee_flip_decay_j,
        last_wakee: task.last_wakee.some().map(TaskId::index),
        recent_used_cpu: task.recent_used_cpu.index(),
    }
}

fn decide(scene: &Scene, world: &mut World) -> Pick {
    let wakeup = &scene.wakeup;
    let waker = wakeup.waker.map_or(TaskId::NONE, TaskId::at);
    let wakee = TaskId::at(wakeup.wakee);
    world.select_cpu(
        &scene.tunables,
        wakee,
        waker,
        CpuId::at(wakeup.this_cpu),
        scene.flags(),
        wakeup.now_j,
    )
}

/// update_avg(): an eighth of the difference, by C's division.
fn ewma8(avg: i64, sample: i64) -> i64 {
    avg + (sample - avg) / 8
}

/// update_idle_cpu_scan().
fn nr_idle_scan(sum_util: u64, llc_weight: u64, pct: u64) -> u64 {
    let x = sum_util / llc_weight;
    let tmp = x * x * pct * pct / (10_000 * 1024);
    let y = 1024 - tmp.min(1024);
    y * llc_weight / 1024
}

/// One decision by the C code and by the walk: CPU, reason, counts, and what is
/// remembered afterwards.
fn the_same_decision(recipe: &Recipe) -> Result<(), TestCaseError> {
    let mut scene = recipe.scene();
    let mut world = scene.world();
    let pick = decide(&scene, &mut world);
    let before = scene.machine.clone();
    let expected = reference::select_cpu(&mut scene.machine, &scene.tunables, &scene.wakeup);
    let found = decision(&pick);
    let wakee = &before.tasks[scene.wakeup.wakee];
    prop_assert!(
        found == expected,
        "C: {found:?}\nwalk: {expected:?}\nwakeup: {:?} {:?}\nprev {} recent {}\n{}",
        scene.wakeup,
        scene.tunables,
        wakee.prev_cpu,
        wakee.history.recent_used_cpu,
        describe(&before)
    );
    for (llc, state) in scene.machine.llcs.iter().enumerate() {
        prop_assert_eq!(world.has_idle_cores(llc), state.has_idle_cores);
        for &cpu in &state.cpus {
            prop_assert_eq!(world.in_filter(CpuId::at(cpu)), state.icpus.contains(&cpu));
        }
    }
    for (id, task) in scene.machine.tasks.iter().enumerate() {
        prop_assert_eq!(&history(&world, TaskId::at(id)), &task.history, "task {}", id);
    }
    // The search took some time, by which its bounds may follow.
    let this = scene.wakeup.this_cpu;
    let time = recipe.seed % 50_000;
    world.scan_done(&scene.tunables, CpuId::at(this), &pick, time);
    variants::scan_done(&mut scene.machine, &scene.tunables, this, &expected, time);
    for (cpu, state) in scene.machine.cpus.iter().enumerate() {
        prop_assert_eq!(scan(&world, cpu), state.scan.clone(), "CPU {}", cpu);
    }
    Ok(())
}

/// Kernels and patches as they were, each on as many machines.
#[test]
fn every_kernel_is_met_on_ten_thousand_machines() {
    for policy in [
        "v4.5",
        "v4.5 +SIS_FIRST",
        "v5.13",
        "v5.13 +SIS_AGE",
        "v5.15",
        "v6.2",
        "v6.2 +SIS_SHORT",
        "v6.2 +SIS_SHORT_V4",
        "v6.2 -WA_BIAS",
        "v6.2 +SIS_LIMITED_CORES",
        "v6.2 +SIS_LIMITED_CORES +SIS_FILTER",
        "v6.4",
        "v6.4 +SIS_CURRENT",
        "v6.4 +SIS_CACHE",
        "v6.4 +SIS_CACHE +SIS_CACHE_V1",
        "v6.4 +SIS_NODE",
        "v6.4 +SIS_NODE +SIS_NODE_LIMIT",
        "v6.4 +SIS_NODE +SIS_NODE_TOPOEXT",
        "v6.4 +SIS_CLUSTER",
        "v6.12",
        "v7.2",
    ] {
        let config =
            ProptestConfig { cases: 10_000, failure_persistence: None, ..Default::default() };
        TestRunner::new(config)
            .run(&Recipe::under(policy), |recipe| the_same_decision(&recipe))
            .unwrap_or_else(|e| panic!("{policy}: {e}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_c_code_decides_as_the_walk_does(recipe in Recipe::any()) {
        the_same_decision(&recipe)?;
    }

    #[test]
    fn wake_lists_are_used_as_the_kernel_uses_them(recipe in Recipe::any()) {
        let scene = recipe.scene();
        let mut world = scene.world();
        let this_cpu = scene.wakeup.this_cpu;
        for cpu in 0..scene.machine.cpus.len() {
            for on_cpu in [false, true] {
                let expected =
                    reference::ttwu_queue(&scene.machine, &scene.tunables, this_cpu, cpu, on_cpu);
                let found =
                    world.ttwu_queue(&scene.tunables, CpuId::at(this_cpu), CpuId::at(cpu), on_cpu);
                prop_assert_eq!(found, expected, "from {} to {}: {}", this_cpu, cpu, on_cpu);
            }
        }
    }

    #[test]
    fn a_cpu_that_goes_idle_joins_the_filter_unless_its_core_is_there(recipe in Recipe::any()) {
        let scene = recipe.scene();
        let mut world = scene.world();
        for cpu in 0..scene.machine.cpus.len() {
            let expected = variants::joins_filter(&scene.machine, cpu);
            let was = world.in_filter(CpuId::at(cpu));
            prop_assert_eq!(world.join_filter(CpuId::at(cpu)), expected, "CPU {}", cpu);
            prop_assert_eq!(world.in_filter(CpuId::at(cpu)), was || expected);
            world.set_in_filter(CpuId::at(cpu), was);
        }
    }

    /// Only the previous CPU may be disallowed, after an affinity change.
    #[test]
    fn a_search_finds_allowed_usable_cpus_only(recipe in Recipe::any()) {
        let scene = recipe.scene();
        let mut world = scene.world();
        let pick = decide(&scene, &mut world);
        let wakee = &scene.machine.tasks[scene.wakeup.wakee];
        let cpu = pick.cpu.index();
        prop_assert!(wakee.allowed[cpu] || cpu == wakee.prev_cpu);
        let state = &scene.machine.cpus[cpu];
        match pick.rule() {
            Rule::IdleCore => {
                prop_assert!(state.core.iter().all(|t| scene.machine.cpus[*t].available_idle));
            }
            Rule::IdleCpu | Rule::RecentIdle => {
                prop_assert!(state.available_idle || state.sched_idle);
            }
            Rule::SiblingIdle => {
                prop_assert!(state.available_idle || state.sched_idle);
                let near = if pick.search() { pick.target.index() } else { wakee.prev_cpu };
                prop_assert!(cpu != near && state.core.contains(&near));
            }
            _ => return Ok(()),
        }
        prop_assert!(wakee.allowed[cpu]);
        let near = scene.machine.cpus[pick.target.index()].llc;
        let node = |llc: usize| scene.machine.llcs[llc].node;
        prop_assert!(state.llc == near || pick.far > 0 && node(state.llc) == node(near));
    }

    #[test]
    fn the_scan_budget_is_the_kernels(util in 0u64..=1024, rest in 0u64..500, weight in 1u32..=512, pct in 100u32..200) {
        let sum = util * u64::from(weight) + rest;
        let expected = nr_idle_scan(sum, weight.into(), pct.into());
        prop_assert_eq!(u64::from(reveille_policy::nr_idle_scan(sum, weight, pct)), expected);
    }

    #[test]
    fn averages_move_by_an_eighth(avg in 0u64..10_000_000, sample in 0u64..10_000_000, cost in 0u64..1_000_000) {
        let mut task = reveille_policy::Task::new(TaskId(0), CpuId(0));
        task.dur_avg_ns = avg as i64;
        task.prev_sleep_sum_ns = 77;
        task.sum_exec_ns = 77 + sample;
        task.slept();
        let expected = ewma8(avg as i64, sample as i64);
        prop_assert_eq!(task.dur_avg_ns, expected);
        prop_assert_eq!(task.prev_sleep_sum_ns, task.sum_exec_ns);
        let capped = (expected as u64).min(2 * cost);
        let mut scan = reveille_policy::ScanState { avg_idle_ns: avg, ..Default::default() };
        scan.idle_ended(sample, cost, 99);
        prop_assert_eq!(scan.avg_idle_ns, capped);
        prop_assert_eq!((scan.wake_avg_idle_ns, scan.wake_stamp_j), (capped / 2, 99));
    }
}

/// The comparison is worth what its scenes reach: every rule, both hooks of
/// SIS_SHORT, searches that end by budget, and LLCs of one, two and three words.
#[test]
fn the_scenes_reach_every_rule() {
    let mut runner = TestRunner::deterministic();
    let mut reached: BTreeMap<String, u32> = BTreeMap::new();
    for _ in 0..10_000 {
        let recipe = Recipe::any().new_tree(&mut runner).unwrap().current();
        let mut scene = recipe.scene();
        let without = |bit: u64| {
            let mut scene = recipe.scene();
            scene.tunables.features &= !bit;
            reference::select_cpu(&mut scene.machine, &scene.tunables, &scene.wakeup)
        };
        let (plain, apart) = (without(bits::SIS_SHORT), without(bits::SIS_CURRENT));
        let end = reference::select_cpu(&mut scene.machine, &scene.tunables, &scene.wakeup);
        let llc = &scene.machine.llcs[scene.machine.cpus[end.target].llc];
        let budget_ended = end.search
            && !end.core_search
            && end.rule == Rule::Target
            && end.searched == llc.nr_idle_scan;
        let words = llc.cpus.len().div_ceil(64);
        for (what, is) in [
            (format!("{:?}", end.rule), true),
            (format!("search in {words} words"), end.searched > 0),
            (format!("core search in {words} words"), end.core_search),
            ("target by SIS_SHORT".to_owned(), end.target != plain.target),
            ("CPU by SIS_CURRENT".to_owned(), end.cpu != apart.cpu),
            ("CPU by SIS_CACHE".to_owned(), end.cpu != without(bits::SIS_CACHE).cpu),
            (
                "core search cleared, with fallback".to_owned(),
                end.cleared && end.rule == Rule::IdleCpu,
            ),
            ("core search cleared, without".to_owned(), end.cleared && end.rule == Rule::Target),
            ("search ended by its budget".to_owned(), budget_ended),
            ("search beyond 64 CPUs".to_owned(), end.searched > 64),
            ("an idle CPU in another LLC".to_owned(), end.cpu_is_far(&scene.machine)),
            ("a candidate of another cluster".to_owned(), end.kept()),
            (format!("{:?} by {:?}", era(&scene.tunables), end.rule), end.search),
            (format!("{:?} ended by its budget", era(&scene.tunables)), end.exhausted),
        ] {
            *reached.entry(what).or_default() += u32::from(is);
        }
    }
    for (era, rules) in [
        (Era::V45, [Rule::IdleCore, Rule::IdleCpu, Rule::SiblingIdle, Rule::Target].as_slice()),
        (Era::V513, &[Rule::IdleCore, Rule::IdleCpu, Rule::Target]),
        (Era::V62, &[Rule::IdleCore, Rule::IdleCpu, Rule::Target]),
    ] {
        for rule in rules {
            assert!(
                reached[&format!("{era:?} by {rule:?}")] >= 10,
                "{era:?} {rule:?}: {reached:?}"
            );
        }
        let cut = reached[&format!("{era:?} ended by its budget")];
        assert_eq!(cut >= 10, era != Era::V45, "{era:?}: {reached:?}");
    }
    let kept = reached.remove("a candidate of another cluster");
    assert!(kept > Some(0), "a budget has to end a search first");
    reached.retain(|what, _| !what.starts_with('V'));
    assert_eq!(reached.len(), 9 + 3 + 3 + 8, "{reached:?}");
    assert!(reached.values().all(|n| *n >= 50), "{reached:?}");
}

/// The LLCs and CPUs, one per line, of machines small enough to read.
fn describe(machine: &reference::Machine) -> String {
    let mut text = String::new();
    for (index, llc) in machine.llcs.iter().enumerate() {
        text += &format!("LLC {index}: {llc:?}\n");
    }
    for (index, cpu) in machine.cpus.iter().enumerate().take(40) {
        text += &format!("CPU {index}: {cpu:?}\n");
    }
    text + &format!("wakee {:?}", machine.tasks[0])
}
