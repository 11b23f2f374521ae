//! Indexes: run files that make repeated loads of a trace fast.
//!
//! The index of a trace is `<trace>.lagi` beside it, or a file in the user's cache directory if that
//! directory is not writable. The suffix differs from that of recordings, which must not be deleted.
//! Earlier versions named it `<trace>.lag`; such files are listed and deleted, but not used.
//!
//! An index is valid only for a trace with the same size, modification time and hash of samples of
//! its content. Otherwise the trace is loaded again. Indexes are written to
//! a temporary file and renamed, so that no process sees a partial index.

use super::read::RunFile;
use super::{INDEX_SCHEMA, write};
use crate::atomic;
use crate::error::Error;
use laggard_core::model::timeline::Timeline;
use laggard_core::trace::summary::Summary;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Suffix of indexes.
const SUFFIX: &str = "lagi";
/// Suffix of indexes of earlier versions.
const OLD_SUFFIX: &str = "lag";

/// Identifies the trace that an index belongs to.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Binding {
    /// Absolute path at the time the index was written. Not compared.
    pub path: String,
    /// File size in bytes.
    pub size: u64,
    /// Modification time, nanoseconds since the Unix epoch.
    pub changed_ns: i128,
    /// XXH3-64 of the head, middle and tail.
    pub content: u64,
}

impl Binding {
    /// Reads the identity of a trace.
    pub fn of(trace: &Path) -> Result<Binding, Error> {
        Binding::read(trace).map_err(Error::io("read", trace))
    }

    fn read(trace: &Path) -> io::Result<Binding> {
        const SAMPLE: u64 = 64 << 10;
        let mut file = File::open(trace)?;
        let meta = file.metadata()?;
        let size = meta.len();
        let mut hash = Xxh3::new();
        let mut sample = vec![0; SAMPLE as usize];
        for start in [0, (size / 2).saturating_sub(SAMPLE / 2), size.saturating_sub(SAMPLE)] {
            file.seek(SeekFrom::Start(start))?;
            let mut read = 0;
            while read < sample.len() {
                match file.read(&mut sample[read..])? {
                    0 => break,
                    n => read += n,
                }
            }
            hash.update(&sample[..read]);
        }
        let changed_ns =
            meta.modified()?.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as i128);
        let path = fs::canonicalize(trace)?.to_string_lossy().into_owned();
        Ok(Binding { path, size, changed_ns, content: hash.digest() })
    }

    fn fits(&self, other: &Binding) -> bool {
        (self.size, self.changed_ns, self.content) == (other.size, other.changed_ns, other.content)
    }
}

/// The state of the index of a trace.
pub enum Index {
    /// A run file that matches the current trace.
    Fresh(Box<RunFile>),
    /// No index exists.
    Missing,
    /// An index that does not match or cannot be read, with the reason.
    Unusable(PathBuf, String),
}

/// Possible paths of the index of a trace, preferred first.
fn places(trace: &Path) -> Vec<PathBuf> {
    let mut beside: OsString = trace.as_os_str().to_owned();
    beside.push(".");
    beside.push(SUFFIX);
    let mut places = vec![PathBuf::from(beside)];
    if let (Some(cache), Ok(absolute)) = (cache_directory(), fs::canonicalize(trace)) {
        let name = xxh3_64(absolute.as_os_str().as_encoded_bytes());
        places.push(cache.join(format!("{name:016x}.{SUFFIX}")));
    }
    places
}

/// The cache directory of indexes.
pub(super) fn cache_directory() -> Option<PathBuf> {
    Some(user_cache()?.join("index"))
}

/// The cache directory of laggard for the current user.
pub fn user_cache() -> Option<PathBuf> {
    let absolute = |variable: &str| {
        std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
    };
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("laggard"))
}

/// Finds the index of a trace.
pub fn find(trace: &Path, binding: &Binding) -> Index {
    let mut unusable = Index::Missing;
    for place in places(trace) {
        if !place.is_file() {
            continue;
        }
        match RunFile::open(&place) {
            Ok(file) if file.trace().fits(binding) => return Index::Fresh(Box::new(file)),
            Ok(_) => unusable = Index::Unusable(place, "the trace has changed".into()),
            Err(error) => unusable = Index::Unusable(place, reason(&error)),
        }
    }
    unusable
}

