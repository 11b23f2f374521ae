//! Opening a run file: a memory map, of which only the streams asked for are read.

use super::tables::{self, Wrong};
use super::{INDEX_SCHEMA, Manifest};
use crate::error::Error;
use crate::lag::Binding;
use crate::map::Map;
use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use laggard_core::model::timeline::Timeline;
use laggard_core::trace::summary::Summary;
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
        let bytes = tables::buffer(map.clone());
        let bad = |reason: Wrong| Error::BadRunFile { path: path.into(), reason };
        let first = bytes.slice_with_length(0, bytes.len().min(2 * super::MANIFEST_SIZE));
        let manifest = manifest(first).map_err(bad)?;
        if manifest.schema != INDEX_SCHEMA {
            return Err(bad(format!(
                "its format is {}, this program reads {INDEX_SCHEMA}",
                manifest.schema
            )));
        }
        Ok(RunFile { path: path.into(), map, bytes, manifest })
    }

    /// The trace that the file was made from.
    pub fn trace(&self) -> &Binding {
        &self.manifest.trace
    }

    /// Fingerprint of the rules behind the summary.
    pub fn rules(&self) -> u64 {
        self.manifest.rules
    }

    /// The summary.
    pub fn summary(&self) -> Result<Summary, Error> {
        self.reading(|| {
            let batch = self.stream("summary")?;
            serde_json::from_str(tables::json_of(&batch).ok_or("the summary is empty")?)
                .map_err(|error| error.to_string())
        })
    }

    /// All tables, mapped.
    pub fn timeline(&self) -> Result<Timeline, Error> {
        self.reading(|| tables::timeline(|name| self.stream(name)).and_then(checked))
    }

    /// Whether the file was whole whenever it was read so far.
    pub fn is_whole(&self) -> bool {
        self.map.is_whole()
    }

    fn reading<T>(&self, read: impl FnOnce() -> Result<T, Wrong>) -> Result<T, Error> {
        let result = read();
        if !self.map.is_whole() {
            return Err(Error::Shrank { path: self.path.clone() });
        }
        result.map_err(|reason| Error::BadRunFile { path: self.path.clone(), reason })
    }

    fn stream(&self, name: &str) -> Result<RecordBatch, Wrong> {
        let entry = self
            .manifest
            .streams
            .iter()
            .find(|entry| entry.name == name)
            .ok_or_else(|| format!("it has no stream {name}"))?;
        let end =
            entry.offset.checked_add(entry.length).filter(|&end| end <= self.bytes.len() as u64);
        end.ok_or_else(|| format!("stream {name} is cut short"))?;
        let bytes = self.bytes.slice_with_length(entry.offset as usize, entry.length as usize);
        if format!("{:016x}", xxh3_64(&bytes)) != entry.xxh3 {
            return Err(format!("the checksum of stream {name} does not hold"));
        }
        decode(bytes)
    }
}

fn manifest(first: Buffer) -> Result<Manifest, Wrong> {
    let batch = decode(first)?;
    let (text, checksum) =
        tables::manifest_of(&batch).ok_or("it does not start with a manifest")?;
    if xxh3_64(text.as_bytes()) != checksum {
        return Err("the checksum of the manifest does not hold".into());
    }
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// The batch of the stream at the start of the buffer.
fn decode(mut bytes: Buffer) -> Result<RecordBatch, Wrong> {
    let mut decoder = StreamDecoder::new().with_require_alignment(true);
    let batch = decoder.decode(&mut bytes).map_err(|error| error.to_string())?;
    batch.ok_or_else(|| "a stream is empty".into())
}

/// Refuses tables whose numbers point nowhere, so that what follows need not check each one.
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
            return Err("a table points outside the others".into());
        }
    }
    Ok(timeline)
}
