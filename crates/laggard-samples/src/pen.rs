//! Writes trace files key by key, in the layout of Kineto or of programs that re-serialize JSON.

use crate::json::Layout;
use std::io::{self, Write};

/// JSON layout of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Style {
    /// Kineto's layout: several lines per event, several keys per line.
    Native,
    /// No whitespace.
    Compact,
    /// One line, with a space after every comma and colon.
    Spaced,
    /// One value per line, indented by two spaces per level.
    Indent2,
}

impl Style {
    /// All layouts.
    pub const ALL: [Style; 4] = [Style::Native, Style::Compact, Style::Spaced, Style::Indent2];

    /// The name in file names and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Style::Native => "native",
            Style::Compact => "compact",
            Style::Spaced => "spaced",
            Style::Indent2 => "indent2",
        }
    }
}

/// Separator before the next key in the native layout.
#[derive(Clone, Copy)]
enum Before {
    /// After the opening brace: only these spaces.
    Open(usize),
    /// A comma and a space.
    Comma,
    /// A comma and a new line.
    Line,
    /// A comma and this many spaces.
    Gap(usize),
}

/// Writer of events. Strings are not escaped, because the generated names need no escapes.
pub(crate) struct Pen<W: Write> {
    out: W,
    text: Vec<u8>,
    flushed: u64,
    style: Style,
    comma: &'static str,
    colon: &'static str,
    before: Before,
    depth: usize,
    events: u64,
}

const FLUSH_AT: usize = 1 << 18;
const SPACES: &[u8; 32] = b"                                ";

impl<W: Write> Pen<W> {
    pub(crate) fn new(out: W, style: Style) -> Pen<W> {
        let layout = Layout::of(style);
        Pen {
            out,
            text: Vec::with_capacity(FLUSH_AT + (1 << 16)),
            flushed: 0,
            style,
            comma: layout.comma,
            colon: layout.colon,
            before: Before::Open(0),
            depth: 2,
            events: 0,
        }
    }

    /// Writes text outside of events.
    pub(crate) fn raw(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
    }

    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.flushed + self.text.len() as u64
    }

    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Opens the next event of the array.
    pub(crate) fn event(&mut self) -> io::Result<()> {
        if self.text.len() >= FLUSH_AT {
            self.flush()?;
        }
        if self.events > 0 {
            self.raw(self.comma.trim_end());
        }
        self.raw(match self.style {
            Style::Native => "\n  {\n    ",
            Style::Compact => "{",
            Style::Spaced if self.events > 0 => " {",
            Style::Spaced => "{",
            Style::Indent2 => "\n    {",
        });
        self.events += 1;
        self.before = Before::Open(0);
        self.depth = 3;
        Ok(())
    }

    /// Closes an event.
    pub(crate) fn end(&mut self) {
        self.raw(match self.style {
            Style::Native => "\n  }",
            Style::Compact | Style::Spaced => "}",
            Style::Indent2 => "\n    }",
        });
    }

    /// Opens the event's arguments.
    pub(crate) fn args(&mut self) {
        self.line().key("args");
        self.raw(if self.style == Style::Native { "{\n      " } else { "{" });
        self.before = Before::Open(0);
        self.depth = 4;
    }

    /// Closes the arguments and the event.
    pub(crate) fn end_args(&mut self) {
        self.raw(match self.style {
            Style::Native => "\n    }",
            Style::Compact | Style::Spaced => "}",
            Style::Indent2 => "\n      }",
        });
        self.depth = 3;
        self.end();
    }

    /// Puts the next key on a new line in the native layout.
    pub(crate) fn line(&mut self) -> &mut Self {
        self.before = Before::Line;
        self
    }

    /// Puts this many spaces before the next key in the native layout.
    pub(crate) fn gap(&mut self, spaces: usize) -> &mut Self {
        self.before = match self.before {
            Before::Open(_) => Before::Open(spaces),
            _ => Before::Gap(spaces),
        };
        self
    }

    pub(crate) fn str(&mut self, key: &str, text: &str) -> &mut Self {
        debug_assert!(!text.contains(['"', '\\']) && !text.chars().any(char::is_control));
        self.key(key);
        self.text.push(b'"');
        self.raw(text);
        self.text.push(b'"');
        self
    }

    /// Writes a value that is already formatted.
    pub(crate) fn ready(&mut self, key: &str, value: &str) -> &mut Self {
        self.key(key);
        self.raw(value);
        self
    }

    pub(crate) fn int(&mut self, key: &str, number: i64) -> &mut Self {
        self.key(key);
        if number < 0 {
            self.text.push(b'-');
        }
        self.digits(number.unsigned_abs(), 1);
        self
    }

    /// Writes nanoseconds as microseconds.
    pub(crate) fn micros(&mut self, key: &str, nanos: i64) -> &mut Self {
        self.decimal(key, nanos.unsigned_abs(), 3)
    }

    /// Writes `number` / 10^`places`. Layouts of re-serialized JSON have no trailing zeros.
    pub(crate) fn decimal(&mut self, key: &str, number: u64, places: u32) -> &mut Self {
        self.key(key);
        let unit = 10u64.pow(places);
        self.digits(number / unit, 1);
        self.text.push(b'.');
        self.digits(number % unit, places as usize);
        if self.style != Style::Native {
            while self.text.ends_with(b"0") && !self.text.ends_with(b".0") {
                self.text.pop();
            }
        }
        self
    }

    pub(crate) fn list(&mut self, key: &str, numbers: &[u32]) -> &mut Self {
        self.key(key);
        self.text.push(b'[');
        for (nth, number) in numbers.iter().enumerate() {
            if nth > 0 {
                self.raw(self.comma);
            }
            if self.style == Style::Indent2 {
                self.new_line(self.depth + 1);
            }
            self.digits(u64::from(*number), 1);
        }
        if self.style == Style::Indent2 {
            self.new_line(self.depth);
        }
        self.text.push(b']');
        self
    }

    fn key(&mut self, key: &str) {
        match (self.style, self.before) {
            (Style::Native, Before::Open(spaces)) => self.text.extend_from_slice(&SPACES[..spaces]),
            (Style::Native, Before::Comma) => self.raw(", "),
            (Style::Native, Before::Line) => self.raw(",\n    "),
            (Style::Native, Before::Gap(spaces)) => {
                self.text.push(b',');
                self.text.extend_from_slice(&SPACES[..spaces]);
            }
            (_, Before::Open(_)) => {}
            (_, _) => self.raw(self.comma),
        }
        if self.style == Style::Indent2 {
            self.new_line(self.depth);
        }
        self.text.push(b'"');
        self.raw(key);
        self.text.push(b'"');
        self.raw(self.colon);
        self.before = Before::Comma;
    }

    fn new_line(&mut self, depth: usize) {
        self.text.push(b'\n');
        self.text.extend_from_slice(&SPACES[..2 * depth]);
    }

    fn digits(&mut self, mut number: u64, at_least: usize) {
        let mut digits = [b'0'; 20];
        let mut from = 20;
        while number > 0 || from > 20 - at_least {
            from -= 1;
            digits[from] = b'0' + (number % 10) as u8;
            number /= 10;
        }
        self.text.extend_from_slice(&digits[from..]);
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.text)?;
        self.flushed += self.text.len() as u64;
        self.text.clear();
        Ok(())
    }
}
