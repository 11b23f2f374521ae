//! Damaged recordings: reading gives the content of some earlier time and never panics.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use laggard_core::model::calls::{
    ArgumentRow, CallQuality, CallRow, Calls, FailureRow, Function, InstructionRow,
};
use laggard_core::model::profile::{Children, Frame, FrameKind, Node, Profile, Sample, Texts};
use laggard_core::profile::{By, View, join_workers, quality, top_down, totals};
use laggard_formats::Source;
use laggard_formats::lag::{self, Loss, Recorder, Run, read_run};
use laggard_formats::read::speedscope;
use laggard_formats::{Error, write};
use laggard_samples::profile::{Sketch, matrix_product};
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};

/// The whole content of a profile, in a canonical order.
fn all(profile: &Profile) -> (Vec<String>, String) {
    let texts = profile.texts.iter().map(str::to_owned).collect();
    let rest = Profile { texts: Texts::default(), ..profile.clone() };
    // The map of an empty text table has one entry and so one order.
    (texts, format!("{rest:?}"))
}

fn profile_of(path: &Path) -> (Profile, Vec<Loss>) {
    match read_run(path).unwrap() {
        (Run::Profile(profile), losses) => (profile, losses),
        (Run::Calls(_), _) => panic!("calls"),
    }
}

/// The profile after each of several appends.
fn growth() -> Vec<Profile> {
    let mut sketch = Sketch::default();
    (0..4)
        .map(|i| {
            sketch.samples(5, &format!("app!main;liba.so!f{i};run (app.py:{i})"));
            sketch.thread(1, 2 + i, "app", "worker");
            let mut profile = sketch.done();
            // CPU time is known only at the end.
            profile.threads.iter_mut().for_each(|thread| thread.cpu_ns = 0);
            profile
        })
        .collect()
}

fn record(path: &Path, growth: &[Profile]) -> Recorder {
    let mut recorder = Recorder::create(path, &growth[0].about).unwrap();
    for profile in growth {
        recorder.append(profile).unwrap();
    }
    recorder
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.lag");
    (directory, path)
}

#[test]
fn reads_killed_recording_up_to_its_last_part() {
    let (_directory, path) = place();
    let growth = growth();
    let recorder = record(&path, &growth);
    let (read, losses) = profile_of(&path);
    assert_eq!(all(&read), all(growth.last().unwrap()));
    assert_eq!(losses, [Loss::Unfinished]);
    let finished = matrix_product();
    recorder.finish(&finished).unwrap();
    let (read, losses) = profile_of(&path);
    assert_eq!(all(&read), all(&finished));
    assert_eq!(losses, []);
    assert_eq!(lag::format_of(&path).as_deref(), Some(lag::RUN_SCHEMA));
}

#[test]
fn truncated_recording_is_an_earlier_state() {
    let (_directory, path) = place();
    let growth = growth();
    record(&path, &growth);
    let whole = fs::read(&path).unwrap();
    let moments: Vec<_> = growth.iter().map(all).collect();
    let mut seen = 0;
    for length in (0..whole.len()).step_by(37) {
        fs::write(&path, &whole[..length]).unwrap();
        match read_run(&path) {
            Ok((Run::Profile(profile), losses)) => {
                assert!(losses.contains(&Loss::Unfinished));
                assert!(profile.samples.is_empty() || moments.contains(&all(&profile)), "{length}");
                assert!(profile.samples.len() >= seen, "{length} bytes give less than fewer did");
                seen = profile.samples.len();
            }
            Err(Error::BadRunFile { .. } | Error::Io { .. }) => assert_eq!(seen, 0, "{length}"),
            other => panic!("{length}: {other:?}"),
        }
    }
    assert_eq!(seen, growth[2].samples.len(), "all but the last part");
}

#[test]
fn detects_or_tolerates_changed_byte() {
    let (_directory, path) = place();
    let growth = growth();
    let recorder = record(&path, &growth);
    let moments: Vec<_> = growth.iter().map(all).collect();
    let check = |what: &str, bytes: &[u8], moments: &[(Vec<String>, String)], path: &Path| {
        for at in (0..bytes.len()).step_by(23) {
            let mut damaged = bytes.to_vec();
            damaged[at] ^= [0x01, 0x80, 0xff][at % 3];
            fs::write(path, &damaged).unwrap();
            match read_run(path) {
                Ok((Run::Profile(profile), losses)) => {
                    let whole = all(&profile) == *moments.last().unwrap();
                    assert!(
                        whole || profile.samples.is_empty() || moments.contains(&all(&profile)),
                        "{what}, byte {at}"
                    );
                    let said = losses.iter().any(|loss| *loss != Loss::Unfinished);
                    assert!(whole || said, "{what}, byte {at}: {losses:?}");
                }
                Ok(_) => panic!("calls"),
                Err(Error::BadRunFile { .. } | Error::NotARun { .. }) => {}
                Err(other) => panic!("{what}, byte {at}: {other}"),
            }
        }
    };
    let bytes = fs::read(&path).unwrap();
    check("growing", &bytes, &moments, &path);
    fs::write(&path, &bytes).unwrap();
    let last = growth.last().unwrap();
    recorder.finish(last).unwrap();
    let bytes = fs::read(&path).unwrap();
    check("finished", &bytes, &[all(last)], &path);
}

