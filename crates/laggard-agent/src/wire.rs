//! The wire: how an agent inside a measured process talks to the driver outside it.
//!
//! One file in shared memory holds a header and a ring of records. Many threads of many processes
//! write, one driver reads. A record is one word and a payload; the word has the kind in its low
//! byte, the length in bytes (a multiple of 8, word included) in the next 24 bits, and the process
//! above; a writer reserves its place by moving `head`, fills it, and only then sets
//! the kind, so that a writer that was killed leaves a hole and never half a record.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// First word of the file. Changes with every change of this file.
pub const MAGIC: u64 = u64::from_le_bytes(*b"laggard3");

/// Environment variable with the path of the file.
pub const RING_VARIABLE: &str = "LAGGARD_RING";

/// Bytes of the header; the ring follows.
pub const HEADER_SIZE: usize = 8192;

/// Interpreters that the driver can tell agents about.
pub const INTERPRETERS: usize = 32;

/// The start of the file: what the driver asks for, and what all agents together count.
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// Bytes of the ring, a power of two.
    pub capacity: AtomicU64,
    /// Bytes reserved by writers since the start.
    pub head: AtomicU64,
    /// Bytes given free by the driver since the start.
    pub tail: AtomicU64,
    /// The driver sleeps on this; a writer bumps it when the ring fills up.
    pub bell: AtomicU32,
    /// Whether the driver sleeps.
    pub asleep: AtomicU32,

    /// Time between samples, in nanoseconds.
    pub period_ns: AtomicU64,
    /// Most bytes of stack to copy.
    pub stack_size: AtomicU64,
    /// How to be woken: see [`Trigger`].
    pub trigger: AtomicU32,
    /// See [`options`].
    pub options: AtomicU32,
    /// Type of the perf event plus one, when it is not the task clock; else 0.
    pub event_type: AtomicU64,
    /// Its number in that type.
    pub event_config: AtomicU64,
    /// Its samples per second.
    pub rate: AtomicU64,
    /// Process whose samples are wanted; 0 until the first agent claims it.
    pub root_pid: AtomicU32,
    /// The trigger that the first thread got, plus one; 0 before.
    pub got_trigger: AtomicU32,
    /// The error number of the trigger asked for, when another had to do.
    pub trigger_error: AtomicU32,
    /// Threads that could not be sampled at all.
    pub unarmed: AtomicU32,
    /// Live threads from which on new ones share the event of the thread that creates them.
    pub many_threads: AtomicU32,

    /// Samples written.
    pub samples: AtomicU64,
    /// Samples lost because the ring was full.
    pub dropped: AtomicU64,
    /// Samples that came late because the thread had signals blocked.
    pub late: AtomicU64,
    /// Nanoseconds spent in the handler.
    pub handler_ns: AtomicU64,

    /// Threads that have the signal of the trigger blocked, of a process that the agent was loaded
    /// into late.
    pub blocked: AtomicU32,
    /// Threads of such a process that were started since, and found by nobody.
    pub unseen: AtomicU32,
    /// Samples taken with care, because the program has taken the signal of faults over.
    pub careful: AtomicU64,
    /// Whether the program took the signal of the trigger over.
    pub taken_over: AtomicU32,

    /// Interpreters that were mapped after the start, found by the driver.
    pub interpreters: [Interpreter; INTERPRETERS],
}

/// Where a process has its Python interpreter.
#[repr(C)]
pub struct Interpreter {
    /// The process; written last.
    pub pid: AtomicU32,
    /// Its version, `minor` of 3.minor.
    pub minor: AtomicU32,
    /// When the process became the program that has it.
    pub born_ns: AtomicU64,
    /// `PyGILState_GetThisThreadState`.
    pub gil_state: AtomicU64,
    /// `PyThreadState_GetUnchecked` or its older name.
    pub current: AtomicU64,
    /// `PyCode_Type`.
    pub code_type: AtomicU64,
    /// `_PyRuntime`.
    pub runtime: AtomicU64,
}

/// Bits of [`Header::options`].
pub mod options {
    /// Sample forked and exec'ed processes too.
    pub const CHILDREN: u32 = 1;
    /// Sample waiting threads too, by the wall clock.
    pub const WALL: u32 = 2;
    /// Return from the handler at once: measures the bare cost of the signal.
    pub const EMPTY: u32 = 4;
}

/// What `laggard_start` answers, when it is not 0 or the negative number of a system's error.
pub mod refusal {
    /// Samples are taken already.
    pub const BUSY: i32 = 1;
    /// The library came with the start of the program, for a run of `laggard record`.
    pub const PRELOADED: i32 = 2;
    /// The file is not there, or none of this version.
    pub const NO_RING: i32 = 3;
    /// A sample of an earlier block has not ended.
    pub const UNDER_WAY: i32 = 4;
}

/// Bits of what `laggard_stop` answers.
pub mod stopped {
    /// There was nothing to stop: no samples are taken in this process.
    pub const NOTHING: i32 = 1;
    /// The action for a signal of ours was not put back, because one is still to come.
    pub const KEPT: i32 = 2;
}

