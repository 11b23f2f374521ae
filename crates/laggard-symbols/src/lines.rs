//! Source lines and inlined calls from DWARF.

use crate::{Elf, demangle};
use gimli::{EndianSlice, LittleEndian};
use std::borrow::Cow;

type Reader<'a> = EndianSlice<'a, LittleEndian>;

/// The line tables of one file. Creating it reads the list of units. The rest is read on demand.
pub struct Lines<'a> {
    context: addr2line::Context<Reader<'a>>,
}

/// A source location.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// The function, demangled; empty if unknown.
    pub function: String,
    /// The source file; empty if unknown.
    pub file: String,
    /// The line; 0 if unknown.
    pub line: u32,
}

impl Elf {
    /// The line tables of this file or of its separate debug file. `None` if neither has debug
    /// info.
    pub fn lines(&self) -> Option<Lines<'_>> {
        let (dwarf, _) = self.dwarf()?;
        Some(Lines { context: addr2line::Context::from_dwarf(dwarf).ok()? })
    }

    /// The debug info, and the file that contains it.
    pub(crate) fn dwarf(&self) -> Option<(gimli::Dwarf<Reader<'_>>, &Elf)> {
        let with_debug = |elf: &&Elf| elf.has_section(".debug_info");
        let elf = Some(self).filter(with_debug).or_else(|| self.debug_file().filter(with_debug))?;
        let mut dwarf = gimli::Dwarf::load(|id| section(elf, id)).ok()?;
        if let Some(shared) = elf.supplement() {
            dwarf.load_sup(|id| section(shared, id)).ok()?;
        }
        Some((dwarf, elf))
    }
}

fn section(elf: &Elf, id: gimli::SectionId) -> Result<Reader<'_>, gimli::Error> {
    Ok(EndianSlice::new(elf.unpacked(id.name()), LittleEndian))
}

impl Lines<'_> {
    /// The function at an address and the functions it was inlined into, innermost first. All but
    /// the last are inlined. All but the first have the line of the call. Empty if unknown.
    pub fn locations(&self, svma: u64) -> Vec<Location> {
        let mut locations = vec![];
        let Ok(mut frames) = self.context.find_frames(svma).skip_all_loads() else {
            return locations;
        };
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            let location = frame.location.as_ref();
            locations.push(Location {
                function: demangle(&name.unwrap_or(Cow::Borrowed(""))).into_owned(),
                file: location.and_then(|at| at.file).unwrap_or_default().to_owned(),
                line: location.and_then(|at| at.line).unwrap_or_default(),
            });
        }
        locations
    }
}
