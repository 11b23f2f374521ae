//! Fuzzes the `perf stat` reader. Totals and derived metrics of accepted input can be computed.

#![no_main]

use laggard_core::counters::{derive, rates, totals};
use laggard_formats::read::perf_stat::parse;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    if let Some(counters) = parse(text) {
        let totals = totals(&counters);
        assert!(!totals.is_empty());
        assert!(totals.iter().filter_map(|row| row.value()).all(|value| value >= 0.0));
        assert_eq!(rates(&counters, &totals).len(), totals.len());
        derive(&counters, &totals);
    }
});
