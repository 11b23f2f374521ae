//! The tables of the call tracer: one file in shared memory that the driver makes and every traced
//! process maps and writes.
//!
//! Counts go straight into the file, so that nothing is lost when a process is killed, leaves by
//! `_exit` or forks. A fixed part ([`Tables`]) names processes, objects, functions and threads;
//! what follows it is handed out in [`Chunk`]s of [`Entry`]s, each list of chunks written by one
//! thread alone. A row of a fixed table is reserved by its counter in the header and counts once
//! its `ready` is set. All bytes start as zero.

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

/// First word of the file. Changes with every change of this file.
pub const MAGIC: u64 = u64::from_le_bytes(*b"lagcall1");

/// Environment variable with the path of the file.
pub const VARIABLE: &str = "LAGGARD_CALLS";

/// Bytes for the patterns of one kind: texts that each end with a zero.
pub const PATTERNS: usize = 2048;
/// Program images (a fork or an exec makes a new one) that are told apart.
pub const PROCESSES: usize = 4096;
/// Programs and libraries, over all processes.
pub const OBJECTS: usize = 16384;
/// Functions, over all processes.
pub const SYMBOLS: usize = 16384;
/// Threads, over all processes.
pub const THREADS: usize = 8192;
/// Bytes for names and paths.
pub const TEXTS: usize = 3 << 20;
/// Combinations of argument values, over all functions.
pub const ARGUMENTS: usize = 16384;
/// Combinations of argument values of one function.
pub const ARGUMENTS_OF_ONE: u32 = 1024;
/// Most arguments that are kept: those in integer registers.
pub const MOST_ARGUMENTS: usize = 6;

/// The fixed part of the file.
#[repr(C)]
pub struct Tables {
    /// What is asked for, and what all processes count together.
    pub header: Header,
    /// By number of the image, less one.
    pub processes: [Process; PROCESSES],
    /// By number.
    pub objects: [Object; OBJECTS],
    /// By number.
    pub symbols: [Symbol; SYMBOLS],
    /// By number.
    pub threads: [Thread; THREADS],
    /// Names and paths, one after the other.
    pub texts: [AtomicU8; TEXTS],
    /// Open addressing by hash.
    pub arguments: [Argument; ARGUMENTS],
}

/// The start of the file.
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// Bytes of the file.
    pub size: AtomicU64,
    /// Bytes handed out, the fixed part included.
    pub used: AtomicU64,
    /// See [`options`].
    pub options: AtomicU32,
    /// Integer arguments to keep, 0 to 6.
    pub arguments: AtomicU32,
    /// Of this many calls, the whole stack of one is kept; 0 for none. A thread starts with all of
    /// its first calls and gets there by doubling.
    pub stack_every: AtomicU32,
    /// Process that is traced; 0 until the first claims it.
    pub root_pid: AtomicU32,

    /// Images that said hello; the next has this number plus one.
    pub images: AtomicU32,
    /// Rows of `objects`, may count past its end.
    pub objects: AtomicU32,
    /// Rows of `symbols`, may count past its end.
    pub symbols: AtomicU32,
    /// Rows of `threads`, may count past its end.
    pub threads: AtomicU32,
    /// Bytes of `texts`, may count past its end.
    pub texts: AtomicU32,
    /// Slots of functions without a lazy table entry that were redirected.
    pub patched: AtomicU32,
    /// Slots that could not be made writable.
    pub unpatched: AtomicU32,
    /// Processes in which calls are counted and no longer timed, because a library was loaded that
    /// moves the contents of stacks.
    pub count_only: AtomicU32,
    /// Processes that could not be told to forget their parent's tables after a fork.
    pub no_wipe: AtomicU32,
    /// Calls whose arguments found no place.
    pub arguments_lost: AtomicU64,
    /// Ticks that one traced call costs.
    pub cost: AtomicU64,
    /// Calls whose place was not kept because there was no row for their thread.
    pub table_full: AtomicU64,

    /// Path of the file that stacks go through ([`crate::wire`]), ending with a zero.
    pub ring: [AtomicU8; 256],
    /// Patterns of calling modules.
    pub from: [AtomicU8; PATTERNS],
    /// Patterns of called libraries.
    pub library: [AtomicU8; PATTERNS],
    /// Patterns of functions.
    pub function: [AtomicU8; PATTERNS],
}

/// Bits of [`Header::options`].
pub mod options {
    /// Trace programs that the root process starts too.
    pub const CHILDREN: u32 = 1;
}

/// One image of a process.
#[repr(C)]
pub struct Process {
    /// Its number in the system.
    pub pid: AtomicU32,
    /// Number of the image it was forked from and whose objects it has; 0 after an exec.
    pub parent: AtomicU32,
}

/// A program or library in one image.
#[repr(C)]
pub struct Object {
    /// Where it was loaded, less the address it was linked for.
    pub bias: AtomicU64,
    /// First address.
    pub start: AtomicU64,
    /// First address after it.
    pub end: AtomicU64,
    /// Where its path is in `texts`.
    pub path: AtomicU32,
    /// Bytes of the path.
    pub path_size: AtomicU32,
    /// Number of the image.
    pub image: AtomicU32,
    /// 1 when complete, 2 when it was unloaded.
    pub ready: AtomicU32,
}

