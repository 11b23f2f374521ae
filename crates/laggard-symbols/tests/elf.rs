//! Symbols and lines agree with binutils, and damaged files cause no panic.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use common::compile;
use laggard_symbols::{
    AddressSpace, Elf, Error, FileSystem, Files, Kind, Location, Memory, Missing, Modules,
    Registers, Rows,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn output(program: &str, arguments: &[&str], file: &Path) -> String {
    let output = Command::new(program).args(arguments).arg(file).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn library(place: &Path, flags: &[&str]) -> PathBuf {
    compile("lines.c", &[&["-shared", "-fPIC"], flags].concat(), place, "lines.so")
}

/// Functions by address as printed by `nm`: all names, and the largest size.
fn nm(file: &Path, arguments: &[&str]) -> BTreeMap<u64, (Vec<String>, u64)> {
    let mut functions: BTreeMap<u64, (Vec<String>, u64)> = BTreeMap::new();
    for line in output("nm", arguments, file).lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [start, rest @ .., kind, name] = &*words else { continue };
        let is_function = ["T", "t", "W", "i"].contains(kind) && *name != "data_start";
        if rest.len() > 1 || !is_function {
            continue;
        }
        let Ok(start) = u64::from_str_radix(start, 16) else { continue };
        let size = rest.first().map_or(0, |size| u64::from_str_radix(size, 16).unwrap());
        let name = name.split('@').next().unwrap().to_owned();
        let known = functions.entry(start).or_default();
        known.0.push(name);
        known.1 = known.1.max(size);
    }
    functions
}

fn check_symbols(file: &Path, arguments: &[&str]) {
    let elf = Elf::open(file).unwrap();
    let functions = nm(file, arguments);
    assert!(!functions.is_empty(), "{}", file.display());
    for (start, (names, size)) in &functions {
        for svma in [*start, start + size.saturating_sub(1)] {
            let symbol = elf.symbol(svma).unwrap_or_else(|| panic!("{svma:x} {names:?}"));
            // Another function can start within this one.
            if symbol.start == *start {
                assert!(names.contains(&symbol.name.to_string()), "{symbol:?} {names:?}");
                assert!(*size == 0 || symbol.size == *size, "{symbol:?} {size:x}");
            } else {
                assert!(functions.contains_key(&symbol.start), "{symbol:?} {names:?}");
            }
        }
    }
}

#[test]
fn functions_agree_with_nm() {
    let place = tempfile::tempdir().unwrap();
    check_symbols(&library(place.path(), &["-O2"]), &["-S"]);
    check_symbols(&compile("steps.c", &["-O2"], place.path(), "steps"), &["-S"]);
    for path in ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6"] {
        if Path::new(path).exists() {
            check_symbols(Path::new(path), &["-SD"]);
        }
    }
}

#[test]
fn prefers_common_names() {
    let place = tempfile::tempdir().unwrap();
    let elf = Elf::open(library(place.path(), &["-O2"])).unwrap();
    let names: Vec<String> = elf.functions().map(|symbol| symbol.name.into_owned()).collect();
    // `same_place` is also `weak_one`, and `picked` is also its resolver.
    for name in ["shown", "hidden", "picked", "same_place", "strlen@plt"] {
        assert!(names.iter().any(|known| known == name), "{name} in {names:?}");
    }
}

fn check_lines(elf: &Elf, file: &Path) {
    let lines = elf.lines().unwrap();
    let mut compared = 0;
    let (mut addresses, mut ours) = (String::new(), vec![]);
    for symbol in elf.functions().filter(|symbol| ["shown", "hidden"].contains(&&*symbol.name)) {
        for svma in symbol.start..symbol.start + symbol.size {
            addresses.push_str(&format!("{svma:#x} "));
            ours.push((svma, lines.locations(svma)));
        }
    }
    let words: Vec<&str> = ["-a", "-f", "-i", "-e", file.to_str().unwrap()]
        .into_iter()
        .chain(addresses.split_whitespace())
        .collect();
    let theirs = Command::new("addr2line").args(words).output().unwrap().stdout;
    let theirs = String::from_utf8(theirs).unwrap();
    let mut blocks = theirs.split("0x").skip(1);
    for (svma, locations) in ours {
        let mut block = blocks.next().unwrap().lines();
        assert_eq!(u64::from_str_radix(block.next().unwrap(), 16).unwrap(), svma);
        let theirs: Vec<&str> = block.collect();
        let theirs: Vec<Location> = theirs
            .chunks_exact(2)
            .map(|pair| {
                let (file, line) = pair[1].rsplit_once(':').unwrap();
                let line = line.split(' ').next().unwrap().parse().unwrap_or(0);
                Location { function: pair[0].to_owned(), file: file.to_owned(), line }
            })
            .collect();
        assert_eq!(locations, theirs, "{svma:x}");
        compared += 1;
    }
    assert!(compared > 50);
}

