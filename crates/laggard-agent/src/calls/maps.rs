//! The mappings of this process, read from the kernel without allocation.

use crate::sys::{self, nr, syscall};

/// A mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// `PROT_READ` and so on.
    pub(crate) access: usize,
}

/// The mapping that contains an address.
pub(crate) fn area_of(address: u64, buffer: &mut [u8]) -> Option<Area> {
    // SAFETY: the path is null-terminated, and reads are bounded by the buffer.
    let file =
        unsafe { syscall!(nr::OPEN, c"/proc/self/maps".as_ptr(), sys::O_RDONLY | sys::O_CLOEXEC) };
    if file < 0 {
        return None;
    }
    let mut line = Line::default();
    let mut found = None;
    while found.is_none() {
        // SAFETY: the read is bounded by the buffer.
        let got = unsafe { syscall!(nr::READ, file, buffer.as_mut_ptr(), buffer.len()) };
        let Some(bytes) = usize::try_from(got).ok().and_then(|got| buffer.get(..got)) else {
            break;
        };
        if bytes.is_empty() {
            break;
        }
        found = bytes
            .iter()
            .filter_map(|byte| line.take(*byte))
            .find(|area| (area.start..area.end).contains(&address));
    }
    // SAFETY: closes the file opened above.
    unsafe { syscall!(nr::CLOSE, file) };
    found
}

/// A line that is parsed byte by byte.
#[derive(Default)]
struct Line {
    numbers: [u64; 2],
    access: usize,
    /// 0 start, 1 end, 2 access, 3 the rest.
    field: usize,
}

impl Line {
    /// Returns the mapping if this byte ends its line.
    fn take(&mut self, byte: u8) -> Option<Area> {
        match (self.field, byte) {
            (_, b'\n') => {
                let area =
                    Area { start: self.numbers[0], end: self.numbers[1], access: self.access };
                *self = Line::default();
                return Some(area);
            }
            (0, b'-') | (1 | 2, b' ') => self.field += 1,
            (field @ (0 | 1), digit) => {
                let digit = char::from(digit).to_digit(16).unwrap_or(0);
                self.numbers[field] = self.numbers[field] << 4 | u64::from(digit);
            }
            (2, b'r') => self.access |= sys::PROT_READ,
            (2, b'w') => self.access |= sys::PROT_WRITE,
            (2, b'x') => self.access |= sys::PROT_EXEC,
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_maps_is_parsed() {
        let text = "7ffc0000-7ffc2000 r-xp 00000000 00:00 0   [vdso]\n";
        let area = text.bytes().fold((Line::default(), None), |(mut line, _), byte| {
            let area = line.take(byte);
            (line, area)
        });
        let access = sys::PROT_READ | sys::PROT_EXEC;
        assert_eq!(area.1, Some(Area { start: 0x7ffc_0000, end: 0x7ffc_2000, access }));
    }

    #[test]
    fn the_stack_is_found() {
        let here = 0u8;
        let address = &raw const here as u64;
        let area = area_of(address, &mut [0; 64]).unwrap();
        assert!(area.start <= address && address < area.end);
        assert_eq!(area.access, sys::PROT_READ | sys::PROT_WRITE);
    }
}
