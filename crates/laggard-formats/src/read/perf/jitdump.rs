//! Reads `jit-PID.dump`: JIT-compiled functions in perf's jitdump format.
//!
//! Only names, and moves of functions, are read. Two functions can have the same address at
//! different times. Their timestamps may use another clock than the recording, so the later
//! function is used.

use super::bytes::Rest;
use rustc_hash::FxHashMap;
use std::path::Path;

/// Magic of little-endian files.
const MAGIC: u32 = 0x4a69_5444;
/// Maximum size of a file.
const LARGEST: u64 = 1 << 30;

/// Kinds of records.
mod kind {
    pub(super) const LOAD: u32 = 0;
    pub(super) const MOVE: u32 = 1;
}

/// Whether a mapped file is a jitdump, by its name.
pub(super) fn is_jitdump(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    name.strip_prefix(b"jit-")
        .and_then(|rest| rest.strip_suffix(b".dump"))
        .is_some_and(|pid| !pid.is_empty() && pid.iter().all(u8::is_ascii_digit))
}

/// Functions of a dump: start, end and name, in file order. Empty if unreadable; a damaged file is
/// read up to the damage.
pub(super) fn functions(path: &Path) -> Vec<(u64, u64, String)> {
    parse(&whole(path))
}

/// Content of a file written by a process. Empty if it is missing or too large.
pub(super) fn whole(path: &Path) -> Vec<u8> {
    let is_readable = path.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= LARGEST);
    if is_readable { std::fs::read(path).unwrap_or_default() } else { vec![] }
}

fn parse(bytes: &[u8]) -> Vec<(u64, u64, String)> {
    let mut functions = vec![];
    // The last function that started at each address.
    let mut latest: FxHashMap<u64, usize> = FxHashMap::default();
    let mut rest = Rest(bytes);
    let header = (|| {
        let (magic, _version, size) = (rest.u32()?, rest.u32()?, rest.u32()?);
        rest.take(u64::from(size).checked_sub(12)?)?;
        (magic == MAGIC).then_some(())
    })();
    if header.is_none() {
        return functions;
    }
    while let Some((kind, body)) = record(&mut rest) {
        let found = match kind {
            kind::LOAD => loaded(Rest(body)),
            kind::MOVE => moved(Rest(body), |from| functions.get(*latest.get(&from)?)),
            _ => None,
        };
        if let Some(function) = found {
            latest.insert(function.0, functions.len());
            functions.push(function);
        }
    }
    functions
}

/// Kind and body of the next record.
fn record<'a>(rest: &mut Rest<'a>) -> Option<(u32, &'a [u8])> {
    let (kind, size) = (rest.u32()?, rest.u32()?);
    rest.u64()?;
    Some((kind, rest.take(u64::from(size).checked_sub(16)?)?))
}

fn loaded(mut rest: Rest<'_>) -> Option<(u64, u64, String)> {
    let _pid_and_tid = rest.u64()?;
    let (start, _address, size, _index) = (rest.u64()?, rest.u64()?, rest.u64()?, rest.u64()?);
    let name = String::from_utf8_lossy(rest.text()).into_owned();
    Some((start, start.checked_add(size)?, name))
}

fn moved<'a>(
    mut rest: Rest<'_>,
    known: impl Fn(u64) -> Option<&'a (u64, u64, String)>,
) -> Option<(u64, u64, String)> {
    let _pid_and_tid = rest.u64()?;
    let (_start, from, to, size) = (rest.u64()?, rest.u64()?, rest.u64()?, rest.u64()?);
    let (.., name) = known(from)?;
    Some((to, to.checked_add(size)?, name.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, words: &[u64], name: &str) -> Vec<u8> {
        let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        body.extend(name.as_bytes());
        let size = 16 + body.len() as u32;
        [&kind.to_le_bytes()[..], &size.to_le_bytes(), &[0; 8], &body].concat()
    }

    #[test]
    fn reads_loaded_and_moved_functions() {
        let mut dump = [MAGIC, 1, 40].map(u32::to_le_bytes).concat();
        dump.resize(40, 0);
        dump.extend(record(0, &[7, 0x1000, 0x1000, 16, 0], "py::f:/a.py\0code"));
        dump.extend(record(2, &[0, 0], ""));
        dump.extend(record(1, &[7, 0x1000, 0x1000, 0x3000, 16, 0], ""));
        let whole = parse(&dump);
        assert_eq!(whole[0], (0x1000, 0x1010, "py::f:/a.py".to_owned()));
        assert_eq!(whole[1], (0x3000, 0x3010, "py::f:/a.py".to_owned()));
        for end in 0..dump.len() {
            assert!(parse(&dump[..end]).len() <= whole.len());
        }
        assert!(is_jitdump(b"/tmp/jit-42.dump") && !is_jitdump(b"/tmp/jit-.dump"));
    }
}
