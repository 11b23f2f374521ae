//! Writes indexes: a placeholder, the streams, and finally the manifest in place of the
//! placeholder.

use super::{INDEX_SCHEMA, MANIFEST_SIZE, Manifest, StreamEntry, tables};
use crate::lag::Binding;
use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamEncoder;
use arrow_schema::ArrowError;
use laggard_core::model::timeline::Timeline;
use laggard_core::trace::summary::Summary;
use serde::Serialize;
use std::io::{self, Seek, SeekFrom, Write};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Writes the index of a trace. The writer must be at position 0 and support seeking.
pub fn write(
    out: &mut (impl Write + Seek),
    timeline: &Timeline,
    summary: &Summary,
    rules: u64,
    trace: &Binding,
) -> io::Result<()> {
    let mut manifest = Manifest {
        schema: INDEX_SCHEMA.into(),
        tool: concat!("laggard ", env!("CARGO_PKG_VERSION")).into(),
        rules,
        trace: trace.clone(),
        streams: vec![],
    };
    let mut offset = write_manifest(out, &manifest)?;
    let mut add = |name: &str, batch: &RecordBatch| -> io::Result<()> {
        let (length, checksum) = write_stream(out, batch)?;
        manifest.streams.push(StreamEntry {
            name: name.into(),
            offset,
            length,
            xxh3: format!("{checksum:016x}"),
        });
        offset += length;
        Ok(())
    };
    add(
        "summary",
        &tables::json_batch("summary", &serde_json::to_string(summary)?).map_err(arrow)?,
    )?;
    for batch in tables::batches(timeline).map_err(arrow)? {
        let name = batch.schema_ref().metadata()[super::STREAM_KEY].clone();
        add(&name, &batch)?;
    }
    out.seek(SeekFrom::Start(0))?;
    write_manifest(out, &manifest)?;
    out.flush()
}

pub(super) fn arrow(error: ArrowError) -> io::Error {
    io::Error::other(error)
}

pub(super) fn write_manifest(out: &mut impl Write, manifest: &impl Serialize) -> io::Result<u64> {
    write_sealed(out, "manifest", serde_json::to_string(manifest)?, MANIFEST_SIZE)
}

/// Writes a stream of one padded text and its checksum. Returns the length of the stream.
pub(super) fn write_sealed(
    out: &mut impl Write,
    stream: &str,
    mut text: String,
    size: usize,
) -> io::Result<u64> {
    let padding = size
        .checked_sub(text.len())
        .ok_or_else(|| io::Error::other(format!("the {stream} is too long")))?;
    text.extend(std::iter::repeat_n(' ', padding));
    let batch = tables::sealed_batch(stream, &text, xxh3_64(text.as_bytes())).map_err(arrow)?;
    Ok(write_stream(out, &batch)?.0)
}

/// Writes a stream. Returns its length and checksum.
pub(super) fn write_stream(out: &mut impl Write, batch: &RecordBatch) -> io::Result<(u64, u64)> {
    let (mut length, mut checksum) = (0, Xxh3::new());
    let mut encoder = StreamEncoder::try_new(batch.schema_ref()).map_err(arrow)?;
    let mut buffers = encoder.encode(batch).map_err(arrow)?;
    buffers.extend(encoder.finish().map_err(arrow)?);
    for buffer in buffers {
        checksum.update(&buffer);
        out.write_all(&buffer)?;
        length += buffer.len() as u64;
    }
    Ok((length, checksum.digest()))
}
