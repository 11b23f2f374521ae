//! Readers, one file or folder a format.

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

/// Reads a profile of any program. Frames that the file has no names for are still addresses:
/// `laggard_symbols::resolve` names them.
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
            what: "recordings of perf are read on Linux only".into(),
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

/// How much of a file is looked at to tell what it is.
pub(crate) const HEAD_FOR_DETECTION: usize = 64 << 10;

/// What a file that is not a trace seems to be, for an error message. `keys` are the top-level
/// keys, when it is a JSON object.
pub(crate) fn looks_like(head: &[u8], keys: &[String]) -> String {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let has = |key: &str| keys.iter().any(|k| k == key);
    let first = head.iter().find(|b| !b.is_ascii_whitespace());
    let known = match first {
        None => "an empty file",
        _ if head.starts_with(b"PERFILE2") => "perf.data",
        _ if head.starts_with(b"\xff\xff\xff\xff") => "an Arrow stream",
        _ if head.starts_with(b"\x89PNG") => "a PNG picture",
        _ if callgrind::is_callgrind(head) => "a file of callgrind",
        _ if head.starts_with(b"\x7fELF") => "a program or library",
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
        Some(b'[') => "a JSON array whose elements are no trace events",
        Some(b'{') if keys.is_empty() => "a JSON object without traceEvents",
        Some(b'{') => {
            let shown: Vec<String> = keys.iter().take(4).map(|key| format!("{key:?}")).collect();
            let more = if keys.len() > shown.len() { ", …" } else { "" };
            return format!("JSON of another kind, with the keys {}{more}", shown.join(", "));
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
