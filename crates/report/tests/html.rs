//! The page: closed in itself, safe with any name, readable without scripts.

mod common;

use reveille_report::Made;
use reveille_study::{Comparison, Direction};

fn html(cs: &[Comparison]) -> String {
    let command = "reveille study '<sis>'".to_owned();
    reveille_report::html(cs, &Made { command, date: "2026-03-01 12:00:00 UTC".to_owned() })
}

/// Every place that could make a browser fetch something.
const FETCHES: [&str; 9] = [
    " src=",
    "href=\"h",
    "href=\"/",
    "url(",
    "@import",
    "fetch(",
    "XMLHttpRequest",
    "<link",
    "<iframe",
];

#[test]
fn fetches_nothing() {
    let page = html(&[common::sample()]);
    let namespace = "http://www.w3.org/2000/svg";
    let rest = page.replace(namespace, "");
    assert!(!rest.contains("http://") && !rest.contains("https://"));
    for fetch in FETCHES {
        assert!(!page.contains(fetch), "{fetch}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn hostile_names_stay_text() {
    let page = html(&[common::hostile()]);
    assert!(!page.contains("<img"));
    // The data block and the script.
    assert_eq!(page.matches("</script>").count(), 2);
    // A name that looks like a placeholder is not filled in.
    assert!(page.contains("{{body}}"));
    assert!(page.contains("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;"));
}

#[test]
fn the_data_block_is_json_with_every_run() {
    let page = html(&[common::sample()]);
    let start = page.find("id=\"data\">").unwrap() + "id=\"data\">".len();
    let end = start + page[start..].find("</script>").unwrap();
    assert!(!page[start..end].contains('<'));
    let data: serde_json::Value = serde_json::from_str(&page[start..end]).unwrap();
    let cases = data["comparisons"][0]["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 2);
    for case in cases {
        let runs = case["runs"].as_array().unwrap();
        assert_eq!(runs.len(), 16);
        // Variants share the baseline of their load.
        assert_eq!(runs[0]["base"], runs[1]["base"]);
    }
    assert_eq!(cases[1]["curves"].as_array().unwrap().len(), 2);
    for side in data["sides"].as_array().unwrap() {
        assert!(side["cdf"].as_array().unwrap().len() <= 120);
        assert_eq!(side["busy"].as_array().unwrap().len(), common::CPUS);
    }
}

#[test]
fn published_values_follow_the_direction_of_the_metric() {
    let mut c = common::sample();
    c.rows.truncate(1);
    let row = &mut c.rows[0];
    row.baseline.mean = 200.0;
    row.published_change_pct = Some(25.0);
    row.metric.direction = Direction::Lower;
    // A time that is 25% better is four fifths of what it was.
    assert!(html(&[c.clone()]).contains("\"implied\":160.0"));
    c.rows[0].metric.direction = Direction::Higher;
    assert!(html(&[c]).contains("\"implied\":250.0"));
}

#[test]
fn is_small_enough_to_mail() {
    let size = html(&[common::sample()]).len();
    assert!(size < 1_500_000, "{size} bytes");
}

#[test]
fn has_all_figures_without_scripts() {
    let c = common::sample();
    let page = html(std::slice::from_ref(&c));
    assert!(page.contains("<noscript>"));
    assert!(page.contains("MISS"));
    assert_eq!(page.matches("<tr><th scope=\"row\">").count(), c.rows.len());
    // Explained once for each case and variant.
    assert_eq!(page.matches("<details>").count(), 4);
}

#[test]
fn says_how_it_was_made() {
    let page = html(&[common::sample()]);
    let version = env!("CARGO_PKG_VERSION");
    for text in [
        format!("Made by reveille {version} on 2026-03-01 12:00:00 UTC"),
        "<code>reveille study &#39;&lt;sis&gt;&#39;</code>".to_owned(),
        "<dt>Seed</dt><dd>1</dd>".to_owned(),
        "<dt>Repeats</dt><dd>5</dd>".to_owned(),
    ] {
        assert!(page.contains(&text), "{text}");
    }
}

#[test]
fn says_that_a_result_is_partial() {
    let mut c = common::sample();
    assert!(!html(&[c.clone()]).contains("Partial result."));
    c.partial = true;
    assert!(html(&[c]).contains("Partial result."));
}

#[test]
fn several_studies_share_a_page() {
    let mut empty = common::sample();
    empty.study = "empty".into();
    empty.rows.clear();
    let page = html(&[common::sample(), empty]);
    assert!(page.contains("<title>Reveille: 2 studies</title>"));
    assert!(page.contains("href=\"#study1\"") && page.contains("id=\"study1\""));
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    assert_eq!(html(&[common::sample()]), html(&[common::sample()]));
}

#[test]
fn shows_figures_of_every_kind() {
    let page = html(&[common::kinds()]);
    for text in ["34.757 -&gt; 30.7527s", "variant 83.39%", "base 6 of 10", "v5.13 on small"] {
        assert!(page.contains(text), "no {text}");
    }
    assert!(page.contains("Published, but not predicted"));
    // A spread at one load is no curve.
    assert!(!page.contains("\"metric\":\"std of"));
}
