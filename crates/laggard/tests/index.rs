//! Indexes of traces: they make later loads faster and never change a report, even if damaged.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use common::{Place, Ran, fixtures, names};
use laggard_samples::Rng;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use xxhash_rust::xxh3::xxh3_64;

const TRACE: &str = "nvidia-native.json";
const INDEX: &str = "nvidia-native.json.lagi";

/// Two reports that need only the summary, and two that need the tables too.
const REPORTS: [&[&str]; 4] = [
    &["report", TRACE],
    &["report", "--json", TRACE],
    &["report", "--by", "op", TRACE],
    &["report", "--all", "--stacks", "--by", "shape", "--json", TRACE],
];

fn no_index(report: &[&'static str]) -> Vec<&'static str> {
    [report, &["--no-index"]].concat()
}

/// Asserts that a report is correct, with at most one message about the index. Returns whether the
/// index was used.
fn check(place: &Place, report: &[&str], expected: &str, what: &str) -> bool {
    let ran = place.run(report);
    assert_eq!(ran.code, Some(0), "{what}: {}", ran.stderr);
    assert!(ran.stdout == expected, "{what}: wrong output of {report:?}");
    let messages = other_messages(&ran.stderr);
    if let [message, rest @ ..] = &messages[..] {
        assert!(message.starts_with("ignoring ") && rest.is_empty(), "{what}: {}", ran.stderr);
    }
    messages.is_empty()
}

/// Messages other than that an index was written.
fn other_messages(stderr: &str) -> Vec<&str> {
    stderr.lines().filter(|line| !line.starts_with("wrote index ")).collect()
}

/// The messages about an index that is replaced, for this reason.
fn replaced(why: &str) -> String {
    format!(
        "ignoring index {INDEX}: {why}; -v lists further unusable indexes\nwrote index {INDEX}\n"
    )
}

/// Changes the manifest of an index and updates its checksum.
fn change_manifest(index: &Path, from: &str, to: &str) {
    assert_eq!(from.len(), to.len());
    let mut bytes = fs::read(index).unwrap();
    let find = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).position(|w| w == part);
    let start = find(&bytes, b"{\"schema\":").unwrap();
    let text = start..start + 8192;
    let old = xxh3_64(&bytes[text.clone()]).to_le_bytes();
    let at = start + find(&bytes[text.clone()], from.as_bytes()).unwrap();
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    let checksum = text.end + find(&bytes[text.end..], &old).unwrap();
    let new = xxh3_64(&bytes[text]).to_le_bytes();
    bytes[checksum..checksum + 8].copy_from_slice(&new);
    fs::write(index, bytes).unwrap();
}

#[test]
fn second_load_uses_the_index() {
    for report in REPORTS {
        let place = Place::with(&[TRACE]);
        let expected = place.data(&no_index(report));
        assert_eq!(place.names(), [TRACE], "--no-index wrote an index");
        let verbose = [&["-v"], report].concat();
        let (first, second) = (place.run(&verbose), place.run(&verbose));
        assert_eq!(first.stderr, format!("wrote index {INDEX}\n"));
        assert_eq!(second.stderr, "loaded from the index\n");
        assert_eq!(place.names(), [TRACE, INDEX]);
        assert!(first.stdout == expected && second.stdout == expected, "{report:?}");
        assert!(!place.cache().exists());
    }
}

#[test]
fn reports_are_equal_with_and_without_index() {
    for name in [TRACE, "decode.json", "three-members.json.gz", "ranks/rank1.json"] {
        let place = Place::with(&[name]);
        let trace = Path::new(name).file_name().unwrap().to_str().unwrap();
        place.data(&["report", trace]);
        for form in ["text", "json", "csv", "md"] {
            for more in [&[][..], &["--all"], &["--top", "300"], &["--stacks"], &["--unclassified"]]
            {
                let report = [&["report", trace, "--format", form], more].concat();
                let expected = place.data(&[&report[..], &["--no-index"]].concat());
                assert!(place.data(&report) == expected, "{name}: {report:?}");
            }
        }
        for by in [
            "class", "group", "kernel", "phase", "op", "shape", "python", "module", "stream",
            "launch", "geometry",
        ] {
            let report = ["report", trace, "--json", "--all", "--by", by];
            let expected = place.data(&[&report[..], &["--no-index"]].concat());
            assert!(place.data(&report) == expected, "{name}: by {by}");
        }
        let own = ["report", trace, "--phase-pattern", "mine=*", "--by", "phase"];
        let expected = place.data(&[&own[..], &["--no-index"]].concat());
        assert!(place.data(&own) == expected, "{name}: user-defined phases");
    }
}

#[test]
fn no_index_ignores_an_existing_index() {
    let place = Place::with(&[TRACE]);
    fs::write(place.path(INDEX), b"\xff\xff\xff\xff, and nothing behind").unwrap();
    let ran = place.run(&["-v", "report", "--no-index", TRACE]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(fs::read(place.path(INDEX)).unwrap(), b"\xff\xff\xff\xff, and nothing behind");
}

#[test]
fn reloads_a_changed_trace() {
    for report in REPORTS {
        // Changes a digit at the start, in the middle, or near the end.
        for part in 0..3 {
            let place = Place::with(&[TRACE]);
            place.data(report);
            let path = place.path(TRACE);
            let time = fs::metadata(&path).unwrap().modified().unwrap();
            let mut bytes = fs::read(&path).unwrap();
            let from = bytes.len() * part / 3;
            let digit = (from..bytes.len()).find(|&i| bytes[i] == b'1').unwrap();
            bytes[digit] = b'2';
            fs::write(&path, &bytes).unwrap();
            File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
            let expected = place.data(&no_index(report));
            let ran = place.run(report);
            assert!(ran.stdout == expected, "part {part}: report of the old trace");
            assert_eq!(ran.stderr, replaced("the trace has changed"), "part {part}");
            assert!(check(&place, report, &expected, "the index was not written again"));
        }
    }
}

#[test]
fn reloads_a_trace_with_another_size_or_mtime() {
    let place = Place::with(&[TRACE]);
    let report = ["report", TRACE];
    place.data(&report);
    let mut bytes = fs::read(place.path(TRACE)).unwrap();
    bytes.push(b'\n');
    fs::write(place.path(TRACE), &bytes).unwrap();
    let longer = place.data(&["report", "--no-index", TRACE]);
    assert!(!check(&place, &report, &longer, "longer"));
    assert!(check(&place, &report, &longer, "longer, again"));
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
    File::options().write(true).open(place.path(TRACE)).unwrap().set_modified(later).unwrap();
    assert!(!check(&place, &report, &longer, "later"));
    // A moved trace with the same mtime keeps its index.
    fs::create_dir(place.path("moved")).unwrap();
    for name in [TRACE, INDEX] {
        fs::rename(place.path(name), place.path("moved").join(name)).unwrap();
    }
    let ran = place.run(&["-v", "report", &format!("moved/{TRACE}")]);
    assert_eq!(ran.stderr, "loaded from the index\n");
}

#[test]
fn damaged_indexes_never_change_a_report() {
    let place = Place::with(&[TRACE]);
    let reports = [REPORTS[0], REPORTS[2]];
    let expected = reports.map(|report| place.data(report));
    let whole = fs::read(place.path(INDEX)).unwrap();
    let mut rng = Rng::new(2);
    let (mut refused, mut used) = (0, 0);
    let quick = std::env::var_os("LAGGARD_QUICK").is_some();
    let places = if quick { 30 } else { 120 };
    for i in 0..places {
        let mut bytes = whole.clone();
        // Half of the damages are spread over the file, half over its first bytes.
        let span = if i % 2 == 0 { whole.len() } else { 10_000 };
        let at = (span * i / places + rng.below(50) as usize).min(whole.len() - 1);
        let what = match i % 5 {
            0 => {
                bytes.truncate(at);
                format!("cut at {at}")
            }
            1 => {
                let end = (at + 200).min(bytes.len());
                bytes[at..end].fill(0);
                format!("zeros at {at}")
            }
            _ => {
                bytes[at] ^= 1 << rng.below(8);
                format!("a bit changed at {at}")
            }
        };
        for (report, expected) in reports.iter().zip(&expected) {
            fs::write(place.path(INDEX), &bytes).unwrap();
            if check(&place, report, expected, &what) {
                used += 1;
            } else {
                refused += 1;
                assert!(
                    fs::read(place.path(INDEX)).unwrap() == whole,
                    "{what}: index not rewritten"
                );
            }
        }
    }
    assert!(refused > 0 && used > 0, "{refused} refused, {used} used");
    assert_eq!(place.names(), [TRACE, INDEX]);
}

#[test]
fn replaces_an_empty_index() {
    let place = Place::with(&[TRACE]);
    let expected = place.data(REPORTS[0]);
    fs::write(place.path(INDEX), "").unwrap();
    assert!(!check(&place, REPORTS[0], &expected, "empty"));
    assert!(check(&place, REPORTS[0], &expected, "empty before"));
}

#[test]
fn keeps_a_foreign_file_with_the_name_of_the_index() {
    let place = Place::with(&[TRACE]);
    let expected = place.data(&no_index(REPORTS[0]));
    fs::write(place.path(INDEX), "my own notes").unwrap();
    assert!(!check(&place, REPORTS[0], &expected, "first"));
    assert_eq!(fs::read(place.path(INDEX)).unwrap(), b"my own notes");
    assert_eq!(names(&place.cache()).len(), 1);
    assert!(check(&place, REPORTS[0], &expected, "second"));
    assert_eq!(place.run(&[&["-v"], REPORTS[2]].concat()).stderr, "loaded from the index\n");
    place.data(&["index", "--clear"]);
    assert_eq!(fs::read(place.path(INDEX)).unwrap(), b"my own notes");
    assert!(names(&place.cache()).is_empty());
}

#[test]
fn keeps_run_files_of_other_kinds() {
    let place = Place::with(&[TRACE]);
    let expected = place.data(REPORTS[0]);
    change_manifest(&place.path(INDEX), "laggard.index/1", "laggard.sampl/1");
    let before = fs::read(place.path(INDEX)).unwrap();
    fs::copy(place.path(INDEX), place.path("recording.lag")).unwrap();
    assert!(!check(&place, REPORTS[0], &expected, "another kind"));
    place.data(&["index", "--clear"]);
    place.data(&["index", "--clear", "recording.lag"]);
    assert!(fs::read(place.path(INDEX)).unwrap() == before);
    assert!(fs::read(place.path("recording.lag")).unwrap() == before);
    // Damaged files of unknown kind are removed only if named.
    fs::write(place.path("recording.lag"), &before[..300]).unwrap();
    place.data(&["index", "--clear"]);
    assert_eq!(fs::read(place.path("recording.lag")).unwrap().len(), 300);
    place.data(&["index", "--clear", "recording.lag"]);
    assert!(!place.path("recording.lag").exists());
}

#[test]
fn rewrites_an_index_of_another_version() {
    let place = Place::with(&[TRACE]);
    let expected = place.data(REPORTS[0]);
    let whole = fs::read(place.path(INDEX)).unwrap();
    change_manifest(&place.path(INDEX), "laggard.index/1", "laggard.index/9");
    let ran = place.run(REPORTS[0]);
    assert!(ran.stdout == expected);
    let why = "its format is laggard.index/9, but this version reads laggard.index/1";
    assert_eq!(ran.stderr, replaced(why));
    assert!(fs::read(place.path(INDEX)).unwrap() == whole);
}

#[test]
fn recomputes_a_summary_of_other_rules() {
    let place = Place::with(&[TRACE]);
    let expected = place.data(REPORTS[0]);
    let index = place.path(INDEX);
    let whole = fs::read(&index).unwrap();
    let text = String::from_utf8_lossy(&whole).into_owned();
    let (_, rules) = text.split_once("\"rules\":").unwrap();
    let rules = rules.split_once(',').unwrap().0;
    let other = rules.chars().map(|digit| if digit == '1' { '2' } else { '1' }).collect::<String>();
    change_manifest(&index, rules, &other);
    assert!(check(&place, REPORTS[0], &expected, "other rules"));
    assert!(fs::read(&index).unwrap() == whole, "the summary was not written again");
    assert!(check(&place, REPORTS[0], &expected, "the rules of this program"));
}

#[test]
fn user_rules_neither_use_nor_change_the_summary() {
    let place = Place::with(&[TRACE]);
    let expected = place.data(REPORTS[0]);
    let whole = fs::read(place.path(INDEX)).unwrap();
    let rules = "[[rule]]\nclass = \"Mine\"\ngroup = \"Ours\"\nprefix = [\"nvjet\"]\n";
    fs::write(place.path("mine.toml"), rules).unwrap();
    let mine = place.data(&["report", "--rules", "mine.toml", TRACE]);
    assert!(mine.contains("Mine"));
    assert!(mine == place.data(&["report", "--rules", "mine.toml", "--no-index", TRACE]));
    assert!(fs::read(place.path(INDEX)).unwrap() == whole);
    fs::remove_file(place.path(INDEX)).unwrap();
    assert!(mine == place.data(&["report", "--rules", "mine.toml", TRACE]));
    assert!(place.data(REPORTS[0]) == expected);
}

#[test]
fn falls_back_to_the_cache_directory() {
    let place = Place::with(&[TRACE]);
    // A directory with the name of the index: even root cannot write there.
    fs::create_dir(place.path(INDEX)).unwrap();
    let first = place.run(&["-v", "report", TRACE]);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    assert!(first.stderr.starts_with("wrote index ") && first.stderr.contains("cache"));
    assert_eq!(names(&place.cache()).len(), 1);
    let second = place.run(&["-v", "report", TRACE]);
    assert_eq!(second.stderr, "loaded from the index\n");
    assert!(first.stdout == second.stdout);
    // The cache distinguishes traces by their full path.
    fs::create_dir(place.path("other")).unwrap();
    fs::copy(fixtures().join("decode.json"), place.path("other").join(TRACE)).unwrap();
    fs::create_dir(place.path("other").join(INDEX)).unwrap();
    let other = format!("other/{TRACE}");
    let expected = place.data(&["report", "--no-index", &other]);
    assert_eq!(place.data(&["report", &other]), expected);
    assert_eq!(place.data(&["report", &other]), expected);
    assert_eq!(names(&place.cache()).len(), 2);
}

#[test]
fn unwritable_cache_only_loses_the_index() {
    let place = Place::with(&[TRACE]);
    let expected = place.data(&no_index(REPORTS[0]));
    fs::create_dir(place.path(INDEX)).unwrap();
    let mut command = place.command(REPORTS[0]);
    command.env("XDG_CACHE_HOME", place.path(TRACE));
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout == expected);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.starts_with("warning: no index was written: "), "{}", ran.stderr);
}

