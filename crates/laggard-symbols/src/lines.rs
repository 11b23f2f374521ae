//! Source lines and inlined calls, from DWARF.

use crate::{Elf, demangle};
use gimli::{EndianSlice, LittleEndian};
use std::borrow::Cow;

type Reader<'a> = EndianSlice<'a, LittleEndian>;

/// The lines of one file. Making it reads the list of its units; the rest is read as addresses
/// ask for it.
pub struct Lines<'a> {
    context: addr2line::Context<Reader<'a>>,
}

/// Where in the source an address is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// The function, demangled; empty when unknown.
    pub function: String,
    /// The source file; empty when unknown.
    pub file: String,
    /// The line; 0 when unknown.
    pub line: u32,
}

impl Elf {
    /// The lines of this file, from itself or its separate debug file. `None` when neither has
    /// debug information.
    pub fn lines(&self) -> Option<Lines<'_>> {
        let (dwarf, _) = self.dwarf()?;
        Some(Lines { context: addr2line::Context::from_dwarf(dwarf).ok()? })
    }

    /// Debug information, and the file that it is in.
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
    /// The function at an address and those it was inlined into, innermost first. All but the
    /// last are inlined; each but the first is at the line of its call. Empty when unknown.
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
