//! Fuzzes the `perf script` reader. All indices of accepted profiles are valid.

#![no_main]

use laggard_formats::read::perf_script;
use libfuzzer_sys::fuzz_target;

mod stacks;

fuzz_target!(|text: &[u8]| {
    let _ = perf_script::is_perf_script(text);
    if let Ok(profile) = perf_script::read(stacks::source(text), &|_| ()) {
        stacks::check(&profile);
    }
});
