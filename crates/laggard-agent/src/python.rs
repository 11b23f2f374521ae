//! Reads CPython's frame chain from memory, while the thread that owns it is stopped in a signal
//! handler or at a call.
//!
//! The offsets of 3.9 to 3.12 come from the headers of these versions (x86-64, release builds);
//! since 3.13 the interpreter contains a table of them.

use crate::wire::{PythonFrame, sample_flags};

/// Maximum number of recorded frames.
pub(crate) const LONGEST_CHAIN: usize = 640;

/// Offsets in the structures of one version. `NOWHERE` marks fields that it does not have.
#[derive(Clone, Copy)]
pub struct Layout {
    /// Minor version: 12 for 3.12.
    pub minor: u32,
    /// `tstate->frame`, `->cframe` or `->current_frame`.
    thread_frame: u16,
    thread_id: u16,
    /// `cframe->current_frame` and `->previous`.
    loop_frame: u16,
    loop_previous: u16,
    frame_code: u16,
    frame_previous: u16,
    frame_instruction: u16,
    frame_owner: u16,
    frame_is_entry: u16,
    code_file: u16,
    code_name: u16,
    code_first_line: u16,
    code_lines: u16,
    code_instructions: u16,
    ascii_size: u16,
    compact_size: u16,
}

const NOWHERE: u16 = u16::MAX;

/// Frames with this owner or above belong to an evaluation loop, not to a function.
const OWNED_BY_C: u64 = 3;

const fn layout(minor: u32, at: [u16; 16]) -> Layout {
    Layout {
        minor,
        thread_frame: at[0],
        thread_id: at[1],
        loop_frame: at[2],
        loop_previous: at[3],
        frame_code: at[4],
        frame_previous: at[5],
        frame_instruction: at[6],
        frame_owner: at[7],
        frame_is_entry: at[8],
        code_file: at[9],
        code_name: at[10],
        code_first_line: at[11],
        code_lines: at[12],
        code_instructions: at[13],
        ascii_size: at[14],
        compact_size: at[15],
    }
}

const NO: u16 = NOWHERE;
static LAYOUTS: [Layout; 5] = [
    layout(9, [24, 176, NO, NO, 32, 24, 104, NO, NO, 104, 112, 40, 120, NO, 48, 72]),
    layout(10, [24, 176, NO, NO, 32, 24, 96, NO, NO, 104, 112, 40, 120, NO, 48, 72]),
    layout(11, [56, 152, 8, 16, 32, 48, 56, 69, 68, 112, 128, 72, 136, 184, 48, 72]),
    layout(12, [56, 136, 0, 8, 0, 8, 56, 70, NO, 112, 128, 68, 136, 192, 40, 56]),
    layout(13, [72, 152, NO, NO, 0, 8, 56, 70, NO, 112, 128, 68, 136, 200, 40, 56]),
];

/// Reads words of memory that may not be mapped.
pub trait Memory: Copy {
    /// The word at an address, if it is readable.
    fn load(self, address: u64) -> Option<u64>;

    /// A word of an object.
    fn field(self, object: u64, offset: u16) -> Option<u64> {
        if object < 4096 { None } else { self.load(object.wrapping_add(u64::from(offset))) }
    }

    /// A field of fewer than eight bytes, extracted from the aligned word that contains it.
    fn small(self, object: u64, offset: u16, bits: u32) -> Option<u64> {
        let word = self.field(object, offset & !7)?;
        Some(word >> (u32::from(offset & 7) * 8) & ((1 << bits) - 1))
    }
}

/// The functions and objects of an interpreter that are needed to read its frames.
#[derive(Clone, Copy)]
pub struct Interpreter {
    /// Offsets in its structures.
    pub layout: Layout,
    /// `PyGILState_GetThisThreadState`.
    gil_state: unsafe extern "C" fn() -> u64,
    /// `PyThreadState_GetUnchecked`, or `_PyThreadState_UncheckedGet` before 3.13.
    current: unsafe extern "C" fn() -> u64,
    /// `PyCode_Type`.
    code_type: u64,
}

