//! Finds a library by its name, like the dynamic loader.

use std::path::{Path, PathBuf};

/// The cache of the loader.
const CACHE: &str = "/etc/ld.so.cache";
/// Directories to search if the cache has no match.
const DIRECTORIES: [&str; 7] = [
    "/lib64",
    "/usr/lib64",
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib",
    "/usr/lib",
    "/usr/local/lib",
];

/// The path of a library: `libm.so.6`, `libm.so` or just `m`. The directories in `first` are
/// searched before all others, like those in LD_LIBRARY_PATH.
pub fn locate(name: &str, first: &[PathBuf]) -> Option<PathBuf> {
    if name.is_empty() || name.contains('/') {
        return None;
    }
    let cache = std::fs::read(CACHE).unwrap_or_default();
    let cached = || best(name, entries(&cache)).map(|(_, path)| PathBuf::from(path));
    let mut directories = first.iter().map(PathBuf::as_path);
    directories.find_map(|directory| in_directory(name, directory)).or_else(cached).or_else(|| {
        DIRECTORIES.iter().find_map(|directory| in_directory(name, Path::new(directory)))
    })
}

fn in_directory(name: &str, directory: &Path) -> Option<PathBuf> {
    let names: Vec<String> = std::fs::read_dir(directory)
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    let pairs = names.iter().map(|name| (name.as_str(), name.as_str()));
    let (_, found) = best(name, pairs)?;
    Some(directory.join(found)).filter(|path| path.is_file())
}

/// The library that matches a name best; the first of equal matches.
fn best<'a>(name: &str, all: impl Iterator<Item = (&'a str, &'a str)>) -> Option<(usize, &'a str)> {
    all.filter_map(|(known, path)| Some((fit(name, known)?, path)))
        .reduce(|best, next| if next.0 < best.0 { next } else { best })
}

/// Distance of a library's name from the requested one. `None` if it does not match.
fn fit(name: &str, known: &str) -> Option<usize> {
    let with_suffix = |stem: &str| {
        let rest = known.strip_prefix(stem)?;
        (rest.starts_with(".so") || (stem.contains(".so") && rest.starts_with('.')))
            .then_some(rest.len())
    };
    match known {
        _ if known == name => Some(0),
        _ if name.contains(".so") => with_suffix(name),
        _ => with_suffix(name).or_else(|| with_suffix(&format!("lib{name}"))),
    }
}

/// Names and paths of the libraries for this machine in the loader cache.
fn entries(cache: &[u8]) -> impl Iterator<Item = (&str, &str)> {
    const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
    const HEADER: usize = 48;
    const ENTRY: usize = 24;
    /// A glibc library for x86-64.
    const FLAGS: u32 = 0x0303;
    // A table in the older format can precede it.
    let start = cache.windows(MAGIC.len()).position(|window| window == MAGIC);
    let cache = start.map_or(&[][..], |start| &cache[start..]);
    let word = |at: usize| {
        let bytes = cache.get(at..at.checked_add(4)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let text = move |offset: u32| {
        let rest = cache.get(offset as usize..)?;
        let end = rest.iter().take(4096).position(|byte| *byte == 0)?;
        std::str::from_utf8(&rest[..end]).ok()
    };
    let fitting = cache.len().saturating_sub(HEADER) / ENTRY;
    let count = (word(MAGIC.len()).unwrap_or(0) as usize).min(fitting);
    (0..count).filter_map(move |number| {
        let at = HEADER + number * ENTRY;
        (word(at)? == FLAGS).then_some(())?;
        Some((text(word(at + 4)?)?, text(word(at + 8)?)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_short_names() {
        for (name, known, expected) in [
            ("libm.so.6", "libm.so.6", Some(0)),
            ("libm.so", "libm.so.6", Some(2)),
            ("m", "libm.so.6", Some(5)),
            ("libm", "libm.so.6", Some(5)),
            ("m", "libmagic.so.1", None),
            ("libm.so.6", "libm.so.60", None),
            ("openblas", "libopenblas.so.0", Some(5)),
        ] {
            assert_eq!(fit(name, known), expected, "{name} {known}");
        }
    }

    #[test]
    fn finds_libc_but_not_unknown_names() {
        let found = locate("libc.so.6", &[]).map(|path| path.is_file());
        assert_eq!(found, Some(true));
        for name in ["", "/", "no-such-library", "../libc.so.6"] {
            assert_eq!(locate(name, &[]), None, "{name:?}");
        }
    }

    #[test]
    fn damaged_cache_has_no_entries() {
        let mut cache = b"glibc-ld.so.cache1.1".to_vec();
        assert_eq!(entries(&cache).count(), 0);
        cache.extend([0xff; 100]);
        assert_eq!(entries(&cache).count(), 0);
    }
}
