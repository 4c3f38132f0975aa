//! Any text as a machine file.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match reveille_machine::parse_toml("fuzz.toml", text) {
        Ok(machine) => reveille_fuzz::check_machine(&machine),
        Err(error) => reveille_fuzz::show(&error),
    }
});
