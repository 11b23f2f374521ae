//! What the fuzz targets of profiles have in common.

use laggard_core::model::NONE;
use laggard_core::model::profile::Profile;
use laggard_formats::{Bytes, Source};
use std::io::Cursor;

/// Bytes as a file to read.
pub fn source(bytes: &[u8]) -> Source {
    Source { path: "fuzzed".into(), bytes: Bytes::Stream(Box::new(Cursor::new(bytes.to_vec()))) }
}

/// Whether all numbers point somewhere.
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