/// A file with a valid checksum can still contain anything.
#[test]
fn hostile_part_does_not_panic() {
    let (_directory, path) = place();
    lag::write_profile(&path, &growth()[1]).unwrap();
    let bytes = fs::read(&path).unwrap();
    let find = |what: &[u8], from: usize| {
        from + bytes[from..].windows(what.len()).position(|window| window == what).unwrap()
    };
    let text = find(b"{\"laggard.part\":", 0);
    let header: serde_json::Value =
        serde_json::Deserializer::from_slice(&bytes[text..]).into_iter().next().unwrap().unwrap();
    let length = header["length"].as_u64().unwrap() as usize;
    let body = bytes.len() - length;
    let seal = find(&xxhash_rust::xxh3::xxh3_64(&bytes[text..text + 192]).to_le_bytes(), text);
    let old = header["xxh3"].as_str().unwrap().to_owned();
    let digest = find(old.as_bytes(), text);
    for at in (body..bytes.len()).step_by(7) {
        for change in [0x01, 0x80, 0xff] {
            let mut hostile = bytes.clone();
            hostile[at] ^= change;
            let new = format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&hostile[body..]));
            hostile[digest..digest + 16].copy_from_slice(new.as_bytes());
            let sum = xxhash_rust::xxh3::xxh3_64(&hostile[text..text + 192]).to_le_bytes();
            hostile[seal..seal + 8].copy_from_slice(&sum);
            fs::write(&path, &hostile).unwrap();
            if let Ok((Run::Profile(profile), _)) = read_run(&path) {
                let frames: usize =
                    profile.samples.iter().map(|s| profile.frames_of(s.stack).count()).sum();
                assert!(frames <= profile.samples.len() * profile.stacks.len());
            }
        }
    }
}

#[test]
fn skips_invalid_references() {
    let (_directory, path) = place();
    let mut profile = growth().pop().unwrap();
    let good = profile.samples.len();
    let sample = profile.samples[0];
    profile.samples.push(Sample { stack: 9_999, ..sample });
    profile.samples.push(Sample { thread: 9_999, ..sample });
    profile.samples.push(Sample { event: 9_999, ..sample });
    profile.frames[0].function = 77_777;
    profile.frames[1].module = 77_777;
    profile.stacks[0].parent = 2;
    lag::write_profile(&path, &profile).unwrap();
    let (read, losses) = profile_of(&path);
    assert_eq!(read.samples.len(), good);
    assert_eq!(losses, [Loss::Astray { count: 6 }]);
    profile.stacks[0].frame = 77_777;
    lag::write_profile(&path, &profile).unwrap();
    assert!(matches!(read_run(&path), Err(Error::BadRunFile { .. })));
}

#[test]
fn round_trips_calls() {
    let (_directory, path) = place();
    let mut profile = matrix_product();
    let name = profile.texts.add("cblas_dgemm");
    let row = |histogram: Vec<(u64, u64)>| CallRow {
        function: 0,
        caller: 1,
        thread: 0,
        count: 12,
        unfinished: 1,
        total_ns: 99,
        self_ns: 98,
        min_ns: 3,
        max_ns: 50,
        instructions: histogram.first().map(|class| class.1),
        histogram,
    };
    let argument = |values: Vec<i64>| ArgumentRow { function: 0, values, count: 2, total_ns: 9 };
    let calls = Calls {
        profile,
        functions: vec![Function { name, module: 0 }],
        rows: vec![row(vec![(1, 2), (4, 8)]), row(vec![]), row(vec![(64, 1)])],
        arguments: vec![argument(vec![]), argument(vec![-1, i64::MAX])],
        failures: vec![FailureRow { function: 0, thread: 0, error: name, count: 3 }],
        instructions: vec![InstructionRow { function: 0, own: 1 << 40 }],
        quality: CallQuality {
            too_deep: 1,
            table_full: 2,
            not_wrapped: vec![("f".into(), "it is data".into())],
            cost_ns: 28.5,
        },
    };
    lag::write_calls(&path, &calls).unwrap();
    let Ok((Run::Calls(read), losses)) = read_run(&path) else { panic!("no calls") };
    assert_eq!(losses, []);
    assert_eq!(all(&read.profile), all(&calls.profile));
    assert_eq!((read.functions, read.rows), (calls.functions, calls.rows));
    assert_eq!((read.arguments, read.quality), (calls.arguments, calls.quality));
    assert_eq!((read.failures, read.instructions), (calls.failures, calls.instructions));
}

