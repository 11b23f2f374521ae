//! The tables of the call tracer: a file in shared memory that the driver creates, and that every
//! traced process maps and writes.
//!
//! Counts are written directly to the file, so that nothing is lost when a process is killed, calls
//! `_exit` or forks. A fixed part ([`Tables`]) lists processes, objects, functions and threads. The
//! rest is allocated in [`Chunk`]s of [`Entry`]s; each list of chunks is written by one thread
//! only. A row of a fixed table is reserved by its counter in the header, and is valid once its
//! `ready` is set. All bytes are initially zero.

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

/// First word of the file. Must change with every change of the format.
pub const MAGIC: u64 = u64::from_le_bytes(*b"lagcall2");

/// Environment variable with the path of the file.
pub const VARIABLE: &str = "LAGGARD_CALLS";

/// Bytes for the patterns of one kind, which are null-terminated strings.
pub const PATTERNS: usize = 2048;
/// Bytes for the signatures of functions that take pointers.
pub const SIGNATURES: usize = 4096;
/// Maximum number of program images; a fork or an exec creates a new one.
pub const PROCESSES: usize = 4096;
/// Maximum number of programs and libraries, over all processes.
pub const OBJECTS: usize = 16384;
/// Maximum number of functions, over all processes.
pub const SYMBOLS: usize = 16384;
/// Maximum number of threads, over all processes.
pub const THREADS: usize = 8192;
/// Bytes for names and paths.
pub const TEXTS: usize = 3 << 20;
/// Maximum number of argument combinations, over all functions.
pub const ARGUMENTS: usize = 16384;
/// Maximum number of argument combinations of one function.
pub const ARGUMENTS_OF_ONE: u32 = 1024;
/// Maximum number of recorded arguments: those in integer registers.
pub const MOST_ARGUMENTS: usize = 6;

/// The fixed part of the file.
#[repr(C)]
pub struct Tables {
    /// Settings of the driver, and counters of all processes.
    pub header: Header,
    /// By number of the image minus one.
    pub processes: [Process; PROCESSES],
    /// By index.
    pub objects: [Object; OBJECTS],
    /// By index.
    pub symbols: [Symbol; SYMBOLS],
    /// By index.
    pub threads: [Thread; THREADS],
    /// Names and paths, one after the other.
    pub texts: [AtomicU8; TEXTS],
    /// A hash table with open addressing.
    pub arguments: [Argument; ARGUMENTS],
}

/// The start of the file.
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// Size of the file in bytes.
    pub size: AtomicU64,
    /// Allocated bytes, including the fixed part.
    pub used: AtomicU64,
    /// See [`options`].
    pub options: AtomicU32,
    /// Number of integer arguments to record, 0 to 6.
    pub arguments: AtomicU32,
    /// Record the full stack of one in this many calls; 0 records none. A thread starts with every
    /// call and doubles the interval up to this value.
    pub stack_every: AtomicU32,
    /// Process to trace; 0 until the first agent claims it.
    pub root_pid: AtomicU32,

    /// Number of images so far; the next one has this number plus one.
    pub images: AtomicU32,
    /// Rows of `objects`; may exceed its length.
    pub objects: AtomicU32,
    /// Rows of `symbols`; may exceed its length.
    pub symbols: AtomicU32,
    /// Rows of `threads`; may exceed its length.
    pub threads: AtomicU32,
    /// Bytes of `texts`; may exceed its length.
    pub texts: AtomicU32,
    /// Redirected function slots outside of the lazy binding table.
    pub patched: AtomicU32,
    /// Function slots that could not be made writable.
    pub unpatched: AtomicU32,
    /// Processes in which calls are only counted and no longer timed, because they loaded a library
    /// that moves stack contents.
    pub count_only: AtomicU32,
    /// Processes whose private tables could not be marked to be wiped on fork.
    pub no_wipe: AtomicU32,
    /// Programs that were not traced because the tables were nearly full.
    pub untraced: AtomicU32,
    /// Calls whose arguments were not recorded because the table was full.
    pub arguments_lost: AtomicU64,
    /// Overhead of one traced call, in ticks.
    pub cost: AtomicU64,
    /// Calls whose call site was not recorded because there was no row for their thread.
    pub table_full: AtomicU64,

    /// Null-terminated path of the file that transports stacks ([`crate::wire`]).
    pub ring: [AtomicU8; 256],
    /// Patterns of calling modules.
    pub from: [AtomicU8; PATTERNS],
    /// Patterns of called libraries.
    pub library: [AtomicU8; PATTERNS],
    /// Patterns of functions.
    pub function: [AtomicU8; PATTERNS],
    /// Functions whose arguments are pointers: null-terminated entries such as `gemm=ccnnn.`, see
    /// `laggard_core::calls::blas`.
    pub signatures: [AtomicU8; SIGNATURES],
}

