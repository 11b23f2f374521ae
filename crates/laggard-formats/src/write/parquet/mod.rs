//! Writes Parquet files: you give a record batch, you get a complete file.
//!
//! Supported column types are `Int64`, `Float64`, `Boolean`, text, and text with a `UInt32`
//! dictionary; all are nullable. Unused dictionary values are not written. Readers need data pages
//! V1, `RLE_DICTIONARY`, `DELTA_BINARY_PACKED` and zstd, which pyarrow, DuckDB, polars and Spark
//! support.

mod column;
mod encode;
mod thrift;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use column::{Bounds, Column, Encoding, Physical};
use std::io::{self, Write};
use thrift::{Struct, Type};
use zstd::bulk::Compressor;

const MAGIC: &[u8] = b"PAR1";
const GROUP_ROWS: usize = 1 << 20;
const ZSTD_LEVEL: i32 = 1;
const ZSTD: i32 = 6;
/// In the format that readers parse to work around bugs of known writers.
const CREATED_BY: &str = concat!("laggard version ", env!("CARGO_PKG_VERSION"));

/// Writes a batch as a Parquet file with `metadata` as key-value metadata. Returns the number of
/// bytes written. A column of an unsupported type is an error before anything is written.
pub fn write(
    out: &mut impl Write,
    batch: &RecordBatch,
    metadata: &[(String, String)],
) -> io::Result<u64> {
    let schema = batch.schema();
    let physical = schema.fields().iter().map(|field| Physical::of(field));
    let physical = physical.collect::<io::Result<Vec<_>>>()?;
    let mut file =
        File { out, at: 0, zstd: Compressor::new(ZSTD_LEVEL)?, raw: vec![], compressed: vec![] };
    file.write(MAGIC)?;
    let mut groups = vec![];
    for from in (0..batch.num_rows()).step_by(GROUP_ROWS) {
        let rows = GROUP_ROWS.min(batch.num_rows() - from);
        groups.push(file.write_group(&batch.slice(from, rows))?);
    }
    let footer = footer(&schema, &physical, &groups, metadata);
    file.write(&footer)?;
    file.write(&size(footer.len())?.to_le_bytes())?;
    file.write(MAGIC)?;
    Ok(file.at)
}

struct File<'a, W> {
    out: &'a mut W,
    at: u64,
    zstd: Compressor<'static>,
    /// Buffer of a page, reused.
    raw: Vec<u8>,
    compressed: Vec<u8>,
}

struct Group {
    rows: usize,
    at: u64,
    chunks: Vec<Chunk>,
}

/// Footer data of a column in a row group.
struct Chunk {
    encoding: Encoding,
    rows: usize,
    nulls: usize,
    nans: Option<usize>,
    bounds: Option<Bounds>,
    /// Offset of the dictionary, if any.
    dictionary_at: Option<u64>,
    data_at: u64,
    pages: usize,
    bytes: u64,
    uncompressed_bytes: u64,
}

#[derive(Clone, Copy)]
enum Page {
    Data { rows: usize, encoding: Encoding },
    Dictionary { len: usize },
}

impl<W: Write> File<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn write_group(&mut self, batch: &RecordBatch) -> io::Result<Group> {
        let at = self.at;
        let schema = batch.schema_ref();
        let chunks = schema.fields().iter().zip(batch.columns()).map(|(field, array)| {
            let column = Column::of(field, array)?;
            self.write_chunk(column).map_err(|error| match error.kind() {
                io::ErrorKind::InvalidData => {
                    io::Error::new(error.kind(), format!("column `{}`: {error}", field.name()))
                }
                _ => error,
            })
        });
        let chunks = chunks.collect::<io::Result<_>>()?;
        Ok(Group { rows: batch.num_rows(), at, chunks })
    }

    fn write_chunk(&mut self, column: Column) -> io::Result<Chunk> {
        let encoding = column.encoding();
        let mut chunk = Chunk {
            encoding,
            rows: column.page_ends.last().copied().unwrap_or(0),
            nulls: column.null_count(),
            nans: column.nans,
            bounds: None,
            dictionary_at: None,
            data_at: self.at,
            pages: column.page_ends.len(),
            bytes: 0,
            uncompressed_bytes: 0,
        };
        if let Some(dictionary) = &column.dictionary {
            chunk.dictionary_at = Some(self.at);
            let page = Page::Dictionary { len: dictionary.len };
            self.write_page(&mut chunk, page, &dictionary.plain)?;
            chunk.data_at = self.at;
        }
        let (mut row, mut value) = (0, 0);
        for end in &column.page_ends {
            let rows = end - row;
            let mut raw = std::mem::take(&mut self.raw);
            raw.clear();
            let present = write_levels(&mut raw, &column, row, rows)?;
            column.encode(&mut raw, value..value + present);
            self.write_page(&mut chunk, Page::Data { rows, encoding }, &raw)?;
            self.raw = raw;
            (row, value) = (*end, value + present);
        }
        chunk.bounds = column.bounds;
        Ok(chunk)
    }

    fn write_page(&mut self, chunk: &mut Chunk, page: Page, raw: &[u8]) -> io::Result<()> {
        let uncompressed_bytes = size(raw.len())?;
        let mut compressed = std::mem::take(&mut self.compressed);
        compressed.clear();
        compressed.reserve(zstd::zstd_safe::compress_bound(raw.len()));
        self.zstd.compress_to_buffer(raw, &mut compressed)?;
        let header = page_header(page, uncompressed_bytes, size(compressed.len())?);
        self.write(&header)?;
        self.write(&compressed)?;
        chunk.bytes += (header.len() + compressed.len()) as u64;
        chunk.uncompressed_bytes += (header.len() + raw.len()) as u64;
        self.compressed = compressed;
        Ok(())
    }
}

