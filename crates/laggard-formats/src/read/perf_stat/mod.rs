//! What `perf stat` writes: its CSV (`-x`), its JSON (`-j`) and its text for people.
//!
//! You give a [`Source`], you get [`Counters`]: a row for every event and whom it was counted for
//! (`-A`, `--per-thread`, …) and every interval (`-I`). Counters of the kinds of cores of a hybrid
//! processor are one row, with its parts. Values are as perf wrote them, which has scaled them up
//! where counters took turns. Lines that are something else, such as what the command itself wrote
//! between them, are counted in `warnings`; a file without any counter is refused.
//!
//! - `csv`: the fields of a line, with any separator
//! - `json`: one object a line
//! - `text`: what perf writes for people, in any language
//! - `event`: names of events

mod csv;
mod event;
mod json;
mod text;

use crate::error::Error;
use crate::source::Source;
use laggard_core::counters::merge_cores;
use laggard_core::model::counters::{Counter, Counters, Metric, Reading};
use rustc_hash::FxHashSet;

/// Larger texts are not read: a day of `-I 10` is smaller.
const LARGEST: u64 = 1 << 30;
/// Lines at the start that are looked at to tell what a file is.
const LINES_FOR_DETECTION: usize = 100;

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// With this between fields.
    Csv(char),
    Json,
    Text,
}

/// Whether a file that starts like this is one of `perf stat`.
pub fn is_perf_stat(head: &[u8]) -> bool {
    kind_of(head).is_some()
}

/// Reads a file. `progress` is told how many bytes were read, once.
pub fn read(source: Source, progress: &(dyn Fn(u64) + Sync)) -> Result<Counters, Error> {
    let (path, text) = source.whole(LARGEST)?;
    let Some(counters) = parse(&text) else {
        let head = &text[..text.len().min(super::HEAD_FOR_DETECTION)];
        let what = format!(
            "it has no counters of perf stat, and looks like {}",
            super::looks_like(head, &[])
        );
        return Err(Error::NotARecording { path, what });
    };
    progress(text.len() as u64);
    Ok(counters)
}

/// Reads the text of a file; None when it is of another kind.
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
            // A further metric of the counter before.
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

/// What a line says.
enum Line {
    Row(Box<Counter>),
    Metric(Metric),
    /// Something around the counters.
    Nothing,
}

/// Lines that could not be read.
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

/// Remarks that any kind of file may have; whether it was one.
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
        let lines =
            if n == 1 { "1 line is no counter" } else { &format!("{n} lines are no counters") };
        warnings.push(format!("{lines} and left out, the first is line {first}"));
    }
    if weighed > 0 {
        warnings.push(
            "the program moved between kinds of cores: perf scales what each kind counted up to the \
             whole run, so the sums here are weighed by the time on each"
                .to_owned(),
        );
    }
    // In one interval or on one processor nothing is no loss.
    let known: FxHashSet<String> =
        counters.rows.iter().filter(|row| row.value().is_some()).map(Counter::label).collect();
    for (reading, words) in [
        (Reading::NotSupported, "not supported by this machine"),
        (Reading::NotCounted, "never counted"),
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

/// How a file is written that starts like this; None when it is of another kind.
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
    // The command may have written something too, but not most of it.
    let is_most = |known: usize| known > 0 && 2 * known >= rows.len();
    if is_most(rows.iter().filter(|line| json::row(line).is_some()).count()) {
        return Some(Kind::Json);
    }
    let separators = rows.iter().find_map(|line| csv::separator(line));
    let known = |separator| rows.iter().filter(|line| csv::row(line, separator).is_some()).count();
    separators.filter(|&separator| is_most(known(separator))).map(Kind::Csv)
}
