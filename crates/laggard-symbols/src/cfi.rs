//! One step of stack unwinding by call-frame information, with all registers.
//!
//! Three registers are not sufficient: functions that realign their stack locate their frame
//! through `r10` or an expression. Rules are cached per address, so that a step costs a hash table
//! lookup and a few reads.

use crate::{Elf, Memory, Registers};
use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EhFrameOffset, EndianSlice, EvaluationResult,
    Expression, FrameDescriptionEntry, LittleEndian, RegisterRule, UnwindContext, UnwindExpression,
    UnwindSection, Value,
};
use rustc_hash::FxHashMap;
use std::ops::Range;

type Reader<'a> = EndianSlice<'a, LittleEndian>;
type Fde<'a> = FrameDescriptionEntry<Reader<'a>>;

/// Bytes below the stack pointer that a function can use without moving it (red zone).
pub(crate) const RED_ZONE: u64 = 128;
/// Maximum number of operations of an expression. Real ones have a dozen.
const LONGEST_EXPRESSION: u32 = 1000;
/// Maximum number of cached addresses. The cache is cleared when it is full.
const MOST_KNOWN: usize = 1 << 21;
/// No rule exists for an address.
const NO_ROW: u32 = u32::MAX;

/// The cached call-frame rules of one file.
#[derive(Default)]
pub struct Rows {
    by_address: FxHashMap<u64, u32>,
    rows: Vec<Row>,
    numbers: FxHashMap<Row, u32>,
    context: UnwindContext<usize>,
    /// Offset of each function's rules, by address. Only for files without a usable
    /// `.eh_frame_hdr`.
    index: Option<Vec<(Range<u64>, usize)>>,
}

/// A successful step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The registers are now those of the caller.
    Caller {
        /// End of the frame: the caller's stack pointer before the call.
        cfa: u64,
        /// Whether this is a signal frame. The caller was then interrupted, and its pc is the next
        /// instruction instead of a return address.
        is_signal: bool,
    },
    /// The frame has no caller.
    Outermost {
        /// End of the frame.
        cfa: u64,
    },
}

/// Why a step failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    /// The file has no rules for the address.
    #[error("no unwind information for the address")]
    NoUnwindInfo,
    /// The rules refer to memory that was not copied.
    #[error("the stack word at {0:#x} was not copied")]
    Unreadable(u64),
    /// The rules lead down the stack or nowhere.
    #[error("the next frame is not above this one")]
    Stuck,
    /// The rules are invalid.
    #[error("invalid unwind information for the address")]
    BadUnwindInfo,
}

/// Rules that give the caller's registers at one address.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Row {
    cfa: Cfa,
    /// `None` if no rule gives its location.
    return_address: Option<Rule>,
    others: Box<[(u8, Rule)]>,
    is_signal: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Cfa {
    Register(u8, i64),
    Expression(Program),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Rule {
    Unknown,
    /// Saved at this offset from the CFA.
    Saved(i64),
    /// The CFA plus this offset.
    CfaAnd(i64),
    Register(u8),
    /// Saved at the address given by the expression.
    SavedAt(Program),
    /// The value of the expression.
    Is(Program),
    Constant(u64),
}

/// An expression, as a range of `.eh_frame`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Program {
    offset: usize,
    length: usize,
}

impl Rows {
    /// Steps from a frame of `elf` to its caller. `svma` is the address of the frame: its pc
    /// without the bias, or one less if the pc is a return address. `registers` change only on
    /// success. For outermost frames the pc becomes 0.
    pub fn step<M: Memory + ?Sized>(
        &mut self,
        elf: &Elf,
        svma: u64,
        registers: &mut Registers,
        memory: &M,
    ) -> Result<Step, Stop> {
        let number = match self.by_address.get(&svma) {
            Some(&number) => number,
            None => self.learn(elf, svma),
        };
        let row = self.rows.get(number as usize).ok_or(Stop::NoUnwindInfo)?;
        row.apply(elf, registers, memory)
    }

