//! Unwinds a copied stack into frames.

use crate::cfi::RED_ZONE;
use crate::prologue::Prologue;
use crate::{
    AddressSpace, Memory, ModuleIndex, Modules, Place, Registers, Rows, StackCopy, Step, Stop,
};

/// Maximum number of frames.
pub const MAX_DEPTH: usize = 2000;

/// Maximum size of a prologue in bytes.
const LONGEST_PROLOGUE: u64 = 128;

/// The code of `rt_sigreturn`, to which a signal handler returns: `mov $15, %rax; syscall`.
const SIGNAL_RETURN: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];

/// A native frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeFrame {
    /// The module; `None` in anonymous or unmapped memory.
    pub module: Option<ModuleIndex>,
    /// Address in the tables of the module, for symbolization: of the interrupted instruction, or
    /// within the call instruction.
    pub svma: u64,
    /// Address in the process where execution continues.
    pub pc: u64,
    /// The stack pointer. The data of this frame is at `sp <= address < cfa`.
    pub sp: u64,
    /// The end of the frame; `u64::MAX` if unknown.
    pub cfa: u64,
    /// Whether it was found by heuristics instead of unwind information.
    pub is_guess: bool,
}

/// How a stack ended. All but `Complete` contain the module of the last frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// At the outermost frame of the thread.
    Complete,
    /// The stack copy is incomplete: it is too short or lacks the red zone.
    Truncated(Option<ModuleIndex>),
    /// The last frame has no unwind information.
    NoUnwindInfo(Option<ModuleIndex>),
    /// The last frame has invalid unwind information.
    BadUnwindInfo(Option<ModuleIndex>),
    /// The address of the next frame is outside known code. It is not included in the frames,
    /// unless it is the only one.
    Unmapped {
        /// Module of the last frame.
        module: Option<ModuleIndex>,
        /// The address.
        pc: u64,
    },
    /// The next frame is not above the last one.
    Stuck(Option<ModuleIndex>),
    /// There are more than [`MAX_DEPTH`] frames.
    TooDeep(Option<ModuleIndex>),
}

impl Ending {
    /// Module of the last frame, if frames are missing.
    pub fn module(&self) -> Option<ModuleIndex> {
        match *self {
            Ending::Complete => None,
            Ending::Truncated(module)
            | Ending::NoUnwindInfo(module)
            | Ending::BadUnwindInfo(module)
            | Ending::Unmapped { module, .. }
            | Ending::Stuck(module)
            | Ending::TooDeep(module) => module,
        }
    }

    /// The reason, for people.
    pub fn reason(&self) -> &'static str {
        match self {
            Ending::Complete => "complete",
            Ending::Truncated(_) => "stack copy too short",
            Ending::NoUnwindInfo(_) => "no unwind information",
            Ending::BadUnwindInfo(_) => "invalid unwind information",
            Ending::Unmapped { .. } => "address outside known code",
            Ending::Stuck(_) => "next frame not above the last one",
            Ending::TooDeep(_) => "too many frames",
        }
    }
}

/// Unwinds stacks and caches unwind rules of files. Each thread needs its own.
#[derive(Default)]
pub struct Unwinder {
    /// By module number.
    rows: Vec<Rows>,
}

