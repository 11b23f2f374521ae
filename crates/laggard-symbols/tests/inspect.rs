//! Results of `inspect` agree with the compiler flags and with `objdump`.
#![allow(clippy::unwrap_used)] // a test fails by panicking
#![allow(clippy::print_stdout)] // differences from objdump are printed

mod common;

use common::compile;
use laggard_core::model::code::{
    Class, Code, CodeFile, DebugLevel, FileKind, Function, Hot, Mark, Relro, Role,
};
use laggard_core::model::profile::{
    Event, Frame, FrameKind, Interner, Module, Profile, Sample, Texts, Unit,
};
use laggard_symbols::{Elf, executed, inspect, listing, samples_in};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file and the texts of its names.
struct Seen {
    elf: Elf,
    file: CodeFile,
    texts: Texts,
}

impl Seen {
    fn new(path: &Path) -> Seen {
        let elf = Elf::open(path).unwrap();
        let mut texts = Texts::default();
        let file = inspect(&elf, &path.display().to_string(), &mut texts);
        Seen { elf, file, texts }
    }

    fn number(&self, name: &str) -> usize {
        let is_meant = |function: &Function| self.texts.get(function.name) == name;
        self.file.functions.iter().position(is_meant).unwrap_or_else(|| panic!("no {name}"))
    }

    fn function(&self, name: &str) -> &Function {
        &self.file.functions[self.number(name)]
    }
}

/// A library of only the functions in `mix.c`.
fn library(place: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let always = ["-shared", "-fPIC", "-nostartfiles", "-nostdlib"];
    compile("mix.c", &[&always, flags].concat(), place, name)
}

fn seen(flags: &[&str]) -> Seen {
    let place = tempfile::tempdir().unwrap();
    Seen::new(&library(place.path(), "mix.so", flags))
}

#[test]
fn frame_pointers_follow_compiler_flags() {
    // Compilers can omit frame pointers in leaf functions, which have no callees.
    for more in ["-fcf-protection=none", "-fcf-protection=full"] {
        let with = seen(&["-O2", "-fno-omit-frame-pointer", more]);
        let with = with.file.build.frame_pointers.unwrap();
        assert_eq!((with.callers_with, with.callers, with.of), (1, 1, 4), "{more}");
    }
    let without = seen(&["-O2"]).file.build.frame_pointers.unwrap();
    assert_eq!((without.with, without.of, without.callers_with), (0, 4, 0));
    let plain = seen(&["-O0"]).file.build.frame_pointers.unwrap();
    assert_eq!((plain.with, plain.of), (4, 4));
}

#[test]
fn vectors_follow_compiler_flags() {
    let scalar = seen(&["-O2", "-march=x86-64", "-fno-tree-vectorize"]);
    let dot = scalar.function("dot").mix;
    assert!(dot.of(Class::Float) > 0 && dot.of(Class::Avx128) + dot.of(Class::Avx256) == 0);
    assert_eq!((dot.packed_math_share(), dot.with(Mark::Fma)), (Some(0.0), 0));
    assert_eq!(scalar.function("divide").mix.with(Mark::Divide), 1);

    let narrow = seen(&["-O3", "-ffast-math", "-march=x86-64"]).function("dot").mix;
    assert_eq!((narrow.widest_vector(), narrow.of(Class::Avx128)), (Some(128), 0));
    assert!(narrow.of(Class::Sse) > 0);

    let wide = seen(&["-O3", "-ffast-math", "-mavx2", "-mfma"]);
    let dot = wide.function("dot").mix;
    assert_eq!((dot.widest_vector(), dot.of(Class::Sse)), (Some(256), 0));
    assert!(dot.with(Mark::Fma) > 0 && dot.packed_math_share().unwrap() > 0.0);
    let vectors = seen(&["-O2", "-mavx2", "-mfma"]).function("vectors").mix;
    assert_eq!((vectors.with(Mark::Gather), vectors.with(Mark::Fma)), (1, 1));
    assert_eq!(vectors.with(Mark::Divide), 2, "a division and a root");
    assert_eq!(vectors.packed_math_share(), Some(1.0));

    let widest = seen(&["-O2", "-mavx2", "-mfma", "-mavx512f"]).function("wide").mix;
    assert_eq!((widest.widest_vector(), widest.of(Class::Avx512)), (Some(512), 3));
    assert_eq!((widest.with(Mark::Load), widest.with(Mark::Store)), (2, 1));
}

