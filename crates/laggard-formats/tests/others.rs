//! Files of other profilers and counters: real ones, ones written by their manuals, and damaged
//! ones.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use laggard_core::counters::{derive, totals};
use laggard_core::model::calls::Calls;
use laggard_core::model::counters::{Counters, Reading};
use laggard_core::model::profile::{FrameKind, Profile, Unit};
use laggard_core::profile::{Filter, View};
use laggard_formats::read::{callgrind, dtrace, dtruss, massif, perf_stat};
use laggard_formats::{Error, Source};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/profiles").join(name)
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(fixture(name)).unwrap()
}

fn counters(name: &str) -> Counters {
    perf_stat::read(Source::open(&fixture(name)).unwrap(), &|_| {}).unwrap()
}

/// Sums as `event value`.
fn sums(counters: &Counters) -> Vec<String> {
    let shown = |of: &laggard_core::model::counters::Counter| match of.reading {
        Reading::Value(value) => format!("{} {value}", of.label()),
        other => format!("{} {}", of.label(), other.word()),
    };
    totals(counters).iter().map(shown).collect()
}

fn figure(counters: &Counters, name: &str) -> Option<f64> {
    derive(counters, &totals(counters)).iter().find(|of| of.name == name).and_then(|of| of.value)
}

#[test]
fn reads_counters_without_hardware_events() {
    let read = counters("perf-stat.csv");
    assert_eq!(
        sums(&read),
        [
            "task-clock 2.79",
            "page-faults 1071",
            "context-switches 0",
            "cycles:u not supported",
            "instructions:u not supported",
        ]
    );
    assert_eq!(read.started, "Tue Nov 17 22:44:52 2026");
    assert_eq!(read.warnings, ["not supported by this machine: cycles:u, instructions:u"]);
    let row = &read.rows[1];
    assert_eq!((row.run_ns, row.counted), (Some(2_792_491), Some(1.0)));
    assert_eq!((row.metrics[0].value, row.metrics[0].text.as_str()), (Some(383.529), "K/sec"));
}

#[test]
fn reads_spread_of_repeated_runs() {
    let read = counters("perf-stat-repeat.csv");
    assert!((read.rows[0].spread.unwrap() - 0.0137).abs() < 1e-12);
    assert_eq!(read.rows[2].spread, None, "nothing was counted");
    let text = counters("perf-stat.txt");
    assert_eq!((text.command.as_str(), text.runs), ("./faults", Some(3)));
    assert!((text.rows[0].spread.unwrap() - 0.0612).abs() < 1e-12);
    assert_eq!(text.elapsed.map(|of| of.value), Some(0.00301));
    assert_eq!(sums(&text), ["task-clock 2.21", "page-faults 1077", "cycles not supported"]);
}

#[test]
fn sums_intervals_of_cpus() {
    let read = counters("perf-stat-intervals.csv");
    assert_eq!(read.rows.len(), 12);
    assert_eq!(read.rows[1].of, "CPU1");
    assert_eq!(read.rows[1].time_ns, Some(100_165_817));
    assert_eq!(totals(&read)[1].value(), Some(79.0 + 4924.0 + 2.0 + 3360.0 + 2792.0));
    assert_eq!(read.warnings, [""; 0]);
}

#[test]
fn json_and_text_agree() {
    assert_eq!(
        sums(&counters("perf-stat.json")),
        ["task-clock 3.024336", "page-faults 1075", "cycles not supported"]
    );
}

#[test]
fn merges_core_types_into_one_counter() {
    let read = counters("perf-stat-hybrid.csv");
    // 90 % of the time on large cores, 10 % on small ones. perf scales each to the whole run.
    assert_eq!(
        sums(&read),
        [
            "task-clock 12.5",
            "cycles 29000000",
            "instructions 56000000",
            "branches 4000000",
            "branch-misses 40000",
            "stalled-cycles-frontend not supported",
        ]
    );
    let parts: Vec<&str> = read.rows[1].parts.iter().map(|part| part.pmu.as_str()).collect();
    assert_eq!(parts, ["cpu_core", "cpu_atom"]);
    assert_eq!(read.rows[1].parts[1].value(), Some(2e7));
    assert_eq!(figure(&read, "instructions per cycle"), Some(56.0 / 29.0));
    assert!(read.warnings[0].contains("moved between core types"), "{:?}", read.warnings);
}

