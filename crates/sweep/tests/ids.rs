//! A cell's id comes from its content, not from its place in a spec.

use std::collections::{HashMap, HashSet};
use std::fs;

use proptest::prelude::*;
use proptest::sample::{Index, subsequence};
use reveille_measure::Shard;
use reveille_sweep::{Cell, Design, Point, Spec};

const MACHINES: [&str; 3] = ["quad-1s4c", "zen4-7950x", "spr-2s56c"];
const BASES: [&str; 4] = ["v5.13", "v6.2", "v6.4", "v6.12"];
const EDITS: [&str; 3] = ["+SIS_SHORT", "-TTWU_QUEUE", "-WA_IDLE"];

#[derive(Clone, Debug)]
struct Parts {
    machines: Vec<&'static str>,
    bases: Vec<&'static str>,
    edits: Vec<&'static str>,
    loads: Vec<u64>,
    seeds: Vec<u64>,
    constants: Vec<(&'static str, Vec<u32>)>,
}

fn parts() -> impl Strategy<Value = Parts> {
    let constants = vec![("switch_ns", vec![500, 900]), ("scan_lines", vec![2, 3])];
    (
        subsequence(MACHINES.to_vec(), 1..=3).prop_shuffle(),
        subsequence(BASES.to_vec(), 1..=4).prop_shuffle(),
        subsequence(EDITS.to_vec(), 0..=3).prop_shuffle(),
        subsequence(vec![1, 2, 5, 9], 1..=4).prop_shuffle(),
        subsequence(vec![1, 2, 3], 1..=3).prop_shuffle(),
        subsequence(constants, 0..=2).prop_shuffle(),
    )
        .prop_map(|(machines, bases, edits, loads, seeds, constants)| Parts {
            machines,
            bases,
            edits,
            loads,
            seeds,
            constants,
        })
}

fn design(parts: &Parts) -> Design {
    let Parts { machines, bases, edits, loads, seeds, constants } = parts;
    let mut text = format!(
        "name = \"t\"\nmachines = {machines:?}\nbases = {bases:?}\nedits = {edits:?}\n\
         seeds = {seeds:?}\n[[workload]]\nname = \"context_switch1\"\nloads = {loads:?}\n[constants]\n"
    );
    for (key, values) in constants {
        text += &format!("{key} = {values:?}\n");
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("spec.toml");
    fs::write(&path, text).unwrap();
    Spec::read(&path).unwrap().load(&[]).unwrap_or_else(|e| panic!("{e}")).design
}

/// Every cell in words, by id.
fn cells(design: &Design) -> HashMap<String, String> {
    let words = |point: &Point, edit| {
        let seed = design.seeds[point.seed];
        let constants: Vec<_> = design.constants.iter().map(|c| &c.key).collect();
        let mut constants: Vec<_> = constants.into_iter().zip(&point.constants).collect();
        constants.sort_by_key(|(key, _)| key.to_owned());
        format!("{} seed {seed} {constants:?}", design.words(Cell { point, edit }))
    };
    let points = design.points();
    let mut cells = HashMap::new();
    for (id, point) in &points {
        for edit in 0..design.edits.len() {
            let twice = cells.insert(design.cell_id(id, edit), words(point, edit));
            assert_eq!(twice, None);
        }
    }
    cells
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn ids_follow_content(one in parts(), two in parts()) {
        let (one, two) = (cells(&design(&one)), cells(&design(&two)));
        let of = |words: &String, cells: &HashMap<String, String>| {
            cells.iter().find(|(_, w)| *w == words).map(|(id, _)| id.clone())
        };
        for (id, words) in &one {
            // The same content has the same id in any spec, and another content another one.
            prop_assert_eq!(of(words, &two).is_some_and(|other| other == *id), two.contains_key(id));
            prop_assert_eq!(of(words, &two).is_some(), two.contains_key(id));
        }
    }

    #[test]
    fn shards_share_no_point_and_leave_none_out(parts in parts(), of in 1u32..9, at in any::<Index>()) {
        let points = design(&parts).points();
        let sorted = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
        prop_assert!(sorted);
        let shard = |rank: usize| {
            let all = (1..=of).filter(|&index| Shard { index, of }.has(rank));
            all.collect::<Vec<_>>()
        };
        prop_assert_eq!(shard(at.index(points.len())).len(), 1);
        let sizes: HashSet<usize> = (1..=of)
            .map(|index| (0..points.len()).filter(|r| Shard { index, of }.has(*r)).count())
            .collect();
        let spread = sizes.iter().max().unwrap() - sizes.iter().min().unwrap();
        prop_assert!(spread <= 1);
    }
}
