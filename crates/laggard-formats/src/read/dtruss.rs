//! Reads text output of `dtruss`: the system calls of a program on macOS, one per line.
//!
//! You give a [`Source`], you get [`Calls`] of the module `[kernel]`, as from `laggard calls
//! --syscalls`. Calls are counted by thread, by error and, with `-s`, by caller. They are timed if
//! the lines have elapsed times (`-e`, `-a`), in whole microseconds. The header defines the
//! columns. In text without a header (`dtruss … | grep`), three numbers are relative time, elapsed
//! time and CPU time; fewer numbers are ignored. The table of `-c` is used only if the file has no
//! lines of calls.

use crate::error::Error;
use crate::source::Source;
use laggard_core::model::NONE;
use laggard_core::model::calls::{CallRow, Calls, FailureRow, Function};
use laggard_core::model::profile::{Frame, FrameKind, Interner, Module, Thread};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Maximum size of a file.
const LARGEST: u64 = 1 << 30;
/// Lines used for format detection.
const LINES_FOR_DETECTION: usize = 200;

/// Columns before the call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Columns {
    /// Number of numeric columns.
    numbers: usize,
    /// Index of the elapsed time among them.
    elapsed: Option<usize>,
}

/// A line with a call.
#[derive(Debug, PartialEq, Eq)]
struct Call<'a> {
    pid: u32,
    tid: u64,
    numbers: Vec<u64>,
    name: &'a str,
    /// 0 on success.
    error: u32,
}

/// Whether a file with this head is dtruss output.
pub fn is_dtruss(head: &[u8]) -> bool {
    if head.contains(&0) {
        return false;
    }
    let text = String::from_utf8_lossy(head);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let has_header = lines.iter().take(LINES_FOR_DETECTION).any(|line| columns_of(line).is_some());
    let calls = lines.iter().take(LINES_FOR_DETECTION).filter(|l| call_of(l).is_some()).count();
    let is_table = |line: &&str| is_table_header(line);
    // With `-s`, stacks take more lines than calls.
    has_header
        || calls > 0 && 8 * calls >= lines.len().min(LINES_FOR_DETECTION)
        || lines.first().is_some_and(is_table)
}

/// Reads a file. `progress` receives the number of bytes read, once.
pub fn read(source: Source, progress: &(dyn Fn(u64) + Sync)) -> Result<Calls, Error> {
    let (path, text) = source.whole(LARGEST)?;
    let Some(calls) = parse(&text) else {
        let head = &text[..text.len().min(super::HEAD_FOR_DETECTION)];
        let looks_like = super::looks_like(head, &[]);
        let what = format!("no dtruss system calls found; it looks like {looks_like}");
        return Err(Error::NotARecording { path, what });
    };
    progress(text.len() as u64);
    Ok(calls)
}

/// Parses a file. `None` if it has no system calls.
pub fn parse(bytes: &[u8]) -> Option<Calls> {
    let text = String::from_utf8_lossy(bytes);
    let mut reader = Reader::default();
    for (number, line) in (1..).zip(text.lines()) {
        reader.line(line, number);
    }
    reader.finish()
}

/// The columns of a header: `PID/THRD  RELATIVE  ELAPSD    CPU SYSCALL(args)`.
fn columns_of(line: &str) -> Option<Columns> {
    let (before, after) = line.split_once("SYSCALL(args)")?;
    after.contains("= return").then_some(())?;
    let numbers: Vec<&str> =
        before.split_ascii_whitespace().filter(|word| *word != "PID/THRD").collect();
    let elapsed = numbers.iter().position(|word| matches!(*word, "ELAPSD" | "ELAPSED"));
    Some(Columns { numbers: numbers.len(), elapsed })
}

fn is_table_header(line: &str) -> bool {
    line.split_ascii_whitespace().eq(["CALL", "COUNT"])
}

