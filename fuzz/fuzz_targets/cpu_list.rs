//! Any text as a CPU list, such as `0-3,8`. Both answers can be read.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match reveille_machine::parse_cpu_list(text) {
        Ok(cpus) => assert!(cpus.windows(2).all(|w| w[0] < w[1]), "{cpus:?}"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
