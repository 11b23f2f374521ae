//! Functions by address, from all symbol tables of a file.
//!
//! Names stay in the string tables of the file: a library can have half a million symbols of a
//! hundred bytes each.

use crate::elf::{ENDIAN, Header};
use crate::{Elf, debug_file, extension, plt};
use object::elf::{self, SectionType};
use object::read::elf::{FileHeader, SectionHeader, Sym};
use std::borrow::Cow;
use std::ffi::CStr;
use std::ops::Range;

/// Longer names are truncated.
pub(crate) const LONGEST_NAME: usize = 1 << 14;
/// Maximum number of preceding symbols tried to find an enclosing one.
const MOST_NESTED: usize = 64;

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// The raw name, without a version (`@GLIBC_2.2.5`). Not always unique.
    pub name: Cow<'a, str>,
    /// Start address.
    pub start: u64,
    /// Size in bytes. If the file has no size, up to the next function.
    pub size: u64,
}

/// All functions of a file, by address.
pub(crate) struct Symbols {
    tables: Vec<Table>,
    entries: Vec<Entry>,
    /// Whether a full symbol table was found.
    has_full: bool,
    /// Functions without a symbol, by address. Only for stripped extension modules of Python.
    unnamed: Vec<Range<u64>>,
}

/// Location of names.
enum Table {
    /// In the file itself.
    Own(Range<usize>),
    /// In its separate debug file.
    Debug(Range<usize>),
    /// In this buffer, each name terminated by a zero byte.
    Kept(Vec<u8>),
}

#[derive(Clone, Copy)]
struct Entry {
    start: u64,
    end: u64,
    /// The maximum end of this and all preceding entries.
    reach: u64,
    name: u32,
    table: u8,
    is_weak: bool,
    rank: Rank,
}

/// The rank of a symbol among several at one address; the greatest is used. Among equal ranks, the
/// symbol with the fewest leading underscores is preferred, then one that is not weak, then the
/// shortest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    is_function: bool,
    has_size: bool,
    is_global: bool,
}

/// Addresses of exported functions and data, in the order of `names`.
pub(crate) fn exported<const N: usize>(elf: &Elf, names: [&str; N]) -> [Option<u64>; N] {
    let mut found = [None; N];
    let data = elf.bytes();
    let Ok(header) = Header::parse(data) else { return found };
    let Ok(sections) = header.sections(ENDIAN, data) else { return found };
    let Ok(symbols) = sections.symbols(ENDIAN, data, elf::SHT_DYNSYM) else { return found };
    for symbol in symbols.iter().filter(|symbol| symbol.st_shndx(ENDIAN) != elf::SHN_UNDEF) {
        let Ok(name) = symbols.symbol_name(ENDIAN, symbol) else { continue };
        if let Some(at) = names.iter().position(|wanted| wanted.as_bytes() == name) {
            found[at] = Some(symbol.st_value(ENDIAN));
        }
    }
    found
}

impl Symbols {
    pub(crate) fn load(elf: &Elf) -> Symbols {
        let mut symbols =
            Symbols { tables: vec![], entries: vec![], has_full: false, unnamed: vec![] };
        symbols.add_tables(elf, elf, |range, _| Table::Own(range));
        if let Some(debug) = elf.debug_file() {
            symbols.add_tables(elf, debug, |range, _| Table::Debug(range));
        }
        if let Some(embedded) = debug_file::embedded(elf) {
            symbols.add_tables(elf, &embedded, |range, bytes| {
                Table::Kept(bytes.get(range).unwrap_or_default().to_vec())
            });
        }
        symbols.finish(elf);
        let stubs = plt::stubs(elf, |svma| Some(symbols.find(elf, svma)?.name.into_owned()));
        if !stubs.is_empty() {
            symbols.add_stubs(&stubs);
            symbols.finish(elf);
        }
        if let Some(extension) = (!symbols.has_full).then(|| extension::derive_names(elf)).flatten()
        {
            symbols.add_derived(&extension.named);
            symbols.finish(elf);
            let is_unnamed = |range: &Range<u64>| {
                symbols.entry(range.start).is_none() && !plt::holds(elf, range.start)
            };
            symbols.unnamed = extension.functions.into_iter().filter(is_unnamed).collect();
        }
        symbols
    }

