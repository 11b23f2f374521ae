//! Fuzzes the reader of run files (.lag). All indices of accepted profiles are valid.

#![no_main]

use laggard_formats::lag::{Run, read_run};
use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "run files are read from disk, so `source` is not used")]
mod stacks;

fuzz_target!(|bytes: &[u8]| {
    // Run files are memory-mapped, so the input must be on disk.
    let path = std::env::temp_dir().join(format!("laggard-fuzz-{}.lag", std::process::id()));
    std::fs::write(&path, bytes).expect("a temporary file");
    match read_run(&path) {
        Ok((Run::Profile(profile), _)) => stacks::check(&profile),
        Ok((Run::Calls(calls), _)) => stacks::check(&calls.profile),
        Err(_) => {}
    }
});
