//! The shared memory format between an agent in a measured process and the driver.
//!
//! A file in shared memory contains a header and a ring of records. Many threads of many processes
//! write, and one driver reads. A record is one word and a payload. The word has the kind in its
//! low byte, the length in bytes (a multiple of 8, including the word) in the next 24 bits, and the
//! process ID above. A writer reserves space by moving `head`, fills it, and sets the kind last. A
//! killed writer therefore leaves a pending record, never a partial one.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// First word of the file. Must change with every change of the format.
pub const MAGIC: u64 = u64::from_le_bytes(*b"laggard4");

/// Environment variable with the path of the file.
pub const RING_VARIABLE: &str = "LAGGARD_RING";

/// Size of the header in bytes; the ring follows it.
pub const HEADER_SIZE: usize = 8192;

/// Maximum number of interpreters that the driver can announce to agents.
pub const INTERPRETERS: usize = 32;

/// The start of the file: settings of the driver, and counters of all agents.
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// Size of the ring in bytes, a power of two.
    pub capacity: AtomicU64,
    /// Bytes reserved by writers since the start.
    pub head: AtomicU64,
    /// Bytes released by the driver since the start.
    pub tail: AtomicU64,
    /// Futex on which the driver sleeps; a writer increments it when the ring fills up.
    pub bell: AtomicU32,
    /// Whether the driver is asleep.
    pub asleep: AtomicU32,

    /// Sampling period in nanoseconds.
    pub period_ns: AtomicU64,
    /// Maximum stack bytes copied per sample.
    pub stack_size: AtomicU64,
    /// The requested [`Trigger`].
    pub trigger: AtomicU32,
    /// See [`options`].
    pub options: AtomicU32,
    /// Type of the perf event plus one; 0 for the task clock.
    pub event_type: AtomicU64,
    /// Its configuration within that type.
    pub event_config: AtomicU64,
    /// Its samples per second.
    pub rate: AtomicU64,
    /// Process to sample; 0 until the first agent claims it.
    pub root_pid: AtomicU32,
    /// The trigger of the first thread plus one; 0 before.
    pub got_trigger: AtomicU32,
    /// The error number of the requested trigger, if another one was used instead.
    pub trigger_error: AtomicU32,
    /// Threads that could not be sampled.
    pub unarmed: AtomicU32,
    /// Number of live threads from which new threads share the event of the thread that creates
    /// them.
    pub many_threads: AtomicU32,

    /// Processes that were followed, without the root process.
    pub processes: AtomicU64,
    /// CPU time of sampled and followed processes that reported their end, in nanoseconds.
    pub ended_user_ns: AtomicU64,
    /// The same in the kernel.
    pub ended_system_ns: AtomicU64,

    /// Samples written.
    pub samples: AtomicU64,
    /// Samples lost because the ring was full.
    pub dropped: AtomicU64,
    /// Samples delayed because the thread had signals blocked.
    pub late: AtomicU64,
    /// Time spent in the signal handler, in nanoseconds.
    pub handler_ns: AtomicU64,

    /// Threads that block the signal of the trigger, in a process into which the agent was loaded
    /// late.
    pub blocked: AtomicU32,
    /// Threads of such a process that started since and were not detected.
    pub unseen: AtomicU32,
    /// Samples taken with checked memory accesses, because the program replaced the fault handlers.
    pub careful: AtomicU64,
    /// Whether the program replaced the handler of the trigger's signal.
    pub taken_over: AtomicU32,

    /// Interpreters that were mapped after the start, announced by the driver.
    pub interpreters: [Interpreter; INTERPRETERS],
}

/// Addresses of the Python interpreter of a process.
#[repr(C)]
pub struct Interpreter {
    /// The process ID; written last.
    pub pid: AtomicU32,
    /// Its minor version.
    pub minor: AtomicU32,
    /// Start time of the program that contains it.
    pub born_ns: AtomicU64,
    /// `PyGILState_GetThisThreadState`.
    pub gil_state: AtomicU64,
    /// `PyThreadState_GetUnchecked`, or its older name.
    pub current: AtomicU64,
    /// `PyCode_Type`.
    pub code_type: AtomicU64,
    /// `_PyRuntime`.
    pub runtime: AtomicU64,
}