    /// The function that contains an address.
    pub(crate) fn find<'a>(&'a self, elf: &'a Elf, svma: u64) -> Option<Symbol<'a>> {
        self.entry(svma).map(|entry| self.symbol(elf, entry))
    }

    /// The function without a symbol that contains an address.
    pub(crate) fn find_unnamed(&self, svma: u64) -> Option<&Range<u64>> {
        let at = self.unnamed.partition_point(|range| range.start <= svma).checked_sub(1)?;
        self.unnamed.get(at).filter(|range| range.contains(&svma))
    }

    pub(crate) fn iter<'a>(&'a self, elf: &'a Elf) -> impl Iterator<Item = Symbol<'a>> {
        self.entries.iter().map(|entry| self.symbol(elf, entry))
    }

    fn entry(&self, svma: u64) -> Option<&Entry> {
        let after = self.entries.partition_point(|entry| entry.start <= svma);
        let before = self.entries[..after].iter().rev();
        before
            .take(MOST_NESTED)
            .take_while(|entry| svma < entry.reach)
            .find(|entry| svma < entry.end)
    }

    fn symbol<'a>(&'a self, elf: &'a Elf, entry: &Entry) -> Symbol<'a> {
        let name = String::from_utf8_lossy(self.name(elf, entry));
        Symbol { name, start: entry.start, size: entry.end - entry.start }
    }

    fn name<'a>(&'a self, elf: &'a Elf, entry: &Entry) -> &'a [u8] {
        let bytes = match &self.tables[entry.table as usize] {
            Table::Own(range) => elf.bytes().get(range.clone()),
            Table::Debug(range) => elf.debug_file().and_then(|d| d.bytes().get(range.clone())),
            Table::Kept(bytes) => return name_at(bytes, entry.name),
        };
        without_version(name_at(bytes.unwrap_or_default(), entry.name))
    }