#[test]
fn rejects_other_files_by_name() {
    let (directory, path) = place();
    fs::write(&path, "not a run").unwrap();
    assert!(matches!(read_run(&path), Err(Error::BadRunFile { .. })));
    assert_eq!(lag::format_of(&path), None);
    assert_eq!(lag::format_of(directory.path()), None);
    assert!(matches!(read_run(&directory.path().join("missing")), Err(Error::Io { .. })));
}

/// Arbitrary references.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 0u32..12, 1 => Just(u32::MAX), 1 => any::<u32>()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn any_readable_file_can_be_reported(
        frames in prop::collection::vec((0u8..5, number(), number(), number()), 1..12),
        parents in prop::collection::vec((number(), 0usize..12), 0..12),
        samples in prop::collection::vec((number(), number(), number(), any::<u64>()), 0..20),
    ) {
        let (_directory, path) = place();
        let mut profile = growth().pop().unwrap();
        profile.frames = frames
            .iter()
            .map(|&(kind, module, function, file)| Frame {
                kind: FrameKind::from_number(kind).unwrap(),
                module,
                address: 0,
                function,
                file,
                line: file,
            })
            .collect();
        let node = |&(parent, frame): &(u32, usize)| Node {
            parent,
            frame: (frame % profile.frames.len()) as u32,
        };
        profile.stacks = parents.iter().map(node).collect();
        profile.samples = samples
            .iter()
            .map(|&(thread, stack, event, weight)| Sample {
                time_ns: weight,
                thread,
                stack,
                event,
                count: 1 + weight,
                weight,
                state: thread,
            })
            .collect();
        lag::write_profile(&path, &profile).unwrap();
        let (mut read, _) = profile_of(&path);
        join_workers(&mut read);
        let view = View::whole(&read);
        for by in By::ALL {
            totals(&view, by);
        }
        top_down(&view);
        quality(&read);
        let mut out = vec![];
        write::collapsed(&view, &mut out).unwrap();
        write::csv(&view, &mut out).unwrap();
        write::speedscope(&view, "", &mut out).unwrap();
        write::firefox(&view, "", &mut out).unwrap();
    }

    #[test]
    fn round_trips_any_recording(
        stacks in prop::collection::vec(("[a-c;!()\"\u{1b}é ]{0,12}", 0u32..4, 0usize..4), 0..30),
        every in 1usize..9,
    ) {
        let (_directory, path) = place();
        let mut sketch = Sketch::default();
        let mut recorder = Recorder::create(&path, &sketch.profile.about).unwrap();
        for (i, (stack, thread, count)) in stacks.iter().enumerate() {
            sketch.thread(1, *thread, "app", stack).samples(*count, stack);
            if i % every == 0 {
                recorder.append(&sketch.profile).unwrap();
            }
        }
        recorder.append(&sketch.profile).unwrap();
        let (read, losses) = profile_of(&path);
        // CPU time of threads is known only at the end.
        let blank = |profile: &Profile| {
            let mut profile = profile.clone();
            profile.threads.iter_mut().for_each(|thread| thread.cpu_ns = 0);
            all(&profile)
        };
        prop_assert_eq!(blank(&read), blank(&sketch.profile));
        prop_assert_eq!(losses, vec![Loss::Unfinished]);
        let finished = sketch.done();
        recorder.finish(&finished).unwrap();
        prop_assert_eq!(all(&profile_of(&path).0), all(&finished));
    }
}

#[test]
fn counts_of_child_processes_survive_a_round_trip() {
    let (_directory, path) = place();
    let mut profile = matrix_product();
    let [program, reason] = ["/bin/fixed", "statically linked"].map(|text| profile.texts.add(text));
    profile.quality.children = Some(Children {
        are_followed: true,
        followed: 7,
        excluded: vec![(program, reason, 3)],
        user_ns: 80_000_000,
        system_ns: 1_000_000,
    });
    lag::write_profile(&path, &profile).unwrap();
    let (read, written) = (quality(&profile_of(&path).0), quality(&profile));
    assert!(written.children.is_some() && written.unsampled.is_some());
    assert_eq!((read.children, read.unsampled), (written.children, written.unsampled));
}

/// A program that waits takes longer than the sum of its samples.
#[test]
fn speedscope_keeps_the_duration() {
    let (directory, _) = place();
    let mut sketch = Sketch::default();
    let mut profile = sketch.thread(1, 1, "app", "app").samples(3, "main;work").done();
    profile.about.duration_ns = 5_000_000_000;
    let path = directory.path().join("a.speedscope.json");
    let mut out = vec![];
    write::speedscope(&View::whole(&profile), "", &mut out).unwrap();
    std::fs::write(&path, out).unwrap();
    let read = speedscope::read(Source::open(&path).unwrap(), &|_| ()).unwrap();
    assert_eq!(read.about.duration_ns, 5_000_000_000);
}