/// Addresses of an interpreter's symbols.
#[derive(Clone, Copy, Default)]
pub struct Addresses {
    /// Minor version: 12 for 3.12.
    pub minor: u32,
    /// `PyGILState_GetThisThreadState`.
    pub gil_state: u64,
    /// `PyThreadState_GetUnchecked`, or its older name.
    pub current: u64,
    /// `PyCode_Type`.
    pub code_type: u64,
    /// `_PyRuntime`.
    pub runtime: u64,
}

/// Addresses of the interpreter of this process; `find` looks up symbols by name.
pub(crate) fn find(find: impl Fn(&[u8]) -> Option<u64>) -> Option<Addresses> {
    let version = find(b"Py_GetVersion")?;
    // SAFETY: `Py_GetVersion` has this type and returns a constant null-terminated string.
    let minor = unsafe {
        let version = core::mem::transmute::<u64, unsafe extern "C" fn() -> *const u8>(version)();
        let mut digits = version.add(2);
        let mut minor = 0u32;
        while (*digits).is_ascii_digit() && minor < 1000 {
            minor = minor * 10 + u32::from(*digits - b'0');
            digits = digits.add(1);
        }
        if *version == b'3' { minor } else { 0 }
    };
    Some(Addresses {
        minor,
        gil_state: find(b"PyGILState_GetThisThreadState")?,
        current: find(b"PyThreadState_GetUnchecked")
            .or_else(|| find(b"_PyThreadState_UncheckedGet"))?,
        code_type: find(b"PyCode_Type")?,
        runtime: find(b"_PyRuntime").unwrap_or(0),
    })
}

impl Interpreter {
    /// Returns `None` if a symbol is missing or the frame layout of the version is not known.
    pub(crate) fn new(at: Addresses, memory: impl Memory) -> Option<Interpreter> {
        if at.gil_state == 0 || at.current == 0 || at.code_type == 0 {
            return None;
        }
        let layout = layout_of(&at, memory);
        // SAFETY: the addresses are those of the functions with these types.
        unsafe {
            Some(Interpreter {
                layout: layout?,
                gil_state: core::mem::transmute::<u64, unsafe extern "C" fn() -> u64>(at.gil_state),
                current: core::mem::transmute::<u64, unsafe extern "C" fn() -> u64>(at.current),
                code_type: at.code_type,
            })
        }
    }

    /// An interpreter of another process, whose functions cannot be called: only the addresses of
    /// its objects are used.
    pub fn remote(at: Addresses, memory: impl Memory) -> Option<Interpreter> {
        unsafe extern "C" fn nobody() -> u64 {
            0
        }
        if at.code_type == 0 {
            return None;
        }
        let layout = layout_of(&at, memory)?;
        Some(Interpreter { layout, gil_state: nobody, current: nobody, code_type: at.code_type })
    }

    /// Calls each function once, so that the dynamic linker has bound its dependencies before a
    /// signal handler calls it.
    pub(crate) fn bind(&self) {
        // SAFETY: both functions only read variables of the thread or the process.
        unsafe {
            (self.gil_state)();
            (self.current)();
        }
    }

    /// Writes the frame chain of this thread to `out`, innermost first. Returns the number of
    /// entries and [`sample_flags`]. `seen` is called with each code object and returns whether it
    /// is valid.
    ///
    /// # Safety
    /// Must be called on the thread itself.
    pub(crate) unsafe fn walk(
        &self,
        thread_id: u64,
        memory: impl Memory,
        out: &mut [PythonFrame],
        seen: impl FnMut(u64) -> bool,
    ) -> (usize, u32) {
        let at = &self.layout;
        // The thread's own state is queried first: a thread without one never ran Python, and
        // querying the current state could make the dynamic linker allocate its variables.
        // SAFETY: both functions only read variables of the thread or the process.
        let (own, current) = unsafe {
            let own = (self.gil_state)();
            if own == 0 {
                return (0, 0);
            }
            (own, (self.current)())
        };
        // Before 3.12, the current state belongs to the thread that holds the GIL.
        let is_ours = current != 0
            && (at.minor >= 12 || memory.field(current, at.thread_id) == Some(thread_id));
        let state = if is_ours { current } else { own };
        let (count, flags) = self.chain(state, memory, out, seen);
        (count, if is_ours { flags | sample_flags::GIL } else { flags })
    }

