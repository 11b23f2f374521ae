//! Functions whose arguments are pointers to letters and integers, as in Fortran. The values that they
//! point to are recorded instead of the addresses.

use crate::calls_wire::{MOST_ARGUMENTS, SYMBOLS, Tables};
use crate::sys::{self, nr, syscall};
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU8, AtomicU32};

/// Shapes by index of the function; 0 if its arguments are recorded as they are.
static SHAPES: [AtomicU32; SYMBOLS] = [const { AtomicU32::new(0) }; SYMBOLS];

/// Bits of a shape for one argument.
const BITS: u32 = 3;
/// A pointer to a letter.
const LETTER: u32 = 1;
/// A pointer to a 32-bit integer.
const INTEGER: u32 = 2;
/// A pointer to a 64-bit integer.
const WIDE: u32 = 3;
/// Left out: an array or a floating-point number, of which only the address is known.
const OMITTED: u32 = 4;
/// The name does not end in `_`, so it may be a C function with other arguments.
const UNSURE: u32 = 1 << 31;

/// The lowest address that a program can map.
const LOWEST: u64 = 4096;
/// The first address that user space cannot have.
const HIGHEST: u64 = 1 << 47;

/// Letters of the types in front of a name.
const TYPES: [&[u8]; 12] =
    [b"s", b"d", b"c", b"z", b"sc", b"dz", b"cs", b"zd", b"is", b"id", b"ic", b"iz"];

/// Stores the shape of a function when it gets its index.
pub(crate) fn store_shape(tables: &Tables, symbol: u32, name: &[u8]) {
    if tables.header.arguments.load(Relaxed) != 0
        && let Some(shape) = SHAPES.get(symbol as usize)
    {
        shape.store(shape_of(&tables.header.signatures, name), Relaxed);
    }
}

/// Replaces pointers by the values that they point to.
pub(crate) fn resolve(symbol: u32, values: &mut [u64; MOST_ARGUMENTS]) {
    let shape = SHAPES.get(symbol as usize).map_or(0, |shape| shape.load(Relaxed));
    if shape == 0 {
        return;
    }
    for (at, value) in values.iter_mut().enumerate() {
        *value = match shape >> (BITS * at as u32) & ((1 << BITS) - 1) {
            OMITTED => 0,
            kind @ (LETTER | INTEGER | WIDE) => read(*value, kind, shape & UNSURE != 0),
            _ => continue,
        };
    }
}

/// The value at an address. Addresses that cannot be read are returned unchanged.
fn read(address: u64, kind: u32, is_unsure: bool) -> u64 {
    if !(LOWEST..HIGHEST).contains(&address) {
        return address;
    }
    let size = match kind {
        LETTER => 1,
        INTEGER => 4,
        _ => 8,
    };
    let mut bytes = [0u8; 8];
    if is_unsure {
        if !copy_checked(address, &mut bytes, size) {
            return address;
        }
    } else {
        // SAFETY: Fortran passes valid pointers for all arguments, and this argument has at least `size` bytes.
        unsafe { core::ptr::copy_nonoverlapping(address as *const u8, bytes.as_mut_ptr(), size) };
    }
    let value = u64::from_le_bytes(bytes);
    if kind == INTEGER { i64::from(value as i32) as u64 } else { value }
}

/// Copies through the kernel, which fails instead of faulting. Costs a system call.
fn copy_checked(address: u64, bytes: &mut [u8; 8], size: usize) -> bool {
    let local = [bytes.as_mut_ptr() as usize, size];
    let remote = [address as usize, size];
    // SAFETY: writes at most `size` bytes to `bytes`, which is larger.
    let copied = unsafe {
        syscall!(nr::PROCESS_VM_READV, sys::getpid(), local.as_ptr(), 1, remote.as_ptr(), 1, 0)
    };
    copied == size as isize
}

