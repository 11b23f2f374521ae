//! Opens run files. The file is memory-mapped, and only requested streams are read.

use super::tables::{self, Wrong};
use super::{INDEX_SCHEMA, MANIFEST_START, Manifest};
use crate::error::Error;
use crate::lag::Binding;
use crate::map::Map;
use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use laggard_core::model::timeline::Timeline;
use laggard_core::trace::summary::Summary;
use memchr::memmem;
use std::fs::File;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// An open run file.
pub struct RunFile {
    path: PathBuf,
    map: Map,
    bytes: Buffer,
    manifest: Manifest,
}

impl RunFile {
    /// Opens a run file and reads its manifest.
    pub fn open(path: &Path) -> Result<RunFile, Error> {
        let file = File::open(path).map_err(Error::io("open", path))?;
        let map = Map::open(&file).map_err(Error::io("map", path))?;
        let bad = |reason: Wrong| Error::BadRunFile { path: path.into(), reason };
        let text = manifest(&map).map_err(bad)?;
        let parsed = |error: serde_json::Error| bad(error.to_string());
        let Format { schema } = serde_json::from_str(text).map_err(parsed)?;
        if schema != INDEX_SCHEMA {
            return Err(Error::OtherRunFile { path: path.into(), format: schema });
        }
        let manifest = serde_json::from_str(text).map_err(parsed)?;
        let bytes = tables::buffer(map.clone());
        Ok(RunFile { path: path.into(), map, bytes, manifest })
    }

    /// The trace that was indexed.
    pub fn trace(&self) -> &Binding {
        &self.manifest.trace
    }

    /// Fingerprint of the rules used for the summary.
    pub fn rules(&self) -> u64 {
        self.manifest.rules
    }

    /// Reads the summary.
    pub fn summary(&self) -> Result<Summary, Error> {
        self.reading(|| {
            let batch = self.stream("summary")?;
            serde_json::from_str(tables::json_of(&batch).ok_or("the summary is empty")?)
                .map_err(|error| error.to_string())
        })
    }

    /// Reads all tables. They refer to the mapped file.
    pub fn timeline(&self) -> Result<Timeline, Error> {
        self.reading(|| tables::timeline(|name| self.stream(name)).and_then(checked))
    }

    /// Fails if the file was truncated since it was opened. Tables refer to the mapped file, so
    /// call this after the last access to them.
    pub fn ensure_whole(&self) -> Result<(), Error> {
        if self.map.is_whole() { Ok(()) } else { Err(Error::Shrank { path: self.path.clone() }) }
    }

    fn reading<T>(&self, read: impl FnOnce() -> Result<T, Wrong>) -> Result<T, Error> {
        let result = read();
        self.ensure_whole()?;
        result.map_err(|reason| Error::BadRunFile { path: self.path.clone(), reason })
    }

    fn stream(&self, name: &str) -> Result<RecordBatch, Wrong> {
        let entry = self
            .manifest
            .streams
            .iter()
            .find(|entry| entry.name == name)
            .ok_or_else(|| format!("stream {name} is missing"))?;
        let end =
            entry.offset.checked_add(entry.length).filter(|&end| end <= self.bytes.len() as u64);
        end.ok_or_else(|| format!("stream {name} is truncated"))?;
        let bytes = self.bytes.slice_with_length(entry.offset as usize, entry.length as usize);
        if format!("{:016x}", xxh3_64(&bytes)) != entry.xxh3 {
            return Err(format!("checksum mismatch in stream {name}"));
        }
        decode(bytes)
    }
}

/// The part of a manifest that all formats and versions share.
#[derive(serde::Deserialize)]
pub(super) struct Format {
    pub(super) schema: String,
}

/// The padded text of the manifest at the start of a file.
pub(super) fn manifest(file: &[u8]) -> Result<&str, Wrong> {
    let first = &file[..file.len().min(2 * super::MANIFEST_SIZE)];
    sealed(first, MANIFEST_START, super::MANIFEST_SIZE)
        .map_err(|missing| missing.unwrap_or("the manifest is missing").replace("{}", "manifest"))
}

/// Finds a text by its start, and verifies the checksum that follows it. The error is `None` if the
/// start is not found.
///
/// The stream is not decoded to find the text, because no checksum covers the metadata that the
/// decoder would have to trust.
pub(super) fn sealed<'a>(
    bytes: &'a [u8],
    start: &str,
    size: usize,
) -> Result<&'a str, Option<&'static str>> {
    let start = memmem::find(bytes, start.as_bytes()).ok_or(None)?;
    let end = start + size;
    let text = bytes.get(start..end).ok_or(Some("the {} is truncated"))?;
    // The next column starts at the next multiple of 64.
    let behind = &bytes[end..bytes.len().min(end + 2 * 64)];
    if memmem::find(behind, &xxh3_64(text).to_le_bytes()).is_none() {
        return Err(Some("checksum mismatch in the {}"));
    }
    std::str::from_utf8(text).map_err(|_| None)
}

/// Decodes the batch of the stream at the start of the buffer.
fn decode(mut bytes: Buffer) -> Result<RecordBatch, Wrong> {
    let mut decoder = StreamDecoder::new().with_require_alignment(true);
    let batch = decoder.decode(&mut bytes).map_err(|error| error.to_string())?;
    batch.ok_or_else(|| "a stream is empty".into())
}

/// Rejects tables with invalid references, so that later code does not have to check them.
fn checked(timeline: Timeline) -> Result<Timeline, Wrong> {
    let (kinds, tracks) = (timeline.kinds.len(), timeline.tracks.len());
    for spans in timeline.all_spans() {
        let rows = spans.ts.len();
        let whole = [spans.dur.len(), spans.name.len(), spans.track.len(), spans.kind.len()]
            .iter()
            .all(|&len| len == rows);
        let inside = spans.kind.iter().all(|&kind| (kind as usize) < kinds)
            && spans.track.iter().all(|&track| (track as usize) < tracks);
        if !whole || !inside {
            return Err("a table has invalid references".into());
        }
    }
    Ok(timeline)
}
