//! Reads output of `perf stat`: CSV (`-x`), JSON (`-j`) and text.
//!
//! You give a [`Source`], you get [`Counters`]: a row for each event, scope (`-A`, `--per-thread`,
//! …) and interval (`-I`). Counters of the core types of a hybrid CPU are merged into one row with
//! parts. Values are those of perf, which scales multiplexed counters. Other lines, such as output
//! of the command itself, are counted in `warnings`. A file without counters is an error.
//!
//! - `csv`: fields of a line, with any separator
//! - `json`: one object per line
//! - `text`: human-readable output in any locale
//! - `event`: event names

mod csv;
mod event;
mod json;
mod text;

use crate::error::Error;
use crate::source::Source;
use laggard_core::counters::merge_cores;
use laggard_core::model::counters::{Counter, Counters, Metric, Reading};
use rustc_hash::FxHashSet;

/// Maximum size of a file: more than a day of `-I 10`.
const LARGEST: u64 = 1 << 30;
/// Lines used for format detection.
const LINES_FOR_DETECTION: usize = 100;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Fields separated by this character.
    Csv(char),
    Json,
    Text,
}

/// Whether a file with this head is `perf stat` output.
pub fn is_perf_stat(head: &[u8]) -> bool {
    kind_of(head).is_some()
}

/// Reads a file. `progress` receives the number of bytes read, once.
pub fn read(source: Source, progress: &(dyn Fn(u64) + Sync)) -> Result<Counters, Error> {
    let (path, text) = source.whole(LARGEST)?;
    let Some(counters) = parse(&text) else {
        let head = &text[..text.len().min(super::HEAD_FOR_DETECTION)];
        let what =
            format!("no perf stat counters found; it looks like {}", super::looks_like(head, &[]));
        return Err(Error::NotARecording { path, what });
    };
    progress(text.len() as u64);
    Ok(counters)
}

/// Parses a file. `None` if it is of another kind.
pub fn parse(text: &[u8]) -> Option<Counters> {
    let kind = kind_of(&text[..text.len().min(super::HEAD_FOR_DETECTION)])?;
    let text = String::from_utf8_lossy(text);
    let mut counters = Counters { tool: "perf stat".into(), ..Counters::default() };
    let mut lost = Lost::default();
    let mut reader = text::Reader::default();
    for (number, line) in (1u64..).zip(text.lines()) {
        let line = line.trim_start_matches('\u{feff}').trim_end();
        if line.trim().is_empty() || about(line, &mut counters) {
            continue;
        }
        let read = match kind {
            Kind::Csv(separator) => csv::row(line, separator),
            Kind::Json => json::row(line),
            Kind::Text => reader.row(line, &mut counters),
        };
        match read {
            Some(Line::Row(row)) => counters.rows.push(*row),
            // An additional metric of the previous counter.
            Some(Line::Metric(metric)) => {
                if let Some(row) = counters.rows.last_mut() {
                    row.metrics.push(metric);
                }
            }
            Some(Line::Nothing) => {}
            None => lost.add(number),
        }
    }
    finish(&mut counters, &lost);
    (!counters.rows.is_empty()).then_some(counters)
}

/// A parsed line.
enum Line {
    Row(Box<Counter>),
    Metric(Metric),
    /// A line other than a counter, such as a heading.
    Nothing,
}

/// Unrecognized lines.
#[derive(Default)]
struct Lost {
    lines: u64,
    first: u64,
}

impl Lost {
    fn add(&mut self, number: u64) {
        if self.lines == 0 {
            self.first = number;
        }
        self.lines += 1;
    }
}

/// Parses comments that all formats can have. Returns whether the line is one.
fn about(line: &str, counters: &mut Counters) -> bool {
    let Some(remark) = line.strip_prefix('#') else { return false };
    if let Some(when) = remark.trim().strip_prefix("started on ") {
        when.trim().clone_into(&mut counters.started);
    }
    true
}

fn finish(counters: &mut Counters, lost: &Lost) {
    let (rows, weighed) = merge_cores(std::mem::take(&mut counters.rows));
    counters.rows = rows;
    let warnings = &mut counters.warnings;
    if lost.lines > 0 {
        let (n, first) = (lost.lines, lost.first);
        let lines = if n == 1 {
            "skipped 1 unrecognized line"
        } else {
            &format!("skipped {n} unrecognized lines")
        };
        warnings.push(format!("{lines} (first: line {first})"));
    }
    if weighed > 0 {
        warnings.push(
            "the program moved between core types: perf scales the counts of each type to the whole \
             run, so the sums here are weighted by the time on each type"
                .to_owned(),
        );
    }
    // A counter without a value in one interval or on one CPU is not a loss.
    let known: FxHashSet<String> =
        counters.rows.iter().filter(|row| row.value().is_some()).map(Counter::label).collect();
    for (reading, words) in [
        (Reading::NotSupported, "not supported by this machine"),
        (Reading::NotCounted, "not counted"),
    ] {
        let mut told = FxHashSet::default();
        let rows = counters.rows.iter().filter(|row| row.reading == reading);
        let names = rows.map(Counter::label).filter(|name| !known.contains(name));
        let names: Vec<String> = names.filter(|name| told.insert(name.clone())).collect();
        if !names.is_empty() {
            warnings.push(format!("{words}: {}", names.join(", ")));
        }
    }
}

/// The format of a file with this head. `None` if it is of another kind.
fn kind_of(head: &[u8]) -> Option<Kind> {
    let is_cut = head.len() >= super::HEAD_FOR_DETECTION;
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let mut lines: Vec<&[u8]> = head.split(|byte| *byte == b'\n').collect();
    if is_cut {
        lines.pop();
    }
    let text = |line: &&[u8]| std::str::from_utf8(line).ok().map(str::trim_end).map(str::to_owned);
    let lines: Vec<String> =
        lines.iter().take(LINES_FOR_DETECTION).filter_map(text).filter(|l| !l.is_empty()).collect();
    if lines.iter().any(|line| text::is_heading(line)) {
        return Some(Kind::Text);
    }
    let rows: Vec<&str> =
        lines.iter().map(String::as_str).filter(|line| !line.starts_with('#')).collect();
    // The command may have written other lines, but fewer than perf.
    let is_most = |known: usize| known > 0 && 2 * known >= rows.len();
    if is_most(rows.iter().filter(|line| json::row(line).is_some()).count()) {
        return Some(Kind::Json);
    }
    let separators = rows.iter().find_map(|line| csv::separator(line));
    let known = |separator| rows.iter().filter(|line| csv::row(line, separator).is_some()).count();
    separators.filter(|&separator| is_most(known(separator))).map(Kind::Csv)
}
