//! Classifies instructions.
//!
//! The width of a vector instruction is that of its widest explicit operand. Implicit writes are
//! not considered, because every AVX instruction clears its register up to 512 bits.

use iced_x86::{
    Code, CpuidFeature, EncodingKind, FlowControl, Instruction, InstructionInfoFactory,
    InstructionInfoOptions, Mnemonic, OpAccess, OpKind, Register,
};
use laggard_core::model::code::{Class, Mark, Marks};
use std::sync::LazyLock;

/// Classifies instructions one by one.
pub(super) struct Classifier {
    info: InstructionInfoFactory,
    names: &'static [Named],
}

impl Classifier {
    pub(super) fn new() -> Classifier {
        Classifier { info: InstructionInfoFactory::new(), names: &NAMES }
    }

    /// The class and marks of an instruction.
    pub(super) fn classify(&mut self, instruction: &Instruction) -> (Class, Marks) {
        if instruction.is_invalid() {
            return (Class::Bad, Marks::default());
        }
        let widest = Widest::of(instruction);
        let named = self.names[instruction.mnemonic() as usize];
        let marks = self.memory_marks(instruction, named.marks_with(widest));
        (class(instruction, widest, named), marks)
    }

    fn memory_marks(&mut self, instruction: &Instruction, mut marks: Marks) -> Marks {
        const OPERANDS_ONLY: u32 =
            InstructionInfoOptions::NO_REGISTER_USAGE | InstructionInfoOptions::NO_MEMORY_USAGE;
        let is_memory = |kind: OpKind| (OpKind::MemorySegSI..=OpKind::Memory).contains(&kind);
        if !instruction.op_kinds().any(is_memory) {
            return marks;
        }
        let info = self.info.info_options(instruction, OPERANDS_ONLY);
        for operand in 0..instruction.op_count() {
            if !is_memory(instruction.op_kind(operand)) {
                continue;
            }
            let (reads, writes) = match info.op_access(operand) {
                OpAccess::Read | OpAccess::CondRead => (true, false),
                OpAccess::Write | OpAccess::CondWrite => (false, true),
                OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
                _ => (false, false),
            };
            if reads {
                marks = marks.and(Mark::Load);
            }
            if writes {
                marks = marks.and(Mark::Store);
            }
            if (reads || writes) && is_local(instruction) {
                marks = marks.and(Mark::Local);
            }
        }
        marks
    }
}

/// Whether the memory operand is relative to the stack pointer, or below the frame pointer. RBP is also
/// a general register, so other accesses through it are not counted.
fn is_local(instruction: &Instruction) -> bool {
    match instruction.memory_base() {
        Register::RSP => true,
        Register::RBP => (instruction.memory_displacement64() as i64) < 0,
        _ => false,
    }
}

/// The widest register operand of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Widest {
    General,
    Mmx,
    Mask,
    Xmm,
    Ymm,
    Zmm,
    Tile,
}

impl Widest {
    fn of(instruction: &Instruction) -> Widest {
        let width = |operand: u32| match instruction.op_kind(operand) {
            OpKind::Register => match instruction.op_register(operand) {
                register if register.is_zmm() => Widest::Zmm,
                register if register.is_ymm() => Widest::Ymm,
                register if register.is_xmm() => Widest::Xmm,
                register if register.is_k() => Widest::Mask,
                register if register.is_mm() => Widest::Mmx,
                register if register.is_tmm() => Widest::Tile,
                _ => Widest::General,
            },
            _ => Widest::General,
        };
        let widest = (0..instruction.op_count()).map(width).max().unwrap_or(Widest::General);
        // The number of elements of a gather is that of its index register.
        match instruction.memory_index() {
            Register::None => widest,
            index if index.is_zmm() => widest.max(Widest::Zmm),
            index if index.is_ymm() => widest.max(Widest::Ymm),
            _ => widest,
        }
    }
}