impl Unwinder {
    /// Finds the frames of a stopped thread, innermost first. `frames` is cleared first.
    ///
    /// The copy should start 128 bytes below the stack pointer: OpenSSL's assembly stores its
    /// caller's stack pointer only there and cannot be unwound otherwise.
    ///
    /// On [`Ending::Unmapped`], call [`AddressSpace::refresh`] and try again.
    pub fn unwind(
        &mut self,
        registers: &Registers,
        stack: StackCopy<'_>,
        space: &AddressSpace,
        modules: &Modules,
        frames: &mut Vec<NativeFrame>,
    ) -> Ending {
        if self.rows.len() < modules.len() {
            self.rows.resize_with(modules.len(), Rows::default);
        }
        frames.clear();
        let mut registers = *registers;
        // A return address can already belong to the next function, so the address of the call is
        // used. For an interrupted instruction, its own address is used.
        let mut is_exact = true;
        let mut is_guess = false;
        loop {
            let (pc, sp) = (registers.pc(), registers.sp());
            let place = space.find(if is_exact { pc } else { pc.wrapping_sub(1) });
            if place.is_none() && !frames.is_empty() {
                return Ending::Unmapped { module: last_module(frames), pc };
            }
            if frames.len() == MAX_DEPTH {
                return Ending::TooDeep(last_module(frames));
            }
            let Place { module, svma } = place.unwrap_or(Place { module: None, svma: pc });
            let mut frame = NativeFrame { module, svma, pc, sp, cfa: u64::MAX, is_guess };

            let step = module
                .and_then(|number| {
                    Some((modules.get(number)?, self.rows.get_mut(number.0 as usize)?))
                })
                .and_then(|(module, rows)| Some((module.elf.as_ref()?, rows)));
            let step = match step {
                Some((elf, rows)) => rows.step(elf, svma, &mut registers, &stack),
                None => Err(Stop::NoUnwindInfo),
            };
            is_guess = false;
            let ending = match step {
                Ok(Step::Caller { cfa, is_signal }) => {
                    frame.cfa = cfa;
                    if is_signal && !is_exact {
                        // The trampoline was not called, so its address is exact.
                        frame.svma = svma.wrapping_add(1);
                    }
                    is_exact = is_signal;
                    None
                }
                Ok(Step::Outermost { cfa }) => {
                    frame.cfa = cfa;
                    Some(Ending::Complete)
                }
                Err(Stop::NoUnwindInfo) => {
                    let guess = Guess { stack, space, modules, place, is_exact };
                    match guess.step(&mut registers) {
                        Guessed::Caller => {
                            frame.cfa = registers.sp();
                            is_exact = false;
                            is_guess = true;
                            None
                        }
                        Guessed::Interrupted => {
                            frame.cfa = registers.sp();
                            frame.svma = svma.wrapping_add(u64::from(!is_exact));
                            is_exact = true;
                            None
                        }
                        Guessed::Outermost => Some(Ending::Complete),
                        Guessed::Nothing if place.is_none() => {
                            Some(Ending::Unmapped { module, pc })
                        }
                        Guessed::Nothing => Some(Ending::NoUnwindInfo(module)),
                    }
                }
                Err(Stop::Unreadable(address)) if address >= sp.saturating_sub(RED_ZONE) => {
                    Some(Ending::Truncated(module))
                }
                Err(Stop::Unreadable(_) | Stop::Stuck) => Some(Ending::Stuck(module)),
                Err(Stop::BadUnwindInfo) => Some(Ending::BadUnwindInfo(module)),
            };
            frames.push(frame);
            if let Some(ending) = ending {
                return ending;
            }
        }
    }
}

fn last_module(frames: &[NativeFrame]) -> Option<ModuleIndex> {
    frames.last().and_then(|frame| frame.module)
}

/// A step from a frame without unwind information.
struct Guess<'a> {
    stack: StackCopy<'a>,
    space: &'a AddressSpace,
    modules: &'a Modules,
    place: Option<Place>,
    is_exact: bool,
}

enum Guessed {
    Caller,
    Interrupted,
    Outermost,
    Nothing,
}

