//! Parses a part of a file into a tree of names with counts at its nodes.

use super::Counts;
use rustc_hash::FxHashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Maximum depth of a stack. Lines with deeper stacks are skipped.
const DEEPEST: usize = 1 << 14;
/// Maximum number of nodes of a part. Further lines are skipped, to limit memory on hostile files.
const MOST_NODES: usize = 1 << 28;
/// Maximum length of a line. Longer lines are skipped.
pub(super) const LONGEST_LINE: usize = 1 << 24;
/// The parent of outermost frames.
pub(super) const ROOT: u32 = u32::MAX;

/// The parsed lines of a part.
#[derive(Default)]
pub(super) struct Part {
    pub(super) names: Names,
    pub(super) nodes: Nodes,
    /// Integer counts of each node, for the first and the second count.
    pub(super) counts: [Vec<u64>; 2],
    /// Sums of fractional counts, by node and count.
    pub(super) fractions: FxHashMap<(u32, usize), f64>,
    /// Number of lines without a stack.
    pub(super) bad_lines: u64,
    /// Whether the part ends in a line without a stack and without a line end.
    pub(super) is_cut: bool,
    /// End offsets of the frames in the previous line, except the last frame, with the hash of the
    /// frames up to there.
    path: Vec<(usize, u64)>,
    /// The same for the part of the current line that differs, with the offsets of its names.
    rest: Vec<(usize, usize, u64)>,
}

impl Part {
    /// Creates a part for about `bytes` bytes, with capacity for the usual number of nodes.
    pub(super) fn with_room_for(bytes: usize) -> Part {
        let slots = (bytes / 128).next_power_of_two().clamp(1 << 12, 1 << 23);
        // Unused capacity costs nothing, but growing costs a copy.
        let room = bytes / 256;
        let nodes = Nodes {
            all: Vec::with_capacity(room),
            hashes: Vec::with_capacity(room),
            slots: vec![(0, 0); slots],
        };
        Part { nodes, counts: [Vec::with_capacity(room), vec![]], ..Part::default() }
    }

    /// Parses lines. The last one may lack its line end.
    pub(super) fn take(&mut self, text: &[u8], counts: Counts) {
        let mut before: &[u8] = &[];
        self.path.clear();
        let mut start = 0;
        while start < text.len() {
            // Consecutive lines usually share their outermost frames, and often most of their
            // frames. Only the part that differs from the previous line is parsed.
            let shared = shared_prefix(before, &text[start..]);
            let searched = start + shared;
            let found = memchr::memchr(b'\n', &text[searched..]);
            let end = found.map_or(text.len(), |length| searched + length);
            let line = &text[start..end];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let is_comment = line.first() == Some(&b'#');
            if !is_comment && self.line(line, shared, counts).is_some() {
                before = line;
            } else {
                before = &[];
                self.path.clear();
                if !line.trim_ascii().is_empty() && !is_comment {
                    match found {
                        Some(_) => self.bad_lines += 1,
                        None => self.is_cut = true,
                    }
                }
            }
            start = end + 1;
        }
    }

    /// Parses a line whose first `shared` bytes equal those of the previous line.
    #[inline]
    fn line(&mut self, line: &[u8], shared: usize, counts: Counts) -> Option<()> {
        let (stack, values) = stack_and_values(line, counts)?;
        if stack.is_empty() || stack.len() > LONGEST_LINE {
            return None;
        }
        let known = self.path.partition_point(|(end, _)| *end < shared.min(stack.len()));
        self.path.truncate(known);
        let (mut at, base) =
            self.path.last().map_or((0, NO_FRAMES), |(end, hash)| (end + 1, *hash));
        let mut hash = base;
        self.rest.clear();
        loop {
            let rest = &stack[at..];
            let length = memchr::memchr(b';', rest).unwrap_or(rest.len());
            if length > 0 {
                hash = prefix_hash(hash, &rest[..length]);
                self.rest.push((at, at + length, hash));
            }
            if length == rest.len() {
                break;
            }
            at += length + 1;
            self.path.push((at - 1, hash));
        }
        let is_too_deep = self.path.len() >= DEEPEST;
        if is_too_deep || self.nodes.all.len() + self.rest.len() >= MOST_NODES {
            return None;
        }
        let node = self.node(stack, base)?;
        for (event, value) in values.into_iter().enumerate().take(counts as usize) {
            self.add(node, event, value);
        }
        Some(())
    }

    /// Returns the node of the current line, existing or new. Nodes are found by the hash of all
    /// names up to them, so a binary search finds the longest known prefix of the stack: seven
    /// lookups for a hundred frames.
    fn node(&mut self, stack: &[u8], base: u64) -> Option<u32> {
        let known = self.rest.partition_point(|(.., hash)| self.nodes.find(*hash).is_some());
        let mut node = match known.checked_sub(1).map(|last| self.rest[last]) {
            Some((.., hash)) => self.nodes.find(hash)?,
            None if base == NO_FRAMES => ROOT,
            None => self.nodes.find(base)?,
        };
        for &(start, end, hash) in &self.rest[known..] {
            let name = self.names.number(&stack[start..end]);
            node = self.nodes.add(node, name, hash);
        }
        Some(node).filter(|node| *node != ROOT)
    }

