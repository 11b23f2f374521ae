//! The Protocol Buffers wire format: numbered fields that are a varint, a block of bytes, or four
//! or eight fixed bytes.

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Varint(u64),
    Block(&'a [u8]),
    /// Fixed bytes, which no field of a profile uses.
    Fixed,
}

impl<'a> Value<'a> {
    pub(super) fn number(self) -> u64 {
        match self {
            Value::Varint(number) => number,
            _ => 0,
        }
    }

    pub(super) fn block(self) -> &'a [u8] {
        match self {
            Value::Block(block) => block,
            _ => &[],
        }
    }
}

/// Iterates over the fields of a message. Stops at the first damaged or truncated field and sets
/// `is_cut`.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    pub(super) is_cut: bool,
}

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Fields<'a> {
        Fields { rest: message, is_cut: false }
    }

    /// Number of unread bytes.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    fn field(&mut self) -> Option<(u64, Value<'a>)> {
        let tag = varint(&mut self.rest)?;
        let mut skip = |length: usize| {
            let (block, rest) = self.rest.split_at_checked(length)?;
            self.rest = rest;
            Some(block)
        };
        let value = match tag & 7 {
            0 => Value::Varint(varint(&mut self.rest)?),
            1 => skip(8).map(|_| Value::Fixed)?,
            2 => {
                let length = usize::try_from(varint(&mut self.rest)?).ok()?;
                let (block, rest) = self.rest.split_at_checked(length)?;
                self.rest = rest;
                Value::Block(block)
            }
            5 => skip(4).map(|_| Value::Fixed)?,
            _ => return None,
        };
        (tag >> 3 != 0).then_some((tag >> 3, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Value<'a>);

    #[inline]
    fn next(&mut self) -> Option<(u64, Value<'a>)> {
        if self.rest.is_empty() || self.is_cut {
            return None;
        }
        let field = self.field();
        self.is_cut = field.is_none();
        field
    }
}

/// Parses a number of one to ten bytes, seven bits each.
#[inline]
pub(super) fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for (at, byte) in rest.iter().enumerate().take(10) {
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            *rest = &rest[at + 1..];
            return Some(number);
        }
    }
    None
}

/// Calls `take` with each number of a repeated field, packed in a block or single.
#[inline]
pub(super) fn each_number(value: Value, mut take: impl FnMut(u64)) {
    match value {
        Value::Varint(number) => take(number),
        Value::Block(mut block) => {
            while let Some(number) = varint(&mut block) {
                take(number);
            }
        }
        Value::Fixed => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_at_damaged_field() {
        let message = [0x08, 0x96, 0x01, 0x12, 0x02, b'h', b'i', 0x1a, 0x05, b'x'];
        let mut fields = Fields::of(&message);
        assert_eq!(fields.next(), Some((1, Value::Varint(150))));
        assert_eq!(fields.next(), Some((2, Value::Block(b"hi"))));
        assert!(!fields.is_cut);
        assert_eq!(fields.next(), None);
        assert!(fields.is_cut);
        assert_eq!(fields.next(), None);
        let mut endless: &[u8] = &[0xff; 12];
        assert_eq!(varint(&mut endless), None);
        let mut greatest: &[u8] = &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(varint(&mut greatest), Some(u64::MAX));
    }
}
