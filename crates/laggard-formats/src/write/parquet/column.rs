//! A column as Parquet stores it: the values that are there, coded by a dictionary where few are
//! distinct, and their bounds.

use super::encode;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt32Type};
use arrow_array::{Array, DictionaryArray, GenericStringArray, OffsetSizeTrait};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::io;
use std::ops::Range;

/// Rows of a page. Traces repeat themselves from step to step: the longer the page, the more of
/// the repetition does the compressor see.
pub(super) const PAGE_ROWS: usize = 1 << 18;
/// Bytes of text that end a page where they are not coded.
const PAGE_TEXT_BYTES: usize = 1 << 20;
/// Distinct numbers or texts that still get a dictionary made for them.
const MAX_DISTINCT: usize = 1 << 14;
/// Bounds that are longer are left out: no one looks for them, and the footer is read whole.
const MAX_BOUND_BYTES: usize = 1 << 10;

/// Parquet's physical types.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Physical {
    Boolean = 0,
    Int64 = 2,
    Double = 5,
    ByteArray = 6,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Encoding {
    Plain = 0,
    Rle = 3,
    DeltaBinaryPacked = 5,
    RleDictionary = 8,
}

impl Physical {
    /// How a column is stored, or the error that it cannot be.
    pub(super) fn of(field: &Field) -> io::Result<Self> {
        let is_text = |of: &DataType| matches!(of, DataType::Utf8 | DataType::LargeUtf8);
        match field.data_type() {
            DataType::Boolean => Ok(Self::Boolean),
            DataType::Int64 => Ok(Self::Int64),
            DataType::Float64 => Ok(Self::Double),
            text if is_text(text) => Ok(Self::ByteArray),
            DataType::Dictionary(codes, of) if **codes == DataType::UInt32 && is_text(of) => {
                Ok(Self::ByteArray)
            }
            _ => Err(unsupported(field)),
        }
    }
}

fn unsupported(field: &Field) -> io::Error {
    let text =
        format!("column `{}` is {}, not written to Parquet", field.name(), field.data_type());
    io::Error::new(io::ErrorKind::Unsupported, text)
}

pub(super) struct Column<'a> {
    pub(super) nulls: Option<NullBuffer>,
    pub(super) dictionary: Option<Dictionary>,
    pub(super) bounds: Option<Bounds>,
    /// Of floats only.
    pub(super) nans: Option<usize>,
    /// The row after each page.
    pub(super) page_ends: Vec<usize>,
    values: Values<'a>,
}

/// Distinct values in the order of their first appearance.
pub(super) struct Dictionary {
    pub(super) len: usize,
    pub(super) plain: Vec<u8>,
}

/// The least and the greatest value, as bytes.
pub(super) struct Bounds {
    pub(super) min: Vec<u8>,
    pub(super) max: Vec<u8>,
}

