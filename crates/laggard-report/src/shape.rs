//! JSON shapes that several reports share.

use laggard_core::trace::summary;
use serde::Serialize;
use serde_json::ser::Formatter;
use std::io;

/// The spread of a set of values, in the unit that the field's name ends with.
#[derive(Serialize)]
pub(crate) struct Spread {
    /// How many values.
    n: u64,
    /// The smallest; null, as all that follow, when n is 0.
    min: Option<i64>,
    /// A quarter is below.
    p25: Option<i64>,
    /// The one in the middle.
    median: Option<i64>,
    /// A quarter is above.
    p75: Option<i64>,
    /// 5 % are above.
    p95: Option<i64>,
    /// The largest.
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

/// Pretty JSON with a final newline. Numbers that JSON cannot say become null.
pub(crate) fn pretty(value: &impl Serialize) -> String {
    // Only a map with keys that are no strings can fail, and the shapes have none.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

/// As [`pretty`], with lists in one line: for columns of numbers.
pub(crate) fn pretty_columns(value: &impl Serialize) -> String {
    let mut text = vec![];
    let mut out = serde_json::Serializer::with_formatter(&mut text, Columnar::default());
    // As above, and writing to a vector cannot fail.
    let _ = value.serialize(&mut out);
    text.push(b'\n');
    String::from_utf8(text).unwrap_or_default()
}

/// A field a line, and all elements of a list in one.
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
