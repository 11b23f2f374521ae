//! Texts larger than 4 GiB, whose positions do not fit in 32 bits: a stream generated while it is
//! read, and a sparse mapped file. Neither needs disk space or memory.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use laggard_core::model::timeline::{LossReason, Timeline};
use laggard_formats::read::kineto::{self, Options};
use laggard_formats::{Bytes, Source};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

const FOUR_GIB: u64 = 1 << 32;

/// A text of pieces, some of which repeat.
struct Made {
    pieces: Vec<(Arc<[u8]>, u64)>,
    piece: usize,
    at: usize,
}

impl Read for Made {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            let Some((bytes, times)) = self.pieces.get_mut(self.piece) else { break };
            if *times == 0 {
                self.piece += 1;
                continue;
            }
            let n = (bytes.len() - self.at).min(buffer.len() - done);
            buffer[done..done + n].copy_from_slice(&bytes[self.at..self.at + n]);
            (self.at, done) = (self.at + n, done + n);
            if self.at == bytes.len() {
                (self.at, *times) = (0, *times - 1);
            }
        }
        Ok(done)
    }
}

fn event(name: &str, ts: u64, args: &str) -> String {
    format!(
        "{{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"{name}\",\"pid\":0,\"tid\":7,\"ts\":{ts},\"dur\":2,\"args\":{{{args}}}}}"
    )
}

fn loss(timeline: &Timeline, reason: LossReason) -> Option<(u64, u64)> {
    let loss = timeline.losses.iter().find(|loss| loss.reason == reason)?;
    Some((loss.count, loss.first_offset))
}

#[test]
fn reads_stream_larger_than_4_gib() {
    let head = "{\"traceEvents\":[\n";
    // Few events with long unused texts, to keep the test fast.
    let block: String = (0..32)
        .map(|i| {
            event("k", 10 * i, &format!("\"correlation\":{i},\"note\":\"{}\"", "x".repeat(8100)))
        })
        .map(|event| event + ",\n")
        .collect();
    let times = FOUR_GIB / block.len() as u64 + 1;
    let damaged = "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"broken\",\"ts\":,},\n";
    let tail =
        format!("{}\n],\"distributedInfo\":{{\"rank\":5}}}}\n", event("last", 5_000_000, ""));
    let pieces: Vec<(Arc<[u8]>, u64)> = [(head, 1), (&block, times), (damaged, 1), (&tail, 1)]
        .map(|(text, times)| (text.as_bytes().into(), times))
        .into();
    let size: u64 = pieces.iter().map(|(text, times)| text.len() as u64 * times).sum();
    let place_of_damage = size - (damaged.len() + tail.len()) as u64;
    assert!(place_of_damage > FOUR_GIB);

    let bytes = Bytes::Stream(Box::new(Made { pieces, piece: 0, at: 0 }));
    let source = Source { path: "made".into(), bytes };
    let timeline = kineto::read(source, &Options::default(), &|_| {}).unwrap();
    assert_eq!(timeline.bytes, size);
    assert_eq!(timeline.events, 32 * times + 2);
    assert_eq!(timeline.gpu.spans.len() as u64, 32 * times + 1);
    assert_eq!(loss(&timeline, LossReason::NotJson), Some((1, place_of_damage)));
    let last = timeline.gpu.spans.len() - 1;
    assert_eq!(timeline.strings.get(timeline.gpu.spans.name[last]), "last");
    assert_eq!(timeline.gpu.spans.ts[last], 5_000_000_000);
    assert_eq!(timeline.about.rank, Some(5), "metadata after the events");
}

/// The kernel allocates a zero page for every accessed page of the hole, which takes one to ten
/// seconds. The pages are freed immediately.
#[cfg(unix)]
#[test]
fn reads_mapped_file_larger_than_4_gib() {
    if std::env::var_os("LAGGARD_QUICK").is_some() {
        return;
    }
    let mut file = tempfile::NamedTempFile::new().unwrap();
    // The zeros of the hole are inside a string.
    file.write_all(b"{\"note\":\"").unwrap();
    if file.as_file().set_len(FOUR_GIB + 500).is_err() {
        return; // the file system does not support files of this size
    }
    file.seek(SeekFrom::End(0)).unwrap();
    let events: Vec<String> = (0..1000).map(|i| event("k", 10 * i, "\"correlation\":3")).collect();
    let damaged = "{\"ph\":\"X\",\"name\":,}";
    let before = format!("\",\"traceEvents\":[\n{},\n", events.join(",\n"));
    let behind =
        format!("{damaged},\n{}\n],\"distributedInfo\":{{\"rank\":5}}}}", events.join(",\n"));
    let place_of_damage = FOUR_GIB + 500 + before.len() as u64;
    file.write_all((before + &behind).as_bytes()).unwrap();

    let options = Options { threads: 2, smallest_chunk: 10_000, ..Options::default() };
    let source = Source::open(file.path()).unwrap();
    assert!(matches!(source.bytes, Bytes::Mapped(_)));
    let timeline = kineto::read(source, &options, &|_| {}).unwrap();
    assert_eq!(timeline.events, 2001);
    assert_eq!(timeline.gpu.spans.len(), 2000);
    assert_eq!(timeline.bytes, file.as_file().metadata().unwrap().len());
    assert_eq!(loss(&timeline, LossReason::NotJson), Some((1, place_of_damage)));
    assert_eq!(timeline.about.rank, Some(5), "metadata after the events");
}
