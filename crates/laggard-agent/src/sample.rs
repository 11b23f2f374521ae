//! The sampling agent: copies registers, the stack up to its base and Python's frame chain into the
//! ring at every tick of a thread's clock.
//!
//! It is loaded with `LD_PRELOAD` and wraps `pthread_create` to reach new threads. It keeps no file
//! open and handles no signals but its own. docs/design/agent.md lists what it must not do, and
//! why. A running process can also load it: see late.rs.

use crate::children::{self, variable};
use crate::elf::{self, LinkMap, Loaded};
use crate::late;
use crate::python::{self, Addresses, Interpreter, LONGEST_CHAIN, Memory};
use crate::records::{copy_stack, send_code, send_maps};
use crate::ring::Ring;
use crate::sys::{self, nr, syscall};
use crate::thread_name::ThreadName;
use crate::wire::{self, PythonFrame, Sample, Trigger, kind, options, sample_flags};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::*};

/// Signal of the triggers other than `SigTrap`: one that is rarely used.
pub(crate) const TICK: u32 = 61;
pub(crate) const SIGTRAP: u32 = 5;
pub(crate) const SIGBUS: u32 = 7;
pub(crate) const SIGSEGV: u32 = 11;
/// Stack above the frame of a thread's first function, used by the start of the thread.
const START_OF_THREAD: u64 = 1536;

/// State of all threads, written before samples are taken.
pub(crate) struct Shared {
    pub(crate) ring: UnsafeCell<Option<Ring>>,
    python: UnsafeCell<Option<Interpreter>>,
    has_python: AtomicU32,
    pub(crate) pid: AtomicU32,
    /// Start time of this program, or of this fork of it.
    born_ns: AtomicU64,
    /// Whether the driver knows the mappings of this process: [`ANNOUNCED`] or a state before.
    announced: AtomicU32,
    /// Samples until all pages of the ring are mapped; 0 if they are.
    cold: AtomicU32,
    /// Whether the end of this process was reported.
    has_ended: AtomicU32,
    /// Number of live threads, without the first one.
    threads: AtomicI32,
    key: AtomicI32,
    libc: UnsafeCell<Libc>,
    /// The actions that the program set for our signals.
    wanted: UnsafeCell<[LibcAction; OURS.len()]>,
}

// SAFETY: the cells are written before one of our signal handlers can read them.
unsafe impl Sync for Shared {}

pub(crate) static SHARED: Shared = Shared {
    ring: UnsafeCell::new(None),
    python: UnsafeCell::new(None),
    has_python: AtomicU32::new(0),
    pid: AtomicU32::new(0),
    born_ns: AtomicU64::new(0),
    announced: AtomicU32::new(0),
    cold: AtomicU32::new(0),
    has_ended: AtomicU32::new(0),
    threads: AtomicI32::new(0),
    key: AtomicI32::new(-1),
    libc: UnsafeCell::new(Libc {
        pthread_create: None,
        set_specific: None,
        clock_gettime: None,
        sigmask: None,
        register_fork: None,
    }),
    wanted: UnsafeCell::new([LibcAction::DEFAULT; OURS.len()]),
};

type Start = unsafe extern "C" fn(*mut u8) -> *mut u8;
type PthreadCreate = unsafe extern "C" fn(*mut u64, *const u8, Start, *mut u8) -> i32;

/// Functions of libc that the process has.
#[derive(Clone, Copy)]
struct Libc {
    pthread_create: Option<PthreadCreate>,
    set_specific: Option<unsafe extern "C" fn(i32, *const u8) -> i32>,
    clock_gettime: Option<unsafe extern "C" fn(i32, *mut [u64; 2]) -> i32>,
    sigmask: Option<ChangeMask>,
    register_fork: Option<RegisterFork>,
}

impl Shared {
    /// libc's function that registers callbacks for forks.
    pub(crate) fn register_fork(&self) -> Option<RegisterFork> {
        // SAFETY: read-only after the constructor.
        unsafe { (*self.libc.get()).register_fork }
    }
}

type OnFork = Option<unsafe extern "C" fn()>;
pub(crate) type RegisterFork = unsafe extern "C" fn(OnFork, OnFork, OnFork, *const u8) -> i32;
type ChangeMask = unsafe extern "C" fn(i32, *const [u64; 16], *mut [u64; 16]) -> i32;

/// State of a thread, in separate pages because stacks may be small.
#[repr(C)]
struct Thread {
    tid: u32,
    /// The perf event while it has to be accessed, otherwise -1.
    fd: i32,
    /// The mapping that keeps the event alive without a descriptor.
    page: u64,
    timer: i32,
    /// Set until the first sample, which comes at a random time.
    is_first: bool,
    /// Whether the threads it creates inherit its event, and whether it inherited its own.
    passes_on: bool,
    has_inherited: bool,
    stack_end: u64,
    cpu_ns: u64,
    /// Event count at its last sample.
    counted: u64,
    start: Option<Start>,
    argument: *mut u8,
    name: ThreadName,
    chain: [PythonFrame; LONGEST_CHAIN],
}

/// The ring, while samples are taken.
pub(crate) fn ring() -> Option<&'static Ring> {
    // SAFETY: written before the first signal, and changed only while no handler reads it.
    unsafe { (*SHARED.ring.get()).as_ref() }
}

// The thread's state, accessed without libc and without allocation.
#[cfg(laggard_agent)]
core::arch::global_asm!(
    ".section .tbss, \"awT\", @nobits",
    ".balign 8",
    ".type laggard_thread, @object",
    ".size laggard_thread, 8",
    "laggard_thread: .zero 8",
    ".text",
);

#[cfg(laggard_agent)]
fn slot() -> *mut *mut Thread {
    let address: *mut *mut Thread;
    // SAFETY: the library is loaded at program start, so its thread-local variables have a fixed
    // offset.
    unsafe {
        core::arch::asm!(
            "mov {0}, qword ptr fs:[0]",
            "add {0}, qword ptr [rip + laggard_thread@GOTTPOFF]",
            out(reg) address,
            options(nostack, pure, readonly),
        );
    }
    address
}

#[cfg(not(laggard_agent))]
fn slot() -> *mut *mut Thread {
    static NOWHERE: AtomicU64 = AtomicU64::new(0);
    NOWHERE.as_ptr().cast()
}

// Loads that survive an invalid pointer: the SIGSEGV handler recognizes the one instruction that
// may fault, and continues after it.
#[cfg(laggard_agent)]
core::arch::global_asm!(
    ".text",
    ".type laggard_load, @function",
    "laggard_load:",
    "laggard_load_may_fault: mov rax, [rdi]",
    "mov [rsi], rax",
    "mov eax, 1",
    "ret",
    "laggard_load_failed: xor eax, eax",
    "ret",
    ".size laggard_load, . - laggard_load",
    // The return address of signal handlers.
    ".type laggard_restore, @function",
    "laggard_restore: mov eax, 15",
    "syscall",
    ".size laggard_restore, . - laggard_restore",
);

