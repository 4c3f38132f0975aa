//! The terminal table: it fits, and a reader finds what matters.

mod common;

use reveille_report::{Made, html, table};
use reveille_study::{Comparison, Row, Score, Skill, TrackRecord, Verdict};

fn widest(text: &str) -> usize {
    text.lines().map(|l| l.chars().count()).max().unwrap_or(0)
}

#[test]
fn fits_the_width_it_is_given() {
    for width in [60, 80, 100, 120, 200] {
        for explain in [false, true] {
            let text = table(&common::sample(), width, explain);
            assert!(widest(&text) <= width, "{} of {width} columns:\n{text}", widest(&text));
            let kinds = table(&common::kinds(), width, explain);
            assert!(widest(&kinds) <= width, "{} of {width}:\n{kinds}", widest(&kinds));
            let hostile = table(&common::hostile(), width, explain);
            assert!(widest(&hostile) <= width, "{} of {width}:\n{hostile}", widest(&hostile));
        }
    }
}

#[test]
fn rows_keep_to_one_line_at_80_columns() {
    let c = common::sample();
    let lines = table(&c, 80, false);
    let rows = lines
        .lines()
        .filter(|l| l.split_whitespace().next().is_some_and(|w| w.parse::<u64>().is_ok()));
    assert_eq!(rows.count(), c.rows.len());
}

#[test]
fn shows_sign_star_and_verdicts() {
    let mut c = common::sample();
    c.rows.truncate(4);
    let verdicts = [Some(Verdict::Hit), Some(Verdict::Miss), Some(Verdict::Informative), None];
    for (row, verdict) in c.rows.iter_mut().zip(verdicts) {
        row.variant = "+SIS_SHORT".into();
        row.change_pct = if verdict == Some(Verdict::Hit) { 12.34 } else { -5.0 };
        row.uncorrected_change_pct = row.change_pct;
        row.significant = verdict == Some(Verdict::Hit);
        row.verdict = verdict;
    }
    insta::assert_snapshot!("verdicts", table(&c, 100, false));
    c.rows[0].uncorrected_change_pct = 34.0;
    insta::assert_snapshot!("corrected", table(&c, 100, false));
}

#[test]
fn unpublished_changes_show_what_is_likely() {
    let mut c = common::sample();
    c.rows.truncate(3);
    let record = |misled| TrackRecord {
        rows: 40,
        hits: 10,
        null_hits: 15,
        low_pct: -12.4,
        high_pct: 153.0,
        misled,
    };
    for (row, misled) in c.rows.iter_mut().zip([Some(true), Some(false), None]) {
        row.variant = "+SIS_SHORT".into();
        row.verdict = None;
        row.track_record = misled.map(record);
    }
    insta::assert_snapshot!("likely", table(&c, 80, false));
    let (held, of) = TrackRecord::HELD;
    let doubt = format!("5% and more, ranges from other tables held {held} of {of}");
    for (change_pct, doubts) in [(4.9, false), (5.1, true), (-4.7, false), (-4.8, true)] {
        c.rows.iter_mut().for_each(|row| row.change_pct = change_pct);
        let made = Made { command: String::new(), date: String::new() };
        let page = html(std::slice::from_ref(&c), &made);
        let pages = [table(&c, 200, false).replace('\n', " "), page];
        assert!(
            pages.iter().all(|page| page.contains(&doubt) == doubts),
            "{change_pct}: {pages:?}"
        );
    }
    c.rows[0].verdict = Some(Verdict::Hit);
    let text = table(&c, 80, false);
    assert!(text.contains("verdict\n") && !text.contains("likely"), "{text}");
}