fn class(instruction: &Instruction, widest: Widest, named: Named) -> Class {
    match instruction.flow_control() {
        FlowControl::Next => {}
        FlowControl::UnconditionalBranch
        | FlowControl::IndirectBranch
        | FlowControl::ConditionalBranch => return Class::Branch,
        FlowControl::Call if instruction.mnemonic() != Mnemonic::Call => return Class::Other,
        FlowControl::Call | FlowControl::IndirectCall | FlowControl::Return => return Class::Call,
        _ => return Class::Other,
    }
    if named.has(NOP) {
        return Class::Nop;
    }
    if named.has(PREFETCH) {
        return Class::Prefetch;
    }
    let is_scalar = named.has(SCALAR);
    match (widest, instruction.encoding()) {
        (Widest::Xmm, _) if is_scalar => Class::Float,
        (Widest::Zmm, _) => Class::Avx512,
        (Widest::Ymm | Widest::Xmm, EncodingKind::EVEX) | (Widest::Mask, _) => Class::Evex,
        (Widest::Ymm, _) => Class::Avx256,
        (Widest::Xmm, EncodingKind::Legacy | EncodingKind::D3NOW) => Class::Sse,
        (Widest::Xmm, _) => Class::Avx128,
        (Widest::Mmx, _) => Class::X87,
        (Widest::Tile, _) => Class::Other,
        (Widest::General, _) => without_vectors(instruction.code()),
    }
}

fn without_vectors(code: Code) -> Class {
    let has = |wanted: &[CpuidFeature]| code.cpuid_features().iter().any(|f| wanted.contains(f));
    match code.mnemonic() {
        Mnemonic::Vzeroupper | Mnemonic::Vzeroall => Class::Other,
        Mnemonic::Cpuid | Mnemonic::Rdtsc | Mnemonic::Rdtscp | Mnemonic::Xgetbv => Class::Other,
        _ if code.is_privileged() => Class::Other,
        _ if has(&[CpuidFeature::FPU, CpuidFeature::FPU287, CpuidFeature::FPU387]) => Class::X87,
        _ if has(&[CpuidFeature::MMX]) => Class::X87,
        _ => Class::Integer,
    }
}

/// Operates on one element.
const SCALAR: u8 = 1 << 7;
/// Bits of [`Named::kind`].
const PREFETCH: u8 = 1;
const NOP: u8 = 1 << 1;

/// Properties derived from the name of an instruction.
#[derive(Clone, Copy, Default)]
struct Named {
    kind: u8,
    marks: Marks,
}

impl Named {
    fn has(self, bit: u8) -> bool {
        self.kind & bit != 0
    }

    /// `movsd` and `cmpsd` are also string instructions. An instruction without a vector register
    /// is not a vector instruction.
    fn marks_with(self, widest: Widest) -> Marks {
        let is_vector = widest >= Widest::Xmm;
        let kept = self.marks.iter().filter(|mark| {
            is_vector || !matches!(mark, Mark::ScalarMath | Mark::PackedMath | Mark::Fma)
        });
        kept.fold(Marks::default(), Marks::and)
    }
}

/// By mnemonic number.
static NAMES: LazyLock<Vec<Named>> = LazyLock::new(|| {
    let named = |mnemonic: Mnemonic| named(&format!("{mnemonic:?}").to_ascii_lowercase());
    Mnemonic::values().map(named).collect()
});

