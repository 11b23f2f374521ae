//! Run files (`.lag`): Arrow IPC streams, one after the other.
//!
//! There are two formats. An *index* makes the second load of a trace instant; a *run* is what was
//! recorded. Both start with a manifest that says which one it is ([`format_of`]).
//!
//! In an index, the first stream is the manifest, the second a summary small enough that the default report
//! needs nothing else, then one stream a table. Each stream's name is in its schema's metadata
//! under [`STREAM_KEY`], its place and checksum in the manifest. Opening is a memory map; only the
//! streams that are asked for are read. Columns are found by name, so that a later version may
//! add some.
//!
//! A run grows while it is recorded: behind the manifest come parts (see `part.rs`), each with its
//! own length and checksum, so that one that was cut short is readable up to its last whole part.

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

/// Key in a stream's schema metadata that holds its name.
pub const STREAM_KEY: &str = "laggard.stream";

/// Name and version of the format of trace indexes. Raised when older readers would misread.
pub const INDEX_SCHEMA: &str = "laggard.index/1";

/// Name and version of the format of recorded runs. Raised when older readers would misread.
pub const RUN_SCHEMA: &str = "laggard.run/1";

/// Place and checksum of a stream.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct StreamEntry {
    name: String,
    offset: u64,
    length: u64,
    /// XXH3-64 of its bytes, as hexadecimal digits.
    xxh3: String,
}

/// The first stream: what the file is and where everything is.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Manifest {
    /// The first field: see [`MANIFEST_START`].
    schema: String,
    /// Program and version that wrote it.
    tool: String,
    /// Fingerprint of the rules behind the summary.
    rules: u64,
    /// The trace it was made from.
    trace: Binding,
    streams: Vec<StreamEntry>,
}

/// How the manifest's JSON starts.
const MANIFEST_START: &str = "{\"schema\":\"laggard.";

/// The manifest's JSON is padded to this, so that it can be written last and stand first.
const MANIFEST_SIZE: usize = 8 << 10;
