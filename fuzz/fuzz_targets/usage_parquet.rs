//! Any bytes as a recording in Parquet.
#![no_main]

use libfuzzer_sys::fuzz_target;
use reveille_usage::Usage;

fuzz_target!(|bytes: &[u8]| {
    match Usage::from_parquet("fuzz.parquet", bytes.to_vec()) {
        Ok(usage) => reveille_fuzz::check_usage(&usage),
        Err(error) => reveille_fuzz::show(&error),
    }
});
