//! Parses `/proc/PID/maps`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A mapped address range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    /// Start address.
    pub start: u64,
    /// End address (exclusive).
    pub end: u64,
    /// Whether it is executable.
    pub executable: bool,
    /// Offset in the file.
    pub offset: u64,
    /// Major and minor number of the file's device.
    pub device: (u32, u32),
    /// Inode of the file; 0 without a file.
    pub inode: u64,
    /// Path of the file, a name in brackets, or empty.
    pub path: PathBuf,
    /// Whether the file was deleted.
    pub is_deleted: bool,
}

/// Parses all areas. Invalid lines are skipped.
pub(crate) fn parse(text: &[u8]) -> impl Iterator<Item = Area> {
    text.split(|byte| *byte == b'\n').filter_map(line)
}

fn line(line: &[u8]) -> Option<Area> {
    let (range, rest) = word(line)?;
    let (permissions, rest) = word(rest)?;
    let (offset, rest) = word(rest)?;
    let (device, rest) = word(rest)?;
    let (inode, path) = word(rest)?;
    let (start, end) = range.split_once('-')?;
    let (start, end) = (hex(start)?, hex(end)?);
    let (major, minor) = device.split_once(':')?;
    let path = path.trim_ascii_start();
    let (path, is_deleted) = match path.strip_suffix(b" (deleted)") {
        Some(path) => (path, true),
        None => (path, false),
    };
    (start < end).then_some(Area {
        start,
        end,
        executable: permissions.as_bytes().get(2) == Some(&b'x'),
        offset: hex(offset)?,
        device: (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?),
        inode: inode.parse().ok()?,
        path: PathBuf::from(OsString::from_vec(unescaped(path))),
        is_deleted,
    })
}

fn word(text: &[u8]) -> Option<(&str, &[u8])> {
    let text = text.trim_ascii_start();
    let end = text.iter().position(|byte| *byte == b' ').unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    Some((std::str::from_utf8(word).ok().filter(|word| !word.is_empty())?, rest))
}

fn hex(digits: &str) -> Option<u64> {
    u64::from_str_radix(digits, 16).ok()
}

/// The kernel escapes only newlines.
fn unescaped(path: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = rest.windows(4).position(|bytes| bytes == b"\\012") {
        plain.extend_from_slice(&rest[..at]);
        plain.push(b'\n');
        rest = &rest[at + 4..];
    }
    plain.extend_from_slice(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, path: &str, is_deleted: bool, executable: bool) {
        let areas: Vec<Area> = parse(text.as_bytes()).collect();
        assert_eq!(areas.len(), 1, "{text}");
        assert_eq!(areas[0].path, PathBuf::from(path));
        assert_eq!((areas[0].is_deleted, areas[0].executable), (is_deleted, executable));
        assert_eq!((areas[0].start, areas[0].end, areas[0].offset), (0x1000, 0x3000, 0x2000));
    }

    #[test]
    fn parses_all_kinds_of_lines() {
        check("1000-3000 r-xp 00002000 fe:01 77   /lib/a.so\n", "/lib/a.so", false, true);
        check("1000-3000 r--p 00002000 fe:01 77 /a b/c  d.so", "/a b/c  d.so", false, false);
        check("1000-3000 r-xp 00002000 fe:01 77 /x (deleted)", "/x", true, true);
        check("1000-3000 r-xp 00002000 00:00 0 /a\\012b", "/a\nb", false, true);
        check("1000-3000 r-xp 00002000 00:00 0 ", "", false, true);
        check("1000-3000 rwxp 00002000 00:00 0", "", false, true);
        check("1000-3000 r-xp 00002000 00:00 0      [vdso]", "[vdso]", false, true);
    }

    #[test]
    fn skips_invalid_lines() {
        for text in
            ["", "\n\n", "3000-1000 r-xp 0 0:0 0", "zz-1 r-xp 0 0:0 0", "1-2 r-xp", "\u{ff}"]
        {
            assert_eq!(parse(text.as_bytes()).count(), 0, "{text}");
        }
    }
}
