//! The trace reader on synthetic traces. All paths, instruction sets, numbers of threads and
//! sources give the same rows. Damaged traces are read as far as possible.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use laggard_core::model::timeline::Timeline;
use laggard_formats::read::kineto::{self, Isa, Options, Paths};
use laggard_formats::{Bytes, Error, Source};
use laggard_samples::{compress, fixtures, kineto as generated, traps};
use std::fmt::Write;
use std::io::Cursor;
use std::path::{Path, PathBuf};

fn options(paths: Paths, isa: Isa, threads: usize) -> Options {
    Options { paths, isa, threads, smallest_chunk: 500 }
}

fn read_mapped(text: &[u8], options: &Options) -> Result<Timeline, Error> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.json");
    std::fs::write(&path, text).unwrap();
    kineto::read(Source::open(&path).unwrap(), options, &|_| {})
}

fn read_stream(text: &[u8], options: &Options) -> Result<Timeline, Error> {
    let source = Source {
        path: PathBuf::from("stream"),
        bytes: Bytes::Stream(Box::new(Cursor::new(text.to_vec()))),
    };
    kineto::read(source, options, &|_| {})
}

/// Every row of every table with its names and ids resolved, so that numbering does not matter.
fn rows(t: &Timeline) -> String {
    let mut out = String::new();
    let text = |id: u32| if id == u32::MAX { "-" } else { t.strings.get(id) };
    let id = |code: u32| if code == u32::MAX { "-".to_owned() } else { t.ids.text(code) };
    let mut table = |name: &str,
                     spans: &laggard_core::model::timeline::Spans,
                     more: &dyn Fn(usize) -> String| {
        for row in 0..spans.len() {
            let (kind, track) =
                (&t.kinds[spans.kind[row] as usize], &t.tracks[spans.track[row] as usize]);
            let place = format!(
                "{}/{} {:?}/{:?}",
                id(track.pid),
                id(track.tid),
                text(track.process),
                text(track.thread)
            );
            writeln!(
                out,
                "{name} {} {} {:?} {}:{} {place} {}",
                spans.ts[row],
                spans.dur[row],
                text(spans.name[row]),
                kind.phase,
                kind.category,
                more(row)
            )
            .unwrap();
        }
    };
    let (g, o, i) = (&t.gpu, &t.ops, &t.instants);
    table("gpu", &g.spans, &|r| {
        let ids = [
            &g.correlation,
            &g.external,
            &g.stream,
            &g.device,
            &g.registers,
            &g.shared_memory,
            &g.bytes,
        ]
        .map(|c| id(c[r]));
        format!("{ids:?} {} {}", text(g.grid[r]), text(g.block[r]))
    });
    table("runtime", &t.runtime.spans, &|r| {
        format!("{} {}", id(t.runtime.correlation[r]), id(t.runtime.external[r]))
    });
    table("op", &o.spans, &|r| {
        format!(
            "{} {:?}",
            id(o.external[r]),
            [&o.dims, &o.types, &o.concrete, &o.call_stack].map(|c| text(c[r]))
        )
    });
    table("python", &t.python.spans, &|r| {
        format!("{} {}", id(t.python.id[r]), id(t.python.parent[r]))
    });
    table("annotation", &t.annotations.spans, &|r| id(t.annotations.external[r]));
    table("flow", &t.flows.spans, &|r| id(t.flows.id[r]));
    table("instant", &i.spans, &|r| {
        format!(
            "{:?}",
            [&i.bytes, &i.total_allocated, &i.total_reserved, &i.device, &i.device_type]
                .map(|c| id(c[r]))
        )
    });
    table("counter", &t.counters.spans, &|r| text(t.counters.values[r]).to_owned());
    table("other", &t.others.spans, &|r| {
        format!(
            "{} {} {}",
            id(t.others.correlation[r]),
            id(t.others.external[r]),
            id(t.others.stream[r])
        )
    });
    for c in &t.collectives {
        writeln!(
            out,
            "collective {} {} {:?} {:?}",
            c.on_gpu,
            c.row,
            [c.operation, c.dtype, c.group, c.ranks].map(text),
            [c.elements_in, c.elements_out, c.group_size].map(id)
        )
        .unwrap();
    }
    writeln!(out, "{:?} {} {:?}", t.about, t.events, t.losses).unwrap();
    out
}