#[test]
fn a_score_stands_beside_that_of_no_change() {
    let mut c = common::sample();
    c.rows.truncate(1);
    c.score = Score { hits: 35, counted: 40 };
    let all = Skill { changes: 40, hits: 35, null_hits: 31, big: 6, ..Skill::default() };
    let all = Skill { big_sign: 4, big_hits: 3, small: 30, small_quiet: 28, ..all };
    let mut scores = String::new();
    for skill in [all, Skill { changes: 38, hits: 33, ..all }, Skill::default()] {
        c.skill = skill;
        for width in [80, 200] {
            let text = table(&c, width, false);
            scores += text.split_once("\nscore: ").unwrap().1;
        }
    }
    insta::assert_snapshot!("scores", scores);
}

#[test]
fn says_loudly_that_a_result_is_partial() {
    let mut c = common::sample();
    assert!(!table(&c, 100, true).contains("PARTIAL"));
    c.partial = true;
    assert_eq!(table(&c, 100, true).matches("PARTIAL RESULT").count(), 2);
}

#[test]
fn explains_every_run_once() {
    let text = table(&common::sample(), 100, true);
    // 2 cases × 2 variants, each in two tables of four loads; the second metric
    // of schbench looks at the same runs.
    assert_eq!(text.matches("at load").count(), 8, "{text}");
    assert!(!table(&common::sample(), 100, false).contains("at load"));
}

#[test]
fn what_was_not_observed_is_no_number() {
    let mut c = common::sample();
    for row in &mut c.rows {
        row.explain.baseline.wakeup_max_ns = f64::NAN;
        row.explain.baseline.cost_pct = f64::NAN;
        row.explain.candidate.cost_pct = f64::NAN;
    }
    let text = table(&c, 100, true);
    let lines = |label: &str| text.lines().filter(|line| line.contains(label)).collect::<Vec<_>>();
    assert!(!lines("wakeup max").is_empty());
    assert!(lines("wakeup max").iter().all(|line| line.contains("– ->")), "{text}");
    assert!(lines("scheduling cost").is_empty(), "neither side knows it:\n{text}");
    assert!(!text.contains("NaN"));
    // The second metric of schbench still looks at the same runs.
    assert_eq!(text.matches("at load").count(), 8, "{text}");
}

#[test]
fn holds_no_control_characters_or_odd_spaces() {
    let mut c = common::sample();
    c.study = "\x1b[31mred\u{7}".into();
    let text = table(&c, 100, true);
    assert!(text.chars().all(|ch| ch == '\n' || !ch.is_control()));
    assert!(!text.contains('\u{a0}'));
}

#[test]
fn figures_without_a_value_are_named_so() {
    let mut c = common::sample();
    c.rows.truncate(1);
    c.rows[0].change_pct = f64::NAN;
    c.rows[0].candidate.rel_std = f64::INFINITY;
    c.rows[0].p_value = None;
    c.rows[0].significant = false;
    let text = table(&c, 100, false);
    assert!(text.contains("n/a"), "{text}");
    assert!(!text.contains("NaN") && !text.contains("inf%"), "{text}");
}

#[test]
fn what_shows_no_change_has_no_star() {
    let mut c = common::sample();
    c.rows.truncate(1);
    let line = |c: &Comparison, change: f64| {
        let row = Row { change_pct: change, uncorrected_change_pct: change, ..c.rows[0].clone() };
        let row = Row { p_value: Some(0.001), significant: true, ..row };
        let c = Comparison { rows: vec![row], ..c.clone() };
        let text = table(&c, 100, false);
        text.lines().find(|line| line.contains('±')).unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    assert!(line(&c, 0.06).contains("+0.1%*"));
    assert!(line(&c, 0.04).contains("0.0% ") && !line(&c, 0.04).contains('*'));
    let none = line(&c, f64::INFINITY);
    assert!(none.contains("n/a ") && !none.contains('*'), "{none}");
}

#[test]
fn a_comparison_without_rows_is_no_error() {
    let mut c = common::sample();
    c.rows.clear();
    c.claims.clear();
    c.score = Default::default();
    assert!(table(&c, 80, true).contains("no published figures"));
}

#[test]
fn shows_figures_of_every_kind() {
    insta::assert_snapshot!("kinds", table(&common::kinds(), 100, false));
}
