//! Whether the internal functions of a library have symbols.

use super::root::Root;
use laggard_core::model::host::Known;
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection, ReadCache};
use std::fs::File;
use std::path::Path;

/// Where the symbols come from; `None` if there are none.
pub(super) fn of(root: &Root, path: &str) -> Known<Option<String>> {
    let real = root.path(path);
    let file = match File::open(&real) {
        Ok(file) => file,
        Err(error) => return Known::unknown(format!("cannot open {path}: {error}")),
    };
    let cache = ReadCache::new(file);
    let elf = match ElfFile64::<Endianness, _>::parse(&cache) {
        Ok(elf) => elf,
        Err(error) => return Known::unknown(format!("cannot read {path}: {error}")),
    };
    let has = |name: &str| elf.section_by_name(name).is_some_and(|section| section.size() > 0);
    let inside = [
        (".debug_info", "debug info in the file"),
        (".symtab", "symbol table in the file"),
        (".gnu_debugdata", "compressed symbol table in the file"),
    ];
    if let Some((_, what)) = inside.iter().find(|(name, _)| has(name)) {
        return Known::Is(Some((*what).to_owned()));
    }
    let by_id = elf.build_id().ok().flatten().and_then(|id| {
        let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let (first, rest) = hex.split_at_checked(2)?;
        Some(format!("/usr/lib/debug/.build-id/{first}/{rest}.debug"))
    });
    let by_path = std::fs::canonicalize(&real).ok().map(|real| {
        let real = real.display().to_string();
        format!("/usr/lib/debug{real}.debug")
    });
    let apart = [by_id, by_path].into_iter().flatten().find(|path| root.exists(path));
    Known::Is(apart.map(|_| "separate debug file in /usr/lib/debug".to_owned()))
}

/// Symbols of the C library, at the usual locations of distributions.
pub(super) fn of_libc(root: &Root) -> Known<Option<String>> {
    let arch = std::env::consts::ARCH;
    let places = [
        format!("/lib/{arch}-linux-gnu/libc.so.6"),
        "/lib64/libc.so.6".to_owned(),
        "/usr/lib/libc.so.6".to_owned(),
        format!("/lib/ld-musl-{arch}.so.1"),
    ];
    match places.iter().find(|path| Path::is_file(&root.path(path))) {
        Some(path) => of(root, path),
        None => Known::unknown("no C library found in the usual directories"),
    }
}
