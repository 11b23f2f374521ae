//! Writes runs: part by part during the recording, then as a whole.

use super::part;
use super::rows::{self, Counts};
use super::tables::json_batch;
use super::write::{arrow, write_manifest};
use super::{RUN_SCHEMA, calls};
use crate::atomic;
use crate::error::Error;
use arrow_array::RecordBatch;
use laggard_core::model::calls::Calls;
use laggard_core::model::profile::{About, Profile};
use serde_json::json;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The first stream of a run.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Manifest {
    /// The first field, as in every manifest.
    pub(super) schema: String,
    /// Program and version that wrote the file.
    pub(super) tool: String,
    /// `profile` or `calls`.
    pub(super) kind: String,
    /// Start of the run, seconds since the Unix epoch.
    pub(super) started_unix: f64,
}

impl Manifest {
    fn new(kind: &str, about: &About) -> Manifest {
        Manifest {
            schema: RUN_SCHEMA.into(),
            tool: concat!("laggard ", env!("CARGO_PKG_VERSION")).into(),
            kind: kind.into(),
            started_unix: about.started_unix,
        }
    }
}

/// Writes a run file incrementally. If the process is killed, the file is readable up to the last
/// [`append`].
///
/// [`append`]: Recorder::append
pub struct Recorder {
    path: PathBuf,
    file: File,
    written: Counts,
    parts: u64,
}

impl Recorder {
    /// Creates a file. An existing file is truncated.
    pub fn create(path: &Path, about: &About) -> Result<Recorder, Error> {
        let write = || -> io::Result<File> {
            let mut start = vec![];
            write_manifest(&mut start, &Manifest::new("profile", about))?;
            let mut file = File::create(path)?;
            file.write_all(&start)?;
            Ok(file)
        };
        let file = write().map_err(Error::io("write", path))?;
        let mut recorder =
            Recorder { path: path.into(), file, written: Counts::default(), parts: 0 };
        recorder.append(&Profile { about: about.clone(), ..Profile::default() })?;
        Ok(recorder)
    }

    /// Appends all rows that were not appended before, and the current metadata of the run. The
    /// numbers of appended rows must not change.
    pub fn append(&mut self, profile: &Profile) -> Result<(), Error> {
        let write = |file: &mut File| {
            let batches = rows::batches(profile, self.written).map_err(arrow)?;
            file.write_all(&part::encode(self.parts, false, &batches)?)
        };
        write(&mut self.file).map_err(Error::io("write", &self.path))?;
        self.parts += 1;
        self.written = self.written.max(Counts::of(profile));
        Ok(())
    }

    /// Replaces the appended parts with the finished profile, whose rows may be renumbered. If this
    /// fails, the appended parts stay readable.
    pub fn finish(self, profile: &Profile) -> Result<(), Error> {
        write_profile(&self.path, profile)
    }
}

/// Writes a finished profile.
pub fn write_profile(path: &Path, profile: &Profile) -> Result<(), Error> {
    let streams = rows::batches(profile, Counts::default()).map_err(arrow);
    put(path, &Manifest::new("profile", &profile.about), profile, streams)
}

/// Writes a call trace.
pub fn write_calls(path: &Path, calls: &Calls) -> Result<(), Error> {
    let streams = rows::batches(&calls.profile, Counts::default()).and_then(|mut streams| {
        streams.extend(calls::batches(calls)?);
        Ok(streams)
    });
    let manifest = Manifest::new("calls", &calls.profile.about);
    put(path, &manifest, &calls.profile, streams.map_err(arrow))
}

fn put(
    path: &Path,
    manifest: &Manifest,
    profile: &Profile,
    streams: io::Result<Vec<RecordBatch>>,
) -> Result<(), Error> {
    let summary = json!({"samples": profile.samples.len(), "threads": profile.threads.len(), "duration_ns": profile.about.duration_ns, "command": profile.about.command});
    let write = || -> io::Result<()> {
        let mut all = vec![json_batch("summary", &summary.to_string()).map_err(arrow)?];
        all.extend(streams?);
        let part = part::encode(0, true, &all)?;
        // Keep a symbolic link: write to its target.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        atomic::write(&target, |out| {
            write_manifest(out, manifest)?;
            out.write_all(&part)
        })
    };
    write().map_err(Error::io("write", path))
}