#[test]
fn build_facts_match_the_flags() {
    let full = seen(&["-O2", "-g"]).file;
    assert_eq!(full.build.debug.level, DebugLevel::Full);
    assert!(full.build.debug.versions.iter().all(|version| (4..=5).contains(version)));
    let [producer] = &*full.build.debug.producers else { panic!("{:?}", full.build.debug) };
    assert!(producer.compiler.contains("GNU C") || producer.compiler.contains("clang"));
    assert!(producer.language.starts_with('C'), "{producer:?}");
    if producer.compiler.starts_with("GNU") {
        assert!(producer.flags.contains(&"-O2".to_owned()), "{producer:?}");
    }
    let lines = seen(&["-O2", "-g1"]).file;
    assert_eq!(lines.build.debug.level, DebugLevel::Lines);

    let none =
        seen(&["-O2", "-Wl,-z,now,-z,relro", "-Wl,--build-id", "-Wl,-soname,libmix.so.1"]).file;
    assert_eq!(none.build.debug.level, DebugLevel::None);
    assert!(!none.build.compilers.is_empty());
    assert_eq!((none.build.relro, none.build.bind_now), (Relro::Full, true));
    assert_eq!(none.build.soname.as_deref(), Some("libmix.so.1"));
    assert_eq!(none.build.build_id.as_deref(), Some(&*none.id));
    assert!(none.build.unwind.eh_frame && none.build.unwind.header);
    assert_eq!((none.kind, &*none.machine), (FileKind::Library, "x86-64"));
    let loose = seen(&[
        "-O2",
        "-Wl,-z,lazy,-z,norelro",
        "-Wl,-rpath,/opt/x",
        "-fno-asynchronous-unwind-tables",
    ])
    .file;
    assert_eq!((loose.build.relro, loose.build.bind_now), (Relro::None, false));
    assert_eq!(loose.build.runpath.or(loose.build.rpath).as_deref(), Some("/opt/x"));
    assert!(!loose.build.unwind.eh_frame || loose.build.unwind.functions == 0);

    let place = tempfile::tempdir().unwrap();
    let program = compile("steps.c", &["-O2", "-lm", "-Wl,--no-as-needed"], place.path(), "steps");
    let program = Seen::new(&program).file;
    assert!(matches!(program.kind, FileKind::Program | FileKind::PieProgram));
}

#[test]
fn stripped_files_have_functions_from_unwind_tables() {
    let place = tempfile::tempdir().unwrap();
    let path = library(place.path(), "mix.so", &["-O2", "-fvisibility=hidden"]);
    let before = Seen::new(&path);
    assert!(!before.file.build.symbols.is_stripped());
    assert!(Command::new("strip").arg(&path).status().unwrap().success());
    let after = Seen::new(&path);
    assert!(after.file.build.symbols.is_stripped());
    let code = |seen: &Seen| {
        let own = seen.file.functions.iter().filter(|function| !function.is_stub);
        own.map(|function| (function.address, function.size, function.mix)).collect::<Vec<_>>()
    };
    assert_eq!(code(&before), code(&after));
    assert!(after.file.functions.iter().all(|function| function.is_stub || function.name == 0));
}

/// Instructions of each function as printed by `objdump`, by address.
fn objdump(path: &Path) -> BTreeMap<u64, String> {
    let output = Command::new("objdump")
        .args(["-d", "-w", "--no-show-raw-insn", "-M", "intel"])
        .arg(path)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| {
        let (address, rest) = line.split_once(":\t")?;
        Some((u64::from_str_radix(address.trim(), 16).ok()?, rest.to_owned()))
    };
    text.lines().filter_map(line).collect()
}

/// Whether `objdump` shows a wait and the next instruction as one.
fn waits(text: &str) -> bool {
    const BOTH: [&str; 6] = ["fstcw", "fstsw", "fstenv", "fclex", "finit", "fsave"];
    BOTH.iter().any(|name| text.starts_with(name))
}

