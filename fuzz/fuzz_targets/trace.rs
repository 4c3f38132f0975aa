//! Any text as a trace of the scheduler. One that is accepted can be built, and small ones run.
#![no_main]

use libfuzzer_sys::fuzz_target;
use reveille_workload::Workload;

fuzz_target!(|text: &str| {
    match Workload::parse_trace("fuzz.txt", text.to_owned()) {
        Ok(workload) => reveille_fuzz::check_workload(&workload),
        Err(error) => reveille_fuzz::show(&error),
    }
});