/// Bits of [`Header::options`].
pub mod options {
    /// Also sample forked and exec'ed processes.
    pub const CHILDREN: u32 = 1;
    /// Also sample waiting threads, on the wall clock.
    pub const WALL: u32 = 2;
    /// Return from the handler at once, to measure the overhead of the signal alone.
    pub const EMPTY: u32 = 4;
}

/// Return values of `laggard_start` other than 0 and negative error numbers.
pub mod refusal {
    /// The process is already being sampled.
    pub const BUSY: i32 = 1;
    /// The library was preloaded by `laggard record`.
    pub const PRELOADED: i32 = 2;
    /// The file does not exist, or has another version.
    pub const NO_RING: i32 = 3;
    /// A sample of an earlier recording has not finished.
    pub const UNDER_WAY: i32 = 4;
}

/// Bits of the return value of `laggard_stop`.
pub mod stopped {
    /// The process is not being sampled.
    pub const NOTHING: i32 = 1;
    /// A signal action was not restored, because a signal is still pending.
    pub const KEPT: i32 = 2;
}

/// How a thread is interrupted for a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Trigger {
    /// A perf event with `sigtrap`: synchronous, at the sampled instruction.
    SigTrap = 0,
    /// A perf event whose overflow sends a signal.
    Overflow = 1,
    /// A timer on the thread's CPU time; the kernel tick limits its rate.
    Timer = 2,
    /// A timer on the wall clock.
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

/// Maximum length of a record, including the word.
pub const LONGEST_RECORD: usize = (1 << 24) - 8;

/// Kinds of records: the low byte of the first word.
pub mod kind {
    /// Reserved and not yet written.
    pub const PENDING: u64 = 0xff;
    /// Padding up to the end of the ring.
    pub const PAD: u64 = 1;
    /// A [`super::Sample`], followed by its Python frames and its stack.
    pub const SAMPLE: u64 = 2;
    /// A [`super::Code`], followed by its name, file and line table.
    pub const CODE: u64 = 3;
    /// A [`super::Process`], followed by the content of its `/proc/self/maps`.
    pub const MAPS: u64 = 4;
    /// A [`super::Thread`] that ended.
    pub const THREAD_END: u64 = 5;
    /// A [`super::Excluded`] program, followed by its path.
    pub const EXCLUDED: u64 = 6;
    /// A [`super::ThreadName`], followed by the name.
    pub const THREAD_NAME: u64 = 7;
}

/// Why a program that was started cannot load the agent: [`Excluded::reason`].
pub mod exclusion {
    /// Statically linked.
    pub const STATIC: u32 = 1;
    /// Built for another architecture.
    pub const MACHINE: u32 = 2;
    /// Setuid or setgid.
    pub const PRIVILEGED: u32 = 3;
    /// Contains the Go runtime.
    pub const GO: u32 = 4;
    /// Started without the environment variables of the agent.
    pub const ENVIRONMENT: u32 = 5;
    /// Runs under valgrind, which cannot run the agent.
    pub const VALGRIND: u32 = 6;
}

/// Bytes below the stack pointer that a function may use without moving it.
pub const RED_ZONE: u64 = 128;

/// A record of kind `SAMPLE`. It is followed by `python` entries of [`PythonFrame`], then by
/// `stack` bytes starting [`RED_ZONE`] bytes below the stack pointer.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Sample {
    /// Process ID.
    pub pid: u32,
    /// Thread ID.
    pub tid: u32,
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub time_ns: u64,
    /// CPU time of the thread, nanoseconds.
    pub cpu_ns: u64,
    /// Registers in DWARF order (rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 … r15), then rip.
    pub regs: [u64; 17],
    /// Number of Python frames.
    pub python: u32,
    /// Number of stack bytes.
    pub stack: u32,
    /// Minor version of Python; 0 without Python.
    pub minor: u32,
    /// See [`sample_flags`].
    pub flags: u32,
    /// Index of a traced function plus one; only for agents other than the sampler.
    pub about: u64,
    /// Number of calls or events that it represents; 0 for one sampling period.
    pub value: u64,
}

