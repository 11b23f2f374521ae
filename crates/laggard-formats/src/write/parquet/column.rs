//! A Parquet column: the values that are not null, their bounds, and a dictionary if there are few
//! distinct values.

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

/// Rows per page. Traces repeat themselves from step to step, so the compressor finds more
/// repetition in longer pages.
pub(super) const PAGE_ROWS: usize = 1 << 18;
/// Bytes of text per page without a dictionary.
const PAGE_TEXT_BYTES: usize = 1 << 20;
/// Maximum number of distinct values for which a dictionary is built.
const MAX_DISTINCT: usize = 1 << 14;
/// Longer bounds are omitted: they are of little use, and readers load the whole footer.
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
    /// The physical type of a column. Fails if the type is not supported.
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
    let text = format!(
        "column `{}` has type {}, which cannot be written to Parquet",
        field.name(),
        field.data_type()
    );
    io::Error::new(io::ErrorKind::Unsupported, text)
}

pub(super) struct Column<'a> {
    pub(super) nulls: Option<NullBuffer>,
    pub(super) dictionary: Option<Dictionary>,
    pub(super) bounds: Option<Bounds>,
    /// Number of NaN values; floats only.
    pub(super) nans: Option<usize>,
    /// End row of each page.
    pub(super) page_ends: Vec<usize>,
    values: Values<'a>,
}

/// Distinct values in order of first appearance.
pub(super) struct Dictionary {
    pub(super) len: usize,
    pub(super) plain: Vec<u8>,
}

/// Minimum and maximum, encoded.
pub(super) struct Bounds {
    pub(super) min: Vec<u8>,
    pub(super) max: Vec<u8>,
}

/// Values of the rows that are not null.
enum Values<'a> {
    None,
    Codes {
        codes: Vec<u32>,
        width: u32,
    },
    Int64(Cow<'a, [i64]>),
    /// Bit patterns of floats.
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
                let text = format!("column `{}` has an index outside its dictionary", field.name());
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

    /// Appends values that are not null. `range` counts these values, not rows.
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
        // Some engines, such as DuckDB, order NaN above all numbers: bounds without it would hide
        // it.
        if nans == 0 {
            let (min, max) =
                present_values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), v| {
                    (min.min(*v), max.max(*v))
                });
            // Zeros of both signs are equal, so the bounds must include both.
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

    /// `None` if a code is outside the dictionary.
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

/// Splits rows into pages. `rows_from` returns the maximum number of rows of a page by its first
/// row.
fn page_ends(rows: usize, rows_from: impl Fn(usize) -> usize) -> Vec<usize> {
    let next = |from: &usize| (*from < rows).then(|| rows.min(from + rows_from(*from)));
    std::iter::successors(next(&0), next).collect()
}

/// Values of the rows that are not null.
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

/// Renumbers codes without gaps in order of first appearance. Also returns the old code of each new
/// one. `None` if a code is outside the dictionary.
fn renumbered(codes: &[u32], dictionary: usize) -> Option<(Vec<u32>, Vec<u32>)> {
    let mut used = vec![];
    // The dictionary is often that of a whole trace. For few rows, a map is cheaper than a table.
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

/// Maximum number of distinct values for which a dictionary is smaller than plain values.
fn distinct_limit(values: usize) -> usize {
    (values / 8 + 1).min(MAX_DISTINCT)
}

/// Encodes numbers as indexes of distinct values in order of first appearance. `None` if there are
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

/// Distinct numbers in a hash table with open addressing. The part accessed for each row fits in
/// the cache.
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

    /// Slot of the number, or the free slot for it.
    fn slot_of(&self, value: i64) -> usize {
        let mut slot = self.home_of(value);
        loop {
            match self.values.get(self.slots[slot] as usize) {
                Some(known) if *known != value => slot = (slot + 1) & (self.slots.len() - 1),
                _ => return slot,
            }
        }
    }

    /// First slot to try: the highest bits of the product, which depend on all bits of the number.
    /// The lowest bits are equal for all floats that are integers.
    fn home_of(&self, value: i64) -> usize {
        let hash = (value as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (hash >> (64 - self.slots.len().trailing_zeros())) as usize
    }
}

/// Like [`distinct`], for texts.
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

/// The length of a text is below 4 GiB: larger pages are rejected.
fn plain_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_numbered_by_first_appearance() {
        let expected = Some((vec![0, 1, 0, 2], vec![70, 3, 9]));
        // With a table, and with a map if the dictionary is much larger than the number of rows.
        assert_eq!(renumbered(&[70, 3, 70, 9], 71), Some((vec![0, 1, 0, 2], vec![70, 3, 9])));
        assert_eq!(renumbered(&[70, 3, 70, 9], 1 << 20), expected);
        assert_eq!(renumbered(&[70, 3], 70), None);
        assert_eq!(renumbered(&[70, 1 << 20], 1 << 20), None);
    }

    #[test]
    fn uses_dictionary_only_for_few_distinct_numbers() {
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
    fn omits_nulls() {
        let nulls: Vec<bool> = (0..200).map(|n| n < 64 || n % 3 == 0).collect();
        let values: Vec<i64> = (0..200).collect();
        let expected: Vec<i64> = values.iter().copied().filter(|n| nulls[*n as usize]).collect();
        assert_eq!(*present(&values, Some(&NullBuffer::from(nulls))), expected);
    }

    #[test]
    fn pages_end_when_full_and_at_the_last_row() {
        assert!(page_ends(0, |_| 10).is_empty());
        assert_eq!(page_ends(20, |_| 10), [10, 20]);
        assert_eq!(page_ends(6, |from| from + 1), [1, 3, 6]);
    }
}