/// Asserts that all readers of the text give the rows of the careful path.
fn check(what: &str, text: &[u8]) {
    let careful = read_mapped(text, &options(Paths::Careful, Isa::Portable, 1))
        .map(|t| rows(&t))
        .map_err(|e| e.to_string().replace("trace.json", ""));
    let compare =
        |how: &str, other: Result<Timeline, Error>| match (&careful, other.map(|t| rows(&t))) {
            (Ok(careful), Ok(other)) => {
                for (i, (a, b)) in careful.lines().zip(other.lines()).enumerate() {
                    assert_eq!(a, b, "{what}: line {i} differs {how}");
                }
                assert_eq!(careful.lines().count(), other.lines().count(), "{what}: {how}");
            }
            (Err(_), Err(_)) => {}
            (a, b) => panic!("{what}: {how}: {a:?} against {b:?}"),
        };
    for isa in [Isa::detect(), Isa::Portable] {
        for paths in [Paths::Any, Paths::Walk] {
            for threads in [1, 2, 5] {
                compare(
                    &format!("by {paths:?}, {isa:?}, {threads} threads"),
                    read_mapped(text, &options(paths, isa, threads)),
                );
            }
            compare(
                &format!("by {paths:?}, {isa:?}, streamed"),
                read_stream(text, &options(paths, isa, 1)),
            );
        }
    }
}

#[test]
fn all_paths_give_equal_rows_on_random_malformed_files() {
    for seed in 0..40 {
        check(&format!("seed {seed}"), traps::random_trap(seed, 400).as_bytes());
    }
}

#[test]
fn all_paths_give_equal_rows_on_fixtures_and_malformed_files() {
    for fixture in fixtures::all()
        .unwrap()
        .iter()
        .filter(|fixture| !fixture.path.contains(".gz") && !fixture.path.contains(".zst"))
    {
        check(&fixture.path, &fixture.bytes);
    }
}

#[test]
fn keeps_complete_events_of_truncated_file() {
    for seed in 0..6 {
        let text = traps::random_trap(seed, 200);
        for cut in (0..10).map(|i| text.len() * i / 10) {
            check(&format!("seed {seed} cut at {cut}"), &text.as_bytes()[..cut]);
        }
    }
}

#[test]
fn reads_streams_across_many_windows() {
    let (text, totals) = generated::text(&generated::Recipe::new(9 << 20, generated::Gpu::Amd));
    let streamed = read_stream(text.as_bytes(), &options(Paths::Any, Isa::detect(), 1)).unwrap();
    let mapped =
        read_mapped(text.as_bytes(), &Options { threads: 3, ..Options::default() }).unwrap();
    assert_eq!(streamed.events, totals.events);
    assert!(rows(&streamed) == rows(&mapped));
}

#[test]
fn totals_match_the_generator() {
    for fixture in fixtures::all().unwrap() {
        let Some(found) = fixture.found else { continue };
        let bytes = compress::expand(&fixture.bytes);
        let timeline = read_stream(&bytes, &Options::default())
            .unwrap_or_else(|error| panic!("{}: {error}", fixture.path));
        let kernels: Vec<usize> = (0..timeline.gpu.spans.len())
            .filter(|&row| {
                timeline.kinds[timeline.gpu.spans.kind[row] as usize]
                    .category
                    .eq_ignore_ascii_case("kernel")
            })
            .collect();
        let time: i64 = kernels.iter().map(|&row| timeline.gpu.spans.dur[row].max(0)).sum();
        assert_eq!(
            (timeline.events, kernels.len() as u64, time),
            (found.events, found.kernels, found.kernel_ns as i64),
            "{}",
            fixture.path
        );
    }
}

#[test]
fn rejects_other_files_by_name() {
    for sample in traps::not_traces() {
        let error = read_mapped(&sample.bytes, &Options::default())
            .map(|t| t.events)
            .or_else(|_| read_stream(&sample.bytes, &Options::default()).map(|t| t.events));
        assert!(matches!(error, Err(Error::UnknownFormat { .. })), "{}: {error:?}", sample.name);
    }
}

#[test]
fn damage_does_not_panic() {
    let bases: Vec<Vec<u8>> = vec![
        traps::random_trap(7, 150).into_bytes(),
        generated::text(&generated::Recipe::new(60_000, generated::Gpu::Nvidia)).0.into_bytes(),
        compress::gz(traps::random_trap(8, 150).as_bytes(), 2).unwrap(),
        compress::zst(traps::random_trap(9, 150).as_bytes()).unwrap(),
    ];
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("damaged");
    for seed in 0..400 {
        let mut bytes = bases[seed as usize % bases.len()].clone();
        for round in 0..=seed % 3 {
            traps::damage(seed * 7 + round, &mut bytes);
        }
        std::fs::write(&path, &bytes).unwrap();
        let Ok(source) = Source::open(Path::new(&path)) else { continue };
        let threads = 1 + seed as usize % 3;
        let _ = kineto::read(source, &options(Paths::Any, Isa::detect(), threads), &|_| {});
    }
}

