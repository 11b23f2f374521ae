//! Stacks of other profilers and viewers, and round trips of our own through their formats.

#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test fails by panicking and prints what it measured

use laggard_core::model::profile::{FrameKind, Profile, Unit};
use laggard_core::profile::{Cost, View, frame_label};
use laggard_formats::read::{collapsed, firefox, perf_script, pprof, speedscope};
use laggard_formats::write;
use laggard_formats::{Error, Source};
use laggard_samples::profile::matrix_product;
use laggard_samples::stacks::Order;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

type Read = fn(Source, &(dyn Fn(u64) + Sync)) -> Result<Profile, Error>;

/// A reader and its detection function.
#[derive(Clone, Copy)]
struct Format {
    is_it: fn(&[u8]) -> bool,
    read: Read,
}

const COLLAPSED: Format = Format { is_it: collapsed::is_collapsed, read: collapsed::read };
const PERF_SCRIPT: Format = Format { is_it: perf_script::is_perf_script, read: perf_script::read };
const SPEEDSCOPE: Format = Format { is_it: speedscope::is_speedscope, read: speedscope::read };
const PPROF: Format = Format { is_it: pprof::is_pprof, read: pprof::read };
const FIREFOX: Format = Format { is_it: firefox::is_firefox, read: firefox::read };

/// All formats and their fixtures.
const FIXTURES: [(Format, &[&str]); 5] = [
    (COLLAPSED, &["py-spy.raw"]),
    (PERF_SCRIPT, &["perf-script.txt", "perf-script-lines.txt", "perf-script-flat.txt"]),
    (SPEEDSCOPE, &["py-spy.speedscope.json"]),
    (PPROF, &["go-cpu.pb.gz", "go-heap.pb.gz"]),
    (FIREFOX, &["samply.profile.json", "shared-tables.profile.json", "samply-like.profile.json"]),
];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/profiles").join(name)
}

fn read(format: Format, path: &Path) -> Profile {
    sound((format.read)(Source::open(path).unwrap(), &|_| ()).unwrap())
}

/// Reads a profile from bytes in a file.
fn parse(format: Format, bytes: &[u8]) -> Result<Profile, Error> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    (format.read)(Source::open(file.path()).unwrap(), &|_| ()).map(sound)
}

/// Asserts that all references of a profile are valid.
fn sound(profile: Profile) -> Profile {
    let none = laggard_core::model::NONE;
    for (number, node) in (0u32..).zip(&profile.stacks) {
        assert!(node.parent == none || node.parent < number);
        assert!((node.frame as usize) < profile.frames.len());
    }
    for frame in &profile.frames {
        assert!(frame.module == none || (frame.module as usize) < profile.modules.len());
    }
    for sample in &profile.samples {
        assert!((sample.thread as usize) < profile.threads.len());
        assert!((sample.event as usize) < profile.events.len());
        assert!(sample.stack == none || (sample.stack as usize) < profile.stacks.len());
    }
    assert!(profile.samples.is_sorted_by_key(|sample| sample.time_ns));
    profile
}

/// Labels of all stacks, innermost first, with their counts.
fn stacks(profile: &Profile) -> Vec<(String, u64)> {
    let mut all: Vec<(String, u64)> = profile
        .samples
        .iter()
        .map(|sample| {
            let frames = profile.frames_of(sample.stack);
            let labels: Vec<String> =
                frames.map(|f| frame_label(profile, &profile.frames[f as usize])).collect();
            (labels.join(" < "), sample.count)
        })
        .collect();
    all.sort();
    all
}

fn count(profile: &Profile, event: u32) -> u64 {
    let samples = profile.samples.iter().filter(|sample| sample.event == event);
    samples.map(|sample| sample.count).sum()
}