#[test]
fn derives_rates_from_hardware_counters() {
    let read = counters("perf-stat-hardware.csv");
    assert_eq!(read.warnings, [""; 0]);
    assert_eq!(figure(&read, "instructions per cycle"), Some(2.0));
    assert_eq!(figure(&read, "cache misses"), Some(0.2));
    assert_eq!(figure(&read, "branch misses"), Some(0.0025));
    assert_eq!(figure(&read, "L1 data cache load misses"), Some(0.05));
    assert_eq!(figure(&read, "clock rate"), Some(3e9));
    assert_eq!(read.rows[2].metrics.len(), 2, "a metric on its own line");
    assert_eq!(read.rows.last().unwrap().name, "event=0x3c,umask=0x0");
}

#[test]
fn counts_lines_of_program_output() {
    let mut text = b"hello, world\n".to_vec();
    text.extend(bytes("perf-stat.csv"));
    let read = perf_stat::parse(&text).unwrap();
    assert_eq!(read.rows.len(), 5);
    assert_eq!(read.warnings[0], "skipped 1 unrecognized line (first: line 1)");
    let refused = perf_stat::read(Source::open(&fixture("README.md")).unwrap(), &|_| {});
    assert!(matches!(refused, Err(Error::NotARecording { .. })));
}

type Reader = fn(Source, &(dyn Fn(u64) + Sync)) -> Result<Profile, Error>;

fn profile(name: &str, read: Reader) -> Profile {
    read(Source::open(&fixture(name)).unwrap(), &|_| {}).unwrap()
}

/// Stacks of an event as `outermost;…;innermost weight`.
fn stacks(profile: &Profile, event: u32) -> Vec<String> {
    let name = |frame: u32| profile.texts.get(profile.frames[frame as usize].function).to_owned();
    let of_event = profile.samples.iter().filter(|sample| sample.event == event);
    let mut all: Vec<String> = of_event
        .map(|sample| {
            let mut frames: Vec<String> = profile.frames_of(sample.stack).map(name).collect();
            frames.reverse();
            format!("{} {}", frames.join(";"), sample.weight)
        })
        .collect();
    all.sort();
    all
}

#[test]
fn reads_heap_at_peak() {
    let profile = profile("heap.massif", massif::read);
    // ms_print: 300,000B in block, 200,000B of it for columns and 100,000B for rows.
    assert_eq!(stacks(&profile, 0), ["main;columns;block 200000", "main;rows;block 100000"]);
    assert_eq!(profile.events[0].name, "heap at peak");
    assert_eq!(profile.events[1].name, "heap at snapshot 9 (183729 instructions)");
    assert_eq!(stacks(&profile, 1), ["main;columns;block 40000", "main;rows;block 100000"]);
    // ms_print: detailed snapshots 9, 19, 29, 39, 49 and 50, of 51.
    assert_eq!(profile.events.len(), 6);
    assert!(profile.events.iter().all(|event| event.unit == Unit::Bytes));
    let view = View::whole(&profile);
    assert_eq!((view.event, view.whole.weight), (0, 300_000));
    let line = profile.frames.iter().find(|frame| frame.line == 18).unwrap();
    assert_eq!(profile.texts.get(line.file), "heap.c");
    assert_eq!(profile.about.command, ["./heap"]);
    let fact = |name: &str| {
        let fact = profile.about.facts.iter().find(|fact| fact.0 == name);
        fact.map(|fact| fact.1.as_str()).unwrap()
    };
    assert_eq!(fact("snapshots"), "51, 6 with an allocation tree");
    assert_eq!(fact("heap at peak"), "300000 bytes");
    assert_eq!(fact("allocator overhead at peak"), "2000 bytes");
    assert_eq!(fact("time of peak"), "351210 instructions");
    assert_eq!(profile.quality.warnings, [""; 0]);
}

