//! Reports of a synthetic library.

use super::*;
use insta::assert_snapshot;
use laggard_core::model::code::{
    AsmLine, Build, Debug, DebugLevel, Executed, FileKind, FramePointers, Function, Hot, Known,
    Listing, Loop, Marks, Needed, Producer, Relro, Role, Symbols, Target, Unwind,
};

fn mix(counts: &[(Class, &[Mark], u64)]) -> Mix {
    let mut mix = Mix::default();
    for &(class, marks, times) in counts {
        let marks = marks.iter().fold(Marks::default(), |all, mark| all.and(*mark));
        mix.count(class, marks, times);
    }
    mix
}

fn vectorised() -> Mix {
    mix(&[
        (Class::Integer, &[], 20),
        (Class::Avx256, &[Mark::Load], 30),
        (Class::Avx256, &[Mark::Fma, Mark::PackedMath], 40),
        (Class::Branch, &[], 8),
        (Class::Nop, &[], 2),
    ])
}

fn scalar() -> Mix {
    mix(&[
        (Class::Integer, &[], 50),
        (Class::Float, &[Mark::ScalarMath, Mark::Divide], 25),
        (Class::Sse, &[], 5),
        (Class::Branch, &[], 20),
    ])
}

/// A library with a fast function, a slow one, and one with control characters in its name.
fn code() -> Code {
    let mut code = Code::default();
    let names = ["sgemm_kernel_HASWELL", "slow_dot", "evil\u{1b}[31m|`name`\n", ""];
    let names = names.map(|name| code.texts.add(name));
    let function = |at: usize, address: u64, size: u64, mix: Mix| Function {
        address,
        size,
        name: names[at],
        frame_pointer: at == 1,
        is_stub: false,
        mix,
    };
    let functions = vec![
        function(0, 0x1000, 4_000, vectorised()),
        function(1, 0x2000, 900, scalar()),
        function(2, 0x2400, 90, Mix::default()),
        function(3, 0x2500, 50, scalar()),
    ];
    let blas = Known { role: Role::Blas, name: "OpenBLAS" };
    let openmp = Known { role: Role::OpenMp, name: "libgomp" };
    code.files.push(CodeFile {
        path: "/opt/lib/libfast.so.1".into(),
        id: "ab12".into(),
        size: 24_300_000,
        machine: "x86-64".into(),
        kind: FileKind::Library,
        build: Build {
            symbols: Symbols { full: 240, dynamic: 52, elsewhere: None },
            debug: Debug {
                level: DebugLevel::Lines,
                separate: None,
                versions: vec![4, 5],
                units: 12,
                producers: vec![Producer {
                    compiler: "GNU C17 12.2.0".into(),
                    flags: ["-march=haswell", "-O3", "-g1", "-fPIC"].map(str::to_owned).into(),
                    language: "C11".into(),
                    units: 12,
                }],
            },
            unwind: Unwind { eh_frame: true, header: true, functions: 4 },
            build_id: Some("ab12".into()),
            soname: Some("libfast.so.1".into()),
            interpreter: None,
            needed: vec![
                Needed { name: "libgomp.so.1".into(), known: Some(openmp) },
                Needed { name: "libc.so.6".into(), known: None },
            ],
            provides: vec![blas],
            rpath: None,
            runpath: Some("$ORIGIN".into()),
            relro: Relro::Partial,
            bind_now: false,
            compilers: vec!["GCC: (GNU) 12.2.0".into()],
            frame_pointers: Some(FramePointers { with: 1, of: 4, callers_with: 1, callers: 2 }),
        },
        targets: vec![
            Target {
                name: "HASWELL".into(),
                functions: 776,
                needs: vec!["avx2", "fma"],
                lacks: Some(vec![]),
            },
            Target {
                name: "SKYLAKEX".into(),
                functions: 700,
                needs: vec!["avx512f", "avx512vl"],
                lacks: Some(vec!["avx512vl"]),
            },
        ],
        functions,
        ..CodeFile::default()
    });
    code
}

/// The same with a profile.
fn sampled() -> Code {
    let mut code = code();
    let hot = |function, samples, counts: &[(Class, &[Mark], u64)]| Hot {
        function,
        samples,
        mix: mix(counts),
    };
    code.files[0].executed = Some(Executed {
        samples: 1_000,
        here: 900,
        astray: 5,
        hot: vec![
            hot(
                1,
                700,
                &[(Class::Float, &[Mark::ScalarMath], 600_000), (Class::Integer, &[], 100_000)],
            ),
            hot(0, 200, &[(Class::Avx256, &[Mark::Fma, Mark::PackedMath], 195_000)]),
        ],
    });
    code
}

fn line(address: u64, text: (&str, &str), class: Class, samples: u64) -> AsmLine {
    AsmLine {
        address,
        bytes: vec![0xc5, 0xf4, 0x58],
        mnemonic: text.0.into(),
        operands: text.1.into(),
        class,
        marks: Marks::default(),
        target: None,
        target_name: 0,
        is_target: false,
        source: 0,
        line: 0,
        samples,
    }
}