    /// Writes the frame chain of a thread with this state to `out`, like [`Interpreter::walk`]. If
    /// the thread is running, the result may be inconsistent.
    pub fn chain(
        &self,
        state: u64,
        memory: impl Memory,
        out: &mut [PythonFrame],
        mut seen: impl FnMut(u64) -> bool,
    ) -> (usize, u32) {
        let at = &self.layout;
        let mut flags = 0;
        let Some(mut frame) = memory.field(state, at.thread_frame) else { return (0, flags) };
        let mut eval_loop = 0;
        if at.loop_frame != NOWHERE {
            eval_loop = frame;
            match memory.field(eval_loop, at.loop_frame) {
                Some(first) => frame = first,
                None => return (0, flags),
            }
        }
        let mut count = 0;
        while frame != 0 {
            if count + 2 > out.len() {
                flags |= sample_flags::CHAIN_CUT;
                break;
            }
            let Some(link) = self.link(frame, memory) else {
                flags |= sample_flags::CHAIN_BAD;
                break;
            };
            if link.is_border {
                out[count] = PythonFrame { code: 0, border: 1, lasti: 0, position: frame };
                count += 1;
            } else {
                if !seen(link.code) {
                    flags |= sample_flags::CHAIN_BAD;
                    break;
                }
                let lasti = link.lasti;
                out[count] = PythonFrame { code: link.code, border: 0, lasti, position: frame };
                count += 1;
                // Before 3.11, every frame has its own loop. In 3.11 only entry frames have one,
                // and the loop's record lies in its C frame.
                if at.minor <= 10 || link.is_entry {
                    out[count] = PythonFrame { code: 0, border: 1, lasti: 0, position: eval_loop };
                    count += 1;
                    if at.loop_previous != NOWHERE {
                        eval_loop = memory.field(eval_loop, at.loop_previous).unwrap_or(0);
                    }
                }
            }
            frame = link.previous;
        }
        (count, flags)
    }

    fn link(&self, frame: u64, memory: impl Memory) -> Option<Link> {
        let at = &self.layout;
        let previous = memory.field(frame, at.frame_previous)?;
        let owner = match at.frame_owner {
            NOWHERE => 0,
            offset => memory.small(frame, offset, 8)?,
        };
        if at.minor >= 12 && owner >= OWNED_BY_C {
            return Some(Link { previous, code: 0, lasti: 0, is_border: true, is_entry: false });
        }
        // Since 3.14, the lowest bits of the reference are tags.
        let code = memory.field(frame, at.frame_code)? & !7;
        let lasti = match at.minor {
            9 => memory.small(frame, at.frame_instruction, 32)? as i32,
            10 => (memory.small(frame, at.frame_instruction, 32)? as i32).wrapping_mul(2),
            _ => memory
                .field(frame, at.frame_instruction)?
                .wrapping_sub(code)
                .wrapping_sub(u64::from(at.code_instructions)) as i32,
        };
        let is_entry =
            at.frame_is_entry != NOWHERE && memory.small(frame, at.frame_is_entry, 8)? != 0;
        Some(Link { previous, code, lasti, is_border: false, is_entry })
    }

    /// The description of a code object; `None` if there is no code object at this address.
    pub fn code(&self, code: u64, memory: impl Memory) -> Option<CodeText> {
        let at = &self.layout;
        if memory.field(code, OB_TYPE)? != self.code_type {
            return None;
        }
        Some(CodeText {
            name: memory.field(code, at.code_name)?,
            file: memory.field(code, at.code_file)?,
            lines: memory.field(code, at.code_lines)?,
            first_line: memory.small(code, at.code_first_line, 32)? as u32,
        })
    }

    /// Address, number and width in bytes of the characters of a `str`.
    pub fn text(&self, object: u64, memory: impl Memory) -> Option<(u64, u64, u64)> {
        let length = memory.field(object, VAR_SIZE)?;
        let state = memory.field(object, UNICODE_STATE)?;
        // Kind, compact and ascii follow after two bits, or after sixteen since 3.14.
        let bits = if state >> 5 & 1 == 1 { state >> 2 } else { state >> 16 };
        let (width, is_compact, is_ascii) = (bits & 7, bits >> 3 & 1 == 1, bits >> 4 & 1 == 1);
        if !matches!(width, 1 | 2 | 4) || !is_compact {
            return None;
        }
        let start = if is_ascii { self.layout.ascii_size } else { self.layout.compact_size };
        Some((object + u64::from(start), length, width))
    }