#[test]
fn each_file_is_detected_by_one_reader() {
    for (own, (_, names)) in FIXTURES.iter().enumerate() {
        for name in *names {
            let bytes = decompressed(&fixture(name));
            let head = &bytes[..bytes.len().min(64 << 10)];
            for (other, (format, _)) in FIXTURES.iter().enumerate() {
                assert_eq!((format.is_it)(head), own == other, "{name} by reader {other}");
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for other in [
        "fixtures/profiles/inside.callgrind",
        "fixtures/profiles/burn.py",
        "fixtures/profiles/burn.c",
        "fixtures/profiles/README.md",
        "fixtures/nvidia-indent2.json",
        "fixtures/nvidia-compact.json",
        "fixtures/amd-native.json",
        "Cargo.toml",
        "Cargo.lock",
        "ARCHITECTURE.md",
    ] {
        let bytes = std::fs::read(root.join(other)).unwrap();
        let head = &bytes[..bytes.len().min(64 << 10)];
        for (number, (format, _)) in FIXTURES.iter().enumerate() {
            assert!(!(format.is_it)(head), "{other} by reader {number}");
        }
    }
}

fn decompressed(path: &Path) -> Vec<u8> {
    let mut bytes = vec![];
    match Source::open(path).unwrap().bytes {
        laggard_formats::Bytes::Mapped(map) => bytes.extend_from_slice(&map),
        laggard_formats::Bytes::Stream(mut stream) => {
            std::io::Read::read_to_end(&mut stream, &mut bytes).unwrap();
        }
    }
    bytes
}

#[test]
fn py_spy_sample_count_matches() {
    let profile = read(COLLAPSED, &fixture("py-spy.raw"));
    // "Wrote raw flamegraph data to 'pyspy.raw'. Samples: 84 Errors: 0"
    assert_eq!(count(&profile, 0), 84);
    assert_eq!(profile.quality.warnings, Vec::<String>::new());
    let names: Vec<&str> =
        profile.threads.iter().map(|thread| profile.texts.get(thread.name)).collect();
    assert_eq!(names, ["MainThread", "worker"]);
    let leaf = profile.frames.iter().find(|f| profile.texts.get(f.function) == "leaf").unwrap();
    assert_eq!(leaf.kind, FrameKind::Python);
    assert_eq!((profile.texts.get(leaf.file), leaf.line), ("burn.py", 9));
    let kernel = profile.texts.find("dgemm_kernel_SKYLAKEX").unwrap();
    let kernel = profile.frames.iter().find(|frame| frame.function == kernel).unwrap();
    assert_eq!(profile.module_path(kernel), "libscipy_openblas64_-32a4b2a6.so");
}

#[test]
fn reads_all_kinds_of_collapsed_lines() {
    let text = "a;b 2\r\na;b 3\n# remark\n\nmain;f(int, char) 4\nno count\nx 1.25\nx 1.5\n[no stack] 7\nlast;one";
    let profile = parse(COLLAPSED, text.as_bytes()).unwrap();
    let expected = [("", 7), ("b < a", 5), ("f(int, char) < main", 4), ("x", 3)];
    assert_eq!(stacks(&profile), expected.map(|(stack, count)| (stack.to_owned(), count)));
    assert_eq!(
        profile.quality.warnings,
        ["skipped 1 line without a stack", "the file is truncated: its last line has no count"]
    );
    let error = parse(COLLAPSED, b"nothing\nhere\n").unwrap_err();
    assert!(error.to_string().contains("no line has a stack"), "{error}");
}

#[test]
fn two_counts_become_two_events() {
    let profile = parse(COLLAPSED, b"a;b 10 12\na;c 0 3\na 5 0\n").unwrap();
    let names: Vec<&str> = profile.events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["first", "second"]);
    assert_eq!((count(&profile, 0), count(&profile, 1)), (15, 15));
}

#[test]
fn reads_compressed_stacks() {
    let mut text = vec![];
    let samples =
        laggard_samples::stacks::collapsed(20_000_000, 3, Order::Mixed, &mut text).unwrap();
    let plain = parse(COLLAPSED, &text).unwrap();
    let gzipped = parse(COLLAPSED, &laggard_formats::gzip(&text)).unwrap();
    assert_eq!((count(&plain, 0), count(&gzipped, 0)), (samples, samples));
    assert_eq!(stacks(&plain), stacks(&gzipped));
    let cut = laggard_formats::gzip(&text);
    let cut = parse(COLLAPSED, &cut[..cut.len() / 2]).unwrap();
    assert!(count(&cut, 0) > samples / 4 && count(&cut, 0) < samples);
    assert!(cut.quality.warnings.iter().any(|text| text.contains("could not be read to its end")));
}

#[test]
fn skips_only_the_overlong_line() {
    let mut text = b"a;b 3\n".to_vec();
    text.resize(text.len() + (40 << 20), b'x');
    text.extend_from_slice(b" 5\nc;d 4\n");
    for bytes in [laggard_formats::gzip(&text), text] {
        let profile = parse(COLLAPSED, &bytes).unwrap();
        assert_eq!(count(&profile, 0), 7);
        assert_eq!(profile.quality.warnings, ["skipped 1 line without a stack"]);
    }
}

#[test]
fn perf_script_sample_count_matches() {
    let profile = read(PERF_SCRIPT, &fixture("perf-script.txt"));
    assert_eq!(profile.quality.warnings, Vec::<String>::new());
    let events: Vec<(&str, u64)> =
        (0u32..).zip(&profile.events).map(|(i, e)| (e.name.as_str(), count(&profile, i))).collect();
    assert_eq!(events, PERF_EVENTS);
    let clock = profile.events.iter().position(|event| event.name == "cpu-clock:u").unwrap();
    assert!(profile.events[clock].is_time());
    assert_eq!(profile.about.tool, "perf 6.1.187");
    assert!(profile.about.command.iter().any(|word| word == "./burn"));
    let all: Vec<String> = stacks(&profile).into_iter().map(|(stack, _)| stack).collect();
    assert!(all.iter().any(|stack| stack.starts_with("leaf < middle < branch < main < ")));
    let of = |name: &str| profile.texts.find(name).unwrap();
    let middle = profile.frames.iter().filter(|frame| frame.function == of("middle"));
    let used: Vec<u32> = profile.stacks.iter().map(|node| node.frame).collect();
    for middle in middle.filter(|frame| {
        let number = profile.frames.iter().position(|other| other == *frame).unwrap();
        used.contains(&(number as u32))
    }) {
        assert_eq!(middle.kind, FrameKind::Inlined);
        assert!(profile.module_path(middle).ends_with("/burn"));
    }
    let kernel = profile.frames.iter().find(|frame| frame.function == of("schedule")).unwrap();
    assert_eq!(kernel.kind, FrameKind::Kernel);
    assert_eq!(profile.samples[0].time_ns, 0);
    assert!(profile.about.duration_ns > 50_000_000 && profile.about.duration_ns < 1_000_000_000);
}

/// `grep -c 'cpu-clock:u:'` and `grep -c context-switches:` of the file.
const PERF_EVENTS: [(&str, u64); 2] = [("context-switches", 5), ("cpu-clock:u", 17)];

#[test]
fn reads_perf_script_source_lines_and_flat_samples() {
    let lines = read(PERF_SCRIPT, &fixture("perf-script-lines.txt"));
    let flat = read(PERF_SCRIPT, &fixture("perf-script-flat.txt"));
    assert_eq!((count(&lines, 0), count(&flat, 0)), (11, 11));
    let weight = |profile: &Profile| profile.samples.iter().map(|s| s.weight).sum::<u64>();
    assert_eq!((weight(&lines), weight(&flat)), (55_000_000, 55_000_000));
    let leaf = lines.texts.find("leaf").unwrap();
    let file = lines.texts.find("burn.c").unwrap();
    assert!(lines.frames.iter().any(|f| (f.function, f.file, f.line) == (leaf, file, 4)));
    assert!(stacks(&flat).iter().all(|(stack, _)| stack == "leaf" || stack == "branch"));
}

#[test]
fn reads_perf_script_python_frames_and_skips_unknown_lines() {
    let text = "a b  7/8 [001] 1.000000001: 3 cycles: \n\t 7f py::run:/x/app.py+0xb (/tmp/perf-7.map)\n\t 80 [unknown] (/x/lib.so)\n\nrubbish\n\t 81 f (/x)\n\na b  7/8 [001] 1.000000005: 4 cycles: \n";
    let profile = parse(PERF_SCRIPT, text.as_bytes()).unwrap();
    let expected = [("", 1), ("run (/x/app.py) < [lib.so+0x80]", 1)];
    assert_eq!(stacks(&profile), expected.map(|(stack, count)| (stack.to_owned(), count)));
    let thread = &profile.threads[0];
    assert_eq!((thread.pid, thread.tid, profile.texts.get(thread.name)), (7, 8, "a b"));
    assert_eq!((profile.samples[1].time_ns, profile.samples[1].weight), (4, 4));
    assert_eq!(profile.quality.warnings, ["skipped 1 unrecognized line"]);
}

#[test]
fn py_spy_speedscope_sample_count_matches() {
    let profile = read(SPEEDSCOPE, &fixture("py-spy.speedscope.json"));
    // "Wrote speedscope file to 'pyspy.speedscope.json'. Samples: 80 Errors: 0", 200 a second
    assert_eq!(count(&profile, 0), 80);
    let weight: u64 = profile.samples.iter().map(|sample| sample.weight).sum();
    assert_eq!((weight, profile.events[0].is_time()), (80 * 5_000_000, true));
    let leaf = profile.frames.iter().find(|f| profile.texts.get(f.function) == "leaf").unwrap();
    assert_eq!(leaf.kind, FrameKind::Python);
    assert_eq!(profile.texts.get(leaf.file), "/tmp/stk/burn.py");
    assert!(profile.threads.iter().all(|thread| thread.tid > 0));
    assert_eq!(profile.quality.warnings, Vec::<String>::new());
}

#[test]
fn open_and_close_events_give_self_time() {
    let file = r#"{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"x",
        "shared":{"frames":[{"name":"a"},{"name":"b","file":"b.c","line":3},{"name":"c"}]},
        "profiles":[{"type":"evented","name":"t","unit":"microseconds","startValue":10,"endValue":30,
        "events":[{"type":"O","frame":0,"at":10},{"type":"O","frame":1,"at":12},{"type":"C","frame":1,"at":17},
        {"type":"O","frame":2,"at":20},{"type":"C","frame":0,"at":25},{"type":"C","frame":2,"at":26},
        {"type":"O","frame":1,"at":28}]},
        {"type":"sampled","name":"u","unit":"none","startValue":0,"endValue":5,"samples":[[0,9],[0,1],[]],"weights":[2,3,1]}]}"#;
    let profile = parse(SPEEDSCOPE, file.as_bytes()).unwrap();
    let own = |event: u32| {
        let mut all: Vec<(String, u64, u64)> = vec![];
        for sample in profile.samples.iter().filter(|sample| sample.event == event) {
            let frames = profile.frames_of(sample.stack);
            let names: Vec<&str> =
                frames.map(|f| profile.texts.get(profile.frames[f as usize].function)).collect();
            all.push((names.join("<"), sample.time_ns, sample.weight));
        }
        all
    };
    let expected = [("a", 0, 2), ("b<a", 2, 5), ("a", 7, 3), ("c<a", 10, 5), ("b", 18, 2)];
    assert_eq!(own(0), expected.map(|(name, at, us)| (name.to_owned(), at * 1000, us * 1000)));
    assert_eq!(own(1), [("a", 2), ("b<a", 3), ("", 1)].map(|(n, w)| (n.to_owned(), 0, w)));
    assert_eq!(count(&profile, 1), 6);
    assert_eq!(
        profile.quality.warnings,
        ["references to missing frames: 1", "unbalanced open and close events: 3"]
    );
}

#[test]
fn go_profile_matches_go_tool_pprof() {
    let profile = read(PPROF, &fixture("go-cpu.pb.gz"));
    assert_eq!(profile.quality.warnings, Vec::<String>::new());
    let events: Vec<(&str, Unit)> =
        profile.events.iter().map(|event| (event.name.as_str(), event.unit)).collect();
    assert_eq!(events, [("cpu", Unit::Nanos), ("samples", Unit::Count)], "the default first");
    let view = View::whole(&profile);
    assert_eq!(view.event_name(), "cpu");
    // "Duration: 704.27ms, Total samples = 510ms"
    assert_eq!((view.whole.samples, view.whole.weight), (51, 510_000_000));
    assert_eq!((profile.about.duration_ns + 5000) / 10_000, 70_427);
    // `go tool pprof -top`: flat and cum
    let all = functions(&profile);
    let ms = |name: &str| (all[name].0.weight / 1_000_000, all[name].1.weight / 1_000_000);
    assert_eq!(ms("main.leaf"), (500, 510));
    assert_eq!(ms("runtime.asyncPreempt"), (10, 10));
    assert_eq!(ms("main.inlined"), (0, 300));
    assert_eq!(ms("main.branch"), (0, 510));
    let inlined = profile.texts.find("main.inlined").unwrap();
    let inlined = profile.frames.iter().find(|frame| frame.function == inlined).unwrap();
    assert_eq!((inlined.kind, inlined.line, inlined.address), (FrameKind::Inlined, 18, 0x4b097d));
    assert!(profile.module_path(inlined).ends_with("/burn"));
    assert_eq!(profile.about.rate, 100.0);

    let heap = read(PPROF, &fixture("go-heap.pb.gz"));
    let names: Vec<&str> = heap.events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["inuse_space", "alloc_objects", "alloc_space", "inuse_objects"]);
    assert_eq!(View::whole(&heap).event_name(), "inuse_space", "the default of pprof");
    let sum = |name: &str| {
        let event = names.iter().position(|other| *other == name).unwrap() as u32;
        let samples = heap.samples.iter().filter(|sample| sample.event == event);
        samples.map(|sample| sample.weight).sum::<u64>()
    };
    // "Showing nodes accounting for 1553.57kB, 100% of 1554.09kB total"
    assert_eq!(sum("alloc_space") * 100 / 1024, 155_409);
}