fn reason(error: &Error) -> String {
    match error {
        Error::BadRunFile { reason, .. } => reason.clone(),
        Error::OtherRunFile { format, .. } => {
            format!("its format is {format}, but this version reads {INDEX_SCHEMA}")
        }
        Error::Io { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}

/// The summary in an index, if it was computed with the same rules.
pub fn load(file: &RunFile, rules: u64) -> Result<Option<Summary>, Error> {
    if file.rules() == rules { file.summary().map(Some) } else { Ok(None) }
}

/// Writes the index of a trace and returns its path.
pub fn save(
    trace: &Path,
    timeline: &Timeline,
    summary: &Summary,
    rules: u64,
    binding: &Binding,
) -> Result<PathBuf, Error> {
    let mut failure = None;
    for place in places(trace) {
        match put(&place, |out| write(out, timeline, summary, rules, binding)) {
            Ok(()) => return Ok(place),
            Err(error) => {
                failure =
                    failure.or(Some(Error::Io { action: "write", path: place, source: error }))
            }
        }
    }
    Err(failure.unwrap_or_else(|| {
        Error::io("write", trace)(io::Error::other("no writable directory for the index"))
    }))
}

/// Writes an index, unless the path holds a file that is not an index.
fn put(
    place: &Path,
    fill: impl FnOnce(&mut BufWriter<&mut File>) -> io::Result<()>,
) -> io::Result<()> {
    if is_foreign(place) {
        let why = "a file of another kind already exists there";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
    }
    if let Some(directory) = place.parent().filter(|directory| is_cache(directory)) {
        fs::create_dir_all(directory)?;
    }
    atomic::write(place, fill)
}

fn is_cache(directory: &Path) -> bool {
    cache_directory().is_some_and(|cache| directory == cache)
}

fn has_suffix(path: &Path, suffix: &str) -> bool {
    path.extension().is_some_and(|extension| extension == suffix)
}

/// Whether a file can be identified as an index. A damaged file with the suffix of recordings may
/// be a recording, which cannot be recreated.
fn is_readable(path: &Path) -> bool {
    RunFile::open(path).is_ok()
}

/// Whether the path holds a file that is not an index (not even a damaged one), such as a
/// recording.
fn is_foreign(path: &Path) -> bool {
    let Ok(mut file) = File::open(path) else { return path.exists() };
    let mut magic = [0; 4];
    match file.read(&mut magic) {
        Ok(0) => false,
        Ok(n) if magic[..n] == [0xff; 4][..n] => matches!(
            RunFile::open(path),
            Err(Error::OtherRunFile { format, .. }) if !format.starts_with("laggard.index/")
        ),
        _ => true,
    }
}

/// An index on disk.
#[derive(Clone, Debug)]
pub struct IndexEntry {
    /// Path of the index.
    pub path: PathBuf,
    /// Size in bytes.
    pub size: u64,
    /// The trace it belongs to.
    pub trace: PathBuf,
    /// The reason why it is unusable, if any.
    pub problem: Option<String>,
}

/// Lists the indexes in the given directories and of the given traces. Without arguments, lists
/// those in the current directory and in the cache directory.
pub fn list(places: &[PathBuf]) -> Result<Vec<IndexEntry>, Error> {
    let mut files = vec![];
    let in_directory = |directory: &Path, files: &mut Vec<PathBuf>| -> Result<(), Error> {
        for entry in fs::read_dir(directory).map_err(Error::io("read", directory))? {
            let path = entry.map_err(Error::io("read", directory))?.path();
            let is_old = has_suffix(&path, OLD_SUFFIX);
            let is_ours = is_cache(directory) || is_readable(&path);
            if has_suffix(&path, SUFFIX) || is_old && is_ours {
                files.push(path);
            }
        }
        Ok(())
    };
    let usual = [PathBuf::from(".")];
    for place in if places.is_empty() { &usual } else { places } {
        if place.is_dir() {
            in_directory(place, &mut files)?;
        } else if has_suffix(place, SUFFIX) || has_suffix(place, OLD_SUFFIX) {
            fs::metadata(place).map_err(Error::io("find", place))?;
            files.push(place.clone());
        } else {
            let mut found = self::places(place);
            found.extend(found.clone().iter().map(|path| path.with_extension(OLD_SUFFIX)));
            found.retain(|path| path.is_file());
            if found.is_empty() {
                fs::metadata(place).map_err(Error::io("find", place))?;
            }
            files.extend(found);
        }
    }
    if let Some(cache) = cache_directory().filter(|cache| places.is_empty() && cache.is_dir()) {
        in_directory(&cache, &mut files)?;
    }
    files.sort();
    // The same file can be found through several paths.
    let mut seen = HashSet::new();
    files.retain(|path| fs::canonicalize(path).map_or(true, |real| seen.insert(real)));
    Ok(files.into_iter().filter(|path| !is_foreign(path)).map(entry).collect())
}

fn entry(path: PathBuf) -> IndexEntry {
    let size = fs::metadata(&path).map_or(0, |meta| meta.len());
    let (trace, problem) = match RunFile::open(&path) {
        Err(error) => (PathBuf::new(), Some(reason(&error))),
        Ok(file) => {
            // A trace that was moved together with its index is beside it.
            let recorded = PathBuf::from(&file.trace().path);
            let beside = path.with_extension("");
            let trace = if beside.is_file() { beside } else { recorded };
            let problem = match Binding::of(&trace) {
                Err(_) => Some("the trace no longer exists".to_owned()),
                Ok(binding) if !binding.fits(file.trace()) => {
                    Some("the trace has changed".to_owned())
                }
                Ok(_) if has_suffix(&path, OLD_SUFFIX) => {
                    Some(format!("an earlier version wrote it; indexes now end in .{SUFFIX}"))
                }
                Ok(_) => None,
            };
            (trace, problem)
        }
    };
    IndexEntry { path, size, trace, problem }
}

impl IndexEntry {
    /// Checks the whole file for damage. [`list`] reads only the manifest.
    pub fn look_closely(&mut self) {
        if self.problem.is_none() {
            let whole = RunFile::open(&self.path).and_then(|file| file.timeline());
            self.problem = whole.err().map(|error| reason(&error));
        }
    }
}

/// Removes an index. It is not an error if another process already removed it.
pub fn remove(entry: &IndexEntry) -> Result<(), Error> {
    match fs::remove_file(&entry.path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::io("remove", &entry.path)(error))
        }
        _ => Ok(()),
    }
}