/// Parses `  1234/0x5678:   120   45   30 read(0x3, …)\t\t = 4 0`.
fn call_of(line: &str) -> Option<Call<'_>> {
    let (call, result) = line.rsplit_once(" = ")?;
    let mut words = result.split_ascii_whitespace();
    let value = words.next()?;
    let digits = value.strip_prefix('-').unwrap_or(value);
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let error = words.next()?;
    let error: u32 = error.strip_prefix("Err#").unwrap_or(error).parse().ok()?;
    if words.next().is_some() {
        return None;
    }
    let (before, _) = call.trim_end().strip_suffix(')')?.split_once('(')?;
    let mut words: Vec<&str> = before.split_ascii_whitespace().collect();
    let name = words.pop()?;
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_name || name.bytes().next().is_none_or(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (mut pid, mut tid) = (0, 0);
    if let Some((&first, rest)) = words.split_first()
        && let Some((process, thread)) = first.trim_end_matches(':').split_once('/')
    {
        pid = process.parse().ok()?;
        tid = match thread.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok()?,
            None => thread.parse().ok()?,
        };
        words = rest.to_vec();
    }
    let numbers: Option<Vec<u64>> = words.iter().map(|word| word.parse().ok()).collect();
    Some(Call { pid, tid, numbers: numbers.filter(|all| all.len() <= 3)?, name, error })
}

#[derive(Default)]
struct Reader {
    calls: Calls,
    interner: Interner,
    columns: Option<Columns>,
    threads: FxHashMap<(u32, u64), u32>,
    functions: FxHashMap<String, u32>,
    rows: FxHashMap<(u32, u32, u32), usize>,
    /// Histogram of the durations of each row.
    classes: Vec<BTreeMap<u64, u64>>,
    failures: BTreeMap<(u32, u32, u32), u64>,
    /// A call whose stack can follow: function, thread, elapsed nanoseconds, error.
    last: Option<(u32, u32, Option<u64>, u32)>,
    /// The table at the end.
    table: Option<Vec<(String, u64)>>,
    /// Number of lines with unlabelled numbers.
    unknown: u64,
    lost: u64,
    first_lost: u64,
}

impl Reader {
    fn line(&mut self, line: &str, number: u64) {
        if line.trim().is_empty() {
            return;
        }
        if let Some(columns) = columns_of(line) {
            self.columns = Some(columns);
        } else if is_table_header(line) {
            self.table = Some(vec![]);
        } else if let Some(call) = call_of(line) {
            self.end(NONE);
            self.last = Some(self.call(&call));
        } else if let Some((module, function)) = frame_of(line) {
            // Only the innermost frame of a stack is the caller.
            if self.last.is_some() {
                let caller = self.caller(module, function);
                self.end(caller);
            }
        } else if !self.row_of_table(line) {
            if self.lost == 0 {
                self.first_lost = number;
            }
            self.lost += 1;
        }
    }

    fn call(&mut self, call: &Call) -> (u32, u32, Option<u64>, u32) {
        let function = self.function(call.name);
        let new = self.threads.len() as u32;
        let thread = *self.threads.entry((call.pid, call.tid)).or_insert(new);
        if thread == new {
            // Thread ids on macOS practically always fit in 32 bits.
            let (pid, tid) = (call.pid, call.tid as u32);
            self.calls.profile.threads.push(Thread { pid, tid, ..Thread::default() });
        }
        let elapsed = match (self.columns, call.numbers.len()) {
            (_, 0) => None,
            (Some(columns), n) if columns.numbers == n => columns.elapsed,
            (None, 3) => Some(1),
            _ => {
                self.unknown += 1;
                None
            }
        };
        let us = elapsed.and_then(|at| call.numbers.get(at));
        (function, thread, us.map(|us| us.saturating_mul(1000)), call.error)
    }

    fn function(&mut self, name: &str) -> u32 {
        if let Some(&known) = self.functions.get(name) {
            return known;
        }
        let profile = &mut self.calls.profile;
        let path = profile.texts.add("[kernel]");
        let module = self.interner.module(profile, Module { path, id: 0 });
        let number = self.calls.functions.len() as u32;
        self.calls.functions.push(Function { name: profile.texts.add(name), module });
        self.functions.insert(name.to_owned(), number);
        number
    }

