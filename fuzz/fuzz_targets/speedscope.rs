//! Fuzzes the speedscope reader. All indices of accepted profiles are valid.

#![no_main]

use laggard_formats::read::speedscope;
use libfuzzer_sys::fuzz_target;

mod stacks;

fuzz_target!(|text: &[u8]| {
    let _ = speedscope::is_speedscope(text);
    if let Ok(profile) = speedscope::read(stacks::source(text), &|_| ()) {
        stacks::check(&profile);
    }
});
