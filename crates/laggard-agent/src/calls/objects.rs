//! Programs and libraries of this process, and the slots of code that bypasses lazy binding.
//!
//! Code built with `-fno-plt` calls through `GLOB_DAT` slots, which the loader fills without
//! notifying auditors. Slots that point to a traced function of another object are redirected here.
//! The same slots are used to take the address of a function, so code that compares such an address
//! with one from elsewhere may see two addresses for one function. Within an object that is common
//! (CPython compares type slots with its own functions), so slots within an object are not
//! redirected, and neither are function pointers in data (`R_X86_64_64`: vtables, callback tables).

use super::policy::{Roles, moves_stacks, obstacle};
use super::{symbols, tables, thread};
use crate::calls_wire::{OBJECTS, Reason, Tables};
use crate::sys::{self, nr, syscall};
use core::ffi::CStr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

pub(crate) use crate::elf::{LinkMap, Symbol};

/// The first object of the program, which is the head of the linker's list.
static FIRST_MAP: AtomicPtr<LinkMap> = AtomicPtr::new(core::ptr::null_mut());

/// The head of the linker's list; null before the first object.
pub(crate) fn first_map() -> *const LinkMap {
    FIRST_MAP.load(Acquire)
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Dynamic {
    tag: i64,
    value: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Relocation {
    offset: u64,
    /// The symbol index in the upper half, the type in the lower half.
    what: u64,
    addend: i64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Segment {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    physical: u64,
    file_size: u64,
    size: u64,
    align: u64,
}

/// An object of this process. Rows are written under the loader's lock and never move.
pub(crate) struct Object {
    dynamic: AtomicU64,
    bias: AtomicU64,
    /// Start and end of the executable segments. Data may lie between them.
    code: [[AtomicU64; 2]; CODE_PARTS],
    /// Index in the shared table.
    pub(crate) number: AtomicU32,
    /// See [`flags`].
    flags: AtomicU32,
}

mod flags {
    pub(super) const CALLER: u32 = 1;
    pub(super) const CALLEE: u32 = 2;
    pub(super) const WITHIN: u32 = 4;
    pub(super) const PATCHED: u32 = 8;
    pub(super) const CLOSED: u32 = 16;
}

const MOST: usize = 4096;
const CODE_PARTS: usize = 4;
static ALL: [Object; MOST] = [const {
    Object {
        dynamic: AtomicU64::new(0),
        bias: AtomicU64::new(0),
        code: [const { [const { AtomicU64::new(0) }; 2] }; CODE_PARTS],
        number: AtomicU32::new(0),
        flags: AtomicU32::new(0),
    }
}; MOST];
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Registers a loaded object. Returns its index in this process; `None` if there are too many.
///
/// # Safety
/// `map` must be the loader's.
pub(crate) unsafe fn opened(tables: &'static Tables, map: &LinkMap) -> Option<u64> {
    let first = core::ptr::from_ref(map).cast_mut();
    let _ = FIRST_MAP.compare_exchange(core::ptr::null_mut(), first, AcqRel, Relaxed);
    // SAFETY: the loader's names are null-terminated.
    let name = unsafe { if map.name.is_null() { c"" } else { CStr::from_ptr(map.name.cast()) } };
    let is_program = name.is_empty();
    let mut buffer = [0u8; 1024];
    let path = if is_program { program(&mut buffer) } else { name.to_bytes() };
    let opened = if is_program { c"/proc/self/exe" } else { name };
    if moves_stacks(path) {
        thread::only_count(tables);
    }
    let extent = Extent::read(opened).unwrap_or_default();

    let local = COUNT.load(Relaxed);
    let object = ALL.get(local as usize)?;
    let number = tables
        .header
        .objects
        .fetch_update(AcqRel, Acquire, |n| ((n as usize) < OBJECTS).then_some(n + 1))
        .ok()?;
    let row = tables.objects.get(number as usize)?;
    let (start, size) = tables::keep_text(tables, path)?;
    row.path.store(start, Relaxed);
    row.path_size.store(size, Relaxed);
    row.bias.store(map.bias, Relaxed);
    row.start.store(map.bias + extent.start, Relaxed);
    row.end.store(map.bias + extent.end, Relaxed);
    row.image.store(thread::image(tables), Relaxed);
    row.ready.store(1, Release);

    let Roles { caller, callee, within } = tables::wanted(tables).roles(path, is_program);
    let bits = [(caller, flags::CALLER), (callee, flags::CALLEE), (within, flags::WITHIN)];
    object.flags.store(bits.iter().map(|(yes, bit)| if *yes { *bit } else { 0 }).sum(), Relaxed);
    object.dynamic.store(map.dynamic as u64, Relaxed);
    object.bias.store(map.bias, Relaxed);
    for (cells, part) in object.code.iter().zip(extent.code) {
        cells[0].store(map.bias + part.0, Relaxed);
        cells[1].store(map.bias + part.1, Relaxed);
    }
    object.number.store(number, Relaxed);
    COUNT.store(local + 1, Release);
    Some(u64::from(local))
}

/// Marks an object as unloaded.
pub(crate) fn closed(tables: &Tables, local: u64) {
    let Some(object) = object(local) else { return };
    object.flags.store(flags::CLOSED, Release);
    if let Some(row) = tables.objects.get(object.number.load(Relaxed) as usize) {
        row.ready.store(2, Relaxed);
    }
}

/// The object with this index in this process.
pub(crate) fn object(local: u64) -> Option<&'static Object> {
    ALL.get(..COUNT.load(Acquire) as usize)?.get(local as usize)
}

/// The address that a caller gets for a function: a stub if the call is to be traced, otherwise the
/// function.
pub(crate) fn bind(
    tables: &'static Tables,
    caller: &Object,
    callee: &Object,
    name: &[u8],
    target: u64,
) -> u64 {
    let from = caller.flags.load(Relaxed);
    let to = callee.flags.load(Relaxed);
    let within = core::ptr::eq(caller, callee);
    let chosen = from & flags::CALLER != 0
        && to & flags::CALLEE != 0
        && (!within || to & flags::WITHIN != 0);
    if !chosen || !tables::wanted(tables).function(name) {
        return target;
    }
    let number = callee.number.load(Relaxed);
    if let Some(reason) = obstacle(name) {
        symbols::leave(tables, target, name, number, reason);
        return target;
    }
    symbols::stub(tables, target, name, number).unwrap_or_else(|| {
        symbols::leave(tables, target, name, number, Reason::TooMany);
        target
    })
}

/// Redirects the slots of all objects that were not yet processed.
///
/// # Safety
/// Must be called under the loader's lock or before other threads run; the objects must be
/// relocated.
pub(crate) unsafe fn patch_all(tables: &'static Tables) {
    let count = COUNT.load(Acquire) as usize;
    for caller in ALL.iter().take(count) {
        let bits = caller.flags.load(Relaxed);
        if bits & flags::CALLER != 0 && bits & (flags::PATCHED | flags::CLOSED) == 0 {
            caller.flags.store(bits | flags::PATCHED, Relaxed);
            // SAFETY: guaranteed by the caller.
            unsafe { patch(tables, caller) };
        }
    }
}

/// # Safety
/// As for [`patch_all`].
unsafe fn patch(tables: &'static Tables, caller: &Object) {
    const RELA: i64 = 7;
    const RELASZ: i64 = 8;
    const SYMTAB: i64 = 6;
    const STRTAB: i64 = 5;
    const GLOB_DAT: u64 = 6;
    let bias = caller.bias.load(Relaxed);
    let mut entry = caller.dynamic.load(Relaxed) as *const Dynamic;
    let (mut rela, mut size, mut symtab, mut strtab) = (0, 0, 0, 0);
    if entry.is_null() {
        return;
    }
    // The loader adds the bias to addresses in place if the section is writable.
    let address = |value: u64| if value < bias { value + bias } else { value };
    // SAFETY: the dynamic section of a loaded object ends with tag 0, and its tables are mapped.
    // The slots lie in the object.
    unsafe {
        while (*entry).tag != 0 {
            match (*entry).tag {
                RELA => rela = address((*entry).value),
                RELASZ => size = (*entry).value,
                SYMTAB => symtab = address((*entry).value),
                STRTAB => strtab = address((*entry).value),
                _ => {}
            }
            entry = entry.add(1);
        }
        if rela == 0 || symtab == 0 || strtab == 0 {
            return;
        }
        let relocations = rela as *const Relocation;
        let mut page = Page::default();
        for at in 0..size as usize / size_of::<Relocation>() {
            let relocation = relocations.add(at).read_unaligned();
            let slot = (bias + relocation.offset) as *mut u64;
            if relocation.what & 0xffff_ffff != GLOB_DAT || slot.read() == 0 {
                continue;
            }
            let symbol = (symtab as *const Symbol).add((relocation.what >> 32) as usize).read();
            if !symbol.is_function() {
                continue;
            }
            let target = slot.read();
            let Some(callee) = holder(target) else { continue };
            if core::ptr::eq(caller, callee) {
                continue;
            }
            let name =
                CStr::from_ptr((strtab as *const core::ffi::c_char).add(symbol.name as usize));
            let answer = bind(tables, caller, callee, name.to_bytes(), target);
            if answer != target {
                let header = &tables.header;
                let done = page.write(slot, answer);
                let counter = if done { &header.patched } else { &header.unpatched };
                counter.fetch_add(1, Relaxed);
            }
        }
    }
}

/// The object whose code contains an address.
fn holder(address: u64) -> Option<&'static Object> {
    ALL.iter().take(COUNT.load(Acquire) as usize).find(|object| {
        object.flags.load(Relaxed) & flags::CLOSED == 0
            && object
                .code
                .iter()
                .any(|[start, end]| (start.load(Relaxed)..end.load(Relaxed)).contains(&address))
    })
}

/// The page of the last slot, and whether it is read-only: slots are adjacent.
#[derive(Default)]
struct Page {
    start: u64,
    is_read_only: bool,
}

impl Page {
    /// Writes a slot whose page may have been made read-only after relocation, and restores the
    /// protection of the page.
    ///
    /// # Safety
    /// `slot` must be in the address table of a loaded object.
    unsafe fn write(&mut self, slot: *mut u64, value: u64) -> bool {
        let start = slot as u64 & !4095;
        if self.start != start {
            let mut buffer = [0u8; 1024];
            let Some(area) = super::maps::area_of(start, &mut buffer) else { return false };
            *self = Page { start, is_read_only: area.access & sys::PROT_WRITE == 0 };
        }
        // SAFETY: the page is mapped; it is writable, or made writable here.
        unsafe {
            let both = sys::PROT_READ | sys::PROT_WRITE;
            if self.is_read_only && syscall!(nr::MPROTECT, start, 4096, both) != 0 {
                return false;
            }
            slot.write(value);
            if self.is_read_only {
                syscall!(nr::MPROTECT, start, 4096, sys::PROT_READ);
            }
        }
        true
    }
}

/// The path of the program.
fn program(buffer: &mut [u8]) -> &[u8] {
    // SAFETY: the kernel writes at most the size of the buffer.
    let size = unsafe {
        syscall!(nr::READLINK, c"/proc/self/exe".as_ptr(), buffer.as_mut_ptr(), buffer.len())
    };
    usize::try_from(size).ok().and_then(|size| buffer.get(..size)).unwrap_or(b"[program]")
}

/// Address ranges of an object, without the bias.
#[derive(Default)]
struct Extent {
    start: u64,
    end: u64,
    code: [(u64, u64); CODE_PARTS],
}

impl Extent {
    /// Read from the file, because the headers need not be mapped.
    fn read(path: &CStr) -> Option<Extent> {
        // SAFETY: the path is null-terminated, and reads are bounded by their buffers.
        unsafe {
            let file = syscall!(nr::OPEN, path.as_ptr(), sys::O_RDONLY | sys::O_CLOEXEC);
            if file < 0 {
                return None;
            }
            let mut head = [0u8; 64];
            let got = syscall!(nr::READ, file, head.as_mut_ptr(), head.len());
            let mut segments = [Segment::default(); 32];
            let offset = u64::from_le_bytes(*head[32..].first_chunk()?);
            let count = usize::from(u16::from_le_bytes([head[56], head[57]])).min(segments.len());
            let bytes = count * size_of::<Segment>();
            let read = syscall!(nr::PREAD64, file, segments.as_mut_ptr(), bytes, offset);
            syscall!(nr::CLOSE, file);
            if got != 64 || !head.starts_with(b"\x7fELF") || read != bytes as isize {
                return None;
            }
            let mut extent = Extent { start: u64::MAX, ..Extent::default() };
            let mut parts = extent.code.iter_mut();
            for segment in segments.iter().take(count).filter(|segment| segment.kind == 1) {
                let end = segment.address + segment.size;
                extent.start = extent.start.min(segment.address);
                extent.end = extent.end.max(end);
                if segment.flags & 1 != 0
                    && let Some(part) = parts.next()
                {
                    *part = (segment.address, end);
                }
            }
            (extent.end != 0).then_some(extent)
        }
    }
}
