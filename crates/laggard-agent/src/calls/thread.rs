//! State of a thread whose calls are traced, and the slow paths of the trampoline.
//!
//! The trampoline takes the return address of a call off the stack, so that the function finds its
//! stack arguments where it expects them, and stores it in a [`Frame`] of a second stack. That
//! stack is private memory: after a fork, the child returns through its own copy. Counts are in the
//! shared file; a child gets its own entries.
//!
//! Frames may be left behind: a jump or an exception leaves calls without returning. A later call
//! on the same machine stack, from above their slot, shows that they are gone. A call on *another*
//! machine stack (of a signal handler or a coroutine) shows nothing, so mappings are compared
//! first.

use super::maps::{self, Area};
use super::symbols::TARGETS;
use super::{arguments, stacks, tables, trampoline};
use crate::calls_wire::{self as wire, Argument, CLASSES, Chunk, Entry, Tables};
use crate::sys::{self, nr, syscall};
use core::arch::x86_64::_rdtsc;
use core::ptr::{null, null_mut};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};

/// Maximum nesting of traced calls.
pub(crate) const DEPTH: usize = 4096;
/// Slots of the index that hashes map to, and spare slots for overflow at the end.
const SLOTS: usize = 1 << 16;
const SPARE_SLOTS: usize = 256;
/// Maximum number of call sites per thread; beyond that, calls are counted by function only.
const MOST_PLACES: u32 = 45_000;
const MOST_ENTRIES: u32 = 49_000;
/// Multiplier of the hash of the index.
pub(crate) const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// Shift of the function index in a key.
pub(crate) const KEY_SHIFT: u32 = 44;

/// A call in progress.
#[repr(C)]
pub(crate) struct Frame {
    /// Return address. The trampoline's unwind information expects it first.
    pub(crate) back: u64,
    /// The caller's rbx; the register points to this frame meanwhile.
    pub(crate) rbx: u64,
    /// Address of the return address on the machine stack; [`GONE`] if the call is over but frames
    /// above it are not.
    pub(crate) slot: u64,
    /// The entry that counts it.
    pub(crate) entry: *mut Entry,
    /// Start time.
    pub(crate) began: u64,
    /// Ticks in traced callees.
    pub(crate) below: u64,
    /// The row that counts its arguments, or null.
    pub(crate) argument: *const Argument,
    spare: u64,
}

const GONE: u64 = 0;
/// An image number that never occurs, not even before an image is registered.
const NEVER: u32 = u32::MAX;

/// A slot of the index from function and call site to entry.
#[repr(C)]
pub(crate) struct Slot {
    pub(crate) place: u64,
    pub(crate) symbol: u32,
    /// Offset of the entry in the file, in units of 64 bytes.
    pub(crate) entry: u32,
}

/// State of one thread, in private memory that is populated on demand.
#[repr(C, align(4096))]
pub(crate) struct Thread {
    /// Next free frame.
    pub(crate) top: *mut Frame,
    pub(crate) limit: *mut Frame,
    /// Start of the shared file.
    pub(crate) base: u64,
    /// Image for which the fast path may be taken; [`NEVER`] if every call takes the slow path.
    pub(crate) fast_image: u32,
    /// Calls until the next one whose stack is recorded; wraps below zero if none is requested.
    pub(crate) countdown: u32,
    /// Initial value of `countdown`.
    interval: u32,
    image: AtomicU32,
    tid: AtomicU32,
    entries: u32,
    row: *const wire::Thread,
    chunk: *mut Chunk,
    next: *mut Thread,
    /// Machine stacks that it has used.
    areas: [Area; 8],
    next_area: usize,
    buffer: [u8; 1024],
    /// Receives counts that must be discarded.
    nowhere: Entry,
    /// Below the first frame: a caller that is never gone.
    floor: Frame,
    frames: [Frame; DEPTH],
    index: Index,
}

#[repr(C, align(4096))]
struct Index([Slot; SLOTS + SPARE_SLOTS]);

pub(crate) const INDEX: usize = core::mem::offset_of!(Thread, index);

/// Number of this image in the shared table. It has its own page, which the kernel zeroes in the
/// child of a fork: 0 means that this process is not registered yet.
pub(crate) static IMAGE: Page = Page(AtomicU32::new(0));

#[repr(C, align(4096))]
pub(crate) struct Page(pub(crate) AtomicU32);

