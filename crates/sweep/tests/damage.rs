//! A damaged table is refused, or read; it never ends the program.

use std::fs;

use proptest::prelude::*;
use proptest::sample::Index;
use reveille_measure::Shard;
use reveille_sweep::{Finished, MetricRuns, Outcome, Outcomes, Spec, merge};

const SPEC: &str = r#"
name = "damage"
machines = ["quad-1s4c"]
bases = ["v6.2"]
edits = ["+SIS_SHORT"]
seeds = [1, 2, 3]
[sample]
points = 20
[[workload]]
name = "context_switch1"
loads = [1, 2]
[constants]
switch_ns = "range"
"#;

fn finished() -> Finished {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("spec.toml");
    fs::write(&path, SPEC).unwrap();
    let design = Spec::read(&path).unwrap().load(&[]).unwrap_or_else(|e| panic!("{e}")).design;
    let mut outcomes = Outcomes::new();
    for (i, (point, _)) in design.points().iter().enumerate() {
        for edit in 0..2 {
            let samples = vec![Some(1.0 + i as f64), (i % 7 > 0).then_some(f64::from(edit as u8))];
            let outcome = match i % 5 {
                0 => Outcome::Failed("refused".to_owned()),
                _ => Outcome::Ran(vec![MetricRuns { samples, ..MetricRuns::default() }]),
            };
            outcomes.insert(design.cell_id(point, edit), outcome);
        }
    }
    Finished::new(design, Shard::WHOLE, &outcomes)
}

#[test]
fn what_is_written_is_read() {
    let finished = finished();
    let bytes = finished.to_parquet().unwrap();
    assert_eq!(Finished::from_parquet("a", bytes).unwrap(), finished);
    let twice = vec![("a".to_owned(), finished.clone()), ("b".to_owned(), finished.clone())];
    assert_eq!(merge(twice).unwrap(), finished);
}

proptest! {
    #[test]
    fn damage_is_refused_or_read(changes in prop::collection::vec((any::<Index>(), any::<u8>()), 1..4), cut in any::<Option<Index>>()) {
        let mut bytes = finished().to_parquet().unwrap();
        if let Some(cut) = cut {
            let at = cut.index(bytes.len());
            bytes.drain(at..(at + 5).min(bytes.len()));
        }
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(read) = Finished::from_parquet("a", bytes) {
            let _ = merge(vec![("a".to_owned(), read)]);
        }
    }
}