/// The values of the rows that are not null.
enum Values<'a> {
    None,
    Codes {
        codes: Vec<u32>,
        width: u32,
    },
    Int64(Cow<'a, [i64]>),
    /// The bits of floats.
    Double(Cow<'a, [i64]>),
    Boolean(BooleanBuffer),
    Text(Vec<&'a str>),
}

impl<'a> Column<'a> {
    pub(super) fn of(field: &Field, array: &'a dyn Array) -> io::Result<Self> {
        let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        let rows = array.len();
        let mut column = Self {
            page_ends: page_ends(rows, |_| PAGE_ROWS),
            nulls,
            dictionary: None,
            bounds: None,
            nans: None,
            values: Values::None,
        };
        if column.null_count() == rows {
            return Ok(column);
        }
        if let Some(array) = array.as_primitive_opt::<Int64Type>() {
            column.int64(array.values());
        } else if let Some(array) = array.as_primitive_opt::<Float64Type>() {
            column.float64(array.values());
        } else if let Some(array) = array.as_boolean_opt() {
            column.boolean(array.values());
        } else if let Some(array) = array.as_string_opt::<i32>() {
            column.text(array);
        } else if let Some(array) = array.as_string_opt::<i64>() {
            column.text(array);
        } else if let Some(array) = array.as_dictionary_opt::<UInt32Type>() {
            let coded = if let Some(texts) = array.values().as_string_opt::<i32>() {
                column.coded_text(array, texts)
            } else if let Some(texts) = array.values().as_string_opt::<i64>() {
                column.coded_text(array, texts)
            } else {
                return Err(unsupported(field));
            };
            coded.ok_or_else(|| {
                let text = format!("column `{}` has a code beyond its dictionary", field.name());
                io::Error::new(io::ErrorKind::InvalidData, text)
            })?;
        } else {
            return Err(unsupported(field));
        }
        Ok(column)
    }

    pub(super) fn null_count(&self) -> usize {
        self.nulls.as_ref().map_or(0, NullBuffer::null_count)
    }

    pub(super) fn encoding(&self) -> Encoding {
        match self.values {
            Values::Codes { .. } => Encoding::RleDictionary,
            Values::Int64(_) => Encoding::DeltaBinaryPacked,
            Values::None | Values::Double(_) | Values::Boolean(_) | Values::Text(_) => {
                Encoding::Plain
            }
        }
    }

    /// Appends some of the values that are there: `range` counts those, not rows.
    pub(super) fn encode(&self, out: &mut Vec<u8>, range: Range<usize>) {
        match &self.values {
            Values::None => {}
            Values::Codes { codes, width } => {
                out.push(*width as u8);
                encode::hybrid(out, &codes[range], *width);
            }
            Values::Int64(values) => encode::delta(out, &values[range]),
            Values::Double(values) => words(out, &values[range]),
            Values::Boolean(values) => encode::bits(out, &values.slice(range.start, range.len())),
            Values::Text(values) => values[range].iter().for_each(|text| plain_text(out, text)),
        }
    }

    fn int64(&mut self, values: &'a [i64]) {
        let values = present(values, self.nulls.as_ref());
        let coded = distinct(&values);
        let all = coded.as_ref().map_or(&*values, |(_, distinct)| distinct);
        let (min, max) =
            all.iter().fold((i64::MAX, i64::MIN), |(min, max), v| (min.min(*v), max.max(*v)));
        self.bounds =
            Some(Bounds { min: min.to_le_bytes().to_vec(), max: max.to_le_bytes().to_vec() });
        match coded {
            Some((codes, distinct)) => self.set_coded_words(codes, &distinct),
            None => self.values = Values::Int64(values),
        }
    }

    fn float64(&mut self, values: &'a ScalarBuffer<f64>) {
        let present_values = present(values, self.nulls.as_ref());
        let nans = present_values.iter().filter(|value| value.is_nan()).count();
        self.nans = Some(nans);
        // Where NaN is greater than all numbers, as to DuckDB, bounds of the others would hide it.
        if nans == 0 {
            let (min, max) =
                present_values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), v| {
                    (min.min(*v), max.max(*v))
                });
            // Zeros are equal, whatever their sign: the bounds are to hold both.
            let min = if min == 0.0 { -0.0 } else { min };
            let max = if max == 0.0 { 0.0 } else { max };
            self.bounds =
                Some(Bounds { min: min.to_le_bytes().to_vec(), max: max.to_le_bytes().to_vec() });
        }
        let values: Cow<[i64]> =
            Cow::Owned(present_values.iter().map(|value| value.to_bits() as i64).collect());
        match distinct(&values) {
            Some((codes, distinct)) => self.set_coded_words(codes, &distinct),
            None => self.values = Values::Double(values),
        }
    }

    fn set_coded_words(&mut self, codes: Vec<u32>, distinct: &[i64]) {
        let mut plain = vec![];
        words(&mut plain, distinct);
        self.values = Values::Codes { codes, width: encode::width_of(distinct.len()) };
        self.dictionary = Some(Dictionary { len: distinct.len(), plain });
    }

    fn boolean(&mut self, values: &BooleanBuffer) {
        let values = match &self.nulls {
            None => values.clone(),
            Some(nulls) => nulls.valid_indices().map(|row| values.value(row)).collect(),
        };
        let (min, max) = (!values.has_false(), values.has_true());
        self.bounds = Some(Bounds { min: vec![min.into()], max: vec![max.into()] });
        self.values = Values::Boolean(values);
    }

    fn text<O: OffsetSizeTrait>(&mut self, array: &'a GenericStringArray<O>) {
        let texts: Vec<&str> = match &self.nulls {
            None => (0..array.len()).map(|row| array.value(row)).collect(),
            Some(nulls) => nulls.valid_indices().map(|row| array.value(row)).collect(),
        };
        if let Some((codes, distinct)) = distinct_texts(&texts) {
            self.set_coded_texts(codes, &distinct);
            return;
        }
        self.bounds = text_bounds(&texts);
        let ends = array.value_offsets().get(1..).unwrap_or(&[]);
        self.page_ends = page_ends(array.len(), |from| {
            let before = array.value_offsets()[from].as_usize();
            let rows =
                ends[from..].partition_point(|end| end.as_usize() - before < PAGE_TEXT_BYTES);
            rows.clamp(1, PAGE_ROWS)
        });
        self.values = Values::Text(texts);
    }

    /// `None` if a code is beyond the dictionary.
    fn coded_text<O: OffsetSizeTrait>(
        &mut self,
        array: &'a DictionaryArray<UInt32Type>,
        texts: &'a GenericStringArray<O>,
    ) -> Option<()> {
        let codes = present(array.keys().values(), self.nulls.as_ref());
        let (codes, used) = renumbered(&codes, texts.len())?;
        let used: Vec<&str> = used.iter().map(|code| texts.value(*code as usize)).collect();
        self.set_coded_texts(codes, &used);
        Some(())
    }

    fn set_coded_texts(&mut self, codes: Vec<u32>, distinct: &[&str]) {
        let mut plain = vec![];
        distinct.iter().for_each(|text| plain_text(&mut plain, text));
        self.bounds = text_bounds(distinct);
        self.values = Values::Codes { codes, width: encode::width_of(distinct.len()) };
        self.dictionary = Some(Dictionary { len: distinct.len(), plain });
    }
}

