//! String table: stores every distinct text once, in one arena.

use super::simd::{BLOCK, Simd, Text};

/// A number that no text has.
pub(super) const NO_TEXT: u32 = u32::MAX;

/// A hash table with open addressing over an arena. The arena ends with a block of zeros, so that
/// texts can be compared with any entry in blocks.
pub(super) struct Interner {
    arena: Vec<u8>,
    /// Start and length of each text.
    spans: Vec<(usize, u32)>,
    /// Upper half of the hash, and number + 1; 0 is free. The length is a power of two, at most
    /// half is used.
    slots: Vec<(u32, u32)>,
    /// Position of the first text that is not UTF-8.
    pub(super) first_invalid: u64,
    /// Position of the first text with a control character.
    pub(super) first_control: u64,
}

impl Interner {
    pub(super) fn new() -> Interner {
        Interner {
            arena: vec![],
            spans: vec![],
            slots: vec![(0, 0); 1 << 12],
            first_invalid: u64::MAX,
            first_control: u64::MAX,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    /// The text with this number.
    pub(super) fn get(&self, id: u32) -> &[u8] {
        let (start, len) = self.spans[id as usize];
        &self.arena[start..start + len as usize]
    }

    /// Length of text `id` if the input at `at` is that text and its closing quote.
    #[inline(always)]
    pub(super) fn string_at<S: Simd>(&self, text: Text, at: usize, id: u32) -> Option<usize> {
        let (start, len) = *self.spans.get(id as usize)?;
        let len = len as usize;
        text.starts_with::<S>(at, &self.arena[start..], len + 1).then_some(len)
    }

    /// Length of text `id` if the input at `at` starts with it. For texts with their own end
    /// delimiter.
    #[inline(always)]
    pub(super) fn text_at<S: Simd>(&self, text: Text, at: usize, id: u32) -> Option<usize> {
        let (start, len) = *self.spans.get(id as usize)?;
        text.starts_with::<S>(at, &self.arena[start..], len as usize).then_some(len as usize)
    }

    /// Interns the text at `from..to`. `place` is its position in the file.
    #[inline(always)]
    pub(super) fn intern_at<S: Simd>(
        &mut self,
        text: Text,
        from: usize,
        to: usize,
        place: u64,
    ) -> u32 {
        let bytes = &text.bytes()[from..to];
        if to >= text.safe() {
            return self.intern(bytes, place);
        }
        let hash = hash(bytes);
        let mask = self.slots.len() - 1;
        let mut i = hash as usize & mask;
        loop {
            let (tag, id) = self.slots[i & mask];
            if id == 0 {
                return self.add(bytes, i & mask, hash, place);
            }
            if tag == (hash >> 32) as u32 {
                let (start, len) = self.spans[id as usize - 1];
                if len as usize == bytes.len()
                    && text.starts_with::<S>(from, &self.arena[start..], bytes.len())
                {
                    return id - 1;
                }
            }
            i += 1;
        }
    }

    /// Interns any bytes.
    pub(super) fn intern(&mut self, bytes: &[u8], place: u64) -> u32 {
        let hash = hash(bytes);
        let mask = self.slots.len() - 1;
        let mut i = hash as usize & mask;
        loop {
            let (tag, id) = self.slots[i];
            if id == 0 {
                return self.add(bytes, i, hash, place);
            }
            if tag == (hash >> 32) as u32 && self.get(id - 1) == bytes {
                return id - 1;
            }
            i = (i + 1) & mask;
        }
    }

    /// Merges the positions of anomalous texts of another interner.
    pub(super) fn joined(&mut self, other: &Interner) {
        self.first_invalid = self.first_invalid.min(other.first_invalid);
        self.first_control = self.first_control.min(other.first_control);
    }

    /// Clears the position of control characters: they were white space between tokens.
    pub(super) fn forget_controls(&mut self) {
        self.first_control = u64::MAX;
    }

    #[cold]
    #[inline(never)]
    fn add(&mut self, bytes: &[u8], slot: usize, hash: u64, place: u64) -> u32 {
        if std::str::from_utf8(bytes).is_err() {
            self.first_invalid = self.first_invalid.min(place);
        }
        if bytes.iter().any(u8::is_ascii_control) {
            self.first_control = self.first_control.min(place);
        }
        let start = self.arena.len().saturating_sub(BLOCK);
        self.arena.truncate(start);
        self.arena.extend_from_slice(bytes);
        // Unescaped texts are stored with a closing quote: see `string_at`.
        let plain = memchr::memchr2(b'"', b'\\', bytes).is_none();
        self.arena.push(if plain { b'"' } else { 0 });
        self.arena.resize(self.arena.len() + BLOCK, 0);
        self.spans.push((start, bytes.len() as u32));
        let id = self.spans.len() as u32;
        self.slots[slot] = ((hash >> 32) as u32, id);
        if self.spans.len() * 2 > self.slots.len() {
            self.grow();
        }
        id - 1
    }

    fn grow(&mut self) {
        let size = self.slots.len() * 2;
        let mut slots = vec![(0, 0); size];
        for id in 0..self.spans.len() as u32 {
            let hash = hash(self.get(id));
            let mut i = hash as usize & (size - 1);
            while slots[i].1 != 0 {
                i = (i + 1) & (size - 1);
            }
            slots[i] = ((hash >> 32) as u32, id + 1);
        }
        self.slots = slots;
    }
}

#[inline(always)]
fn hash(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::kineto::simd::{Portable, SLACK};

    #[test]
    fn interns_equal_texts_once() {
        let mut file: Vec<u8> =
            (0..20_000).flat_map(|i| format!("name {}\"", i % 7001).into_bytes()).collect();
        file.resize(file.len() + SLACK + 1, b' ');
        let text = Text::new(&file);
        let mut names = Interner::new();
        let mut at = 0;
        for i in 0..20_000 {
            let end = text.plain_string_end::<Portable>(at).unwrap();
            let id = names.intern_at::<Portable>(text, at, end, 0);
            assert_eq!(id, i % 7001);
            assert_eq!(id, names.intern(&file[at..end], 0));
            assert_eq!(names.string_at::<Portable>(text, at, id), Some(end - at));
            assert_eq!(names.string_at::<Portable>(text, at, (id + 1) % 7001), None);
            at = end + 1;
        }
        assert_eq!(names.len(), 7001);
    }

    #[test]
    fn distinguishes_texts_with_quotes() {
        let mut names = Interner::new();
        let id = names.intern(b"a\"b", 0);
        let mut file = b"a\"b\"".to_vec();
        file.resize(file.len() + SLACK, b' ');
        assert_eq!(names.string_at::<Portable>(Text::new(&file), 0, id), None);
    }
}