/// The image before a fork, and this process.
static LAST_IMAGE: AtomicU32 = AtomicU32::new(0);
static PID: AtomicU32 = AtomicU32::new(0);
/// Whether calls are only counted, without frames.
static ONLY_COUNT: AtomicBool = AtomicBool::new(false);
/// An address in the stack of the first thread.
pub(crate) static FIRST_STACK: AtomicU64 = AtomicU64::new(0);
/// All thread states of this process.
static THREADS: AtomicPtr<Thread> = AtomicPtr::new(null_mut());

/// Registers of the caller as the trampoline saves them, by ascending address. The stack pointer at
/// the call is the address of `back`.
#[repr(C)]
pub(crate) struct Registers {
    rbp: u64,
    r11: u64,
    r10: u64,
    r9: u64,
    r8: u64,
    rdi: u64,
    rsi: u64,
    rcx: u64,
    rdx: u64,
    rax: u64,
    back: u64,
}

impl Registers {
    /// The registers at the start of the function at `target`, in the order of
    /// [`crate::wire::Sample`].
    fn at_entry(&self, target: u64) -> [u64; 17] {
        // SAFETY: the trampoline saves rbx and r12 to r15 directly below this structure.
        let [rbx, r12, r13, r14, r15] =
            [1, 2, 3, 4, 5].map(|down| unsafe { *(&raw const self.rbp).sub(down) });
        let sp = &raw const self.back as u64;
        let (rbp, rdi, rsi) = (self.rbp, self.rdi, self.rsi);
        let first = [self.rax, self.rdx, self.rcx, rbx, rsi, rdi, rbp, sp];
        let then = [self.r8, self.r9, self.r10, self.r11, r12, r13, r14, r15, target];
        let mut all = [0; 17];
        all[..8].copy_from_slice(&first);
        all[8..].copy_from_slice(&then);
        all
    }

    /// The integer arguments.
    pub(crate) fn arguments(&self) -> [u64; wire::MOST_ARGUMENTS] {
        [self.rdi, self.rsi, self.rdx, self.rcx, self.r8, self.r9]
    }
}

/// Instructions to the trampoline at the start of a call.
#[repr(C)]
pub(crate) struct Begun {
    /// The frame; null to jump to the function without one.
    frame: *mut Frame,
    /// The function.
    target: u64,
}

/// Instructions to the trampoline at the end of a call.
#[repr(C)]
pub(crate) struct Ended {
    back: u64,
    rbx: u64,
}

/// Number of this image, which is registered if needed.
pub(crate) fn image(tables: &Tables) -> u32 {
    match IMAGE.0.load(Acquire) {
        0 => say_hello(tables),
        image => image,
    }
}

/// Switches to counting without times: frames need stacks that stay in place. Starts a new image,
/// so that every thread notices.
pub(crate) fn only_count(tables: &Tables) {
    if !ONLY_COUNT.swap(true, AcqRel) {
        tables.header.count_only.fetch_add(1, Relaxed);
        IMAGE.0.store(0, Release);
    }
}

/// Registers this image and returns its number.
pub(crate) fn say_hello(tables: &Tables) -> u32 {
    let pid = sys::getpid();
    let image = tables.header.images.fetch_add(1, AcqRel) + 1;
    if let Some(row) = tables.processes.get(image as usize - 1) {
        row.parent.store(LAST_IMAGE.load(Relaxed), Relaxed);
        row.pid.store(pid, Release);
    }
    // SAFETY: affects only our own page, which contains nothing else.
    let wiped =
        unsafe { syscall!(nr::MADVISE, &raw const IMAGE, size_of::<Page>(), sys::MADV_WIPEONFORK) };
    if wiped != 0 {
        tables.header.no_wipe.fetch_add(1, Relaxed);
    }
    match IMAGE.0.compare_exchange(0, image, AcqRel, Acquire) {
        Ok(_) => {
            LAST_IMAGE.store(image, Relaxed);
            PID.store(pid, Relaxed);
            image
        }
        Err(other) => other,
    }
}

