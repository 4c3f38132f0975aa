//! JSON and CSV as a program reads them.

mod common;

use reveille_measure::Explain;
use reveille_report::{VERSION, csv, json_all, json_text, score_table};
use reveille_study::summary;

#[test]
fn json_has_the_keys_of_the_interface_and_null_where_there_is_no_number() {
    let mut c = common::sample();
    c.rows.truncate(2);
    (c.rows[1].change_pct, c.rows[1].p_value) = (f64::NAN, None);
    insta::assert_snapshot!("json", json_text(&c).replace(VERSION, "VERSION"));
}

#[test]
fn csv_reads_back() {
    let mut c = common::sample();
    c.rows[0].case = "a \"quoted\", case\nof two lines".into();
    c.rows[1].change_pct = f64::NAN;
    let text = csv(&[c.clone()]).unwrap();
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let names = reader.headers().unwrap().clone();
    assert_eq!(names.len(), 28 + 2 * Explain::FIGURES.len() + 6);
    let column = |name: &str| names.iter().position(|n| n == name).unwrap();
    let lines: Vec<_> = reader.records().map(Result::unwrap).collect();
    assert_eq!(lines.len(), c.rows.len());
    for (line, row) in lines.iter().zip(&c.rows) {
        assert_eq!(&line[column("case")], row.case);
        assert_eq!(line[column("load")].parse::<u64>().unwrap(), row.load);
        assert_eq!(line[column("candidate_mean")].parse::<f64>().unwrap(), row.candidate.mean);
        let p99 = &line[column("candidate_wakeup_p99_ns")];
        assert_eq!(p99.parse::<f64>().unwrap(), row.explain.candidate.wakeup_p99_ns);
        let published = &line[column("published_change_pct")];
        assert_eq!(published.parse::<f64>().ok(), row.published_change_pct);
    }
    assert_eq!(&lines[1][column("change_pct")], "");
    assert_eq!(&lines[0][column("partial")], "false");
}

#[test]
fn csv_without_rows_has_its_column_names() {
    let mut c = common::sample();
    c.rows.clear();
    assert!(csv(&[c.clone()]).unwrap().starts_with("study,machine,"));
}

#[test]
fn csv_has_every_kind_of_figure_and_its_own_machine() {
    insta::assert_snapshot!("csv", csv(&[common::kinds()]).unwrap());
}

#[test]
fn several_studies_have_one_score() {
    let (mut a, b, mut c) = (common::sample(), common::sample(), common::sample());
    a.study = "first".into();
    a.mechanism = None;
    c.study = "third".into();
    let (counted, a_skill) = (a.score.counted, a.skill);
    let all = [a, b, c];
    let summary = summary(&all);
    assert_eq!(summary.score.counted, 3 * counted);
    let names: Vec<&str> = summary.mechanisms.iter().map(|m| m.mechanism.as_str()).collect();
    assert_eq!(names, ["first", "SIS_SHORT"]);
    assert_eq!(summary.mechanisms[1].counted, 2 * counted);
    let value: serde_json::Value = serde_json::from_str(&json_all(&all, &summary)).unwrap();
    assert_eq!(value["studies"].as_array().unwrap().len(), 3);
    assert_eq!(value["score"]["counted"], 3 * counted);
    assert_eq!(value["mechanisms"][1]["studies"][1], "third");
    assert_eq!(value["skill"]["changes"], 3 * a_skill.changes);
    assert_eq!(value["mechanisms"][1]["skill"]["null_hits"], 2 * a_skill.null_hits);
    let text = score_table(&summary, 100);
    let line = |start: &str| text.lines().find(|l| l.trim_start().starts_with(start));
    let null = format!("{}/{}", 3 * a_skill.null_hits, 3 * a_skill.changes);
    assert!(line("all").is_some_and(|l| l.contains(&null)), "{text}");
    assert!(text.contains("sis-short-spr, third"), "{text}");
    for width in [60, 80, 100] {
        let text = score_table(&summary, width);
        assert!(width < 100 || text.contains("sis-short-spr"), "{text}");
        assert!(text.lines().all(|l| l.chars().count() <= width), "{text}");
    }
}