/// How a thread is woken to take a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Trigger {
    /// A perf event with `sigtrap`: synchronous, at the sampled instruction.
    SigTrap = 0,
    /// A perf event whose overflow sends a signal.
    Overflow = 1,
    /// A timer of the thread's CPU time; the kernel's tick bounds its rate.
    Timer = 2,
    /// A timer of the wall clock.
    Wall = 3,
}

impl Trigger {
    /// The trigger with this number.
    pub const fn from_number(number: u32) -> Option<Trigger> {
        match number {
            0 => Some(Trigger::SigTrap),
            1 => Some(Trigger::Overflow),
            2 => Some(Trigger::Timer),
            3 => Some(Trigger::Wall),
            _ => None,
        }
    }
}

/// Longest record, word included.
pub const LONGEST_RECORD: usize = (1 << 24) - 8;

/// What a record is. The low byte of its first word.
pub mod kind {
    /// Reserved and not yet written.
    pub const PENDING: u64 = 0xff;
    /// Nothing: the rest up to the end of the ring.
    pub const PAD: u64 = 1;
    /// A [`super::Sample`], its Python entries, its stack.
    pub const SAMPLE: u64 = 2;
    /// A [`super::Code`], its name, file and line table.
    pub const CODE: u64 = 3;
    /// A [`super::Process`] and the text of its `/proc/self/maps`.
    pub const MAPS: u64 = 4;
    /// A [`super::Thread`] that ended.
    pub const THREAD_END: u64 = 5;
}

/// Bytes below the stack pointer that a function may use without moving it.
pub const RED_ZONE: u64 = 128;

/// A record of kind `SAMPLE`. `python` entries of [`PythonFrame`] follow, then `stack` bytes from
/// [`RED_ZONE`] below the stack pointer upwards.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Sample {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub time_ns: u64,
    /// CPU time of the thread, nanoseconds.
    pub cpu_ns: u64,
    /// Registers in DWARF's order (rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 … r15), then rip.
    pub regs: [u64; 17],
    /// Number of Python entries.
    pub python: u32,
    /// Bytes of stack.
    pub stack: u32,
    /// Version of Python, `minor` of 3.minor; 0 when there is none.
    pub minor: u32,
    /// See [`sample_flags`].
    pub flags: u32,
    /// What the sample is about, for agents other than the sampler (a traced function).
    pub about: u64,
    /// How many calls or events it stands for; 0 says that a period has passed.
    pub value: u64,
}

/// Bits of [`Sample::flags`].
pub mod sample_flags {
    /// The stack's end was not known.
    pub const FOREIGN_STACK: u32 = 1;
    /// The stack was longer than the copy.
    pub const CUT: u32 = 2;
    /// The signal was blocked when it was due.
    pub const LATE: u32 = 4;
    /// The Python chain was cut.
    pub const CHAIN_CUT: u32 = 8;
    /// The Python chain led astray; what follows the last entry is unknown.
    pub const CHAIN_BAD: u32 = 16;
    /// The thread holds the GIL.
    pub const GIL: u32 = 32;
    /// The thread was waiting (wall clock only).
    pub const WAITING: u32 = 64;
}

/// One link of the interpreter's frame chain, innermost first.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct PythonFrame {
    /// Address of the code object; 0 for an entry frame.
    pub code: u64,
    /// 0 a Python frame, 1 the border of an evaluation loop.
    pub border: u32,
    /// Byte offset of the instruction.
    pub lasti: i32,
    /// Where the frame lies; for a border, an address inside the C frame of its loop, or 0.
    pub position: u64,
}

/// A record of kind `CODE`. Name, file (characters of `name_width`, `file_width` bytes each) and
/// line table follow.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Code {
    /// Process.
    pub pid: u32,
    /// Version of Python.
    pub minor: u32,
    /// Address of the code object.
    pub code: u64,
    /// First line.
    pub first_line: u32,
    /// Characters of the name.
    pub name: u32,
    /// Bytes of one.
    pub name_width: u32,
    /// Characters of the file.
    pub file: u32,
    /// Bytes of one.
    pub file_width: u32,
    /// Bytes of the line table.
    pub table: u32,
}

/// A record of kind `MAPS`. `text` bytes follow.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Process {
    /// Process.
    pub pid: u32,
    /// Its parent.
    pub parent: u32,
    /// Bytes of text.
    pub text: u32,
    /// 1 when a program was just loaded (addresses known before mean nothing now), 2 at its end.
    pub moment: u32,
    /// `CLOCK_MONOTONIC`; at the start of a program, what tells it from others of its number.
    pub time_ns: u64,
    /// 1 when the agent knows of an interpreter.
    pub has_python: u64,
}

/// A record of kind `THREAD_END`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Thread {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// CPU time it used, nanoseconds.
    pub cpu_ns: u64,
    /// Its name, padded with zeros.
    pub name: [u8; 16],
    /// 1 when its event was that of the thread that created it.
    pub has_inherited: u64,
}

const _: () = assert!(size_of::<Header>() <= HEADER_SIZE);