/// Starts a call that the fast path cannot handle: the first one of a thread or at a call site, one
/// after a fork or a jump, one nested too deeply, or any if every call takes the slow path.
///
/// # Safety
/// Only for the trampoline, with the registers it saved and the index of a function.
pub(crate) unsafe extern "C" fn enter(registers: &Registers, symbol: u64) -> Begun {
    let target = TARGETS.get(symbol as usize).map_or(0, |target| target.load(Relaxed));
    let symbol = symbol as u32;
    let untraced = Begun { frame: null_mut(), target };
    let Some(tables) = tables::tables() else { return untraced };
    // SAFETY: the state belongs to this thread alone.
    let Some(thread) = (unsafe { this(tables).as_mut() }) else {
        tables.header.table_full.fetch_add(1, Relaxed);
        uncounted(tables, symbol);
        return untraced;
    };
    if thread.fast_image == NEVER {
        thread.countdown = thread.countdown.wrapping_sub(1);
    }
    let is_due = thread.countdown == 0;
    // Stays due until a call whose stack can be recorded.
    thread.countdown = thread.countdown.max(1);
    let slot = &raw const registers.back as u64;
    let only_count = ONLY_COUNT.load(Relaxed);
    let tail_of = if only_count { None } else { thread.drop_left(slot, registers.back) };
    let place = tail_of.unwrap_or(registers.back);
    let entry = thread.entry(tables, symbol, place);
    // SAFETY: entries are in the mapped file or in the state itself.
    let counted = unsafe { &*entry };
    add(&counted.begun, 1);
    if only_count {
        add(&counted.untimed, 1);
        return untraced;
    }
    if thread.top >= thread.limit {
        add(&counted.untimed, 1);
        thread.count(tables, |row| &row.too_deep);
        return untraced;
    }
    let every = tables.header.stack_every.load(Relaxed);
    if every == 0 {
        thread.countdown = u32::MAX;
    }
    if is_due && every != 0 && tail_of.is_none() {
        let _quiet = Quiet::new();
        let end = thread.area(slot).map_or(0, |area| area.end);
        let call = stacks::Call {
            registers: registers.at_entry(target),
            stack_end: end,
            symbol,
            weight: thread.interval,
        };
        stacks::keep(call, thread.frames_in_use());
        thread.interval = thread.interval.saturating_mul(2).min(every);
        // A fixed interval could be in phase with the program.
        let jitter = ticks() as u32 % (thread.interval / 2 + 1);
        thread.countdown = thread.interval - thread.interval / 4 + jitter;
    }
    let argument = arguments::count(tables, symbol, registers);
    // SAFETY: `top` is below the limit. The slot is written before and after the frame is taken,
    // because a signal handler may use the frame in between.
    unsafe {
        let frame = thread.top;
        (&raw mut (*frame).slot).write_volatile(slot);
        (&raw mut thread.top).write_volatile(frame.add(1));
        (&raw mut (*frame).slot).write_volatile(slot);
        (*frame).back = registers.back;
        (*frame).entry = entry;
        (*frame).below = 0;
        (*frame).argument = argument;
        Begun { frame, target }
    }
}

/// Ends a call that the fast path cannot handle: after a fork, with frames left above it, or any if
/// every call takes the slow path. `now` is the end time.
///
/// # Safety
/// Only for the trampoline, with the frame of the call that returned.
pub(crate) unsafe extern "C" fn leave(frame: *mut Frame, now: u64) -> Ended {
    // SAFETY: the frame is in the state of this thread, which exists because the frame does.
    unsafe {
        let ended = Ended { back: (*frame).back, rbx: (*frame).rbx };
        let Some(tables) = tables::tables() else { return ended };
        let Some(thread) = this(tables).as_mut() else { return ended };
        let ticks = now.saturating_sub((*frame).began);
        let entry = &*(*frame).entry;
        add(&entry.finished, 1);
        add(&entry.total, ticks);
        add(&entry.own, ticks.saturating_sub((*frame).below));
        entry.min.store(entry.min.load(Relaxed).min(ticks), Relaxed);
        entry.max.store(entry.max.load(Relaxed).max(ticks), Relaxed);
        if let Some(class) = entry.classes.get(wire::class_of(ticks)) {
            add(class, 1);
        }
        if let Some(argument) = (*frame).argument.as_ref()
            && thread.fast_image == NEVER
        {
            argument.total.fetch_add(ticks, Relaxed);
        }
        let above = frame.sub(1);
        if (*above).slot >= (*frame).slot {
            (*above).below += ticks;
        }
        thread.release(frame);
        ended
    }
}

impl Thread {
    /// Removes frames that a jump or an exception left behind, as a call at `slot` shows. Returns
    /// the call site of a tail call: one past the start of the function that made it.
    fn drop_left(&mut self, slot: u64, back: u64) -> Option<u64> {
        loop {
            // SAFETY: there is always a frame below the top; the lowest is the floor, whose slot is
            // above all others.
            let last = unsafe { &*self.top.sub(1) };
            if last.slot > slot {
                return None;
            }
            if last.slot == slot && back == trampoline::after() {
                // SAFETY: entries outlive frames.
                let symbol = unsafe { (*last.entry).symbol.load(Relaxed) };
                return Some(TARGETS.get(symbol as usize)?.load(Relaxed) + 1);
            }
            if last.slot != GONE && !self.is_left(last.slot, slot) {
                return None;
            }
            self.top = self.top.wrapping_sub(1);
        }
    }