/// A function that was bound.
#[repr(C)]
pub struct Symbol {
    /// Calls that could not be counted by thread and place.
    pub uncounted: AtomicU64,
    /// Where its name is in `texts`.
    pub name: AtomicU32,
    /// Bytes of the name.
    pub name_size: AtomicU32,
    /// Number of the object it is in.
    pub object: AtomicU32,
    /// Why it is not traced ([`Reason`] plus one), or 0; [`OWN`] for the agent's own.
    pub reason: AtomicU32,
    /// Combinations of arguments kept.
    pub combinations: AtomicU32,
    /// 1 when complete.
    pub ready: AtomicU32,
}

/// `reason` of the function with which the agent measures itself.
pub const OWN: u32 = u32::MAX;

/// Why a function is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Reason {
    /// `setjmp`, `vfork` and the like.
    ReturnsTwice = 0,
    /// `exit`, `longjmp` and the like.
    DoesNotReturn = 1,
    /// `dlopen`, `dlsym`, `dl_iterate_phdr`, … act by who calls them.
    AsksWhoCalls = 2,
    /// The unwinder walks from its caller's frame.
    Unwinds = 3,
    /// `__tls_get_addr`, `__fentry__`, … keep registers that others may change.
    OwnConvention = 4,
    /// No number left in `symbols`, or no room in `texts`.
    TooMany = 5,
}

impl Reason {
    /// All, by number.
    pub const ALL: [Reason; 6] = [
        Reason::ReturnsTwice,
        Reason::DoesNotReturn,
        Reason::AsksWhoCalls,
        Reason::Unwinds,
        Reason::OwnConvention,
        Reason::TooMany,
    ];

    /// In words, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Reason::ReturnsTwice => "it returns twice",
            Reason::DoesNotReturn => "it does not return",
            Reason::AsksWhoCalls => "it asks who calls it",
            Reason::Unwinds => "it unwinds the stack from its caller",
            Reason::OwnConvention => "it has a calling convention of its own",
            Reason::TooMany => "there are too many functions",
        }
    }
}

/// A thread in one image.
#[repr(C)]
pub struct Thread {
    /// Where its first chunk is in the file; 0 for none.
    pub first: AtomicU64,
    /// Calls nested too deep to be timed.
    pub too_deep: AtomicU64,
    /// Calls whose place was not kept because the table was full.
    pub table_full: AtomicU64,
    /// Process.
    pub pid: AtomicU32,
    /// Its number in the system.
    pub tid: AtomicU32,
    /// Number of the image.
    pub image: AtomicU32,
    /// 1 when complete.
    pub ready: AtomicU32,
    /// Its name when it was first seen, padded with zeros.
    pub name: [AtomicU8; 16],
}

/// A piece of a thread's entries. `capacity` entries follow it.
#[repr(C, align(64))]
pub struct Chunk {
    /// Where the next one is in the file; 0 for none.
    pub next: AtomicU64,
    /// Entries in use.
    pub used: AtomicU32,
    /// Entries there is room for.
    pub capacity: AtomicU32,
}

/// Classes of the histogram.
pub const CLASSES: usize = 255;

/// Calls of one function from one place on one thread. Times are in ticks of the processor's time
/// stamp counter.
#[repr(C, align(64))]
pub struct Entry {
    /// Address that the calls return to; of a tail call, one past the start of the function that
    /// made it; 0 when places were too many.
    pub place: AtomicU64,
    /// Calls begun.
    pub begun: AtomicU64,
    /// Calls that returned.
    pub finished: AtomicU64,
    /// Time in calls that returned.
    pub total: AtomicU64,
    /// The same without traced calls below.
    pub own: AtomicU64,
    /// Shortest.
    pub min: AtomicU64,
    /// Longest.
    pub max: AtomicU64,
    /// Number of the function.
    pub symbol: AtomicU32,
    /// Room.
    pub spare: AtomicU32,
    /// Calls by duration, see [`class_of`].
    pub classes: [AtomicU64; CLASSES],
    /// Calls that were not timed because they were nested too deep.
    pub untimed: AtomicU64,
}

/// How often a function was called with these values.
#[repr(C)]
pub struct Argument {
    /// Hash of function and values, never 0 in use.
    pub hash: AtomicU64,
    /// Calls.
    pub count: AtomicU64,
    /// Ticks in those that returned.
    pub total: AtomicU64,
    /// Number of the function.
    pub symbol: AtomicU32,
    /// 1 when complete.
    pub ready: AtomicU32,
    /// The values.
    pub values: [AtomicU64; MOST_ARGUMENTS],
}

/// Ticks added before the logarithm, which makes the classes of very short calls equally wide.
pub const SHIFT: u64 = 32;

/// The class of a duration: eight to an octave. The agent's assembly computes the same.
pub const fn class_of(ticks: u64) -> usize {
    let shifted = ticks.saturating_add(SHIFT);
    let octave = shifted.ilog2();
    let class = (octave as usize - 5) * 8 + ((shifted >> (octave - 3)) & 7) as usize;
    if class < CLASSES { class } else { CLASSES - 1 }
}

/// The shortest duration in a class.
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
    fn a_class_starts_where_the_one_before_ends() {
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
