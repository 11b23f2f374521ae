//! Traced functions: their indices, their real addresses and their stubs.
//!
//! A caller gets a stub instead of the function. The stub loads the index of the function and jumps
//! to the common entry. All stubs are written at the start, so that no memory is ever writable and
//! executable at the same time, and no lock is needed later.

use super::tables::keep_text;
use crate::calls_wire::{Reason, SYMBOLS, Symbol, Tables};
use crate::sys::{self, nr, syscall};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// Real addresses by index of the function; read by the trampoline.
pub(crate) static TARGETS: [AtomicU64; SYMBOLS] = [const { AtomicU64::new(0) }; SYMBOLS];

/// Function indices of this process by address and name, with open addressing. Entries are never
/// removed; those of an unloaded library are replaced.
static KNOWN: [Known; 2 * SYMBOLS] =
    [const { Known { key: AtomicU64::new(0), number: AtomicU32::new(0) } }; 2 * SYMBOLS];

static STUBS: AtomicU64 = AtomicU64::new(0);
const STUB: usize = 16;

struct Known {
    key: AtomicU64,
    /// Index plus one; 0 until it is known.
    number: AtomicU32,
}

/// Writes all stubs. They jump to `entry` with the index of the function in r11.
pub(crate) fn write_stubs(entry: u64) -> Option<()> {
    let bytes = ((SYMBOLS + 1) * STUB).next_multiple_of(4096);
    let access = sys::PROT_READ | sys::PROT_WRITE;
    let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS;
    // SAFETY: a new mapping, written within its bounds before it is published.
    unsafe {
        let start = syscall!(nr::MMAP, 0, bytes, access, flags, -1isize, 0);
        if (-4095..0).contains(&start) {
            return None;
        }
        let start = start as u64;
        (start as *mut u64).write(entry);
        for number in 0..SYMBOLS as u64 {
            let stub = stub_at(start, number);
            // mov r11d, number; jmp [rip + distance to the first word]
            let [a, b, c, d] = (number as u32).to_le_bytes();
            let [e, f, g, h] = (start as i64 - (stub as i64 + 12)).to_le_bytes()[..4] else {
                return None;
            };
            let code = [0x41, 0xbb, a, b, c, d, 0xff, 0x25, e, f, g, h, 0xcc, 0xcc, 0xcc, 0xcc];
            (stub as *mut [u8; STUB]).write_unaligned(code);
        }
        if syscall!(nr::MPROTECT, start, bytes, sys::PROT_READ | sys::PROT_EXEC) != 0 {
            return None;
        }
        STUBS.store(start, Release);
    }
    Some(())
}

fn stub_at(start: u64, number: u64) -> u64 {
    start + (number + 1) * STUB as u64
}

/// The stub of a function, existing or new; `None` if there are too many functions.
///
/// Two threads that bind the same function concurrently may get two indices for it; the driver adds
/// them up.
pub(crate) fn stub(tables: &Tables, target: u64, name: &[u8], object: u32) -> Option<u64> {
    let slot = slot(tables, target, name, object);
    if let Some(number) = slot.and_then(|slot| slot.number.load(Acquire).checked_sub(1)) {
        return Some(stub_at(STUBS.load(Relaxed), u64::from(number)));
    }
    let (number, _) = keep(tables, name, object, 0)?;
    super::signatures::store_shape(tables, number, name);
    TARGETS.get(number as usize)?.store(target, Release);
    if let Some(slot) = slot {
        slot.number.store(number + 1, Release);
    }
    Some(stub_at(STUBS.load(Relaxed), u64::from(number)))
}

/// Records that a function is not traced, and why.
pub(crate) fn leave(tables: &Tables, target: u64, name: &[u8], object: u32, reason: Reason) {
    let slot = slot(tables, target, name, object);
    if slot.is_some_and(|slot| slot.number.load(Acquire) != 0) {
        return;
    }
    if let Some((number, _)) = keep(tables, name, object, reason as u32 + 1)
        && let Some(slot) = slot
    {
        slot.number.store(number + 1, Release);
    }
}

/// Allocates a row for a function.
pub(crate) fn keep<'a>(
    tables: &'a Tables,
    name: &[u8],
    object: u32,
    reason: u32,
) -> Option<(u32, &'a Symbol)> {
    let number = tables
        .header
        .symbols
        .fetch_update(AcqRel, Acquire, |n| ((n as usize) < SYMBOLS).then_some(n + 1))
        .ok()?;
    let symbol = tables.symbols.get(number as usize)?;
    let (start, size) = keep_text(tables, name)?;
    symbol.name.store(start, Relaxed);
    symbol.name_size.store(size, Relaxed);
    symbol.object.store(object, Relaxed);
    symbol.reason.store(reason, Relaxed);
    symbol.ready.store(1, Release);
    Some((number, symbol))
}

/// The slot of a function, allocated if needed. Its number is 0 if it is new, or if it belonged to
/// a library that was unloaded.
fn slot(tables: &Tables, target: u64, name: &[u8], object: u32) -> Option<&'static Known> {
    let hash = name.iter().fold(target ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    let key = hash.max(1);
    for probe in 0..64 {
        let slot = KNOWN.get(((key >> 20) as usize + probe) % KNOWN.len())?;
        let old = slot.key.compare_exchange(0, key, AcqRel, Acquire).unwrap_or_else(|old| old);
        if old != 0 && old != key {
            continue;
        }
        if let Some(number) = slot.number.load(Acquire).checked_sub(1)
            && let Some(symbol) = tables.symbols.get(number as usize)
            && symbol.object.load(Relaxed) != object
        {
            slot.number.store(0, Release);
        }
        return Some(slot);
    }
    None
}