    fn caller(&mut self, module: &str, function: &str) -> u32 {
        let profile = &mut self.calls.profile;
        let (path, function) = (profile.texts.add(module), profile.texts.add(function));
        let module = self.interner.module(profile, Module { path, id: 0 });
        let kind = FrameKind::Native;
        let frame = Frame { kind, module, address: 0, function, file: 0, line: 0 };
        self.interner.frame(profile, frame)
    }

    /// Adds the last call with its caller.
    fn end(&mut self, caller: u32) {
        let Some((function, thread, elapsed, error)) = self.last.take() else { return };
        let new = self.calls.rows.len();
        let row = *self.rows.entry((function, caller, thread)).or_insert(new);
        if row == new {
            let min_ns = u64::MAX;
            self.calls.rows.push(CallRow {
                function,
                caller,
                thread,
                min_ns,
                ..CallRow::default()
            });
            self.classes.push(BTreeMap::new());
        }
        let sum = &mut self.calls.rows[row];
        sum.count += 1;
        if let Some(ns) = elapsed {
            sum.total_ns = sum.total_ns.saturating_add(ns);
            sum.min_ns = sum.min_ns.min(ns);
            sum.max_ns = sum.max_ns.max(ns);
            *self.classes[row].entry(class_of(ns)).or_default() += 1;
        }
        if error != 0 {
            *self.failures.entry((function, thread, error)).or_default() += 1;
        }
    }

    fn row_of_table(&mut self, line: &str) -> bool {
        let mut words = line.split_ascii_whitespace();
        let (Some(table), Some(name), Some(count), None) =
            (&mut self.table, words.next(), words.next(), words.next())
        else {
            return false;
        };
        let Ok(count) = count.parse() else { return false };
        table.push((name.to_owned(), count));
        true
    }

    fn finish(mut self) -> Option<Calls> {
        self.end(NONE);
        let mut warnings = vec![];
        let table = self.table.take().unwrap_or_default();
        let in_table = table.iter().fold(0u64, |sum, (_, count)| sum.saturating_add(*count));
        let in_lines: u64 = self.calls.rows.iter().map(|row| row.count).sum();
        if self.calls.rows.is_empty() {
            self.calls.profile.threads.push(Thread::default());
            for (name, count) in table {
                let function = self.function(&name);
                let row = CallRow { function, caller: NONE, count, ..CallRow::default() };
                self.calls.rows.push(row);
                self.classes.push(BTreeMap::new());
            }
        } else if in_table > 0 && in_table != in_lines {
            warnings.push(format!(
                "{in_lines} calls were read, but the summary table has {in_table}: lines are missing"
            ));
        }
        for (row, classes) in self.calls.rows.iter_mut().zip(self.classes) {
            row.self_ns = row.total_ns;
            if classes.is_empty() {
                row.min_ns = 0;
            }
            row.histogram = classes.into_iter().collect();
        }
        for ((function, thread, error), count) in self.failures {
            let error = self.calls.profile.texts.add(&error_name(error));
            self.calls.failures.push(FailureRow { function, thread, error, count });
        }
        if self.unknown > 0 {
            let n = self.unknown;
            warnings.push(format!(
                "lines with unlabelled numbers before the call (the dtruss header is missing): {n}"
            ));
        }
        if self.lost > 0 {
            let (n, first) = (self.lost, self.first_lost);
            warnings.push(format!("unrecognized lines: {n}, first at line {first}"));
        }
        let profile = &mut self.calls.profile;
        profile.about.tool = "dtruss".into();
        profile.about.method = "dtruss, one line per system call".into();
        profile.quality.warnings = warnings;
        (!self.calls.rows.is_empty()).then_some(self.calls)
    }
}

