//! Results of statements, as a worker describes them.

use super::wire::Taken;

/// A result.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// `None`.
    Nothing,
    /// A number outside of an array.
    Number(Number),
    /// A string.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A list, tuple or sorted set.
    List(Vec<Value>),
    /// A dictionary, sorted by key.
    Map(Vec<(Value, Value)>),
    /// Numbers of one type.
    Array(Array),
    /// A description of a result that cannot be compared.
    Unknown(String),
}

/// A number.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Number {
    /// An integer.
    Whole(i128),
    /// A larger integer: whether it is negative, and its bytes in little-endian order.
    Long(bool, Vec<u8>),
    /// A float, with its size in bytes.
    Float(f64, u8),
    /// A complex number, with the size of each part in bytes.
    Complex(f64, f64, u8),
}

/// Numbers of one type, in C order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Array {
    pub(super) shape: Vec<u64>,
    kind: u8,
    size: usize,
    data: Vec<u8>,
}

impl Value {
    /// Returns `None` if the description is malformed.
    pub(super) fn read(description: &[u8]) -> Option<Value> {
        let mut taken = Taken(description);
        read(&mut taken)
    }
}

fn read(taken: &mut Taken) -> Option<Value> {
    Some(match taken.byte()? {
        b'N' => Value::Nothing,
        b'b' => Value::Number(Number::Whole(taken.byte()?.into())),
        b'i' => {
            let is_negative = taken.byte()? == b'-';
            let length = taken.number()?;
            Value::Number(whole(is_negative, taken.bytes(length)?))
        }
        b'f' => Value::Number(Number::Float(taken.float()?, 8)),
        b'c' => Value::Number(Number::Complex(taken.float()?, taken.float()?, 8)),
        b's' => Value::Text(taken.text()?),
        b'y' => {
            let length = taken.number()?;
            Value::Bytes(taken.bytes(length)?.to_vec())
        }
        b'l' => Value::List((0..taken.number()?).map(|_| read(taken)).collect::<Option<_>>()?),
        b'd' => {
            let pairs = (0..taken.number()?).map(|_| Some((read(taken)?, read(taken)?)));
            Value::Map(pairs.collect::<Option<_>>()?)
        }
        b'a' => {
            let (kind, size) = (taken.byte()?, taken.byte()? as usize);
            let dimensions = taken.number()?;
            let shape = (0..dimensions).map(|_| taken.number()).collect::<Option<Vec<u64>>>()?;
            let length = taken.number()?;
            let data = taken.bytes(length)?.to_vec();
            let array = Array { shape, kind, size, data };
            array.is_sound().then_some(Value::Array(array))?
        }
        b'x' => Value::Unknown(taken.text()?),
        _ => return None,
    })
}

fn whole(is_negative: bool, bytes: &[u8]) -> Number {
    if bytes.len() > 15 {
        return Number::Long(is_negative, bytes.to_vec());
    }
    let size = bytes.iter().rev().fold(0, |number: i128, &byte| number << 8 | i128::from(byte));
    Number::Whole(if is_negative { -size } else { size })
}

impl Array {
    fn is_sound(&self) -> bool {
        let sizes: &[usize] = match self.kind {
            b'b' => &[1],
            b'i' | b'u' => &[1, 2, 4, 8],
            b'f' => &[2, 4, 8],
            b'c' => &[8, 16],
            _ => &[],
        };
        let count = self.shape.iter().try_fold(1_u64, |count, &length| count.checked_mul(length));
        sizes.contains(&self.size)
            && count.and_then(|count| count.checked_mul(self.size as u64))
                == Some(self.data.len() as u64)
    }

    pub(super) fn len(&self) -> usize {
        self.data.len() / self.size
    }

    /// Whether both have the same type and the same bytes.
    pub(super) fn is_identical(&self, other: &Array) -> bool {
        (self.kind, self.size) == (other.kind, other.size) && self.data == other.data
    }

    /// The number at a valid index.
    pub(super) fn get(&self, at: usize) -> Number {
        let bytes = &self.data[at * self.size..(at + 1) * self.size];
        let mut eight = [0; 8];
        eight[..self.size.min(8)].copy_from_slice(&bytes[..self.size.min(8)]);
        let raw = u64::from_le_bytes(eight);
        let float = |raw: u64, size: usize| match size {
            2 => half(raw as u16),
            4 => f64::from(f32::from_bits(raw as u32)),
            _ => f64::from_bits(raw),
        };
        match (self.kind, self.size) {
            (b'i', size) => {
                let unused = 64 - 8 * size as u32;
                Number::Whole(i128::from((raw << unused) as i64 >> unused))
            }
            (b'f', size) => Number::Float(float(raw, size), size as u8),
            (b'c', 8) => Number::Complex(float(raw & 0xffff_ffff, 4), float(raw >> 32, 4), 4),
            (b'c', _) => {
                eight.copy_from_slice(&bytes[8..]);
                Number::Complex(f64::from_bits(raw), f64::from_le_bytes(eight), 8)
            }
            _ => Number::Whole(raw.into()),
        }
    }
}

/// Decodes a 16-bit float.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
    sign * match exponent {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2_f64.powi(exponent - 15),
    }
}
