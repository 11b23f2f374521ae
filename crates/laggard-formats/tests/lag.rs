//! Damaged run files: with any byte changed or missing, reading gives the original content or an
//! error.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use laggard_core::classify::Rules;
use laggard_core::model::timeline::{Strings, Timeline};
use laggard_core::trace::link::link;
use laggard_core::trace::phase::Phases;
use laggard_core::trace::summary::Summary;
use laggard_core::trace::{Analysis, summarise};
use laggard_formats::lag::{self, Binding, Index, RunFile};
use laggard_formats::read::kineto::{self, Options};
use laggard_formats::{Error, Source};
use laggard_samples::kineto::{Gpu, Recipe, text};
use std::fs;
use std::path::{Path, PathBuf};

struct Indexed {
    directory: tempfile::TempDir,
    trace: PathBuf,
    timeline: Timeline,
    tables: (Vec<String>, String),
    summary: Summary,
}

impl Indexed {
    fn new(bytes: u64) -> Indexed {
        let directory = tempfile::tempdir().unwrap();
        let trace = directory.path().join("trace.json");
        fs::write(&trace, text(&Recipe::new(bytes, Gpu::Nvidia)).0).unwrap();
        let source = Source::open(&trace).unwrap();
        let mut timeline = kineto::read(source, &Options::default(), &|_| {}).unwrap();
        let phases = Phases::default();
        link(&mut timeline, &phases);
        let summary = summarise(&Analysis::new(&timeline, Rules::builtin(), &phases, None));
        let tables = tables(&timeline);
        Indexed { directory, trace, timeline, tables, summary }
    }

    fn save(&self) -> PathBuf {
        let binding = Binding::of(&self.trace).unwrap();
        let rules = Rules::builtin().fingerprint();
        lag::save(&self.trace, &self.timeline, &self.summary, rules, &binding).unwrap()
    }

    /// Opens a run file and reads all of it.
    fn read(path: &Path) -> Result<(Summary, Timeline), Error> {
        let file = RunFile::open(path)?;
        Ok((file.summary()?, file.timeline()?))
    }

    /// Asserts that the file is rejected or gives the original content.
    fn check(&self, path: &Path, what: &str) {
        match Indexed::read(path) {
            Ok((summary, timeline)) => {
                assert!(summary == self.summary, "{what}: another summary");
                assert!(tables(&timeline) == self.tables, "{what}: other tables");
            }
            Err(Error::BadRunFile { .. } | Error::OtherRunFile { .. }) => {}
            Err(other) => panic!("{what}: {other}"),
        }
    }
}

/// The whole content of a timeline, independent of its memory layout.
fn tables(timeline: &Timeline) -> (Vec<String>, String) {
    let texts = timeline.strings.iter().map(|(_, text)| text.to_owned()).collect();
    let rest = Timeline { strings: Strings::default(), ..timeline.clone() };
    (texts, format!("{rest:?}"))
}

#[test]
fn round_trips_index() {
    let indexed = Indexed::new(200_000);
    let (summary, timeline) = Indexed::read(&indexed.save()).unwrap();
    assert_eq!(summary, indexed.summary);
    assert!(tables(&timeline) == indexed.tables);
}

#[test]
fn detects_or_tolerates_changed_byte() {
    let indexed = Indexed::new(20_000);
    let whole = fs::read(indexed.save()).unwrap();
    let path = indexed.directory.path().join("damaged.lag");
    // Every byte without a checksum, which are around the manifest's text; a sample of the others.
    let beyond = (1000..whole.len()).step_by(61);
    for at in (0..1000).chain(whole.len().min(8900)..whole.len().min(9900)).chain(beyond) {
        let change = [0x01, 0x80, 0xff][at % 3];
        let mut damaged = whole.clone();
        damaged[at] ^= change;
        fs::write(&path, &damaged).unwrap();
        indexed.check(&path, &format!("byte {at} changed by {change:#x}"));
    }
}

#[test]
fn detects_or_tolerates_changed_length() {
    let indexed = Indexed::new(20_000);
    let whole = fs::read(indexed.save()).unwrap();
    let path = indexed.directory.path().join("damaged.lag");
    for length in (0..200).chain((200..whole.len()).step_by(211)) {
        fs::write(&path, &whole[..length]).unwrap();
        indexed.check(&path, &format!("truncated to {length}"));
    }
    let mut longer = whole.clone();
    longer.extend_from_slice(&whole);
    fs::write(&path, &longer).unwrap();
    indexed.check(&path, "doubled");
    // A hole, as left by a crash of the machine.
    let mut holed = whole.clone();
    holed[4096..8192].fill(0);
    fs::write(&path, &holed).unwrap();
    indexed.check(&path, "with a hole");
}

#[test]
fn rejects_index_truncated_while_mapped() {
    let indexed = Indexed::new(3 << 20);
    let path = indexed.save();
    let whole = fs::read(&path).unwrap();
    // Truncated to nothing, to a whole page, and within the last page, which raises no signal.
    for length in [0, 4096, whole.len() / 2, whole.len() - 10] {
        fs::write(&path, &whole).unwrap();
        let file = RunFile::open(&path).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_len(length as u64).unwrap();
        let read = file.timeline().map(|timeline| timeline.events);
        assert!(matches!(read, Err(Error::Shrank { .. })), "truncated to {length}: {read:?}");
        assert!(matches!(file.summary(), Err(Error::Shrank { .. })), "truncated to {length}");
    }
}

#[test]
fn detects_truncation_behind_loaded_tables() {
    let indexed = Indexed::new(3 << 20);
    let path = indexed.save();
    let file = RunFile::open(&path).unwrap();
    let timeline = file.timeline().unwrap();
    assert!(file.ensure_whole().is_ok());
    fs::File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
    let sum = timeline.gpu.spans.ts.iter().fold(0i64, |sum, ts| sum.wrapping_add(*ts));
    assert!(matches!(file.ensure_whole(), Err(Error::Shrank { .. })), "{sum}");
}

#[test]
fn index_of_changed_trace_is_stale() {
    let indexed = Indexed::new(1 << 20);
    indexed.save();
    let whole = fs::read(&indexed.trace).unwrap();
    let changed = fs::metadata(&indexed.trace).unwrap().modified().unwrap();
    let find = || lag::find(&indexed.trace, &Binding::of(&indexed.trace).unwrap());
    assert!(matches!(find(), Index::Fresh(_)));
    for at in [10, whole.len() / 2, whole.len() - 10] {
        let mut other = whole.clone();
        other[at] ^= 1;
        fs::write(&indexed.trace, &other).unwrap();
        fs::File::options()
            .write(true)
            .open(&indexed.trace)
            .unwrap()
            .set_modified(changed)
            .unwrap();
        assert!(matches!(find(), Index::Unusable(..)), "changed at {at}");
    }
    fs::write(&indexed.trace, &whole).unwrap();
    assert!(matches!(find(), Index::Unusable(..)), "rewritten later");
}
