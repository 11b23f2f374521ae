//! Full stacks of some calls, native and Python, sent through the sampler's ring.
//!
//! The stack of a traced program contains return addresses of the trampoline instead of the
//! callers'. They are replaced in the copy, and so is rbx, which points to a [`Frame`] meanwhile.
//! The copy then unwinds as if nothing was traced.

use super::objects::first_map;
use super::thread::Frame;
use super::{tables, trampoline};
use crate::elf::{self, Loaded};
use crate::python::{self, Interpreter, LONGEST_CHAIN, Memory};
use crate::records::{copy_stack, send_code, send_maps};
use crate::ring::Ring;
use crate::sys::{self, nr, syscall};
use crate::wire::{PythonFrame, RED_ZONE, Sample, kind, sample_flags};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};

/// Index of rbx among the DWARF registers, and of the stack pointer.
const RBX: usize = 3;
const RSP: usize = 7;

struct Shared {
    ring: UnsafeCell<Option<Ring>>,
    python: UnsafeCell<Option<Interpreter>>,
    has_python: AtomicBool,
    /// Process that has sent its mappings.
    told: AtomicU32,
    /// Whether a thread uses `chain`.
    busy: AtomicBool,
    chain: UnsafeCell<[PythonFrame; LONGEST_CHAIN]>,
}

// SAFETY: ring and interpreter are written once, before they are published; `busy` gives exclusive
// access to the buffer.
unsafe impl Sync for Shared {}

static SHARED: Shared = Shared {
    ring: UnsafeCell::new(None),
    python: UnsafeCell::new(None),
    has_python: AtomicBool::new(false),
    told: AtomicU32::new(0),
    busy: AtomicBool::new(false),
    chain: UnsafeCell::new(
        [PythonFrame { code: 0, border: 0, lasti: 0, position: 0 }; LONGEST_CHAIN],
    ),
};

/// The process's own memory, read by the kernel, which tolerates invalid addresses.
#[derive(Clone, Copy)]
struct Checked(u32);

impl Memory for Checked {
    fn load(self, address: u64) -> Option<u64> {
        let mut word = 0u64;
        let (local, remote) = ([&raw mut word as u64, 8], [address, 8]);
        // SAFETY: the kernel checks the source address, and `word` has room for eight bytes.
        let got = unsafe {
            syscall!(nr::PROCESS_VM_READV, self.0, local.as_ptr(), 1, remote.as_ptr(), 1, 0)
        };
        (got == 8).then_some(word)
    }
}

/// Opens the ring, if stacks are requested. Must run before any other thread.
pub(crate) fn open() {
    let Some(tables) = tables::tables() else { return };
    if tables.header.stack_every.load(Relaxed) != 0 {
        // SAFETY: no other thread runs yet; the driver null-terminates the path.
        unsafe { *SHARED.ring.get() = Ring::open(tables.header.ring.as_ptr().cast(), |_| true) };
    }
}

/// Looks for an interpreter among the loaded objects. The linker must hold its lock.
pub(crate) fn find_python() {
    // SAFETY: written only by `open`, before this runs.
    if SHARED.has_python.load(Acquire) || unsafe { (*SHARED.ring.get()).is_none() } {
        return;
    }
    let find = |name: &[u8]| {
        // SAFETY: relocated entries of the linker's list.
        Loaded(first_map()).find_map(|map| unsafe { elf::find(map, name) })
    };
    let found = python::find(find);
    if let Some(python) = found.and_then(|at| Interpreter::new(at, Checked(sys::getpid()))) {
        // SAFETY: not read before it is published below, and never written again.
        unsafe { *SHARED.python.get() = Some(python) };
        SHARED.has_python.store(true, Release);
    }
}

/// A call that starts.
pub(crate) struct Call {
    pub(crate) registers: [u64; 17],
    /// End of the mapping that contains the stack; 0 if unknown.
    pub(crate) stack_end: u64,
    pub(crate) symbol: u32,
    /// Number of calls that it represents.
    pub(crate) weight: u32,
}

