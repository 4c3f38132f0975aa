//! Studies of groups that share CPUs by chance: what is refused, and what runs give.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use miette::Diagnostic;
use reveille_study::{FLUID, NO_BURST, RowKind, Verdict, parse, run};

const STUDY: &str = r#"name = "shared"
about = "three groups"
repeats = 2

[[interference]]
name = "steps"
demand = "poisson"
step_pct = 20
groups = 3
loads = [50, 90]
variants = ["burst=50%", "burst=max"]
metrics = ["p_wcet", "wcet"]
periods = 4000
source = "nobody"
published = [
    { load = 90, variant = "burst=max", metric = "p_wcet", side = "variant", value = 90 },
    { load = 50, variant = "burst=50%", metric = "wcet", side = "base", value = 1 },
]
"#;

#[test]
fn mistakes_name_their_key_and_a_fix() {
    for (right, wrong, key, message, help) in [
        ("about", "machine = \"quad-1s4c\"\nabout", "machine", "no meaning", "leave it out"),
        ("about", "on = \"host\"\nabout", "interference", "cannot be measured", "leave out `on`"),
        ("\"poisson\"", "\"poison\"", "demand", "did you mean `poisson`?", "known here"),
        ("step_pct = 20", "alpha = 4", "alpha", "no meaning", "leave it out"),
        ("step_pct = 20\n", "", "step_pct", "is missing", "add `step_pct`"),
        ("groups = 3", "groups = 0", "groups", "not possible", "use 1 to"),
        ("periods = 4000", "periods = 0", "periods", "not possible", "use 1 to"),
        ("periods = 4000", "load_is = \"usage\"", "load_is", "no load", "`use`, `quantile`"),
        ("periods = 4000", "cpus = -1.0", "cpus", "no figure", "above 0"),
        ("[50, 90]", "[50, 90, 20000000]", "loads", "cannot be simulated", "smaller load"),
        ("periods = 4000", "load_is = \"quantile\"\nloads_ = 1", "loads_", "unknown field", "load"),
        ("\"burst=50%\", \"burst", "\"burst=0%\", \"burst", "variants", "no burst", "above 0"),
        ("\"burst=50%\", \"burst", "\"burst=50ms\", \"burst", "variants", "no burst", "100%"),
        ("\"burst=50%\", ", "\"burst=max\", ", "variants", "given twice", "remove"),
        ("[\"p_wcet\", ", "[\"wcet\", ", "metrics", "given twice", "remove"),
        ("[\"p_wcet\", ", "[\"p_wctt\", ", "metrics", "did you mean `p_wcet`?", "known here"),
        ("metrics = [\"p_wcet\", ", "metrics = [", "metric", "not taken", "`metrics`"),
        ("load = 90", "load = 91", "load", "not run", "`loads`"),
        ("value = 90", "value = -1", "value", "no figure", "positive"),
        ("value = 90", "value = 101", "value", "101% of periods cannot be", "0 to 100"),
        ("source = \"nobody\"\n", "", "source", "needs one", "add `source`"),
    ] {
        assert!(STUDY.contains(right), "{right}");
        let error = parse("shared.toml", &STUDY.replacen(right, wrong, 1)).expect_err(wrong);
        let (said, helped) = (error.to_string(), error.help().unwrap().to_string());
        assert!(said.contains(&format!("`{key}`: ")) && said.contains(message), "{wrong}: {said}");
        assert!(helped.contains(help), "{wrong}: {said}; help: {helped}");
        assert!(error.source_code().is_some() && error.labels().is_some(), "{wrong}: {said}");
    }
    let twice = format!("{STUDY}{}", STUDY.split_once("repeats = 2\n").unwrap().1);
    let error = parse("shared.toml", &twice).unwrap_err().to_string();
    assert!(error.contains("two cases are called `steps`"), "{error}");
}

#[test]
fn rows_are_the_same_on_any_number_of_threads() {
    let study = parse("shared.toml", STUDY).unwrap();
    let stop = AtomicBool::new(false);
    let most = AtomicUsize::new(0);
    let go = |jobs| {
        run(&study, jobs, &stop, &|done, all| {
            assert!(done <= all && all == 12, "{done} of {all}");
            most.fetch_max(done, Ordering::Relaxed);
        })
        .unwrap()
    };
    let (one, three) = (go(1), go(3));
    let means = |c: &reveille_study::Comparison| -> Vec<(f64, f64)> {
        c.rows.iter().map(|r| (r.baseline.mean, r.candidate.mean)).collect()
    };
    assert_eq!(means(&one), means(&three));
    assert_eq!(most.into_inner(), 12);
    assert_eq!((one.machine.as_str(), one.base.as_str()), (FLUID, NO_BURST));
    assert!(!one.partial);
    // Two loads, two bursts, two metrics.
    assert_eq!(one.rows.len(), 8);
    assert!(one.rows.iter().all(|r| r.kind == RowKind::Interference));
    let nothing = |metric: &str| if metric.starts_with('E') { 1.0 } else { 0.0 };
    assert!(one.rows.iter().all(|r| r.baseline.mean == nothing(&r.metric.name)));
    // 90% is far from what three groups at 90% with any burst do; 1 is what no burst is.
    let verdicts: Vec<_> = one.rows.iter().filter_map(|r| Some((r.load, r.verdict?))).collect();
    assert_eq!(verdicts, [(50, Verdict::Hit), (90, Verdict::Miss)]);
    assert_eq!((one.score.hits, one.score.counted), (1, 2));
}

#[test]
fn what_is_interrupted_is_partial_and_what_has_no_machine_takes_none() {
    let study = parse("shared.toml", STUDY).unwrap();
    let stopped = run(&study, 2, &AtomicBool::new(true), &|_, _| {}).unwrap();
    assert!(stopped.partial && stopped.rows.is_empty());
    let machine = reveille_machine::load("quad-1s4c").unwrap();
    let error = study.on_machine(machine).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("`--machine`"), "{error}");
}
