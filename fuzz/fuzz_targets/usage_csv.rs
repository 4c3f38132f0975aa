//! Any bytes as a table of requests.
#![no_main]

use libfuzzer_sys::fuzz_target;
use reveille_usage::{CsvOptions, Usage};

fuzz_target!(|bytes: &[u8]| {
    match Usage::from_csv("fuzz.csv", "fuzz", bytes, CsvOptions::default()) {
        Ok(usage) => reveille_fuzz::check_usage(&usage),
        Err(error) => reveille_fuzz::show(&error),
    }
});
