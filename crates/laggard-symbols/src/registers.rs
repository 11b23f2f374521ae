//! Registers and memory of a stopped thread.

/// The general registers of x86-64 by DWARF number; 16 is the program counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers(pub [u64; 17]);

impl Registers {
    /// DWARF number of `rbp`.
    pub const RBP: usize = 6;
    /// DWARF number of `rsp`.
    pub const RSP: usize = 7;
    /// DWARF number of the return address: the program counter of a stopped thread.
    pub const PC: usize = 16;

    /// The program counter.
    pub fn pc(&self) -> u64 {
        self.0[Self::PC]
    }

    /// The stack pointer.
    pub fn sp(&self) -> u64 {
        self.0[Self::RSP]
    }

    /// The frame pointer, if the code uses one.
    pub fn bp(&self) -> u64 {
        self.0[Self::RBP]
    }
}

/// Memory that unwinding can read.
pub trait Memory {
    /// The little-endian number of `size` bytes (at most 8) at an address, if readable.
    fn read(&self, address: u64, size: usize) -> Option<u64>;

    /// The word at an address, if readable.
    fn word(&self, address: u64) -> Option<u64> {
        self.read(address, 8)
    }
}

/// A copy of the top of a stack.
#[derive(Clone, Copy, Debug)]
pub struct StackCopy<'a> {
    /// Address of the first byte: the stack pointer, or 128 less to include the red zone.
    pub start: u64,
    /// The bytes.
    pub bytes: &'a [u8],
}

impl StackCopy<'_> {
    /// End address (exclusive).
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes.len() as u64)
    }
}

impl Memory for StackCopy<'_> {
    #[inline]
    fn read(&self, address: u64, size: usize) -> Option<u64> {
        let offset = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let bytes = self.bytes.get(offset..offset.checked_add(size)?)?;
        if let Ok(word) = bytes.try_into() {
            return Some(u64::from_le_bytes(word));
        }
        let mut word = [0; 8];
        word.get_mut(..size)?.copy_from_slice(bytes);
        Some(u64::from_le_bytes(word))
    }
}