    #[inline]
    fn add(&mut self, node: u32, event: usize, value: Value) {
        let counts = &mut self.counts[event];
        if counts.len() <= node as usize {
            counts.resize(self.nodes.all.len(), 0);
        }
        match value {
            Value::Whole(count) => {
                let sum = &mut counts[node as usize];
                *sum = sum.saturating_add(count);
            }
            Value::Fraction(count) => *self.fractions.entry((node, event)).or_default() += count,
        }
    }
}

/// A count, possibly fractional.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Whole(u64),
    Fraction(f64),
}

/// Splits a line into its stack and its counts.
#[inline]
pub(super) fn stack_and_values(line: &[u8], counts: Counts) -> Option<(&[u8], [Value; 2])> {
    let (rest, last) = last_value(line)?;
    match counts {
        Counts::One => Some((rest, [last, Value::Whole(0)])),
        Counts::Two => {
            let (rest, first) = last_value(rest)?;
            Some((rest, [first, last]))
        }
    }
}

/// Splits a line into the text before the last number, and the number.
#[inline]
fn last_value(line: &[u8]) -> Option<(&[u8], Value)> {
    let mut end = line.len();
    while end > 0 && line[end - 1] == b' ' {
        end -= 1;
    }
    let mut start = end;
    while start > 0 && line[start - 1].is_ascii_digit() {
        start -= 1;
    }
    if start == 0 {
        return None;
    }
    let before = &line[..start - 1];
    if matches!(line[start - 1], b' ' | b'\t') && end > start {
        let digits = &line[start..end];
        // This many digits always fit.
        let value = if digits.len() <= 19 {
            digits.iter().fold(0u64, |sum, byte| sum * 10 + u64::from(byte - b'0'))
        } else {
            std::str::from_utf8(digits).ok()?.parse().unwrap_or(u64::MAX)
        };
        return Some((before.trim_ascii_end(), Value::Whole(value)));
    }
    fraction(&line[..end])
}

#[cold]
fn fraction(line: &[u8]) -> Option<(&[u8], Value)> {
    let space = line.iter().rposition(|byte| matches!(byte, b' ' | b'\t'))?;
    let word = &line[space + 1..];
    // Exclude other words that Rust parses as numbers, such as `inf` and `nan`.
    if !word.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')) {
        return None;
    }
    let value: f64 = std::str::from_utf8(word).ok()?.parse().ok()?;
    let is_plausible = value.is_finite() && value >= 0.0;
    is_plausible.then(|| (line[..space].trim_ascii_end(), Value::Fraction(value)))
}

/// Length of the common prefix of two texts.
#[inline]
fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    let length = a.len().min(b.len());
    let (a, b) = (&a[..length], &b[..length]);
    let mut at = 0;
    for (a, b) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        let difference = word(a) ^ word(b);
        if difference != 0 {
            return at + difference.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    at + a[at..].iter().zip(&b[at..]).take_while(|(a, b)| a == b).count()
}

/// Names by number, stored contiguously.
pub(super) struct Names {
    bytes: Vec<u8>,
    /// End offset of each name.
    ends: Vec<usize>,
    /// Upper half of the hash, and number + 1; 0 is free. The length is a power of two, at most
    /// half is used.
    slots: Vec<(u32, u32)>,
}

impl Default for Names {
    fn default() -> Names {
        Names { bytes: vec![], ends: vec![], slots: vec![(0, 0); 1 << 12] }
    }
}

impl Names {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, number: u32) -> &[u8] {
        let start = if number == 0 { 0 } else { self.ends[number as usize - 1] };
        &self.bytes[start..self.ends[number as usize]]
    }

    #[inline]
    pub(super) fn number(&mut self, name: &[u8]) -> u32 {
        let hash = name_hash(name);
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let (tag, number) = self.slots[slot];
            if number == 0 {
                return self.add(name, hash, slot);
            }
            if tag == (hash >> 32) as u32 && self.get(number - 1) == name {
                return number - 1;
            }
            slot = (slot + 1) & mask;
        }
    }

    #[cold]
    fn add(&mut self, name: &[u8], hash: u64, slot: usize) -> u32 {
        self.bytes.extend_from_slice(name);
        self.ends.push(self.bytes.len());
        let number = self.ends.len() as u32;
        self.slots[slot] = ((hash >> 32) as u32, number);
        if self.ends.len() * 2 > self.slots.len() {
            let mut slots = vec![(0, 0); self.slots.len() * 2];
            for number in 0..self.ends.len() as u32 {
                let hash = name_hash(self.get(number));
                put(&mut slots, hash, ((hash >> 32) as u32, number + 1), |slot| slot.1 == 0);
            }
            self.slots = slots;
        }
        number - 1
    }
}

