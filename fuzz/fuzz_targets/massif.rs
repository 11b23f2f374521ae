//! Fuzzes the massif reader. Totals of accepted profiles can be computed.

#![no_main]

use laggard_core::profile::{By, View, totals};
use laggard_formats::read::massif::parse;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(profile) = parse(bytes) {
        assert!(!profile.samples.is_empty());
        let view = View::whole(&profile);
        assert_eq!(view.event, 0, "the peak, or the largest snapshot");
        totals(&view, By::Function);
    }
});