    #[cold]
    fn learn(&mut self, elf: &Elf, svma: u64) -> u32 {
        if self.by_address.len() >= MOST_KNOWN {
            self.by_address.clear();
        }
        let number = match self.row(elf, svma) {
            Some(row) => *self.numbers.entry(row).or_insert_with_key(|row| {
                self.rows.push(row.clone());
                self.rows.len() as u32 - 1
            }),
            None => NO_ROW,
        };
        self.by_address.insert(svma, number);
        number
    }

    fn row(&mut self, elf: &Elf, svma: u64) -> Option<Row> {
        if !elf.is_x86_64() {
            return None;
        }
        let (eh_frame, bases) = sections(elf)?;
        let fde = match find_by_header(elf, &eh_frame, &bases, svma) {
            Found::Fde(fde) => *fde,
            Found::Nothing => return None,
            Found::NoHeader => self.find_by_index(elf, &eh_frame, &bases, svma)?,
        };
        let row = fde.unwind_info_for_address(&eh_frame, &bases, &mut self.context, svma).ok()?;
        let return_register = fde.cie().return_address_register().0;
        let mut return_address = None;
        let mut others = vec![];
        for (register, rule) in row.registers() {
            if *rule == RegisterRule::SameValue {
                continue;
            } else if register.0 == return_register {
                return_address = Some(Rule::new(rule)?);
            } else if register.0 < 16 {
                others.push((register.0 as u8, Rule::new(rule)?));
            }
        }
        others.sort_unstable_by_key(|(register, _)| *register);
        Some(Row {
            cfa: match row.cfa() {
                CfaRule::RegisterAndOffset { register, offset } if register.0 <= 16 => {
                    Cfa::Register(register.0 as u8, *offset)
                }
                CfaRule::RegisterAndOffset { .. } => return None,
                CfaRule::Expression(expression) => Cfa::Expression(expression.into()),
            },
            return_address,
            others: others.into(),
            is_signal: fde.is_signal_trampoline(),
        })
    }

    fn find_by_index<'a>(
        &mut self,
        elf: &Elf,
        eh_frame: &EhFrame<Reader<'a>>,
        bases: &BaseAddresses,
        svma: u64,
    ) -> Option<Fde<'a>> {
        let index = self.index.get_or_insert_with(|| index(elf));
        let at = index.partition_point(|(range, _)| range.start <= svma).checked_sub(1)?;
        let (range, offset) = index.get(at).filter(|(range, _)| range.contains(&svma))?;
        let offset = EhFrameOffset(*offset);
        let fde = eh_frame.fde_from_offset(bases, offset, EhFrame::cie_from_offset).ok()?;
        (fde.initial_address() == range.start).then_some(fde)
    }
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (addresses, rows) = (self.by_address.len(), self.rows.len());
        f.debug_struct("Rows").field("addresses", &addresses).field("rows", &rows).finish()
    }
}

impl Elf {
    /// Address ranges of the functions with unwind information, by address. They have no names. For
    /// files without symbols.
    pub fn function_ranges(&self) -> Vec<Range<u64>> {
        index(self).into_iter().map(|(range, _)| range).collect()
    }
}