/// How many of at most `most` functions have the same number of instructions as in `objdump`.
fn agreement(path: &Path, most: usize) -> (usize, usize) {
    let seen = Seen::new(path);
    let known = objdump(path);
    let mut compared = 0;
    let mut equal = 0;
    for function in seen.file.functions.iter().filter(|function| !function.is_stub).take(most) {
        let end = function.address + function.size;
        let theirs: u64 =
            known.range(function.address..end).map(|(_, text)| 1 + u64::from(waits(text))).sum();
        compared += 1;
        if theirs == function.mix.instructions() {
            equal += 1;
        } else {
            println!(
                "{} {:#x}: {} here, {theirs} by objdump",
                seen.texts.get(function.name),
                function.address,
                function.mix.instructions()
            );
        }
    }
    (equal, compared)
}

#[test]
fn instructions_agree_with_objdump() {
    let place = tempfile::tempdir().unwrap();
    let path = library(place.path(), "mix.so", &["-O3", "-mavx2", "-mfma", "-ffast-math"]);
    let (equal, compared) = agreement(&path, usize::MAX);
    assert_eq!(equal, compared);

    // One function, class by class.
    let seen = Seen::new(&path);
    let function = seen.function("vectors");
    let known = objdump(&path);
    let theirs: Vec<&String> =
        known.range(function.address..function.address + function.size).map(|(_, t)| t).collect();
    let count = |is: &dyn Fn(&str) -> bool| theirs.iter().filter(|text| is(text)).count() as u64;
    let mix = function.mix;
    assert_eq!(mix.of(Class::Avx256), count(&|text| text.contains("ymm")));
    assert_eq!(mix.of(Class::Branch), count(&|text| text.starts_with('j')));
    assert_eq!(mix.with(Mark::Fma), count(&|text| text.starts_with("vfmadd")));
    assert_eq!(mix.with(Mark::Gather), count(&|text| text.starts_with("vgather")));
    assert_eq!(mix.of(Class::Call), count(&|text| text.starts_with("ret")));

    for path in ["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6"] {
        if Path::new(path).exists() {
            let (equal, compared) = agreement(Path::new(path), usize::MAX);
            println!("{path}: {equal} of {compared} functions");
            assert_eq!(equal, compared);
        }
    }
}

#[test]
fn listing_has_loops_lines_and_targets() {
    let place = tempfile::tempdir().unwrap();
    let flags = ["-O2", "-g", "-mavx2", "-mfma", "-fno-tree-vectorize"];
    let mut seen = Seen::new(&library(place.path(), "mix.so", &flags));
    let number = seen.number("vectors");
    let listing = listing(&seen.elf, &seen.file, number, None, &mut seen.texts);
    assert_eq!(listing.lines.len() as u64, seen.file.functions[number].mix.instructions());
    let [found] = &*listing.loops else { panic!("{:?}", listing.loops) };
    assert!(found.innermost && !found.hottest);
    assert_eq!((found.mix.with(Mark::Fma), found.mix.with(Mark::Gather)), (1, 1));
    let head = listing.lines.iter().find(|line| line.address == found.start).unwrap();
    assert!(head.is_target);
    let fma = listing.lines.iter().find(|line| line.marks.has(Mark::Fma)).unwrap();
    assert_eq!(fma.mnemonic, "vfmadd231ps".replace("231", &fma.mnemonic[6..9]));
    assert!(fma.operands.contains("ymm") && fma.line > 0);
    assert!(!seen.texts.get(fma.source).is_empty());
    let number = seen.number("caller");
    let calls = laggard_symbols::listing(&seen.elf, &seen.file, number, None, &mut seen.texts);
    let names = calls.lines.iter().map(|line| seen.texts.get(line.target_name));
    assert!(names.into_iter().any(|name| name == "callee@plt"));
}

/// A profile with samples at these addresses of a file.
fn profile(file: &CodeFile, samples: &[(u64, u64)]) -> Profile {
    let mut profile = Profile::default();
    let mut interner = Interner::default();
    let (path, id) = (profile.texts.add("/elsewhere/mix.so"), profile.texts.add(&file.id));
    let module = interner.module(&mut profile, Module { path, id });
    profile.events.push(Event { name: "task-clock".into(), unit: Unit::Nanos });
    for &(address, count) in samples {
        let kind = FrameKind::Inlined;
        let frame = Frame { kind, module, address, function: 1, file: 0, line: 0 };
        let frame = interner.frame(&mut profile, frame);
        let stack = interner.stack(&mut profile, [frame].into_iter());
        let sample =
            Sample { time_ns: 0, thread: 0, stack, event: 0, count: 1, weight: 1, state: 0 };
        profile.samples.extend(std::iter::repeat_n(sample, count as usize));
    }
    profile
}

