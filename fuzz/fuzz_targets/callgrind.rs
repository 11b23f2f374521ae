//! Fuzzes the callgrind reader. The profile has the same total cost as the functions, whatever the
//! call graph.

#![no_main]

use laggard_formats::read::callgrind::{parse_lines, profile};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some(graph) = parse_lines(bytes) else { return };
    let profile = profile(&graph);
    for event in 0..graph.events.len() {
        let own = (0..graph.functions.len() as u32).map(|f| u128::from(graph.own(f)[event]));
        let of_event = profile.samples.iter().filter(|sample| sample.event as usize == event);
        let weights: u128 = of_event.map(|sample| u128::from(sample.weight)).sum();
        // Sums that overflow are clamped, for functions earlier than for lines.
        assert!(weights == own.sum::<u128>() || weights > u128::from(u64::MAX));
    }
});
