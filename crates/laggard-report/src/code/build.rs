//! Build facts of files: compiler, flags, symbols, debug info, dependencies.

use super::{executed, part_of, short};
use crate::document::Document;
use crate::number::{bytes, count, percent, plural};
use crate::table::{Column, Table};
use laggard_core::model::code::{Code, CodeFile, Debug, DebugLevel, Mix, Needed, Producer, Role};

/// Up to this many files get one column each; more get one row each.
const MOST_COLUMNS: usize = 3;
/// Maximum number of compilers listed.
const MOST_PRODUCERS: usize = 4;

/// The facts of one file.
pub(super) fn facts(file: &CodeFile, document: &mut Document) {
    document.heading(format!("Build of {}", short(&file.path)));
    document.facts(all(file));
}

/// Compares several files in one table.
pub(super) fn side_by_side(files: &[CodeFile], document: &mut Document) {
    document.heading("Files");
    if files.is_empty() {
        document.line("no files");
    } else if files.len() <= MOST_COLUMNS {
        let mut columns = vec![Column::text("")];
        columns.extend(files.iter().map(|file| Column::text(short(&file.path))));
        let mut table = Table::new(columns);
        let facts: Vec<_> = files.iter().map(brief).collect();
        for at in 0..facts[0].len() {
            let cells: Vec<String> = facts.iter().map(|facts| facts[at].1.clone()).collect();
            if cells.iter().any(|cell| !cell.is_empty()) {
                table.push([vec![facts[0][at].0.to_owned()], cells].concat());
            }
        }
        document.table(table);
        document.minor(format!("{FRAME_POINTERS}; {REMARK}"));
    } else {
        rows(files, document);
    }
}

fn rows(files: &[CodeFile], document: &mut Document) {
    let mut table = Table::new([
        Column::text("file"),
        Column::number("code", "kB"),
        Column::number("functions", "n"),
        Column::text("symbols"),
        Column::text("debug"),
        Column::number("frame pointers", "%"),
        Column::number("vector", "%"),
        Column::number("math", "% vector"),
        Column::number("widest", "bits"),
        Column::number("samples", "n"),
    ]);
    for file in files {
        let mix = file.mix();
        let pointers = file.build.frame_pointers.filter(|pointers| pointers.callers > 0);
        table.push([
            short(&file.path).to_owned(),
            format!("{:.1}", file.code_bytes() as f64 / 1e3),
            count(file.functions.len() as u64),
            if file.build.symbols.is_stripped() { "stripped" } else { "full" }.to_owned(),
            match file.build.debug.level {
                DebugLevel::None => "none",
                DebugLevel::Lines => "lines",
                DebugLevel::Full => "full",
            }
            .to_owned(),
            pointers
                .map_or_else(String::new, |p| percent(p.callers_with as f64 / p.callers as f64)),
            mix.packed_share().map_or_else(String::new, percent),
            mix.packed_math_share().map_or_else(String::new, percent),
            mix.widest_vector().map_or_else(String::new, |bits| bits.to_string()),
            file.executed.as_ref().map_or_else(String::new, |executed| count(executed.here)),
        ]);
    }
    document.table(table);
    document.minor(format!("{FRAME_POINTERS}; {REMARK}"));
}

const FRAME_POINTERS: &str = "frame pointers: share of non-leaf functions";
/// Explains the columns `vector` and `math`.
pub(super) const REMARK: &str = "vector: share of vector (SIMD) instructions; math: share of floating-point arithmetic done by them";