#[test]
fn samples_weight_executed_instructions() {
    let place = tempfile::tempdir().unwrap();
    let mut seen = Seen::new(&library(place.path(), "mix.so", &["-O2", "-mavx2", "-mfma"]));
    let number = seen.number("vectors");
    let plain = listing(&seen.elf, &seen.file, number, None, &mut seen.texts);
    let at = |mark: Mark| plain.lines.iter().find(|line| line.marks.has(mark)).unwrap().address;
    let middle = at(Mark::Gather) + 1;
    let divide = seen.function("divide").address;
    let profile = profile(
        &seen.file,
        &[(at(Mark::Fma), 30), (at(Mark::Gather), 10), (middle, 2), (divide, 5)],
    );
    let samples = samples_in(&profile, &seen.file);
    let ran = executed(&seen.elf, &seen.file, &samples);
    assert_eq!((ran.samples, ran.here, ran.astray), (47, 47, 2));
    let [hot, other] = &*ran.hot else { panic!("{ran:?}") };
    assert_eq!((hot.function as usize, hot.samples, other.samples), (number, 42, 5));
    // All samples at instructions are in the loop, which is one basic block. Its instructions ran
    // equally often, independent of the sampled addresses.
    let block = plain.loops[0].mix;
    let share = |part: u64, whole: u64| part as f64 / whole as f64;
    let expected = share(block.of(Class::Avx256), block.instructions());
    let found = share(hot.mix.of(Class::Avx256), hot.mix.instructions());
    assert!((found - expected).abs() < 0.01, "{found} {expected}");
    assert_eq!(hot.mix.with(Mark::Fma), hot.mix.with(Mark::Gather));
    assert!(hot.mix.instructions().abs_diff(40 * Hot::SCALE) < 100, "{hot:?}");
    let weighed = listing(&seen.elf, &seen.file, number, Some(&samples), &mut seen.texts);
    assert!(weighed.sampled && weighed.loops[0].hottest);
    assert_eq!(weighed.loops[0].samples, 40);
    // Another file of the same name does not match.
    let other = CodeFile { id: "00".into(), path: "mix.so".into(), ..CodeFile::default() };
    assert_eq!(samples_in(&profile, &other).at.len(), 0);
}

#[test]
fn libc_needs_the_loader_and_has_many_targets() {
    for path in ["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6"] {
        if Path::new(path).exists() {
            let file = Seen::new(Path::new(path)).file;
            assert_eq!(file.kind, FileKind::Library);
            assert!(file.build.needed.iter().any(|needed| needed.name == "libc.so.6"));
            assert_eq!(file.role(Role::Blas), None);
        }
    }
}

#[test]
fn files_of_other_machines_have_only_facts() {
    let place = tempfile::tempdir().unwrap();
    let path = library(place.path(), "mix.so", &["-O2"]);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[18] = 183;
    let elf = Elf::from_bytes(bytes, "arm.so").unwrap();
    let file = inspect(&elf, "arm.so", &mut Texts::default());
    assert_eq!(&*file.machine, "AArch64");
    assert!(file.not_disassembled.contains("AArch64"));
    assert_eq!((file.mix().instructions(), file.build.frame_pointers), (0, None));
    assert!(!file.functions.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// A hostile file gives wrong results at worst.
    #[test]
    fn damaged_files_do_not_panic(changes in prop::collection::vec((0usize..1 << 16, any::<u8>()), 1..40)) {
        static FILE: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
        let file = FILE.get_or_init(|| {
            let place = tempfile::tempdir().unwrap();
            std::fs::read(library(place.path(), "mix.so", &["-O2", "-g"])).unwrap()
        });
        let mut bytes = file.clone();
        for (at, byte) in changes {
            // Damage headers often, because they lead to everything else.
            let size = if at % 3 == 0 { 1024 } else { bytes.len() };
            bytes[at % size] = byte;
        }
        if let Ok(elf) = Elf::from_bytes(bytes, "damaged") {
            let mut code = Code::default();
            let file = inspect(&elf, "damaged", &mut code.texts);
            for number in 0..file.functions.len().min(4) {
                listing(&elf, &file, number, None, &mut code.texts);
            }
        }
    }
}
