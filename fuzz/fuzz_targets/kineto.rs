//! Fuzzes the PyTorch trace reader. It must terminate, and for valid JSON all its paths must count
//! the same number of events. For malformed JSON the fast paths may recover more events, because
//! they skip parts that they do not need.

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
    let (any, careful) = (events(Paths::Any), events(Paths::Careful));
    if serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok() {
        assert_eq!(any, careful);
    }
});
