//! Fuzzes the collapsed stack reader. All indices of accepted profiles are valid.

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