#[test]
fn reads_firefox_tables_per_thread_and_shared() {
    let profile = read(FIREFOX, &fixture("samply-like.profile.json"));
    assert_eq!(count(&profile, 0), 4);
    let expected =
        [("", 1), ("[app+0x1139] < [app+0x1200]", 1), ("[app+0x1150] < [app+0x1200]", 2)];
    assert_eq!(stacks(&profile), expected.map(|(stack, count)| (stack.to_owned(), count)));
    let module = &profile.modules[0];
    assert_eq!(profile.texts.get(module.path), "/build/app");
    assert_eq!(profile.texts.get(module.id), "6b1c9d");
    let times: Vec<u64> = profile.samples.iter().map(|sample| sample.time_ns).collect();
    assert_eq!(times, [1_000_000, 2_000_000, 3_500_000]);

    let profile = read(FIREFOX, &fixture("shared-tables.profile.json"));
    assert_eq!((profile.threads.len(), count(&profile, 0)), (2, 3));
    let all = stacks(&profile);
    assert_eq!(all[0].0, "inner < outer < run (app.py:7)");
    let inner = profile.texts.find("inner").unwrap();
    let inner = profile.frames.iter().find(|frame| frame.function == inner).unwrap();
    assert_eq!((inner.kind, inner.address), (FrameKind::Inlined, 16));
}