    /// Releases the frame of a call that returned, and those above it unless they belong to another
    /// machine stack.
    ///
    /// # Safety
    /// The frame must belong to this state.
    unsafe fn release(&mut self, frame: *mut Frame) {
        // SAFETY: frames from `frame` to the top are in use.
        unsafe {
            let slot = (*frame).slot;
            let mut above = self.top;
            while above > frame.add(1) {
                above = above.sub(1);
                let other = (*above).slot;
                if other != GONE && (other > slot || !self.is_left(other, slot)) {
                    (*frame).slot = GONE;
                    return;
                }
            }
            self.top = frame;
            while (*self.top.sub(1)).slot == GONE {
                self.top = self.top.sub(1);
            }
        }
    }

    /// Whether the call at a deeper slot is over, as a call at `slot` shows if both are on one
    /// machine stack. A mapping that is not a thread's stack may contain several stacks; there, the
    /// call is certainly over only if its return address was overwritten.
    fn is_left(&mut self, deeper: u64, slot: u64) -> bool {
        let (Some(a), Some(b)) = (self.area(deeper), self.area(slot)) else { return true };
        if a.end != b.end {
            return false;
        }
        let is_in = |address: u64| (b.start..b.end).contains(&address);
        let is_a_stack = is_in(sys::thread_pointer()) || is_in(FIRST_STACK.load(Relaxed));
        // SAFETY: the address is in a mapping that was just found.
        is_a_stack || unsafe { (deeper as *const u64).read_volatile() } != trampoline::after()
    }

    fn area(&mut self, address: u64) -> Option<Area> {
        if let Some(area) = self.areas.iter().find(|a| (a.start..a.end).contains(&address)) {
            return Some(*area);
        }
        let area = maps::area_of(address, &mut self.buffer)?;
        // A stack that grew still has the same end.
        let at = self.areas.iter().position(|old| old.end == area.end).unwrap_or_else(|| {
            self.next_area += 1;
            self.next_area % self.areas.len()
        });
        *self.areas.get_mut(at)? = area;
        Some(area)
    }

    /// The entry that counts calls of a function from a call site, existing or new.
    fn entry(&mut self, tables: &Tables, symbol: u32, place: u64) -> *mut Entry {
        if let Some(entry) = self.find(tables, symbol, place, MOST_PLACES) {
            return entry;
        }
        self.count(tables, |row| &row.table_full);
        if let Some(entry) = self.find(tables, symbol, 0, MOST_ENTRIES) {
            return entry;
        }
        uncounted(tables, symbol);
        &raw mut self.nowhere
    }

    fn find(&mut self, tables: &Tables, symbol: u32, place: u64, most: u32) -> Option<*mut Entry> {
        let key = (u64::from(symbol) << KEY_SHIFT) ^ place;
        let home = (key.wrapping_mul(FACTOR) >> 48) as usize;
        // The last slot stays empty, which ends every search.
        for at in home..SLOTS + SPARE_SLOTS - 1 {
            let slot = self.index.0.get(at)?;
            if slot.entry == 0 {
                if self.entries >= most {
                    return None;
                }
                let _quiet = Quiet::new();
                let offset = self.new_entry(tables)?;
                let entry = tables::at(tables, offset).cast::<Entry>();
                // SAFETY: just allocated in the mapped file.
                let new = unsafe { &*entry };
                new.place.store(place, Relaxed);
                new.symbol.store(symbol, Relaxed);
                new.min.store(u64::MAX, Relaxed);
                *self.index.0.get_mut(at)? =
                    Slot { place, symbol, entry: u32::try_from(offset / 64).ok()? };
                self.publish();
                return Some(entry);
            }
            if slot.place == place && slot.symbol == symbol {
                return Some(tables::at(tables, u64::from(slot.entry) * 64).cast());
            }
        }
        None
    }