#[test]
fn places_below_threshold_become_a_mark() {
    let profile = profile("ls.massif", massif::read);
    let peak = stacks(&profile, 0);
    assert!(peak.contains(&"in 17 places, all below massif's threshold (4.00%) 9989".to_owned()));
    assert!(peak.contains(&"in 1 place, below massif's threshold (4.00%);0x1200B0 24".to_owned()));
    assert!(peak.contains(&"(below main);0x10CB6F;0x1200B0 20800".to_owned()), "{peak:?}");
    assert_eq!(View::whole(&profile).whole.weight, 66_493, "useful-heap of ms_print");
    let kinds = profile.frames.iter().filter(|frame| frame.kind == FrameKind::Mark).count();
    assert!(kinds >= 2);
    assert_eq!(profile.about.duration_ns % 1_000_000, 0);
    assert!(profile.modules.iter().any(|m| profile.texts.get(m.path) == "/usr/bin/ls"));
}

#[test]
fn massif_without_peak_uses_largest_snapshot() {
    let text = String::from_utf8(bytes("heap.massif")).unwrap();
    let cut = &text[..text.find("snapshot=40").unwrap()];
    let profile = massif::parse(cut.as_bytes()).unwrap();
    assert!(profile.events[0].name.starts_with("heap at snapshot 39 ("));
    assert_eq!(profile.quality.warnings, ["the file has no peak snapshot and may be truncated"]);
    let cut = &text[..text.find("snapshot=5\n").unwrap()];
    let why = massif::parse(cut.as_bytes()).unwrap_err();
    assert_eq!(why, "none of its 5 snapshots has an allocation tree");
}

#[test]
fn reads_dtrace_stacks() {
    let profile = profile("stacks.dtrace", dtrace::read);
    assert_eq!(
        stacks(&profile, 0),
        [
            "0x10a3b2c44;cblas_matrixproduct;cblas_sgemm 7",
            "start;main;Py_RunMain;_PyEval_EvalFrameDefault;0x1042f7c10;\
             raptors::accelerate_vsmul_f32(&[f32], f32);vDSP_vsmul 10",
            "start;main;Py_RunMain;_PyEval_EvalFrameDefault;PyUFunc_GenericFunction;FLOAT_matmul;\
             vDSP_mtrans;vDSP_mmul 3",
        ]
    );
    let view = View::whole(&profile);
    assert_eq!((view.event_name(), view.whole.weight), ("calls", 20));
    let filter = Filter { library: Some("BLAS".into()), ..Filter::default() };
    assert_eq!(View::new(&profile, &filter).unwrap().whole.weight, 7);
    assert_eq!(profile.quality.warnings, [""; 0]);
}

#[test]
fn reads_dtrace_counts_by_name_and_by_stack() {
    let by_name = profile("functions.dtrace", dtrace::read);
    assert_eq!(stacks(&by_name, 0), ["cblas_sgemm 7", "vDSP_mmul 3", "vDSP_vsmul 10"]);
    assert_eq!(by_name.events[0].name, "calls");
    // The same calls in two aggregations are not added.
    let both = profile("both.dtrace", dtrace::read);
    let names: Vec<&str> = both.events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["calls", "calls by name"]);
    assert_eq!(View::whole(&both).event_name(), "calls");
    assert_eq!(stacks(&both, 1), ["vDSP_vsmul 10"]);
}

#[test]
fn filtered_dtrace_gives_functions_without_counts() {
    let profile = profile("filtered.dtrace", dtrace::read);
    assert_eq!(
        stacks(&profile, 0),
        ["cblas_sgemm 1", "vDSP_mmul 1", "vDSP_mtrans 1", "vDSP_vsmul 1"]
    );
    assert_eq!(profile.events[0].name, "lines with a frame");
    assert!(profile.quality.warnings[0].starts_with("no stack has a count"));
}

#[test]
fn dtrace_keys_before_a_stack_become_marks() {
    let text =
        "  python3.11   1234\n        libc`read+0x1\n        5\n\n  sh\n        libc`read\n   2\n";
    let profile = dtrace::parse(text.as_bytes()).unwrap();
    assert_eq!(stacks(&profile, 0), ["python3.11 1234;read 5", "sh;read 2"]);
}

fn system_calls(name: &str) -> Calls {
    dtruss::read(Source::open(&fixture(name)).unwrap(), &|_| {}).unwrap()
}