/// The assertions of the fuzz target, for a bounded number of texts. Paths can differ on texts that
/// are not JSON, because the faster paths do not look at unused parts.
#[test]
fn paths_agree_on_damaged_texts_that_are_json() {
    let mut compared = 0;
    for seed in 0..2000 {
        let mut text = traps::random_trap(seed % 50, 12).into_bytes();
        traps::damage(seed, &mut text);
        let valid = serde_json::from_slice::<serde::de::IgnoredAny>(&text).is_ok();
        let events = |paths| {
            let options = options(paths, Isa::detect(), 1);
            read_stream(&text, &options).map(|timeline| timeline.events).ok()
        };
        let all = [Paths::Careful, Paths::Walk, Paths::Any].map(events);
        if valid {
            compared += 1;
            assert_eq!(all, [all[0]; 3], "seed {seed}");
        }
    }
    assert!(compared > 50, "{compared}");
}

#[test]
fn reports_damaged_metadata_once() {
    let event = r#"{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2}"#;
    for damage in ["tru", "@@", "1 2", "{]"] {
        // After one window of a stream, and after many.
        for padding in [10, 3 << 20] {
            let pad = "x".repeat(padding);
            check(
                &format!("{damage}, {padding} bytes before the events"),
                format!(r#"{{"a":{damage},"pad":"{pad}","traceEvents":[{event},{event}]}}"#)
                    .as_bytes(),
            );
        }
    }
}

const KERNEL: &str = r#"{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":10,"dur":5,"args":{"correlation":1,"stream":7,"device":0}}"#;

/// Checks events, kernels and losses of a text in which `K` is a kernel, mapped and streamed.
fn check_counts(text: &str, events: u64, kernels: usize, losses: &str) {
    let text = text.replace('K', KERNEL);
    for timeline in [
        read_mapped(text.as_bytes(), &Options::default()),
        read_stream(text.as_bytes(), &Options::default()),
    ] {
        let timeline = timeline.unwrap();
        let lost: Vec<String> = timeline
            .losses
            .iter()
            .map(|loss| format!("{} {}", loss.reason.key(), loss.count))
            .collect();
        assert_eq!(
            (timeline.events, timeline.gpu.spans.len(), lost.join(", ").as_str()),
            (events, kernels, losses),
            "{text:.300}"
        );
    }
}

#[test]
fn keeps_complete_events_around_broken_ones() {
    check_counts(r#"{"traceEvents":[K,{"a"x},K,K]}"#, 4, 3, "not-json 1");
    check_counts(r#"{"traceEvents":[K,{"ph":"X","name":"a", K,K,K]}"#, 5, 4, "not-json 1");
    check_counts(
        r#"{"traceEvents":[K,{"ph":"X","name":"a "quoted" b","ts":1,"dur":1},K]}"#,
        3,
        2,
        "unescaped-quotes 1",
    );
    check_counts(r#"{"traceEvents":[K,{"ph":x],"traceName":"t"}"#, 2, 1, "not-json 1");
    check_counts("\u{feff}{\"traceEvents\":[K]}", 1, 1, "");
    check_counts("\u{feff}[K]", 1, 1, "");
}

#[test]
fn crafted_traces_take_linear_time() {
    // Each of these once took quadratic time or memory.
    check_counts(
        &format!(r#"{{{}"traceEvents":[K]}}"#, r#""traceEvents":[],"#.repeat(20_000)),
        1,
        1,
        "",
    );
    check_counts(&format!(r#"{{{}"traceEvents":[K]}}"#, r#""a":1,"#.repeat(300_000)), 1, 1, "");
    let keys: String = (0..200_000).map(|i| format!(r#","a{i}":1"#)).collect();
    check_counts(
        &format!(r#"{{"traceEvents":[K,{{"ph":"X","ts":1,"dur":1{keys}}},K]}}"#),
        3,
        2,
        "",
    );
    check_counts(
        &format!(r#"{{"traceEvents":[K,{{"ph":"X","ts":1,"args":{{"b":1{keys}}}}},K]}}"#),
        3,
        2,
        "",
    );
    check_counts(
        &format!(r#"{{"traceEvents":[K,x,{}"#, r#"{"a":[{},"#.repeat(60_000)),
        1,
        1,
        "truncated 1, not-an-object 1",
    );
    check_counts(
        &format!(r#"{{"traceEvents":[K,{{x {}"#, r#"],"a":[1"#.repeat(150_000)),
        2,
        1,
        "not-json 1",
    );
}

#[test]
fn keeps_kernels_among_many_categories() {
    let odd = |i: usize| {
        format!(r#"{{"ph":"X","cat":"c{i}","name":"n","pid":0,"tid":7,"ts":{i},"dur":1}},"#)
    };
    let odd: String = (0..300).map(odd).collect();
    check_counts(&format!(r#"{{"traceEvents":[{odd}K]}}"#), 301, 1, "too-many-kinds 100");
}
