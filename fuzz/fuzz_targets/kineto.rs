//! Any bytes as a trace: the reader comes back, and its paths see the same number of events.

#![no_main]

use laggard_formats::read::kineto::{self, Options, Paths};
use laggard_formats::{Bytes, Source};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

fuzz_target!(|text: &[u8]| {
    let events = |paths| {
        let bytes = Bytes::Stream(Box::new(Cursor::new(text.to_vec())));
        let options = Options { paths, threads: 1, ..Options::default() };
        let source = Source { path: "fuzz".into(), bytes };
        kineto::read(source, &options, &|_| {}).map(|timeline| timeline.events).ok()
    };
    assert_eq!(events(Paths::Any), events(Paths::Careful));
});