    /// Address and length of the content of a `bytes` object.
    pub fn bytes(&self, object: u64, memory: impl Memory) -> Option<(u64, u64)> {
        Some((object + BYTES_START, memory.field(object, VAR_SIZE)?))
    }
}

const OB_TYPE: u16 = 8;
const VAR_SIZE: u16 = 16;
const UNICODE_STATE: u16 = 32;
const BYTES_START: u64 = 32;

struct Link {
    previous: u64,
    code: u64,
    lasti: i32,
    is_border: bool,
    is_entry: bool,
}

/// Objects that describe a code object, and its first line.
pub struct CodeText {
    /// The `str` with its name.
    pub name: u64,
    /// The `str` with its file.
    pub file: u64,
    /// The `bytes` with its line table.
    pub lines: u64,
    /// Its first line.
    pub first_line: u32,
}

/// The layout of an interpreter: its own table takes precedence over the known offsets of its
/// version.
fn layout_of(at: &Addresses, memory: impl Memory) -> Option<Layout> {
    if at.minor >= 13
        && let Some(own) = own_layout(at.minor, at.runtime, memory)
    {
        return own;
    }
    LAYOUTS.iter().copied().find(|layout| layout.minor == at.minor)
}

/// The layout from the interpreter's own table, with which `_PyRuntime` starts since 3.13. The
/// outer `None` means that there is no table, the inner `None` that the frames of this build
/// (free-threaded) are not supported.
fn own_layout(minor: u32, runtime: u64, memory: impl Memory) -> Option<Option<Layout>> {
    let word = |index: u16| memory.field(runtime, index * 8);
    if word(0)? != u64::from_le_bytes(*b"xdebugpy") || word(1)? >> 16 != 0x300 + u64::from(minor) {
        return None;
    }
    if word(2)? != 0 {
        return Some(None);
    }
    // Indices of the first words of the sections about threads, frames and code.
    let (thread, frame, code) = match minor {
        13 => (19, 28, 34),
        14 => (22, 31, 39),
        _ => return Some(None),
    };
    let at = |index: u16| {
        let offset = word(index)?;
        (offset < 1024).then_some(offset as u16)
    };
    Some(Some(layout(
        minor,
        [
            at(thread + 4)?,
            at(thread + 5)?,
            NOWHERE,
            NOWHERE,
            at(frame + 2)?,
            at(frame + 1)?,
            at(frame + 3)?,
            at(frame + 5)?,
            NOWHERE,
            at(code + 1)?,
            at(code + 3)?,
            at(code + 5)?,
            at(code + 4)?,
            at(code + 9)?,
            40,
            56,
        ],
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory that contains only a table of offsets at 0x10000.
    #[derive(Clone, Copy)]
    struct Table<'a>(&'a [u64]);

    impl Memory for Table<'_> {
        fn load(self, address: u64) -> Option<u64> {
            let offset = address.checked_sub(0x10000)?;
            self.0.get(offset as usize / 8).copied()
        }
    }

    #[test]
    fn the_table_of_a_newer_interpreter_is_used() {
        let mut words = [0u64; 80];
        words[0] = u64::from_le_bytes(*b"xdebugpy");
        words[1] = 0x030e_00f0;
        (words[26], words[27]) = (64, 152);
        (words[32], words[33], words[34], words[36]) = (8, 0, 56, 74);
        (words[40], words[42], words[43], words[44], words[48]) = (112, 128, 136, 68, 208);
        let found = own_layout(14, 0x10000, Table(&words)).flatten().expect("a layout");
        assert_eq!((found.thread_frame, found.thread_id, found.frame_owner), (64, 152, 74));
        assert_eq!((found.code_name, found.code_instructions), (128, 208));
        words[2] = 1;
        assert!(matches!(own_layout(14, 0x10000, Table(&words)), Some(None)), "free-threaded");
        words[0] = 0;
        assert!(own_layout(14, 0x10000, Table(&words)).is_none(), "no table");
    }
}
