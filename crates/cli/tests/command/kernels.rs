//! Kernels as variants, a baseline alone, and edits that contradict each other.

use std::fs;

use super::{json, refusals, small_of as compare, stdout, words};

#[test]
fn two_kernels_are_compared() {
    let result = json(&compare(&["v6.12", "v6.12,+SIS_SHORT"], &["--json"]));
    let rows = result["rows"].as_array().unwrap();
    let of = |variant: &str| rows.iter().rfind(|row| row["variant"] == variant).unwrap();
    let (new, short) = (of("v6.12"), of("v6.12 +SIS_SHORT"));
    assert_eq!(new["base"], "v6.2");
    assert_ne!(new["baseline"]["mean"], new["candidate"]["mean"]);
    // The candidate is what that kernel is as a baseline.
    let mut alone = compare(&[], &["--json"]);
    let base = alone.iter().position(|arg| *arg == "v6.2").unwrap();
    alone[base] = "v6.12";
    assert_eq!(json(&alone)["rows"][1]["baseline"], new["candidate"]);
    assert_eq!(short["baseline"], new["baseline"]);
    assert!(new["track_record"]["rows"].as_u64().unwrap() >= 10);
    assert!(json(&alone)["rows"][1]["track_record"].is_null());
    assert!(stdout(&compare(&["v6.12"], &[])).contains("v6.12 against v6.2"));
}

#[test]
fn a_study_may_have_a_kernel_as_its_variant() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kernels.toml");
    let text = "name = \"kernels\"\nabout = \"a\"\nmachine = \"quad-1s4c\"\nbase = \"v6.2\"\n\
                variants = [\"v6.12\", \"v7.2 -WA_IDLE\"]\nwarmup = \"1ms\"\nduration = \"2ms\"\n\
                [[case]]\nname = \"pairs\"\nworkload = \"context_switch1\"\nloads = [4]\n";
    fs::write(&path, text).unwrap();
    let result = json(&["study", path.to_str().unwrap(), "--json", "--repeats", "1"]);
    assert_eq!(result["rows"][0]["variant"], "v6.12");
    assert_eq!(result["rows"][1]["variant"], "v7.2 -WA_IDLE");
}

#[test]
fn kernels_that_are_no_variant_and_contradicting_edits_are_refused() {
    let alone = [
        "v6.2",
        "v6.4",
        "v6.112",
        "+SIS_SHORT,-SIS_SHORT",
        "-WA_IDLE +WA_IDLE",
        "+SIS_SHORT,+SIS_SHORT",
        "v6.12 +SIS_SHORT -SIS_SHORT",
    ];
    let cases = alone.map(|variant| compare(&[variant], &[])).into_iter();
    insta::assert_snapshot!(refusals(cases.chain([
        compare(&["v6.12", "v6.12"], &[]),
        words("compare --on host --workload context_switch1 --load 1 --with v4.5"),
    ])));
}

#[test]
fn without_a_variant_the_baseline_stands_alone() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html");
    let text = stdout(&compare(&[], &["--html", page.to_str().unwrap()]));
    let page = fs::read_to_string(page).unwrap();
    for (view, marks) in
        [(&text, ["baseline", "v6.2"]), (&page, ["<th scope=\"col\">baseline", "v6.2"])]
    {
        assert!(marks.iter().all(|mark| view.contains(mark)), "{view}");
    }
    for word in ["candidate", "change", "->", "better", "Welch"] {
        assert!(!text.contains(word), "{word} in {text}");
    }
    for word in
        ["<th scope=\"col\">candidate", "<th scope=\"col\">change", " → ", "Positive changes"]
    {
        assert!(!page.contains(word), "{word} on the page");
    }
    let measured = stdout(&words(
        "compare --on host --workload context_switch1 --load 1 --repeats 1 --warmup 0ms \
         --duration 5ms",
    ));
    assert!(measured.contains("baseline") && !measured.contains("candidate"), "{measured}");
    let result = json(&compare(&[], &["--json"]));
    let row = &result["rows"][0];
    assert_eq!(row["variant"], "");
    assert_eq!(row["candidate"], row["baseline"]);
    // Equal to the figures beside a variant.
    let compared = json(&compare(&["+SIS_SHORT"], &["--json"]));
    assert_eq!(compared["rows"][0]["baseline"], row["baseline"]);
}
