//! Any bytes as a run file: they are read or refused, and what is read points somewhere.

#![no_main]

use laggard_formats::lag::{Run, read_run};
use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "a run is a file, and needs no source of bytes")]
mod stacks;

fuzz_target!(|bytes: &[u8]| {
    // A run is mapped, so it has to be a file.
    let path = std::env::temp_dir().join(format!("laggard-fuzz-{}.lag", std::process::id()));
    std::fs::write(&path, bytes).expect("a temporary file");
    match read_run(&path) {
        Ok((Run::Profile(profile), _)) => stacks::check(&profile),
        Ok((Run::Calls(calls), _)) => stacks::check(&calls.profile),
        Err(_) => {}
    }
});