/// Bits of [`Header::options`].
pub mod options {
    /// Also trace programs that the root process starts.
    pub const CHILDREN: u32 = 1;
}

/// One image of a process.
#[repr(C)]
pub struct Process {
    /// Process ID.
    pub pid: AtomicU32,
    /// Number of the image it was forked from, whose objects it shares; 0 after an exec.
    pub parent: AtomicU32,
}

/// A program or library in one image.
#[repr(C)]
pub struct Object {
    /// Load address minus link address.
    pub bias: AtomicU64,
    /// First address.
    pub start: AtomicU64,
    /// First address after it.
    pub end: AtomicU64,
    /// Offset of its path in `texts`.
    pub path: AtomicU32,
    /// Length of the path in bytes.
    pub path_size: AtomicU32,
    /// Number of the image.
    pub image: AtomicU32,
    /// 1 if complete, 2 if unloaded.
    pub ready: AtomicU32,
}

/// A function that was bound.
#[repr(C)]
pub struct Symbol {
    /// Calls that could not be counted by thread and call site.
    pub uncounted: AtomicU64,
    /// Offset of its name in `texts`.
    pub name: AtomicU32,
    /// Length of the name in bytes.
    pub name_size: AtomicU32,
    /// Index of the object that contains it.
    pub object: AtomicU32,
    /// The [`Reason`] why it is not traced plus one, or 0; [`OWN`] for the agent's own function.
    pub reason: AtomicU32,
    /// Number of recorded argument combinations.
    pub combinations: AtomicU32,
    /// 1 if complete.
    pub ready: AtomicU32,
}

/// `reason` of the function with which the agent measures its overhead.
pub const OWN: u32 = u32::MAX;

/// Why a function is not traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Reason {
    /// `setjmp`, `vfork` and the like.
    ReturnsTwice = 0,
    /// `exit`, `longjmp` and the like.
    DoesNotReturn = 1,
    /// `dlopen`, `dlsym`, `dl_iterate_phdr`, … depend on their caller.
    AsksWhoCalls = 2,
    /// The unwinder starts at its caller's frame.
    Unwinds = 3,
    /// `__tls_get_addr`, `__fentry__`, … preserve registers that other functions may change.
    OwnConvention = 4,
    /// `symbols` or `texts` is full.
    TooMany = 5,
}

impl Reason {
    /// All reasons, by number.
    pub const ALL: [Reason; 6] = [
        Reason::ReturnsTwice,
        Reason::DoesNotReturn,
        Reason::AsksWhoCalls,
        Reason::Unwinds,
        Reason::OwnConvention,
        Reason::TooMany,
    ];

    /// A description for users.
    pub const fn words(self) -> &'static str {
        match self {
            Reason::ReturnsTwice => "it returns twice",
            Reason::DoesNotReturn => "it does not return",
            Reason::AsksWhoCalls => "its result depends on its caller",
            Reason::Unwinds => "it unwinds the stack from its caller",
            Reason::OwnConvention => "it has its own calling convention",
            Reason::TooMany => "too many functions",
        }
    }
}

