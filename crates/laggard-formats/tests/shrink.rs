//! A trace that is truncated while it is read is an error and does not kill the process.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use laggard_formats::read::kineto::{self, Options};
use laggard_formats::{Bytes, Error, Source};
use laggard_samples::kineto::{Gpu, Recipe, text};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Once;

fn cut(path: &Path, length: u64) {
    File::options().write(true).open(path).unwrap().set_len(length).unwrap();
}

#[test]
fn rejects_trace_truncated_while_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.json");
    // Progress is reported every 16 MB: some data is read before the truncation, some after it.
    let whole = text(&Recipe::new(48 << 20, Gpu::Amd)).0;
    let size = whole.len() as u64;
    for (threads, length) in [(1, size / 2), (2, 0), (2, size / 2), (3, size - 10)] {
        fs::write(&path, &whole).unwrap();
        let source = Source::open(&path).unwrap();
        assert!(matches!(source.bytes, Bytes::Mapped(_)));
        let once = Once::new();
        let options = Options { threads, ..Options::default() };
        let read = kineto::read(source, &options, &|_| once.call_once(|| cut(&path, length)));
        assert!(once.is_completed(), "progress was not reported");
        let read = read.map(|timeline| timeline.events);
        assert!(matches!(read, Err(Error::Shrank { .. })), "truncated to {length}: {read:?}");
    }
}

#[test]
fn rejects_trace_truncated_before_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.json");
    let whole = text(&Recipe::new(3 << 20, Gpu::Amd)).0;
    // The last one is within the last page, which raises no signal.
    for length in [0, 1, 4096, whole.len() as u64 / 2, whole.len() as u64 - 1] {
        fs::write(&path, &whole).unwrap();
        let source = Source::open(&path).unwrap();
        cut(&path, length);
        let read = kineto::read(source, &Options::default(), &|_| {}).map(|t| t.events);
        assert!(matches!(read, Err(Error::Shrank { .. })), "truncated to {length}: {read:?}");
    }
}

#[test]
fn reads_growing_trace_at_its_original_size() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.json");
    let (whole, totals) = text(&Recipe::new(1 << 20, Gpu::Amd));
    fs::write(&path, &whole).unwrap();
    let source = Source::open(&path).unwrap();
    fs::write(&path, format!("{whole}\n\n")).unwrap();
    let read = kineto::read(source, &Options::default(), &|_| {}).unwrap();
    assert_eq!(read.events, totals.events);
}

#[test]
fn guards_many_maps_independently() {
    let directory = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..20).map(|i| directory.path().join(format!("{i}.json"))).collect();
    let (whole, totals) = text(&Recipe::new(100_000, Gpu::Nvidia));
    for _ in 0..20 {
        let open = |path: &PathBuf| {
            fs::write(path, &whole).unwrap();
            Source::open(path).unwrap()
        };
        let sources: Vec<Source> = paths.iter().map(open).collect();
        paths.iter().step_by(2).for_each(|path| cut(path, 5000));
        for (i, source) in sources.into_iter().enumerate() {
            match kineto::read(source, &Options::default(), &|_| {}) {
                Ok(timeline) => assert!(i % 2 == 1 && timeline.events == totals.events, "{i}"),
                Err(error) => assert!(i % 2 == 0 && matches!(error, Error::Shrank { .. }), "{i}"),
            }
        }
    }
}
