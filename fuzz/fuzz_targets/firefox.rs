//! Any bytes as a profile of the Firefox Profiler: they are read or refused, and what is read points somewhere.

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