impl Row {
    fn apply<M: Memory + ?Sized>(
        &self,
        elf: &Elf,
        registers: &mut Registers,
        memory: &M,
    ) -> Result<Step, Stop> {
        let old = *registers;
        let cfa = match self.cfa {
            Cfa::Register(register, offset) => old.0[register as usize].wrapping_add_signed(offset),
            Cfa::Expression(program) => program.run(elf, &old, None, memory)?,
        };
        let pc = match self.return_address {
            None => return Err(Stop::BadUnwindInfo),
            Some(Rule::Unknown) => 0,
            Some(rule) => match rule.place(elf, &old, cfa, memory)? {
                Place::At(address) => memory.word(address).ok_or(Stop::Unreadable(address))?,
                Place::Value(value) => value,
            },
        };
        if pc == 0 {
            registers.0[Registers::PC] = 0;
            return Ok(Step::Outermost { cfa });
        }
        if cfa <= old.sp() && !self.is_signal {
            return Err(Stop::Stuck);
        }
        let mut new = old;
        new.0[Registers::RSP] = cfa;
        new.0[Registers::PC] = pc;
        let frame = old.sp().saturating_sub(RED_ZONE)..cfa;
        for (register, rule) in &self.others {
            let live = old.0[*register as usize];
            new.0[*register as usize] = match rule.place(elf, &old, cfa, memory)? {
                Place::Value(value) => value,
                // Compilers keep the rule of a register after the epilogue has restored it. Its
                // slot is then below the stack or, if it was relative to that register, anywhere.
                // If the slot is outside the frame, it is ignored and the register already has the
                // right value. A slot in the red zone, if copied, is right in this case and also
                // for a leaf function that saves registers there.
                Place::At(at) if !self.is_signal && !frame.contains(&at) => live,
                Place::At(at) => match memory.word(at) {
                    Some(word) => word,
                    None if at < old.sp() => live,
                    None => return Err(Stop::Unreadable(at)),
                },
            };
        }
        *registers = new;
        Ok(Step::Caller { cfa, is_signal: self.is_signal })
    }
}

/// Location of a register's previous value.
enum Place {
    At(u64),
    Value(u64),
}

impl Rule {
    fn new(rule: &RegisterRule<usize>) -> Option<Rule> {
        Some(match rule {
            RegisterRule::Undefined => Rule::Unknown,
            RegisterRule::Offset(offset) => Rule::Saved(*offset),
            RegisterRule::ValOffset(offset) => Rule::CfaAnd(*offset),
            RegisterRule::Register(register) if register.0 <= 16 => {
                Rule::Register(register.0 as u8)
            }
            RegisterRule::Expression(expression) => Rule::SavedAt(expression.into()),
            RegisterRule::ValExpression(expression) => Rule::Is(expression.into()),
            RegisterRule::Constant(value) => Rule::Constant(*value),
            _ => return None,
        })
    }

    #[inline]
    fn place<M: Memory + ?Sized>(
        self,
        elf: &Elf,
        registers: &Registers,
        cfa: u64,
        memory: &M,
    ) -> Result<Place, Stop> {
        Ok(match self {
            Rule::Unknown => Place::Value(0),
            Rule::Saved(offset) => Place::At(cfa.wrapping_add_signed(offset)),
            Rule::CfaAnd(offset) => Place::Value(cfa.wrapping_add_signed(offset)),
            Rule::Register(register) => Place::Value(registers.0[register as usize]),
            Rule::SavedAt(program) => Place::At(program.run(elf, registers, Some(cfa), memory)?),
            Rule::Is(program) => Place::Value(program.run(elf, registers, Some(cfa), memory)?),
            Rule::Constant(value) => Place::Value(value),
        })
    }
}

impl From<&UnwindExpression<usize>> for Program {
    fn from(expression: &UnwindExpression<usize>) -> Program {
        Program { offset: expression.offset, length: expression.length }
    }
}

