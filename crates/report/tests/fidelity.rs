//! The record of fidelity: complete, the same every time, and safe as Markdown.

mod common;

use reveille_report::{
    Made, csv, fidelity, fragility_table, html, json_text, read_fragility, table,
};
use reveille_study::{Comparison, FragileRow, Fragility, RowModes, RowPlace, Verdict, summary};

fn page(cs: &[Comparison]) -> String {
    fidelity(cs, &summary(cs), None)
}

#[test]
fn has_every_published_row_and_every_miss() {
    let c = common::sample();
    let text = page(std::slice::from_ref(&c));
    let with = |v: Verdict| c.rows.iter().filter(|r| r.verdict == Some(v)).count();
    assert!(with(Verdict::Miss) > 0 && with(Verdict::Informative) > 0);
    let lines = |end: &str| text.lines().filter(|l| l.ends_with(end)).count();
    assert_eq!(lines("| hit |"), with(Verdict::Hit));
    assert_eq!(lines("| MISS |"), with(Verdict::Miss));
    assert_eq!(lines("| info |"), with(Verdict::Informative));
    let misses = text.lines().filter(|l| l.starts_with("- ") && l.contains(", r̂/r ")).count();
    assert_eq!(misses, with(Verdict::Miss));
    assert!(text.contains("### Claims") && text.contains("### Published, but not predicted"));
}

#[test]
fn marks_fragile_rows_where_they_are_known() {
    let c = common::sample();
    let hit = c.rows.iter().find(|r| r.verdict == Some(Verdict::Hit)).unwrap();
    let miss = c.rows.iter().find(|r| r.verdict == Some(Verdict::Miss)).unwrap();
    let row = |row, turned| FragileRow {
        place: RowPlace::of(&c.study, row),
        verdict: Verdict::Hit,
        length: 1.0,
        turned,
    };
    let known = Fragility {
        studies: vec![c.study.clone()],
        constants: 40,
        draws: 12,
        runs: 100,
        rows: vec![row(hit, 3), row(miss, 2)],
        partial: false,
    };
    let read = read_fragility(&json_text(&known)).unwrap();
    let text = fidelity(std::slice::from_ref(&c), &summary(std::slice::from_ref(&c)), Some(&read));
    assert!(text.contains("| hit, fragile: turns in 3 of 12 draws |"), "{text}");
    assert!(text.contains("| MISS, fragile: one repeat |"), "{text}");
    assert!(text.contains("1 of 2 rows: 1 of 2 hits, 0 of 0 misses"), "{text}");
    let table = fragility_table(&known, 80);
    assert!(
        table.contains("turns in 3 of 12 draws") && table.lines().all(|l| l.chars().count() <= 80)
    );
    assert!(read_fragility("{}").is_err());
}

#[test]
fn states_are_shown_with_their_shares_and_never_as_a_mean() {
    let mut c = common::sample();
    c.rows.truncate(1);
    let row = &mut c.rows[0];
    row.verdict = Some(Verdict::Hit);
    row.published_change_pct = Some(300.0);
    row.ratio = None;
    row.modes = RowModes::of(row.metric.direction, &[1e6, 1e6], &[1e6, 4e6]);
    let made = Made { command: String::new(), date: String::new() };
    for text in [page(std::slice::from_ref(&c)), html(std::slice::from_ref(&c), &made)] {
        let text = text.replace("<br>", " ").replace("<span class=\"gap\">*</span>", "");
        for part in ["0.0% (50%)", "or +300.0% (50%)"] {
            assert!(text.contains(part), "no `{part}` in\n{text}");
        }
    }
    for width in [80, 100] {
        let text = table(&c, width, false);
        assert!(text.lines().all(|l| l.chars().count() <= width), "{text}");
        let lines: Vec<&str> = text.lines().filter(|l| l.contains("(50%)")).collect();
        assert!(lines.len() == 2 && lines[0].contains("1.00M/s (50%)"), "{text}");
        assert!(lines[1].trim_start().starts_with("or 4.00M/s (50%)"), "{text}");
        assert!(text.contains("repeats fall into several states"), "{text}");
    }
    let line = csv(&[c]).unwrap();
    assert!(line.contains(",1000000:0.5 4000000:0.5,0:0.5 300:0.5"), "{line}");
}

#[test]
fn shows_figures_of_every_kind() {
    insta::assert_snapshot!("kinds", page(&[common::kinds()]));
}

#[test]
fn tables_keep_their_columns_whatever_is_named() {
    let mut c = common::hostile();
    c.rows[0].case = "a | b\n| c".into();
    c.rows[0].verdict = Some(Verdict::Hit);
    let text = page(&[c]);
    assert!(!text.contains("<img"));
    let mut columns = 0;
    for line in text.lines().filter(|l| l.starts_with('|')) {
        let bars = line.replace("\\|", "").matches('|').count();
        if line.starts_with("|---") {
            assert_eq!(bars, columns, "{line}");
        }
        columns = if line.starts_with("|---") { columns } else { bars };
    }
}