#[test]
fn lines_and_inlined_calls_agree_with_addr2line() {
    let place = tempfile::tempdir().unwrap();
    for flags in [&["-O2", "-g"][..], &["-O2", "-g", "-gz=zlib"], &["-O2", "-gdwarf-4"]] {
        let file = library(place.path(), flags);
        check_lines(&Elf::open(&file).unwrap(), &file);
    }
    let file = library(place.path(), &["-O2"]);
    assert!(Elf::open(file).unwrap().lines().is_none());
}

#[test]
fn finds_separate_debug_file_by_its_link() {
    let place = tempfile::tempdir().unwrap();
    for flags in [&["-O2", "-g", "-Wl,--build-id"][..], &["-O2", "-g", "-Wl,--build-id=none"]] {
        for folder in ["", ".debug"] {
            let file = library(place.path(), flags);
            let folder = place.path().join(folder);
            std::fs::create_dir_all(&folder).unwrap();
            let debug = folder.join("lines.so.debug");
            output("objcopy", &["--only-keep-debug", file.to_str().unwrap()], &debug);
            let link = format!("--add-gnu-debuglink={}", debug.display());
            output("objcopy", &["--strip-all", &link], &file);
            let elf = Elf::open(&file).unwrap();
            assert!(!elf.has_section(".debug_info") && !elf.has_section(".symtab"));
            assert!(elf.functions().any(|symbol| symbol.name == "hidden"));
            check_lines(&elf, &debug);
            std::fs::remove_file(debug).unwrap();
        }
    }
}

#[test]
fn finds_embedded_symbols() {
    if Command::new("xz").arg("--version").output().is_err() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let file = library(place.path(), &["-O2"]);
    let mini = place.path().join("mini");
    output("objcopy", &["--only-keep-debug", file.to_str().unwrap()], &mini);
    output("xz", &[], &mini);
    let section = format!("--add-section=.gnu_debugdata={}.xz", mini.display());
    output("objcopy", &["--strip-all", &section], &file);
    let elf = Elf::open(&file).unwrap();
    assert!(!elf.has_section(".symtab"));
    assert!(elf.functions().any(|symbol| symbol.name == "hidden"));
}

#[test]
fn stripped_files_have_function_ranges() {
    let place = tempfile::tempdir().unwrap();
    let file = library(place.path(), &["-O2"]);
    let hidden = Elf::open(&file).unwrap().functions().find(|s| s.name == "hidden").unwrap().start;
    output("strip", &[], &file);
    let elf = Elf::open(&file).unwrap();
    assert_eq!(elf.symbol(hidden), None);
    assert!(elf.function_ranges().iter().any(|range| range.start == hidden));
}

#[test]
fn reads_headers() {
    let place = tempfile::tempdir().unwrap();
    let program = compile("steps.c", &["-no-pie", "-Wl,--build-id"], place.path(), "steps");
    let program = Elf::open(program).unwrap();
    assert_eq!(program.kind(), Kind::Program);
    assert!(program.is_x86_64() && program.is_64());
    assert!(program.interpreter().unwrap().contains("ld-linux"));
    assert!(program.needed().iter().any(|name| name.starts_with("libc.so")));
    assert_eq!(program.build_id(), Some(program.id()));
    assert_eq!(program.id().len(), 40);
    assert!(program.executable_segments().count() == 1);

    let without_id = library(place.path(), &["-Wl,--build-id=none"]);
    let without_id = Elf::open(without_id).unwrap();
    assert_eq!(without_id.kind(), Kind::Shared);
    assert!(without_id.build_id().is_none() && without_id.id().starts_with("xxh3:"));
}

#[test]
fn rejects_other_files_by_name() {
    let place = tempfile::tempdir().unwrap();
    let text = place.path().join("text");
    std::fs::write(&text, "no ELF").unwrap();
    let error = Elf::open(&text).unwrap_err().to_string();
    assert!(error.contains("text is not an ELF file"), "{error}");
    assert!(matches!(Elf::open(place.path().join("none")), Err(Error::Unreadable { .. })));
    assert!(matches!(Elf::open(place.path()), Err(Error::Unreadable { .. })));
    assert!(matches!(Elf::from_bytes(vec![], "empty"), Err(Error::NotElf { .. })));
    let error = Elf::from_bytes(b"\x7fELF\x02\x01".to_vec(), "short").unwrap_err().to_string();
    assert_eq!(error, "the ELF file short is damaged: the ELF header is truncated");
}

