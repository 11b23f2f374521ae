//! The functions of a file and their instructions.

use super::class::Classifier;
use crate::{Elf, demangle, plt};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use laggard_core::model::code::{FramePointers, Function, Mix};
use laggard_core::model::profile::Texts;

/// Functions can overlap in unusual files. At most this many times the code size is disassembled.
const MOST_OVERLAP: u64 = 4;
/// Maximum number of instructions before a frame pointer is set up.
const LONGEST_PROLOGUE: usize = 16;

/// All functions of a file, and the number of bytes that were not disassembled.
pub(super) struct Found {
    pub(super) functions: Vec<Function>,
    pub(super) frame_pointers: Option<FramePointers>,
    pub(super) skipped_bytes: u64,
}

/// Finds functions by symbols and, where symbols are missing, by unwind tables.
pub(super) fn find(elf: &Elf, texts: &mut Texts) -> Found {
    let mut functions = named(elf, texts);
    add_nameless(elf, &mut functions);
    let mut found = Found { functions, frame_pointers: None, skipped_bytes: 0 };
    if elf.is_x86_64() {
        count(elf, texts, &mut found);
    }
    found
}

/// A decoder for the instructions of a function, and its bytes.
pub(super) fn decode(elf: &Elf, address: u64, size: u64) -> Option<(Decoder<'_>, &[u8])> {
    let bytes = elf.bytes_at(address, usize::try_from(size).ok()?)?;
    Some((Decoder::with_ip(64, bytes, address, DecoderOptions::NONE), bytes))
}

fn named(elf: &Elf, texts: &mut Texts) -> Vec<Function> {
    let function = |symbol: crate::Symbol<'_>| Function {
        address: symbol.start,
        size: symbol.size,
        name: texts.add(&demangle(&symbol.name)),
        is_stub: symbol.name.ends_with("@plt"),
        ..Function::default()
    };
    elf.functions().map(function).collect()
}

fn add_nameless(elf: &Elf, functions: &mut Vec<Function>) {
    let mut reach = 0;
    let mut ends: Vec<(u64, u64)> = Vec::with_capacity(functions.len());
    for function in functions.iter() {
        reach = reach.max(function.address.saturating_add(function.size));
        ends.push((function.address, reach));
    }
    for range in elf.function_ranges() {
        let before = ends.partition_point(|(start, _)| *start <= range.start);
        let is_known = before.checked_sub(1).is_some_and(|at| range.start < ends[at].1);
        if is_known || plt::holds(elf, range.start) || elf.code_around(range.start).is_none() {
            continue;
        }
        functions.push(Function {
            address: range.start,
            size: range.end - range.start,
            ..Function::default()
        });
    }
    functions.sort_by_key(|function| function.address);
    functions.dedup_by_key(|function| function.address);
}

fn count(elf: &Elf, texts: &Texts, found: &mut Found) {
    let code: u64 = elf.executable_segments().map(|segment| segment.file_size).sum();
    let mut budget = code.min(elf.bytes().len() as u64).saturating_mul(MOST_OVERLAP);
    let mut classifier = Classifier::new();
    let mut instruction = Instruction::default();
    let mut pointers = FramePointers::default();
    for function in &mut found.functions {
        let Some((mut decoder, bytes)) = decode(elf, function.address, function.size) else {
            continue;
        };
        let size = bytes.len() as u64;
        if size > budget {
            found.skipped_bytes = found.skipped_bytes.saturating_add(size);
            continue;
        }
        budget -= size;
        let mut prologue = Prologue::default();
        let mut calls = false;
        let mut mix = Mix::default();
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            let (class, marks) = classifier.classify(&instruction);
            mix.count(class, marks, 1);
            prologue.see(&instruction);
            calls |=
                matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
        }
        function.mix = mix;
        function.frame_pointer = prologue.is_set_up;
        if !function.is_stub && !is_cold_part(texts.get(function.name)) {
            pointers.of += 1;
            pointers.with += u64::from(prologue.is_set_up);
            pointers.callers += u64::from(calls);
            pointers.callers_with += u64::from(calls && prologue.is_set_up);
        }
    }
    found.frame_pointers = Some(pointers);
}

/// Parts that a compiler splits off a function have no prologue.
fn is_cold_part(name: &str) -> bool {
    name.ends_with(".cold") || name.ends_with(".cold]")
}

/// Detects `push rbp` followed by `mov rbp, rsp` at the start of a function, or by `lea` if other
/// registers were pushed in between. The result must point to the saved `rbp`; otherwise `rbp` is
/// used as a general register.
#[derive(Default)]
struct Prologue {
    seen: usize,
    /// Bytes pushed since `rbp` was saved.
    above: Option<u64>,
    is_set_up: bool,
    is_over: bool,
}

impl Prologue {
    fn see(&mut self, instruction: &Instruction) {
        if self.is_over {
            return;
        }
        self.seen += 1;
        let is_register = instruction.op_count() > 0 && instruction.op0_kind() == OpKind::Register;
        let first = if is_register { instruction.op0_register() } else { Register::None };
        match (instruction.mnemonic(), first) {
            (Mnemonic::Push, Register::RBP) => self.above = Some(0),
            (Mnemonic::Push, _) => self.above = self.above.map(|bytes| bytes + 8),
            (Mnemonic::Sub, Register::RSP) => {
                let size = instruction.try_immediate(1).ok();
                self.above = self.above.zip(size).and_then(|(a, b)| a.checked_add(b));
            }
            (Mnemonic::Mov, Register::RBP) => {
                let from_stack = instruction.op1_kind() == OpKind::Register
                    && instruction.op1_register() == Register::RSP;
                self.is_set_up = self.above == Some(0) && from_stack;
                self.is_over = true;
            }
            (Mnemonic::Lea, Register::RBP) => {
                self.is_set_up = instruction.memory_base() == Register::RSP
                    && instruction.memory_index() == Register::None
                    && self.above == Some(instruction.memory_displacement64());
                self.is_over = true;
            }
            _ => {}
        }
        let ends = !matches!(
            instruction.flow_control(),
            FlowControl::Next | FlowControl::ConditionalBranch
        );
        self.is_over |= ends || self.seen == LONGEST_PROLOGUE;
    }
}
