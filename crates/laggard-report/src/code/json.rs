//! The report as JSON.

use super::choose::choose;
use super::{CodeReport, executed};
use crate::rows::kept;
use crate::shape::pretty;
use laggard_core::model::code::{self, Class, Mark};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
struct Shape<'a> {
    schema: &'static str,
    files: Vec<File<'a>>,
    /// The selected functions of all files, sorted.
    functions: Vec<Function<'a>>,
    /// Number of selected functions, including those omitted from `functions`.
    functions_chosen: u64,
    /// Disassembled functions, if requested.
    listings: Vec<Listing<'a>>,
}

#[derive(Serialize)]
struct File<'a> {
    path: &'a str,
    id: &'a str,
    bytes: u64,
    machine: &'a str,
    kind: &'static str,
    /// Why the file was not disassembled; null if it was.
    not_disassembled: Option<&'a str>,
    functions: u64,
    code_bytes: u64,
    skipped_bytes: u64,
    symbols: Symbols<'a>,
    debug: Debug<'a>,
    unwind: Unwind,
    frame_pointers: Option<FramePointers>,
    build_id: Option<&'a str>,
    soname: Option<&'a str>,
    interpreter: Option<&'a str>,
    needed: Vec<Needed<'a>>,
    provides: Vec<Known>,
    rpath: Option<&'a str>,
    runpath: Option<&'a str>,
    relro: &'static str,
    bind_now: bool,
    compilers: &'a [String],
    targets: Vec<Target<'a>>,
    mix: Mix,
    executed: Option<Executed>,
}

#[derive(Serialize)]
struct Symbols<'a> {
    full: u64,
    dynamic: u64,
    stripped: bool,
    elsewhere: Option<&'a str>,
}

#[derive(Serialize)]
struct Debug<'a> {
    /// `none`, `line tables only` or `full`.
    level: &'static str,
    separate: Option<&'a str>,
    dwarf_versions: &'a [u16],
    units: u64,
    producers: Vec<Producer<'a>>,
}

#[derive(Serialize)]
struct Producer<'a> {
    compiler: &'a str,
    flags: &'a [String],
    language: &'a str,
    units: u64,
}

#[derive(Serialize)]
struct Unwind {
    eh_frame: bool,
    eh_frame_hdr: bool,
    functions: u64,
}

#[derive(Serialize)]
struct FramePointers {
    with: u64,
    of: u64,
    callers_with: u64,
    callers: u64,
}

#[derive(Serialize)]
struct Needed<'a> {
    name: &'a str,
    known: Option<Known>,
}

#[derive(Serialize)]
struct Known {
    role: &'static str,
    name: &'static str,
}

#[derive(Serialize)]
struct Target<'a> {
    name: &'a str,
    functions: u64,
    needs: &'a [&'static str],
    lacks: Option<&'a [&'static str]>,
    /// Null if the CPU of this machine is unknown.
    runs_here: Option<bool>,
}

/// Instruction counts.
#[derive(Serialize)]
struct Mix {
    instructions: u64,
    /// Share of vector instructions, not counting padding.
    packed_share: Option<f64>,
    /// Share of vector instructions in floating-point arithmetic.
    packed_math_share: Option<f64>,
    widest_vector_bits: Option<u32>,
    classes: BTreeMap<&'static str, u64>,
    marks: BTreeMap<&'static str, u64>,
}

#[derive(Serialize)]
struct Executed {
    samples: u64,
    here: u64,
    astray: u64,
    mix: Weighed,
}

/// Executed instructions, in samples. The samples of a block are divided evenly among its
/// instructions.
#[derive(Serialize)]
struct Weighed {
    packed_share: Option<f64>,
    packed_math_share: Option<f64>,
    widest_vector_bits: Option<u32>,
    classes: BTreeMap<&'static str, f64>,
    marks: BTreeMap<&'static str, f64>,
}

#[derive(Serialize)]
struct Function<'a> {
    file: usize,
    address: String,
    bytes: u64,
    /// Null if the function is known only from unwind tables.
    name: Option<&'a str>,
    frame_pointer: bool,
    mix: Mix,
    /// Null without a profile.
    samples: Option<u64>,
    executed: Option<Weighed>,
}

#[derive(Serialize)]
struct Listing<'a> {
    file: u32,
    address: String,
    name: Option<&'a str>,
    loops: Vec<Loop>,
    instructions: Vec<Line<'a>>,
}

#[derive(Serialize)]
struct Loop {
    start: String,
    end: String,
    innermost: bool,
    hottest: bool,
    samples: Option<u64>,
    mix: Mix,
}

#[derive(Serialize)]
struct Line<'a> {
    address: String,
    bytes: String,
    mnemonic: &'a str,
    operands: &'a str,
    class: &'static str,
    marks: Vec<&'static str>,
    target: Option<String>,
    target_name: Option<&'a str>,
    is_target: bool,
    source: Option<&'a str>,
    line: Option<u32>,
    samples: Option<u64>,
}

/// JSON of the schema `laggard.code/1`. Addresses are strings, since JSON numbers lose precision.
pub fn json(report: &CodeReport) -> String {
    let CodeReport { code, choice, .. } = *report;
    let rows = if code.listings.is_empty() { choose(code, choice) } else { vec![] };
    pretty(&Shape {
        schema: "laggard.code/1",
        files: code.files.iter().map(file).collect(),
        functions: kept(&rows, choice.top)
            .iter()
            .map(|row| {
                let function = &code.files[row.file].functions[row.function];
                Function {
                    file: row.file,
                    address: hex(function.address),
                    bytes: function.size,
                    name: some(code.texts.get(function.name)),
                    frame_pointer: function.frame_pointer,
                    mix: mix(&function.mix),
                    samples: row.samples,
                    executed: row.executed.as_ref().map(weighed),
                }
            })
            .collect(),
        functions_chosen: rows.len() as u64,
        listings: code.listings.iter().filter_map(|listing| self::listing(code, listing)).collect(),
    })
}

