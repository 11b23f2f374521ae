//! Names of functions by the tracebacks that they add.
//!
//! Code of Cython passes the dotted name of the current function to a helper when it raises an
//! error. A function that refers to one such name has that name. Most of these functions cannot be
//! called from Python, so that no record lists them.

use super::image::Image;
use super::names::{Candidate, Source};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// A text in all modules that can add tracebacks.
const MARK: &[u8] = b"\0cython_runtime\0";
/// Module of Cython's own classes, which every module contains.
const SHARED: &str = "View.MemoryView.";
/// Maximum number of references read. The largest modules have fifty thousand.
const MOST_REFERENCES: usize = 1 << 20;

/// Names by traceback. `stem` is the last component of the module's dotted name.
pub(super) fn find<'a>(image: &Image<'a>, stem: &str) -> Vec<Candidate<'a>> {
    if !image.contains_constant(MARK) {
        return vec![];
    }
    let functions = image.functions();
    let code = image.code().flat_map(|(svma, code)| references(svma, code));
    let named = code.take(MOST_REFERENCES).filter_map(|(from, to)| {
        let name = image.name(to).filter(|name| name.contains('.'))?;
        let at = functions.partition_point(|range| range.start <= from).checked_sub(1)?;
        let function = functions.get(at).filter(|range| range.contains(&from))?;
        Some((function.start, name))
    });
    let named: BTreeSet<(u64, &str)> = named.collect();
    let named: Vec<(u64, &str)> = named.into_iter().collect();
    let Some(module) = module(&named, stem) else { return vec![] };
    let mut found = vec![];
    for of_one in named.chunk_by(|a, b| a.0 == b.0) {
        let mut names = of_one.iter().filter_map(|(start, name)| {
            let name = name.strip_prefix(module).or_else(|| name.strip_prefix(SHARED))?;
            is_function(name).then_some((*start, name))
        });
        // Several names are those of inlined functions.
        if let (Some((start, name)), None) = (names.next(), names.next()) {
            let (class, name) = name.rsplit_once('.').unwrap_or(("", name));
            found.push(Candidate { start, source: Source::Traceback, class, name, suffix: "" });
        }
    }
    found
}

/// Addresses of `lea` instructions relative to the program counter, and the addresses they compute.
fn references(svma: u64, code: &[u8]) -> impl Iterator<Item = (u64, u64)> {
    const OPCODE: u8 = 0x8d;
    memchr::memchr_iter(OPCODE, code).filter_map(move |at| {
        let start = at.checked_sub(1)?;
        let bytes: &[u8; 7] = code.get(start..)?.first_chunk()?;
        let is_relative = bytes[0] & 0xfb == 0x48 && bytes[2] & 0xc7 == 5;
        let offset = i32::from_le_bytes(*bytes.last_chunk()?);
        let from = svma.wrapping_add(start as u64);
        let next = from.wrapping_add(bytes.len() as u64);
        is_relative.then(|| (from, next.wrapping_add_signed(offset.into())))
    })
}

/// The most frequent prefix of names that ends with the module's own name: `pandas._libs.lib.`.
fn module<'a>(named: &[(u64, &'a str)], stem: &str) -> Option<&'a str> {
    let mut counts: FxHashMap<&str, usize> = FxHashMap::default();
    for (_, name) in named {
        let mut start = 0;
        for part in name.split_inclusive('.') {
            start += part.len();
            if part.strip_suffix('.') == Some(stem) {
                *counts.entry(&name[..start]).or_default() += 1;
                break;
            }
        }
    }
    let most = counts.into_iter().max_by_key(|(name, count)| (*count, std::cmp::Reverse(*name)));
    most.map(|(name, _)| name)
}

/// Whether a name without its module is that of a function: not that of a dispatcher or a source
/// file.
fn is_function(name: &str) -> bool {
    !name.contains("__pyx_") && !matches!(name, "pxd" | "pyx" | "py")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_references_of_code() {
        // lea 0x10(%rip), %rdi; lea -0x20(%rip), %r9; lea 0x10(%rax), %rdi; truncated
        let code =
            b"\x48\x8d\x3d\x10\0\0\0\x4c\x8d\x0d\xe0\xff\xff\xff\x48\x8d\x78\x10\x48\x8d\x3d\0";
        let found: Vec<_> = references(0x1000, code).collect();
        assert_eq!(found, [(0x1000, 0x1017), (0x1007, 0xfee)]);
    }

    #[test]
    fn module_is_the_common_prefix() {
        let names = [
            (1, "numpy.lib.f"),
            (2, "pandas._libs.lib.f"),
            (3, "pandas._libs.lib.C.lib.g"),
            (4, "other.f"),
        ];
        assert_eq!(module(&names, "lib"), Some("pandas._libs.lib."));
        assert_eq!(module(&names, "no"), None);
    }
}