/// System calls as `thread name xCOUNT NANOSECONDS`.
fn call_rows(calls: &Calls) -> Vec<String> {
    let row = |row: &laggard_core::model::calls::CallRow| {
        let name = calls.profile.texts.get(calls.functions[row.function as usize].name);
        let tid = calls.profile.threads[row.thread as usize].tid;
        format!("{tid:x} {name} x{} {}", row.count, row.total_ns)
    };
    calls.rows.iter().map(row).collect()
}

#[test]
fn reads_dtruss_system_calls() {
    let calls = system_calls("all.dtruss");
    assert_eq!(
        call_rows(&calls),
        [
            "5f21 open x1 45000",
            "5f21 fstat64 x1 12000",
            "5f21 mmap x1 20000",
            "5f21 close x1 5000",
            "5f21 stat64 x1 33000",
            "5f22 read x2 2000000",
            "6001 stat64 x1 7000",
        ]
    );
    let read = &calls.rows[5];
    assert_eq!((read.min_ns, read.max_ns, read.histogram.len()), (950_000, 1_050_000, 2));
    let failed: Vec<(&str, u64)> =
        calls.failures.iter().map(|row| (calls.profile.texts.get(row.error), row.count)).collect();
    assert_eq!(failed, [("ENOENT", 1), ("ENOENT", 1)]);
    assert_eq!(calls.profile.quality.warnings, [""; 0], "the summary table agrees");
}

#[test]
fn reads_filtered_dtruss() {
    let plain = system_calls("plain.dtruss");
    assert_eq!(plain.rows.iter().map(|row| row.count).sum::<u64>(), 8);
    assert!(plain.rows.iter().all(|row| row.total_ns == 0 && row.histogram.is_empty()));
    let filtered = system_calls("filtered.dtruss");
    assert_eq!(call_rows(&filtered), ["5f21 open x1 0", "5f21 stat64 x1 0", "6001 stat64 x1 0"]);
    // Columns without a header are not guessed.
    let text = "  12 read(0x3, 0x1, 0x2)\t\t = 4 0\n";
    let calls = dtruss::parse(text.as_bytes()).unwrap();
    assert_eq!(calls.rows[0].total_ns, 0);
    assert!(calls.profile.quality.warnings[0].contains("header is missing"));
}

#[test]
fn reads_dtruss_stacks_and_tables() {
    let text = "SYSCALL(args) \t\t = return\nread(0x3, 0x1, 0x2)\t\t = 4 0\n\n              \
                libsystem_kernel.dylib`__read_nocancel+0xa\n              a.out`main+0x10\n\n";
    let calls = dtruss::parse(text.as_bytes()).unwrap();
    let caller = &calls.profile.frames[calls.rows[0].caller as usize];
    assert_eq!(calls.profile.texts.get(caller.function), "__read_nocancel");
    assert_eq!(calls.profile.module_path(caller), "libsystem_kernel.dylib");
    let table = "CALL                     COUNT\nread                        3\nclose    1\n";
    assert!(dtruss::is_dtruss(table.as_bytes()));
    let calls = dtruss::parse(table.as_bytes()).unwrap();
    assert_eq!(call_rows(&calls), ["0 read x3 0", "0 close x1 0"]);
}

#[test]
fn callgrind_profile_has_exact_costs() {
    let profile = profile("inside.callgrind", callgrind::read_profile);
    let graph = callgrind::read(Source::open(&fixture("inside.callgrind")).unwrap()).unwrap();
    let names: Vec<&str> = profile.events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["Ir", "Dr", "Dw", "I1mr", "D1mr", "D1mw", "ILmr", "DLmr", "DLmw"]);
    let mut sums = vec![0; names.len()];
    let mut own: std::collections::HashMap<(&str, &str, u32), u64> = Default::default();
    for sample in &profile.samples {
        sums[sample.event as usize] += sample.weight;
        let innermost = profile.frames_of(sample.stack).next().unwrap();
        let frame = &profile.frames[innermost as usize];
        let key = (profile.module_path(frame), profile.texts.get(frame.function), sample.event);
        *own.entry(key).or_default() += sample.weight;
    }
    // Values from callgrind_annotate for the same file.
    assert_eq!(sums, [6058, 1452, 1053, 172, 67, 48, 171, 33, 45]);
    assert_eq!(sums, graph.totals);
    for (number, function) in (0..).zip(&graph.functions) {
        let (object, name) = (graph.texts.get(function.object), graph.texts.get(function.name));
        for (event, cost) in (0..).zip(graph.own(number)) {
            assert_eq!(own.get(&(object, name, event)).copied().unwrap_or(0), *cost, "{name}");
        }
    }
    assert_eq!(View::whole(&profile).event_name(), "Ir");
    assert!(profile.quality.warnings[0].starts_with("stacks are inferred from a call graph"));
}

