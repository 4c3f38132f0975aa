//! The shared wake queue's decisions are those of a second writing of the rules, on
//! random machines: who is appended, which shard a CPU uses and in which order it looks
//! at the others, and whom a CPU may take.

use proptest::prelude::*;
use reveille_policy::{
    CpuId, LlcShape, Policy, Task, TaskId, Tunables, World, WorldShape, bits, swqueue_shard,
    swqueue_shard_tried, swqueue_shards,
};

fn tunables(features: u64) -> Tunables {
    let base = Policy::baseline("v6.4").expect("a baseline");
    let mut tunables = base.tunables(8, 250);
    tunables.features |= features;
    tunables
}

fn variants() -> impl Strategy<Value = u64> {
    let all = vec![
        bits::SWQUEUE,
        bits::SWQUEUE_NEWIDLE,
        bits::SWQUEUE_SKIP_IDLE,
        bits::SWQUEUE_SHARD,
        bits::SWQUEUE_ENQUEUE,
    ];
    prop::sample::subsequence(all, 0..=5).prop_map(|on| on.into_iter().fold(0, |a, b| a | b))
}

/// Caches of single-threaded cores, and one task that may run where `allowed` says.
fn world(llcs: &[u32], allowed: &[bool], prev: CpuId) -> World {
    let mut next = 0;
    let mut core = || {
        next += 1;
        vec![CpuId(next - 1)]
    };
    let llcs = llcs.iter().map(|&n| LlcShape { cores: (0..n).map(|_| core()).collect() });
    let mut world = World::new(&WorldShape { llcs: llcs.collect() });
    let mut task = Task::new(TaskId(0), prev);
    if allowed.contains(&false) {
        task.affinity = world.add_affinity(|cpu| allowed[cpu.index()]);
    }
    world.add_task(task);
    world.add_task(Task::new(TaskId(1), prev));
    world
}

#[derive(Clone, Debug)]
struct Scene {
    llcs: Vec<u32>,
    allowed: Vec<bool>,
    prev: CpuId,
    cpu: CpuId,
}

fn scene() -> impl Strategy<Value = Scene> {
    prop::collection::vec(1..80u32, 1..4).prop_flat_map(|llcs| {
        let n: u32 = llcs.iter().sum();
        let some = prop::collection::vec(any::<bool>(), n as usize);
        let one = (0..n).prop_map(move |only| (0..n).map(|c| c == only).collect());
        let all = Just(vec![true; n as usize]);
        (Just(llcs), prop_oneof![some, one, all], 0..n, 0..n).prop_map(
            |(llcs, allowed, prev, cpu)| Scene {
                llcs,
                allowed,
                prev: CpuId(prev),
                cpu: CpuId(cpu),
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn who_is_appended(scene in scene(), features in variants(), nr in 0..4u32, migrated: bool) {
        let mut world = world(&scene.llcs, &scene.allowed, scene.prev);
        world.set_nr_running(scene.cpu, nr);
        let n_allowed = scene.allowed.iter().filter(|a| **a).count();
        prop_assert_eq!(world.n_allowed(world.task(TaskId(0)).affinity) as usize, n_allowed);
        let on = |bit| features & bit != 0;
        let expected = on(bits::SWQUEUE)
            && (!migrated || on(bits::SWQUEUE_ENQUEUE))
            && n_allowed > 1
            && (nr >= 1 || !on(bits::SWQUEUE_SKIP_IDLE));
        let found = world.swqueue_appends(&tunables(features), TaskId(0), scene.cpu, migrated);
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn who_may_be_taken(scene in scene(), features in variants(), queued: bool, runs in 0..3u32) {
        let mut world = world(&scene.llcs, &scene.allowed, scene.prev);
        // On its CPU runs the idle task, the task itself, or another.
        world.set_curr(scene.prev, [TaskId::NONE, TaskId(0), TaskId(1)][runs as usize]);
        let allowed = scene.allowed[scene.cpu.index()];
        let since_v2 = features & bits::SWQUEUE_NEWIDLE != 0;
        let pops = world.swqueue_pops(&tunables(features), TaskId(0), scene.cpu);
        prop_assert_eq!(pops, allowed || !since_v2);
        let expected = allowed && queued && runs != 1 && scene.prev != scene.cpu;
        prop_assert_eq!(world.swqueue_takes(TaskId(0), scene.cpu, queued), expected);
    }

    /// Shards are as many as sixes fit in the cache, rounded up; siblings by adjacent
    /// number share one; and a CPU looks at each once, its own first.
    #[test]
    fn shards_are_even_and_each_is_tried_once(weight in 1..=512u32, cpu in 0..8192u32) {
        let one = tunables(bits::SWQUEUE);
        let many = tunables(bits::SWQUEUE | bits::SWQUEUE_SHARD);
        prop_assert_eq!(swqueue_shards(&one, weight), 1);
        let shards = swqueue_shards(&many, weight);
        prop_assert_eq!(shards, weight.div_ceil(6));
        let own = swqueue_shard(CpuId(cpu), shards);
        prop_assert_eq!(own, cpu / 2 % shards);
        prop_assert_eq!(own, swqueue_shard(CpuId(cpu ^ 1), shards));
        let order: Vec<u32> = (0..shards).map(|k| swqueue_shard_tried(own, k, shards)).collect();
        let mut expected: Vec<u32> = (own..shards).collect();
        expected.extend(0..own);
        prop_assert_eq!(order, expected);
    }
}