#[cfg(laggard_agent)]
unsafe extern "C" {
    fn laggard_load(address: u64, to: *mut u64) -> i32;
    safe fn laggard_load_may_fault();
    safe fn laggard_load_failed();
    pub(crate) safe fn laggard_restore();
}

#[cfg(not(laggard_agent))]
mod stand_ins {
    pub(super) unsafe fn laggard_load(_: u64, _: *mut u64) -> i32 {
        0
    }
    pub(super) fn laggard_load_may_fault() {}
    pub(super) fn laggard_load_failed() {}
    pub(crate) fn laggard_restore() {}
}
#[cfg(not(laggard_agent))]
pub(crate) use stand_ins::laggard_restore;
#[cfg(not(laggard_agent))]
use stand_ins::{laggard_load, laggard_load_failed, laggard_load_may_fault};

/// The memory of the process, with faults caught.
#[derive(Clone, Copy)]
pub(crate) struct Guarded;

impl Memory for Guarded {
    #[inline(always)]
    fn load(self, address: u64) -> Option<u64> {
        let mut word = 0;
        // SAFETY: the fault handler catches an invalid address, and `word` is valid for writes.
        (unsafe { laggard_load(address, &mut word) } != 0).then_some(word)
    }
}

/// The kernel's `struct sigaction`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Action {
    pub(crate) handler: u64,
    pub(crate) flags: u64,
    pub(crate) restorer: u64,
    pub(crate) mask: u64,
}

impl Action {
    pub(crate) const DEFAULT: Action = Action { handler: 0, flags: 0, restorer: 0, mask: 0 };
}

pub(crate) const SA_SIGINFO: u64 = 4;
pub(crate) const SA_RESTORER: u64 = 0x0400_0000;
pub(crate) const SA_ONSTACK: u64 = 0x0800_0000;
pub(crate) const SA_RESTART: u64 = 0x1000_0000;
pub(crate) const SA_NODEFER: u64 = 0x4000_0000;
const SA_RESETHAND: i32 = i32::MIN;

pub(crate) const fn bit(signal: u32) -> u64 {
    1 << (signal - 1)
}

pub(crate) unsafe fn set_action(signal: u32, new: &Action, old: *mut Action) {
    // SAFETY: guaranteed by the caller.
    unsafe { syscall!(nr::RT_SIGACTION, signal, new as *const Action, old, 8) };
}

/// Registers of the interrupted code, and its signal mask (`ucontext_t`).
#[repr(C)]
pub(crate) struct Context {
    before: [u64; 5],
    /// r8 … r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, flags, …
    pub(crate) registers: [u64; 23],
    floating: u64,
    reserved: [u64; 8],
    mask: u64,
}

pub(crate) const RSP: usize = 15;
const RIP: usize = 16;
/// Indices of DWARF registers 0 to 16 among the kernel's.
const DWARF: [usize; 17] = [13, 12, 14, 11, 9, 8, 10, RSP, 0, 1, 2, 3, 4, 5, 6, 7, RIP];

/// The kernel's `siginfo_t` of a perf event.
#[repr(C)]
pub(crate) struct Signal {
    number: i32,
    error: i32,
    pub(crate) code: i32,
    pad: i32,
    address: u64,
    /// The data of the event, the value of a timer, or the descriptor of a file.
    pub(crate) data: u64,
    kind: u32,
    flags: u32,
}

pub(crate) const TRAP_PERF: i32 = 6;
const TRAP_PERF_ASYNC: u32 = 1;

pub(crate) unsafe extern "C" fn on_fault(signal: i32, info: *mut Signal, context: *mut Context) {
    // SAFETY: the context comes from the kernel for this fault.
    unsafe {
        let registers = &mut (*context).registers;
        if registers[RIP] == laggard_load_may_fault as *const () as u64 {
            registers[RIP] = laggard_load_failed as *const () as u64;
            return;
        }
        not_ours(signal, info, context);
    }
}

/// Takes one sample. Runs in the signal handler of the sampled thread.
unsafe extern "C" fn on_tick(signal: i32, info: *mut Signal, context: *mut Context) {
    let Some(ring) = ring() else { return };
    let header = ring.header();
    let asked = header.options.load(Relaxed);
    // SAFETY: signal, info and context come from the kernel for this thread; only the thread itself
    // accesses its state.
    unsafe {
        let is_trap = signal as u32 == SIGTRAP;
        if is_trap && (*info).code != TRAP_PERF {
            return not_ours(signal, info, context);
        }
        let thread = match (*slot()).as_mut() {
            Some(thread) => thread,
            None => return,
        };
        if thread.is_first {
            after_first(thread, header);
        }
        if asked & options::EMPTY != 0 {
            return;
        }
        if !announce(ring) {
            header.dropped.fetch_add(1, Relaxed);
            return;
        }
        warm_up(ring);
        let value = if header.event_type.load(Relaxed) != 0 { count_since(thread) } else { 0 };
        let (cpu_ns, waits) = waited(header, thread.cpu_ns);
        thread.cpu_ns = cpu_ns;
        let tick = Tick {
            tid: thread.tid,
            stack_end: thread.stack_end,
            is_whole: thread.tid == SHARED.pid.load(Relaxed),
            flags: waits | if is_trap { came_late(header, info) } else { 0 },
            cpu_ns,
            value,
        };
        take(ring, &tick, &mut thread.chain, &*context, Guarded);
    }
}

/// State of [`Shared::announced`]: a thread sends the mappings.
const ANNOUNCING: u32 = 1;
/// The mappings were sent.
const ANNOUNCED: u32 = 2;
/// Samples of a process other than the first one before all pages of the ring are mapped.
const COLD: u32 = 16;

/// Sends the mappings of this process before its first sample, because most of the processes that a
/// shell starts end before they are sampled. Returns false while another thread sends them.
fn announce(ring: &Ring) -> bool {
    match SHARED.announced.compare_exchange(0, ANNOUNCING, Acquire, Acquire) {
        Ok(_) => {
            if SHARED.cold.load(Relaxed) == 0 {
                ring.populate();
            }
            tell_maps(1);
            SHARED.announced.store(ANNOUNCED, Release);
            true
        }
        Err(state) => state == ANNOUNCED,
    }
}

/// Maps all pages of the ring, which takes as long as some hundred samples, in a process that lives
/// long enough.
fn warm_up(ring: &Ring) {
    if SHARED.cold.load(Relaxed) > 0 && SHARED.cold.fetch_sub(1, Relaxed) == 1 {
        ring.populate();
    }
}