/// All facts in a fixed order; missing ones are empty.
fn all(file: &CodeFile) -> Vec<(&'static str, String)> {
    let build = &file.build;
    let mut needed: Vec<String> = build.needed.iter().map(needed).collect();
    if needed.is_empty() {
        needed.push("none".to_owned());
    }
    let option = |text: &Option<String>| text.clone().unwrap_or_default();
    let brings =
        build.provides.iter().map(|known| format!("{} ({})", known.name, known.role.word()));
    let mix = file.mix();
    vec![
        ("path", file.path.clone()),
        (
            "kind",
            format!("{} for {}, {}", file.kind.words(), file.machine, bytes(file.size as i64)),
        ),
        ("code", code(file)),
        ("vector code", vectors(&mix)),
        ("executed", ran(file)),
        ("symbols", symbols(file)),
        ("debug info", debug(&build.debug)),
        ("compiler", compiled(file)),
        ("frame pointers", pointers(file)),
        ("unwind tables", unwind(file)),
        ("contains", brings.collect::<Vec<_>>().join(", ")),
        ("needs", needed.join(", ")),
        ("rpath", option(&build.rpath)),
        ("runpath", option(&build.runpath)),
        ("binding", binding(file)),
        ("build-id", build.build_id.clone().unwrap_or_else(|| "none".to_owned())),
    ]
}

/// Short facts for columns.
fn brief(file: &CodeFile) -> Vec<(&'static str, String)> {
    let build = &file.build;
    let mix = file.mix();
    let share =
        |share: Option<f64>| share.map_or_else(String::new, |s| format!("{} %", percent(s)));
    let pointers = build.frame_pointers.filter(|pointers| pointers.callers > 0);
    let of = |role: Role| {
        let asked = build.needed.iter().filter_map(|needed| needed.known);
        let mut names: Vec<&str> = build
            .provides
            .iter()
            .copied()
            .chain(asked)
            .filter(|known| known.role == role)
            .map(|known| known.name)
            .collect();
        names.dedup();
        names.join(", ")
    };
    let producer = build.debug.producers.first();
    let compiler = producer.map(|producer| producer.compiler.clone());
    let speed = |flag: &&String| {
        ["-O", "-march", "-mtune", "-mavx", "-mfma"].iter().any(|start| flag.starts_with(start))
    };
    let flags = producer.map_or_else(Vec::new, |producer| {
        producer.flags.iter().filter(speed).cloned().collect::<Vec<_>>()
    });
    vec![
        ("kind", file.kind.words().to_owned()),
        ("machine", file.machine.clone()),
        ("size", bytes(file.size as i64)),
        ("code", bytes(file.code_bytes() as i64)),
        ("functions", count(file.functions.len() as u64)),
        ("instructions", count(mix.instructions())),
        ("vector code", share(mix.packed_share())),
        ("vector math", share(mix.packed_math_share())),
        ("widest vector", mix.widest_vector().map_or_else(String::new, |n| format!("{n} bits"))),
        ("samples", file.executed.as_ref().map_or_else(String::new, |seen| count(seen.here))),
        ("symbols", if build.symbols.is_stripped() { "stripped" } else { "full" }.to_owned()),
        ("debug info", build.debug.level.words().to_owned()),
        ("compiler", compiler.or_else(|| build.compilers.first().cloned()).unwrap_or_default()),
        ("flags", flags.join(" ")),
        ("frame pointers", share(pointers.map(|p| p.callers_with as f64 / p.callers as f64))),
        ("unwind tables", if build.unwind.eh_frame { "yes" } else { "none" }.to_owned()),
        ("BLAS", of(Role::Blas)),
        ("LAPACK", of(Role::Lapack)),
        ("OpenMP", of(Role::OpenMp)),
        ("allocator", of(Role::Allocator)),
        ("GPU", of(Role::Gpu)),
        ("relro", build.relro.word().to_owned()),
        ("binding", if build.bind_now { "at load" } else { "lazy" }.to_owned()),
    ]
}

fn code(file: &CodeFile) -> String {
    let functions = plural(file.functions.len() as u64, "function");
    let instructions = match file.mix().instructions() {
        0 => String::new(),
        n => format!(", {}", plural(n, "instruction")),
    };
    format!("{}, {functions}{instructions}", bytes(file.code_bytes() as i64))
}

fn vectors(mix: &Mix) -> String {
    let Some(share) = mix.packed_share() else { return String::new() };
    let width = mix.widest_vector().map_or_else(String::new, |bits| format!(", up to {bits} bits"));
    let math = mix.packed_math_share().map_or_else(String::new, |share| {
        format!(", {} % of floating-point arithmetic", percent(share))
    });
    format!("{} % of instructions{math}{width}", percent(share))
}