#[test]
fn rejects_changed_file() {
    let place = tempfile::tempdir().unwrap();
    let file = library(place.path(), &["-O2"]);
    let id = Elf::open(&file).unwrap().id().to_owned();
    assert!(FileSystem.find(&file, Some(&id)).is_ok());
    library(place.path(), &["-O0"]);
    assert!(matches!(FileSystem.find(&file, Some(&id)), Err(Missing::Changed { .. })));
    assert!(matches!(FileSystem.find(Path::new("[heap]"), None), Err(Missing::NoFile { .. })));
}

#[test]
fn processes_share_files_and_deleted_files_are_not_read() {
    let place = tempfile::tempdir().unwrap();
    let file = library(place.path(), &["-O2"]);
    let offset = Elf::open(&file).unwrap().executable_segments().next().unwrap().offset & !4095;
    let line = format!("7f0000001000-7f0000002000 r-xp {offset:08x} fe:01 7 {}", file.display());
    let mut modules = Modules::default();
    let [mut a, mut b, mut gone] = [(); 3].map(|()| AddressSpace::default());
    a.refresh(line.as_bytes(), &mut modules);
    b.refresh(line.replace("7f00", "7e00").as_bytes(), &mut modules);
    gone.refresh(format!("{line} (deleted)").as_bytes(), &mut modules);
    let place = a.find(0x7f00_0000_1010).unwrap();
    assert_eq!(Some(place), b.find(0x7e00_0000_1010));
    assert_eq!(modules.iter().len(), 2);
    let module = |space: &AddressSpace, pc| modules.get(space.find(pc).unwrap().module.unwrap());
    assert!(module(&a, 0x7f00_0000_1010).unwrap().elf.is_some());
    assert!(module(&gone, 0x7f00_0000_1010).unwrap().elf.is_none());
}

#[test]
fn files_and_modules_are_send() {
    fn check<T: Send>() {}
    check::<Modules>();
    check::<AddressSpace>();
    check::<std::sync::Arc<Elf>>();
}

/// Memory in which every word looks like an address.
struct Anything;

impl Memory for Anything {
    fn read(&self, address: u64, _: usize) -> Option<u64> {
        Some(address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20)
    }
}

/// Calls all methods of a file.
fn ask(bytes: Vec<u8>) {
    let Ok(elf) = Elf::from_bytes(bytes, "damaged") else { return };
    elf.id();
    let mut asked: Vec<u64> = elf.functions().take(50).map(|symbol| symbol.start).collect();
    asked.extend(elf.function_ranges().iter().take(50).map(|range| range.end.wrapping_sub(1)));
    asked.extend(elf.segments().iter().map(|segment| segment.svma));
    let lines = elf.lines();
    let mut rows = Rows::default();
    for svma in asked {
        elf.symbol(svma);
        elf.bias(svma, svma);
        elf.bytes_at(svma, 16);
        lines.as_ref().map(|lines| lines.locations(svma));
        let mut registers = Registers([svma; 17]);
        let _ = rows.step(&elf, svma, &mut registers, &Anything);
    }
}

/// A file with all features, and one with compressed debug info and unwind information without an
/// index.
fn samples() -> &'static [Vec<u8>; 2] {
    static SAMPLES: std::sync::OnceLock<[Vec<u8>; 2]> = std::sync::OnceLock::new();
    SAMPLES.get_or_init(|| {
        let place = tempfile::tempdir().unwrap();
        let read = |flags: &[&str]| std::fs::read(library(place.path(), flags)).unwrap();
        let packed = ["-O2", "-g", "-gz=zlib", "-Wl,--no-eh-frame-hdr"];
        [read(&["-O2", "-g"]), read(&packed)]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1500) })]

    #[test]
    fn damaged_files_do_not_panic(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..24),
        which in 0..2usize,
        in_headers in any::<bool>(),
        keep in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = samples()[which].clone();
        let sections = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
        for (at, byte) in flips {
            let at = match in_headers {
                true if byte & 1 == 0 => at.index(0x300),
                true => sections + at.index(bytes.len() - sections),
                false => at.index(bytes.len()),
            };
            bytes[at] = byte;
        }
        if let Some(keep) = keep {
            bytes.truncate(keep.index(bytes.len()));
        }
        ask(bytes);
    }
}
