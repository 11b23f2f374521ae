//! Unwinding works at every instruction of a program.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use common::{Record, compile, record};
use laggard_symbols::{
    AddressSpace, Ending, MAX_DEPTH, Modules, NativeFrame, Registers, StackCopy, Unwinder,
};
use std::path::Path;

const SCENARIOS: [&str; 10] = [
    "plain",
    "realign",
    "recursion",
    "interrupt",
    "plt",
    "callback",
    "thread",
    "assembly",
    "vdso",
    "red_zone",
];

/// Callers and callees in `steps.c`, without those in libraries.
const CALLS: [(&str, &str); 29] = [
    ("main", "plain"),
    ("main", "realign"),
    ("main", "recursion"),
    ("main", "interrupt"),
    ("main", "plt"),
    ("main", "callback"),
    ("main", "thread"),
    ("main", "assembly"),
    ("main", "vdso"),
    ("main", "red_zone"),
    ("red_zone", "in_red_zone"),
    ("plain", "middle"),
    ("middle", "leaf"),
    ("realign", "aligned"),
    ("aligned", "leaf"),
    ("recursion", "deep"),
    ("deep", "deep"),
    ("deep", "leaf"),
    ("on_usr1", "leaf"),
    ("plt", "leaf"),
    ("order", "leaf"),
    ("in_thread", "leaf"),
    ("assembly", "bare_leaf"),
    ("assembly", "bare_frame"),
    ("assembly", "bare_word"),
    ("bare_frame", "in_frame"),
    ("bare_word", "in_frame"),
    ("in_frame", "leaf"),
    ("_start", "main"),
];

fn check(flags: &[&str]) {
    let place = tempfile::tempdir().unwrap();
    let all = [flags, &["-pthread"]].concat();
    let program = compile("steps.c", &all, place.path(), "steps");
    for scenario in SCENARIOS {
        let (records, maps) = record(&program, scenario);
        assert!(records.len() > 3, "{scenario} {flags:?}: {} records", records.len());
        let (mut space, mut modules) = (AddressSpace::default(), Modules::default());
        space.refresh(&maps, &mut modules);
        let mut unwinder = Unwinder::default();
        let mut frames = vec![];
        for (number, one) in records.iter().enumerate() {
            let both = [one.stack(), one.stack_without_red_zone()];
            let needs_red_zone = scenario == "red_zone";
            for stack in both.into_iter().take(if needs_red_zone { 1 } else { 2 }) {
                let ending = unwinder.unwind(&one.registers, stack, &space, &modules, &mut frames);
                let names = names(&frames, &modules);
                let about = format!("{scenario} {flags:?} record {number}: {names:?}");
                assert_eq!(ending, Ending::Complete, "{about}");
                check_frames(&frames, one, &about);
                check_names(scenario, &program, &frames, &names, &modules, &about);
            }
        }
    }
}

fn names(frames: &[NativeFrame], modules: &Modules) -> Vec<String> {
    let name = |frame: &NativeFrame| {
        let elf = modules.get(frame.module?)?.elf.as_ref()?;
        Some(elf.symbol(frame.svma)?.name.into_owned())
    };
    frames.iter().map(|frame| name(frame).unwrap_or_default()).collect()
}

/// Frames are contiguous, each above the previous one.
fn check_frames(frames: &[NativeFrame], record: &Record, about: &str) {
    assert_eq!(frames[0].sp, record.registers.sp(), "{about}");
    for pair in frames.windows(2) {
        assert!(pair[0].cfa == pair[1].sp && pair[0].sp < pair[0].cfa, "{pair:x?} {about}");
    }
}

fn check_names(
    scenario: &str,
    program: &Path,
    frames: &[NativeFrame],
    names: &[String],
    modules: &Modules,
    about: &str,
) {
    let path = |frame: &NativeFrame| modules.get(frame.module.unwrap()).unwrap().path.clone();
    let own: Vec<&str> = std::iter::zip(frames, names)
        .filter(|(frame, name)| path(frame) == program && !name.ends_with("@plt"))
        .map(|(_, name)| name.as_str())
        // The first entry of the PLT, which binds a function at its first call, has no name.
        .filter(|name| !name.is_empty())
        .collect();
    for pair in own.windows(2) {
        let foreign = [("callback", "order"), ("interrupt", "on_usr1")];
        let call = (pair[1], pair[0]);
        assert!(CALLS.contains(&call) || foreign.contains(&call), "{call:?} in {about}");
    }
    let first = if scenario == "thread" { "in_thread" } else { "_start" };
    assert_eq!(own.last(), Some(&first), "{about}");
    if scenario == "recursion" && own[0] == "leaf" {
        assert_eq!(own.iter().filter(|name| **name == "deep").count(), 301, "{about}");
    }
}

#[test]
fn unwinds_code_without_frame_pointers() {
    check(&["-O2", "-fomit-frame-pointer"]);
}

#[test]
fn unwinds_code_with_frame_pointers() {
    check(&["-O0", "-fno-omit-frame-pointer"]);
}

#[test]
fn unwinds_lazily_bound_calls() {
    check(&["-O3", "-fomit-frame-pointer", "-Wl,-z,lazy", "-fplt", "-fcf-protection=full"]);
}

#[test]
fn unwinds_fixed_address_code_without_eh_frame_hdr() {
    check(&["-Os", "-no-pie", "-fomit-frame-pointer", "-Wl,--no-eh-frame-hdr"]);
}

/// Stacks of words that look like addresses neither panic nor loop forever.
#[test]
fn random_stacks_end() {
    let maps = std::fs::read("/proc/self/maps").unwrap();
    let (mut space, mut modules) = (AddressSpace::default(), Modules::default());
    space.refresh(&maps, &mut modules);
    let mut unwinder = Unwinder::default();
    let mut random = 1u64;
    let mut next = move || {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        random >> 16
    };
    let start = 0x7ffd_0000_0000;
    let mut word = move |space: &AddressSpace| {
        let area = &space.mappings()[next() as usize % space.mappings().len()].area;
        match next() % 4 {
            0 => area.start + next() % (area.end - area.start),
            1 => start + next() % 4096 * 8,
            2 => 0,
            _ => next(),
        }
    };
    let mut frames = vec![];
    for _ in 0..500 {
        let bytes: Vec<u8> = (0..4096).flat_map(|_| word(&space).to_le_bytes()).collect();
        let mut registers = Registers(std::array::from_fn(|_| word(&space)));
        registers.0[Registers::RSP] = start;
        let stack = StackCopy { start, bytes: &bytes };
        unwinder.unwind(&registers, stack, &space, &modules, &mut frames);
        assert!(!frames.is_empty() && frames.len() <= MAX_DEPTH);
    }
}
