//! The data of a shared library as the loader leaves it: words, relocated pointers and texts.

use crate::Elf;
use crate::elf::{ENDIAN, Header};
use object::read::elf::{FileHeader, Rela, SectionHeader, Sym};
use object::{SymbolIndex, elf};
use std::ops::Range;

/// Maximum number of relocations read. The largest extension modules have half a million.
const MOST_RELOCATIONS: usize = 1 << 20;
/// Maximum length of a text. Longer texts are not names.
const LONGEST_TEXT: usize = 200;

/// The data of a library. All addresses are svmas and may be arbitrary.
pub(super) struct Image<'a> {
    sections: Vec<Section<'a>>,
    /// Relocated words by their address.
    pointers: Vec<(u64, Pointer)>,
    /// Functions in `.eh_frame`, by address.
    functions: Vec<Range<u64>>,
    elf: &'a Elf,
}

/// The value of a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pointer {
    Null,
    /// An address in this library.
    To(u64),
    /// A function or data of another library.
    Outside,
}

struct Section<'a> {
    svma: u64,
    bytes: &'a [u8],
    access: Access,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Code,
    Constants,
    Data,
}

impl<'a> Image<'a> {
    /// Reads the relocations of a library. `functions` are the ranges in its `.eh_frame`.
    pub(super) fn new(elf: &'a Elf, functions: Vec<Range<u64>>) -> Image<'a> {
        let mut sections = vec![];
        let mut left = elf.bytes().len();
        // Sections of a hostile file can overlap.
        for section in elf.sections().iter().filter(|section| section.svma > 0) {
            let bytes = section.range.clone().and_then(|range| elf.bytes().get(range));
            let Some(bytes) = bytes.filter(|bytes| bytes.len() <= left) else { continue };
            left -= bytes.len();
            let access = match (section.executable, section.writable) {
                (true, _) => Access::Code,
                (false, true) => Access::Data,
                (false, false) => Access::Constants,
            };
            sections.push(Section { svma: section.svma, bytes, access });
        }
        sections.sort_by_key(|section| section.svma);
        let mut image = Image { sections, pointers: vec![], functions, elf };
        image.pointers = image.relocations().unwrap_or_default();
        image
    }

    /// Addresses of all relocated words that point into this library, and their values.
    pub(super) fn pointers(&self) -> impl Iterator<Item = (u64, u64)> {
        self.pointers.iter().filter_map(|(slot, pointer)| match pointer {
            Pointer::To(value) => Some((*slot, *value)),
            _ => None,
        })
    }

    /// The pointer at an address; `None` if the word there is not a pointer.
    pub(super) fn pointer(&self, slot: u64) -> Option<Pointer> {
        match self.pointers.binary_search_by_key(&slot, |(slot, _)| *slot) {
            Ok(at) => Some(self.pointers[at].1),
            Err(_) => (self.stored(slot)? == 0).then_some(Pointer::Null),
        }
    }

    /// The number at an address; `None` if the word there is a pointer.
    pub(super) fn number(&self, svma: u64) -> Option<u64> {
        let is_pointer = self.pointers.binary_search_by_key(&svma, |(slot, _)| *slot).is_ok();
        if is_pointer { None } else { self.stored(svma) }
    }

    /// The dotted identifier at an address in constant data.
    pub(super) fn name(&self, svma: u64) -> Option<&'a str> {
        let section = self.section(svma).filter(|section| section.access == Access::Constants)?;
        let bytes = section.bytes.get(usize::try_from(svma - section.svma).ok()?..)?;
        let bytes = &bytes[..bytes.len().min(LONGEST_TEXT + 1)];
        let name = std::str::from_utf8(&bytes[..bytes.iter().position(|byte| *byte == 0)?]).ok()?;
        name.split('.').all(is_identifier).then_some(name)
    }

    /// Whether a function can start at an address: in code, but not within a known function.
    pub(super) fn is_function(&self, svma: u64) -> bool {
        let before = self.functions.partition_point(|range| range.start <= svma).checked_sub(1);
        let known = before.map(|at| &self.functions[at]);
        let is_inside = known.is_some_and(|range| range.start < svma && svma < range.end);
        !is_inside && self.elf.code_around(svma).is_some()
    }