#[test]
fn samply_frames_keep_addresses_for_symbolization() {
    let profile = read(FIREFOX, &fixture("samply.profile.json"));
    assert_eq!(profile.quality.warnings, Vec::<String>::new());
    // `length` of the samples of the thread
    assert_eq!(count(&profile, 0), 11);
    let leaf = "[burn+0x114d] < [burn+0x1175] < [burn+0x11c2] < [libc.so.6+0x27249] < [libc.so.6+0x27304] < [burn+0x1070]";
    assert!(stacks(&profile).iter().any(|(stack, _)| stack == leaf));
    let module = profile
        .modules
        .iter()
        .find(|module| module.path == profile.texts.find("/tmp/stk/burn").unwrap());
    assert_eq!(profile.texts.get(module.unwrap().id), "7fa4f1192c039b86d008f6f760cb2ef1cdb563b7");
    let thread = &profile.threads[profile.samples[0].thread as usize];
    assert_eq!((thread.pid, thread.tid, profile.texts.get(thread.name)), (26978, 26978, "burn"));
    // In the file they are relative to the boot of the machine.
    let times: Vec<u64> = profile.samples.iter().map(|sample| sample.time_ns).collect();
    assert!(times[0] == 0 && times.is_sorted() && profile.about.duration_ns == times[10]);
}

