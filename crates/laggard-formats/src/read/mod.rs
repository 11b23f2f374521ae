//! Readers, one file or folder per format.

pub mod bench;
pub mod callgrind;
pub mod collapsed;
pub mod dtrace;
pub mod dtruss;
pub mod ffi;
pub mod firefox;
mod json;
mod kind;
pub mod kineto;
mod label;
pub mod massif;
#[cfg(unix)]
pub mod perf;
pub mod perf_script;
pub mod perf_stat;
pub mod pprof;
pub mod speedscope;
pub mod why;

pub use kind::{Kind, ProfileKind, kind_of};

use crate::{Error, Source};
use laggard_core::model::profile::Profile;

/// Reads a profile of any format. Frames without symbols in the file keep their addresses;
/// `laggard_symbols::resolve` symbolizes them.
pub fn read_profile(
    kind: ProfileKind,
    source: Source,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Profile, Error> {
    let mut profile = match kind {
        #[cfg(unix)]
        ProfileKind::PerfData => perf::read(source, progress),
        #[cfg(not(unix))]
        ProfileKind::PerfData => Err(Error::NotARecording {
            path: source.path,
            what: "perf.data files can only be read on Linux".into(),
        }),
        ProfileKind::PerfScript => perf_script::read(source, progress),
        ProfileKind::Collapsed => collapsed::read(source, progress),
        ProfileKind::Speedscope => speedscope::read(source, progress),
        ProfileKind::Pprof => pprof::read(source, progress),
        ProfileKind::Firefox => firefox::read(source, progress),
        ProfileKind::Callgrind => callgrind::read_profile(source, progress),
        ProfileKind::Massif => massif::read(source, progress),
        ProfileKind::Dtrace => dtrace::read(source, progress),
    }?;
    profile.quality.is_unknown = kind != ProfileKind::PerfData;
    Ok(profile)
}

/// Number of bytes used for format detection.
pub(crate) const HEAD_FOR_DETECTION: usize = 64 << 10;

/// Describes a file that no reader accepts. `None` for JSON that may be a trace, which only the trace
/// reader can decide: its events may be anywhere in the file.
pub fn describe_unknown(head: &[u8]) -> Option<String> {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    if !matches!(text.first(), Some(b'{' | b'[')) {
        return Some(looks_like(head, &[]));
    }
    let is_whole = head.len() < HEAD_FOR_DETECTION;
    let signs: [&[u8]; 3] = [b"traceEvents", b"\"ph\"", b"\\u"];
    let has_sign = signs.iter().any(|sign| memchr::memmem::find(head, sign).is_some());
    (is_whole && !has_sign).then(|| looks_like(head, &bench::top_keys(head)))
}

/// Kinds of files that start with these bytes and that laggard does not read.
const FOREIGN: [(&[u8], &str); 16] = [
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"\x7fELF", "an executable or library (ELF)"),
    (b"PK", "a zip archive"),
    (b"\x1f\x8b", "a gzip file inside another"),
    (b"\xfd7zXZ", "an xz file"),
    (b"BZh", "a bzip2 file"),
    (b"SQLite format 3\0", "an SQLite database, such as an export of Nsight Systems"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x89HDF", "an HDF5 file"),
    (b"NVR\0", "a report of Nsight Compute"),
    (b"PERFILE2", "perf.data"),
];

/// Describes a file that is not a trace, for an error message. `keys` are the top-level keys of a
/// JSON object.
pub(crate) fn looks_like(head: &[u8], keys: &[String]) -> String {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let has = |key: &str| keys.iter().any(|k| k == key);
    let first = head.iter().find(|b| !b.is_ascii_whitespace());
    let known = match first {
        None => "an empty file",
        _ if head.starts_with(b"\xff\xff\xff\xff") => "an Arrow stream",
        _ if callgrind::is_callgrind(head) => "a callgrind file",
        _ if FOREIGN.iter().any(|(magic, _)| head.starts_with(magic)) => {
            FOREIGN.iter().find(|(magic, _)| head.starts_with(magic)).map_or("", |(_, kind)| kind)
        }
        _ if has("workload_graph") || (has("nodes") && has("schema")) => "a Chakra execution trace",
        _ if has("rocprofiler-sdk-tool") => "rocprof output",
        _ if has("$schema") && memchr::memmem::find(head, b"speedscope").is_some() => {
            "a speedscope profile"
        }
        _ if has("meta") && has("threads") => "a Firefox Profiler profile",
        _ if has("benchmarks") && has("machine_info") => "pytest-benchmark results",
        _ if has("benchmarks") => "pyperf results",
        _ if has("results") && memchr::memmem::find(head, b"\"mean\"").is_some() => {
            "hyperfine results"
        }
        Some(b'[') => "a JSON array without trace events",
        Some(b'{') if keys.is_empty() => "a JSON object without traceEvents",
        Some(b'{') => {
            let shown: Vec<String> = keys.iter().take(4).map(|key| format!("{key:?}")).collect();
            let more = if keys.len() > shown.len() { ", …" } else { "" };
            return format!("JSON with the keys {}{more}", shown.join(", "));
        }
        _ if head.iter().take(1000).any(|byte| *byte == 0) => "a binary file",
        _ if std::str::from_utf8(&head[..head.len().min(1000)])
            .map_or_else(|e| e.error_len().is_none(), |_| true) =>
        {
            "plain text"
        }
        _ => "a binary file",
    };
    known.to_owned()
}