    /// Allocates an entry; [`publish`](Self::publish) makes it visible.
    fn new_entry(&mut self, tables: &Tables) -> Option<u64> {
        const HEAD: u64 = size_of::<Chunk>() as u64;
        const SIZE: u64 = size_of::<Entry>() as u64;
        // SAFETY: the chunk belongs to this thread, or is null; the row is in the mapped file, or
        // null.
        let (chunk, row) = unsafe { (self.chunk.as_ref(), self.row.as_ref()?) };
        let here = match chunk {
            Some(chunk) if chunk.used.load(Relaxed) < chunk.capacity.load(Relaxed) => chunk,
            _ => {
                let capacity = if self.entries < 4 { 4 } else { 31 };
                let Some(offset) = tables::reserve(tables, HEAD + capacity * SIZE) else {
                    // The file is full and stays full: do not try again.
                    self.entries = MOST_ENTRIES;
                    return None;
                };
                let new = tables::at(tables, offset).cast::<Chunk>();
                let link = chunk.map_or(&row.first, |chunk| &chunk.next);
                self.chunk = new;
                // SAFETY: just allocated in the mapped file.
                let new = unsafe { &*new };
                new.capacity.store(capacity as u32, Relaxed);
                link.store(offset, Release);
                new
            }
        };
        let start = core::ptr::from_ref(here) as u64 - self.base;
        Some(start + HEAD + u64::from(here.used.load(Relaxed)) * SIZE)
    }

    /// Makes the next call record its stack again.
    pub(crate) fn restart_stacks(&mut self) {
        (self.countdown, self.interval) = (1, 1);
    }

    /// Calls in progress, outermost first.
    fn frames_in_use(&self) -> &[Frame] {
        // SAFETY: frames below the top are in use.
        unsafe {
            let first = &raw const self.frames[0];
            core::slice::from_raw_parts(first, self.top.cast_const().offset_from(first) as usize)
        }
    }

    fn publish(&mut self) {
        self.entries += 1;
        // SAFETY: set by `new_entry` to a chunk in the mapped file.
        if let Some(chunk) = unsafe { self.chunk.as_ref() } {
            chunk.used.store(chunk.used.load(Relaxed) + 1, Release);
        }
    }

    fn count(&self, tables: &Tables, counter: impl Fn(&wire::Thread) -> &AtomicU64) {
        // SAFETY: in the mapped file, or null.
        match unsafe { self.row.as_ref() } {
            Some(row) => {
                add(counter(row), 1);
            }
            None => {
                tables.header.table_full.fetch_add(1, Relaxed);
            }
        }
    }

    /// Starts counting for this thread in an image, with no counts. Calls in progress continue, but
    /// their time so far belongs to the process they started in.
    fn adopt(&mut self, tables: &Tables, image: u32) {
        let all = ONLY_COUNT.load(Relaxed) || tables.header.arguments.load(Relaxed) != 0;
        self.image.store(image, Relaxed);
        self.fast_image = if all { NEVER } else { image };
        // The stack of a thread's first call is recorded, whichever path it takes.
        (self.countdown, self.interval) = (if all { 1 } else { 0 }, 1);
        self.base = core::ptr::from_ref(tables) as u64;
        self.chunk = null_mut();
        self.entries = 0;
        self.areas = [Area { start: 0, end: 0, access: 0 }; 8];
        self.row = new_row(tables, image, self.tid.load(Relaxed)).map_or(null(), |row| row);
        // SAFETY: whole pages of private memory, which are zeroed.
        unsafe {
            let index = &raw mut self.index;
            syscall!(nr::MADVISE, index, size_of::<Index>(), sys::MADV_DONTNEED);
        }
        let nowhere = &raw mut self.nowhere;
        let mut frame = &raw mut self.frames[0];
        while frame < self.top {
            // SAFETY: frames below the top are in use.
            unsafe {
                (*frame).entry = nowhere;
                (*frame).argument = null();
                frame = frame.add(1);
            }
        }
    }
}

/// The state of this thread, existing or new; null if there is no memory for it.
fn this(tables: &Tables) -> *mut Thread {
    let image = image(tables);
    let mut thread = trampoline::thread();
    if thread.is_null() {
        let _quiet = Quiet::new();
        thread = new_state();
        if thread.is_null() {
            return thread;
        }
        trampoline::set_thread(thread);
    }
    // SAFETY: the state belongs to this thread alone.
    let state = unsafe { &mut *thread };
    if state.image.load(Relaxed) != image {
        let _quiet = Quiet::new();
        state.tid.store(sys::gettid(), Relaxed);
        state.adopt(tables, image);
    }
    thread
}

