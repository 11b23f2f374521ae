//! Code shared by the fuzz targets of profile readers.

use laggard_core::model::NONE;
use laggard_core::model::profile::Profile;
use laggard_formats::{Bytes, Source};
use std::io::Cursor;

/// The fuzzed bytes as an input file.
pub fn source(bytes: &[u8]) -> Source {
    Source { path: "fuzzed".into(), bytes: Bytes::Stream(Box::new(Cursor::new(bytes.to_vec()))) }
}

/// Asserts that all indices are valid.
pub fn check(profile: &Profile) {
    for (number, node) in (0u32..).zip(&profile.stacks) {
        assert!(node.parent == NONE || node.parent < number);
        assert!((node.frame as usize) < profile.frames.len());
    }
    for frame in &profile.frames {
        assert!(frame.module == NONE || (frame.module as usize) < profile.modules.len());
    }
    for sample in &profile.samples {
        assert!((sample.thread as usize) < profile.threads.len());
        assert!((sample.event as usize) < profile.events.len());
        assert!(sample.stack == NONE || (sample.stack as usize) < profile.stacks.len());
    }
}