    fn add_tables(
        &mut self,
        elf: &Elf,
        from: &Elf,
        keep: impl Fn(Range<usize>, &[u8]) -> Table,
    ) -> Option<()> {
        let data = from.bytes();
        let header = Header::parse(data).ok()?;
        let sections = header.sections(ENDIAN, data).ok()?;
        for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] as [SectionType; 2] {
            let Ok(symbols) = sections.symbols(ENDIAN, data, kind) else { continue };
            if symbols.is_empty() || self.tables.len() == usize::from(u8::MAX) {
                continue;
            }
            let strings = sections.section(symbols.string_section()).ok();
            let Some((offset, size)) = strings.and_then(|s| s.file_range(ENDIAN)) else { continue };
            let Some(end) = offset.checked_add(size) else { continue };
            let (Ok(start), Ok(end)) = (usize::try_from(offset), usize::try_from(end)) else {
                continue;
            };
            let Some(names) = data.get(start..end) else { continue };
            let table = self.tables.len() as u8;
            self.has_full |= kind == elf::SHT_SYMTAB;
            self.tables.push(keep(start..end, data));
            let entries = symbols.iter().filter_map(|symbol| entry(symbol, table, names));
            self.entries.extend(entries.filter(|entry| elf.code_around(entry.start).is_some()));
        }
        Some(())
    }

    fn add_stubs(&mut self, stubs: &[plt::Stub]) {
        let stubs = stubs.iter();
        self.add_kept(stubs.map(|stub| (stub.start, Some(stub.size), &*stub.name)));
    }

    /// Adds derived names of functions that no symbol with a size contains.
    fn add_derived(&mut self, functions: &[extension::NamedFunction]) {
        let is_new = |function: &&extension::NamedFunction| {
            let known = self.entry(function.start);
            known.is_none_or(|entry| !entry.rank.has_size && entry.start < function.start)
        };
        let new: Vec<_> = functions.iter().filter(is_new).collect();
        self.add_kept(new.into_iter().map(|function| {
            let size = function.end.and_then(|end| end.checked_sub(function.start));
            (function.start, size, &*function.name)
        }));
    }

    /// Adds functions by start, size and name, with the lowest rank.
    fn add_kept<'a>(&mut self, functions: impl Iterator<Item = (u64, Option<u64>, &'a str)>) {
        let Ok(table) = u8::try_from(self.tables.len()) else { return };
        let mut names = vec![];
        for (start, size, name) in functions {
            self.entries.push(Entry {
                start,
                end: start.saturating_add(size.unwrap_or(0)),
                reach: 0,
                name: names.len() as u32,
                table,
                is_weak: false,
                rank: Rank { is_function: false, has_size: size.is_some(), is_global: false },
            });
            names.extend_from_slice(name.as_bytes());
            names.push(0);
        }
        self.tables.push(Table::Kept(names));
    }

    /// Sorts the entries, keeps the best one of each address and computes their ends.
    fn finish(&mut self, elf: &Elf) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.sort_unstable_by(|a, b| {
            a.start.cmp(&b.start).then_with(|| b.rank.cmp(&a.rank)).then_with(|| {
                let key = |entry: &Entry| {
                    let name = self.name(elf, entry);
                    let underscores = name.iter().take_while(|byte| **byte == b'_').count();
                    (underscores, entry.is_weak, name.len(), name)
                };
                key(a).cmp(&key(b))
            })
        });
        entries.dedup_by_key(|entry| entry.start);
        let mut reach = 0;
        // Drop labels inside functions.
        entries.retain(|entry| {
            let is_label = !entry.rank.has_size && entry.start < reach;
            reach = reach.max(entry.end);
            !is_label
        });
        for at in 0..entries.len() {
            let next = entries.get(at + 1).map_or(u64::MAX, |next| next.start);
            if let Some(entry) = entries.get_mut(at).filter(|entry| !entry.rank.has_size) {
                let end = elf.code_around(entry.start).map_or(entry.start, |range| range.end);
                entry.end = next.min(end);
            }
        }
        let mut reach = 0;
        for entry in &mut entries {
            reach = reach.max(entry.end);
            entry.reach = reach;
        }
        self.entries = entries;
    }
}

fn entry(symbol: &elf::Sym64<object::LittleEndian>, table: u8, names: &[u8]) -> Option<Entry> {
    let is_function = match symbol.st_type() {
        elf::STT_FUNC | elf::STT_GNU_IFUNC => true,
        elf::STT_NOTYPE => false,
        _ => return None,
    };
    let name = symbol.st_name(ENDIAN);
    // `$x` and similar symbols mark code and data for disassemblers.
    let is_named = names.get(name as usize).is_some_and(|byte| ![0, b'$'].contains(byte));
    if symbol.is_undefined(ENDIAN) || !is_named {
        return None;
    }
    let (start, size) = (symbol.st_value(ENDIAN), symbol.st_size(ENDIAN));
    let rank = Rank { is_function, has_size: size > 0, is_global: !symbol.is_local() };
    let (end, is_weak) = (start.saturating_add(size), symbol.is_weak());
    Some(Entry { start, end, reach: 0, name, table, is_weak, rank })
}

fn name_at(names: &[u8], offset: u32) -> &[u8] {
    let rest = names.get(offset as usize..).unwrap_or_default();
    let rest = &rest[..rest.len().min(LONGEST_NAME)];
    CStr::from_bytes_until_nul(rest).map_or(rest, CStr::to_bytes)
}

fn without_version(name: &[u8]) -> &[u8] {
    match name.iter().position(|byte| *byte == b'@') {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}
