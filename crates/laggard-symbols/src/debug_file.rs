//! Finds the separate files that debug information may live in.

use crate::Elf;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where distributions install debug files.
const ROOT: &str = "/usr/lib/debug";
/// What `.gnu_debugdata` may unpack to; it holds symbols only.
const LARGEST_EMBEDDED: u64 = 256 << 20;

/// The debug file of a file: by its build-id, or by its `.gnu_debuglink`.
pub(crate) fn find(elf: &Elf) -> Option<Elf> {
    if elf.has_section(".debug_info") && elf.has_section(".symtab") {
        return None;
    }
    let own = elf.build_id();
    if let Some(file) = own.and_then(by_build_id).and_then(|path| Elf::open(path).ok())
        && file.build_id() == own
    {
        return Some(file);
    }
    let (name, crc) = link(elf)?;
    let place = elf.path()?.parent()?;
    let under_root = Path::new(ROOT).join(place.strip_prefix("/").unwrap_or(place));
    [place.join(name), place.join(".debug").join(name), under_root.join(name)]
        .iter()
        .filter(|path| Some(path.as_path()) != elf.path())
        .filter_map(|path| Elf::open(path).ok())
        .find(|file| match (own, file.build_id()) {
            (Some(own), Some(theirs)) => own == theirs,
            _ => crc32(file.bytes()) == crc,
        })
}

/// The file that holds what several debug files have in common, as `dwz` makes it.
pub(crate) fn supplement(elf: &Elf) -> Option<Elf> {
    let (_, bytes) = elf.section_bytes(".gnu_debugaltlink")?;
    let (name, id) = bytes.split_at(bytes.iter().position(|byte| *byte == 0)?);
    let id: String = id.get(1..)?.iter().map(|byte| format!("{byte:02x}")).collect();
    let beside = elf.path().and_then(Path::parent).unwrap_or(Path::new("/"));
    let candidates = [by_build_id(&id), Some(beside.join(OsStr::from_bytes(name)))];
    candidates
        .into_iter()
        .flatten()
        .filter_map(|path| Elf::open(path).ok())
        .find(|file| file.build_id() == Some(&id))
}

/// The file embedded in `.gnu_debugdata`, which has symbols that `.dynsym` lacks.
pub(crate) fn embedded(elf: &Elf) -> Option<Elf> {
    let (_, packed) = elf.section_bytes(".gnu_debugdata")?;
    let decoder = xz4rust::XzDecoder::in_heap_with_alloc_dict_size(
        xz4rust::DICT_SIZE_MIN,
        xz4rust::DICT_SIZE_PROFILE_9,
    );
    let reader = xz4rust::XzReader::new_with_buffer_size_and_decoder(
        std::io::Cursor::new(packed.to_vec()),
        std::num::NonZeroUsize::new(1 << 16)?,
        decoder,
    );
    let mut bytes = vec![];
    reader.take(LARGEST_EMBEDDED).read_to_end(&mut bytes).ok()?;
    Elf::from_bytes(bytes, ".gnu_debugdata").ok()
}

fn by_build_id(id: &str) -> Option<PathBuf> {
    let (head, tail) = id.split_at_checked(2)?;
    Some(Path::new(ROOT).join(".build-id").join(head).join(format!("{tail}.debug")))
}

/// Name and checksum in `.gnu_debuglink`.
fn link(elf: &Elf) -> Option<(&OsStr, u32)> {
    let (_, bytes) = elf.section_bytes(".gnu_debuglink")?;
    let name = bytes.get(..bytes.iter().position(|byte| *byte == 0)?)?;
    let crc = bytes.last_chunk::<4>().copied().map(u32::from_le_bytes)?;
    let is_plain = !name.is_empty() && !name.contains(&b'/');
    is_plain.then_some((OsStr::from_bytes(name), crc))
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}
