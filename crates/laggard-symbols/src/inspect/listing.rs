//! Lists the instructions of a function, with its loops.

use super::class::Classifier;
use super::executed::Samples;
use super::functions::decode;
use crate::{Elf, demangle};
use iced_x86::{Formatter, Instruction, IntelFormatter, OpKind};
use laggard_core::model::code::{AsmLine, Class, CodeFile, Listing, Loop, Mix};
use laggard_core::model::profile::Texts;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of instructions in a listing.
const LONGEST: usize = 1 << 20;
/// Maximum number of instructions visited in total to find loops. Limits the time on hostile files
/// with deep nesting.
const MOST_STEPS: usize = 1 << 24;

/// Lists a function of a file. Empty if the machine is not supported.
pub fn listing(
    elf: &Elf,
    file: &CodeFile,
    function: usize,
    samples: Option<&Samples>,
    texts: &mut Texts,
) -> Listing {
    let mut listing =
        Listing { function: function as u32, sampled: samples.is_some(), ..Listing::default() };
    let Some(function) = file.functions.get(function).filter(|_| elf.is_x86_64()) else {
        return listing;
    };
    let Some((decoder, bytes)) = decode(elf, function.address, function.size) else {
        return listing;
    };
    let range = function.address..function.address.saturating_add(bytes.len() as u64);
    let lines = elf.lines();
    let mut classifier = Classifier::new();
    let mut formatter = IntelFormatter::new();
    formatter.options_mut().set_space_after_operand_separator(true);
    formatter.options_mut().set_hex_prefix("0x");
    formatter.options_mut().set_hex_suffix("");
    formatter.options_mut().set_uppercase_hex(false);
    formatter.options_mut().set_rip_relative_addresses(true);
    formatter.options_mut().set_branch_leading_zeros(false);
    formatter.options_mut().set_show_branch_size(false);
    for instruction in decoder.into_iter().take(LONGEST) {
        let (class, marks) = classifier.classify(&instruction);
        let (mnemonic, operands) = text(&mut formatter, &instruction);
        let target = target(&instruction);
        let name = target.filter(|target| !range.contains(target)).and_then(|at| elf.symbol(at));
        let place =
            lines.as_ref().and_then(|lines| lines.locations(instruction.ip()).into_iter().next());
        let place = place.unwrap_or_default();
        let start = (instruction.ip() - function.address) as usize;
        listing.lines.push(AsmLine {
            address: instruction.ip(),
            bytes: bytes.get(start..start + instruction.len()).unwrap_or_default().to_vec(),
            mnemonic,
            operands,
            class,
            marks,
            target,
            target_name: name.map_or(0, |symbol| texts.add(&demangle(&symbol.name))),
            is_target: false,
            source: texts.add(&place.file),
            line: place.line,
            samples: samples.and_then(|s| s.at.get(&instruction.ip())).copied().unwrap_or(0),
        });
    }
    mark_targets(&mut listing.lines);
    listing.loops = loops(&listing.lines);
    listing
}

fn text(formatter: &mut IntelFormatter, instruction: &Instruction) -> (String, String) {
    let (mut mnemonic, mut operands) = (String::new(), String::new());
    if instruction.is_invalid() {
        return ("(bad)".to_owned(), operands);
    }
    formatter.format_mnemonic(instruction, &mut mnemonic);
    formatter.format_all_operands(instruction, &mut operands);
    (mnemonic, operands)
}

/// The target of a jump or call.
pub(super) fn target(instruction: &Instruction) -> Option<u64> {
    let is_near = instruction.op_count() > 0
        && matches!(
            instruction.op0_kind(),
            OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
        );
    is_near.then(|| instruction.near_branch_target())
}

fn mark_targets(lines: &mut [AsmLine]) {
    let targets: BTreeSet<u64> = lines.iter().filter_map(|line| line.target).collect();
    for line in lines {
        line.is_target = targets.contains(&line.address);
    }
}