/// A tree of names. Nodes are found by the hash of all names up to them.
pub(super) struct Nodes {
    /// Parent and name of each node.
    pub(super) all: Vec<(u32, u32)>,
    /// Hash of each node.
    pub(super) hashes: Vec<u64>,
    /// Upper half of the hash, and number + 1; 0 is free. The length is a power of two, at most
    /// half is used.
    slots: Vec<(u32, u32)>,
}

impl Default for Nodes {
    fn default() -> Nodes {
        Nodes { all: vec![], hashes: vec![], slots: vec![(0, 0); 1 << 12] }
    }
}

impl Nodes {
    /// Finds the node with this hash.
    #[inline]
    pub(super) fn find(&self, hash: u64) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            match self.slots[slot] {
                (_, 0) => return None,
                (tag, number)
                    if tag == (hash >> 32) as u32 && self.hashes[number as usize - 1] == hash =>
                {
                    return Some(number - 1);
                }
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    /// Adds a node that does not exist yet.
    pub(super) fn add(&mut self, parent: u32, name: u32, hash: u64) -> u32 {
        self.all.push((parent, name));
        self.hashes.push(hash);
        let number = self.all.len() as u32;
        if self.all.len() * 2 > self.slots.len() {
            self.grow();
        } else {
            put(&mut self.slots, hash, ((hash >> 32) as u32, number), |slot| slot.1 == 0);
        }
        number - 1
    }

    #[cold]
    fn grow(&mut self) {
        let mut slots = vec![(0, 0); self.slots.len() * 2];
        for (number, hash) in (1u32..).zip(&self.hashes) {
            put(&mut slots, *hash, ((hash >> 32) as u32, number), |slot| slot.1 == 0);
        }
        self.slots = slots;
    }
}

fn put<T>(slots: &mut [T], hash: u64, value: T, is_free: impl Fn(&T) -> bool) {
    let mask = slots.len() - 1;
    let mut slot = hash as usize & mask;
    while !is_free(&slots[slot]) {
        slot = (slot + 1) & mask;
    }
    slots[slot] = value;
}

/// Hash of an empty stack.
const NO_FRAMES: u64 = 0;

/// Hash of the frames up to a name, given the hash of the preceding frames. Two different prefixes
/// have the same hash with a probability of 2^-64, so a file of ten million nodes has a collision
/// once in 400,000 files. A random seed per run prevents files that collide on purpose.
#[inline]
fn prefix_hash(before: u64, name: &[u8]) -> u64 {
    let key = before.rotate_left(32) ^ name_hash(name);
    let wide = u128::from(key ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
    ((wide >> 64) as u64 ^ wide as u64).max(NO_FRAMES + 1)
}

/// Hash of a name with the seed of this run.
#[inline]
fn name_hash(name: &[u8]) -> u64 {
    static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));
    xxh3_64_with_seed(name, *SEED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_last_word_as_count() {
        let one = |line: &'static str| {
            let read = stack_and_values(line.as_bytes(), Counts::One);
            read.map(|(stack, values)| (std::str::from_utf8(stack).unwrap_or("?"), values[0]))
        };
        assert_eq!(one("a;b 12"), Some(("a;b", Value::Whole(12))));
        assert_eq!(one("a;b c 12 "), Some(("a;b c", Value::Whole(12))));
        assert_eq!(one("a 12.5"), Some(("a", Value::Fraction(12.5))));
        assert_eq!(one("a 99999999999999999999"), Some(("a", Value::Whole(u64::MAX))));
        for bad in ["a;b", "12", " 12", "", "a -3", "a nan", "a;b12", "a;b;"] {
            assert!(one(bad).is_none_or(|(stack, _)| stack.is_empty()), "{bad}");
        }
        let two = stack_and_values(b"a;b 10 12", Counts::Two);
        assert_eq!(two, Some((&b"a;b"[..], [Value::Whole(10), Value::Whole(12)])));
    }

    #[test]
    fn finds_common_prefix_to_the_byte() {
        for (a, b, shared) in
            [("", "a", 0), ("abc", "abd", 2), ("0123456789", "0123456789x", 10), ("a", "b", 0)]
        {
            assert_eq!(shared_prefix(a.as_bytes(), b.as_bytes()), shared);
        }
    }

    #[test]
    fn shared_prefixes_do_not_change_nodes() {
        let lines = ["a;b;c 1", "a;b;c d 2", "a;b 3", "a;bb 4", "a;b;c 5", "bad", "a;b;c;d 6"];
        let mut all = Part::default();
        all.take(lines.join("\n").as_bytes(), Counts::One);
        let mut alone = Part::default();
        for line in lines {
            alone.take(format!("{line}\n").as_bytes(), Counts::One);
        }
        assert_eq!(all.nodes.all, alone.nodes.all);
        assert_eq!(all.counts, alone.counts);
        assert_eq!((all.bad_lines, all.nodes.all.len()), (1, 6));
    }
}