/// Parses a frame of a stack: indented, module and function.
fn frame_of(line: &str) -> Option<(&str, &str)> {
    let (module, function) = line.strip_prefix([' ', '\t'])?.trim().split_once('`')?;
    let function = function.rsplit_once("+0x").map_or(function, |(name, _)| name);
    (!module.is_empty() && !module.contains(' ') && !function.is_empty())
        .then_some((module, function))
}

/// Lower bound of the histogram bucket of a duration: eight buckets per octave.
fn class_of(ns: u64) -> u64 {
    let shift = ns.checked_ilog2().unwrap_or(0).saturating_sub(3);
    ns >> shift << shift
}

/// Error names by macOS number, for errors of file and network calls.
fn error_name(number: u32) -> String {
    let name = match number {
        1 => "EPERM",
        2 => "ENOENT",
        3 => "ESRCH",
        4 => "EINTR",
        5 => "EIO",
        6 => "ENXIO",
        7 => "E2BIG",
        9 => "EBADF",
        10 => "ECHILD",
        11 => "EDEADLK",
        12 => "ENOMEM",
        13 => "EACCES",
        14 => "EFAULT",
        16 => "EBUSY",
        17 => "EEXIST",
        20 => "ENOTDIR",
        21 => "EISDIR",
        22 => "EINVAL",
        24 => "EMFILE",
        25 => "ENOTTY",
        28 => "ENOSPC",
        29 => "ESPIPE",
        32 => "EPIPE",
        34 => "ERANGE",
        35 => "EAGAIN",
        36 => "EINPROGRESS",
        45 => "ENOTSUP",
        57 => "ENOTCONN",
        60 => "ETIMEDOUT",
        61 => "ECONNREFUSED",
        78 => "ENOSYS",
        93 => "ENOATTR",
        _ => return format!("Err#{number}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_calls_and_rejects_other_lines() {
        let check = |line: &str, expected: Option<(&str, u32, u64, &[u64], u32)>| {
            let call = call_of(line);
            let shown = call.as_ref().map(|c| (c.name, c.pid, c.tid, &c.numbers[..], c.error));
            assert_eq!(shown, expected, "{line}");
        };
        check("read(0x3, \"a = b\\0\", 0x4)\t\t = 4 0", Some(("read", 0, 0, &[], 0)));
        check("  12/0x5f:  read(0x3)\t\t = 4 0", Some(("read", 12, 0x5f, &[], 0)));
        check(
            "  12/0x5f:   120    45     30 read(0x3)\t\t = 4 0",
            Some(("read", 12, 0x5f, &[120, 45, 30], 0)),
        );
        check("stat64(\"/x\\0\", 0x7, 0x0)\t\t = -1 Err#2", Some(("stat64", 0, 0, &[], 2)));
        check("mmap(0x0, 0x1)\t\t = 0x10F8E000 0", Some(("mmap", 0, 0, &[], 0)));
        // strace.
        check("read(3, \"\", 4) = 4", None);
        check("open(\"/x\", O_RDONLY) = -1 ENOENT (No such file or directory)", None);
        check("let x = f(1) = 2 0", None);
        check("SYSCALL(args) \t\t = return", None);
        check("", None);
    }

    #[test]
    fn parses_columns_of_the_header() {
        let columns = |numbers, elapsed| Some(Columns { numbers, elapsed });
        assert_eq!(columns_of("SYSCALL(args) \t\t = return"), columns(0, None));
        assert_eq!(
            columns_of("\tPID/THRD  RELATIVE  ELAPSD    CPU SYSCALL(args) \t\t = return"),
            columns(3, Some(1))
        );
        assert_eq!(columns_of(" ELAPSD SYSCALL(args) \t\t = return"), columns(1, Some(0)));
        assert_eq!(columns_of("read(0x3)"), None);
    }

    #[test]
    fn buckets_are_an_eighth_of_an_octave_wide() {
        for (ns, expected) in [(0, 0), (7, 7), (17, 16), (1000, 960), (u64::MAX, 15 << 60)] {
            assert_eq!(class_of(ns), expected);
        }
    }
}
