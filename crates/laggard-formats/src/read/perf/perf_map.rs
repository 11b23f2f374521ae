//! Names of code that a program made while it ran: `/tmp/perf-PID.map`, and what a jitdump adds.

use super::jitdump;
use std::path::Path;

/// Functions of one process.
#[derive(Debug, Default)]
pub(super) struct PerfMap {
    /// Start, end and name, by start.
    functions: Vec<(u64, u64, String)>,
}

/// What a name of a map stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Named<'a> {
    /// A Python function and its file.
    Python { function: &'a str, file: &'a str },
    /// Anything else.
    Other(&'a str),
}

impl PerfMap {
    /// The map that a process left, if any. An older one of the same number is no use, and told
    /// only by what it has for an address.
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
        // Of several at one address the last one counts, which a look-up finds first.
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
    fn python_functions_are_told_from_others() {
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
