//! Detects the format of benchmark results from the first keys, without reading the whole file.

/// The program that wrote benchmark results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `laggard bench`.
    Laggard,
    /// hyperfine, with `--export-json`.
    Hyperfine,
    /// pyperf.
    Pyperf,
    /// pytest-benchmark, with `--benchmark-json` or `--benchmark-save`.
    PytestBenchmark,
}

/// Maximum number of keys to look at.
const MOST_KEYS: usize = 1 << 14;
/// Depth of the keys of a row: an object inside a top-level list.
const OF_ROW: usize = 3;

/// The format of a file that starts with `head`; `None` if it has no benchmark results.
pub fn kind_of(head: &[u8]) -> Option<Kind> {
    let keys = keys(head);
    let has = |depth: usize, name: &[u8]| keys.iter().any(|k| k.depth == depth && k.name == name);
    let top = |name: &str| has(1, name.as_bytes());
    let row = |name: &str| has(OF_ROW, name.as_bytes());
    let is_ours = |key: &Key| {
        key.depth == 1 && key.name == b"schema" && key.value.starts_with(b"\"laggard.bench/")
    };
    match () {
        () if keys.iter().any(is_ours) => Some(Kind::Laggard),
        () if top("traceEvents") || top("schema") => None,
        () if top("cases") && row("series") => Some(Kind::Laggard),
        () if top("results") && row("command") && (row("times") || row("mean")) => {
            Some(Kind::Hyperfine)
        }
        () if top("machine_info") && (top("benchmarks") || top("commit_info")) => {
            Some(Kind::PytestBenchmark)
        }
        () if top("benchmarks") && row("stats") && row("fullname") => Some(Kind::PytestBenchmark),
        () if top("benchmarks") && row("runs") => Some(Kind::Pyperf),
        () => None,
    }
}

/// The top-level keys within the head.
pub(in crate::read) fn top_keys(head: &[u8]) -> Vec<String> {
    let top = keys(head).into_iter().filter(|key| key.depth == 1);
    top.map(|key| String::from_utf8_lossy(key.name).into_owned()).collect()
}

/// A key and the text after it.
struct Key<'a> {
    /// Number of enclosing braces and brackets.
    depth: usize,
    name: &'a [u8],
    value: &'a [u8],
}

/// Keys near the top level. The rest is not validated as JSON.
fn keys(head: &[u8]) -> Vec<Key<'_>> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let (mut keys, mut depth, mut at) = (vec![], 0usize, 0);
    if head.trim_ascii_start().first() != Some(&b'{') {
        return keys;
    }
    while let Some(&byte) = head.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let Some(length) = text_length(&head[at..]) else { break };
                let name = &head[at..at + length];
                at += length + 1;
                let rest = head[at..].trim_ascii_start();
                if depth <= OF_ROW
                    && let [b':', value @ ..] = rest
                {
                    keys.push(Key { depth, name, value: value.trim_ascii_start() });
                }
                if keys.len() >= MOST_KEYS {
                    break;
                }
            }
            _ => {}
        }
    }
    keys
}

/// Length of a string up to its closing quote.
fn text_length(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_format_by_keys_in_any_order() {
        let check = |text: &str, expected: Option<Kind>| {
            assert_eq!(kind_of(text.as_bytes()), expected, "{text}");
        };
        check(r#"{"schema": "laggard.bench/1", "cases": ["#, Some(Kind::Laggard));
        check(r#"{"schema":"laggard.bench/7"}"#, Some(Kind::Laggard));
        check(r#"{"cases": [{"name": "", "series": [{"batches": {"#, Some(Kind::Laggard));
        check(r#"{"schema": "laggard.calls/1", "cases": [{"series": 1}]}"#, None);
        check(r#"{"results": [{"command": "a", "mean": 1, "#, Some(Kind::Hyperfine));
        check(r#"{"results": [{"name": "a", "mean": 1, "#, None);
        check(r#"{"benchmarks": [{"metadata": {"name": "x"}, "runs": [{"#, Some(Kind::Pyperf));
        check(r#"{"machine_info": {}, "commit_info": {"#, Some(Kind::PytestBenchmark));
        check(r#"{"benchmarks": [{"fullname": "x", "stats": {"#, Some(Kind::PytestBenchmark));
        // Google Benchmark.
        check(r#"{"context": {}, "benchmarks": [{"name": "x", "real_time": 1}]}"#, None);
        // Strings in a trace can contain anything.
        check(r#"{"traceEvents": [{"results": 1, "command": 2, "mean": 3}]}"#, None);
        check(r#"{"note": "{\"results\": [{\"command\": 1, \"times\": ", "x": 1}"#, None);
        for other in
            ["", "   ", "[", "{", "{\"", "{\"a\\", "\"schema\": \"laggard.bench/1\"", "}}{"]
        {
            check(other, None);
        }
    }
}
