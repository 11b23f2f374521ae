//! Fuzzes the Firefox Profiler reader. All indices of accepted profiles are valid.

#![no_main]

use laggard_formats::read::firefox;
use libfuzzer_sys::fuzz_target;

mod stacks;

fuzz_target!(|text: &[u8]| {
    let _ = firefox::is_firefox(text);
    if let Ok(profile) = firefox::read(stacks::source(text), &|_| ()) {
        stacks::check(&profile);
    }
});
