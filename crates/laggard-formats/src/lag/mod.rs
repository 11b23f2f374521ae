//! Run files (`.lag`): a sequence of Arrow IPC streams.
//!
//! There are two formats: an *index* for fast repeated loads of a trace, and a *run*, which is a
//! recording or a call trace. Both start with a manifest that identifies the format
//! ([`format_of`]).
//!
//! An index consists of the manifest, a summary and one stream per table. The summary is small and
//! sufficient for the default report. The schema metadata of each stream contains its name under
//! [`STREAM_KEY`]; the manifest contains its offset and checksum. The file is memory-mapped, and
//! only requested streams are read. Columns are found by name, so that later versions can add
//! columns.
//!
//! A run is written while it is recorded: parts follow the manifest (see `part.rs`), each with its
//! own length and checksum. A truncated run can be read up to its last complete part.

mod calls;
mod index;
mod part;
mod read;
mod record;
mod rows;
mod run;
mod tables;
mod write;

pub use index::{Binding, Index, IndexEntry, find, list, load, remove, save, user_cache};
pub use read::RunFile;
pub use record::{Recorder, write_calls, write_profile};
pub use run::{Loss, Run, format_of, read_run};
pub use write::write;

/// Key of the stream name in the schema metadata.
pub const STREAM_KEY: &str = "laggard.stream";

/// Name and version of the index format. The version increases when older readers would misread it.
pub const INDEX_SCHEMA: &str = "laggard.index/1";

/// Name and version of the run format. The version increases when older readers would misread it.
pub const RUN_SCHEMA: &str = "laggard.run/1";

/// Offset and checksum of a stream.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct StreamEntry {
    name: String,
    offset: u64,
    length: u64,
    /// XXH3-64 of the bytes, in hexadecimal.
    xxh3: String,
}

/// The first stream: format, origin and directory of the file.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Manifest {
    /// The first field: see [`MANIFEST_START`].
    schema: String,
    /// Program and version that wrote the file.
    tool: String,
    /// Fingerprint of the rules used for the summary.
    rules: u64,
    /// The trace that was indexed.
    trace: Binding,
    streams: Vec<StreamEntry>,
}

/// Start of the manifest's JSON.
const MANIFEST_START: &str = "{\"schema\":\"laggard.";

/// Padded size of the manifest's JSON. Fixed, because the manifest comes first but is written last.
const MANIFEST_SIZE: usize = 8 << 10;