/// The state of a thread that is about to be sampled.
pub(crate) struct Tick {
    pub(crate) tid: u32,
    /// End of its stack.
    pub(crate) stack_end: u64,
    /// Whether everything up to that end is mapped if the stack pointer is near it.
    pub(crate) is_whole: bool,
    /// See [`sample_flags`].
    pub(crate) flags: u32,
    pub(crate) cpu_ns: u64,
    /// Events that the sample represents; 0 for one sampling period.
    pub(crate) value: u64,
}

/// Returns the flag of a late trap, and counts it.
pub(crate) unsafe fn came_late(header: &wire::Header, info: *const Signal) -> u32 {
    // SAFETY: the kernel passes the `siginfo_t` of a perf event.
    if unsafe { (*info).flags } & TRAP_PERF_ASYNC == 0 {
        return 0;
    }
    header.late.fetch_add(1, Relaxed);
    sample_flags::LATE
}

/// The CPU time of this thread, and whether it has mostly waited since it had `before`. Only
/// queried with the wall clock.
pub(crate) fn waited(header: &wire::Header, before: u64) -> (u64, u32) {
    if header.options.load(Relaxed) & options::WALL == 0 {
        return (0, 0);
    }
    let cpu_ns = sys::clock_ns(sys::CLOCK_THREAD_CPUTIME_ID);
    let is_waiting = cpu_ns.wrapping_sub(before) < header.period_ns.load(Relaxed) / 2;
    (cpu_ns, if is_waiting { sample_flags::WAITING } else { 0 })
}

/// Writes one sample of the calling thread, with these registers.
///
/// # Safety
/// Must be called in a signal handler of this thread; `memory` must be safe to use there.
pub(crate) unsafe fn take(
    ring: &Ring,
    tick: &Tick,
    chain: &mut [PythonFrame],
    context: &Context,
    memory: impl Memory,
) {
    let header = ring.header();
    let began = now_ns();
    let registers = &context.registers;
    // Code may keep data needed for unwinding below its stack pointer.
    let stack_pointer = registers[RSP] - wire::RED_ZONE;
    let limit = header.stack_size.load(Relaxed);
    let is_bounded = is_near(stack_pointer, tick.stack_end);
    let stack = if is_bounded { (tick.stack_end - stack_pointer).min(limit) } else { limit };
    let mut flags = tick.flags;
    if is_bounded && tick.stack_end - stack_pointer > limit {
        flags |= sample_flags::CUT;
    }
    let pid = SHARED.pid.load(Relaxed);
    // SAFETY: the context comes from the kernel for this thread, and the slot has room for
    // everything that is copied. The direct copy reads only up to the end of a mapped stack.
    unsafe {
        let (mut links, mut minor) = (0, 0);
        if let Some(python) = python(header) {
            if context.mask & (bit(SIGSEGV) | bit(SIGBUS)) != 0 {
                unblock(bit(SIGSEGV) | bit(SIGBUS));
            }
            let (count, more) = python.walk(sys::thread_pointer(), memory, chain, |code| {
                send_code(ring, python, memory, code, pid)
            });
            (links, minor) = (count, python.layout.minor);
            flags |= more;
        }
        let size = links * size_of::<PythonFrame>();
        let Some(place) = ring.reserve(size_of::<Sample>() + size + stack as usize, pid) else {
            return;
        };
        let copy = place.payload.add(size_of::<Sample>() + size);
        let mut copied = stack;
        if is_bounded && tick.is_whole {
            core::ptr::copy_nonoverlapping(stack_pointer as *const u8, copy, stack as usize);
        } else {
            // A coroutine's stack may lie directly below that of its thread, with a guard page in
            // between: only the kernel can check that.
            copied = copy_stack(copy, stack_pointer, stack, pid);
            if !is_bounded {
                flags |= sample_flags::FOREIGN_STACK;
            }
        }
        core::ptr::copy_nonoverlapping(
            chain.as_ptr().cast::<u8>(),
            place.payload.add(size_of::<Sample>()),
            size,
        );
        place.payload.cast::<Sample>().write(Sample {
            pid,
            tid: tick.tid,
            time_ns: began,
            cpu_ns: tick.cpu_ns,
            regs: DWARF.map(|at| registers[at]),
            python: links as u32,
            stack: copied as u32,
            minor,
            flags,
            about: 0,
            value: tick.value,
        });
        ring.commit(&place, kind::SAMPLE);
    }
    header.samples.fetch_add(1, Relaxed);
    header.handler_ns.fetch_add(now_ns().wrapping_sub(began), Relaxed);
}

/// Whether a stack pointer is on the stack with this end.
pub(crate) fn is_near(stack_pointer: u64, end: u64) -> bool {
    end > stack_pointer && end - stack_pointer < MOST_OF_A_STACK
}

/// Events of a thread since its last sample; 0 if unknown.
unsafe fn count_since(thread: &mut Thread) -> u64 {
    let (mut id, mut count) = (0u64, 0u64);
    // SAFETY: the kernel writes one word each. A program that closes all descriptors may have
    // reused our number: only perf events support the first call.
    unsafe {
        if syscall!(nr::IOCTL, thread.fd, PERF_ID, &raw mut id) != 0
            || syscall!(nr::READ, thread.fd, &raw mut count, 8) != 8
        {
            return 0;
        }
    }
    let since = count.saturating_sub(thread.counted);
    thread.counted = count;
    since
}

/// If the stack pointer is further than this from the base, it is on another stack.
const MOST_OF_A_STACK: u64 = 64 << 20;

/// Handles a signal that belongs to the program, as if the agent were not loaded.
pub(crate) unsafe fn not_ours(signal: i32, info: *mut Signal, context: *mut Context) {
    let number = signal as u32;
    let Some(wanted) = place_of(number) else { return };
    // SAFETY: runs the action that the program set, as the kernel would have run it.
    unsafe {
        let is_fault = (number == SIGSEGV || number == SIGBUS) && (*info).code > 0;
        let LibcAction { handler, mask, flags, .. } = *wanted;
        match handler {
            SIG_IGN if !is_fault => {}
            SIG_DFL | SIG_IGN => {
                set_action(number, &Action::DEFAULT, core::ptr::null_mut());
                // A fault recurs by itself.
                if !is_fault {
                    syscall!(nr::TGKILL, SHARED.pid.load(Relaxed), sys::gettid(), signal);
                }
            }
            handler => {
                if flags & SA_RESETHAND != 0 {
                    *wanted = LibcAction::DEFAULT;
                }
                let itself = if flags as u64 & SA_NODEFER != 0 { 0 } else { bit(number) };
                let blocked = mask[0] | itself;
                syscall!(nr::RT_SIGPROCMASK, SIG_BLOCK, &raw const blocked, 0, 8);
                type Handler = unsafe extern "C" fn(i32, *mut Signal, *mut Context);
                core::mem::transmute::<u64, Handler>(handler)(signal, info, context);
            }
        }
    }
}

