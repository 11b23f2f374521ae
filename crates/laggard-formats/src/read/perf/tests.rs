//! Tests with hand-made recordings: features that the test machine cannot record, and damage.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use super::attr::has;
use super::*;
use laggard_core::model::profile::FrameKind;
use proptest::prelude::*;
use std::path::Path;

const IN_KERNEL: u64 = -128i64 as u64;
const IN_USER: u64 = -512i64 as u64;
const COMMON: u64 = has::IDENTIFIER | has::IP | has::TID | has::TIME | has::PERIOD | has::CALLCHAIN;

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let sizes = u32::from(misc) | (body.len() as u32 + 8) << 16;
    [&kind.to_le_bytes()[..], &sizes.to_le_bytes(), body].concat()
}

/// An event: type, config, sample fields, branch flags.
fn attr(kind: u32, config: u64, sample: u64, branches: u64) -> Vec<u8> {
    let mut attr = vec![0; 112];
    attr[..4].copy_from_slice(&kind.to_le_bytes());
    attr[4] = 112;
    for (at, word) in
        [(8, config), (16, 999), (24, sample), (40, 1 << 10 | 1 << 18), (72, branches)]
    {
        attr[at..at + 8].copy_from_slice(&u64::to_le_bytes(word));
    }
    attr
}

/// A file with these events (name and attr; the id is the index) and records.
fn file(events: &[(&str, Vec<u8>)], records: &[Vec<u8>]) -> Vec<u8> {
    const HEADER: u64 = 104;
    let data = records.concat();
    let mut described = [(events.len() as u32).to_le_bytes(), 112u32.to_le_bytes()].concat();
    for (number, (name, attr)) in events.iter().enumerate() {
        described.extend_from_slice(attr);
        described.extend_from_slice(&1u32.to_le_bytes());
        described.extend_from_slice(&64u32.to_le_bytes());
        let mut padded = name.as_bytes().to_vec();
        padded.resize(64, 0);
        described.extend_from_slice(&padded);
        described.extend_from_slice(&(number as u64).to_le_bytes());
    }
    let sections = HEADER + data.len() as u64;
    let mut bytes = header::MAGIC.to_vec();
    bytes.extend(words(&[HEADER, 128, HEADER, 0, HEADER, data.len() as u64, 0, 0]));
    bytes.extend(words(&[1 << 12, 0, 0, 0]));
    bytes.extend(data);
    bytes.extend(words(&[sections + 16, described.len() as u64]));
    bytes.extend(described);
    bytes
}

/// A sample of process and thread 7, with additional words after the chain.
fn sample(event: u64, time: u64, chain: &[u64], more: &[u64]) -> Vec<u8> {
    let mut body = words(&[event, 0x1000, 7 | 7 << 32, time, 5, chain.len() as u64]);
    body.extend(words(chain));
    body.extend(words(more));
    record(9, 2, &body)
}

/// An anonymous mapping at 0x1000 in process 7.
fn mapping() -> Vec<u8> {
    let mut body = words(&[7 | 7 << 32, 0x1000, 0x9000, 0]);
    body.extend(b"//anon\0\0");
    // Records other than samples have no period: pid, time, identifier.
    body.extend(words(&[0, 0, 0]));
    record(1, 0, &body)
}

fn profile(bytes: &[u8]) -> Profile {
    collect::profile(bytes, Path::new("made.data"), &|_| ()).unwrap()
}

fn addresses(profile: &Profile, sample: usize) -> Vec<(FrameKind, u64)> {
    let frames = profile.frames_of(profile.samples[sample].stack);
    let frames = frames.map(|frame| profile.frames[frame as usize]);
    frames.map(|frame| (frame.kind, frame.address)).collect()
}

#[test]
fn context_markers_separate_kernel_and_user_frames() {
    let chain = [IN_KERNEL, 0xffff_8000, 0xffff_9000, IN_USER, 0x1100, 0x1200];
    let events = [("cpu-clock", attr(1, 0, COMMON, 0))];
    let profile = profile(&file(&events, &[mapping(), sample(0, 10, &chain, &[])]));
    use FrameKind::{Kernel, Native};
    let expected =
        [(Kernel, 0xffff_8000), (Kernel, 0xffff_8fff), (Native, 0x1100), (Native, 0x1200)];
    assert_eq!(addresses(&profile, 0), expected);
    assert_eq!((profile.samples[0].weight, profile.events[0].is_time()), (5, true));
}

#[test]
fn keeps_instruction_without_call_graph() {
    let plain = COMMON & !has::CALLCHAIN;
    let events = [("cpu-clock", attr(1, 0, plain, 0))];
    let body = words(&[0, 0x1234, 7 | 7 << 32, 10, 5]);
    let profile = profile(&file(&events, &[mapping(), record(9, 2, &body)]));
    assert_eq!(addresses(&profile, 0), [(FrameKind::Native, 0x1234)]);
}

#[test]
fn branch_records_replace_user_chain() {
    const CALL_STACK: u64 = 1 << 11;
    let events = [("cycles:u", attr(0, 0, COMMON | has::BRANCH_STACK, CALL_STACK))];
    let branches = [2, 0x1300, 0x1110, 0, 0x1400, 0x1310, 0];
    let records = [mapping(), sample(0, 10, &[IN_USER, 0x1100], &branches)];
    let profile = profile(&file(&events, &records));
    let expected = [0x1110, 0x1300, 0x1400].map(|address| (FrameKind::Native, address));
    assert_eq!(addresses(&profile, 0), expected);
    assert_eq!(profile.about.method, "perf, branch records (LBR)");
    let reason = profile.texts.get(profile.quality.cut[0].2);
    assert_eq!(reason, "end of the branch records");
}