#[test]
fn chrome_slices_nest_and_add_up() {
    let profile = matrix_product();
    let mut out = vec![];
    write::chrome(&View::whole(&profile), "run", &mut out).unwrap();
    keep("chrome.json", &out);
    let file: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let mut open: BTreeMap<u64, Vec<(String, f64)>> = BTreeMap::new();
    let mut times: BTreeMap<String, f64> = BTreeMap::new();
    let mut last: BTreeMap<u64, f64> = BTreeMap::new();
    for event in file["traceEvents"].as_array().unwrap() {
        let tid = event["tid"].as_u64().unwrap();
        let stack = open.entry(tid).or_default();
        let Some(ts) = event["ts"].as_f64() else { continue };
        assert!(ts >= last.insert(tid, ts).unwrap_or(0.0));
        match event["ph"].as_str().unwrap() {
            "B" => stack.push((event["name"].as_str().unwrap().to_owned(), ts)),
            _ => {
                let (name, start) = stack.pop().unwrap();
                *times.entry(name).or_default() += ts - start;
            }
        }
    }
    assert!(open.values().all(Vec::is_empty));
    let all = functions(&profile);
    for name in ["dgemm_kernel_HASWELL", "dgemm_oncopy_HASWELL", "exec_blas", "Py_RunMain"] {
        let expected = all[name].1.weight as f64 / 1e3;
        assert!((times[name] - expected).abs() < 1.0, "{name}: {} {expected}", times[name]);
    }
}