/// Splits rows into pages: `rows_from` says how many the page that starts at a row may have.
fn page_ends(rows: usize, rows_from: impl Fn(usize) -> usize) -> Vec<usize> {
    let next = |from: &usize| (*from < rows).then(|| rows.min(from + rows_from(*from)));
    std::iter::successors(next(&0), next).collect()
}

/// The values of the rows that are not null.
fn present<'a, T: Copy>(values: &'a [T], nulls: Option<&NullBuffer>) -> Cow<'a, [T]> {
    let Some(nulls) = nulls else {
        return Cow::Borrowed(values);
    };
    let mut present = Vec::with_capacity(nulls.len() - nulls.null_count());
    for (word, values) in nulls.inner().bit_chunks().iter_padded().zip(values.chunks(64)) {
        if word == u64::MAX {
            present.extend_from_slice(values);
            continue;
        }
        let mut left = word;
        while left != 0 {
            present.extend(values.get(left.trailing_zeros() as usize));
            left &= left - 1;
        }
    }
    Cow::Owned(present)
}

const UNUSED: u32 = u32::MAX;

/// Codes anew, without gaps and in the order of first appearance, and the old code of each. `None`
/// if a code is beyond the dictionary.
fn renumbered(codes: &[u32], dictionary: usize) -> Option<(Vec<u32>, Vec<u32>)> {
    let mut used = vec![];
    // The dictionary is often that of a whole trace: a table of it is not worth it for few rows.
    if dictionary / 16 > codes.len() {
        let mut numbers: FxHashMap<u32, u32> = FxHashMap::default();
        let renumbered = codes.iter().map(|code| {
            *numbers.entry(*code).or_insert_with(|| {
                used.push(*code);
                used.len() as u32 - 1
            })
        });
        let renumbered = renumbered.collect();
        return used.iter().all(|code| (*code as usize) < dictionary).then_some((renumbered, used));
    }
    let mut numbers = vec![UNUSED; dictionary];
    let mut renumbered = Vec::with_capacity(codes.len());
    for code in codes {
        let number = numbers.get_mut(*code as usize)?;
        if *number == UNUSED {
            *number = used.len() as u32;
            used.push(*code);
        }
        renumbered.push(*number);
    }
    Some((renumbered, used))
}

/// The most distinct values for which a dictionary is smaller than the values by themselves.
fn distinct_limit(values: usize) -> usize {
    (values / 8 + 1).min(MAX_DISTINCT)
}

/// Numbers as codes of the distinct ones, in the order of first appearance; `None` once they are
/// too many.
fn distinct(values: &[i64]) -> Option<(Vec<u32>, Vec<i64>)> {
    let limit = distinct_limit(values.len());
    let mut known = Known { slots: vec![UNUSED; 256], values: vec![] };
    let mut codes = Vec::with_capacity(values.len());
    let mut last = (*values.first()?, known.code_of(*values.first()?));
    for eight in values.chunks(8) {
        if eight.iter().fold(0, |differing, value| differing | (value ^ last.0)) == 0 {
            codes.extend(std::iter::repeat_n(last.1, eight.len()));
            continue;
        }
        for value in eight {
            last = (*value, known.code_of(*value));
            codes.push(last.1);
        }
        if known.values.len() > limit {
            return None;
        }
    }
    Some((codes, known.values))
}

/// Distinct numbers, found by open addressing: what is looked at for every row stays in the cache.
struct Known {
    slots: Vec<u32>,
    values: Vec<i64>,
}

impl Known {
    #[inline]
    fn code_of(&mut self, value: i64) -> u32 {
        let code = self.slots[self.home_of(value)];
        match self.values.get(code as usize) {
            Some(known) if *known == value => code,
            _ => self.code_of_displaced_or_new(value),
        }
    }

