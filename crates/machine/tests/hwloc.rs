//! hwloc exports: real ones from `lstopo`, and broken ones.

use proptest::prelude::*;
use reveille_machine::{Distance, FileError, InputError, Topology, parse_hwloc};

const TWO_SOCKETS: &str = include_str!("data/two-sockets-v2.xml");
const TWO_NODES_V1: &str = include_str!("data/two-nodes-v1.xml");
const LINUX: &str = include_str!("data/linux-2cpu-v2.xml");
const NO_CACHE: &str = include_str!("data/no-cache-v2.xml");

fn topology(text: &str) -> Topology {
    parse_hwloc("lab.xml", text).expect("a machine").topology
}

fn mistake(text: &str) -> FileError {
    match parse_hwloc("lab.xml", text) {
        Err(InputError::File(error)) => *error,
        other => panic!("{other:?}"),
    }
}

fn counts(t: &Topology) -> (usize, usize, usize, usize, usize) {
    (t.n_cpus(), t.n_cores(), t.n_llcs(), t.n_nodes(), t.n_sockets())
}

#[test]
fn reads_version_2() {
    let t = topology(TWO_SOCKETS);
    assert_eq!(counts(&t), (16, 8, 4, 1, 2));
    assert_eq!(t.core_cpus(0), [0, 1]);
    assert_eq!(t.distance(0, 4), Distance::Socket);
    assert_eq!(t.distance(0, 8), Distance::Remote);
    let m = parse_hwloc("some/lab.xml", TWO_SOCKETS).expect("a machine");
    assert_eq!((m.name.as_str(), m.hz), ("lab", 250));
    assert!(m.source.contains("some/lab.xml") && !m.idle.is_empty());
}

#[test]
fn reads_version_1() {
    let t = topology(TWO_NODES_V1);
    assert_eq!(counts(&t), (16, 8, 4, 2, 2));
    assert!(t.cpus().iter().all(|place| place.node == place.socket));
}

#[test]
fn reads_an_export_of_a_linux_host() {
    assert_eq!(counts(&topology(LINUX)), (2, 2, 1, 1, 1));
}

#[test]
fn without_caches_the_package_is_one() {
    let t = topology(NO_CACHE);
    assert_eq!(counts(&t), (12, 6, 2, 2, 2));
    assert_eq!(t.core_cpus(0), [0, 6]);
}

#[test]
fn leaves_out_cpus_that_are_offline_or_not_allowed() {
    let allowed =
        TWO_SOCKETS.replacen("allowed_cpuset=\"0x0000ffff\"", "allowed_cpuset=\"0x000000ff\"", 1);
    assert_eq!(counts(&topology(&allowed)), (8, 4, 2, 1, 1));
    let online = TWO_NODES_V1.replacen(
        "online_cpuset=\"0x0000ffff\"",
        "online_cpuset=\"0xf...f,0x0000fffe\"",
        1,
    );
    assert_eq!(topology(&online).n_cpus(), 15);
    let none = TWO_SOCKETS.replacen("cpuset=\"0x0000ffff\"", "cpuset=\"0x00000001,,0x0\"", 1);
    assert!(mistake(&none).to_string().contains("no PU that is online"));
}

#[test]
fn names_the_line_of_a_mistake() {
    let pu =
        TWO_SOCKETS.lines().position(|l| l.contains("type=\"PU\" os_index=\"1\"")).unwrap_or(0) + 1;
    let twice = mistake(&TWO_SOCKETS.replacen(
        "type=\"PU\" os_index=\"1\"",
        "type=\"PU\" os_index=\"0\"",
        1,
    ));
    assert_eq!((twice.line.unwrap() as usize, twice.key.as_deref()), (pu, Some("os_index")));
    let missing = mistake(&TWO_SOCKETS.replacen("type=\"PU\" os_index=\"1\"", "type=\"PU\"", 1));
    assert_eq!((missing.line.unwrap() as usize, missing.key.as_deref()), (pu, Some("os_index")));
    let minus = mistake(&TWO_SOCKETS.replacen(
        "type=\"PU\" os_index=\"1\"",
        "type=\"PU\" os_index=\"-1\"",
        1,
    ));
    assert!(minus.to_string().contains("`-1` is no CPU number"), "{minus}");
    let set = mistake(&TWO_SOCKETS.replacen("cpuset=\"0x0000ffff\"", "cpuset=\"many\"", 1));
    assert_eq!((set.line.unwrap() as usize, set.key.as_deref()), (4, Some("cpuset")));
}