/// Signals that we handle. Our loads may fault, whatever fault handler the program has.
const OURS: [u32; 4] = [SIGTRAP, TICK, SIGSEGV, SIGBUS];

/// Stores the program's action for one of our signals.
pub(crate) unsafe fn keep_wanted(signal: u32, action: &Action) {
    let Some(wanted) = place_of(signal) else { return };
    let Action { handler, flags, mask, .. } = *action;
    // SAFETY: `wanted` points to one of our entries, which only the thread that changes actions
    // writes.
    unsafe {
        *wanted = LibcAction { handler, flags: flags as i32, ..LibcAction::DEFAULT };
        (*wanted).mask[0] = mask;
    }
}

/// The program's handler for one of our signals.
pub(crate) fn wanted_handler(signal: u32) -> u64 {
    // SAFETY: `wanted` points to one of our entries.
    place_of(signal).map_or(SIG_DFL, |wanted| unsafe { (*wanted).handler })
}

/// The entry that stores the program's action for one of our signals.
fn place_of(signal: u32) -> Option<*mut LibcAction> {
    let at = OURS.iter().position(|own| *own == signal)?;
    Some(SHARED.wanted.get().cast::<LibcAction>().wrapping_add(at))
}

pub(crate) const SIG_DFL: u64 = 0;
pub(crate) const SIG_IGN: u64 = 1;
const SIG_ERR: u64 = u64::MAX;

/// libc's `struct sigaction`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct LibcAction {
    handler: u64,
    mask: [u64; 16],
    flags: i32,
    restorer: u64,
}

impl LibcAction {
    const DEFAULT: LibcAction = LibcAction { handler: 0, mask: [0; 16], flags: 0, restorer: 0 };
}

/// The program's action for one of our signals, if this process is being sampled.
fn wanted(signal: i32) -> Option<*mut LibcAction> {
    place_of(signal as u32).filter(|_| ring().is_some())
}

/// Wraps libc's function: an action for one of our signals is stored and not installed, because the
/// next sample would run it.
///
/// # Safety
/// As for libc's function of that name.
#[cfg_attr(laggard_agent, unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn sigaction(
    signal: i32,
    new: *const LibcAction,
    old: *mut LibcAction,
) -> i32 {
    // SAFETY: the caller's arguments are passed on or used as libc does.
    unsafe {
        let Some(wanted) = wanted(signal) else {
            type Real = unsafe extern "C" fn(i32, *const LibcAction, *mut LibcAction) -> i32;
            return match find_function(b"sigaction", true) {
                Some(real) => core::mem::transmute::<u64, Real>(real)(signal, new, old),
                None => -1,
            };
        };
        let before = *wanted;
        if !new.is_null() {
            *wanted = *new;
        }
        if !old.is_null() {
            *old = before;
        }
        0
    }
}

/// Wraps libc's function, for the same reason.
///
/// # Safety
/// As for libc's function of that name.
#[cfg_attr(laggard_agent, unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn signal(signal: i32, handler: u64) -> u64 {
    // SAFETY: as above.
    unsafe {
        let Some(wanted) = wanted(signal) else {
            type Real = unsafe extern "C" fn(i32, u64) -> u64;
            return match find_function(b"signal", true) {
                Some(real) => core::mem::transmute::<u64, Real>(real)(signal, handler),
                None => SIG_ERR,
            };
        };
        let before = (*wanted).handler;
        *wanted = LibcAction { handler, ..LibcAction::DEFAULT };
        before
    }
}

/// Wraps libc's function: our signals stay unblocked. If they were blocked, a thread that waits for
/// signals with `sigwait` or a `signalfd` would receive one, and all other samples would be late.
///
/// # Safety
/// As for libc's function of that name.
#[cfg_attr(laggard_agent, unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn pthread_sigmask(
    how: i32,
    set: *const [u64; 16],
    old: *mut [u64; 16],
) -> i32 {
    const EINVAL: i32 = 22;
    // SAFETY: the caller's arguments are passed on or used as libc does.
    unsafe {
        let real = (*SHARED.libc.get()).sigmask.or_else(|| {
            find_function(b"pthread_sigmask", true)
                .map(|at| core::mem::transmute::<u64, ChangeMask>(at))
        });
        let Some(real) = real else { return EINVAL };
        if set.is_null() || how == SIG_UNBLOCK as i32 || ring().is_none() {
            return real(how, set, old);
        }
        let mut open = *set;
        open[0] &= !(bit(SIGTRAP) | bit(TICK));
        real(how, &raw const open, old)
    }
}

/// Wraps libc's function, for the same reason.
///
/// # Safety
/// As for libc's function of that name.
#[cfg_attr(laggard_agent, unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn sigprocmask(
    how: i32,
    set: *const [u64; 16],
    old: *mut [u64; 16],
) -> i32 {
    // SAFETY: as above; this function stores its error in `errno`.
    unsafe {
        let error = pthread_sigmask(how, set, old);
        if error == 0 {
            return 0;
        }
        if let Some(place) = find_function(b"__errno_location", false) {
            type Place = unsafe extern "C" fn() -> *mut i32;
            *core::mem::transmute::<u64, Place>(place)() = error;
        }
        -1
    }
}

const SIG_BLOCK: usize = 0;
const SIG_UNBLOCK: usize = 1;

pub(crate) fn now_ns() -> u64 {
    // SAFETY: read-only after the constructor.
    match unsafe { (*SHARED.libc.get()).clock_gettime } {
        Some(clock) => {
            let mut time = [0u64; 2];
            // SAFETY: libc's function with its own type, which is async-signal-safe.
            unsafe { clock(sys::CLOCK_MONOTONIC as i32, &mut time) };
            time[0].wrapping_mul(1_000_000_000).wrapping_add(time[1])
        }
        None => sys::clock_ns(sys::CLOCK_MONOTONIC),
    }
}

unsafe fn unblock(signals: u64) {
    // SAFETY: changes only the mask of this thread, until the handler returns.
    unsafe { syscall!(nr::RT_SIGPROCMASK, SIG_UNBLOCK, &raw const signals, 0, 8) };
}