/// Bits of [`Sample::flags`].
pub mod sample_flags {
    /// The end of the stack is unknown.
    pub const FOREIGN_STACK: u32 = 1;
    /// The stack was longer than the copy.
    pub const CUT: u32 = 2;
    /// The signal was blocked when it was due.
    pub const LATE: u32 = 4;
    /// The Python frame chain was truncated.
    pub const CHAIN_CUT: u32 = 8;
    /// The Python frame chain is corrupt after the last entry.
    pub const CHAIN_BAD: u32 = 16;
    /// The thread holds the GIL.
    pub const GIL: u32 = 32;
    /// The thread was waiting (wall clock only).
    pub const WAITING: u32 = 64;
}

/// One element of the interpreter's frame chain, innermost first.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct PythonFrame {
    /// Address of the code object; 0 for an entry frame.
    pub code: u64,
    /// 0 for a Python frame, 1 for the border of an evaluation loop.
    pub border: u32,
    /// Byte offset of the instruction.
    pub lasti: i32,
    /// Address of the frame; for a border, an address inside the C frame of its loop, or 0.
    pub position: u64,
}

/// A record of kind `CODE`. It is followed by name, file (with characters of `name_width` and
/// `file_width` bytes) and line table.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Code {
    /// Process ID.
    pub pid: u32,
    /// Minor version of Python.
    pub minor: u32,
    /// Address of the code object.
    pub code: u64,
    /// First line.
    pub first_line: u32,
    /// Number of characters of the name.
    pub name: u32,
    /// Bytes per character of the name.
    pub name_width: u32,
    /// Number of characters of the file.
    pub file: u32,
    /// Bytes per character of the file.
    pub file_width: u32,
    /// Size of the line table in bytes.
    pub table: u32,
}

/// A record of kind `MAPS`. It is followed by `text` bytes of mappings, then by `command` bytes of
/// the command line: words that end with a zero byte.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Process {
    /// Process ID.
    pub pid: u32,
    /// Process ID of its parent.
    pub parent: u32,
    /// Length of the text in bytes.
    pub text: u32,
    /// 1 after a program was loaded (earlier addresses are invalid), 2 at its end.
    pub moment: u32,
    /// `CLOCK_MONOTONIC`; at the start of a program, it distinguishes processes with the same ID.
    pub time_ns: u64,
    /// 1 if the agent knows an interpreter.
    pub has_python: u32,
    /// Length of the command line in bytes; 0 if it was not sent.
    pub command: u32,
    /// Name of the program, padded with zeros.
    pub name: [u8; 16],
}

/// A record of kind `EXCLUDED`. It is followed by `path` bytes.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Excluded {
    /// ID of the process that started the program.
    pub pid: u32,
    /// See [`exclusion`].
    pub reason: u32,
    /// Length of the path in bytes.
    pub path: u32,
    /// Zero.
    pub rest: u32,
}

/// A record of kind `THREAD_END`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Thread {
    /// Process ID.
    pub pid: u32,
    /// Thread ID.
    pub tid: u32,
    /// CPU time of the thread, nanoseconds.
    pub cpu_ns: u64,
    /// Its name, padded with zeros.
    pub name: [u8; 16],
    /// 1 if it shared the event of the thread that created it.
    pub has_inherited: u64,
}

/// A record of kind `THREAD_NAME`: the name that the interpreter gave to a thread, in UTF-8. It is
/// followed by `text` bytes.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ThreadName {
    /// Process ID.
    pub pid: u32,
    /// Thread ID.
    pub tid: u32,
    /// Length of the name in bytes.
    pub text: u64,
}

const _: () = assert!(size_of::<Header>() <= HEADER_SIZE);
