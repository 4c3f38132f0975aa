//! Any text as a study. Nothing is run: a study is checked when it is read.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match reveille_study::parse("fuzz.toml", text) {
        Ok(study) => assert!(!study.cases.is_empty()),
        Err(error) => reveille_fuzz::show(&error),
    }
});