fn named(name: &str) -> Named {
    let mut named = Named::default();
    let plain = name.strip_prefix('v').filter(|_| name != "verr" && name != "verw");
    let plain = plain.unwrap_or(name);
    let mut mark = |mark: Mark| named.marks = named.marks.and(mark);
    if ["fmadd", "fmsub", "fnmadd", "fnmsub"].iter().any(|stem| plain.starts_with(stem)) {
        mark(Mark::Fma);
    }
    if ["div", "idiv", "fdiv", "fidiv", "sqrt", "fsqrt"].iter().any(|stem| plain.starts_with(stem))
    {
        mark(Mark::Divide);
    }
    if ["gather", "pgather", "scatter", "pscatter"].iter().any(|stem| plain.starts_with(stem)) {
        mark(Mark::Gather);
    }
    match elements(plain) {
        Some((stem, true)) => {
            named.kind |= SCALAR;
            if stem != "mov" {
                named.marks = named.marks.and(Mark::ScalarMath);
            }
        }
        Some((stem, false)) if stem != "mov" => named.marks = named.marks.and(Mark::PackedMath),
        _ => {}
    }
    if matches!(plain, "movd" | "movq" | "movw") {
        named.kind |= SCALAR;
    }
    if plain.starts_with("prefetch") || plain.contains("gatherpf") || plain.contains("scatterpf") {
        named = Named { kind: PREFETCH, ..Named::default() };
    }
    if matches!(plain, "nop" | "fnop" | "endbr64" | "endbr32" | "reservednop") {
        named.kind |= NOP;
    }
    named
}

/// Prefixes of floating-point arithmetic.
const ARITHMETIC: &[&str] = &[
    "add", "addsub", "sub", "mul", "div", "min", "max", "sqrt", "rcp", "rsqrt", "hadd", "hsub",
    "dp", "cmp", "comi", "ucomi", "comx", "ucomx", "round", "rndscale", "reduce", "range",
    "scalef", "getexp", "getmant", "fixupimm", "fmadd", "fmsub", "fnmadd", "fnmsub",
];

