//! What a host is told of a side that begins with `scx:`: the scheduler to load, and nothing
//! to switch in the kernel's own.

mod notes;

use std::sync::atomic::AtomicBool;

use notes::{Notes, Told};
use reveille_study::{StudyError, measure, parse, run};

/// The command that loads each side's scheduler, and what is switched in the kernel's own.
fn told(base: &str, variants: &str) -> Vec<String> {
    let text = format!(
        "name = \"told\"\nabout = \"sides\"\nmachine = \"quad-1s4c\"\nbase = \"{base}\"\n\
         variants = {variants}\non = \"host\"\n\
         [[case]]\nname = \"pairs\"\nworkload = \"context_switch1\"\nloads = [1]\n"
    );
    let study = parse("told.toml", &text).unwrap_or_else(|e| panic!("{e:?}"));
    let notes = Notes::default();
    measure(&study, &notes, &AtomicBool::new(false), &|_, _| {}).unwrap();
    let side = |(loader, switches): Told| match loader {
        Some(loader) => {
            assert!(switches.is_empty(), "{switches:?}");
            loader.command()
        }
        None => format!("{switches:?}"),
    };
    notes.told().into_iter().map(side).collect()
}

#[test]
fn edits_are_made_to_the_base_of_the_comparison_or_the_one_named() {
    let sides = told(
        "v5.13",
        r#"["scx:+SIS_SHORT", "scx:", "scx:default", "scx:v4.5,+SIS_FIRST cpus=0", "scx:scx_bpfland",
            "-WA_IDLE"]"#,
    );
    let wanted = [
        "[]",
        "scx_reveille --base v5.13 --with +SIS_SHORT",
        "scx_reveille --base v5.13",
        "scx_reveille --base v7.2",
        "scx_reveille --base v4.5 --with +SIS_FIRST",
        "scx_bpfland",
        r#"[("WA_IDLE", false)]"#,
    ];
    assert_eq!(sides, wanted);
}

#[test]
fn variants_have_the_scheduler_and_the_edits_of_their_base() {
    let sides = told("scx:v6.2 -WA_IDLE", r#"["+SIS_SHORT", "cpus=0", "scx:v6.4"]"#);
    let wanted = [
        "scx_reveille --base v6.2 --with -WA_IDLE",
        "scx_reveille --base v6.2 --with -WA_IDLE,+SIS_SHORT",
        "scx_reveille --base v6.2 --with -WA_IDLE",
        "scx_reveille --base v6.4",
    ];
    let sorted = |command: &str| {
        let mut words: Vec<String> = command.split([' ', ',']).map(str::to_owned).collect();
        words.sort();
        words
    };
    let (sides, wanted): (Vec<_>, Vec<_>) =
        (sides.iter().map(|s| sorted(s)).collect(), wanted.iter().map(|s| sorted(s)).collect());
    assert_eq!(sides, wanted);
}

#[test]
fn another_scheduler_is_measured_and_not_predicted() {
    let text = "name = \"other\"\nabout = \"sides\"\nmachine = \"quad-1s4c\"\nbase = \"v6.2\"\n\
                variants = [\"scx:scx_lavd\"]\n\
                [[case]]\nname = \"pairs\"\nworkload = \"context_switch1\"\nloads = [1]\n";
    let study = parse("other.toml", text).unwrap();
    let error = run(&study, 1, &AtomicBool::new(false), &|_, _| {}).unwrap_err();
    assert!(
        matches!(&error, StudyError::Unpredictable { scheduler, .. } if scheduler == "scx_lavd")
    );
    assert!(error.is_input());
    measure(&study, &Notes::default(), &AtomicBool::new(false), &|_, _| {}).unwrap();
}
