//! callgrind files: a real one, unusual ones and damaged ones.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use laggard_core::model::calls::Calls;
use laggard_formats::read::callgrind::{Graph, is_callgrind, parse, read};
use laggard_formats::{Error, Source};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/profiles/inside.callgrind")
}

/// Calls as `caller > function xCOUNT INSTRUCTIONS`, for functions whose name has this prefix.
fn rows(calls: &Calls, start: &str) -> Vec<String> {
    let texts = &calls.profile.texts;
    let mut all: Vec<String> = calls
        .rows
        .iter()
        .filter_map(|row| {
            let name = texts.get(calls.functions[row.function as usize].name);
            let caller = &calls.profile.frames[row.caller as usize];
            let cost = row.instructions.map_or_else(String::new, |cost| format!(" {cost}"));
            let caller = texts.get(caller.function);
            name.starts_with(start).then(|| format!("{caller} > {name} x{}{cost}", row.count))
        })
        .collect();
    all.sort();
    all
}

fn everything(graph: &Graph) -> Calls {
    graph.calls(&mut |_, _, _| true)
}

#[test]
fn counts_of_real_file_match_its_source() {
    let graph = read(Source::open(&fixture()).unwrap()).unwrap();
    assert_eq!(graph.losses.to_string(), "");
    assert_eq!(graph.creator, "callgrind-3.19.0");
    assert_eq!(graph.command, "./inside_main 10");
    assert_eq!(graph.events.join(" "), "Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw");
    // Values from callgrind_annotate for the same file.
    assert_eq!(graph.totals[..3], [6058, 1452, 1053]);
    let calls = everything(&graph);
    let expected = [
        "inside_middle > inside_leaf x30 60",
        "inside_walk > inside_leaf x4 8",
        "inside_walk > inside_walk x4 164",
        "inside_work > inside_middle x10 350",
        "inside_work > inside_walk x1 91",
        "main > inside_work x1 516",
    ];
    assert_eq!(rows(&calls, "inside_"), expected);
    let leaf = calls
        .functions
        .iter()
        .position(|f| calls.profile.texts.get(f.name) == "inside_leaf")
        .unwrap();
    let own = calls.instructions.iter().find(|row| row.function as usize == leaf).unwrap();
    assert_eq!(own.own, 68);
    let module = &calls.profile.modules[calls.functions[leaf].module as usize];
    assert_eq!(calls.profile.texts.get(module.path), "/build/libinside.so");
}

#[test]
fn caller_is_the_call_site() {
    let graph = read(Source::open(&fixture()).unwrap()).unwrap();
    let calls = graph.calls(&mut |from, to, name| {
        from.ends_with("inside_main") && to.ends_with("libinside.so") && name == "inside_work"
    });
    assert_eq!(calls.rows.len(), 1);
    let frame = &calls.profile.frames[calls.rows[0].caller as usize];
    assert_eq!(calls.profile.module_path(frame), "/build/inside_main");
    assert!(calls.profile.texts.get(frame.file).ends_with("inside_main.c"));
    let source = include_str!("../../../subjects/probe/inside_main.c");
    let line = source.lines().nth(frame.line as usize - 1).unwrap();
    assert!(line.contains("inside_work(rounds)"), "{line}");
    assert!(frame.address > 0x1000 && frame.address < 0x2000, "{:x}", frame.address);
}