/// Memory for the state of a thread: that of a thread that ended, or new.
fn new_state() -> *mut Thread {
    let tid = sys::gettid();
    let pid = PID.load(Relaxed);
    let image = IMAGE.0.load(Relaxed);
    let mut old = THREADS.load(Acquire);
    for _ in 0..32 {
        // SAFETY: states are never freed, and only the owner accesses more than the atomics.
        let Some(state) = (unsafe { old.as_ref() }) else { break };
        let owner = state.tid.load(Relaxed);
        // SAFETY: signal 0 only checks whether the thread exists.
        let ended = owner == tid || unsafe { syscall!(nr::TGKILL, pid, owner, 0) } < 0;
        // A state from before a fork may belong to the thread that forked, under its old ID.
        let is_ours = state.image.load(Relaxed) == image;
        if is_ours && ended && state.tid.compare_exchange(owner, tid, AcqRel, Relaxed).is_ok() {
            // SAFETY: the exchange made this thread the owner.
            unsafe { (*old).start() };
            return old;
        }
        old = state.next;
    }
    let access = sys::PROT_READ | sys::PROT_WRITE;
    let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE;
    // SAFETY: a new mapping of this size; all-zero bytes are a valid state.
    let new = unsafe { syscall!(nr::MMAP, 0, size_of::<Thread>(), access, flags, -1isize, 0) };
    if (-4095..0).contains(&new) {
        return null_mut();
    }
    let new = new as *mut Thread;
    // SAFETY: just mapped, and not shared yet.
    let state = unsafe { &mut *new };
    state.tid.store(tid, Relaxed);
    state.start();
    let mut first = THREADS.load(Acquire);
    loop {
        state.next = first;
        match THREADS.compare_exchange(first, new, AcqRel, Acquire) {
            Ok(_) => return new,
            Err(other) => first = other,
        }
    }
}

impl Thread {
    /// Initializes a state for its thread, except for what [`adopt`](Self::adopt) does.
    fn start(&mut self) {
        self.image.store(0, Relaxed);
        self.fast_image = NEVER;
        self.floor.slot = u64::MAX;
        self.floor.entry = &raw mut self.nowhere;
        self.top = &raw mut self.frames[0];
        self.limit = self.top.wrapping_add(DEPTH);
        self.nowhere.min.store(u64::MAX, Relaxed);
    }
}

/// Blocks all signals of the thread while it exists, because signal handlers may call traced
/// functions.
struct Quiet(u64);

impl Quiet {
    fn new() -> Quiet {
        const BLOCK: usize = 0;
        let (all, mut old) = (u64::MAX, 0u64);
        // SAFETY: both are signal sets of eight bytes.
        unsafe { syscall!(nr::RT_SIGPROCMASK, BLOCK, &raw const all, &raw mut old, 8) };
        Quiet(old)
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        const SET: usize = 2;
        // SAFETY: a signal set of eight bytes.
        unsafe { syscall!(nr::RT_SIGPROCMASK, SET, &raw const self.0, 0, 8) };
    }
}

fn new_row(tables: &Tables, image: u32, tid: u32) -> Option<&wire::Thread> {
    let most = tables.threads.len();
    let number = tables
        .header
        .threads
        .fetch_update(AcqRel, Acquire, |n| ((n as usize) < most).then_some(n + 1))
        .ok()?;
    let row = tables.threads.get(number as usize)?;
    let mut name = [0u8; 16];
    // SAFETY: the kernel writes at most 16 bytes.
    unsafe { syscall!(nr::PRCTL, sys::PR_GET_NAME, name.as_mut_ptr()) };
    for (cell, byte) in row.name.iter().zip(name) {
        cell.store(byte, Relaxed);
    }
    row.pid.store(PID.load(Relaxed), Relaxed);
    row.tid.store(tid, Relaxed);
    row.image.store(image, Relaxed);
    row.ready.store(1, Release);
    Some(row)
}

fn uncounted(tables: &Tables, symbol: u32) {
    if let Some(row) = tables.symbols.get(symbol as usize) {
        row.uncounted.fetch_add(1, Relaxed);
    }
}

/// Adds to a counter that only this thread writes.
fn add(counter: &AtomicU64, more: u64) -> u64 {
    let sum = counter.load(Relaxed).wrapping_add(more);
    counter.store(sum, Relaxed);
    sum
}

/// Ticks of the time stamp counter.
pub(crate) fn ticks() -> u64 {
    // SAFETY: every x86-64 CPU supports `rdtsc`.
    unsafe { _rdtsc() }
}

const _: () = assert!(size_of::<Frame>() == 64 && size_of::<Slot>() == 16 && CLASSES == 255);