#[cfg(unix)]
#[test]
fn full_disk_only_loses_the_index() {
    let place = Place::with(&[TRACE]);
    let expected = place.data(&no_index(REPORTS[0]));
    // Limits the file size in kilobytes; the index needs about 60.
    for kilobytes in [0, 4, 30] {
        let mut command = Command::new("bash");
        let line = format!("trap '' XFSZ; ulimit -f {kilobytes}; exec \"$0\" \"$@\"");
        command.args(["-c", &line, env!("CARGO_BIN_EXE_laggard")]).args(REPORTS[0]);
        place.settle(&mut command);
        let ran = Ran::from(command.output().unwrap());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stdout == expected);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
        assert!(ran.stderr.starts_with("warning: no index was written: "), "{}", ran.stderr);
        assert_eq!(place.names(), [TRACE], "something was left behind");
        assert!(names(&place.cache()).is_empty(), "something was left in the cache");
    }
}

#[test]
fn concurrent_runs_agree_and_leave_one_index() {
    let place = Place::with(&[TRACE]);
    let expected = place.data(&no_index(REPORTS[1]));
    for round in 0..4 {
        // Without an index, with a valid one, with a damaged one, and without one again.
        match round {
            2 => fs::write(place.path(INDEX), b"\xff\xff\xff\xff").unwrap(),
            3 => fs::remove_file(place.path(INDEX)).unwrap(),
            _ => {}
        }
        let start = || {
            let mut command = place.command(REPORTS[1]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let children: Vec<_> = (0..8).map(|_| start()).collect();
        for child in children {
            let ran = Ran::from(child.wait_with_output().unwrap());
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            assert!(ran.stdout == expected, "round {round}: wrong output");
        }
        assert_eq!(place.names(), [TRACE, INDEX], "round {round}");
        let ran = place.run(&[&["-v"], REPORTS[1]].concat());
        assert_eq!(ran.stderr, "loaded from the index\n", "round {round}");
    }
}

#[test]
fn each_rank_has_an_index() {
    let place = Place::with(&["ranks/rank0.json", "ranks/rank1.json", "ranks/rank2.json"]);
    let expected = place.data(&["report", "--no-index", "."]);
    assert_eq!(place.data(&["report", "."]), expected);
    assert_eq!(place.names().iter().filter(|name| name.ends_with(".lagi")).count(), 3);
    assert_eq!(place.data(&["report", "."]), expected);
    fs::write(place.path("rank1.json.lagi"), b"\xff\xff\xff\xff").unwrap();
    let ran = place.run(&["report", "."]);
    assert_eq!(ran.stdout, expected);
    assert_eq!(other_messages(&ran.stderr).len(), 1, "{}", ran.stderr);
}

#[test]
fn a_copied_directory_with_stale_indexes_prints_one_message() {
    let place = Place::with(&["ranks/rank0.json", "ranks/rank1.json", "ranks/rank2.json"]);
    let expected = place.data(&["report", "."]);
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
    for rank in 0..3 {
        let trace = File::options().write(true).open(place.path(&format!("rank{rank}.json")));
        trace.unwrap().set_modified(later).unwrap();
    }
    let ran = place.run(&["report", "."]);
    assert_eq!((ran.code, &ran.stdout), (Some(0), &expected));
    let messages = other_messages(&ran.stderr);
    assert_eq!(messages.len(), 1, "{}", ran.stderr);
    assert!(messages[0].ends_with("; -v lists further unusable indexes"), "{}", ran.stderr);
    assert_eq!(other_messages(&place.run(&["report", "."]).stderr), [""; 0]);
}

#[test]
fn traces_that_load_fast_get_no_index() {
    let place = Place::with(&[TRACE]);
    let load = |after: &str| {
        let mut command = place.command(REPORTS[0]);
        Ran::from(command.env("LAGGARD_INDEX_AFTER", after).output().unwrap())
    };
    let ran = load("1h");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(place.names(), [TRACE]);
    assert_eq!(load("0s").stderr, format!("wrote index {INDEX}\n"));
    assert_eq!(load("1h").stderr, "", "the index is used");
    // A stale index would cause a message at every load, so it is replaced.
    fs::write(place.path(INDEX), "").unwrap();
    assert!(load("1h").stderr.ends_with(&format!("wrote index {INDEX}\n")));
}

#[test]
fn indexes_of_earlier_versions_are_listed_and_deleted_but_not_used() {
    let place = Place::with(&[TRACE]);
    let expected = place.data(REPORTS[0]);
    let old = format!("{TRACE}.lag");
    fs::rename(place.path(INDEX), place.path(&old)).unwrap();
    let ran = place.run(&[&["-v"], REPORTS[0]].concat());
    assert_eq!((ran.stdout, ran.stderr), (expected, format!("wrote index {INDEX}\n")));
    let text = place.data(&["index", "--stale"]);
    let why = "an earlier version wrote it; indexes now end in .lagi";
    assert!(text.contains(&format!("{old}  ({why})")), "{text}");
    for words in [&["index", "--stale", "--clear"][..], &["index"]] {
        assert!(place.data(words).contains(" 1 index, "), "{words:?}");
        assert_eq!(place.names(), [TRACE, INDEX]);
    }
}

#[test]
fn lists_and_clears_indexes() {
    let place = Place::with(&[]);
    let traces = ["good.json", "changed.json", "damaged.json", "gone.json", "cached.json"];
    fs::create_dir(place.path("cached.json.lagi")).unwrap();
    for trace in traces {
        fs::copy(fixtures().join("traps/unsorted.json"), place.path(trace)).unwrap();
        place.data(&["report", trace]);
    }
    fs::write(place.path("changed.json"), "{\"traceEvents\": []}").unwrap();
    fs::write(place.path("damaged.json.lagi"), b"\xff\xff\xff\xff and so on").unwrap();
    fs::remove_file(place.path("gone.json")).unwrap();
    fs::write(place.path("foreign.lag"), "my own notes").unwrap();

    let listed = |args: &[&str]| -> Vec<(String, Option<String>)> {
        let text = place.data(&[&["index", "--json"], args].concat());
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["schema"], "laggard.index-list/1");
        let row = |entry: &serde_json::Value| {
            let path = Path::new(entry["path"].as_str().unwrap());
            let in_cache = path.starts_with(place.cache());
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let trace = entry["trace"].as_str().unwrap();
            let name = if in_cache { format!("cache of {trace}") } else { name };
            (name, entry["problem"].as_str().map(str::to_owned))
        };
        let mut rows: Vec<_> = json["indexes"].as_array().unwrap().iter().map(row).collect();
        rows.sort();
        rows
    };
    let cached =
        format!("cache of {}", fs::canonicalize(place.path("cached.json")).unwrap().display());
    let problem = |name: &str, problem: &str| (name.to_owned(), Some(problem.to_owned()));
    let stale = vec![
        problem("changed.json.lagi", "the trace has changed"),
        problem("damaged.json.lagi", "the manifest is missing"),
        problem("gone.json.lagi", "the trace no longer exists"),
    ];
    let mut all = stale.clone();
    all.extend([(cached.clone(), None), ("good.json.lagi".to_owned(), None)]);
    all.sort();
    assert_eq!(listed(&[]), all);
    assert_eq!(listed(&["--stale"]), stale);
    assert_eq!(listed(&[".", "good.json", "good.json.lagi", "cached.json"]), all, "listed twice");
    let text = place.data(&["index"]);
    assert!(text.contains("gone.json.lagi  (the trace no longer exists)"), "{text}");
    assert!(text.contains("found 5 indexes, "), "{text}");

    assert_eq!(listed(&["--stale", "--clear"]), stale);
    assert_eq!(listed(&[]), [(cached, None), ("good.json.lagi".to_owned(), None)]);
    assert_eq!(listed(&["--clear"]).len(), 2);
    assert_eq!(listed(&[]), []);
    let mut left = vec!["cached.json", "cached.json.lagi", "changed.json", "damaged.json"];
    left.extend(["foreign.lag", "good.json"]);
    assert_eq!(place.names(), left);
    assert_eq!(fs::read(place.path("foreign.lag")).unwrap(), b"my own notes");
}