/// Writes the length and the definition levels of some rows. Returns the number of rows with a
/// value.
fn write_levels(out: &mut Vec<u8>, column: &Column, row: usize, rows: usize) -> io::Result<usize> {
    let from = out.len();
    out.extend_from_slice(&[0; 4]);
    let present = match &column.nulls {
        None => {
            thrift::varint(out, (rows as u64) << 1);
            out.push(1);
            rows
        }
        Some(nulls) => {
            let nulls = nulls.slice(row, rows);
            encode::levels(out, nulls.inner());
            rows - nulls.null_count()
        }
    };
    let len = size(out.len() - from - 4)?;
    out[from..from + 4].copy_from_slice(&len.to_le_bytes());
    Ok(present)
}

/// A size for page headers, which have 31 bits.
fn size(bytes: usize) -> io::Result<i32> {
    i32::try_from(bytes).map_err(|_| {
        let text = format!("{bytes} bytes exceed the Parquet limit of 2 GiB");
        io::Error::new(io::ErrorKind::InvalidData, text)
    })
}

const DATA_PAGE: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;

fn page_header(page: Page, uncompressed_bytes: i32, bytes: i32) -> Vec<u8> {
    let mut header = Struct::default();
    let kind = match page {
        Page::Data { .. } => DATA_PAGE,
        Page::Dictionary { .. } => DICTIONARY_PAGE,
    };
    header.i32(1, kind);
    header.i32(2, uncompressed_bytes);
    header.i32(3, bytes);
    match page {
        Page::Data { rows, encoding } => header.nested(5, |data| {
            data.i32(1, rows as i32);
            data.i32(2, encoding as i32);
            data.i32(3, Encoding::Rle as i32);
            // Repetition levels; a flat table has none.
            data.i32(4, Encoding::Rle as i32);
        }),
        Page::Dictionary { len } => header.nested(7, |dictionary| {
            dictionary.i32(1, len as i32);
            dictionary.i32(2, Encoding::Plain as i32);
        }),
    }
    header.finish()
}

fn footer(
    schema: &Schema,
    physical: &[Physical],
    groups: &[Group],
    metadata: &[(String, String)],
) -> Vec<u8> {
    let mut file = Struct::default();
    file.i32(1, 2); // The format version that introduced these encodings.
    file.list(2, Type::Struct, physical.len() + 1);
    file.element_struct(|root| {
        root.binary(4, b"schema");
        root.i32(5, physical.len() as i32);
    });
    for (field, physical) in schema.fields().iter().zip(physical) {
        file.element_struct(|element| schema_element(element, field.name(), *physical));
    }
    file.i64(3, groups.iter().map(|group| group.rows as i64).sum());
    file.list(4, Type::Struct, groups.len());
    for group in groups {
        file.element_struct(|element| row_group(element, group, schema, physical));
    }
    if !metadata.is_empty() {
        file.list(5, Type::Struct, metadata.len());
        for (key, value) in metadata {
            file.element_struct(|pair| {
                pair.binary(1, key.as_bytes());
                pair.binary(2, value.as_bytes());
            });
        }
    }
    file.binary(6, CREATED_BY.as_bytes());
    // Readers ignore bounds without a column order.
    file.list(7, Type::Struct, physical.len());
    physical.iter().for_each(|_| file.element_struct(|order| order.nested(1, |_| {})));
    file.finish()
}

