//! Finds functions of the process by name, in the dynamic linker's list of loaded files.
//!
//! `dlsym` does the same, but it takes a lock, and it is in a separate library on older systems.

/// The dynamic linker's entry for a loaded file (`struct link_map`).
#[repr(C)]
pub(crate) struct LinkMap {
    pub(crate) bias: u64,
    pub(crate) name: *const u8,
    pub(crate) dynamic: *const [u64; 2],
    pub(crate) next: *const LinkMap,
    pub(crate) previous: *const LinkMap,
}

const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_GNU_HASH: u64 = 0x6fff_fef5;

/// Entry of a symbol table.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Symbol {
    pub(crate) name: u32,
    pub(crate) kind: u8,
    pub(crate) other: u8,
    pub(crate) section: u16,
    pub(crate) value: u64,
    pub(crate) size: u64,
}

impl Symbol {
    /// Whether it may be a function: some assembly functions have no type.
    pub(crate) fn is_function(&self) -> bool {
        const NO_TYPE: u8 = 0;
        const FUNCTION: u8 = 2;
        const INDIRECT_FUNCTION: u8 = 10;
        matches!(self.kind & 15, NO_TYPE | FUNCTION | INDIRECT_FUNCTION)
    }

    /// Whether it has a type.
    pub(crate) fn has_type(&self) -> bool {
        self.kind & 15 != 0
    }
}

/// Address of a symbol that the file at `map` defines.
///
/// # Safety
/// `map` must be a fully relocated entry of the dynamic linker's list.
pub(crate) unsafe fn find(map: &LinkMap, name: &[u8]) -> Option<u64> {
    let (mut symbols, mut strings, mut hash) = (0u64, 0u64, 0u64);
    // SAFETY: the dynamic section ends with a zero tag, and the tables that it refers to are
    // mapped.
    unsafe {
        let mut entry = map.dynamic;
        if entry.is_null() {
            return None;
        }
        while (*entry)[0] != 0 {
            match (*entry)[0] {
                DT_SYMTAB => symbols = (*entry)[1],
                DT_STRTAB => strings = (*entry)[1],
                DT_GNU_HASH => hash = (*entry)[1],
                _ => {}
            }
            entry = entry.add(1);
        }
        if hash == 0 || symbols == 0 || strings == 0 {
            return None;
        }
        // If the linker could not relocate the section (vdso), the values are offsets.
        for value in [&mut hash, &mut symbols, &mut strings] {
            if *value < map.bias {
                *value += map.bias;
            }
        }
        let words = hash as *const u32;
        let (buckets, first, bloom) = (*words, *words.add(1), *words.add(2));
        if buckets == 0 {
            return None;
        }
        let bucket = words.add(4 + 2 * bloom as usize);
        let chain = bucket.add(buckets as usize);
        let wanted = name
            .iter()
            .fold(5381u32, |hash, &byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)));
        let mut index = *bucket.add((wanted % buckets) as usize);
        if index < first {
            return None;
        }
        loop {
            let hash = *chain.add((index - first) as usize);
            if hash | 1 == wanted | 1 {
                let symbol = &*(symbols as *const Symbol).add(index as usize);
                let text = (strings + u64::from(symbol.name)) as *const u8;
                if symbol.section != 0 && equals(text, name) {
                    return Some(map.bias.wrapping_add(symbol.value));
                }
            }
            if hash & 1 == 1 {
                return None;
            }
            index += 1;
        }
    }
}

/// Whether a null-terminated string equals `name`.
///
/// # Safety
/// `text` must be null-terminated.
pub(crate) unsafe fn equals(text: *const u8, name: &[u8]) -> bool {
    // SAFETY: stops at the first difference, at the latest at the terminating zero.
    unsafe { (0..name.len()).all(|i| *text.add(i) == name[i]) && *text.add(name.len()) == 0 }
}

/// Loaded files, in the order of symbol lookup.
pub(crate) struct Loaded(pub(crate) *const LinkMap);

impl Iterator for Loaded {
    type Item = &'static LinkMap;

    fn next(&mut self) -> Option<&'static LinkMap> {
        // SAFETY: entries of the linker's list, which only the linker changes. None is freed while
        // a constructor or the linker itself runs.
        let map = unsafe { self.0.as_ref()? };
        self.0 = map.next;
        Some(map)
    }
}