/// Records the stack of a call that is nested in these frames.
pub(crate) fn keep(call: Call, frames: &[Frame]) {
    let Call { mut registers, stack_end, symbol, weight } = call;
    // SAFETY: written by `open`, before any call.
    let Some(ring) = (unsafe { (*SHARED.ring.get()).as_ref() }) else { return };
    let pid = sys::getpid();
    let time_ns = sys::clock_ns(sys::CLOCK_MONOTONIC);
    let told = SHARED.told.swap(pid, Relaxed);
    if told != pid {
        // A thread that used the buffer during the fork does not exist in this process.
        if told != 0 {
            SHARED.busy.store(false, Relaxed);
        }
        send_maps(ring, pid, 1, time_ns, true);
    }
    if SHARED.busy.swap(true, Acquire) {
        ring.header().dropped.fetch_add(1, Relaxed);
        return;
    }
    // SAFETY: `busy` gives exclusive access to the buffer.
    let chain = unsafe { &mut *SHARED.chain.get() };
    let (mut links, mut minor, mut flags) = (0, 0, 0);
    if SHARED.has_python.load(Acquire)
        // SAFETY: `has_python` is set only after the interpreter is written.
        && let Some(python) = unsafe { (*SHARED.python.get()).as_ref() }
    {
        let memory = Checked(pid);
        minor = python.layout.minor;
        // SAFETY: runs on the thread itself.
        (links, flags) = unsafe {
            python.walk(sys::thread_pointer(), memory, chain, |code| {
                send_code(ring, python, memory, code, pid)
            })
        };
    }
    let start = registers[RSP] - RED_ZONE;
    let limit = ring.header().stack_size.load(Relaxed);
    let limit = stack_end.checked_sub(start).map_or(limit, |size| size.min(limit));
    let python_size = links * size_of::<PythonFrame>();
    if let Some(place) = ring.reserve(size_of::<Sample>() + python_size + limit as usize, pid) {
        registers[RBX] = own_rbx(frames, registers[RBX]);
        // SAFETY: the slot has room for all parts.
        unsafe {
            let stack = place.payload.add(size_of::<Sample>() + python_size);
            let copied = copy_stack(stack, start, limit, pid);
            mend(stack, start, copied, frames);
            core::ptr::copy_nonoverlapping(
                chain.as_ptr().cast::<u8>(),
                place.payload.add(size_of::<Sample>()),
                python_size,
            );
            place.payload.cast::<Sample>().write(Sample {
                pid,
                tid: sys::gettid(),
                time_ns,
                cpu_ns: 0,
                regs: registers,
                python: links as u32,
                stack: copied as u32,
                minor,
                flags: flags | sample_flags::FOREIGN_STACK,
                about: u64::from(symbol) + 1,
                value: u64::from(weight),
            });
        }
        ring.commit(&place, kind::SAMPLE);
        ring.header().samples.fetch_add(1, Relaxed);
    }
    SHARED.busy.store(false, Release);
}

/// The caller's rbx, if it now points to one of our frames.
fn own_rbx(frames: &[Frame], mut rbx: u64) -> u64 {
    for frame in frames.iter().rev() {
        if rbx == core::ptr::from_ref(frame) as u64 {
            rbx = frame.rbx;
        }
    }
    rbx
}

/// Restores the callers' return addresses and rbx in the copy of a stack.
unsafe fn mend(copy: *mut u8, start: u64, length: u64, frames: &[Frame]) {
    let words = (length / 8) as usize;
    // SAFETY: `words` words of the copy, which the ring aligns to 8.
    let copy = unsafe { core::slice::from_raw_parts_mut(copy.cast::<u64>(), words) };
    let after = trampoline::after();
    let (Some(first), Some(last)) = (frames.first(), frames.last()) else { return };
    let ours = core::ptr::from_ref(first) as u64..=core::ptr::from_ref(last) as u64;
    for word in copy.iter_mut() {
        if ours.contains(word) {
            *word = own_rbx(frames, *word);
        }
    }
    // Innermost first: a tail call shares the slot of the call it replaces.
    for frame in frames.iter().rev() {
        let Some(offset) = frame.slot.checked_sub(start) else { continue };
        if let Some(word) = copy.get_mut((offset / 8) as usize)
            && *word == after
        {
            *word = frame.back;
        }
    }
}
