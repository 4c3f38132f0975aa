//! Predicted beside measured: modes in place of means, every view the same figures, and
//! nothing from a name that a terminal or a browser would obey.

use reveille_measure::{HostContext, LoadedScheduler};
use reveille_report::{Made, VERSION, agreement_csv, agreement_table, json_text};
use reveille_study::verdict::measured::{Rule, Runs};
use reveille_study::{
    Agreement, AgreementKind, AgreementRow, Direction, Metric, Score, Spread, Verdict,
};

fn agreement_html(a: &Agreement) -> String {
    let made = Made { command: "reveille study".into(), date: "2026-03-01".into() };
    reveille_report::agreement_html(a, &made)
}

fn row(metric: &str, predicted: &[f64], measured: &[f64]) -> AgreementRow {
    AgreementRow {
        case: "context_switch1".into(),
        load: 1,
        variant: None,
        metric: Metric::read(metric, Direction::Higher),
        kind: AgreementKind::Value,
        predicted: Spread::of(predicted),
        measured: Spread::of(measured),
        ratio: Some(1.07),
        bound: None,
        predicted_runs: None,
        measured_runs: None,
        predicted_change_pct: None,
        measured_change_pct: None,
        rule: Rule::Factor,
        verdict: Verdict::Hit,
        reason: "medians differ by a factor of 1.07".into(),
    }
}

/// One row of each kind, and one with two modes.
fn sample() -> Agreement {
    let one = row("throughput (operations/s)", &[4.1e5, 4.2e5], &[3.9e5, 3.8e5, 4.0e5]);
    let two = AgreementRow {
        load: 2,
        ratio: None,
        rule: Rule::Modes,
        verdict: Verdict::Miss,
        reason: "the measured mode of 40% of repeats has no predicted one near".into(),
        ..row("throughput (operations/s)", &[4.1e5], &[4900.0, 5000.0, 4950.0, 3.3e4, 3.4e4])
    };
    let runs = AgreementRow {
        kind: AgreementKind::Runs,
        case: "burst".into(),
        metric: Metric::new("runs with p99 request latency above 10ms", "runs", Direction::Lower),
        predicted_runs: Some(Runs { above: 12, of: 20 }),
        measured_runs: Some(Runs { above: 2, of: 3 }),
        bound: Some(1e7),
        ratio: None,
        ..row("", &[2e7], &[2.1e7])
    };
    let change = AgreementRow {
        kind: AgreementKind::Change,
        variant: Some("cpus=0".into()),
        metric: Metric::new("change of throughput", "operations/s", Direction::Higher),
        predicted_change_pct: Some(12.34),
        measured_change_pct: None,
        ratio: None,
        verdict: Verdict::Informative,
        ..row("", &[1.0], &[f64::NAN])
    };
    Agreement {
        study: "host-check".into(),
        machine: "host".into(),
        topology: "1 socket x 2 cores x 1 thread = 2 CPUs, 1 LLC of 2 CPUs".into(),
        cost_model: "generic-x86".into(),
        machine_source: "sysfs".into(),
        base: "v6.12".into(),
        seed: 1,
        host: HostContext {
            kernel: "6.18.1".into(),
            cpu: "Some CPU".into(),
            cpus: 2,
            governor: Some("powersave".into()),
            virtualisation: Some("KVM".into()),
            sched_ext: None,
            loaded: vec![LoadedScheduler {
                name: "reveille".into(),
                command: "scx_reveille --base v6.2".into(),
            }],
            warnings: vec!["the hypervisor stole 3.0% of the CPU time".into()],
        },
        rows: vec![one, two, runs, change],
        score: Score { hits: 2, counted: 3 },
        partial: false,
    }
}

#[test]
fn modes_are_shown_in_every_view_and_no_mean_of_them() {
    insta::assert_snapshot!("table", agreement_table(&sample(), 100, true));
    insta::assert_snapshot!("csv", agreement_csv(&sample()).unwrap());
    insta::assert_snapshot!("json", json_text(&sample()).replace(VERSION, "VERSION"));
    assert!(!agreement_table(&sample(), 100, false).contains("MISS at"));
}

#[test]
fn it_fits_the_width_that_it_is_given() {
    for width in [60, 80, 100, 140] {
        let text = agreement_table(&sample(), width, true);
        let widest = text.lines().map(|l| l.chars().count()).max().unwrap();
        assert!(widest <= width, "{widest} of {width}:\n{text}");
    }
}

#[test]
fn the_page_shows_every_repeat_and_says_when_it_is_partial() {
    let page = agreement_html(&sample());
    assert_eq!(page.matches("<circle").count(), 2 + 3 + 1 + 5);
    assert!(page.contains("stole 3.0%") && !page.contains("Partial result"));
    assert!(page.ends_with("</html>\n") && !page.contains("<script"));
    let partial = Agreement { partial: true, ..sample() };
    assert!(agreement_html(&partial).contains("Partial result"));
    assert!(agreement_table(&partial, 80, true).matches("PARTIAL").count() == 2);
    let none = Agreement { rows: Vec::new(), score: Score::default(), ..sample() };
    assert!(agreement_table(&none, 80, true).contains("nothing to compare"));
}

#[test]
fn names_are_text_and_nothing_else() {
    const EVIL: &str = "</td><script>alert(1)</script>\u{1b}[2J&{{body}}";
    let mut a = sample();
    (a.study, a.machine, a.host.cpu) = (EVIL.into(), EVIL.into(), EVIL.into());
    a.host.warnings.push(EVIL.into());
    for row in &mut a.rows {
        row.case = EVIL.into();
        row.variant = Some(EVIL.into());
        row.metric = Metric::new(EVIL, "operations/s", Direction::Higher);
        row.reason = EVIL.into();
    }
    assert!(!agreement_html(&a).contains("<script"));
    let text = agreement_table(&a, 100, true);
    assert!(!text.contains('\u{1b}'), "{text}");
    assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
}
