//! Any bytes as a file of speedscope: they are read or refused, and what is read points somewhere.

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