    #[cold]
    fn code_of_displaced_or_new(&mut self, value: i64) -> u32 {
        let slot = self.slot_of(value);
        if self.slots[slot] != UNUSED {
            return self.slots[slot];
        }
        let code = self.values.len() as u32;
        self.slots[slot] = code;
        self.values.push(value);
        if self.values.len() * 4 > self.slots.len() {
            self.slots = vec![UNUSED; self.slots.len() * 2];
            for code in 0..self.values.len() {
                let slot = self.slot_of(self.values[code]);
                self.slots[slot] = code as u32;
            }
        }
        code
    }

    /// Where the number is, or else where it is to be put.
    fn slot_of(&self, value: i64) -> usize {
        let mut slot = self.home_of(value);
        loop {
            match self.values.get(self.slots[slot] as usize) {
                Some(known) if *known != value => slot = (slot + 1) & (self.slots.len() - 1),
                _ => return slot,
            }
        }
    }

    /// Where to look first: the highest bits of the product, which depend on all bits of the
    /// number. The lowest would be the same for all floats that are whole numbers.
    fn home_of(&self, value: i64) -> usize {
        let hash = (value as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (hash >> (64 - self.slots.len().trailing_zeros())) as usize
    }
}

/// As [`distinct`], of texts.
fn distinct_texts<'a>(texts: &[&'a str]) -> Option<(Vec<u32>, Vec<&'a str>)> {
    let limit = distinct_limit(texts.len());
    let mut known: FxHashMap<&str, u32> = FxHashMap::default();
    let mut distinct = vec![];
    let mut codes = Vec::with_capacity(texts.len());
    for text in texts {
        codes.push(match known.entry(text) {
            Entry::Occupied(code) => *code.get(),
            Entry::Vacant(_) if distinct.len() == limit => return None,
            Entry::Vacant(new) => {
                distinct.push(*text);
                *new.insert(distinct.len() as u32 - 1)
            }
        });
    }
    Some((codes, distinct))
}

fn text_bounds(texts: &[&str]) -> Option<Bounds> {
    let (min, max) = (texts.iter().min()?, texts.iter().max()?);
    (min.len().max(max.len()) <= MAX_BOUND_BYTES)
        .then(|| Bounds { min: min.as_bytes().to_vec(), max: max.as_bytes().to_vec() })
}

fn words(out: &mut Vec<u8>, values: &[i64]) {
    out.reserve(8 * values.len());
    values.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
}

/// A text is below 4 GiB: a page that holds a longer one is refused for its size.
fn plain_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_occur_are_numbered_by_first_appearance() {
        let expected = Some((vec![0, 1, 0, 2], vec![70, 3, 9]));
        // By a table, and by a map where the dictionary is far larger than the rows.
        assert_eq!(renumbered(&[70, 3, 70, 9], 71), Some((vec![0, 1, 0, 2], vec![70, 3, 9])));
        assert_eq!(renumbered(&[70, 3, 70, 9], 1 << 20), expected);
        assert_eq!(renumbered(&[70, 3], 70), None);
        assert_eq!(renumbered(&[70, 1 << 20], 1 << 20), None);
    }

    #[test]
    fn only_few_distinct_numbers_are_coded() {
        let few: Vec<i64> = (0..80_000).map(|n| (n % 9000) << 40).collect();
        let (codes, values) = distinct(&few).expect("few are distinct");
        assert_eq!(values.len(), 9000);
        assert!(codes.iter().zip(&few).all(|(code, value)| values[*code as usize] == *value));
        let many: Vec<i64> = (0..80_000).collect();
        assert!(distinct(&many).is_none());
        assert_eq!(distinct(&[4]), Some((vec![0], vec![4])));
        assert_eq!(distinct(&[4, 5]), None);
    }

    #[test]
    fn nulls_are_left_out() {
        let nulls: Vec<bool> = (0..200).map(|n| n < 64 || n % 3 == 0).collect();
        let values: Vec<i64> = (0..200).collect();
        let expected: Vec<i64> = values.iter().copied().filter(|n| nulls[*n as usize]).collect();
        assert_eq!(*present(&values, Some(&NullBuffer::from(nulls))), expected);
    }

    #[test]
    fn pages_end_where_they_are_full_and_with_the_rows() {
        assert!(page_ends(0, |_| 10).is_empty());
        assert_eq!(page_ends(20, |_| 10), [10, 20]);
        assert_eq!(page_ends(6, |from| from + 1), [1, 3, 6]);
    }
}
