//! Fuzzes the perf.data reader. All indices of accepted profiles are valid.

#![no_main]

use laggard_formats::read::perf;
use libfuzzer_sys::fuzz_target;

mod stacks;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(profile) = perf::read(stacks::source(bytes), &|_| ()) {
        stacks::check(&profile);
    }
});
