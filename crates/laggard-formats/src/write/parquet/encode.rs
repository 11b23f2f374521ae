//! Parquet encodings of values and levels.
//!
//! <https://parquet.apache.org/docs/file-format/data-pages/encodings/>

use super::thrift::{varint, zigzag};
use arrow_buffer::BooleanBuffer;

/// Bit width for a number of codes. At least 1, because some readers reject 0. Rounded up to 8 if
/// that is only a little more: zstd finds frequent codes and repeated sequences only if codes are
/// byte-aligned.
pub(super) fn width_of(codes: usize) -> u32 {
    match usize::BITS - codes.saturating_sub(1).leading_zeros() {
        0 => 1,
        5..=7 => 8,
        width => width,
    }
}

/// Encodes codes with RLE: runs for repeated values, bit-packing for others.
pub(super) fn hybrid(out: &mut Vec<u8>, codes: &[u32], width: u32) {
    let value_bytes = width.div_ceil(8) as usize;
    // A run costs two headers and its value, because it splits a bit-packed run.
    let worth = (8 * (value_bytes + 3)).div_ceil(width as usize);
    let (mut packed_from, mut at) = (0, 0);
    while let Some((group, rest)) = codes[at..].split_first_chunk::<8>() {
        let value = group[0];
        if group.iter().fold(0, |differing, code| differing | (code ^ value)) != 0 {
            at += 8;
            continue;
        }
        let run = 8 + rest.iter().take_while(|code| **code == value).count();
        if run < worth {
            at += run / 8 * 8;
            continue;
        }
        packed_run(out, &codes[packed_from..at], width);
        varint(out, (run as u64) << 1);
        out.extend_from_slice(&value.to_le_bytes()[..value_bytes]);
        at += run;
        packed_from = at;
    }
    packed_run(out, &codes[packed_from..], width);
}

fn packed_run(out: &mut Vec<u8>, codes: &[u32], width: u32) {
    if !codes.is_empty() {
        varint(out, (codes.len().div_ceil(8) as u64) << 1 | 1);
        pack(out, codes, width);
    }
}

/// Encodes definition levels, which mark rows with a value. Same as [`hybrid`] with width 1, for
/// which the bytes of a bitmap are already packed.
pub(super) fn levels(out: &mut Vec<u8>, bits: &BooleanBuffer) {
    let mut pending = Levels { out, run: 0, is_set: false, packed: vec![] };
    let chunks = bits.bit_chunks();
    chunks.iter().for_each(|word| pending.push(word, 64));
    if chunks.remainder_len() > 0 {
        pending.push(chunks.remainder_bits(), chunks.remainder_len());
    }
    pending.end_run();
    pending.end_packed();
}

/// Levels that are not written yet: either a run or packed bytes.
struct Levels<'a> {
    out: &'a mut Vec<u8>,
    run: usize,
    is_set: bool,
    packed: Vec<u8>,
}

impl Levels<'_> {
    fn push(&mut self, word: u64, bits: usize) {
        let is_set = word != 0;
        if is_set && word != u64::MAX >> (64 - bits) {
            self.end_run();
            self.packed.extend_from_slice(&word.to_le_bytes()[..bits.div_ceil(8)]);
            return;
        }
        self.end_packed();
        if is_set != self.is_set {
            self.end_run();
        }
        self.is_set = is_set;
        self.run += bits;
    }

    fn end_run(&mut self) {
        if self.run > 0 {
            varint(self.out, (self.run as u64) << 1);
            self.out.push(self.is_set.into());
            self.run = 0;
        }
    }

    fn end_packed(&mut self) {
        if !self.packed.is_empty() {
            varint(self.out, (self.packed.len() as u64) << 1 | 1);
            self.out.append(&mut self.packed);
        }
    }
}

