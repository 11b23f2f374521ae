//! Readers, one file or folder a format.

pub mod bench;
pub mod callgrind;
pub mod kineto;
#[cfg(unix)]
pub mod perf;
pub mod why;

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