fn schema_element(element: &mut Struct, name: &str, physical: Physical) {
    const OPTIONAL: i32 = 1;
    const UTF8: i32 = 0;
    element.i32(1, physical as i32);
    element.i32(3, OPTIONAL);
    element.binary(4, name.as_bytes());
    if physical == Physical::ByteArray {
        element.i32(6, UTF8);
        // The logical type is a union whose first member is the text type.
        element.nested(10, |logical| logical.nested(1, |_| {}));
    }
}

fn row_group(element: &mut Struct, group: &Group, schema: &Schema, physical: &[Physical]) {
    element.list(1, Type::Struct, group.chunks.len());
    for ((chunk, field), physical) in group.chunks.iter().zip(schema.fields()).zip(physical) {
        element.element_struct(|column| {
            column.i64(2, 0);
            column.nested(3, |about| column_metadata(about, chunk, field.name(), *physical));
        });
    }
    element.i64(2, group.chunks.iter().map(|chunk| chunk.uncompressed_bytes as i64).sum());
    element.i64(3, group.rows as i64);
    element.i64(5, group.at as i64);
    element.i64(6, group.chunks.iter().map(|chunk| chunk.bytes as i64).sum());
}

fn column_metadata(about: &mut Struct, chunk: &Chunk, name: &str, physical: Physical) {
    about.i32(1, physical as i32);
    let mut encodings = vec![Encoding::Rle, chunk.encoding];
    if chunk.dictionary_at.is_some() {
        encodings.push(Encoding::Plain);
    }
    about.list(2, Type::I32, encodings.len());
    encodings.iter().for_each(|encoding| about.element_i32(*encoding as i32));
    about.list(3, Type::Binary, 1);
    about.element_binary(name.as_bytes());
    about.i32(4, ZSTD);
    about.i64(5, chunk.rows as i64);
    about.i64(6, chunk.uncompressed_bytes as i64);
    about.i64(7, chunk.bytes as i64);
    about.i64(9, chunk.data_at as i64);
    if let Some(at) = chunk.dictionary_at {
        about.i64(11, at as i64);
    }
    about.nested(12, |statistics| {
        statistics.i64(3, chunk.nulls as i64);
        if let Some(bounds) = &chunk.bounds {
            statistics.binary(5, &bounds.max);
            statistics.binary(6, &bounds.min);
            // The bounds are exact, not truncated.
            statistics.bool(7, true);
            statistics.bool(8, true);
        }
        if let Some(nans) = chunk.nans {
            statistics.i64(9, nans as i64);
        }
    });
    // They show readers that all pages use the dictionary, and that it is complete.
    let dictionary = chunk.dictionary_at.map(|_| (DICTIONARY_PAGE, Encoding::Plain, 1));
    let pages = [Some((DATA_PAGE, chunk.encoding, chunk.pages)), dictionary];
    about.list(13, Type::Struct, pages.iter().flatten().count());
    for (page, encoding, count) in pages.into_iter().flatten() {
        about.element_struct(|stats| {
            stats.i32(1, page);
            stats.i32(2, encoding as i32);
            stats.i32(3, count as i32);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{ArrayRef, Int32Array, Int64Array};
    use std::sync::Arc;

    fn file_of(name: &str, column: ArrayRef) -> io::Result<Vec<u8>> {
        let batch = RecordBatch::try_from_iter([(name, column)]).map_err(io::Error::other)?;
        let mut out = vec![];
        let bytes = write(&mut out, &batch, &[])?;
        assert_eq!(bytes, out.len() as u64);
        Ok(out)
    }

    #[test]
    fn file_ends_with_footer_and_length() {
        for rows in [0, 1, 9] {
            let file = file_of("n", Arc::new(Int64Array::from_iter_values(0..rows))).expect("file");
            let (rest, magic) = file.split_last_chunk::<4>().expect("magic");
            assert_eq!(magic, MAGIC);
            let (rest, len) = rest.split_last_chunk::<4>().expect("length");
            let footer = rest.len() - i32::from_le_bytes(*len) as usize;
            assert_eq!(&rest[..4], MAGIC);
            // Version 2, and a schema of two elements.
            assert_eq!(rest[footer..footer + 4], [0x15, 4, 0x19, 0x2C]);
            assert_eq!(footer == 4, rows == 0, "only a file without rows has no pages");
        }
    }

    #[test]
    fn rejects_unsupported_type_by_name() {
        let error = file_of("small", Arc::new(Int32Array::from(vec![1]))).expect_err("Int32");
        assert_eq!(
            error.to_string(),
            "column `small` has type Int32, which cannot be written to Parquet"
        );
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    }
}
