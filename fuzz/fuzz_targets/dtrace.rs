//! Fuzzes the dtrace and dtruss readers. Accepted input has samples or valid indices, and its
//! totals can be computed.

#![no_main]

use laggard_core::profile::{By, View, totals};
use laggard_formats::read::{dtrace, dtruss};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    if let Some(profile) = dtrace::parse(text) {
        assert!(!profile.samples.is_empty());
        totals(&View::whole(&profile), By::Function);
    }
    if let Some(calls) = dtruss::parse(text) {
        for row in &calls.rows {
            assert!((row.function as usize) < calls.functions.len());
            assert!((row.thread as usize) < calls.profile.threads.len());
        }
    }
});
