//! Python code objects as agents send them, and their line tables.

use laggard_agent::wire;

/// A code object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeObject {
    /// Its qualified name; before 3.11, its unqualified name.
    pub(crate) name: String,
    pub(crate) file: String,
    minor: u32,
    first_line: i32,
    table: Vec<u8>,
}

impl CodeObject {
    /// Reads a record of kind `CODE`.
    pub(crate) fn read(record: &wire::Code, mut rest: &[u8]) -> Option<CodeObject> {
        let mut take = |bytes: usize| rest.split_off(..bytes);
        let name = take(record.name as usize * record.name_width as usize)?;
        let file = take(record.file as usize * record.file_width as usize)?;
        let table = take(record.table as usize)?;
        let (name, file) = (text(name, record.name_width), text(file, record.file_width));
        Some(CodeObject::new(record.minor, record.first_line, name, file, table.to_vec()))
    }

    pub(crate) fn new(
        minor: u32,
        first_line: u32,
        name: String,
        file: String,
        table: Vec<u8>,
    ) -> CodeObject {
        CodeObject { name, file, minor, first_line: first_line as i32, table }
    }

    /// The line of the instruction at this byte offset; 0 if it has none.
    pub(crate) fn line(&self, lasti: i32) -> u32 {
        let line = match self.minor {
            ..=9 => line_by_steps(self.first_line, &self.table, lasti),
            10 => line_by_ranges(self.first_line, &self.table, lasti),
            _ => line_by_locations(self.first_line, &self.table, lasti),
        };
        u32::try_from(line).unwrap_or(0)
    }
}

/// Decodes a string whose characters have `width` bytes each.
pub(crate) fn text(bytes: &[u8], width: u32) -> String {
    let character = |bytes: &[u8]| {
        let number = bytes.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte));
        char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)
    };
    bytes.chunks_exact(width.max(1) as usize).map(character).collect()
}

/// `co_lnotab` of 3.9: pairs of byte step and signed line step, between the first bytes of
/// consecutive lines.
fn line_by_steps(first: i32, table: &[u8], lasti: i32) -> i32 {
    let (mut line, mut address) = (first, 0);
    for pair in table.chunks_exact(2) {
        address += i32::from(pair[0]);
        if address > lasti {
            break;
        }
        line += i32::from(pair[1] as i8);
    }
    line
}

/// `co_linetable` of 3.10: pairs of byte length and signed line step; -128 means no line.
fn line_by_ranges(first: i32, table: &[u8], lasti: i32) -> i32 {
    let (mut line, mut end) = (first, 0);
    for pair in table.chunks_exact(2) {
        let step = pair[1] as i8;
        if step != i8::MIN {
            line += i32::from(step);
        }
        end += i32::from(pair[0]);
        if end > lasti {
            return if step == i8::MIN { 0 } else { line };
        }
    }
    line
}

/// `co_linetable` since 3.11: entries with a kind, a length in code units, and line and column
/// steps.
fn line_by_locations(first: i32, table: &[u8], lasti: i32) -> i32 {
    let (mut line, mut end) = (first, 0i32);
    let mut bytes = table.iter().copied();
    while let Some(head) = bytes.next() {
        let (kind, length) = (head >> 3 & 15, i32::from(head & 7) + 1);
        let mut has_line = true;
        match kind {
            15 => has_line = false,
            14 => {
                line = line.wrapping_add(signed(varint(&mut bytes)));
                for _ in 0..3 {
                    varint(&mut bytes);
                }
            }
            13 => line = line.wrapping_add(signed(varint(&mut bytes))),
            10..=12 => {
                line += i32::from(kind) - 10;
                bytes.nth(1);
            }
            _ => {
                bytes.next();
            }
        }
        end = end.saturating_add(2 * length);
        if end > lasti {
            return if has_line { line } else { 0 };
        }
    }
    line
}

fn varint(bytes: &mut impl Iterator<Item = u8>) -> u32 {
    let (mut value, mut shift) = (0u32, 0);
    for byte in bytes {
        value |= u32::from(byte & 63).checked_shl(shift).unwrap_or(0);
        shift += 6;
        if byte & 64 == 0 {
            break;
        }
    }
    value
}

fn signed(value: u32) -> i32 {
    let magnitude = (value >> 1) as i32;
    if value & 1 == 1 { magnitude.wrapping_neg() } else { magnitude }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    fn code(minor: u32, first_line: i32, table: &[u8]) -> CodeObject {
        let (name, file) = (String::new(), String::new());
        CodeObject { name, file, minor, first_line, table: table.to_vec() }
    }

    #[test]
    fn every_kind_of_line_table_is_decoded() {
        // def f():      # line 1
        //     a = 1     # line 2, bytes 0 to 3
        //     b = 2     # line 3, bytes 4 to 7
        let check = |code: CodeObject, expected: [u32; 3]| {
            assert_eq!([0, 4, 6].map(|lasti| code.line(lasti)), expected, "3.{}", code.minor);
        };
        check(code(9, 1, &[0, 1, 4, 1]), [2, 3, 3]);
        check(code(10, 1, &[4, 1, 4, 1]), [2, 3, 3]);
        let one_line_on = |length: u8| [0x80 | 11 << 3 | (length - 1), 0, 0];
        check(code(11, 1, &[one_line_on(2), one_line_on(2)].concat()), [2, 3, 3]);
        check(code(13, 1, &[0x80 | 13 << 3 | 1, 2, 0x80 | 15 << 3 | 1]), [2, 0, 0]);
    }

    #[test]
    fn damaged_tables_do_not_panic() {
        for minor in [9, 10, 11, 13] {
            for byte in 0..=255u8 {
                code(minor, 1, &[byte, byte, byte]).line(i32::MAX);
                code(minor, i32::MAX, &[byte; 9]).line(3);
            }
        }
    }

    #[test]
    fn names_of_all_widths_are_read() {
        let record = wire::Code {
            pid: 1,
            minor: 12,
            code: 0,
            first_line: 1,
            name: 1,
            name_width: 2,
            file: 2,
            file_width: 1,
            table: 1,
        };
        let read = CodeObject::read(&record, &[0xb1, 0x03, b'a', 0xe9, 7]).unwrap();
        assert_eq!((read.name.as_str(), read.file.as_str()), ("α", "aé"));
        assert!(CodeObject::read(&record, &[0xb1]).is_none(), "truncated");
    }
}