fn ran(file: &CodeFile) -> String {
    let Some(executed_here) = &file.executed else { return String::new() };
    let mut text = part_of(executed_here.here, executed_here.samples, "sample");
    let mix = executed(file);
    if let Some(share) = mix.packed_share() {
        text += &format!("; {} % of executed instructions are vector code", percent(share));
    }
    if executed_here.astray > 0 {
        text += &format!("; {} not at an instruction", count(executed_here.astray));
    }
    text
}

fn symbols(file: &CodeFile) -> String {
    let symbols = &file.build.symbols;
    let dynamic = format!("{} dynamic", count(symbols.dynamic));
    if !symbols.is_stripped() {
        return format!("{} in the full table, {dynamic}", count(symbols.full));
    }
    match &symbols.elsewhere {
        Some(place) => format!("stripped, {dynamic}; others in {place}"),
        None => format!("stripped, {dynamic}"),
    }
}

fn debug(debug: &Debug) -> String {
    if debug.level == DebugLevel::None {
        return "none".to_owned();
    }
    let versions: Vec<String> = debug.versions.iter().map(u16::to_string).collect();
    let place = debug.separate.as_ref().map_or_else(String::new, |path| format!(", in {path}"));
    format!(
        "{}, DWARF {}, {}{place}",
        debug.level.words(),
        versions.join(" and "),
        plural(debug.units, "unit")
    )
}

fn compiled(file: &CodeFile) -> String {
    let producers = &file.build.debug.producers;
    if producers.is_empty() {
        return file.build.compilers.join("; ");
    }
    let mut texts: Vec<String> = producers.iter().take(MOST_PRODUCERS).map(producer).collect();
    if producers.len() > MOST_PRODUCERS {
        texts.push(format!("and {} more", producers.len() - MOST_PRODUCERS));
    }
    texts.join("; ")
}

fn producer(producer: &Producer) -> String {
    let flags: String =
        producer.flags.iter().filter(|flag| matters(flag)).map(|flag| format!(" {flag}")).collect();
    let units = plural(producer.units, "unit");
    match &*producer.language {
        "" => format!("{}{flags} ({units})", producer.compiler),
        language => format!("{}{flags} ({language}, {units})", producer.compiler),
    }
}

/// Whether a flag affects speed or debug info.
fn matters(flag: &str) -> bool {
    const NO: [&str; 6] =
        ["-fPIC", "-fpic", "-fPIE", "-fpie", "-fstack-protector", "-fasynchronous-unwind-tables"];
    ["-O", "-m", "-g", "-f"].iter().any(|start| flag.starts_with(start))
        && !NO.iter().any(|no| flag.starts_with(no))
        && !flag.contains("-prefix-map=")
}

fn pointers(file: &CodeFile) -> String {
    let Some(pointers) = file.build.frame_pointers.filter(|pointers| pointers.of > 0) else {
        return String::new();
    };
    let all = part_of(pointers.with, pointers.of, "function");
    match pointers.callers {
        0 => all,
        callers => {
            let word = part_of(pointers.callers_with, callers, "non-leaf function");
            format!("{word}; {all} overall")
        }
    }
}

fn unwind(file: &CodeFile) -> String {
    let unwind = file.build.unwind;
    match (unwind.eh_frame, unwind.header) {
        (false, _) => "none".to_owned(),
        (true, header) => format!(
            ".eh_frame {} index, {}",
            if header { "with" } else { "without" },
            plural(unwind.functions, "function")
        ),
    }
}

fn binding(file: &CodeFile) -> String {
    let when = if file.build.bind_now { "at load" } else { "lazy" };
    format!("{when}; relro {}", file.build.relro.word())
}

fn needed(needed: &Needed) -> String {
    match needed.known {
        // "libm.so.6 (math: libm)" would repeat the name.
        Some(known) if known.role == Role::Math && known.name == "libm" => needed.name.clone(),
        Some(known) => format!("{} ({}: {})", needed.name, known.role.word(), known.name),
        None => needed.name.clone(),
    }
}

/// Whether functions need a column with their file.
pub(super) fn has_several(code: &Code) -> bool {
    code.files.len() > 1
}