/// Encodes booleans as bits (PLAIN).
pub(super) fn bits(out: &mut Vec<u8>, bits: &BooleanBuffer) {
    let from = out.len();
    for word in bits.bit_chunks().iter_padded() {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.truncate(from + bits.len().div_ceil(8));
}

/// Deltas with a common minimum, and the part of them with a common bit width. parquet-java uses
/// these sizes, so every reader supports them.
const BLOCK: usize = 128;
const MINI_BLOCK: usize = 32;

/// Encodes numbers as differences relative to the minimum of each block (DELTA_BINARY_PACKED).
pub(super) fn delta(out: &mut Vec<u8>, values: &[i64]) {
    varint(out, BLOCK as u64);
    varint(out, (BLOCK / MINI_BLOCK) as u64);
    varint(out, values.len() as u64);
    let mut last = values.first().copied().unwrap_or(0);
    zigzag(out, last);
    for block in values.get(1..).unwrap_or(&[]).chunks(BLOCK) {
        let mut deltas = [0i64; BLOCK];
        for (delta, value) in deltas.iter_mut().zip(block) {
            *delta = value.wrapping_sub(last);
            last = *value;
        }
        let deltas = &deltas[..block.len()];
        let least = deltas.iter().copied().fold(i64::MAX, i64::min);
        zigzag(out, least);
        let mut above = [0u64; BLOCK];
        for (above, delta) in above.iter_mut().zip(deltas) {
            *above = delta.wrapping_sub(least) as u64;
        }
        // Values past the end are zero: they fill the last mini block. Mini blocks after it have
        // width zero and take no bytes.
        let mini_blocks = above.as_chunks::<MINI_BLOCK>().0;
        let widths = mini_blocks.iter().map(|values| {
            u64::BITS - values.iter().fold(0, |all, value| all | value).leading_zeros()
        });
        out.extend(widths.clone().map(|width| width as u8));
        for (values, width) in mini_blocks.iter().zip(widths) {
            pack(out, values, width);
        }
    }
}

/// Packs numbers of `width` bits, least significant bit first, in groups of eight. The last group
/// is padded with zeros.
fn pack<T: Copy + Default + Into<u64>>(out: &mut Vec<u8>, values: &[T], width: u32) {
    let (groups, rest) = values.as_chunks::<8>();
    let mut last = [T::default(); 8];
    last[..rest.len()].copy_from_slice(rest);
    let groups = groups.iter().chain((!rest.is_empty()).then_some(&last));
    let bytes = width as usize;
    let from = out.len();
    let len = values.len().div_ceil(8) * bytes;
    // Whole words are stored. The next group overwrites the excess bytes.
    out.resize(from + len + 16, 0);
    let mut at = from;
    match width {
        0 => {}
        1..=8 => {
            for group in groups {
                let word = joined(group, width);
                out[at..at + 8].copy_from_slice(&word.to_le_bytes());
                at += bytes;
            }
        }
        9..=16 => {
            for group in groups {
                let (low, high) = group.split_at(4);
                let word =
                    u128::from(joined(low, width)) | u128::from(joined(high, width)) << (4 * width);
                out[at..at + 16].copy_from_slice(&word.to_le_bytes());
                at += bytes;
            }
        }
        _ => {
            let (mut word, mut filled) = (0u128, 0);
            for value in groups.flatten() {
                word |= u128::from((*value).into()) << filled;
                filled += width;
                if filled >= 64 {
                    out[at..at + 8].copy_from_slice(&(word as u64).to_le_bytes());
                    at += 8;
                    word >>= 64;
                    filled -= 64;
                }
            }
            out[at..at + 8].copy_from_slice(&(word as u64).to_le_bytes());
        }
    }
    out.truncate(from + len);
}

/// Joins numbers of `width` bits in one word, the first in the lowest bits.
fn joined<T: Copy + Into<u64>>(values: &[T], width: u32) -> u64 {
    values.iter().rev().fold(0, |word, value| word << width | (*value).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packs_numbers_from_the_lowest_bit() {
        let check = |values: &[u64], width: u32, expected: &[u8]| {
            let mut out = vec![0xAA];
            pack(&mut out, values, width);
            assert_eq!(out[0], 0xAA);
            assert_eq!(&out[1..], expected, "{values:?} of {width} bits");
        };
        // Example of the specification.
        check(&[0, 1, 2, 3, 4, 5, 6, 7], 3, &[0b1000_1000, 0b1100_0110, 0b1111_1010]);
        check(&[0, 0, 0], 0, &[]);
        check(&[1, 0, 1], 1, &[0b101]);
        check(&[0xAB, 0xCD], 8, &[0xAB, 0xCD, 0, 0, 0, 0, 0, 0]);
        check(&[0xABC, 0xDEF], 12, &[0xBC, 0xFA, 0xDE, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn packs_the_largest_number_of_every_width() {
        for width in 1..=64 {
            let max = u64::MAX >> (64 - width);
            let values: Vec<u64> = (0..21).map(|n| max - n % max.clamp(1, 7)).collect();
            let mut out = vec![];
            pack(&mut out, &values, width);
            assert_eq!(out.len(), 3 * width as usize);
            let bit = |at: u32| u64::from(out[at as usize / 8] >> (at % 8) & 1);
            for (n, value) in (0..).zip(&values) {
                let read = (0..width).map(|at| bit(n * width + at) << at).sum::<u64>();
                assert_eq!(read, *value, "number {n} of {width} bits");
            }
        }
    }

    fn hybrid_of(codes: &[u32], width: u32) -> Vec<u8> {
        let mut out = vec![];
        hybrid(&mut out, codes, width);
        out
    }

    #[test]
    fn encodes_repeated_codes_as_runs() {
        assert!(hybrid_of(&[], 3).is_empty());
        // 100 values are 100 << 1 = 0xC8 0x01 as a varint, then the value.
        assert_eq!(hybrid_of(&[5; 100], 3), [0xC8, 1, 5]);
        assert_eq!(hybrid_of(&[300; 9], 9), [18, 0x2C, 1]);
        // One group of eight is 1 << 1 | 1.
        let all = [0, 1, 2, 3, 4, 5, 6, 7];
        assert_eq!(hybrid_of(&all, 3), [3, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
        let then_run = [&all[..], &[4; 30], &[1, 2, 3]].concat();
        let expected = [3, 0b1000_1000, 0b1100_0110, 0b1111_1010, 60, 4, 3, 0b1101_0001, 0, 0];
        assert_eq!(hybrid_of(&then_run, 3), expected);
    }

    #[test]
    fn keeps_short_runs_of_narrow_codes_packed() {
        let codes = [&[1; 16][..], &[0; 8], &[1, 0]].concat();
        assert_eq!(hybrid_of(&codes, 1), [4 << 1 | 1, 0xFF, 0xFF, 0, 0b01]);
    }

    #[test]
    fn width_fits_the_largest_code() {
        for (codes, width) in
            [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (16, 4), (17, 8), (256, 8), (257, 9)]
        {
            assert_eq!(width_of(codes), width, "{codes} codes");
        }
    }

    #[test]
    fn encodes_levels_as_runs_of_equal_words() {
        let levels_of = |all: &[bool]| {
            let mut out = vec![];
            levels(&mut out, &BooleanBuffer::from(all));
            out
        };
        assert!(levels_of(&[]).is_empty());
        assert_eq!(levels_of(&[false; 5]), [10, 0]);
        assert_eq!(levels_of(&[true; 100]), [0xC8, 1, 1]);
        assert_eq!(levels_of(&[true, false, true]), [3, 0b101]);
        let (set, unset) = ([true; 64], [false; 64]);
        let mixed = [&[true][..], &unset[1..]].concat();
        let all = [&set[..], &unset, &unset, &mixed, &set, &[true; 3], &[false]].concat();
        let packed = [17, 1, 0, 0, 0, 0, 0, 0, 0];
        let expected = [&[0x80, 1, 1][..], &[0x80, 2, 0], &packed, &[0x80, 1, 1], &[3, 0b0111]];
        assert_eq!(levels_of(&all), expected.concat());
    }

    #[test]
    fn encodes_booleans_at_any_bit_offset() {
        let all =
            BooleanBuffer::from(vec![true, true, false, true, false, false, true, true, true]);
        let mut out = vec![];
        bits(&mut out, &all);
        bits(&mut out, &all.slice(3, 6));
        assert_eq!(out, [0b1100_1011, 1, 0b0011_1001]);
    }

    fn delta_of(values: &[i64]) -> Vec<u8> {
        let mut out = vec![];
        delta(&mut out, values);
        out
    }

    /// Header for fewer than 128 values: 128 values per block (0x80 0x01), four mini blocks.
    fn header(values: u8, first: u8) -> Vec<u8> {
        vec![0x80, 1, 4, values, first]
    }

    #[test]
    fn deltas_match_the_specification() {
        assert_eq!(delta_of(&[]), header(0, 0));
        assert_eq!(delta_of(&[-3]), header(1, 5));
        // First example of the specification: all deltas are 1 (zigzag 2).
        let expected = [header(5, 2), vec![2, 0, 0, 0, 0]].concat();
        assert_eq!(delta_of(&[1, 2, 3, 4, 5]), expected);
        // Second example: the minimum is -2 (zigzag 3), followed by 0, 0, 0, 3, 3, 3, 3 in two bits
        // each.
        let packed = [0b1100_0000, 0b0011_1111, 0, 0, 0, 0, 0, 0];
        let expected = [header(8, 14), vec![3, 2, 0, 0, 0], packed.to_vec()].concat();
        assert_eq!(delta_of(&[7, 5, 3, 1, 2, 3, 4, 5]), expected);
    }

    #[test]
    fn blocks_have_their_own_minimum_and_mini_blocks_their_own_width() {
        // 128 deltas of 1, except the 33rd, which is 2, and a delta of -1 in the next block.
        let mut values: Vec<i64> = (0..129).map(|n| n + i64::from(n > 32)).collect();
        values.push(128);
        let first = [vec![2, 0, 1, 0, 0], vec![1, 0, 0, 0]].concat();
        let expected = [vec![0x80, 1, 4, 130, 1, 0], first, vec![1, 0, 0, 0, 0]].concat();
        assert_eq!(delta_of(&values), expected);
    }

    #[test]
    fn deltas_wrap_around() {
        // MAX - MIN wraps to -1, and MIN - MAX to 1, which is 2 above the minimum.
        let first = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1];
        let expected =
            [&[0x80, 1, 4, 3][..], &first, &[1, 2, 0, 0, 0, 0b1000, 0, 0, 0, 0, 0, 0, 0]];
        assert_eq!(delta_of(&[i64::MIN, i64::MAX, i64::MIN]), expected.concat());
    }
}
