//! Functions of stripped Python extension modules have their names in Python.
#![allow(clippy::unwrap_used)] // a test fails by panicking
#![allow(clippy::print_stderr)] // a skipped test prints a notice

use laggard_core::model::profile::{Frame, FrameKind, Interner, Module, Profile};
use laggard_core::profile::frame_label;
use laggard_symbols::{Elf, FileSystem, resolve};
use proptest::prelude::*;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const INIT: &str = "-DINIT=void *PyInit_extension(void)";

/// Compiles the module. `None` without a compiler, or if it does not support the flags.
fn compile(place: &Path, flags: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/extension.c");
    let file = place.join("extension.cpython-311-x86_64-linux-gnu.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O2"]).args(flags).arg("-o").arg(&file).arg(source);
    let is_done = compiler.output().is_ok_and(|output| output.status.success());
    if !is_done {
        eprintln!("skipped: no C compiler that supports {flags:?}");
    }
    is_done.then_some(file)
}

/// Derived names of C functions, in the same order. Empty if a function has no name.
fn derived<const N: usize>(flags: &[&str], functions: [&str; N]) -> Option<[String; N]> {
    let place = tempfile::tempdir().unwrap();
    let full = Elf::open(compile(place.path(), flags)?).unwrap();
    let start = |name: &str| full.functions().find(|symbol| symbol.name == name).unwrap().start;
    let starts = functions.map(start);
    let stripped = Elf::open(compile(place.path(), &[flags, &["-s"]].concat())?).unwrap();
    assert!(!stripped.has_section(".symtab"));
    Some(starts.map(|start| {
        let [first, later] = [start, start + 4].map(|svma| stripped.symbol(svma));
        assert_eq!(first, later, "all code of a function has one name");
        first.map(|symbol| symbol.name.into_owned()).unwrap_or_default()
    }))
}

fn check<const N: usize>(expected: [(&str, &str); N]) {
    if let Some(names) = derived(&[INIT], expected.map(|(function, _)| function)) {
        assert_eq!(names.each_ref().map(String::as_str), expected.map(|(_, name)| name));
    }
}

#[test]
fn methods_have_the_name_of_their_class() {
    check([
        ("table_get", "Table.get_item"),
        ("view_get", "View.get_item"),
        ("table_copy", "Table.copy"),
        ("table_size", "Table.size.__get__"),
    ]);
}

#[test]
fn slots_of_types_have_the_names_of_special_methods() {
    check([
        ("table_call", "Table.__call__"),
        ("table_next", "Table.__next__"),
        ("table_free", "Table.__dealloc__"),
        ("table_length", "Table.__len__"),
        ("view_repr", "View.__repr__"),
    ]);
}

#[test]
fn function_of_several_classes_does_not_have_the_name_of_one() {
    check([("shared_hash", "__hash__")]);
}

#[test]
fn functions_of_a_module_are_named() {
    check([
        ("count_values", "value_count"),
        ("any_float", "any_value"),
        ("execute", "extension.Py_mod_exec"),
    ]);
}

#[test]
fn functions_of_cython_are_named_by_their_tracebacks() {
    check([("wrapper", "Table.scaled"), ("helper", "scale_all"), ("two_names", "")]);
}

#[test]
fn exported_symbols_are_preferred_to_derived_names() {
    check([("shown", "shown"), ("PyInit_extension", "PyInit_extension")]);
}

#[test]
fn invalid_records_name_no_function() {
    check([("bad_flags", ""), ("bad_name", ""), ("not_listed", "")]);
}

#[test]
fn packed_relocations_are_read() {
    let flags = [INIT, "-Wl,-z,pack-relative-relocs"];
    if let Some(names) = derived(&flags, ["table_get", "table_call", "count_values"]) {
        assert_eq!(names, ["Table.get_item", "Table.__call__", "value_count"]);
    }
}

