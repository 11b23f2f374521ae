//! Finds separate debug files.

use crate::Elf;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Directories where distributions install debug files.
const ROOT: &str = "/usr/lib/debug";
/// Maximum unpacked size of `.gnu_debugdata`, which contains only symbols.
const LARGEST_EMBEDDED: u64 = 256 << 20;

/// The debug file of a file, by its build ID or by its `.gnu_debuglink`.
pub(crate) fn find(elf: &Elf) -> Option<Elf> {
    if elf.has_section(".debug_info") && elf.has_section(".symtab") {
        return None;
    }
    let own = elf.build_id();
    let cached = own.into_iter().flat_map(|id| caches(id, "debug", "debuginfo"));
    let installed = own.and_then(by_build_id).into_iter().chain(cached);
    if let Some(file) =
        installed.filter_map(|path| Elf::open(path).ok()).find(|file| file.build_id() == own)
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

/// The file with the common parts of several debug files, created by `dwz`.
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

/// The file with this build ID in the cache of perf or debuginfod. Needed if the file was replaced
/// or is from another machine.
pub(crate) fn cached(id: &str) -> Option<Elf> {
    let files = caches(id, "elf", "executable").into_iter();
    files.filter_map(|path| Elf::open(path).ok()).find(|file| file.build_id() == Some(id))
}

/// Paths of a file in caches: `~/.debug` for perf (`perf buildid-cache`, unpacked `perf archive`),
/// and the directory given by the environment variable for debuginfod.
fn caches(id: &str, of_perf: &str, of_debuginfod: &str) -> Vec<PathBuf> {
    let is_id = id.len() > 2 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let Some((head, tail)) = id.split_at_checked(2).filter(|_| is_id) else { return vec![] };
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let perf = home.iter().map(|home| home.join(".debug"));
    let perf = perf.map(|place| place.join(".build-id").join(head).join(tail).join(of_perf));
    let debuginfod = std::env::var_os("DEBUGINFOD_CACHE_PATH").map(PathBuf::from);
    let usual = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let usual = usual.or_else(|| home.as_ref().map(|home| home.join(".cache")));
    let debuginfod = debuginfod.or_else(|| usual.map(|cache| cache.join("debuginfod_client")));
    perf.chain(debuginfod.map(|place| place.join(id).join(of_debuginfod))).collect()
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
