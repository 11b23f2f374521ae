//! Names of PLT stubs. Each stub jumps through a slot that a relocation fills with a named
//! function.

use crate::Elf;
use crate::elf::{ENDIAN, Header};
use crate::symbols::LONGEST_NAME;
use object::elf;
use object::read::elf::{FileHeader, Rela, SectionHeader};
use rustc_hash::{FxHashMap, FxHashSet};

/// Maximum number of relocations read. The largest libraries have a million.
const MOST_RELOCATIONS: usize = 1 << 24;

/// A stub of the procedure linkage table.
pub(crate) struct Stub {
    pub(crate) start: u64,
    pub(crate) size: u64,
    /// The function name with `@plt` appended.
    pub(crate) name: String,
}

/// All stubs whose target has a name. `name_of` symbolizes addresses within the file, for slots
/// that the loader fills by calling a resolver function.
pub(crate) fn stubs(elf: &Elf, name_of: impl Fn(u64) -> Option<String>) -> Vec<Stub> {
    if !elf.is_x86_64() || !elf.sections().iter().any(is_plt) {
        return vec![];
    }
    let mut stubs = vec![];
    for section in elf.sections().iter().filter(|section| is_plt(section)) {
        let bytes = section.range.clone().and_then(|range| elf.bytes().get(range));
        let size = if section.entry_size == 8 { 8 } else { 16 };
        for (number, code) in bytes.unwrap_or_default().chunks_exact(size).enumerate() {
            let start = section.svma.wrapping_add((number * size) as u64);
            if let Some(slot) = slot_of(start, code) {
                stubs.push((slot, Stub { start, size: size as u64, name: String::new() }));
            }
        }
    }
    let wanted = stubs.iter().map(|(slot, _)| *slot).collect();
    let names = names(elf, &wanted, name_of).unwrap_or_default();
    let named = stubs.into_iter().filter_map(|(slot, stub)| {
        let name = format!("{}@plt", names.get(&slot)?);
        Some(Stub { name, ..stub })
    });
    named.collect()
}

/// Whether an address is in a procedure linkage table.
pub(crate) fn holds(elf: &Elf, svma: u64) -> bool {
    let section = elf.sections().iter().find(|s| svma.wrapping_sub(s.svma) < s.size);
    section.is_some_and(is_plt)
}

fn is_plt(section: &crate::elf::Section) -> bool {
    section.executable && section.name.starts_with(".plt")
}

/// The slot of a stub's `jmp *slot(%rip)`.
fn slot_of(start: u64, code: &[u8]) -> Option<u64> {
    let at = code.windows(2).position(|bytes| bytes == [0xff, 0x25])?;
    let offset = code.get(at + 2..)?.first_chunk().copied().map(i32::from_le_bytes)?;
    Some(start.wrapping_add(at as u64 + 6).wrapping_add_signed(i64::from(offset)))
}

/// The functions that relocations put into the given slots.
fn names(
    elf: &Elf,
    wanted: &FxHashSet<u64>,
    name_of: impl Fn(u64) -> Option<String>,
) -> Option<FxHashMap<u64, String>> {
    let data = elf.bytes();
    let header = Header::parse(data).ok()?;
    let sections = header.sections(ENDIAN, data).ok()?;
    let symbols = sections.symbols(ENDIAN, data, elf::SHT_DYNSYM).ok()?;
    let relocations = sections.iter().filter_map(|section| section.rela(ENDIAN, data).ok()?);
    let mut names = FxHashMap::default();
    for relocation in relocations.flat_map(|(all, _)| all).take(MOST_RELOCATIONS) {
        let slot = relocation.r_offset(ENDIAN);
        if !wanted.contains(&slot) || names.contains_key(&slot) {
            continue;
        }
        let name = match relocation.r_type(ENDIAN, false) {
            elf::R_X86_64_JUMP_SLOT | elf::R_X86_64_GLOB_DAT => {
                let symbol = relocation.symbol(ENDIAN, false);
                let symbol = symbol.and_then(|number| symbols.symbol(number).ok());
                symbol.and_then(|symbol| plain_name(symbols.symbol_name(ENDIAN, symbol).ok()?))
            }
            elf::R_X86_64_IRELATIVE => name_of(relocation.r_addend(ENDIAN) as u64),
            _ => None,
        };
        if let Some(name) = name {
            names.insert(slot, name);
        }
    }
    Some(names)
}

/// A name without its version.
fn plain_name(name: &[u8]) -> Option<String> {
    let name = name.split(|byte| *byte == b'@').next()?;
    let is_name = !name.is_empty() && name.len() <= LONGEST_NAME;
    is_name.then(|| String::from_utf8_lossy(name).into_owned())
}
