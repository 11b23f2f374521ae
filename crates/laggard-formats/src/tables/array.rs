//! Converts columns of evidence to Arrow arrays, without a copy where possible.

use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int64Array, LargeStringArray,
    StringArray, UInt32Array,
};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow_schema::DataType;
use laggard_core::model::timeline::{FIRST_WIDE_ID, Ids, Strings};
use laggard_core::model::{Column, NONE};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Type of integers and times.
pub(super) const NUMBER: DataType = DataType::Int64;
/// Type of fractional numbers.
pub(super) const REAL: DataType = DataType::Float64;
/// Type of booleans.
pub(super) const FLAG: DataType = DataType::Boolean;

/// Type of names in a trace: indexes into the string table of the trace.
pub(super) fn name() -> DataType {
    DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::LargeUtf8))
}

/// Type of texts with few distinct values.
pub(super) fn word() -> DataType {
    DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8))
}

/// An integer column, not copied.
pub(super) fn times(column: &Column<i64>) -> ArrayRef {
    Arc::new(Int64Array::new(column.clone(), None))
}

/// Integers, one per row.
pub(super) fn numbers(values: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

/// Nullable integers.
pub(super) fn maybe_numbers(values: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.collect::<Int64Array>())
}

/// Nullable fractional numbers.
pub(super) fn reals(values: impl Iterator<Item = Option<f64>>) -> ArrayRef {
    Arc::new(values.collect::<Float64Array>())
}

/// Booleans.
pub(super) fn flags(values: impl Iterator<Item = bool>) -> ArrayRef {
    Arc::new(values.map(Some).collect::<BooleanArray>())
}

/// Decodes ids. Ids that are missing or not numeric are null.
pub(super) fn ids(codes: impl ExactSizeIterator<Item = u32>, ids: &Ids) -> ArrayRef {
    let number = |code: u32| {
        if code < FIRST_WIDE_ID { Some(i64::from(code)) } else { ids.number(code) }
    };
    Arc::new(codes.map(number).collect::<Int64Array>())
}

/// The string table of a trace.
pub(super) fn strings(strings: &Strings) -> Arc<LargeStringArray> {
    let offsets = OffsetBuffer::new(strings.offsets.clone());
    // A damaged index can contain invalid UTF-8. All names are null then.
    let made = LargeStringArray::try_new(offsets, strings.bytes.clone(), None);
    Arc::new(made.unwrap_or_else(|_| LargeStringArray::from(Vec::<&str>::new())))
}

/// Names by their number in the string table. Unknown numbers are null.
pub(super) fn names(codes: &Column<u32>, strings: &Arc<LargeStringArray>) -> ArrayRef {
    dictionary(codes, strings.clone())
}

/// Names of rows in another table, by row number.
pub(super) fn names_of(
    rows: &Column<u32>,
    names: &Column<u32>,
    strings: &Arc<LargeStringArray>,
) -> ArrayRef {
    let name = |&row: &u32| names.get(row as usize).copied().unwrap_or(NONE);
    self::names(&rows.iter().map(name).collect(), strings)
}

/// Texts by number. Numbers out of range are null.
fn dictionary(codes: &Column<u32>, values: ArrayRef) -> ArrayRef {
    let known = values.len();
    let is_known = BooleanBuffer::collect_bool(codes.len(), |row| (codes[row] as usize) < known);
    let nulls = Some(NullBuffer::new(is_known)).filter(|nulls| nulls.null_count() > 0);
    // All codes that are not null are in range.
    Arc::new(DictionaryArray::new(UInt32Array::new(codes.clone(), nulls), values))
}

/// Texts as a dictionary of distinct values.
pub(super) fn words<T: AsRef<str>>(texts: impl Iterator<Item = Option<T>>) -> ArrayRef {
    let mut known: FxHashMap<String, u32> = FxHashMap::default();
    let mut values: Vec<String> = vec![];
    let mut code = |text: Option<T>| {
        let Some(text) = text else { return NONE };
        if let Some(&code) = known.get(text.as_ref()) {
            return code;
        }
        let code = values.len() as u32;
        values.push(text.as_ref().to_owned());
        known.insert(text.as_ref().to_owned(), code);
        code
    };
    let codes: Column<u32> = texts.map(&mut code).collect();
    dictionary(&codes, Arc::new(StringArray::from(values)))
}

/// Texts by number. Different numbers may have equal texts.
pub(super) fn coded(codes: impl Iterator<Item = usize>, texts: &[String]) -> ArrayRef {
    let mut places: FxHashMap<&str, u32> = FxHashMap::default();
    let mut values: Vec<&str> = vec![];
    let of_code: Vec<u32> = texts
        .iter()
        .map(|text| {
            *places.entry(text).or_insert_with(|| {
                values.push(text);
                values.len() as u32 - 1
            })
        })
        .collect();
    let codes: Column<u32> = codes.map(|code| of_code.get(code).copied().unwrap_or(NONE)).collect();
    dictionary(&codes, Arc::new(StringArray::from(values)))
}