#[test]
fn refuses_what_is_no_export() {
    for (text, says) in [
        ("", "lab.xml:1"),
        ("name = \"spr\"", "lab.xml:1"),
        ("<html><body/></html>", "begins with <html>"),
        ("<topology/>", "no PU object"),
        ("<topology>\n<object type=\"Machine\">\n</topology>", "lab.xml:3"),
    ] {
        let error = mistake(text);
        assert!(error.to_string().contains(says), "{error}");
        assert!(!error.help.is_empty());
    }
    let pus: String =
        (0..65_537).map(|i| format!("<object type=\"PU\" os_index=\"{i}\"/>\n")).collect();
    let error = mistake(&format!("<topology><object type=\"Machine\">{pus}</object></topology>"));
    assert!(error.to_string().contains("more than 65536 PUs"), "{error}");
}

proptest! {
    #[test]
    fn never_panics_on_text(text in "\\PC{0,200}") {
        let _ = parse_hwloc("lab.xml", &text);
    }

    #[test]
    fn never_panics_on_a_damaged_export(
        at in 0usize..4000, cut in 0usize..60, put in "[<>/\"&x0-9 \\PC]{0,6}",
    ) {
        let mut text = TWO_SOCKETS.to_owned();
        text.replace_range(at..at + cut, &put);
        let _ = parse_hwloc("lab.xml", &text);
    }

    #[test]
    fn never_panics_on_nested_objects(
        kinds in prop::collection::vec((0usize..8, 0u32..20, any::<bool>()), 0..40),
    ) {
        let names = ["Machine", "Package", "NUMANode", "L3Cache", "Cache", "Core", "PU", "MemCache"];
        let mut text = "<topology>".to_owned();
        let mut open = 0;
        for (kind, index, close) in kinds {
            text.push_str(&format!("<object type=\"{}\" os_index=\"{index}\">", names[kind]));
            open += 1;
            if close {
                text.push_str("</object>");
                open -= 1;
            }
        }
        text.push_str(&"</object>".repeat(open));
        text.push_str("</topology>");
        let _ = parse_hwloc("lab.xml", &text);
    }
}

/// What took time that grew with the square of the file is read once, or refused.
#[test]
fn a_long_line_takes_no_longer_than_many_short_ones() {
    let machine = |attributes: &str, inside: &str| {
        format!(r#"<topology><object type="Machine"{attributes}>{inside}</object></topology>"#)
    };
    let pu = |n: u32| format!(r#"<object type="PU" os_index="{n}"/>"#);
    let pus: String = (0..80_000).map(pu).collect();
    assert_eq!(mistake(&machine("", &pus)).problem, "more than 65536 PUs");
    let crowd: String = (0..300_000).map(|n| format!(r#" a{n}="""#)).collect();
    let error = mistake(&machine(&crowd, &pu(0)));
    assert_eq!(
        (error.line.unwrap() as usize, error.problem.as_str()),
        (1, "an element has more than 256 attributes")
    );
    let (open, close) = (r#"<object type="Group">"#.repeat(100), "</object>".repeat(100));
    let deep = machine("", &format!("{open}{}{close}", pu(0)));
    assert_eq!(mistake(&deep).problem, "a PU lies in more than 64 elements");
    // Quotes within quotes, and in comments, are no attributes.
    let quotes = format!(r#"<!-- it's "so" --><info name="x" value='{}'/>"#, "\"".repeat(300));
    assert_eq!(topology(&machine("", &(quotes + &pu(0)))).n_cpus(), 1);
}