fn listed() -> Code {
    let mut code = sampled();
    let source = code.texts.add("src/dot.c");
    let other = code.texts.add("helper(int)");
    let mut lines = vec![
        line(0x2000, ("xor", "eax, eax"), Class::Integer, 0),
        line(0x2003, ("vfmadd231ss", "xmm0, xmm1, [rdi+rax*4]"), Class::Float, 75),
        line(0x2006, ("jne", "0x2003"), Class::Branch, 25),
        line(0x2009, ("call", "0x5000"), Class::Call, 0),
        line(0x200c, ("ret", ""), Class::Call, 0),
    ];
    lines[1].marks = Marks::default().and(Mark::Load).and(Mark::Fma).and(Mark::ScalarMath);
    lines[1].is_target = true;
    lines[2].target = Some(0x2003);
    (lines[3].target, lines[3].target_name) = (Some(0x5000), other);
    for (line, number) in lines.iter_mut().zip([3, 4, 4, 0, 6]) {
        (line.source, line.line) = (source, number);
    }
    let found = Loop {
        start: 0x2003,
        end: 0x2009,
        innermost: true,
        hottest: true,
        mix: mix(&[
            (Class::Float, &[Mark::Load, Mark::Fma, Mark::ScalarMath], 1),
            (Class::Branch, &[], 1),
        ]),
        samples: 100,
    };
    code.listings =
        vec![Listing { file: 0, function: 1, lines, loops: vec![found], sampled: true }];
    code
}

fn report<'a>(code: &'a Code, choice: &'a Choice) -> CodeReport<'a> {
    CodeReport { code, choice, shown: Shown::All, bytes: false }
}

#[test]
fn library_in_every_format() {
    let (code, choice) = (code(), Choice { top: Some(3), ..Choice::default() });
    let report = report(&code, &choice);
    assert_snapshot!("library_text", text(&report, &Style::default()));
    assert_snapshot!("library_markdown", markdown(&report));
    assert_snapshot!("library_json", json(&report));
    assert_snapshot!("library_csv", csv(&report));
}

#[test]
fn profile_adds_executed_instructions() {
    let (code, choice) = (sampled(), Choice { sort: Sort::Samples, ..Choice::default() });
    assert_snapshot!("sampled_text", text(&report(&code, &choice), &Style::default()));
    let top = Choice { sort: Sort::Samples, top: Some(1), ..Choice::default() };
    assert_snapshot!("sampled_json", json(&report(&code, &top)));
    assert_snapshot!("sampled_csv", csv(&report(&code, &choice)));
}

#[test]
fn a_listing_shows_loops_samples_and_lines() {
    let (code, choice) = (listed(), Choice::default());
    let report = CodeReport { bytes: true, ..report(&code, &choice) };
    assert_snapshot!("listing_text", text(&report, &Style::default()));
    assert_snapshot!("listing_csv", csv(&report));
    assert_snapshot!(
        "listing_json",
        json(&report).split_once("\"listings\"").map_or("", |(_, rest)| rest)
    );
}

#[test]
fn several_files_share_one_table() {
    let mut code = code();
    let mut other = CodeFile {
        path: "/x/libarm.so".into(),
        machine: "AArch64".into(),
        not_disassembled: "cannot disassemble AArch64 code; only x86-64 is supported".into(),
        ..CodeFile::default()
    };
    other.functions = vec![Function { address: 16, size: 8, ..Function::default() }];
    code.files.push(other.clone());
    let choice = Choice { top: Some(2), ..Choice::default() };
    assert_snapshot!("two_files", text(&report(&code, &choice), &Style::default()));
    code.files.extend([other.clone(), other]);
    assert_snapshot!("four_files", text(&report(&code, &choice), &Style::default()));
}

#[test]
fn names_are_escaped() {
    let (code, choice) = (code(), Choice::default());
    let report = report(&code, &choice);
    for shown in [text(&report, &Style::default()), markdown(&report)] {
        assert!(!shown.contains('\u{1b}'), "{shown}");
    }
}

#[test]
fn functions_are_selected_and_sorted() {
    let check = |patterns: &[&str], sort: Sort, expected: &[usize]| {
        let patterns = patterns.iter().map(|&pattern| pattern.to_owned()).collect();
        let rows = choose(&sampled(), &Choice { patterns, sort, top: None });
        let found: Vec<usize> = rows.iter().map(|row| row.function).collect();
        assert_eq!(found, expected);
    };
    check(&[], Sort::Size, &[0, 1, 2, 3]);
    check(&[], Sort::Vector, &[0, 1, 3, 2]);
    check(&[], Sort::Samples, &[1, 0]);
    check(&["slow*"], Sort::Size, &[1]);
    check(&["*_HASWELL", "slow_do?"], Sort::Size, &[0, 1]);
    check(&["nothing"], Sort::Size, &[]);
}

#[test]
fn glob_patterns() {
    for (pattern, name, fits) in [
        ("*", "", true),
        ("*", "anything", true),
        ("a*b*c", "aXbXbXc", true),
        ("a*b*c", "aXbX", false),
        ("?", "é", true),
        ("?", "", false),
        ("dgemm", "dgemm_", false),
        ("*gemm*", "cblas_sgemm64_", true),
        ("", "x", false),
    ] {
        assert_eq!(glob(pattern, name), fits, "{pattern} {name}");
    }
}
