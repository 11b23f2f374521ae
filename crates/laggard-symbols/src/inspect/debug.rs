//! The level of debug info in a file, and its producers.

use crate::Elf;
use gimli::{Abbreviations, DebugAbbrevOffset, constants};
use laggard_core::model::code::{Debug, DebugLevel, Producer};
use rustc_hash::FxHashMap;

/// Maximum number of units read. The largest libraries have about ten thousand.
const MOST_UNITS: u64 = 1 << 18;
/// Maximum number of distinct producers.
const MOST_PRODUCERS: usize = 256;
const LONGEST_TEXT: usize = 1 << 14;

/// Reads the first entry of every unit.
pub(super) fn read(elf: &Elf) -> Debug {
    let Some((dwarf, from)) = elf.dwarf() else { return Debug::default() };
    let mut debug = Debug {
        separate: (!std::ptr::eq(from, elf))
            .then(|| from.path().map(|path| path.display().to_string()))
            .flatten(),
        ..Debug::default()
    };
    let mut levels: FxHashMap<DebugAbbrevOffset<usize>, DebugLevel> = FxHashMap::default();
    let mut producers: FxHashMap<(Vec<u8>, String), u64> = FxHashMap::default();
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        if debug.units == MOST_UNITS {
            break;
        }
        let (version, offset) = (header.version(), header.debug_abbrev_offset());
        let Ok(abbreviations) = dwarf.abbreviations(&header) else { continue };
        let level = *levels.entry(offset).or_insert_with(|| level(&abbreviations));
        debug.units += 1;
        debug.level = debug.level.max(level);
        if !debug.versions.contains(&version) {
            debug.versions.push(version);
        }
        let Ok(unit) = dwarf.unit(header) else { continue };
        let mut entries = unit.entries();
        let Ok(Some(root)) = entries.next_dfs() else { continue };
        // Partial units, which several units share, have no producer.
        let Some(producer) = root.attr_value(constants::DW_AT_producer) else { continue };
        let Ok(producer) = dwarf.attr_string(&unit, producer) else { continue };
        let language = match root.attr_value(constants::DW_AT_language) {
            Some(gimli::AttributeValue::Language(language)) => {
                let name = language.static_string().unwrap_or("");
                name.trim_start_matches("DW_LANG_").replace('_', " ")
            }
            _ => String::new(),
        };
        let bytes = producer.slice();
        let key = (bytes[..bytes.len().min(LONGEST_TEXT)].to_vec(), language);
        if producers.len() < MOST_PRODUCERS || producers.contains_key(&key) {
            *producers.entry(key).or_default() += 1;
        }
    }
    debug.versions.sort_unstable();
    debug.producers = producers
        .into_iter()
        .map(|((text, language), units)| producer(&text, language, units))
        .collect();
    debug
        .producers
        .sort_by(|a, b| (b.units, &a.compiler, &a.flags).cmp(&(a.units, &b.compiler, &b.flags)));
    debug
}

/// Determines the level from abbreviations, which many units share.
fn level(abbreviations: &Abbreviations) -> DebugLevel {
    const FULL: [gimli::DwTag; 4] = [
        constants::DW_TAG_formal_parameter,
        constants::DW_TAG_base_type,
        constants::DW_TAG_structure_type,
        constants::DW_TAG_typedef,
    ];
    let tags = (1..).map_while(|code| abbreviations.get(code)).map(|kind| kind.tag());
    let has_more = tags.into_iter().any(|tag| FULL.contains(&tag));
    if has_more { DebugLevel::Full } else { DebugLevel::Lines }
}

/// Parses `GNU C17 12.2.0 -O2 -g`: the compiler, then its flags.
fn producer(text: &[u8], language: String, units: u64) -> Producer {
    let text = String::from_utf8_lossy(text);
    let split = text.find(" -").unwrap_or(text.len());
    let (compiler, flags) = text.split_at(split);
    let flags = flags.split_whitespace().map(str::to_owned).collect();
    Producer { compiler: compiler.to_owned(), flags, language, units }
}
