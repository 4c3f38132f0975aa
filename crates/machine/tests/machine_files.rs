//! A mistake in a machine file is refused with its file, line, key and fix.

use std::fs;

use miette::Diagnostic;
use proptest::prelude::*;
use reveille_machine::{CostModel, FileError, InputError, Measured, Origin, load, parse_toml};

const GOOD: &str = r#"
name = "lab"
about = "two CPUs"
source = "a test"
cost = "generic-x86"
hz = 1000

[topology]
sockets = 1
llcs_per_socket = 1
cores_per_llc = 2
threads = 1

[constants]
line_llc_ns = { value = 60, range = [40, 80], source = "a mail" }
smt_share = { value = 0.7, range = [0.5, 0.75], source = "a mail" }

[[idle]]
name = "C1"
exit_ns = 900
residency_ns = 1000
polling = true
range = [500, 1000]
source = "a table"
"#;

fn mistake(text: &str) -> FileError {
    match parse_toml("lab.toml", text) {
        Err(InputError::File(error)) => *error,
        other => panic!("{other:?}\n{text}"),
    }
}

#[track_caller]
fn refuses(from: &str, to: &str, key: &str, says: &str) {
    assert!(GOOD.contains(from), "{from}");
    let error = mistake(&GOOD.replacen(from, to, 1));
    let line =
        GOOD.lines().position(|l| l.contains(from.lines().next().unwrap_or(""))).unwrap_or(0);
    assert_eq!(error.key.as_deref(), Some(key), "{error}");
    assert!(error.to_string().contains(says), "{error}");
    assert!(
        error.line.is_some_and(|l| l.abs_diff(line as u64 + 1) <= 6),
        "{error}: wanted line {}",
        line + 1
    );
    assert!(error.to_string().starts_with("lab.toml:"), "{error}");
    assert!(!error.help.is_empty());
    assert!(error.labels().is_some() && error.source_code().is_some());
}

#[test]
fn reads_a_good_file() {
    let m = parse_toml("lab.toml", GOOD).expect("good");
    assert_eq!((m.name.as_str(), m.hz, m.topology.n_cpus()), ("lab", 1000, 2));
    assert_eq!((m.cost.line_llc_ns, m.cost.smt_share), (60, 0.7));
    let own = m.constant("line_llc_ns").expect("constant");
    assert!(!own.inherited && own.origin == Origin::Cited("a mail".into()));
    assert!(m.constant("ttwu_ns").expect("constant").inherited);
    assert_eq!(m.idle.len(), 1);
    let no_idle = GOOD.split("[[idle]]").next().unwrap_or("");
    let inherited = parse_toml("lab.toml", no_idle).expect("good");
    assert!(inherited.idle.len() > 1);
    let default_hz = GOOD.replace("hz = 1000", "");
    assert_eq!(parse_toml("lab.toml", &default_hz).map(|m| m.hz).ok(), Some(250));
}

#[test]
fn refuses_bad_constants() {
    refuses("line_llc_ns", "line_lcc_ns", "line_lcc_ns", "did you mean `line_llc_ns`");
    refuses("value = 60", "value = 90", "line_llc_ns", "outside its plausible range [40, 80]");
    refuses("[40, 80]", "[80, 40]", "line_llc_ns", "runs backwards");
    refuses(", source = \"a mail\"", "", "line_llc_ns", "has no source");
    refuses("\"a mail\"", "\" \"", "line_llc_ns", "has no source");
    refuses("\"a mail\"", "\"a\", fitted = \"b\"", "line_llc_ns", "more than one of");
    refuses("\"a mail\"", "\"a\", estimate = \"b\"", "line_llc_ns", "more than one of");
    let measured = "measured = { how = \"a loop\", p10 = 58, p90 = 64.5, samples = 9 }";
    let source = "source = \"a mail\"";
    let both = format!("{source}, {measured}");
    refuses(source, &both, "line_llc_ns", "more than one of");
    let mistakes = [
        ("a loop", " ", "does not say how"),
        ("= 9", "= 0", "no sample"),
        ("p10 = 58", "p10 = 65", "p90 that is not above"),
        ("64.5", "nan", "p90 that is not above"),
        ("samples", "sample", "unknown field"),
    ];
    for (from, to, says) in mistakes {
        let key = if from == "samples" { "sample" } else { "line_llc_ns" };
        refuses(source, &measured.replacen(from, to, 1), key, says);
    }
    refuses("value = 60", "value = 60.5", "line_llc_ns", "whole number");
    refuses("value = 60", "value = -60", "line_llc_ns", "whole number");
    refuses("value = 60", "value = nan", "line_llc_ns", "whole number");
    refuses("80]", "inf]", "line_llc_ns", "whole number");
    refuses("value = 0.7", "value = 1.7", "smt_share", "at most 1");
    refuses("value = 60", "value = \"60\"", "value", "string \"60\", expected a number");
    refuses("value = 60", "valeu = 60", "valeu", "unknown field");
}

#[test]
fn a_measured_constant_has_its_spread_and_is_not_fitted() {
    let measured = "measured = { how = \"a loop\", p10 = 58, p90 = 64.5, samples = 9 }";
    let text =
        GOOD.replace("source = \"a mail\"", measured).replace("source = \"a table\"", measured);
    let machine = parse_toml("lab.toml", &text).expect("good");
    let expected =
        Origin::Measured(Measured { how: "a loop".into(), p10: 58.0, p90: 64.5, samples: 9 });
    let own = machine.constant("line_llc_ns").expect("constant");
    assert_eq!(
        (&own.origin, own.origin.kind(), own.origin.text()),
        (&expected, "measured", "a loop")
    );
    assert_eq!(machine.idle[0].origin, expected);
    let good = parse_toml("lab.toml", GOOD).expect("good");
    assert_eq!(machine.fitted(), good.fitted());
    let written = machine.to_toml().expect("uniform");
    assert_eq!(parse_toml("lab.toml", &written).expect("good"), machine, "{written}");
}

