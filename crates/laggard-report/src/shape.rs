//! JSON helpers shared by several reports.

use laggard_core::trace::summary;
use serde::Serialize;
use serde_json::ser::Formatter;
use std::io;

/// Distribution of a set of values, in the unit of the field's suffix.
#[derive(Serialize)]
pub(crate) struct Spread {
    /// Number of values.
    n: u64,
    /// Minimum. This and the following fields are null if n is 0.
    min: Option<i64>,
    /// 25th percentile.
    p25: Option<i64>,
    /// Median.
    median: Option<i64>,
    /// 75th percentile.
    p75: Option<i64>,
    /// 95th percentile.
    p95: Option<i64>,
    /// Maximum.
    max: Option<i64>,
}

impl From<&summary::Spread> for Spread {
    fn from(spread: &summary::Spread) -> Spread {
        let some = |value: i64| (spread.n > 0).then_some(value);
        Spread {
            n: spread.n,
            min: some(spread.min),
            p25: some(spread.p25),
            median: some(spread.median),
            p75: some(spread.p75),
            p95: some(spread.p95),
            max: some(spread.max),
        }
    }
}

/// Pretty-printed JSON with a final newline. Numbers that JSON cannot represent become null.
pub(crate) fn pretty(value: &impl Serialize) -> String {
    // Serialization fails only for maps with non-string keys, which no shape has.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

/// Like [`pretty`], with each list on one line, for columns of numbers.
pub(crate) fn pretty_columns(value: &impl Serialize) -> String {
    let mut text = vec![];
    let mut out = serde_json::Serializer::with_formatter(&mut text, Columnar::default());
    // Cannot fail: see `pretty`, and writing to a vector always succeeds.
    let _ = value.serialize(&mut out);
    text.push(b'\n');
    String::from_utf8(text).unwrap_or_default()
}

/// Formats one field per line and each list on one line.
#[derive(Default)]
struct Columnar {
    depth: usize,
    is_empty: bool,
}

impl Columnar {
    fn line<W: ?Sized + io::Write>(&self, out: &mut W) -> io::Result<()> {
        write!(out, "\n{:width$}", "", width = 2 * self.depth)
    }
}

impl Formatter for Columnar {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        self.is_empty = true;
        out.write_all(b"{")
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth -= 1;
        if !self.is_empty {
            self.line(out)?;
        }
        out.write_all(b"}")
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if !first {
            out.write_all(b",")?;
        }
        self.line(out)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.is_empty = false;
        Ok(())
    }
}
