//! A topology answers consistently, whatever its shape.

use proptest::prelude::*;
use reveille_machine::{CpuPlace, Distance, Shape, Topology, TopologyError};

fn place(os_cpu: u32, core: u32, llc: u32, node: u32, socket: u32) -> CpuPlace {
    CpuPlace { os_cpu, core, thread: 9, cluster: core, llc, node, socket }
}

#[test]
fn numbers_cpus_as_x86_does() {
    let t = Topology::uniform(2, 1, 56, 2).expect("224 CPUs");
    assert_eq!(t.core_cpus(0), [0, 112]);
    assert_eq!(t.core_cpus(111), [111, 223]);
    assert_eq!((t.llc_cpus(1)[0], t.llc_cpus(1)[56]), (56, 168));
    assert!(t.cpus().iter().all(|place| place.node == place.socket));
    assert_eq!(t.cpus()[168].thread, 1);
    let distances = [0, 112, 1, 56].map(|cpu| t.distance(0, cpu));
    assert_eq!(distances, [Distance::Same, Distance::Smt, Distance::Llc, Distance::Remote]);
    let zen = Topology::uniform(1, 2, 8, 2).expect("32 CPUs");
    assert_eq!(zen.distance(0, 8), Distance::Socket);
}

#[test]
fn nodes_split_a_socket_and_clusters_a_cache() {
    let shape = Shape {
        sockets: 2,
        nodes_per_socket: 4,
        llcs_per_socket: 8,
        cores_per_llc: 8,
        cores_per_cluster: 4,
        threads: 2,
    };
    let t = Topology::of(shape).expect("Milan, NPS4, with clusters that it does not have");
    assert_eq!((t.n_nodes(), t.n_sockets(), t.n_clusters()), (8, 2, 32));
    let in_node = |&cpu: &u32| t.cpus()[cpu as usize].node == 1;
    assert!((0..256).filter(in_node).eq((16..32).chain(144..160)));
    let in_cluster = |&cpu: &u32| t.cpus()[cpu as usize].cluster == 1;
    assert!((0..256).filter(in_cluster).eq((4..8).chain(132..136)));
    let distances = [128, 3, 4, 8, 16, 64].map(|cpu| t.distance(0, cpu));
    let (smt, cluster, llc) = (Distance::Smt, Distance::Cluster, Distance::Llc);
    let (socket, remote) = (Distance::Socket, Distance::Remote);
    assert_eq!(distances, [smt, cluster, llc, socket, socket, remote]);
    assert!(t.describe().ends_with("16 LLCs of 16 CPUs, 32 clusters, 8 memory nodes"));
    let uneven = |what, n, whole, of| Err(TopologyError::Uneven { what, n, whole, of });
    assert_eq!(
        Topology::of(Shape { nodes_per_socket: 3, ..shape }),
        uneven("nodes_per_socket", 3, "llcs_per_socket", 8)
    );
    assert_eq!(
        Topology::of(Shape { cores_per_cluster: 16, ..shape }),
        uneven("cores_per_cluster", 16, "cores_per_llc", 8)
    );
}

#[test]
fn refuses_impossible_shapes() {
    use TopologyError::*;
    assert_eq!(Topology::uniform(1, 1, 0, 2), Err(Zero { what: "cores_per_llc" }));
    assert_eq!(Topology::uniform(1, 1, 4, 9), Err(TooManyThreads { threads: 9 }));
    assert_eq!(Topology::uniform(16, 16, 64, 8), Err(TooManyCpus { cpus: 131_072 }));
    assert_eq!(Topology::uniform(1, 1, 4097, 1), Err(LlcTooWide { cpus: 4097 }));
    let huge = Topology::uniform(u32::MAX, u32::MAX, u32::MAX, 8);
    assert!(matches!(huge, Err(TooManyCpus { .. })), "{huge:?}");
    assert_eq!(Topology::uniform(16, 1, 4096, 1).map(|t| t.n_cpus()), Ok(65_536));
}