#[test]
fn refuses_bad_machines() {
    refuses("cores_per_llc = 2", "cores_per_llc = 0", "cores_per_llc", "is 0");
    refuses("threads = 1", "threads = 9", "threads", "9 threads");
    let nine = parse_toml("lab.toml", &GOOD.replace("threads = 1", "threads = 9")).unwrap_err();
    assert_eq!(nine.help().map(|help| help.to_string()).as_deref(), Some("use at most 8"));
    refuses("sockets = 1", "sockets = 40000", "topology", "80000 CPUs");
    refuses(
        "sockets = 1",
        "sockets = -1",
        "sockets",
        "expected a whole number from 0 to 4294967295",
    );
    refuses(
        "sockets = 1",
        "sockets = 99999999999999999999",
        "sockets",
        "9`, expected a whole number",
    );
    refuses("cores_per_llc = 2", "cores_per_llc = 6000", "cores_per_llc", "6000 CPUs share");
    refuses("hz = 1000", "hz = 999", "hz", "999");
    refuses("hz = 1000", "herz = 1000", "herz", "unknown field");
    refuses("cost = \"generic-x86\"", "cost = \"generic-x68\"", "cost", "no cost model");
    refuses("source = \"a test\"", "source = \"\"", "source", "is empty");
    refuses("name = \"lab\"\n", "", "name", "missing field");
    refuses("exit_ns = 900", "exit_ns = 1900", "exit_ns", "outside");
    refuses("source = \"a table\"", "", "idle", "has no source");
    let twice = format!("{GOOD}{}", &GOOD[GOOD.find("[[idle]]").unwrap_or(0)..]);
    assert!(mistake(&twice).to_string().contains("appears twice"));
    let lighter = twice.replacen("\"C1\"", "\"C2\"", 1).replacen(
        "residency_ns = 1000",
        "residency_ns = 9000",
        1,
    );
    assert!(mistake(&lighter).help.contains("lightest"));
    assert!(mistake("this is no machine").line == Some(1));
}

#[test]
fn refuses_a_ninth_fitted_number() {
    let fitted = |n: usize| {
        let keys = ["ttwu_ns", "enqueue_ns", "dequeue_ns", "switch_ns"];
        keys[..n].iter().fold(GOOD.to_owned(), |text, key| {
            let line = format!("{key} = {{ value = 200, range = [100, 900], fitted = \"why\" }}");
            text.replacen("[constants]", &format!("[constants]\n{line}"), 1)
        })
    };
    let inherited = parse_toml("lab.toml", GOOD).expect("good").fitted().len();
    assert!(inherited <= 8);
    let error = mistake(&fitted(9 - inherited));
    assert!(error.to_string().contains("9 numbers are fitted"), "{error}");
    assert!(parse_toml("lab.toml", &fitted(8 - inherited)).is_ok());
}

#[test]
fn names_are_found_and_suggested() {
    let error = load("bergamo-2s182c").expect_err("typing slip");
    assert!(error.to_string().contains("did you mean `bergamo-2s128c`?"), "{error}");
    let help = error.help().map(|h| h.to_string()).unwrap_or_default();
    assert!(help.contains("bdw-2s20c") && help.contains("lstopo"), "{help}");
    let error = load("generic-x86").expect_err("no CPUs");
    assert!(error.help().is_some_and(|h| h.to_string().contains("cost model")));
    let error = load("/nowhere/lab.toml").expect_err("no file");
    assert!(error.to_string().contains("/nowhere/lab.toml"), "{error}");
    assert!(load("").is_err());
}

#[test]
fn loads_by_path() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let path = dir.path().join("lab.toml");
    fs::write(&path, GOOD).expect("write");
    assert_eq!(load(&path.to_string_lossy()).map(|m| m.name).ok().as_deref(), Some("lab"));
    fs::write(&path, [0xff, 0xfe]).expect("write");
    assert!(matches!(load(&path.to_string_lossy()), Err(InputError::Read { .. })));
}

#[test]
fn constants_are_set_within_their_range() {
    let mut m = load("spr-2s56c").expect("preset");
    m.set("line_llc_ns", 60.0).expect("in range");
    assert_eq!(m.cost.line_llc_ns, 60);
    assert_eq!(m.constant("line_llc_ns").map(|c| c.value), Some(60.0));
    assert!(m.set("line_llc_ns", 6000.0).is_err_and(|e| e.to_string().contains("range")));
    assert!(m.set("line_lcc_ns", 60.0).is_err_and(|e| e.to_string().contains("did you mean")));
    let mut cost = m.cost.clone();
    for key in CostModel::KEYS {
        let value = cost.get(key).expect("known");
        cost.set(key, value).expect("same value");
    }
    assert_eq!(cost, m.cost);
    assert!(cost.set("ttwu_ns", f64::NAN).is_err() && cost.get("nothing").is_none());
}

proptest! {
    #[test]
    fn never_panics_on_text(text in "\\PC{0,200}") {
        let _ = parse_toml("lab.toml", &text);
        let _ = load(&text);
    }

    #[test]
    fn never_panics_on_a_damaged_file(at in 0usize..GOOD.len(), cut in 0usize..30, put in "[\\PC\n]{0,6}") {
        let mut text = GOOD.to_owned();
        text.replace_range(at..(at + cut).min(GOOD.len()), &put);
        if let Err(error) = parse_toml("lab.toml", &text) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
