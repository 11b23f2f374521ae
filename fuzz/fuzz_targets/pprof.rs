//! Fuzzes the pprof reader. All indices of accepted profiles are valid.

#![no_main]

use laggard_formats::read::pprof;
use libfuzzer_sys::fuzz_target;

mod stacks;

fuzz_target!(|text: &[u8]| {
    let _ = pprof::is_pprof(text);
    if let Ok(profile) = pprof::read(stacks::source(text), &|_| ()) {
        stacks::check(&profile);
    }
});