/// The stem of a floating-point instruction, and whether it is scalar.
fn elements(plain: &str) -> Option<(&str, bool)> {
    let scalar = |kind: &str| ["ss", "sd", "sh"].contains(&kind);
    if let Some(conversion) = plain.strip_prefix("cvt") {
        let (from, to) = conversion.rsplit_once('2')?;
        let from = from.trim_start_matches('t');
        return (scalar(from) || scalar(to)).then_some(("mov", true));
    }
    let (stem, kind) = plain.split_at_checked(plain.len().checked_sub(2)?)?;
    let packed = ["ps", "pd", "ph"].contains(&kind);
    if !packed && !scalar(kind) {
        return None;
    }
    // Suffixes for operand order and precision are not part of the stem.
    let short = stem.trim_end_matches(|c: char| c.is_ascii_digit());
    let short = match short {
        "fmaddsub" => "fmadd",
        "fmsubadd" => "fmsub",
        short => short,
    };
    let is_arithmetic = ARITHMETIC.contains(&short);
    let is_move = !packed && stem == "mov";
    (is_arithmetic || is_move).then_some((short, !packed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn check(bytes: &[u8], class: Class, marks: &[Mark]) {
        let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
        let (found, with) = Classifier::new().classify(&instruction);
        let with: Vec<Mark> = with.iter().collect();
        assert_eq!((found, &*with), (class, marks), "{:?}", instruction.code());
    }

    #[test]
    fn width_is_that_of_widest_explicit_operand() {
        // vaddps ymm0, ymm1, ymm2 clears the upper half of zmm0, but is 256 bits wide.
        check(&[0xc5, 0xf4, 0x58, 0xc2], Class::Avx256, &[Mark::PackedMath]);
        // vaddps xmm0, xmm1, xmm2
        check(&[0xc5, 0xf0, 0x58, 0xc2], Class::Avx128, &[Mark::PackedMath]);
        // addps xmm0, xmm1
        check(&[0x0f, 0x58, 0xc1], Class::Sse, &[Mark::PackedMath]);
        // addsd xmm0, [rax]
        check(&[0xf2, 0x0f, 0x58, 0x00], Class::Float, &[Mark::Load, Mark::ScalarMath]);
        // vfmadd231ps zmm0, zmm1, [rdi]
        check(
            &[0x62, 0xf2, 0x75, 0x48, 0xb8, 0x07],
            Class::Avx512,
            &[Mark::Load, Mark::Fma, Mark::PackedMath],
        );
        // vaddps ymm16, ymm1, ymm2 uses the AVX-512 encoding.
        check(&[0x62, 0xe1, 0x74, 0x28, 0x58, 0xc2], Class::Evex, &[Mark::PackedMath]);
        // kmovw k1, eax
        check(&[0xc5, 0xf8, 0x92, 0xc8], Class::Evex, &[]);
        // vgatherdps ymm0, [rax + ymm1*4], ymm2
        check(&[0xc4, 0xe2, 0x6d, 0x92, 0x04, 0x88], Class::Avx256, &[Mark::Load, Mark::Gather]);
    }

    #[test]
    fn classifies_other_instructions() {
        // movsd (the string instruction) shares its name with a vector move.
        check(&[0xa5], Class::Integer, &[Mark::Load, Mark::Store]);
        // pabsd xmm0, xmm1 has the suffix of a scalar instruction.
        check(&[0x66, 0x0f, 0x38, 0x1e, 0xc1], Class::Sse, &[]);
        // add [rax], ecx
        check(&[0x01, 0x08], Class::Integer, &[Mark::Load, Mark::Store]);
        // mov [rsp+8], eax; mov eax, [rbp-4]; mov eax, [rbp+4]; lea rax, [rsp+8]
        check(&[0x89, 0x44, 0x24, 0x08], Class::Integer, &[Mark::Store, Mark::Local]);
        check(&[0x8b, 0x45, 0xfc], Class::Integer, &[Mark::Load, Mark::Local]);
        check(&[0x8b, 0x45, 0x04], Class::Integer, &[Mark::Load]);
        check(&[0x48, 0x8d, 0x44, 0x24, 0x08], Class::Integer, &[]);
        // lea reads nothing; mov stores.
        check(&[0x48, 0x8d, 0x04, 0x8f], Class::Integer, &[]);
        check(&[0x89, 0x07], Class::Integer, &[Mark::Store]);
        // idiv rcx; divsd xmm0, xmm1; fsqrt
        check(&[0x48, 0xf7, 0xf9], Class::Integer, &[Mark::Divide]);
        check(&[0xf2, 0x0f, 0x5e, 0xc1], Class::Float, &[Mark::Divide, Mark::ScalarMath]);
        check(&[0xd9, 0xfa], Class::X87, &[Mark::Divide]);
        // jne, jmp rax, call, ret
        check(&[0x75, 0x00], Class::Branch, &[]);
        check(&[0xff, 0xe0], Class::Branch, &[]);
        check(&[0xe8, 0, 0, 0, 0], Class::Call, &[]);
        check(&[0xc3], Class::Call, &[]);
        // prefetcht0 [rax]; nop word [rax+rax]; endbr64; vzeroupper; syscall; ud2; int3
        check(&[0x0f, 0x18, 0x08], Class::Prefetch, &[]);
        check(&[0x66, 0x0f, 0x1f, 0x44, 0, 0], Class::Nop, &[]);
        check(&[0xf3, 0x0f, 0x1e, 0xfa], Class::Nop, &[]);
        check(&[0xc5, 0xf8, 0x77], Class::Other, &[]);
        check(&[0x0f, 0x05], Class::Other, &[]);
        check(&[0x0f, 0x0b], Class::Other, &[]);
        check(&[0xcc], Class::Other, &[]);
        // cvtsi2sd xmm0, rax and movq are scalar; cvttps2dq is packed.
        check(&[0xf2, 0x48, 0x0f, 0x2a, 0xc0], Class::Float, &[]);
        check(&[0x66, 0x48, 0x0f, 0x6e, 0xc0], Class::Float, &[]);
        check(&[0xf3, 0x0f, 0x5b, 0xc1], Class::Sse, &[]);
        // Not an instruction in 64-bit mode.
        check(&[0x06], Class::Bad, &[]);
    }
}