/// Unusual but valid files.
#[test]
fn reads_all_variants_of_the_format() {
    let check = |text: &str, expected: &[&str], losses: &str| {
        let graph = parse(text.as_bytes()).unwrap();
        assert_eq!(rows(&everything(&graph), ""), expected, "{text}");
        assert_eq!(graph.losses.to_string(), losses, "{text}");
    };
    // The smallest file: no version, no positions, no compression, omitted costs.
    check(
        "creator: x\nevents: Ir\nfn=main\n1 5\n2\ncfn=f\ncalls=3 20\n4 300\nfn=f\n20 300\ntotals: 305\n",
        &["main > f x3 300"],
        "",
    );
    // Positions of both kinds, relative and hexadecimal; two events; Windows line ends.
    check(
        "version: 1\r\npositions: instr line\r\nevents: Dr Ir\r\nob=(1) /a\r\nfn=(1) main\r\n\
         0x10 7 1 2\r\n+0x4 * 1 1\r\ncob=(2) /b\r\ncfi=(9) x.c\r\ncfn=(2) g\r\ncalls=2 0x40 -3\r\n\
         * +1 7 8\r\ncfn=(1)\r\ncalls=1 0x10 7\r\n-4 -8 1 1\r\ntotals: 2 3\r\n",
        &["main > g x2 8", "main > main x1 1"],
        "",
    );
    // Two parts with different events, the second with its own name ids.
    check(
        "# callgrind format\npart: 1\npositions: line\nevents: Ir\nfn=(1) a\n1 1\ncfn=(2) b\n\
         calls=1 1\n1 9\ntotals: 1\npart: 2\npositions: line\nevents: Dr Ir\nfn=(1) c\n1 5 1\n\
         cfn=(2) a\ncalls=4 1\n1 5 40\ntotals: 5 1\n",
        &["a > b x1 9", "c > a x4 40"],
        "",
    );
    // Calls at the same place are merged; jumps are ignored; costs without an event are ignored.
    check(
        "version: 1\nevents: Ir\nfn=a\ncfn=b'2\ncalls=1 1\n1 1\njump=3 9\n1\njcnd=1/2 8\n1\ncfn=b\n\
         calls=2 1\n1 2\nfn=(below main)\n1 6\nsummary: 6\n",
        &["a > b x3 3"],
        "",
    );
    // A cachegrind file has no calls.
    check("desc: x\ncmd: y\nevents: Ir I1mr\nfl=a.c\nfn=a\n1 5 0\nsummary: 5 0\n", &[], "");
    // Damaged files: unreadable lines are counted.
    check(
        "version: 1\nevents: Ir\nfn=(7)\n1 5 5\n1 x\nwhat is this\ncfn=b\ncalls=1 1\n1 2\n",
        &["(7) > b x1 2"],
        "unreadable lines: 3, first at line 4; undefined name ids: 1; the file has no total and may \
         be truncated",
    );
    check(
        "version: 1\nevents: Ir\nfn=a\n1 5\n2 99999999999999999999\ncalls=1 1\n1 2\ntotals: 7\n",
        &[],
        "unreadable lines: 2, first at line 5; costs add up to 5, but the total in the file is 7",
    );
    // Costs do not overflow.
    let most = u64::MAX;
    let text = format!(
        "version: 1\nevents: Ir\nfn=a\n1 {most}\n1 {most}\ncfn=b\ncalls={most} 1\n1 {most}\ncalls=1 1\n"
    );
    let graph = parse(text.as_bytes()).unwrap();
    assert_eq!(graph.own(0), [most]);
    assert_eq!(graph.calls[0].count, most);
}

#[test]
fn rejects_other_files() {
    for text in ["", "\n\n", "events: Ir\n", "hello\nevents: Ir\n", "{\"events:\": 1}", "\x7fELF"] {
        assert!(!is_callgrind(text.as_bytes()), "{text}");
    }
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs");
    let error = read(Source::open(&own).unwrap()).unwrap_err();
    assert!(
        matches!(error, Error::NotCallgrind { ref looks_like, .. } if looks_like == "plain text")
    );
}

#[test]
fn reads_truncated_file_up_to_its_end() {
    let bytes = std::fs::read(fixture()).unwrap();
    let whole = parse(&bytes).unwrap();
    for end in (100..bytes.len() - 40).step_by(997) {
        let Some(graph) = parse(&bytes[..end]) else { continue };
        assert!(graph.losses.is_cut, "{end}");
        assert!(
            graph.calls.len() <= whole.calls.len()
                && graph.functions.len() <= whole.functions.len()
        );
        everything(&graph);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Reading any damaged file ends, and all references in the result are valid.
    #[test]
    fn damaged_file_does_not_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..4), 1..60)) {
        let mut bytes = std::fs::read(fixture()).unwrap();
        for (at, byte, kind) in changes {
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes[at] = b"()=:*+- \n0x9"[byte as usize % 12],
                2 => { bytes.remove(at); }
                _ => {
                    let piece: Vec<u8> = bytes[at..].iter().take(byte as usize).copied().collect();
                    let to = at / 2;
                    bytes.splice(to..to, piece);
                }
            }
        }
        if let Some(graph) = parse(&bytes) {
            let calls = everything(&graph);
            for row in &calls.rows {
                prop_assert!((row.function as usize) < calls.functions.len());
                prop_assert!((row.caller as usize) < calls.profile.frames.len());
            }
        }
    }
}
