//! Fuzzes the readers of benchmark results. Accepted input has one series per side and no negative
//! times.

#![no_main]

use laggard_formats::read::bench::parse;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    if let Some(Ok(timings)) = parse(text) {
        assert!(timings.cases.iter().all(|case| case.series.len() == timings.sides.len()));
        for series in timings.cases.iter().flat_map(|case| &case.series) {
            assert!(series.wall().iter().chain(&series.cpu()).all(|ns| *ns >= 0.0));
        }
    }
});