/// Finds loops by their backward jumps. A loop extends from the target of such jumps to the last
/// one. Cold code that the compiler moved elsewhere is not included. A backward jump to code that
/// never returns to it does not close a loop.
fn loops(lines: &[AsmLine]) -> Vec<Loop> {
    let flow = Flow::new(lines);
    let mut jumps: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, _) in lines.iter().enumerate() {
        if let Some(head) = flow.target(at).filter(|head| *head <= at) {
            jumps.entry(head).or_default().push(at);
        }
    }
    let mut budget = MOST_STEPS;
    let mut found: Vec<(usize, usize, Vec<bool>)> = vec![];
    for (head, mut backs) in jumps {
        let reach = backs.last().map_or(0, |last| last - head + 1);
        let Some(left) = budget.checked_sub(reach) else { break };
        budget = left;
        let reached = flow.from(head, reach);
        backs.retain(|at| reached[at - head]);
        if let Some(&last) = backs.last() {
            let body = flow.back_to(head, &reached[..=last - head], &backs);
            found.push((head, last, body));
        }
    }
    // Loops are ordered by their start, so an inner loop comes later and ends earlier.
    let has_inner = |at: usize| {
        let end = found[at].1;
        found[at + 1..].iter().take_while(|inner| inner.0 <= end).any(|inner| inner.1 <= end)
    };
    let mut loops: Vec<Loop> = vec![];
    for (at, (head, last, body)) in found.iter().enumerate() {
        let mut mix = Mix::default();
        let mut samples = 0;
        let inside = lines[*head..=*last].iter().zip(body).filter(|(_, inside)| **inside);
        for (line, _) in inside {
            mix.count(line.class, line.marks, 1);
            samples += line.samples;
        }
        loops.push(Loop {
            start: lines[*head].address,
            end: lines[*last].address + lines[*last].bytes.len() as u64,
            innermost: !has_inner(at),
            hottest: false,
            mix,
            samples,
        });
    }
    let hottest = loops.iter().filter(|l| l.innermost).map(|l| l.samples).max().unwrap_or(0);
    let hottest = loops.iter_mut().find(|l| l.innermost && l.samples == hottest && hottest > 0);
    if let Some(hottest) = hottest {
        hottest.hottest = true;
    }
    loops
}

/// Control flow within a function.
struct Flow<'a> {
    lines: &'a [AsmLine],
}

impl<'a> Flow<'a> {
    fn new(lines: &'a [AsmLine]) -> Flow<'a> {
        Flow { lines }
    }

    /// The target of a jump, if it is an instruction of this function.
    fn target(&self, at: usize) -> Option<usize> {
        let line = &self.lines[at];
        let target = line.target.filter(|_| line.class == Class::Branch)?;
        self.lines.binary_search_by_key(&target, |line| line.address).ok()
    }

    /// Whether execution can continue with the next instruction.
    fn goes_on(&self, at: usize) -> bool {
        let mnemonic = &*self.lines[at].mnemonic;
        !matches!(mnemonic, "jmp" | "ud2" | "hlt" | "(bad)") && !mnemonic.starts_with("ret")
    }

    /// Which of `count` instructions from `head` can be reached from it without leaving them. A
    /// jump through a table can reach all of them.
    fn from(&self, head: usize, count: usize) -> Vec<bool> {
        let mut reached = vec![false; count];
        let mut left = vec![head];
        while let Some(at) = left.pop() {
            let Some(seen) = at.checked_sub(head).and_then(|at| reached.get_mut(at)) else {
                continue;
            };
            if std::mem::replace(seen, true) {
                continue;
            }
            let line = &self.lines[at];
            if line.class == Class::Branch && line.target.is_none() {
                return vec![true; count];
            }
            left.extend(self.target(at));
            if self.goes_on(at) {
                left.push(at + 1);
            }
        }
        reached
    }

    /// Which of the reached instructions lead to one of the backward jumps.
    fn back_to(&self, head: usize, reached: &[bool], backs: &[usize]) -> Vec<bool> {
        let count = reached.len();
        let mut sources: Vec<Vec<u32>> = vec![vec![]; count];
        let mut through_tables = vec![];
        for at in (0..count).filter(|at| reached[*at]) {
            let line = &self.lines[head + at];
            if line.class == Class::Branch && line.target.is_none() {
                through_tables.push(head + at);
            }
            let target = self.target(head + at).and_then(|target| target.checked_sub(head));
            let next = self.goes_on(head + at).then_some(at + 1);
            for to in target.into_iter().chain(next).filter(|to| *to < count) {
                sources[to].push(at as u32);
            }
        }
        let mut body = vec![false; count];
        let mut left: Vec<usize> =
            backs.iter().chain(&through_tables).map(|at| at - head).collect();
        while let Some(at) = left.pop() {
            if !std::mem::replace(&mut body[at], true) {
                left.extend(sources[at].iter().map(|at| *at as usize));
            }
        }
        body
    }
}
