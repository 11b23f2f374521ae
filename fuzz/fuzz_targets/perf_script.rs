//! Any bytes as what perf script prints: they are read or refused, and what is read points somewhere.

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