/// The interpreter of this process: known from the start, or announced by the driver since.
fn python(header: &wire::Header) -> Option<&'static Interpreter> {
    match SHARED.has_python.load(Acquire) {
        1 => {}
        // Another thread is writing it.
        2 => return None,
        _ => {
            let pid = SHARED.pid.load(Relaxed);
            // Addresses of an earlier program with the same process ID are invalid.
            let born = SHARED.born_ns.load(Relaxed);
            let is_ours = |one: &&wire::Interpreter| {
                one.pid.load(Acquire) == pid && one.born_ns.load(Relaxed) == born
            };
            let found = header.interpreters.iter().find(is_ours)?;
            let addresses = Addresses {
                minor: found.minor.load(Relaxed),
                gil_state: found.gil_state.load(Relaxed),
                current: found.current.load(Relaxed),
                code_type: found.code_type.load(Relaxed),
                runtime: found.runtime.load(Relaxed),
            };
            let interpreter = Interpreter::new(addresses, Guarded)?;
            SHARED.has_python.compare_exchange(0, 2, Acquire, Relaxed).ok()?;
            // SAFETY: state 2 gives this thread exclusive access.
            unsafe { *SHARED.python.get() = Some(interpreter) };
            SHARED.has_python.store(1, Release);
        }
    }
    // SAFETY: state 1 means that it is written and does not change.
    unsafe { (*SHARED.python.get()).as_ref() }
}

/// The kernel's `struct perf_event_attr`, up to version 7.
#[repr(C)]
#[derive(Default)]
pub(crate) struct PerfEvent {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    rest: [u64; 10],
}

/// The clock of a thread's CPU time in user code, disabled.
pub(crate) fn clock_event(period: u64) -> PerfEvent {
    PerfEvent {
        kind: PERF_TYPE_SOFTWARE,
        size: size_of::<PerfEvent>() as u32,
        config: PERF_COUNT_SW_TASK_CLOCK,
        period,
        flags: DISABLED | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
        ..PerfEvent::default()
    }
}

impl PerfEvent {
    /// Makes the event signal the thread synchronously with `mark`, and makes new threads inherit
    /// it.
    pub(crate) fn signal_and_pass_on(&mut self, mark: u64) {
        self.flags |= WITH_SIGTRAP | REMOVE_ON_EXEC | INHERIT | INHERIT_THREAD;
        self.rest[SIGNAL_DATA] = mark;
    }
}

/// Index of the signal data in `rest`.
const SIGNAL_DATA: usize = 9;

/// Moves a descriptor to a high number, because programs expect the low numbers for themselves.
pub(crate) unsafe fn high_descriptor(fd: isize) -> isize {
    const F_DUPFD_CLOEXEC: usize = 1030;
    // SAFETY: the caller owns the descriptor.
    unsafe {
        let high = syscall!(nr::FCNTL, fd, F_DUPFD_CLOEXEC, 400);
        if high < 0 {
            return fd;
        }
        syscall!(nr::CLOSE, fd);
        high
    }
}

/// Makes an event send our signal to a thread when it overflows.
pub(crate) unsafe fn own_signal(fd: isize, tid: u32) {
    const F_SETFL: usize = 4;
    const F_SETSIG: usize = 10;
    const F_SETOWN_EX: usize = 15;
    const O_ASYNC_NONBLOCK: usize = 0o20000 | 0o4000;
    let owner = [0i32, tid as i32];
    // SAFETY: the caller owns the descriptor, and `owner` outlives the call.
    unsafe {
        syscall!(nr::FCNTL, fd, F_SETOWN_EX, owner.as_ptr());
        syscall!(nr::FCNTL, fd, F_SETSIG, TICK);
        syscall!(nr::FCNTL, fd, F_SETFL, O_ASYNC_NONBLOCK);
    }
}

const DISABLED: u64 = 1;
const INHERIT: u64 = 1 << 1;
const BY_FREQUENCY: u64 = 1 << 10;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const INHERIT_THREAD: u64 = 1 << 35;
const REMOVE_ON_EXEC: u64 = 1 << 36;
const WITH_SIGTRAP: u64 = 1 << 37;
const PERF_TYPE_SOFTWARE: u32 = 1;
const PERF_COUNT_SW_TASK_CLOCK: u64 = 1;
const PERF_FLAG_FD_CLOEXEC: usize = 8;
pub(crate) const PERF_ENABLE: usize = 0x2400;
const PERF_PERIOD: usize = 0x4008_2404;
pub(crate) const PERF_ID: usize = 0x8008_2407;

/// Starts the best available clock for the calling thread.
fn arm(thread: &mut Thread) {
    let Some(ring) = ring() else { return };
    let header = ring.header();
    let wanted = header.trigger.load(Relaxed);
    let asked = header.options.load(Relaxed);
    let wanted = if asked & options::WALL != 0 { Trigger::Wall as u32 } else { wanted };
    if thread.has_inherited {
        return;
    }
    let mut first_error = 0;
    let mut number = wanted;
    while let Some(trigger) = Trigger::from_number(number) {
        let done = match trigger {
            Trigger::SigTrap | Trigger::Overflow => arm_event(thread, header, trigger),
            Trigger::Timer => arm_timer(thread, header, THREAD_CLOCK),
            Trigger::Wall => arm_timer(thread, header, sys::CLOCK_MONOTONIC),
        };
        match done {
            Ok(()) => {
                let _ = header.got_trigger.compare_exchange(0, number + 1, Relaxed, Relaxed);
                return;
            }
            Err(error) if first_error == 0 => {
                first_error = error;
                let _ = header.trigger_error.compare_exchange(0, error, Relaxed, Relaxed);
            }
            Err(_) => {}
        }
        // A timer cannot count other events than time.
        if trigger == Trigger::Timer
            || trigger == Trigger::Overflow && header.event_type.load(Relaxed) != 0
        {
            break;
        }
        number += 1;
    }
    header.unarmed.fetch_add(1, Relaxed);
}

fn arm_event(thread: &mut Thread, header: &wire::Header, trigger: Trigger) -> Result<(), u32> {
    let inherit = thread.passes_on && trigger == Trigger::SigTrap;
    let period = header.period_ns.load(Relaxed).max(1000);
    // If all threads started at zero, those that use less than a period would never be sampled.
    open_event(thread, header, trigger, if inherit { period } else { random_below(period) })
}