impl Program {
    #[cold]
    fn run<M: Memory + ?Sized>(
        self,
        elf: &Elf,
        registers: &Registers,
        cfa: Option<u64>,
        memory: &M,
    ) -> Result<u64, Stop> {
        const ENCODING: gimli::Encoding =
            gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 4 };
        let bad = |_| Stop::BadUnwindInfo;
        let (_, eh_frame) = elf.eh_frame().ok_or(Stop::BadUnwindInfo)?;
        let end = self.offset.checked_add(self.length).ok_or(Stop::BadUnwindInfo)?;
        let code = eh_frame.get(self.offset..end).ok_or(Stop::BadUnwindInfo)?;
        let mut evaluation = Expression(EndianSlice::new(code, LittleEndian)).evaluation(ENCODING);
        evaluation.set_max_iterations(LONGEST_EXPRESSION);
        if let Some(cfa) = cfa {
            evaluation.set_initial_value(cfa);
        }
        let mut state = evaluation.evaluate().map_err(bad)?;
        loop {
            state = match state {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = registers.0.get(usize::from(register.0));
                    let value = Value::Generic(*value.ok_or(Stop::BadUnwindInfo)?);
                    evaluation.resume_with_register(value).map_err(bad)?
                }
                EvaluationResult::RequiresMemory { address, size, .. } => {
                    let value = memory.read(address, usize::from(size));
                    let value = Value::Generic(value.ok_or(Stop::Unreadable(address))?);
                    evaluation.resume_with_memory(value).map_err(bad)?
                }
                EvaluationResult::RequiresCallFrameCfa => {
                    let cfa = cfa.ok_or(Stop::BadUnwindInfo)?;
                    evaluation.resume_with_call_frame_cfa(cfa).map_err(bad)?
                }
                _ => return Err(Stop::BadUnwindInfo),
            };
        }
        match evaluation.result().first().map(|piece| &piece.location) {
            Some(gimli::Location::Address { address }) => Ok(*address),
            Some(gimli::Location::Value { value }) => value.to_u64(u64::MAX).map_err(bad),
            _ => Err(Stop::BadUnwindInfo),
        }
    }
}

fn sections(elf: &Elf) -> Option<(EhFrame<Reader<'_>>, BaseAddresses)> {
    let (svma, bytes) = elf.eh_frame()?;
    let mut bases = BaseAddresses::default().set_eh_frame(svma);
    if let Some((svma, _)) = elf.eh_frame_hdr() {
        bases = bases.set_eh_frame_hdr(svma);
    }
    if let Some(text) = elf.section(".text") {
        bases = bases.set_text(text.svma);
    }
    if let Some(got) = elf.section(".got") {
        bases = bases.set_got(got.svma);
    }
    Some((EhFrame::new(bytes, LittleEndian), bases))
}

enum Found<'a> {
    Fde(Box<Fde<'a>>),
    Nothing,
    NoHeader,
}

fn find_by_header<'a>(
    elf: &'a Elf,
    eh_frame: &EhFrame<Reader<'a>>,
    bases: &BaseAddresses,
    svma: u64,
) -> Found<'a> {
    let header = elf.eh_frame_hdr().map(|(_, bytes)| EhFrameHdr::new(bytes, LittleEndian));
    let Some(header) = header.and_then(|header| header.parse(bases, 8).ok()) else {
        return Found::NoHeader;
    };
    let Some(pointer) = header.table().and_then(|table| table.lookup(svma, bases).ok()) else {
        return Found::NoHeader;
    };
    let start = elf.eh_frame().map_or(0, |(svma, _)| svma);
    let fde = pointer.direct().ok().and_then(|address| {
        let offset = EhFrameOffset(usize::try_from(address.checked_sub(start)?).ok()?);
        eh_frame.fde_from_offset(bases, offset, EhFrame::cie_from_offset).ok()
    });
    match fde {
        Some(fde) if fde.contains(svma) => Found::Fde(Box::new(fde)),
        Some(_) => Found::Nothing,
        None => Found::NoHeader,
    }
}

/// All functions of `.eh_frame`, by address, with the offset of their rules.
fn index(elf: &Elf) -> Vec<(Range<u64>, usize)> {
    let Some((eh_frame, bases)) = sections(elf) else { return vec![] };
    let mut index = vec![];
    let mut entries = eh_frame.entries(&bases);
    let mut cies = FxHashMap::default();
    while let Ok(Some(entry)) = entries.next() {
        let gimli::CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(|section, bases, offset| {
            if let Some(cie) = cies.get(&offset.0) {
                return Ok(Clone::clone(cie));
            }
            let cie = section.cie_from_offset(bases, offset)?;
            cies.insert(offset.0, cie.clone());
            Ok(cie)
        });
        let Ok(fde) = fde else { continue };
        // Functions removed by the linker have address 0.
        if fde.initial_address() > 0 && fde.len() > 0 {
            index.push((fde.initial_address()..fde.end_address(), fde.offset()));
        }
    }
    index.sort_unstable_by_key(|(range, _)| range.start);
    index
}
