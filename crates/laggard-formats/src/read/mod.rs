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

/// Describes a file that is not a trace, for an error message. `keys` are the top-level keys of a
/// JSON object.
pub(crate) fn looks_like(head: &[u8], keys: &[String]) -> String {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let has = |key: &str| keys.iter().any(|k| k == key);
    let first = head.iter().find(|b| !b.is_ascii_whitespace());
    let known = match first {
        None => "an empty file",
        _ if head.starts_with(b"PERFILE2") => "perf.data",
        _ if head.starts_with(b"\xff\xff\xff\xff") => "an Arrow stream",
        _ if head.starts_with(b"\x89PNG") => "a PNG image",
        _ if callgrind::is_callgrind(head) => "a callgrind file",
        _ if head.starts_with(b"\x7fELF") => "an executable or library",
        _ if head.starts_with(b"PK") => "a zip archive",
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
        _ if std::str::from_utf8(&head[..head.len().min(1000)])
            .map_or_else(|e| e.error_len().is_none(), |_| true) =>
        {
            "plain text"
        }
        _ => "a binary file",
    };
    known.to_owned()
}