/// The shape of a function; 0 if it is not known. CBLAS functions take values.
fn shape_of(signatures: &[AtomicU8], name: &[u8]) -> u32 {
    let name = name.strip_prefix(b"scipy_").unwrap_or(name);
    let (stem, is_wide) = match name.strip_suffix(b"64_").or_else(|| name.strip_suffix(b"_64")) {
        Some(stem) => (stem, true),
        None => (name, false),
    };
    let is_fortran = name.ends_with(b"_");
    let stem = stem.strip_suffix(b"_").unwrap_or(stem);
    let signature = TYPES.iter().find_map(|letters| find(signatures, stem.strip_prefix(*letters)?));
    let Some(codes) = signature else { return 0 };
    let mut shape = if is_fortran { 0 } else { UNSURE };
    for (at, code) in codes.iter().take(MOST_ARGUMENTS).enumerate() {
        let kind = match code.load(Relaxed) {
            b'c' => LETTER,
            b'n' if is_wide => WIDE,
            b'n' => INTEGER,
            b'.' => OMITTED,
            _ => break,
        };
        shape |= kind << (BITS * at as u32);
    }
    shape
}

/// The codes of a function in the null-terminated list of `stem=codes`.
fn find<'a>(signatures: &'a [AtomicU8], stem: &[u8]) -> Option<&'a [AtomicU8]> {
    let mut rest = signatures;
    while rest.first()?.load(Relaxed) != 0 {
        let end = rest.iter().position(|byte| byte.load(Relaxed) == 0)?;
        let (entry, next) = (rest.get(..end)?, rest.get(end + 1..)?);
        let equal = entry.iter().position(|byte| byte.load(Relaxed) == b'=')?;
        let is_stem = equal == stem.len()
            && entry.iter().zip(stem).all(|(byte, other)| byte.load(Relaxed) == *other);
        if is_stem {
            return entry.get(equal + 1..);
        }
        rest = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(name: &[u8]) -> u32 {
        let list = b"dot=n.n.n\0gemm=ccnnn.\0nrm2=n.n\0amax=n.n\0\0";
        let cells: [AtomicU8; 43] =
            core::array::from_fn(|at| AtomicU8::new(list.get(at).copied().unwrap_or(0)));
        shape_of(&cells, name)
    }

    #[test]
    fn names_select_the_shape() {
        let gemm = |integer: u32| {
            let kinds = [LETTER, LETTER, integer, integer, integer, OMITTED];
            kinds.iter().rev().fold(0, |shape, kind| shape << BITS | kind)
        };
        for name in [&b"dgemm_"[..], b"sgemm_", b"scipy_zgemm_"] {
            assert_eq!(shape(name), gemm(INTEGER));
        }
        for name in [&b"dgemm_64_"[..], b"dgemm64_", b"scipy_cgemm_64_"] {
            assert_eq!(shape(name), gemm(WIDE));
        }
        assert_eq!(shape(b"dgemm"), gemm(INTEGER) | UNSURE);
        assert_eq!(shape(b"scnrm2_"), shape(b"dnrm2_"));
        assert_ne!(shape(b"idamax_"), 0);
        for name in [&b"cblas_dgemm"[..], b"gemm_", b"dgemm_kernel", b"mydgemm_", b"", b"_", b"add"]
        {
            assert_eq!(shape(name), 0);
        }
    }

    #[test]
    fn unreadable_pointers_are_kept() {
        let number = -7i32;
        let address = &raw const number as u64;
        for is_unsure in [false, true] {
            assert_eq!(read(address, INTEGER, is_unsure) as i64, -7);
            assert_eq!(read(0, INTEGER, is_unsure), 0);
            assert_eq!(read(400, LETTER, is_unsure), 400);
            assert_eq!(read(u64::MAX, WIDE, is_unsure), u64::MAX);
        }
        // The first page above the lowest address is not mapped.
        assert_eq!(read(LOWEST + 8, INTEGER, true), LOWEST + 8);
    }
}
