//! Any bytes as collapsed stacks: they are read or refused, and what is read points somewhere.

#![no_main]

use laggard_formats::read::collapsed;
use libfuzzer_sys::fuzz_target;

mod stacks;

fuzz_target!(|text: &[u8]| {
    let _ = collapsed::is_collapsed(text);
    if let Ok(profile) = collapsed::read(stacks::source(text), &|_| ()) {
        stacks::check(&profile);
    }
});