    /// The function in `.eh_frame` that starts at an address.
    pub(super) fn function(&self, start: u64) -> Option<Range<u64>> {
        let at = self.functions.binary_search_by_key(&start, |range| range.start).ok()?;
        Some(self.functions[at].clone())
    }

    /// Whether constant data contains these bytes.
    pub(super) fn contains_constant(&self, bytes: &[u8]) -> bool {
        let mut constants = self.sections.iter().filter(|s| s.access == Access::Constants);
        constants.any(|section| memchr::memmem::find(section.bytes, bytes).is_some())
    }

    /// Sections of code, and their addresses.
    pub(super) fn code(&self) -> impl Iterator<Item = (u64, &'a [u8])> {
        let code = self.sections.iter().filter(|section| section.access == Access::Code);
        code.map(|section| (section.svma, section.bytes))
    }

    /// Whether an address is in data of the file.
    pub(super) fn is_data(&self, svma: u64) -> bool {
        self.section(svma).is_some_and(|section| section.access != Access::Code)
    }

    /// All functions in `.eh_frame`, by address.
    pub(super) fn functions(&self) -> &[Range<u64>] {
        &self.functions
    }

    pub(super) fn into_functions(self) -> Vec<Range<u64>> {
        self.functions
    }

    fn section(&self, svma: u64) -> Option<&Section<'a>> {
        let at = self.sections.partition_point(|section| section.svma <= svma).checked_sub(1)?;
        let section = &self.sections[at];
        (svma - section.svma < section.bytes.len() as u64).then_some(section)
    }

    fn stored(&self, svma: u64) -> Option<u64> {
        let section = self.section(svma)?;
        let bytes = section.bytes.get(usize::try_from(svma - section.svma).ok()?..)?;
        bytes.first_chunk().copied().map(u64::from_le_bytes)
    }

    fn relocations(&self) -> Option<Vec<(u64, Pointer)>> {
        let data = self.elf.bytes();
        let header = Header::parse(data).ok()?;
        let sections = header.sections(ENDIAN, data).ok()?;
        let symbols = sections.symbols(ENDIAN, data, elf::SHT_DYNSYM).ok()?;
        let target = |symbol: Option<SymbolIndex>, addend: i64| match symbol
            .and_then(|number| symbols.symbol(number).ok())
        {
            Some(symbol) if symbol.is_undefined(ENDIAN) => Pointer::Outside,
            Some(symbol) => Pointer::To(symbol.st_value(ENDIAN).wrapping_add_signed(addend)),
            None => Pointer::To(addend as u64),
        };
        let mut pointers = vec![];
        let mut left = MOST_RELOCATIONS;
        for section in sections.iter() {
            if let Ok(Some((relocations, _))) = section.rela(ENDIAN, data) {
                let relocations = &relocations[..relocations.len().min(left)];
                left -= relocations.len();
                pointers.extend(relocations.iter().filter_map(|relocation| {
                    let addend = relocation.r_addend(ENDIAN);
                    let pointer = match relocation.r_type(ENDIAN, false) {
                        elf::R_X86_64_RELATIVE => Pointer::To(addend as u64),
                        elf::R_X86_64_64 => target(relocation.symbol(ENDIAN, false), addend),
                        _ => return None,
                    };
                    Some((relocation.r_offset(ENDIAN), pointer))
                }));
            } else if let Ok(Some(slots)) = section.relr(ENDIAN, data) {
                // Values of these relocations are stored in the relocated words.
                for slot in slots.take(left) {
                    left -= 1;
                    pointers.extend(self.stored(slot).map(|value| (slot, Pointer::To(value))));
                }
            }
        }
        pointers.sort_unstable_by_key(|(slot, _)| *slot);
        pointers.dedup_by_key(|(slot, _)| *slot);
        Some(pointers)
    }
}

fn is_identifier(word: &str) -> bool {
    let is_start = |c: char| c == '_' || c.is_alphabetic();
    word.starts_with(is_start) && word.chars().all(|c| c == '_' || c.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers() {
        for (word, expected) in [
            ("get_item", true),
            ("_f1", true),
            ("größe", true),
            ("", false),
            ("1f", false),
            ("a b", false),
            ("a-b", false),
            ("a\u{1b}[0m", false),
        ] {
            assert_eq!(is_identifier(word), expected, "{word:?}");
        }
    }
}
