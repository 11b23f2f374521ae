//! The part of Thrift's compact protocol that Parquet headers and footers need.

/// Writes a struct and its nested structs. Fields are written in the order of their ids.
/// Consecutive ids differ by at most 15, so that the difference fits in the type byte.
#[derive(Default)]
pub(super) struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

/// Types of list elements and of fields, except boolean fields.
#[derive(Clone, Copy)]
pub(super) enum Type {
    I32 = 5,
    I64 = 6,
    Binary = 8,
    List = 9,
    Struct = 12,
}

const TRUE: u8 = 1;
const FALSE: u8 = 2;

impl Struct {
    /// Returns the encoded struct.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }

    pub(super) fn bool(&mut self, id: u8, value: bool) {
        self.field(id, if value { TRUE } else { FALSE });
    }

    pub(super) fn i32(&mut self, id: u8, value: i32) {
        self.field(id, Type::I32 as u8);
        zigzag(&mut self.bytes, value.into());
    }

    pub(super) fn i64(&mut self, id: u8, value: i64) {
        self.field(id, Type::I64 as u8);
        zigzag(&mut self.bytes, value);
    }

    pub(super) fn binary(&mut self, id: u8, value: &[u8]) {
        self.field(id, Type::Binary as u8);
        self.element_binary(value);
    }

    pub(super) fn nested(&mut self, id: u8, fill: impl FnOnce(&mut Self)) {
        self.field(id, Type::Struct as u8);
        self.element_struct(fill);
    }

    /// Starts a list. The `element_…` calls add its elements.
    pub(super) fn list(&mut self, id: u8, of: Type, len: usize) {
        self.field(id, Type::List as u8);
        match u8::try_from(len) {
            Ok(len @ ..15) => self.bytes.push(len << 4 | of as u8),
            _ => {
                self.bytes.push(0xF0 | of as u8);
                varint(&mut self.bytes, len as u64);
            }
        }
    }

    pub(super) fn element_i32(&mut self, value: i32) {
        zigzag(&mut self.bytes, value.into());
    }

    pub(super) fn element_binary(&mut self, value: &[u8]) {
        varint(&mut self.bytes, value.len() as u64);
        self.bytes.extend_from_slice(value);
    }

    pub(super) fn element_struct(&mut self, fill: impl FnOnce(&mut Self)) {
        let outer = std::mem::take(&mut self.last);
        fill(self);
        self.bytes.push(0);
        self.last = outer;
    }

    fn field(&mut self, id: u8, kind: u8) {
        debug_assert!(id > self.last && id - self.last <= 15, "field {id} after {}", self.last);
        self.bytes.push((id - self.last) << 4 | kind);
        self.last = id;
    }
}

/// Writes a number in groups of seven bits, least significant first (ULEB128).
pub(super) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Writes a signed number as a zigzag-encoded [`varint`].
pub(super) fn zigzag(out: &mut Vec<u8>, value: i64) {
    varint(out, (value << 1 ^ value >> 63) as u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_are_uleb128() {
        let check = |value: u64, expected: &[u8]| {
            let mut out = vec![];
            varint(&mut out, value);
            assert_eq!(out, expected, "{value}");
        };
        check(0, &[0]);
        check(127, &[0x7F]);
        check(128, &[0x80, 1]);
        check(624_485, &[0xE5, 0x8E, 0x26]);
        check(u64::MAX, &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1]);
    }

    #[test]
    fn zigzag_puts_the_sign_in_the_lowest_bit() {
        let check = |value: i64, expected: &[u8]| {
            let mut out = vec![];
            zigzag(&mut out, value);
            assert_eq!(out, expected, "{value}");
        };
        check(0, &[0]);
        check(-1, &[1]);
        check(1, &[2]);
        check(-64, &[0x7F]);
        check(64, &[0x80, 1]);
        check(i64::MIN, &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1]);
    }

    #[test]
    fn field_ids_are_relative_and_restart_in_nested_structs() {
        let mut outer = Struct::default();
        outer.i32(1, 3);
        outer.nested(5, |inner| {
            inner.bool(1, true);
            inner.bool(7, false);
        });
        outer.binary(6, b"ab");
        outer.list(7, Type::I32, 2);
        outer.element_i32(-1);
        outer.element_i32(8);
        let expected = [0x15, 6, 0x4C, 0x11, 0x62, 0, 0x18, 2, b'a', b'b', 0x19, 0x25, 1, 16, 0];
        assert_eq!(outer.finish(), expected);
    }

    #[test]
    fn long_lists_have_a_separate_length() {
        let mut outer = Struct::default();
        outer.list(1, Type::I64, 200);
        assert_eq!(outer.finish(), [0x19, 0xF6, 0xC8, 1, 0]);
    }
}
