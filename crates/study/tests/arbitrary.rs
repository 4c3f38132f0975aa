//! Whatever stands in a study file, reading it ends in a study or in an error
//! that can be shown.

use miette::{Diagnostic, GraphicalReportHandler};
use proptest::prelude::*;
use reveille_study::{find, load, parse};

/// Reads `text`; an error must be printable, its marks lie in the text.
fn read(text: &str) {
    if let Err(error) = parse("any.toml", text) {
        let mut shown = String::new();
        GraphicalReportHandler::new().render_report(&mut shown, &error).unwrap();
        assert!(error.help().is_some(), "{error}");
    }
}

/// What a mistake in a study is made of.
fn token() -> impl Strategy<Value = String> {
    let words = [
        "",
        "0",
        "-1",
        "1",
        "nan",
        "inf",
        "-0.0",
        "1e999",
        "9223372036854775807",
        "\"\"",
        "\"é\"",
        "[]",
        "{}",
        "[[case]]",
        "[claim]",
        "=",
        "\n",
        "\"",
        "'",
        "'''",
        "#",
        ",",
        "\"30ms\"",
        "\"99999999999999999999s\"",
        "true",
        "1979-05-27",
        "é",
        "\u{0}",
        "host",
        "spr-2s56c",
    ];
    prop_oneof![prop::sample::select(words.to_vec()).prop_map(str::to_owned), ".{0,8}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_text(text in any::<String>()) {
        read(&text);
    }

    #[test]
    fn any_bytes_in_a_file(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("any.toml");
        std::fs::write(&path, bytes).unwrap();
        let _ = load(path.to_str().unwrap());
    }

    #[test]
    fn a_study_with_something_replaced(at in 0.0..1.0f64, length in 0usize..40, with in token()) {
        let mut text: Vec<char> = find("sis-short").unwrap().chars().collect();
        let start = (at * text.len() as f64) as usize;
        let end = (start + length).min(text.len());
        text.splice(start..end, with.chars());
        read(&text.into_iter().collect::<String>());
    }

    #[test]
    fn a_value_of_a_study_replaced(line in any::<prop::sample::Index>(), with in token()) {
        let text = find("sis-short").unwrap();
        let keys: Vec<usize> =
            (0..text.lines().count()).filter(|&i| text.lines().nth(i).unwrap().contains(" = ")).collect();
        let chosen = keys[line.index(keys.len())];
        let edited = text.lines().enumerate().map(|(i, l)| match l.split_once(" = ") {
            Some((key, _)) if i == chosen => format!("{key} = {with}\n"),
            _ => format!("{l}\n"),
        });
        read(&edited.collect::<String>());
    }
}