/// A thread in one image.
#[repr(C)]
pub struct Thread {
    /// Offset of its first chunk in the file; 0 for none.
    pub first: AtomicU64,
    /// Calls nested too deeply to be timed.
    pub too_deep: AtomicU64,
    /// Calls whose call site was not recorded because the table was full.
    pub table_full: AtomicU64,
    /// Process ID.
    pub pid: AtomicU32,
    /// Thread ID.
    pub tid: AtomicU32,
    /// Number of the image.
    pub image: AtomicU32,
    /// 1 if complete.
    pub ready: AtomicU32,
    /// Its name when it was first seen, padded with zeros.
    pub name: [AtomicU8; 16],
}

/// A block of a thread's entries. `capacity` entries follow it.
#[repr(C, align(64))]
pub struct Chunk {
    /// Offset of the next chunk in the file; 0 for none.
    pub next: AtomicU64,
    /// Number of used entries.
    pub used: AtomicU32,
    /// Number of entries that fit.
    pub capacity: AtomicU32,
}

/// Number of histogram classes.
pub const CLASSES: usize = 255;

/// Calls of one function from one call site on one thread. Times are in ticks of the time stamp
/// counter.
#[repr(C, align(64))]
pub struct Entry {
    /// Return address of the calls; for a tail call, one past the start of the function that made
    /// it; 0 if there were too many call sites.
    pub place: AtomicU64,
    /// Calls started.
    pub begun: AtomicU64,
    /// Calls that returned.
    pub finished: AtomicU64,
    /// Total time of calls that returned.
    pub total: AtomicU64,
    /// Self time: the same without traced callees.
    pub own: AtomicU64,
    /// Minimum time.
    pub min: AtomicU64,
    /// Maximum time.
    pub max: AtomicU64,
    /// Index of the function.
    pub symbol: AtomicU32,
    /// Padding.
    pub spare: AtomicU32,
    /// Calls by duration, see [`class_of`].
    pub classes: [AtomicU64; CLASSES],
    /// Calls that were not timed because they were nested too deeply.
    pub untimed: AtomicU64,
}

/// Number of calls of a function with these argument values.
#[repr(C)]
pub struct Argument {
    /// Hash of function and values; 0 if unused.
    pub hash: AtomicU64,
    /// Number of calls.
    pub count: AtomicU64,
    /// Total ticks of calls that returned.
    pub total: AtomicU64,
    /// Index of the function.
    pub symbol: AtomicU32,
    /// 1 if complete.
    pub ready: AtomicU32,
    /// The values.
    pub values: [AtomicU64; MOST_ARGUMENTS],
}

/// Ticks added before the logarithm, so that the classes of very short calls have equal widths.
pub const SHIFT: u64 = 32;

/// The class of a duration: eight per octave. The agent's assembly computes the same.
pub const fn class_of(ticks: u64) -> usize {
    let shifted = ticks.saturating_add(SHIFT);
    let octave = shifted.ilog2();
    let class = (octave as usize - 5) * 8 + ((shifted >> (octave - 3)) & 7) as usize;
    if class < CLASSES { class } else { CLASSES - 1 }
}

/// The shortest duration of a class.
pub const fn class_start(class: usize) -> u64 {
    let octave = class / 8 + 5;
    ((8 + (class % 8) as u64) << (octave - 3)) - SHIFT
}

const _: () = assert!(size_of::<Entry>() == 2112 && size_of::<Argument>() == 80);
const _: () = assert!(size_of::<Tables>().is_multiple_of(8) && size_of::<Chunk>() == 64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_starts_where_the_previous_one_ends() {
        for class in 0..CLASSES {
            let start = class_start(class);
            assert_eq!(class_of(start), class);
            if class > 0 {
                assert_eq!(class_of(start - 1), class - 1);
            }
        }
        assert_eq!(class_of(u64::MAX), CLASSES - 1);
    }
}