#[test]
fn callgrind_costs_are_split_among_callers() {
    // `leaf` costs 40: 30 for a, 10 for b. `b` is called only by main.
    let text = "# callgrind format\nevents: Ir\nfl=x.c\nfn=main\n1 5\ncfn=a\ncalls=1 0\n2 32\n\
                cfn=b\ncalls=1 0\n3 11\nfn=a\n10 2\ncfn=leaf\ncalls=3 0\n11 30\nfn=b\n20 1\n\
                cfn=leaf\ncalls=1 0\n21 10\nfn=leaf\n30 25\n31 15\nsummary: 48\ntotals: 48\n";
    let graph = callgrind::parse_lines(text.as_bytes()).unwrap();
    let profile = callgrind::profile(&graph);
    // Lines are separate frames: 25 and 15 are split three to one, with the rounding error in the
    // first.
    assert_eq!(
        stacks(&profile, 0),
        [
            "main 5",
            "main;a 2",
            "main;a;leaf 12",
            "main;a;leaf 19",
            "main;b 1",
            "main;b;leaf 3",
            "main;b;leaf 6",
        ]
    );
    let lines: Vec<u32> = profile.frames.iter().map(|frame| frame.line).collect();
    assert!([1, 2, 3, 10, 11, 30, 31].iter().all(|line| lines.contains(line)), "{lines:?}");
    assert!(profile.frames.iter().all(|frame| profile.texts.get(frame.file) == "x.c"));
}

#[test]
fn callgrind_cycles_end_and_paths_are_bounded() {
    // a and b call each other; main enters at a.
    let text = "# callgrind format\nevents: Ir\nfn=main\n1 1\ncfn=a\ncalls=1 0\n1 30\nfn=a\n1 10\n\
                cfn=b\ncalls=2 0\n1 20\nfn=b\n1 20\ncfn=a\ncalls=1 0\n1 10\ntotals: 31\n";
    let profile = callgrind::profile(&callgrind::parse_lines(text.as_bytes()).unwrap());
    assert_eq!(stacks(&profile, 0), ["main 1", "main;a 10", "main;a;b 20"]);
    assert_eq!(profile.quality.warnings[1], "cyclic calls omitted from stacks: 1");
    // Thirty levels of two functions that each call both of the next: 2^30 paths.
    let mut text = "# callgrind format\nevents: Ir\n".to_owned();
    for level in 0..30 {
        for side in ["l", "r"] {
            text += &format!("fn={side}{level}\n1 1000\n");
            for callee in ["l", "r"] {
                let cost = (29 - level) * 1000;
                text += &format!("cfn={callee}{}\ncalls=1 0\n1 {cost}\n", level + 1);
            }
        }
    }
    let profile = callgrind::profile(&callgrind::parse_lines(text.as_bytes()).unwrap());
    let whole: u64 = profile.samples.iter().map(|sample| sample.weight).sum();
    assert_eq!(whole, 60_000);
    assert!(profile.stacks.len() < 100_000);
}

/// Files that every reader must distinguish from its own, and the reader of each.
const FILES: [(&str, &str); 17] = [
    ("perf-stat.csv", "perf stat"),
    ("perf-stat-repeat.csv", "perf stat"),
    ("perf-stat-intervals.csv", "perf stat"),
    ("perf-stat-hybrid.csv", "perf stat"),
    ("perf-stat-hardware.csv", "perf stat"),
    ("perf-stat.json", "perf stat"),
    ("perf-stat.txt", "perf stat"),
    ("heap.massif", "massif"),
    ("ls.massif", "massif"),
    ("stacks.dtrace", "dtrace"),
    ("functions.dtrace", "dtrace"),
    ("both.dtrace", "dtrace"),
    ("filtered.dtrace", "dtrace"),
    ("all.dtruss", "dtruss"),
    ("plain.dtruss", "dtruss"),
    ("filtered.dtruss", "dtruss"),
    ("inside.callgrind", "callgrind"),
];