#[test]
fn extends_stack_deeper_than_branch_records() {
    const CALL_STACK: u64 = 1 << 11;
    let events = [("cycles:u", attr(0, 0, COMMON | has::BRANCH_STACK, CALL_STACK))];
    let branches = |calls: std::ops::Range<u64>| {
        let count = calls.end - calls.start;
        let each = calls.flat_map(|call| [0x1000 + call * 16, 0x1008 + call * 16, 0]);
        [count].into_iter().chain(each).collect::<Vec<u64>>()
    };
    let records = [
        mapping(),
        sample(0, 10, &[IN_USER, 0x1100], &branches(20..36)),
        sample(0, 11, &[IN_USER, 0x1100], &branches(16..32)),
    ];
    let profile = profile(&file(&events, &records));
    assert_eq!(addresses(&profile, 0).len(), 17);
    assert_eq!(addresses(&profile, 1).len(), 17 + 4, "the four dropped frames");
    assert_eq!(addresses(&profile, 1).last(), addresses(&profile, 0).last());
    let warnings = profile.quality.warnings.join("\n");
    assert!(warnings.contains("stacks deeper than the branch records: 1"), "{warnings}");
}

#[test]
fn merges_event_of_two_core_types_but_not_two_events() {
    let cycles = attr(0, 0, COMMON, 0);
    let events = [
        ("cpu_core/cycles/", cycles.clone()),
        ("cpu_atom/cycles/", cycles),
        ("cache-misses:u", attr(0, 3, COMMON, 0)),
    ];
    let records: Vec<_> = (0..3).map(|n| sample(n, 10 + n, &[IN_USER, 0x1100], &[])).collect();
    let profile = profile(&file(&events, &records));
    let names: Vec<&str> = profile.events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["cycles", "cache-misses"]);
    let events: Vec<u32> = profile.samples.iter().map(|sample| sample.event).collect();
    assert_eq!(events, [0, 0, 1]);
}

#[test]
fn orders_records_by_time_and_counts_losses() {
    let events = [("cpu-clock", attr(1, 0, COMMON, 0))];
    let round = record(68, 0, &[]);
    let lost = record(2, 0, &words(&[0, 41, 0, 35, 0]));
    let throttle = record(5, 0, &words(&[35, 0, 0, 0, 35, 0]));
    let at = |time| sample(0, time, &[IN_USER, 0x1100], &[]);
    let records = [
        at(30),
        at(10),
        round.clone(),
        at(20),
        lost,
        throttle,
        round,
        at(40),
        record(9, 2, &[1, 2]),
    ];
    let profile = profile(&file(&events, &records));
    let times: Vec<u64> = profile.samples.iter().map(|sample| sample.time_ns).collect();
    assert_eq!(times, [0, 10, 20, 30]);
    assert_eq!(profile.quality.lost, 41);
    let warnings = profile.quality.warnings.join("\n");
    assert!(warnings.contains("throttled sampling (events: 1)"), "{warnings}");
    assert!(warnings.contains("malformed records skipped: 1"), "{warnings}");
}

#[test]
fn rejects_other_files_with_reason() {
    let why =
        |bytes: &[u8]| collect::profile(bytes, Path::new("x"), &|_| ()).unwrap_err().to_string();
    assert!(why(b"PERFILE2").contains("the header is truncated"));
    assert!(why(b"2ELIFREP\0\0").contains("big-endian"));
    assert!(why(&file(&[], &[])).contains("the header lists no events"));
    assert!(is_perf(b"PERFILE2....") && !is_perf(b"PERF"));
}

/// A recording with one record of each kind.
fn everything() -> Vec<u8> {
    let events = [
        ("cycles", attr(0, 0, COMMON | has::BRANCH_STACK, 1 << 11)),
        ("x", attr(1, 0, COMMON | has::REGS_USER | has::STACK_USER | has::READ | has::RAW, 0)),
    ];
    let comm = record(3, 1 << 13, &words(&[7 | 7 << 32, 0x006f_6c6c_6568, 0, 0, 0]));
    let fork = record(7, 0, &words(&[8 | 7 << 32, 8 | 7 << 32, 3, 0, 0, 0]));
    let mapped =
        record(10, 1 << 14, &words(&[7 | 7 << 32, 0x1000, 0x9000, 0, 20, 0, 0, 5, 0x78, 0, 0, 0]));
    let records = [
        comm,
        fork,
        mapped,
        mapping(),
        sample(0, 10, &[IN_USER, 0x1100], &[1, 0x1300, 0x1110, 0]),
        sample(1, 11, &[IN_USER, 0x1100], &[0, 0, 2, 0, 16, 1, 2, 16]),
        record(81, 0, &[0x28, 0xb5, 0x2f, 0xfd, 1, 2, 3, 4]),
        record(67, 0, &words(&[0, 0, 0, 0, 0])),
        record(71, 0, &words(&[u64::MAX, 0])),
    ];
    file(&events, &records)
}

proptest! {
    #[test]
    fn damage_does_not_panic(
        at in prop::collection::vec((0usize..1400, any::<u8>()), 1..6),
        end in 0usize..1500,
    ) {
        let mut bytes = everything();
        for (at, byte) in at {
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
        }
        bytes.truncate(end);
        let _ = collect::profile(&bytes, Path::new("x"), &|_| ());
    }

    #[test]
    fn arbitrary_stream_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut stream = header::MAGIC.to_vec();
        stream.extend(16u64.to_le_bytes());
        stream.extend(record(64, 0, &attr(1, 0, COMMON, 0)));
        stream.extend(bytes);
        let _ = collect::profile(&stream, Path::new("x"), &|_| ());
    }
}