#[test]
fn chrome_places_samples_without_times() {
    let profile = parse(COLLAPSED, b"a;b 2\na;c 3\n").unwrap();
    let mut out = vec![];
    write::chrome(&View::whole(&profile), "run", &mut out).unwrap();
    let file: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let phases: Vec<(&str, f64)> = file["traceEvents"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["ph"] != "M")
        .map(|event| (event["ph"].as_str().unwrap(), event["ts"].as_f64().unwrap()))
        .collect();
    assert_eq!(phases, [("B", 0.0), ("B", 0.0), ("E", 2.0), ("B", 2.0), ("E", 5.0), ("E", 5.0)]);
}

/// Self and total values of each function, by name.
fn functions(profile: &Profile) -> BTreeMap<String, (Cost, Cost)> {
    let mut all: BTreeMap<String, (Cost, Cost)> = BTreeMap::new();
    for sample in &View::whole(profile).samples {
        let name = |frame: u32| {
            let frame = &profile.frames[frame as usize];
            let name = profile.texts.get(frame.function);
            // Text formats cannot contain control characters.
            let name = name.replace(|c: char| c.is_control(), " ");
            if name.is_empty() { frame_label(profile, frame) } else { name }
        };
        let mut names: Vec<String> = profile.frames_of(sample.stack).map(name).collect();
        if let Some(own) = names.first() {
            all.entry(own.clone()).or_default().0.add(Cost::of(sample));
        }
        names.sort();
        names.dedup();
        for name in names {
            all.entry(name).or_default().1.add(Cost::of(sample));
        }
    }
    all
}

