//! What there is: a line each, or one in full.

use super::{json, stdout, words};

#[test]
fn each_list_has_a_line_per_name() {
    for (list, names) in [
        ("studies", reveille_study::names()),
        ("machines", reveille_machine::preset_names()),
        ("workloads", reveille_workload::names().collect()),
    ] {
        let text = stdout(&[list]);
        for name in &names {
            let lines = text.lines().filter(|l| l.split(' ').next() == Some(name)).count();
            assert_eq!(lines, 1, "{list}: {name} in {text}");
        }
        let result = json(&[list, "--json"]);
        let listed = result[list].as_array().unwrap();
        assert_eq!(listed.len(), names.len());
        for (item, name) in listed.iter().zip(names) {
            assert_eq!(item["name"], name);
            assert!(!item["about"].as_str().unwrap().is_empty());
        }
    }
}

#[test]
fn policies_are_baselines_and_features() {
    let text = stdout(&["policies"]);
    let result = json(&["policies", "--json"]);
    for baseline in reveille_policy::BASELINES {
        assert!(text.contains(baseline.name));
        let one = json(&["policies", baseline.name, "--json"]);
        assert_eq!(one["baseline"]["name"], baseline.name);
        assert!(one["baseline"]["features"][0]["source"].is_string());
        assert!(stdout(&["policies", baseline.name]).contains("features"));
    }
    assert_eq!(result["features"].as_array().unwrap().len(), reveille_policy::FEATURES.len());
    for feature in reveille_policy::FEATURES {
        assert!(text.contains(feature.about));
        assert!(stdout(&["policies", feature.name]).contains(feature.name));
        assert_eq!(json(&["policies", feature.name, "--json"])["feature"]["about"], feature.about);
    }
}

#[test]
fn every_machine_is_shown_with_the_evidence_of_its_constants() {
    for name in reveille_machine::preset_names() {
        let machine = reveille_machine::load(name).unwrap();
        let text = stdout(&["machines", name]);
        assert!(text.lines().all(|l| l.chars().count() <= 100), "{name} is too wide");
        let result = json(&["machines", name, "--json"]);
        let shown = &result["machine"];
        assert_eq!(shown["topology"]["cpus"], machine.topology.n_cpus());
        assert_eq!(shown["idle"].as_array().unwrap().len(), machine.idle.len());
        for (constant, item) in machine.constants.iter().zip(shown["constants"].as_array().unwrap())
        {
            assert!(text.contains(&format!("  {} = ", constant.key)));
            assert_eq!(item["key"], constant.key);
            assert_eq!(item["value"], constant.value);
            assert_eq!(item["inherited"], constant.inherited);
            assert_eq!(item["origin"]["kind"], constant.origin.kind());
        }
    }
}

#[test]
fn every_workload_is_shown_with_its_file() {
    for name in reveille_workload::names() {
        let workload = reveille_workload::load(name).unwrap();
        let text = stdout(&["workloads", name]);
        for param in &workload.params {
            assert!(text.contains(&format!("  {} = {}", param.name, param.default)));
        }
        let result = json(&["workloads", name, "--json"]);
        assert_eq!(result["workload"]["file"], workload.source_text());
        assert_eq!(result["workload"]["metrics"][0]["name"], workload.metrics[0].name);
    }
}

#[test]
fn a_study_is_shown_with_its_published_figures() {
    let text = stdout(&["studies", "sis-short"]);
    assert!(text.contains("load 224, +SIS_SHORT: +665.38% (std 2.52% and 3.38%)"), "{text}");
    let result = json(&["studies", "sis-short", "--json"]);
    let cases = result["study"]["cases"].as_array().unwrap();
    let published: usize = cases.iter().map(|c| c["published"].as_array().unwrap().len()).sum();
    assert_eq!(published, 48);
    assert_eq!(result["study"]["peaks"][0]["load"], 112);
    let fluid = stdout(&["studies", "interference"]);
    assert!(fluid.contains("\ninterference exponential"), "{fluid}");
    assert!(fluid.contains(" on 1 CPU\n"), "{fluid}");
}

#[test]
fn this_host_can_be_shown_and_simulated() {
    let result = json(&["machines", "host", "--json"]);
    assert!(result["machine"]["topology"]["cpus"].as_u64().unwrap() >= 1);
    let run = json(&words(
        "compare --machine host --workload context_switch1 --load 1 --base v6.2 \
         --with +SIS_SHORT --repeats 1 --warmup 0ms --duration 1ms --json",
    ));
    assert!(run["rows"][0]["p_value"].is_null());
}
