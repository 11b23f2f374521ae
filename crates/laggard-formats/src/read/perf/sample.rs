//! `Sample`: one sample, parsed by the layout of its event.

use super::attr::{Attr, has};
use super::bytes::{Rest, words};
use laggard_symbols::Registers;

/// The supported fields of a sample.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample<'a> {
    pub(super) ip: Option<u64>,
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) period: Option<u64>,
    /// Addresses of the call chain, innermost first, with context markers.
    pub(super) chain: &'a [u8],
    /// Branch records, latest first: from, to, flags.
    branches: &'a [u8],
    /// User registers, if the program is 64-bit.
    pub(super) registers: Option<Registers>,
    /// Stack bytes above the stack pointer.
    pub(super) stack: &'a [u8],
}

/// Bits of `read_format`.
mod read {
    pub(super) const TIMES: u64 = 1 | 2;
    pub(super) const ID: u64 = 4;
    pub(super) const GROUP: u64 = 8;
    pub(super) const LOST: u64 = 16;
}

/// Branch records are preceded by a hardware index.
const BRANCH_HW_INDEX: u64 = 1 << 17;
/// Size of a branch record.
const BRANCH: u64 = 24;
/// `PERF_SAMPLE_REGS_ABI_64`.
const ABI_64: u64 = 2;

impl<'a> Sample<'a> {
    /// Parses a sample. `None` if it does not match its event.
    pub(super) fn read(body: &'a [u8], attr: &Attr) -> Option<Sample<'a>> {
        let mut sample = Sample::default();
        let mut rest = Rest(body);
        rest.u64_if(attr.samples(has::IDENTIFIER))?;
        sample.ip = rest.u64_if(attr.samples(has::IP))?;
        if attr.samples(has::TID) {
            (sample.pid, sample.tid) = (rest.u32()?, rest.u32()?);
        }
        for field in [has::TIME, has::ADDR, has::ID, has::STREAM_ID, has::CPU] {
            rest.u64_if(attr.samples(field))?;
        }
        sample.period = rest.u64_if(attr.samples(has::PERIOD))?;
        if attr.samples(has::READ) {
            let format = attr.read_format;
            let each = 1 + u64::from((format & (read::ID | read::LOST)).count_ones());
            let times = u64::from((format & read::TIMES).count_ones());
            let count = if format & read::GROUP != 0 { rest.u64()? } else { 1 };
            rest.take(count.checked_mul(each)?.checked_add(times)?.checked_mul(8)?)?;
        }
        if attr.samples(has::CALLCHAIN) {
            let count = rest.u64()?;
            sample.chain = rest.take(count.checked_mul(8)?)?;
        }
        if attr.samples(has::RAW) {
            let size = rest.u32()?;
            rest.take(u64::from(size))?;
        }
        if attr.samples(has::BRANCH_STACK) {
            let count = rest.u64()?;
            rest.u64_if(attr.branches & BRANCH_HW_INDEX != 0)?;
            sample.branches = rest.take(count.checked_mul(BRANCH)?)?;
        }
        if attr.samples(has::REGS_USER) {
            let abi = rest.u64()?;
            if abi != 0 {
                let values = rest.take(u64::from(attr.registers.count_ones()) * 8)?;
                if abi == ABI_64 {
                    sample.registers = registers(attr.registers, values);
                }
            }
        }
        if attr.samples(has::STACK_USER) {
            let size = rest.u64()?;
            let stack = rest.take(size)?;
            if size != 0 {
                // Number of bytes that were actually copied.
                sample.stack = Rest(stack).take(rest.u64()?.min(size))?;
            }
        }
        Some(sample)
    }

    /// Call chain from the branch records, innermost first: the target of the last call, then the
    /// source of each call.
    pub(super) fn branch_chain(&self) -> impl Iterator<Item = u64> {
        let records = self.branches.chunks_exact(BRANCH as usize);
        let first = words(self.branches).nth(1);
        first.into_iter().chain(records.filter_map(|record| words(record).next()))
    }
}

/// Registers by DWARF number, from the registers in the kernel's mask. `None` if a register
/// required for unwinding is missing.
fn registers(mask: u64, values: &[u8]) -> Option<Registers> {
    /// DWARF number of each kernel register; 17 if DWARF unwinding does not use it.
    const NUMBERS: [usize; 24] =
        [0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 17, 17, 17, 17, 17, 17, 8, 9, 10, 11, 12, 13, 14, 15];
    let mut registers = Registers::default();
    let mut values = words(values);
    let mut found = 0u32;
    for bit in (0..64).filter(|bit| mask >> bit & 1 == 1) {
        let value = values.next()?;
        let number = NUMBERS.get(bit).copied().unwrap_or(17);
        if let Some(register) = registers.0.get_mut(number) {
            *register = value;
            found |= 1 << number;
        }
    }
    let needed = 1 << Registers::PC | 1 << Registers::RSP;
    (found & needed == needed).then_some(registers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_registers_to_dwarf_numbers() {
        // The default mask of perf: all general registers without the segments ds to gs.
        let mask = 0xff_0fff_u64;
        let values: Vec<u8> = (100..120u64).flat_map(u64::to_le_bytes).collect();
        let Registers(by_dwarf) = registers(mask, &values).expect("registers");
        let expected =
            [100, 103, 102, 101, 104, 105, 106, 107, 112, 113, 114, 115, 116, 117, 118, 119, 108];
        assert_eq!(by_dwarf, expected);
        assert!(registers(mask, &values[..8]).is_none(), "truncated");
        assert!(registers(1, &values).is_none(), "no stack pointer");
    }
}