impl Guess<'_> {
    fn step(&self, registers: &mut Registers) -> Guessed {
        let (sp, bp) = (registers.sp(), registers.bp());
        if self.is_signal_return() {
            return match self.leave_signal(registers) {
                Some(()) => Guessed::Interrupted,
                None => Guessed::Nothing,
            };
        }
        if let Some(caller) = self.by_prologue(registers) {
            *registers = caller;
            return Guessed::Caller;
        }
        let saved = (bp >= sp && bp % 8 == 0).then(|| self.stack.word(bp)).flatten();
        let by_frame_pointer = || {
            let pc = self.return_address(bp.wrapping_add(8))?;
            Some((pc, bp.wrapping_add(16), saved?))
        };
        let at = |offset: u64| {
            let pc = self.return_address(sp.wrapping_add(offset))?;
            Some((pc, sp.wrapping_add(offset + 8), bp))
        };
        let caller = match self.is_exact {
            // A PLT stub, a function in assembly, or a function before its prologue.
            true => at(0).or_else(by_frame_pointer),
            false if bp == sp => by_frame_pointer(),
            // The smallest frame that keeps the stack aligned is one word. `_init` and the
            // trampolines of CPython's perf support have such a frame.
            false => at(8).or_else(by_frame_pointer),
        };
        if let Some((pc, sp, bp)) = caller {
            registers.0[Registers::PC] = pc;
            registers.0[Registers::RSP] = sp;
            registers.0[Registers::RBP] = bp;
            return Guessed::Caller;
        }
        // By the ABI, code without a caller clears the frame pointer. `clone` relies on it.
        let is_in_module = self.place.is_some_and(|place| place.module.is_some());
        match bp == 0 && !self.is_exact && is_in_module {
            true => Guessed::Outermost,
            false => Guessed::Nothing,
        }
    }

    /// Finds the caller by the prologue of the function.
    fn by_prologue(&self, registers: &Registers) -> Option<Registers> {
        let place = self.place?;
        let elf = self.modules.get(place.module?)?.elf.as_ref()?;
        let start = elf.symbol(place.svma)?.start;
        let length = place.svma.checked_sub(start)?.min(LONGEST_PROLOGUE);
        let prologue = Prologue::read(elf.bytes_at(start, length as usize)?)?;
        let mut caller = prologue.caller(registers, |address| self.stack.word(address))?;
        caller.0[Registers::PC] = self.return_address(caller.sp().checked_sub(8)?)?;
        (caller.sp() > registers.sp()).then_some(caller)
    }

    /// The word at an address, if it can be a return address: it points to code, and after a call
    /// instruction if the code is readable.
    fn return_address(&self, address: u64) -> Option<u64> {
        let pc = self.stack.word(address)?;
        let place = self.space.find(pc.checked_sub(1)?)?;
        let module = place.module.and_then(|module| self.modules.get(module));
        let Some(elf) = module.and_then(|module| module.elf.as_ref()) else { return Some(pc) };
        let before = elf.bytes_at(place.svma.checked_sub(6)?, 7)?;
        is_after_call(before).then_some(pc)
    }

    /// Whether a signal handler returns to this frame, in a library without unwind information for
    /// it.
    fn is_signal_return(&self) -> bool {
        let code = self.place.and_then(|place| {
            let elf = self.modules.get(place.module?)?.elf.as_ref()?;
            let svma = place.svma.wrapping_add(u64::from(!self.is_exact));
            elf.bytes_at(svma, SIGNAL_RETURN.len())
        });
        code == Some(&SIGNAL_RETURN)
    }

    /// Restores the registers from the `ucontext` that the kernel stored on the stack.
    fn leave_signal(&self, registers: &mut Registers) -> Option<()> {
        /// Registers in the order of `uc_mcontext`, by DWARF number.
        const ORDER: [usize; 17] = [8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16];
        const MCONTEXT: u64 = 40;
        let start = registers.sp().checked_add(MCONTEXT)?;
        let mut new = *registers;
        for (number, register) in ORDER.into_iter().enumerate() {
            new.0[register] = self.stack.word(start.checked_add(8 * number as u64)?)?;
        }
        *registers = new;
        Some(())
    }
}

/// Whether these seven bytes end with a call: `call rel32`, or `call` of a register or memory.
fn is_after_call(before: &[u8]) -> bool {
    let Ok(&[a, b, c, d, e, f, g]) = <&[u8; 7]>::try_from(before) else { return false };
    // The middle octal digit of the byte after 0xff selects the call; the others determine its
    // length.
    let is_call = |opcode: u8, operand: u8| opcode == 0xff && operand & 0o070 == 0o020;
    c == 0xe8 || is_call(f, g) || is_call(e, f) || is_call(d, e) || is_call(b, c) || is_call(a, b)
}
