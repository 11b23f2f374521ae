//! Symbols of JIT-compiled code: `/tmp/perf-PID.map` and jitdump files.

use super::jitdump;
use std::path::Path;

/// Functions of one process.
#[derive(Debug, Default)]
pub(super) struct PerfMap {
    /// Start, end and name, sorted by start.
    functions: Vec<(u64, u64, String)>,
}

/// The meaning of a name in a map.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Named<'a> {
    /// A Python function and its file.
    Python { function: &'a str, file: &'a str },
    /// Any other function.
    Other(&'a str),
}

impl PerfMap {
    /// Loads the map of a process, if any. A stale map of an earlier process with the same id
    /// cannot be detected.
    pub(super) fn of(pid: u32, jitdump: Option<&Path>) -> PerfMap {
        let text = jitdump::whole(Path::new(&format!("/tmp/perf-{pid}.map")));
        let dumped = jitdump.map(jitdump::functions).unwrap_or_default();
        PerfMap::parse(&String::from_utf8_lossy(&text), dumped)
    }

    fn parse(text: &str, dumped: Vec<(u64, u64, String)>) -> PerfMap {
        let line = |line: &str| {
            let (start, rest) = line.split_once(' ')?;
            let (size, name) = rest.split_once(' ')?;
            let number =
                |digits: &str| u64::from_str_radix(digits.trim_start_matches("0x"), 16).ok();
            let start = number(start)?;
            Some((start, start.saturating_add(number(size)?), name.trim_end().to_owned()))
        };
        let mut functions: Vec<_> = text.lines().filter_map(line).chain(dumped).collect();
        // The last of several functions at one address is used. Lookups find it first.
        functions.sort_by_key(|(start, ..)| *start);
        PerfMap { functions }
    }

    pub(super) fn name(&self, address: u64) -> Option<Named<'_>> {
        let after = self.functions.partition_point(|(start, ..)| *start <= address);
        let (_, end, name) = self.functions.get(after.checked_sub(1)?)?;
        (address < *end).then(|| Named::new(name))
    }
}

impl Named<'_> {
    fn new(name: &str) -> Named<'_> {
        match name.strip_prefix("py::").and_then(|rest| rest.split_once(':')) {
            Some((function, file)) => Named::Python { function, file },
            None => Named::Other(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_python_functions() {
        let map = PerfMap::parse(
            "1000 b py::work:/a b/c.py\nrubbish\n0x2000 10 LazyCompile:*f\n",
            vec![],
        );
        let python = Named::Python { function: "work", file: "/a b/c.py" };
        assert_eq!(map.name(0x100a), Some(python));
        assert_eq!(map.name(0x100b), None);
        assert_eq!(map.name(0x2000), Some(Named::Other("LazyCompile:*f")));
        assert_eq!(map.name(0), None);
    }
}