#[test]
fn refuses_places_that_contradict() {
    use TopologyError::*;
    let of = Topology::from_places;
    assert_eq!(of(vec![]), Err(NoCpu));
    let gap = of(vec![place(0, 0, 0, 0, 0), place(1, 2, 0, 0, 0)]);
    assert_eq!(gap, Err(NotDense { what: "core", missing: 1, highest: 2 }));
    let far = of(vec![place(0, 0, 0, 0, u32::MAX)]);
    assert_eq!(far, Err(NotDense { what: "socket", missing: 0, highest: u32::MAX }));
    let twice = of(vec![place(4, 0, 0, 0, 0), place(4, 1, 0, 0, 0)]);
    assert_eq!(twice, Err(DuplicateCpu { os_cpu: 4 }));
    let split = of(vec![place(0, 0, 0, 0, 0), place(1, 0, 1, 0, 0)]);
    assert!(matches!(split, Err(Split { inner: "core", outer: "llc", .. })), "{split:?}");
    let split = of(vec![place(0, 0, 0, 0, 0), place(1, 1, 0, 1, 0)]);
    assert!(matches!(split, Err(Split { inner: "llc", outer: "node", .. })), "{split:?}");
    let split = of(vec![place(0, 0, 0, 0, 0), place(1, 1, 0, 0, 1)]);
    assert!(matches!(split, Err(Split { inner: "llc", outer: "socket", .. })), "{split:?}");
    let wide = of((0..9).map(|c| place(c, 0, 0, 0, 0)).collect());
    assert_eq!(wide, Err(TooManyThreads { threads: 9 }));
}

#[test]
fn describes_uneven_machines() {
    let places = vec![place(0, 0, 0, 0, 0), place(1, 0, 0, 0, 0), place(2, 1, 1, 0, 0)];
    let t = Topology::from_places(places).expect("3 CPUs");
    assert_eq!(t.describe(), "1 socket, 2 cores, 3 CPUs, 2 LLCs of 1 to 2 CPUs");
    assert_eq!(t.cpus().iter().map(|p| p.thread).collect::<Vec<_>>(), [0, 1, 0]);
}

/// Each CPU is in exactly one list of a kind, the one that its place names.
fn lists_partition<'a>(
    t: &'a Topology,
    n: usize,
    list: impl Fn(u32) -> &'a [u32],
    id: impl Fn(&CpuPlace) -> u32,
) -> bool {
    let mut seen = vec![0; t.n_cpus()];
    (0..n as u32).all(|i| {
        list(i).iter().for_each(|&c| seen[c as usize] += 1);
        list(i).iter().all(|&c| id(&t.cpus()[c as usize]) == i)
            && list(i).windows(2).all(|w| w[0] < w[1])
    }) && seen.iter().all(|n| *n == 1)
}

proptest! {
    #[test]
    fn uniform_topologies_are_consistent(
        sockets in 1u32..5, llcs in 1u32..5, cores in 1u32..13, threads in 1u32..9,
    ) {
        let t = Topology::uniform(sockets, llcs, cores, threads).expect("small machine");
        prop_assert_eq!(t.n_cpus() as u32, sockets * llcs * cores * threads);
        prop_assert_eq!(t.n_nodes(), t.n_sockets());
        prop_assert!(lists_partition(&t, t.n_cores(), |i| t.core_cpus(i), |p| p.core));
        prop_assert!(lists_partition(&t, t.n_llcs(), |i| t.llc_cpus(i), |p| p.llc));
        for core in 0..t.n_cores() as u32 {
            let ranks: Vec<u32> =
                t.core_cpus(core).iter().map(|&c| t.cpus()[c as usize].thread).collect();
            prop_assert_eq!(ranks, (0..threads).collect::<Vec<_>>());
        }
    }

    #[test]
    fn distance_is_symmetric_and_nearest_to_oneself(
        llcs in 1u32..4, cores in 1u32..6, threads in 1u32..4, a in 0u32..30, b in 0u32..30,
    ) {
        let t = Topology::uniform(2, llcs, cores, threads).expect("small machine");
        let (a, b) = (a % t.n_cpus() as u32, b % t.n_cpus() as u32);
        prop_assert_eq!(t.distance(a, b), t.distance(b, a));
        prop_assert_eq!(t.distance(a, b) == Distance::Same, a == b);
    }

    #[test]
    fn places_never_panic(ids in prop::collection::vec(prop::array::uniform5(0u32..4), 0..12)) {
        let places = ids.iter().map(|&[os, core, llc, node, s]| place(os, core, llc, node, s));
        if let Ok(t) = Topology::from_places(places.collect()) {
            prop_assert!(!t.describe().is_empty());
        }
    }
}