#[test]
fn each_file_is_detected_by_one_reader() {
    let told = |head: &[u8]| {
        use laggard_formats::read;
        let all = [
            ("perf stat", perf_stat::is_perf_stat(head)),
            ("massif", massif::is_massif(head)),
            ("dtrace", dtrace::is_dtrace(head)),
            ("dtruss", dtruss::is_dtruss(head)),
            ("callgrind", callgrind::is_callgrind(head)),
            ("perf", read::perf::is_perf(head)),
            ("bench", read::bench::kind_of(head).is_some()),
        ];
        all.into_iter().filter(|(_, is)| *is).map(|(name, _)| name).collect::<Vec<_>>()
    };
    for (file, expected) in FILES {
        assert_eq!(told(&bytes(file)), [expected], "{file}");
    }
    for other in ["../decode.json", "../amd-compact.json", "README.md", "../README.md"] {
        assert_eq!(told(&bytes(other)), [""; 0], "{other}");
    }
    for directory in ["../bench", "../not-traces", "../traps"] {
        for file in std::fs::read_dir(fixture(directory)).unwrap() {
            let path = file.unwrap().path();
            let Ok(text) = std::fs::read(&path) else { continue };
            let names: Vec<&str> = told(&text).into_iter().filter(|of| *of != "bench").collect();
            assert!(names.is_empty() || names == ["callgrind"], "{} {names:?}", path.display());
        }
    }
    let others = [
        "x=`date`\n  y=`ls`\n",
        "main;a;b 12\nmain;c 3\n",
        "read(3, \"\", 4) = 4\nclose(3) = 0\n",
        "python 1234 [000] 1.5: 1000 cycles:\n\t7f12 f (/lib/x.so)\n\n",
        "  a.txt  12\n  b.txt  13\n",
    ];
    for text in others {
        assert_eq!(told(text.as_bytes()), [""; 0], "{text:?}");
    }
    for text in ["", "\n\n", "a b c\n", "name count\nread 5\n", "[1, 2]", "{}", "1,2,3\n4,5,6\n"] {
        assert_eq!(told(text.as_bytes()), [""; 0], "{text:?}");
    }
}

/// Every reader returns for any bytes.
fn survives(text: &[u8]) {
    if let Some(counters) = perf_stat::parse(text) {
        let totals = totals(&counters);
        derive(&counters, &totals);
        assert!(totals.iter().filter_map(|row| row.value()).all(|value| value >= 0.0));
    }
    let profiles = [
        massif::parse(text).ok(),
        dtrace::parse(text),
        callgrind::parse_lines(text).map(|graph| callgrind::profile(&graph)),
    ];
    for profile in profiles.into_iter().flatten() {
        let view = View::whole(&profile);
        laggard_core::profile::totals(&view, laggard_core::profile::By::Function);
        let is_there = |sample: &laggard_core::model::profile::Sample| {
            (sample.stack as usize) < profile.stacks.len()
                && (sample.event as usize) < profile.events.len()
                && (sample.thread as usize) < profile.threads.len()
        };
        assert!(profile.samples.iter().all(is_there));
    }
    if let Some(calls) = dtruss::parse(text) {
        assert!(calls.rows.iter().all(|row| (row.thread as usize) < calls.profile.threads.len()));
    }
}

#[test]
fn reads_truncated_files() {
    for (file, _) in FILES {
        let text = bytes(file);
        for end in (0..text.len()).step_by(1 + text.len() / 500) {
            survives(&text[..end]);
        }
    }
}

proptest! {
    #[test]
    fn damage_does_not_panic(
        (file, _) in prop::sample::select(FILES.to_vec()),
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let mut text = bytes(file);
        for (place, byte) in places {
            let at = place.index(text.len());
            text[at] = byte;
        }
        survives(&text);
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(text in prop::collection::vec(any::<u8>(), 0..400)) {
        survives(&text);
    }

    #[test]
    fn arbitrary_fields_do_not_panic(
        lines in prop::collection::vec("[0-9<>a-z,;./:%`()=# -]{0,40}", 0..8),
    ) {
        survives(lines.join("\n").as_bytes());
    }
}