fn file(file: &code::CodeFile) -> File<'_> {
    let build = &file.build;
    File {
        path: &file.path,
        id: &file.id,
        bytes: file.size,
        machine: &file.machine,
        kind: file.kind.words(),
        not_disassembled: some(&file.not_disassembled),
        functions: file.functions.len() as u64,
        code_bytes: file.code_bytes(),
        skipped_bytes: file.skipped_bytes,
        symbols: Symbols {
            full: build.symbols.full,
            dynamic: build.symbols.dynamic,
            stripped: build.symbols.is_stripped(),
            elsewhere: build.symbols.elsewhere.as_deref(),
        },
        debug: debug(&build.debug),
        unwind: Unwind {
            eh_frame: build.unwind.eh_frame,
            eh_frame_hdr: build.unwind.header,
            functions: build.unwind.functions,
        },
        frame_pointers: build.frame_pointers.map(|pointers| FramePointers {
            with: pointers.with,
            of: pointers.of,
            callers_with: pointers.callers_with,
            callers: pointers.callers,
        }),
        build_id: build.build_id.as_deref(),
        soname: build.soname.as_deref(),
        interpreter: build.interpreter.as_deref(),
        needed: build
            .needed
            .iter()
            .map(|needed| Needed { name: &needed.name, known: needed.known.map(known) })
            .collect(),
        provides: build.provides.iter().copied().map(known).collect(),
        rpath: build.rpath.as_deref(),
        runpath: build.runpath.as_deref(),
        relro: build.relro.word(),
        bind_now: build.bind_now,
        compilers: &build.compilers,
        targets: file
            .targets
            .iter()
            .map(|target| Target {
                name: &target.name,
                functions: target.functions,
                needs: &target.needs,
                lacks: target.lacks.as_deref(),
                runs_here: target.runs_here(),
            })
            .collect(),
        mix: mix(&file.mix()),
        executed: file.executed.as_ref().map(|seen| Executed {
            samples: seen.samples,
            here: seen.here,
            astray: seen.astray,
            mix: weighed(&executed(file)),
        }),
    }
}

fn debug(debug: &code::Debug) -> Debug<'_> {
    Debug {
        level: debug.level.words(),
        separate: debug.separate.as_deref(),
        dwarf_versions: &debug.versions,
        units: debug.units,
        producers: debug.producers.iter().map(producer).collect(),
    }
}

fn producer(producer: &code::Producer) -> Producer<'_> {
    let code::Producer { compiler, flags, language, units } = producer;
    Producer { compiler, flags, language, units: *units }
}

fn known(known: code::Known) -> Known {
    Known { role: known.role.word(), name: known.name }
}

fn mix(mix: &code::Mix) -> Mix {
    Mix {
        instructions: mix.instructions(),
        packed_share: mix.packed_share(),
        packed_math_share: mix.packed_math_share(),
        widest_vector_bits: mix.widest_vector(),
        classes: Class::ALL.into_iter().map(|class| (class.word(), mix.of(class))).collect(),
        marks: Mark::ALL.into_iter().map(|mark| (mark.word(), mix.with(mark))).collect(),
    }
}

fn weighed(mix: &code::Mix) -> Weighed {
    let samples = |n: u64| n as f64 / code::Hot::SCALE as f64;
    Weighed {
        packed_share: mix.packed_share(),
        packed_math_share: mix.packed_math_share(),
        widest_vector_bits: mix.widest_vector(),
        classes: Class::ALL
            .into_iter()
            .map(|class| (class.word(), samples(mix.of(class))))
            .collect(),
        marks: Mark::ALL.into_iter().map(|mark| (mark.word(), samples(mix.with(mark)))).collect(),
    }
}

fn listing<'a>(code: &'a code::Code, listing: &'a code::Listing) -> Option<Listing<'a>> {
    let function =
        code.files.get(listing.file as usize)?.functions.get(listing.function as usize)?;
    let samples = |samples: u64| listing.sampled.then_some(samples);
    Some(Listing {
        file: listing.file,
        address: hex(function.address),
        name: some(code.texts.get(function.name)),
        loops: listing
            .loops
            .iter()
            .map(|found| Loop {
                start: hex(found.start),
                end: hex(found.end),
                innermost: found.innermost,
                hottest: found.hottest,
                samples: samples(found.samples),
                mix: mix(&found.mix),
            })
            .collect(),
        instructions: listing
            .lines
            .iter()
            .map(|line| Line {
                address: hex(line.address),
                bytes: line.bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
                mnemonic: &line.mnemonic,
                operands: &line.operands,
                class: line.class.word(),
                marks: line.marks.iter().map(Mark::word).collect(),
                target: line.target.map(hex),
                target_name: some(code.texts.get(line.target_name)),
                is_target: line.is_target,
                source: some(code.texts.get(line.source)),
                line: (line.line > 0).then_some(line.line),
                samples: samples(line.samples),
            })
            .collect(),
    })
}

fn some(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

fn hex(address: u64) -> String {
    format!("{address:#x}")
}