#[test]
fn only_stripped_extension_modules_have_derived_names() {
    let place = tempfile::tempdir().unwrap();
    let names = |flags: &[&str]| {
        let elf = Elf::open(compile(place.path(), flags)?).unwrap();
        let unnamed = elf.function_ranges().iter().any(|r| elf.unnamed_function(r.start).is_some());
        Some((elf.functions().any(|symbol| symbol.name == "Table.get_item"), unnamed))
    };
    for (flags, expected) in [
        (&[INIT, "-s"][..], (true, true)),
        (&[INIT], (false, false)),
        (&["-DINIT=void *init(void)", "-s"], (false, false)),
    ] {
        assert!(names(flags).is_none_or(|names| names == expected), "{flags:?}");
    }
}

#[test]
fn addresses_of_an_unnamed_function_have_one_label() {
    let place = tempfile::tempdir().unwrap();
    let Some(file) = compile(place.path(), &[INIT]) else { return };
    let full = Elf::open(&file).unwrap();
    let start = |name: &str| full.functions().find(|symbol| symbol.name == name).unwrap().start;
    let (unnamed, other, named) = (start("not_listed"), start("two_names"), start("table_get"));
    let Some(file) = compile(place.path(), &[INIT, "-s"]) else { return };

    let mut profile = Profile::default();
    let mut interner = Interner::default();
    let path = profile.texts.add(file.to_str().unwrap());
    let module = interner.module(&mut profile, Module { path, id: 0 });
    let addresses = [unnamed, unnamed + 4, other, named];
    let frames = addresses.map(|address| {
        let kind = FrameKind::Native;
        interner.frame(&mut profile, Frame { kind, module, address, function: 0, file: 0, line: 0 })
    });
    interner.stack(&mut profile, frames.into_iter());
    let resolution = resolve(&mut profile, &FileSystem);
    let labels: Vec<String> = profile.frames.iter().map(|f| frame_label(&profile, f)).collect();
    let label = |start| format!("[extension.cpython-311-x86_64-linux-gnu.so+{start:#x}]");
    assert_eq!(labels, [label(unnamed), label(unnamed), label(other), "Table.get_item".into()]);
    assert_eq!(profile.frames.iter().map(|f| f.address).collect::<Vec<_>>(), addresses);
    assert_eq!((resolution.named, resolution.nameless), (1, 3));
}

/// A stripped module.
struct Sample {
    bytes: Vec<u8>,
    /// Relocations, data and symbols.
    ranges: Vec<Range<usize>>,
}

fn sample() -> Option<&'static Sample> {
    static SAMPLE: OnceLock<Option<Sample>> = OnceLock::new();
    let read = || {
        let place = tempfile::tempdir().unwrap();
        let elf = Elf::open(compile(place.path(), &[INIT, "-s"])?).unwrap();
        let bytes = elf.bytes();
        let of = |name: &str| {
            let (_, section) = elf.section_bytes(name)?;
            let start = section.as_ptr().addr() - bytes.as_ptr().addr();
            Some(start..start + section.len())
        };
        let names = [".rela.dyn", ".data", ".data.rel.ro", ".dynsym", ".rodata", ".eh_frame"];
        Some(Sample { bytes: bytes.to_vec(), ranges: names.into_iter().filter_map(of).collect() })
    };
    SAMPLE.get_or_init(read).as_ref()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1500) })]

    #[test]
    fn damaged_modules_do_not_panic(
        flips in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()),
            1..48,
        ),
        keep in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let Some(Sample { bytes, ranges }) = sample() else { return Ok(()) };
        let mut bytes = bytes.clone();
        for (range, at, byte) in flips {
            let range = &ranges[range.index(ranges.len())];
            bytes[range.start + at.index(range.len())] = byte;
        }
        if let Some(keep) = keep {
            bytes.truncate(keep.index(bytes.len()));
        }
        if let Ok(elf) = Elf::from_bytes(bytes, "damaged") {
            for symbol in elf.functions() {
                prop_assert!(symbol.name.len() <= 600, "{}", symbol.name);
                elf.unnamed_function(symbol.start);
            }
        }
    }
}
