//! Symbolization of the frames of a profile.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use laggard_core::model::NONE;
use laggard_core::model::calls::{CallRow, Calls};
use laggard_core::model::profile::{
    Event, Frame, FrameKind, Interner, Module, Profile, Sample, Unit,
};
use laggard_symbols::{Elf, FileSystem, resolve, resolve_calls};

fn native(module: u32, address: u64) -> Frame {
    Frame { kind: FrameKind::Native, module, address, function: 0, file: 0, line: 0 }
}

/// A profile of one sample with these frames, outermost first.
fn profile(path: &str, id: &str, frames: &[Frame]) -> Profile {
    let mut profile = Profile::default();
    let mut interner = Interner::default();
    let (path, id) = (profile.texts.add(path), profile.texts.add(id));
    interner.module(&mut profile, Module { path, id });
    let numbers: Vec<u32> = frames.iter().map(|f| interner.frame(&mut profile, *f)).collect();
    let stack = interner.stack(&mut profile, numbers.into_iter());
    profile.events.push(Event { name: "task-clock".into(), unit: Unit::Nanos });
    let sample = Sample { time_ns: 0, thread: 0, stack, event: 0, count: 1, weight: 1, state: 0 };
    profile.samples = vec![sample, Sample { stack: NONE, ..sample }];
    profile
}

/// The frames of the first sample, outermost first.
fn shown(profile: &Profile) -> Vec<(FrameKind, String, u32)> {
    let frames = profile.frames_of(profile.samples[0].stack).map(|n| &profile.frames[n as usize]);
    let mut shown: Vec<_> =
        frames.map(|f| (f.kind, profile.texts.get(f.function).to_owned(), f.line)).collect();
    shown.reverse();
    shown
}

#[test]
fn inlined_calls_become_frames_between_caller_and_callee() {
    let place = tempfile::tempdir().unwrap();
    let flags = ["-shared", "-fPIC", "-O2", "-g"];
    let file = common::compile("lines.c", &flags, place.path(), "lines.so");
    let elf = Elf::open(&file).unwrap();
    let hidden = elf.functions().find(|symbol| symbol.name == "hidden").unwrap();
    let lines = elf.lines().unwrap();
    // An address in `twice`, inlined into `four_times`, inlined into `hidden`.
    let inner = (hidden.start..hidden.start + hidden.size)
        .find(|svma| lines.locations(*svma).len() == 3)
        .unwrap();
    let python = Frame { kind: FrameKind::Python, function: 0, ..native(NONE, 0) };
    let path = file.to_str().unwrap();
    let frames =
        [native(0, hidden.start), python, native(0, inner), native(0, 1), native(0, inner)];
    let mut seen = profile(path, elf.id(), &frames);
    let resolution = resolve(&mut seen, &FileSystem);

    let of_inner = |shown: &[(FrameKind, String, u32)]| {
        assert_eq!((shown[0].0, &*shown[0].1), (FrameKind::Native, "hidden"));
        assert_eq!((shown[1].0, &*shown[1].1), (FrameKind::Inlined, "four_times"));
        assert_eq!((shown[2].0, &*shown[2].1), (FrameKind::Inlined, "twice"));
        assert!(shown.iter().all(|(_, _, line)| *line > 0), "{shown:?}");
    };
    let all = shown(&seen);
    assert_eq!(all.len(), 9, "{all:?}");
    assert_eq!((all[0].0, &*all[0].1), (FrameKind::Native, "hidden"));
    assert_eq!(all[1].0, FrameKind::Python);
    of_inner(&all[2..5]);
    assert_eq!(all[5], (FrameKind::Native, String::new(), 0));
    of_inner(&all[6..9]);
    assert_eq!(seen.samples[1].stack, NONE);
    assert!(
        seen.stacks.iter().enumerate().all(|(at, n)| n.parent == NONE || (n.parent as usize) < at)
    );
    assert_eq!((resolution.named, resolution.nameless, resolution.unread), (2, 1, 0));

    let again = (seen.frames.clone(), seen.stacks.clone());
    resolve(&mut seen, &FileSystem);
    assert_eq!((seen.frames, seen.stacks), again);
}

#[test]
fn changed_file_symbolizes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let file = common::compile("lines.c", &["-shared", "-fPIC"], place.path(), "lines.so");
    let elf = Elf::open(&file).unwrap();
    let start = elf.functions().next().unwrap().start;
    let mut seen = profile(file.to_str().unwrap(), "00ff", &[native(0, start)]);
    let resolution = resolve(&mut seen, &FileSystem);
    assert_eq!((resolution.unread, resolution.named), (1, 0));
    assert!(resolution.missing[0].2.contains("has changed since the recording"), "{resolution:?}");
    assert_eq!(shown(&seen), [(FrameKind::Native, String::new(), 0)]);
}

#[test]
fn callers_in_call_traces_follow_their_frames() {
    let place = tempfile::tempdir().unwrap();
    let flags = ["-shared", "-fPIC", "-O2", "-g"];
    let file = common::compile("lines.c", &flags, place.path(), "lines.so");
    let elf = Elf::open(&file).unwrap();
    let hidden = elf.functions().find(|symbol| symbol.name == "hidden").unwrap();
    let lines = elf.lines().unwrap();
    let inner = (hidden.start..hidden.start + hidden.size)
        .find(|svma| lines.locations(*svma).len() == 3)
        .unwrap();
    let frames = [native(0, 1), native(0, inner), native(NONE, 7)];
    let profile = profile(file.to_str().unwrap(), elf.id(), &[]);
    let mut calls = Calls { profile, ..Calls::default() };
    // No stack has these frames: only rows refer to them.
    calls.profile.frames = frames.to_vec();
    let row = |caller| CallRow {
        function: 0,
        caller,
        thread: 0,
        count: 1,
        unfinished: 0,
        total_ns: 1,
        self_ns: 1,
        min_ns: 1,
        max_ns: 1,
        histogram: vec![],
        instructions: None,
    };
    calls.rows = [2, 1, 0, NONE, 1].map(row).to_vec();
    resolve_calls(&mut calls, &FileSystem);
    let callers: Vec<_> = calls
        .rows
        .iter()
        .map(|row| calls.profile.frames.get(row.caller as usize))
        .map(|frame| frame.map(|f| (f.address, calls.profile.texts.get(f.function), f.line > 0)))
        .collect();
    let named = Some((inner, "hidden", true));
    assert_eq!(callers, [Some((7, "", false)), named, Some((1, "", false)), None, named]);
}
