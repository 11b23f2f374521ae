//! Argument values, counted by function.

use super::signatures;
use super::thread::Registers;
use crate::calls_wire::{ARGUMENTS, ARGUMENTS_OF_ONE, Argument, MOST_ARGUMENTS, Tables};
use core::ptr::null;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Number of slots probed for one combination.
const PROBES: u64 = 64;

/// Counts a call by its first integer arguments, as many as requested. Returns the row to which its
/// duration is added; null if arguments are not requested or the table is full.
pub(crate) fn count(tables: &Tables, symbol: u32, registers: &Registers) -> *const Argument {
    let wanted = (tables.header.arguments.load(Relaxed) as usize).min(MOST_ARGUMENTS);
    if wanted == 0 {
        return null();
    }
    let mut values = registers.arguments();
    signatures::resolve(symbol, &mut values);
    for value in values.iter_mut().skip(wanted) {
        *value = 0;
    }
    let hash = values.iter().fold(u64::from(symbol) + 1, |hash, value| {
        (hash.rotate_left(23) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    let hash = hash.max(1);
    for probe in 0..PROBES {
        let at = ((hash >> 32) + probe) as usize % ARGUMENTS;
        let Some(row) = tables.arguments.get(at) else { break };
        let mut found = row.hash.load(Acquire);
        if found == 0 {
            let Some(function) = tables.symbols.get(symbol as usize) else { break };
            if function.combinations.load(Relaxed) >= ARGUMENTS_OF_ONE {
                break;
            }
            match row.hash.compare_exchange(0, hash, AcqRel, Acquire) {
                Ok(_) => {
                    function.combinations.fetch_add(1, Relaxed);
                    row.symbol.store(symbol, Relaxed);
                    for (cell, value) in row.values.iter().zip(values) {
                        cell.store(value, Relaxed);
                    }
                    row.ready.store(1, Release);
                    found = hash;
                }
                Err(other) => found = other,
            }
        }
        if found == hash {
            row.count.fetch_add(1, Relaxed);
            return row;
        }
    }
    tables.header.arguments_lost.fetch_add(1, Relaxed);
    null()
}
