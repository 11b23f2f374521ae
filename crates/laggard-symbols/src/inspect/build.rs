//! How a file was built, from its headers.

use super::{debug, libraries};
use crate::elf::{ENDIAN, Header};
use crate::{Elf, Kind};
use laggard_core::model::code::{Build, FileKind, Needed, Relro, Symbols, Unwind};
use object::elf;
use object::read::elf::{Dyn, FileHeader, ProgramHeader, Sym};

/// Maximum number of compilers kept.
const MOST_COMPILERS: usize = 16;
const LONGEST_TEXT: usize = 4096;

/// Facts from the headers. Facts from the code are added later.
pub(super) fn read(elf: &Elf) -> Build {
    let dynamic = Dynamic::read(elf).unwrap_or_default();
    let name = |name: &String| Needed { name: name.clone(), known: libraries::by_file(name) };
    Build {
        symbols: symbols(elf),
        debug: debug::read(elf),
        unwind: Unwind {
            eh_frame: elf.eh_frame().is_some(),
            header: elf.eh_frame_hdr().is_some(),
            functions: elf.function_ranges().len() as u64,
        },
        build_id: elf.build_id().map(str::to_owned),
        soname: dynamic.soname,
        interpreter: elf.interpreter().map(str::to_owned),
        needed: elf.needed().iter().map(name).collect(),
        provides: libraries::by_functions(elf),
        rpath: dynamic.rpath,
        runpath: dynamic.runpath,
        relro: match (dynamic.has_relro, dynamic.bind_now) {
            (false, _) => Relro::None,
            (true, false) => Relro::Partial,
            (true, true) => Relro::Full,
        },
        bind_now: dynamic.bind_now,
        compilers: compilers(elf),
        frame_pointers: None,
    }
}

/// The kind of a file.
pub(super) fn kind(elf: &Elf, build: &Build) -> FileKind {
    let is_pie = Dynamic::read(elf).is_some_and(|dynamic| dynamic.is_pie);
    match elf.kind() {
        Kind::Program => FileKind::Program,
        Kind::Shared if is_pie => FileKind::PieProgram,
        // Programs of older linkers have no flag. The C library is executable but has a soname.
        Kind::Shared if build.interpreter.is_some() && build.soname.is_none() => {
            FileKind::PieProgram
        }
        Kind::Shared => FileKind::Library,
        Kind::Relocatable => FileKind::Object,
        Kind::Core | Kind::Other => FileKind::Other,
    }
}

/// The name of a machine by its number.
pub(super) fn machine(elf: &Elf) -> String {
    let name = match elf::Machine(elf.machine()) {
        elf::EM_X86_64 => "x86-64",
        elf::EM_386 => "x86",
        elf::EM_AARCH64 => "AArch64",
        elf::EM_ARM => "Arm",
        elf::EM_RISCV => "RISC-V",
        elf::EM_PPC64 => "PowerPC 64",
        elf::EM_S390 => "s390",
        elf::EM_LOONGARCH => "LoongArch",
        elf::Machine(number) => return format!("machine {number}"),
    };
    let is_x32 = name == "x86-64" && !elf.is_64();
    if is_x32 { "x86-64 with 32-bit addresses".to_owned() } else { name.to_owned() }
}

/// The dynamic section.
#[derive(Default)]
struct Dynamic {
    soname: Option<String>,
    rpath: Option<String>,
    runpath: Option<String>,
    has_relro: bool,
    bind_now: bool,
    is_pie: bool,
}

impl Dynamic {
    fn read(elf: &Elf) -> Option<Dynamic> {
        let data = elf.bytes();
        let header = Header::parse(data).ok().filter(|_| elf.is_64())?;
        let programs = header.program_headers(ENDIAN, data).ok()?;
        let has_relro = programs.iter().any(|p| p.p_type(ENDIAN) == elf::PT_GNU_RELRO);
        let mut found = Dynamic { has_relro, ..Dynamic::default() };
        let Some(entries) = programs.iter().find_map(|p| p.dynamic(ENDIAN, data).ok().flatten())
        else {
            return Some(found);
        };
        let value = |d: &elf::Dyn64<object::LittleEndian>| -> u64 { d.d_val(ENDIAN) };
        let strings = entries.iter().find(|d| d.d_tag(ENDIAN) == elf::DT_STRTAB).map(value);
        let text = |offset: u64| {
            let bytes = elf.bytes_at(strings?.checked_add(offset)?, LONGEST_TEXT)?;
            let bytes = bytes.split(|byte| *byte == 0).next()?;
            Some(String::from_utf8_lossy(bytes).into_owned())
        };
        const BIND_NOW: u64 = 8;
        const NOW_1: u64 = 1;
        const PIE_1: u64 = 0x0800_0000;
        for entry in entries {
            let value = value(entry);
            match entry.d_tag(ENDIAN) {
                elf::DT_NULL => break,
                elf::DT_SONAME => found.soname = text(value),
                elf::DT_RPATH => found.rpath = text(value),
                elf::DT_RUNPATH => found.runpath = text(value),
                elf::DT_BIND_NOW => found.bind_now = true,
                elf::DT_FLAGS => found.bind_now |= value & BIND_NOW != 0,
                elf::DT_FLAGS_1 => {
                    found.bind_now |= value & NOW_1 != 0;
                    found.is_pie = value & PIE_1 != 0;
                }
                _ => {}
            }
        }
        Some(found)
    }
}

fn symbols(elf: &Elf) -> Symbols {
    let count = |kind: elf::SectionType| {
        let data = elf.bytes();
        let header = Header::parse(data).ok().filter(|_| elf.is_64())?;
        let sections = header.sections(ENDIAN, data).ok()?;
        let table = sections.symbols(ENDIAN, data, kind).ok()?;
        Some(table.iter().filter(|symbol| !symbol.is_undefined(ENDIAN)).count() as u64)
    };
    let full = count(elf::SHT_SYMTAB).unwrap_or(0);
    let separate = || {
        let file = elf.debug_file().filter(|file| file.has_section(".symtab"))?;
        Some(file.path()?.display().to_string())
    };
    let embedded = || elf.has_section(".gnu_debugdata").then(|| ".gnu_debugdata".to_owned());
    let elsewhere = if full > 0 { None } else { separate().or_else(embedded) };
    Symbols { full, dynamic: count(elf::SHT_DYNSYM).unwrap_or(0), elsewhere }
}

/// The compilers and linkers in `.comment`.
fn compilers(elf: &Elf) -> Vec<String> {
    let mut compilers: Vec<String> = vec![];
    for text in elf.unpacked(".comment").split(|byte| *byte == 0) {
        let text = String::from_utf8_lossy(&text[..text.len().min(LONGEST_TEXT)]).into_owned();
        if !text.is_empty() && !compilers.contains(&text) && compilers.len() < MOST_COMPILERS {
            compilers.push(text);
        }
    }
    compilers
}
