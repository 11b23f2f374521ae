//! Reads little-endian numbers and texts from bytes that can end anywhere.

/// The unread bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest<'a>(pub(super) &'a [u8]);

impl<'a> Rest<'a> {
    pub(super) fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(head)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// Reads a number if `present`.
    pub(super) fn u64_if(&mut self, present: bool) -> Option<Option<u64>> {
        if present { self.u64().map(Some) } else { Some(None) }
    }

    /// The text up to its zero byte, or up to the end.
    pub(super) fn text(&self) -> &'a [u8] {
        self.0.split(|byte| *byte == 0).next().unwrap_or_default()
    }

    /// Reads a text of perf's headers: padded length, then bytes.
    pub(super) fn header_text(&mut self) -> Option<String> {
        let length = self.u32()?;
        let bytes = self.take(u64::from(length))?;
        Some(String::from_utf8_lossy(Rest(bytes).text()).into_owned())
    }
}

/// The number at an offset.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Rest(bytes.get(at..)?).u64()
}

/// The 64-bit words of a table.
pub(super) fn words(bytes: &[u8]) -> impl DoubleEndedIterator<Item = u64> + '_ {
    bytes.chunks_exact(8).filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?)))
}