type Written = fn(&View, &mut dyn Write) -> std::io::Result<()>;

/// Keeps the written files in the directory `LAGGARD_WRITTEN`, for checks with other programs.
fn keep(name: &str, content: &[u8]) {
    if let Some(directory) = std::env::var_os("LAGGARD_WRITTEN") {
        std::fs::write(Path::new(&directory).join(name), content).unwrap();
    }
}

#[test]
fn round_trips_all_formats() {
    let before = matrix_product();
    let formats: [(Format, Written, bool); 4] = [
        (COLLAPSED, |view, out| write::collapsed(view, out), false),
        (SPEEDSCOPE, |view, out| write::speedscope(view, "run", out), true),
        (PPROF, |view, out| write::pprof(view, "run", out), true),
        (FIREFOX, |view, out| write::firefox(view, "run", out), true),
    ];
    for (number, (format, write, has_weights)) in formats.into_iter().enumerate() {
        let mut out = vec![];
        write(&View::whole(&before), &mut out).unwrap();
        assert!((format.is_it)(&out), "{number}");
        keep(&format!("{number}.written"), &out);
        let after = parse(format, &out).unwrap();
        assert_eq!(after.quality.warnings, Vec::<String>::new(), "{number}");
        let (old, new) = (View::whole(&before), View::whole(&after));
        assert_eq!(old.whole.samples, new.whole.samples, "{number}");
        if has_weights {
            assert_eq!(old.whole.weight, new.whole.weight, "{number}");
            assert_eq!(functions(&before), functions(&after), "{number}");
            assert_eq!(after.threads.len(), 3);
        } else {
            let counts = |profile: &Profile| -> Vec<(String, u64, u64)> {
                let all = functions(profile).into_iter();
                all.map(|(name, (own, total))| (name, own.samples, total.samples)).collect()
            };
            assert_eq!(counts(&before), counts(&after), "{number}");
        }
    }
}

#[test]
fn truncated_file_is_read_or_rejected() {
    for (format, names) in FIXTURES {
        for name in names {
            let bytes = std::fs::read(fixture(name)).unwrap();
            for part in 0..200 {
                // Errors are detected by `sound` and by panics.
                let _ = parse(format, &bytes[..bytes.len() * part / 200]);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn damaged_file_is_read_or_rejected(
        which in 0usize..5,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let (format, names) = FIXTURES[which];
        for name in names {
            let mut bytes = decompressed(&fixture(name));
            for (at, byte) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            (format.is_it)(&bytes[..bytes.len().min(64 << 10)]);
            let _ = parse(format, &bytes);
        }
    }

    #[test]
    fn arbitrary_bytes_are_read_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for (format, _) in FIXTURES {
            (format.is_it)(&bytes);
            let _ = parse(format, &bytes);
        }
    }
}

/// `LAGGARD_COLLAPSED_MB=1000 cargo test --release -p laggard-formats --test stacks speed -- --nocapture`
#[test]
fn speed_of_reading_collapsed_stacks() {
    let megabytes: u64 = std::env::var("LAGGARD_COLLAPSED_MB").map_or(10, |mb| mb.parse().unwrap());
    for order in [Order::Sorted, Order::Mixed] {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let samples =
            laggard_samples::stacks::collapsed(megabytes * 1_000_000, 1, order, &mut file).unwrap();
        file.flush().unwrap();
        for _ in 0..3 {
            let start = std::time::Instant::now();
            let profile = collapsed::read(Source::open(file.path()).unwrap(), &|_| ()).unwrap();
            let taken = start.elapsed();
            assert_eq!(count(&profile, 0), samples);
            assert_eq!(profile.quality.warnings, Vec::<String>::new());
            eprintln!(
                "{order:?}: {megabytes} MB in {taken:?}, {:.0} MB/s; {} rows, {} nodes, {} frames",
                megabytes as f64 / taken.as_secs_f64(),
                profile.samples.len(),
                profile.stacks.len(),
                profile.frames.len()
            );
        }
    }
}