/// Starts an event whose first sample comes after `first` nanoseconds.
fn open_event(
    thread: &mut Thread,
    header: &wire::Header,
    trigger: Trigger,
    first: u64,
) -> Result<(), u32> {
    let inherit = thread.passes_on && trigger == Trigger::SigTrap;
    let period = header.period_ns.load(Relaxed).max(1000);
    let is_clock = header.event_type.load(Relaxed) == 0;
    let mut event = clock_event(first);
    if !is_clock {
        event.kind = (header.event_type.load(Relaxed) - 1) as u32;
        event.config = header.event_config.load(Relaxed);
        event.period = header.rate.load(Relaxed);
        event.flags |= BY_FREQUENCY;
    }
    if trigger == Trigger::SigTrap {
        event.flags |= WITH_SIGTRAP | REMOVE_ON_EXEC;
        if inherit {
            event.flags |= INHERIT | INHERIT_THREAD;
        }
    }
    // Moving the descriptor to a high number makes the kernel enlarge the table of descriptors, which
    // is expensive for processes that are started by the thousand. Theirs is closed at once.
    let is_short =
        !inherit && SHARED.cold.load(Relaxed) == COLD && trigger == Trigger::SigTrap && is_clock;
    if is_short {
        event.flags &= !DISABLED;
    }
    // SAFETY: `event` outlives the call and belongs to the calling thread; the descriptor is the
    // one just opened.
    unsafe {
        let fd =
            syscall!(nr::PERF_EVENT_OPEN, &raw const event, 0, -1i64, -1i64, PERF_FLAG_FD_CLOEXEC);
        if fd < 0 {
            return Err(-fd as u32);
        }
        let fd = if is_short { fd } else { high_descriptor(fd) };
        if trigger == Trigger::Overflow {
            own_signal(fd, thread.tid);
        }
        thread.fd = fd as i32;
        thread.is_first = !inherit && is_clock && event.period != period;
        if !inherit && trigger == Trigger::SigTrap {
            // The mapping keeps the event alive when its descriptor is closed, by us or by a
            // program that closes all descriptors.
            let page = syscall!(nr::MMAP, 0, 4096, sys::PROT_READ, sys::MAP_SHARED, fd, 0);
            thread.page = if page > 0 { page as u64 } else { 0 };
            if is_short && thread.page == 0 {
                thread.fd = high_descriptor(fd) as i32;
            }
        }
        if !is_short {
            syscall!(nr::IOCTL, fd, PERF_ENABLE, 0);
        }
        // The descriptor is needed to read event counts, and to change the period.
        if thread.page != 0 && is_clock && (is_short || !thread.is_first) {
            syscall!(nr::CLOSE, fd);
            thread.fd = -1;
        }
    }
    Ok(())
}

/// Sets the regular period: the first sample of a thread comes at a random time, the others one
/// period apart.
unsafe fn after_first(thread: &mut Thread, header: &wire::Header) {
    thread.is_first = false;
    let period = header.period_ns.load(Relaxed).max(1000);
    if thread.fd < 0 && thread.page != 0 {
        let first = core::mem::take(&mut thread.page);
        // SAFETY: the mapping is ours, and keeps the only reference to the first event.
        unsafe { syscall!(nr::MUNMAP, first, 4096) };
        if open_event(thread, header, Trigger::SigTrap, period).is_err() {
            header.unarmed.fetch_add(1, Relaxed);
        }
        return;
    }
    // SAFETY: only perf events support this ioctl, so the descriptor is ours if it succeeds.
    unsafe {
        let done = syscall!(nr::IOCTL, thread.fd, PERF_PERIOD, &raw const period);
        if done == 0 && thread.page != 0 {
            syscall!(nr::CLOSE, thread.fd);
            thread.fd = -1;
        }
    }
}

const THREAD_CLOCK: usize = sys::CLOCK_THREAD_CPUTIME_ID;

fn arm_timer(thread: &mut Thread, header: &wire::Header, clock: usize) -> Result<(), u32> {
    const SIGEV_THREAD_ID: u64 = 4;
    let mut event = [0u64; 8];
    event[1] = u64::from(TICK) | SIGEV_THREAD_ID << 32;
    event[2] = u64::from(thread.tid);
    let mut timer = 0i32;
    let period = header.period_ns.load(Relaxed).max(1000);
    let first = random_below(period);
    const SECOND: u64 = 1_000_000_000;
    let times = [period / SECOND, period % SECOND, first / SECOND, first % SECOND];
    // SAFETY: `event`, `timer` and `times` outlive the calls; the timer signals the calling thread.
    unsafe {
        let made = syscall!(nr::TIMER_CREATE, clock, event.as_ptr(), &raw mut timer);
        if made < 0 {
            return Err(-made as u32);
        }
        thread.timer = timer;
        syscall!(nr::TIMER_SETTIME, timer, 0, times.as_ptr(), 0);
    }
    Ok(())
}

