//! `AddressSpace`: the code mappings of one process.

use crate::maps::{self, Area};
use crate::{ModuleIndex, Modules};

/// The executable mappings of one process.
#[derive(Clone, Debug, Default)]
pub struct AddressSpace {
    /// Sorted by address, without overlap.
    mappings: Vec<Mapping>,
}

/// A range of executable addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The area reported by the kernel.
    pub area: Area,
    /// The mapped module; `None` for anonymous memory.
    pub module: Option<ModuleIndex>,
    /// The value to subtract from a pc to get an svma; 0 without a file.
    pub bias: u64,
}

/// The location of a pc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The module; `None` in anonymous memory.
    pub module: Option<ModuleIndex>,
    /// The address in the tables of the module.
    pub svma: u64,
}

impl AddressSpace {
    /// Updates the mappings from `/proc/PID/maps`. Call it again when an address is unknown.
    ///
    /// Removed mappings stay known until others replace them, because samples are read later than
    /// they are taken.
    pub fn refresh(&mut self, text: &[u8], modules: &mut Modules) {
        for area in maps::parse(text) {
            self.map(&area, modules);
        }
    }

    /// Adds an area, replacing what it covers.
    pub fn map(&mut self, area: &Area, modules: &mut Modules) {
        let first = self.mappings.partition_point(|known| known.area.end <= area.start);
        let last = self.mappings.partition_point(|known| known.area.start < area.end);
        if self.mappings.get(first).is_some_and(|known| known.area == *area) {
            return;
        }
        // Keep the uncovered parts of a partially covered mapping.
        let mut pieces = vec![];
        for known in &self.mappings[first..last.max(first)] {
            if known.area.start < area.start {
                let mut below = known.clone();
                below.area.end = area.start;
                pieces.push(below);
            }
        }
        if area.executable {
            pieces.push(Mapping::new(area.clone(), modules));
        }
        for known in &self.mappings[first..last.max(first)] {
            if known.area.end > area.end {
                let mut above = known.clone();
                above.area.offset = above.area.offset.wrapping_add(area.end - known.area.start);
                above.area.start = area.end;
                pieces.push(above);
            }
        }
        self.mappings.splice(first..last.max(first), pieces);
    }

    /// The location of a pc, if it is in code.
    #[inline]
    pub fn find(&self, pc: u64) -> Option<Place> {
        let at =
            self.mappings.partition_point(|mapping| mapping.area.start <= pc).checked_sub(1)?;
        let mapping = self.mappings.get(at).filter(|mapping| pc < mapping.area.end)?;
        Some(Place { module: mapping.module, svma: pc.wrapping_sub(mapping.bias) })
    }

    /// All mappings, sorted by address.
    pub fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    /// Removes all mappings, as after `exec`.
    pub fn clear(&mut self) {
        self.mappings.clear();
    }
}

impl Mapping {
    fn new(area: Area, modules: &mut Modules) -> Mapping {
        let module = modules.of_area(&area);
        let elf = module.and_then(|module| modules.get(module)?.elf.as_ref());
        let bias = elf.and_then(|elf| elf.bias(area.start, area.offset)).unwrap_or(0);
        Mapping { area, module, bias }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(texts: &[&str]) -> Vec<(u64, u64, u64, String)> {
        let (mut space, mut modules) = (AddressSpace::default(), Modules::default());
        for text in texts {
            space.refresh(text.as_bytes(), &mut modules);
        }
        let area = |m: &Mapping| (m.area.start, m.area.end, m.area.offset, m.area.path.clone());
        space
            .mappings()
            .iter()
            .map(area)
            .map(|(start, end, offset, path)| (start, end, offset, path.display().to_string()))
            .collect()
    }

    #[test]
    fn later_mappings_partially_cover_earlier_ones() {
        let seen = space(&["1000-9000 r-xp 0 0:0 1 /none/a", "3000-4000 r-xp 0 0:0 2 /none/b"]);
        let expected = [
            (0x1000, 0x3000, 0, "/none/a".to_owned()),
            (0x3000, 0x4000, 0, "/none/b".to_owned()),
            (0x4000, 0x9000, 0x3000, "/none/a".to_owned()),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn removed_mappings_stay_known_until_covered() {
        let seen = space(&["1000-2000 r-xp 0 0:0 1 /none/a", "5000-6000 r-xp 0 0:0 2 /none/b"]);
        assert_eq!(seen.len(), 2);
        let seen = space(&["1000-2000 r-xp 0 0:0 1 /none/a", "0-6000 rw-p 0 0:0 0 [heap]"]);
        assert_eq!(seen.len(), 0);
    }

    #[test]
    fn finds_addresses_at_the_edges() {
        let (mut space, mut modules) = (AddressSpace::default(), Modules::default());
        space.refresh(b"1000-2000 r-xp 0 0:0 0\n2000-3000 r-xp 0 0:0 1 /none/a", &mut modules);
        assert_eq!(space.find(0xfff), None);
        assert_eq!(space.find(0x1000), Some(Place { module: None, svma: 0x1000 }));
        assert!(space.find(0x2000).is_some_and(|place| place.module.is_some()));
        assert_eq!(space.find(0x3000), None);
    }
}
