//! Variants that load a sched_ext scheduler: predicted as the policy that they have, and
//! refused where none can be loaded. Loading itself is tested in tests/vm.

use std::path::Path;

use serde_json::Value;

use super::{json, refusals, refused, small_of as with};

#[test]
fn a_prediction_is_that_of_the_policy() {
    let result = json(&with(&["+SIS_SHORT", "scx:+SIS_SHORT", "scx:v6.4"], &["--json"]));
    let rows = result["rows"].as_array().unwrap();
    let of = |variant: &str| -> Vec<&Value> {
        rows.iter().filter(|r| r["variant"] == variant).map(|r| &r["candidate"]).collect()
    };
    assert_eq!(of("+SIS_SHORT").len(), 2);
    assert_eq!(of("+SIS_SHORT"), of("scx:+SIS_SHORT"));
    assert!(!of("scx:v6.4").is_empty());
    // The whole comparison under scx_reveille: variants have the scheduler of the base.
    let mut args = with(&["+SIS_SHORT"], &["--json"]);
    let base = args.iter().position(|a| *a == "v6.2").unwrap();
    args[base] = "scx:v6.2";
    let loaded = json(&args);
    assert_eq!(loaded["base"], "scx:v6.2");
    let same: Vec<&Value> =
        loaded["rows"].as_array().unwrap().iter().map(|r| &r["candidate"]).collect();
    assert_eq!(same, of("scx:+SIS_SHORT"));
}

#[test]
fn what_means_nothing_to_a_scheduler_is_refused_everywhere() {
    let alone = [
        "scx:-TTWU_QUEUE",
        "scx:+SIS_SHROT",
        "scx:v6.3",
        "scx:SIS_SHORT",
        "scx:scx_bpfland,+SIS_SHORT",
        "scx:scx_reveille",
        "scx:scx_../sh",
        "scx:scx_bpfland",
    ];
    let based = ["scx:", "scx:scx_lavd", "scx:v6.4 -TTWU_QUEUE", "scx:v6.2"].map(|base| {
        let mut args = with(&["scx:"], &[]);
        let at = args.iter().position(|arg| *arg == "v6.2").unwrap();
        args[at] = base;
        args
    });
    let cases = alone.map(|variant| with(&[variant], &[])).into_iter().chain(based);
    insta::assert_snapshot!(refusals(cases.chain([with(&["scx:", "scx:v6.2"], &[])])));
}

#[test]
fn a_host_that_cannot_load_it_refuses_at_once() {
    let pair = ["compare", "--workload", "context_switch1", "--load", "1", "--repeats", "1"];
    let reason = if !Path::new("/sys/kernel/sched_ext").exists() {
        "has no sched_ext: /sys/kernel/sched_ext is missing"
    } else if !rustix::process::geteuid().is_root() {
        "only root may load scx_reveille"
    } else {
        "SCX_REVEILLE=/dev/null is no program"
    };
    for more in [
        ["--on", "host", "--with", "scx:+SIS_SHORT"],
        ["--on", "sim,host", "--with", "scx:default,+SIS_SHORT"],
        ["--on", "host", "--with", "scx:v6.2,+SWQUEUE,cpus=0"],
    ] {
        let args: Vec<&str> = pair.into_iter().chain(more).collect();
        let name = more[3].replace(',', " ");
        refused(&args, &["case `context_switch1`", &name, "this host", reason]);
    }
    let base = ["--on", "host", "--base", "scx:v6.2", "--with", "+SIS_SHORT"];
    refused(&[&pair[..], &base[..]].concat(), &["`scx:v6.2` cannot be run on this host", reason]);
    // Where nothing is known of a scheduler there is nothing to hold a measurement against.
    let other = ["--on", "sim,host", "--with", "scx:scx_bpfland"];
    refused(&[&pair[..], &other[..]].concat(), &["cannot be predicted", "--on host"]);
}

#[test]
fn a_study_file_has_the_same_variants() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("loaded.toml");
    let text = "name = \"loaded\"\nabout = \"a scheduler of its own\"\nmachine = \"quad-1s4c\"\n\
                base = \"scx:v6.2\"\nvariants = [\"scx:v6.4 +SWQUEUE\"]\nrepeats = 1\n\
                [[case]]\nname = \"pairs\"\nworkload = \"context_switch1\"\nloads = [2]\n";
    std::fs::write(&path, text).unwrap();
    let result = json(&["study", path.to_str().unwrap(), "--json"]);
    assert_eq!(result["rows"][0]["variant"], "scx:v6.4 +SWQUEUE");
    assert_eq!(result["rows"][0]["base"], "scx:v6.2");
    std::fs::write(&path, text.replace("+SWQUEUE", "+EEVDF")).unwrap();
    refused(&["study", path.to_str().unwrap()], &["loaded.toml:5", "EEVDF means nothing"]);
}