/// A pseudo-random number from 1 to about `limit`, different for every thread and time.
pub(crate) fn random_below(limit: u64) -> u64 {
    let mut x = now_ns() ^ u64::from(sys::gettid()) << 40;
    for _ in 0..2 {
        x = (x ^ x >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    // A period of less than a few microseconds would spend more time in ticks than in the program.
    (x >> 16) % limit.max(1) + 10_000.min(limit)
}

fn new_thread() -> *mut Thread {
    let size = size_of::<Thread>();
    let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS;
    // SAFETY: new zeroed pages of this size, for which all-zero bytes are a valid `Thread`.
    unsafe {
        let at = syscall!(nr::MMAP, 0, size, sys::PROT_READ | sys::PROT_WRITE, flags, -1i64, 0);
        if at < 0 {
            return core::ptr::null_mut();
        }
        let thread = at as *mut Thread;
        (*thread).fd = -1;
        (*thread).timer = -1;
        thread
    }
}

/// Releases the state of a thread and its resources.
unsafe fn free_thread(thread: *mut Thread) {
    // SAFETY: the caller gives up the thread's state.
    unsafe {
        if (*thread).page != 0 {
            syscall!(nr::MUNMAP, (*thread).page, 4096);
        }
        if (*thread).fd >= 0 {
            syscall!(nr::CLOSE, (*thread).fd);
        }
        if (*thread).timer >= 0 {
            syscall!(nr::TIMER_DELETE, (*thread).timer);
        }
        syscall!(nr::MUNMAP, thread, size_of::<Thread>());
    }
}

/// The first function of every thread.
unsafe extern "C" fn thread_main(state: *mut u8) -> *mut u8 {
    let thread = state.cast::<Thread>();
    let here: u64;
    // SAFETY: `pthread_create` allocated the state for this thread.
    unsafe {
        core::arch::asm!("mov {0}, rsp", out(reg) here, options(nomem, nostack));
        (*thread).tid = sys::gettid();
        (*thread).stack_end = here + START_OF_THREAD;
        *slot() = thread;
        if let Some(ring) = ring() {
            (*thread).name.send(ring, SHARED.pid.load(Relaxed));
        }
        // Threads are often created with all signals blocked.
        unblock(bit(SIGTRAP) | bit(TICK));
        if let Some(set) = (*SHARED.libc.get()).set_specific {
            set(SHARED.key.load(Relaxed), state);
        }
        arm(&mut *thread);
        match (*thread).start {
            Some(start) => start((*thread).argument),
            None => core::ptr::null_mut(),
        }
    }
}

/// Runs when a thread ends, in whatever way.
unsafe extern "C" fn thread_end(state: *mut u8) {
    let thread = state.cast::<Thread>();
    // SAFETY: runs on the thread itself, after its own code.
    unsafe {
        SHARED.threads.fetch_sub(1, Relaxed);
        send_thread_end(&*thread);
        *slot() = core::ptr::null_mut();
        free_thread(thread);
    }
}

fn send_thread_end(thread: &Thread) {
    let Some(ring) = ring() else { return };
    let pid = SHARED.pid.load(Relaxed);
    let mut name = [0u8; 16];
    // SAFETY: the kernel writes 16 bytes, for which `name` has room.
    unsafe { syscall!(nr::PRCTL, sys::PR_GET_NAME, name.as_mut_ptr()) };
    let record = wire::Thread {
        pid,
        tid: thread.tid,
        cpu_ns: sys::clock_ns(THREAD_CLOCK),
        name,
        has_inherited: u64::from(thread.has_inherited),
    };
    if let Some(place) = ring.reserve(size_of::<wire::Thread>(), pid) {
        // SAFETY: the slot has room for the record.
        unsafe { place.payload.cast::<wire::Thread>().write(record) };
        ring.commit(&place, kind::THREAD_END);
    }
}

/// Wraps libc's function: the new thread starts its clock before its own code.
///
/// # Safety
/// As for libc's function of that name.
#[cfg_attr(laggard_agent, unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn pthread_create(
    id: *mut u64,
    attributes: *const u8,
    start: Start,
    argument: *mut u8,
) -> i32 {
    const EAGAIN: i32 = 11;
    // SAFETY: the arguments are passed on unchanged.
    unsafe {
        let mut real = (*SHARED.libc.get()).pthread_create;
        if real.is_none() {
            // Before our constructor, or in a process that is not sampled.
            real = find_function(b"pthread_create", true)
                .map(|at| core::mem::transmute::<u64, PthreadCreate>(at));
        }
        let Some(real) = real else { return EAGAIN };
        // A thread without state creates threads that are not sampled: before the constructor, or
        // in a forked process that is not sampled.
        let thread = if ring().is_some() && !(*slot()).is_null() {
            new_thread()
        } else {
            core::ptr::null_mut()
        };
        if thread.is_null() {
            return real(id, attributes, start, argument);
        }
        // Threads that are sampled at the same time rely on the mappings.
        if let Some(ring) = ring() {
            announce(ring);
        }
        if let Some(python) = ring().and_then(|ring| python(ring.header())) {
            (*thread).name.of_new_thread(python);
        }
        (*thread).start = Some(start);
        (*thread).argument = argument;
        (*thread).has_inherited = pass_on(&mut **slot());
        SHARED.threads.fetch_add(1, Relaxed);
        let result = real(id, attributes, thread_main, thread.cast());
        if result != 0 {
            SHARED.threads.fetch_sub(1, Relaxed);
            syscall!(nr::MUNMAP, thread, size_of::<Thread>());
        }
        result
    }
}

/// Whether the threads that this one creates inherit its event. If there are many threads, the
/// event is replaced by one that can be inherited: context switches between threads with separate
/// events are more expensive than between threads that share one.
fn pass_on(thread: &mut Thread) -> bool {
    if thread.has_inherited || thread.passes_on {
        return true;
    }
    let Some(ring) = ring() else { return false };
    let header = ring.header();
    let is_time = SHARED.threads.load(Relaxed) >= header.many_threads.load(Relaxed) as i32;
    let has_event = header.got_trigger.load(Relaxed) == Trigger::SigTrap as u32 + 1
        && header.event_type.load(Relaxed) == 0;
    if !is_time || !has_event {
        return false;
    }
    let old = (thread.fd, thread.page);
    (thread.fd, thread.page, thread.passes_on) = (-1, 0, true);
    if arm_event(thread, header, Trigger::SigTrap).is_err() {
        (thread.fd, thread.page, thread.passes_on) = (old.0, old.1, false);
        return false;
    }
    // SAFETY: the event was just replaced; its mapping and descriptor, if any, are ours.
    unsafe {
        if old.1 != 0 {
            syscall!(nr::MUNMAP, old.1, 4096);
        }
        if old.0 >= 0 {
            syscall!(nr::CLOSE, old.0);
        }
    }
    true
}

/// Enables or disables the calling thread's perf events, to measure the overhead of sampling.
#[cfg_attr(laggard_agent, unsafe(no_mangle))]
pub(crate) extern "C" fn laggard_toggle(on: i32) {
    const PR_TASK_PERF_EVENTS_DISABLE: usize = 31;
    let call = PR_TASK_PERF_EVENTS_DISABLE + usize::from(on != 0);
    // SAFETY: affects only the events of this thread.
    unsafe { syscall!(nr::PRCTL, call) };
}

unsafe extern "C" fn after_fork() {
    // SAFETY: runs in the only thread of a new process.
    unsafe {
        let Some(ring) = ring() else { return };
        let thread = *slot();
        SHARED.pid.store(sys::getpid(), Relaxed);
        if thread.is_null() {
            return;
        }
        // The event and the mapping belong to the parent; a descriptor may have been inherited.
        if (*thread).fd >= 0 {
            syscall!(nr::CLOSE, (*thread).fd);
        }
        ((*thread).fd, (*thread).page, (*thread).timer) = (-1, 0, -1);
        ((*thread).passes_on, (*thread).has_inherited) = (false, false);
        (*thread).counted = 0;
        SHARED.threads.store(0, Relaxed);
        SHARED.announced.store(0, Relaxed);
        SHARED.cold.store(COLD, Relaxed);
        SHARED.has_ended.store(0, Relaxed);
        if ring.header().options.load(Relaxed) & options::CHILDREN == 0 {
            *slot() = core::ptr::null_mut();
            return;
        }
        (*thread).tid = sys::gettid();
        children::count(ring, 1);
        arm(&mut *thread);
    }
}

pub(crate) fn tell_maps(moment: u32) {
    if let Some(ring) = ring() {
        let now = now_ns();
        if moment == 1 {
            SHARED.born_ns.store(now, Relaxed);
        }
        let has_python = SHARED.has_python.load(Relaxed) == 1;
        send_maps(ring, SHARED.pid.load(Relaxed), moment, now, has_python);
    }
}

/// Address of a function by its name; `others` excludes this library.
pub(crate) fn find_function(name: &[u8], others: bool) -> Option<u64> {
    let own = own_dynamic();
    Loaded(first_loaded()).find_map(|map| {
        // SAFETY: an entry of the linker's list.
        let at = unsafe { elf::find(map, name)? };
        (!others || map.dynamic as u64 != own).then_some(at)
    })
}

/// The dynamic section of this library, which identifies it in the linker's list.
#[cfg(laggard_agent)]
fn own_dynamic() -> u64 {
    let address;
    // SAFETY: only computes an address.
    unsafe {
        core::arch::asm!("lea {0}, [rip + _DYNAMIC]", out(reg) address, options(nomem, nostack));
    }
    address
}

#[cfg(not(laggard_agent))]
fn own_dynamic() -> u64 {
    0
}

#[cfg(laggard_agent)]
fn first_loaded() -> *const LinkMap {
    #[repr(C)]
    struct Debug {
        version: i32,
        map: *const LinkMap,
    }
    unsafe extern "C" {
        static _r_debug: Debug;
    }
    // SAFETY: a variable of the dynamic linker with this layout.
    unsafe { _r_debug.map }
}

#[cfg(not(laggard_agent))]
fn first_loaded() -> *const LinkMap {
    core::ptr::null()
}

/// Looks up functions of libc, and the interpreter.
unsafe fn look_up() {
    // SAFETY: runs in the constructor, under the dynamic linker's lock; the functions have the
    // types that belong to their names.
    unsafe {
        let libc = &mut *SHARED.libc.get();
        libc.pthread_create = find_function(b"pthread_create", true)
            .map(|at| core::mem::transmute::<u64, PthreadCreate>(at));
        libc.set_specific = find_function(b"pthread_setspecific", false)
            .map(|at| core::mem::transmute::<u64, unsafe extern "C" fn(i32, *const u8) -> i32>(at));
        libc.sigmask = find_function(b"pthread_sigmask", true)
            .map(|at| core::mem::transmute::<u64, ChangeMask>(at));
        // The vdso function is preferred, because libc's may be wrapped to return another time.
        let clock = find_function(b"__vdso_clock_gettime", false)
            .or_else(|| find_function(b"clock_gettime", false));
        libc.clock_gettime = clock.map(|at| {
            core::mem::transmute::<u64, unsafe extern "C" fn(i32, *mut [u64; 2]) -> i32>(at)
        });
        libc.register_fork = find_function(b"__register_atfork", false)
            .map(|at| core::mem::transmute::<u64, RegisterFork>(at));
        let found = python::find(|name| find_function(name, false));
        if let Some(python) = found.and_then(|at| Interpreter::new(at, Guarded)) {
            // Binds the dependencies of these functions outside of the signal handler.
            python.bind();
            *SHARED.python.get() = Some(python);
            SHARED.has_python.store(1, Release);
        }
    }
}

/// The constructor: runs before the program's own code, or when the library is loaded late.
unsafe extern "C" fn on_load(_: i32, _: *const *const u8, variables: *const *const u8) {
    // SAFETY: called once by the dynamic linker, with the program's environment.
    unsafe {
        let Some(path) = variable(variables, wire::RING_VARIABLE.as_bytes()) else {
            // Loaded late: sampling does not start until it is requested.
            look_up();
            late::on_load();
            return;
        };
        late::is_preloaded();
        let pid = sys::getpid();
        let is_wanted = |header: &wire::Header| {
            let root = header.root_pid.compare_exchange(0, pid, AcqRel, Acquire);
            root.unwrap_or_else(|root| root) == pid
                || root == Ok(0)
                || header.options.load(Relaxed) & options::CHILDREN != 0
        };
        let Some(ring) = Ring::open(path, is_wanted) else { return };
        SHARED.pid.store(pid, Relaxed);
        let is_root = ring.header().root_pid.load(Relaxed) == pid;
        if !is_root {
            if let Some(reason) = children::exclusion_of_this(variables) {
                children::report_this(&ring, reason);
                ring.close();
                return;
            }
            children::count(&ring, 1);
            SHARED.cold.store(COLD, Relaxed);
        }
        look_up();
        let libc = &mut *SHARED.libc.get();
        if let Some(create) = find_function(b"pthread_key_create", false) {
            type End = unsafe extern "C" fn(*mut u8);
            type KeyCreate = unsafe extern "C" fn(*mut i32, End) -> i32;
            let create = core::mem::transmute::<u64, KeyCreate>(create);
            let mut key = 0;
            if create(&mut key, thread_end) == 0 {
                SHARED.key.store(key, Relaxed);
            } else {
                libc.set_specific = None;
            }
        }
        if let Some(register) = libc.register_fork {
            register(None, None, Some(after_fork), core::ptr::null());
        }
        let fault = Action {
            handler: on_fault as *const () as u64,
            flags: SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTORER,
            restorer: laggard_restore as *const () as u64,
            mask: 0,
        };
        for signal in [SIGSEGV, SIGBUS] {
            let mut old = Action::DEFAULT;
            set_action(signal, &fault, &raw mut old);
            keep_wanted(signal, &old);
        }
        let tick = Action {
            handler: on_tick as *const () as u64,
            flags: SA_SIGINFO | SA_RESTART | SA_RESTORER,
            restorer: laggard_restore as *const () as u64,
            mask: !(bit(SIGSEGV) | bit(SIGBUS)),
        };
        set_action(SIGTRAP, &tick, core::ptr::null_mut());
        set_action(TICK, &tick, core::ptr::null_mut());
        *SHARED.ring.get() = Some(ring);
        let thread = new_thread();
        if thread.is_null() {
            return;
        }
        (*thread).tid = sys::gettid();
        // Arguments and environment lie above the first frame.
        (*thread).stack_end = variables as u64;
        *slot() = thread;
        unblock(bit(SIGTRAP) | bit(TICK));
        if is_root && let Some(ring) = crate::sample::ring() {
            announce(ring);
        }
        arm(&mut *thread);
    }
}

/// The destructor: runs when the program calls `exit` or returns from `main`.
unsafe extern "C" fn on_unload() {
    late::on_unload();
    report_end();
}

/// Reports the CPU time of this process and, if it was sampled, its mappings and the thread that
/// ends it.
pub(crate) fn report_end() {
    let Some(ring) = ring() else { return };
    // SAFETY: reads the slot of the thread that ends the process.
    let thread = unsafe { *slot() };
    if thread.is_null() || SHARED.has_ended.swap(1, Relaxed) != 0 {
        return;
    }
    let header = ring.header();
    let [user, system] = sys::cpu_times();
    header.ended_user_ns.fetch_add(user, Relaxed);
    header.ended_system_ns.fetch_add(system, Relaxed);
    if SHARED.announced.load(Acquire) == ANNOUNCED {
        tell_maps(2);
        // SAFETY: not null, and the state belongs to this thread.
        send_thread_end(unsafe { &*thread });
    }
}

#[cfg(laggard_agent)]
#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: unsafe extern "C" fn(i32, *const *const u8, *const *const u8) = on_load;

#[cfg(laggard_agent)]
#[used]
#[unsafe(link_section = ".fini_array")]
static ON_UNLOAD: unsafe extern "C" fn() = on_unload;
