//! Time per frame and per stack, cold and warm.
//!
//! `cargo bench -p laggard-symbols [-- RECORDS]`
//!
//! RECORDS is a file written by `tests/c/steps.c`, with `RECORDS.maps` beside it. Without it,
//! scenarios of `steps.c` are recorded.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a program for developers

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Record, compile, read, record};
use laggard_symbols::{AddressSpace, Ending, ModuleIndex, Modules, Unwinder};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

const ROUNDS: usize = 20;

fn main() {
    if let Some(path) = std::env::args().skip(1).find(|word| !word.starts_with("--")) {
        let (records, maps) = read(Path::new(&path));
        return measure(&path, &records, &maps);
    }
    let place = tempfile::tempdir().unwrap();
    let program = compile("steps.c", &["-O2", "-pthread"], place.path(), "steps");
    for scenario in ["plain", "realign", "recursion", "interrupt", "plt", "callback"] {
        let (records, maps) = record(&program, scenario);
        measure(scenario, &records, &maps);
    }
}

fn measure(name: &str, records: &[Record], maps: &[u8]) {
    let start = Instant::now();
    let (mut space, mut modules) = (AddressSpace::default(), Modules::default());
    space.refresh(maps, &mut modules);
    println!("{name}: {} stacks; mappings read in {:.0?}", records.len(), start.elapsed());
    let (mut frames, mut endings) = (vec![], BTreeMap::<&str, usize>::new());
    let mut unwinder = Unwinder::default();
    let mut fastest = f64::INFINITY;
    let mut depth = 0;
    for round in 0..ROUNDS {
        depth = 0;
        let start = Instant::now();
        for one in records {
            let stack = one.stack();
            let ending = unwinder.unwind(&one.registers, stack, &space, &modules, &mut frames);
            depth += frames.len();
            if round == 0 {
                *endings.entry(ending.reason()).or_default() += 1;
                if ending != Ending::Complete && endings[ending.reason()] < 4 {
                    println!("  {ending:x?} {:x?}", frames.last().unwrap());
                }
            }
        }
        let ns = start.elapsed().as_nanos() as f64;
        fastest = fastest.min(ns);
        if round == 0 {
            println!("  first {:.2} µs per stack", ns / records.len() as f64 / 1e3);
        }
    }
    name_all(records, &space, &modules);
    let per_stack = fastest / records.len() as f64 / 1e3;
    let frames_a_stack = depth as f64 / records.len() as f64;
    println!(
        "  warm, best of {ROUNDS}: {per_stack:.2} µs per stack of {frames_a_stack:.1} frames, {:.0} ns per frame; {endings:?}",
        fastest / depth as f64
    );
}

/// Symbolizes every address once, by symbol and by line. The first access to a file reads its
/// tables.
fn name_all(records: &[Record], space: &AddressSpace, modules: &Modules) {
    let mut unwinder = Unwinder::default();
    let (mut frames, mut all) = (vec![], BTreeSet::new());
    let mut on_top = BTreeMap::<_, usize>::new();
    for one in records {
        unwinder.unwind(&one.registers, one.stack(), space, modules, &mut frames);
        all.extend(frames.iter().filter_map(|frame| Some((frame.module?, frame.svma))));
        *on_top.entry((frames[0].module, frames[0].svma)).or_default() += 1;
    }
    let start = Instant::now();
    let named = all.iter().filter(|(m, svma)| !name(modules, Some(*m), *svma).is_empty()).count();
    println!("  {named} of {} addresses have names, in {:.0?}", all.len(), start.elapsed());

    let (start, mut lines) = (Instant::now(), 0);
    for (index, module) in modules.iter() {
        let of_module = all.range((index, 0)..=(index, u64::MAX));
        let Some(read) = module.elf.as_ref().filter(|_| of_module.clone().count() > 0) else {
            continue;
        };
        if let Some(read) = read.lines() {
            lines += of_module.filter(|(_, svma)| !read.locations(*svma).is_empty()).count();
        }
    }
    println!("  {lines} of {} addresses have lines, in {:.0?}", all.len(), start.elapsed());

    let mut leaves = BTreeMap::<String, usize>::new();
    for ((module, svma), count) in on_top {
        *leaves.entry(name(modules, module, svma)).or_default() += count;
    }
    let mut leaves: Vec<_> = leaves.into_iter().collect();
    leaves.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    println!("  most frequent innermost functions: {:?}", &leaves[..leaves.len().min(6)]);
}

fn name(modules: &Modules, module: Option<ModuleIndex>, svma: u64) -> String {
    let elf = module.and_then(|module| modules.get(module)?.elf.as_ref());
    elf.and_then(|elf| elf.symbol(svma)).map(|symbol| symbol.name.into()).unwrap_or_default()
}
