//! Unwinds functions without unwind information by their prologue instructions.
//!
//! Kernels of BLAS libraries are often written in assembly without call-frame information. Their
//! prologue is like that of compiled code: it allocates stack, saves registers there, and copies
//! the stack pointer to another register before aligning it. This gives the location of the
//! caller's registers, except shortly before the function returns. Users must therefore verify the
//! return address.

use crate::Registers;

/// Where a function keeps its caller's registers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Prologue {
    /// The register that is the stack pointer or a copy of it, and its distance below the caller's
    /// stack pointer.
    base: (usize, u64),
    /// Saved registers, and the distance of their slots below the caller's stack pointer.
    saved: Vec<(usize, u64)>,
}

/// DWARF register numbers in hardware order.
const DWARF: [usize; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];

impl Prologue {
    /// Decodes the instructions from the start of a function to the current one. `None` if the
    /// stack is unchanged, or if the stack pointer was aligned without a copy.
    pub(crate) fn read(mut code: &[u8]) -> Option<Prologue> {
        // The return address is already on the stack.
        let (mut depth, mut base, mut saved) = (8, None, vec![]);
        let mut is_aligned = false;
        loop {
            let length = match *code {
                // push
                [0x50..=0x57, ..] if !is_aligned => {
                    depth += 8;
                    saved.push((DWARF[usize::from(code[0] - 0x50)], depth));
                    1
                }
                [0x41, 0x50..=0x57, ..] if !is_aligned => {
                    depth += 8;
                    saved.push((DWARF[usize::from(code[1] - 0x50) + 8], depth));
                    2
                }
                // sub $size, %rsp
                [0x48, 0x83, 0xec, size, ..] => {
                    depth += u64::from(size);
                    4
                }
                [0x48, 0x81, 0xec, a, b, c, d, ..] => {
                    depth += u64::from(u32::from_le_bytes([a, b, c, d]));
                    7
                }
                // mov %register, offset(%rsp)
                [0x48 | 0x4c, 0x89, mode, 0x24, ..] if mode & 0o307 == 0o004 && !is_aligned => {
                    saved.push((register(code[0], mode), depth));
                    4
                }
                [0x48 | 0x4c, 0x89, mode, 0x24, offset, ..]
                    if mode & 0o307 == 0o104 && !is_aligned =>
                {
                    saved.push((register(code[0], mode), depth.checked_sub(u64::from(offset))?));
                    5
                }
                // mov %rsp, %register
                [rex @ (0x48 | 0x49), 0x89, mode, ..] if mode & 0o370 == 0o340 && !is_aligned => {
                    let number = usize::from(mode & 7) + 8 * usize::from(rex & 1);
                    base = Some((DWARF[number], depth));
                    3
                }
                // and $-size, %rsp
                [0x48, 0x83, 0xe4, _, ..] => {
                    is_aligned = true;
                    4
                }
                [0x48, 0x81, 0xe4, ..] => {
                    is_aligned = true;
                    7
                }
                // mov offset(%rsp), %register: an argument
                [0x48 | 0x4c, 0x8b, mode, 0x24, ..] if mode & 0o307 == 0o104 => 5,
                [0x48 | 0x4c, 0x8b, mode, 0x24, ..] if mode & 0o307 == 0o204 => 8,
                // vzeroupper, endbr64
                [0xc5, 0xf8, 0x77, ..] => 3,
                [0xf3, 0x0f, 0x1e, 0xfa, ..] => 4,
                _ => break,
            };
            match code.get(length..) {
                Some(rest) => code = rest,
                None => break,
            }
        }
        let base = match is_aligned {
            true => base?,
            false => (Registers::RSP, depth),
        };
        // The first saved value of a register is the caller's.
        saved.reverse();
        (depth > 8).then_some(Prologue { base, saved })
    }

    /// The registers of the caller, except its pc, which is in the word below its stack pointer.
    pub(crate) fn caller(
        &self,
        registers: &Registers,
        word: impl Fn(u64) -> Option<u64>,
    ) -> Option<Registers> {
        let mut caller = *registers;
        let end = registers.0[self.base.0].checked_add(self.base.1)?;
        for &(register, below) in &self.saved {
            caller.0[register] = word(end.checked_sub(below)?)?;
        }
        caller.0[Registers::RSP] = end;
        Some(caller)
    }
}

/// The source register in a ModRM byte.
fn register(rex: u8, mode: u8) -> usize {
    DWARF[usize::from(mode >> 3 & 7) + 8 * usize::from(rex >> 2 & 1)]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    const RBX: usize = 3;
    const RBP: usize = 6;

    /// The start of OpenBLAS' `dgemm_kernel` for Haswell.
    const KERNEL: &[u8] = &[
        0x48, 0x83, 0xec, 0x60, // sub $0x60, %rsp
        0x48, 0x89, 0x1c, 0x24, // mov %rbx, (%rsp)
        0x48, 0x89, 0x6c, 0x24, 0x08, // mov %rbp, 0x8(%rsp)
        0x4c, 0x89, 0x64, 0x24, 0x10, // mov %r12, 0x10(%rsp)
        0xc5, 0xf8, 0x77, // vzeroupper
        0x4c, 0x8b, 0x54, 0x24, 0x68, // mov 0x68(%rsp), %r10
        0x48, 0x89, 0xe3, // mov %rsp, %rbx
        0x48, 0x81, 0xec, 0x80, 0x70, 0, 0, // sub $0x7080, %rsp
        0x48, 0x81, 0xe4, 0, 0xf0, 0xff, 0xff, // and $-0x1000, %rsp
        0x48, 0x83, 0xff, 0, // cmp $0, %rdi
    ];

    #[test]
    fn decodes_kernel_that_aligns_its_stack() {
        let prologue = Prologue::read(KERNEL).unwrap();
        assert_eq!(prologue.base, (RBX, 0x68));
        assert_eq!(prologue.saved, [(12, 0x58), (RBP, 0x60), (RBX, 0x68)]);
        let mut registers = Registers([0; 17]);
        registers.0[RBX] = 0x1000;
        let caller = prologue.caller(&registers, |address| Some(address + 1)).unwrap();
        assert_eq!(caller.0[Registers::RSP], 0x1068);
        assert_eq!((caller.0[RBX], caller.0[RBP], caller.0[12]), (0x1001, 0x1009, 0x1011));
    }

    #[test]
    fn counts_pushes_and_rejects_unchanged_stack() {
        // push %rbp; push %r15; sub $8, %rsp; ret
        let prologue = Prologue::read(&[0x55, 0x41, 0x57, 0x48, 0x83, 0xec, 8, 0xc3]).unwrap();
        assert_eq!(prologue.base, (Registers::RSP, 32));
        assert_eq!(prologue.saved, [(15, 24), (RBP, 16)]);
        assert_eq!(Prologue::read(&[0x48, 0x83, 0xff, 0]), None);
        let early = Prologue::read(&[0x55]).unwrap();
        assert_eq!((early.base, early.saved), ((Registers::RSP, 16), vec![(RBP, 16)]));
        // and $-16, %rsp without a copy of it
        assert_eq!(Prologue::read(&[0x55, 0x48, 0x83, 0xe4, 0xf0, 0xc3]), None);
    }
}
