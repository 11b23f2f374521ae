//! Block primitives of the trace scanner, and its only unsafe code.
//!
//! [`Text`] is a buffer in which every position before [`Text::safe`] has at least [`SLACK`]
//! readable bytes. Each primitive checks this once and can then read ahead without further checks,
//! so callers are safe code. Both instruction sets give the same results. [`run`] selects one at
//! run time and compiles the whole task for it.
#![allow(unsafe_code)]

/// Number of bytes that can be read from a safe position.
pub(super) const SLACK: usize = 256;
/// Bytes compared, searched or classified at once.
pub(super) const BLOCK: usize = 64;

/// The instruction set of the scanner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// AVX2 with carry-less multiplication.
    Avx2,
    /// Plain 64-bit arithmetic, for any machine.
    Portable,
}

impl Isa {
    /// The best instruction set of this machine.
    pub fn detect() -> Isa {
        #[cfg(target_arch = "x86_64")]
        if avx2_is_available() {
            return Isa::Avx2;
        }
        Isa::Portable
    }
}

#[cfg(target_arch = "x86_64")]
fn avx2_is_available() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("pclmulqdq")
}

/// A task that is compiled once per instruction set. Implementations must be `#[inline(always)]`
/// down to the primitives.
pub(super) trait Task {
    type Out;
    fn run<S: Simd>(self) -> Self::Out;
}

/// Runs the task with this instruction set, or the portable one if it is missing.
pub(super) fn run<T: Task>(isa: Isa, task: T) -> T::Out {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
        fn avx2<T: Task>(task: T) -> T::Out {
            task.run::<x86::Avx2>()
        }
        if isa == Isa::Avx2 && avx2_is_available() {
            // SAFETY: the features were just checked.
            return unsafe { avx2(task) };
        }
    }
    let _ = isa;
    task.run::<Portable>()
}

/// A text that can be read in blocks.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    bytes: &'a [u8],
    safe: usize,
}

impl<'a> Text<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Text<'a> {
        Text { bytes, safe: bytes.len().saturating_sub(SLACK) }
    }

    pub(super) fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Positions before this one have [`SLACK`] readable bytes.
    #[inline(always)]
    pub(super) fn safe(self) -> usize {
        self.safe
    }

    /// The 64 bytes at a safe position.
    #[inline(always)]
    pub(super) fn block(self, at: usize) -> Option<&'a [u8; BLOCK]> {
        if at >= self.safe {
            return None;
        }
        // SAFETY: `at + SLACK <= bytes.len()`, and a block is shorter than SLACK.
        Some(unsafe { &*self.bytes.as_ptr().add(at).cast::<[u8; BLOCK]>() })
    }

    /// Whether the text at `at` starts with the first `len` bytes of `of`, which must be padded to
    /// whole blocks. Also false if the position is not safe.
    #[inline(always)]
    pub(super) fn starts_with<S: Simd>(self, at: usize, of: &[u8], len: usize) -> bool {
        if at + len >= self.safe || of.len() < len.next_multiple_of(BLOCK) {
            return false;
        }
        let mut i = 0;
        while i < len {
            // SAFETY: `at + i` is safe, and `of` has a whole block from `i` on.
            if unsafe {
                !S::same_block(
                    self.bytes.as_ptr().add(at + i),
                    of.as_ptr().add(i),
                    first_bytes(len - i),
                )
            } {
                return false;
            }
            i += BLOCK;
        }
        true
    }

    /// The block after the literal, if the literal matches at `at`.
    #[inline(always)]
    pub(super) fn behind<S: Simd>(self, at: usize, literal: &Literal) -> Option<&'a [u8; BLOCK]> {
        const { assert!(2 * BLOCK <= SLACK) };
        if at >= self.safe {
            return None;
        }
        // SAFETY: `at` is safe, and the literal is a whole block. The block after it starts at most
        // one block later, within the slack.
        unsafe {
            let here = self.bytes.as_ptr().add(at);
            S::same_block(here, literal.block.as_ptr(), literal.mask)
                .then(|| &*here.add(literal.len as usize).cast::<[u8; BLOCK]>())
        }
    }

    /// Position of the closing quote of a string that starts at `at` and has no escapes.
    #[inline(always)]
    pub(super) fn plain_string_end<S: Simd>(self, mut at: usize) -> Option<usize> {
        loop {
            let stops = S::quotes_and_backslashes(self.block(at)?);
            if stops != 0 {
                let end = at + stops.trailing_zeros() as usize;
                return (end < self.safe && self.bytes[end] == b'"').then_some(end);
            }
            at += BLOCK;
        }
    }

    /// Position of the closing quote of a string that starts at `at`, and whether it has escapes.
    #[inline(always)]
    pub(super) fn string_end<S: Simd>(self, mut at: usize) -> Option<(usize, bool)> {
        let mut escapes = false;
        loop {
            let stops = S::quotes_and_backslashes(self.block(at)?);
            if stops == 0 {
                at += BLOCK;
                continue;
            }
            at += stops.trailing_zeros() as usize;
            if *self.bytes.get(at)? == b'"' {
                return Some((at, escapes));
            }
            escapes = true;
            at += 2;
        }
    }

    /// Position after the bracket that closes `depth` levels. `at` must be outside strings.
    #[inline(always)]
    pub(super) fn close<S: Simd>(self, mut at: usize, mut depth: u32) -> Option<usize> {
        let (mut inside, mut carry) = (0u64, 0u64);
        loop {
            let marks = S::marks(self.block(at)?);
            let quotes = marks.quote & !escaped(marks.backslash, &mut carry);
            let string = S::prefix_xor(quotes) ^ inside;
            inside = ((string as i64) >> 63) as u64;
            let open = marks.open & !string;
            let mut close = marks.close & !string;
            let closes = close.count_ones();
            if closes >= depth {
                let mut seen = 0;
                while close != 0 {
                    let lowest = close & close.wrapping_neg();
                    seen += 1;
                    if depth + (open & (lowest - 1)).count_ones() == seen {
                        return Some(at + close.trailing_zeros() as usize + 1);
                    }
                    close &= close - 1;
                }
            }
            depth = depth + open.count_ones() - closes;
            at += BLOCK;
        }
    }

    /// Prefetches data that is read soon.
    #[inline(always)]
    pub(super) fn prefetch(self, at: usize, lines: usize) {
        #[cfg(target_arch = "x86_64")]
        for i in 0..lines {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a prefetch does not access memory, so any address is valid.
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(self.bytes.as_ptr().wrapping_add(at + 64 * i).cast())
            };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (at, lines);
    }
}

/// A literal of at most one block.
#[derive(Clone)]
#[repr(align(64))]
pub(super) struct Literal {
    block: [u8; BLOCK],
    mask: u64,
    len: u32,
}

impl Literal {
    /// Creates a literal, truncated to one block.
    pub(super) fn new(text: &[u8]) -> Literal {
        let len = text.len().min(BLOCK);
        let mut block = [0; BLOCK];
        block[..len].copy_from_slice(&text[..len]);
        Literal { block, mask: first_bytes(len), len: len as u32 }
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.block[..self.len()]
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }
}

/// Mask of the first `len` bytes of a block.
#[inline(always)]
fn first_bytes(len: usize) -> u64 {
    if len >= BLOCK { !0 } else { (1u64 << len) - 1 }
}

/// `at + len`, where `len` was predicted. If the prediction is correct, the next read depends on a
/// predicted branch instead of the arithmetic that computed `len`.
#[inline(always)]
pub(super) fn advance(at: usize, len: usize, guess: &mut u32) -> usize {
    #[cold]
    #[inline(never)]
    fn wrong() {}
    let mut guessed = *guess as usize;
    if len == guessed {
        // SAFETY: emits no instruction. It hides from the compiler that `guessed` equals `len`.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            std::arch::asm!("/* {0} */", inout(reg) guessed, options(pure, nomem, nostack, preserves_flags));
        }
        at + guessed
    } else {
        wrong();
        *guess = len as u32;
        at + len
    }
}

/// Bit `i` refers to byte `i` of a block.
#[derive(Clone, Copy)]
pub(super) struct Marks {
    quote: u64,
    backslash: u64,
    open: u64,
    close: u64,
}

/// Mask of escaped characters. `carry`: the block starts with an escaped character.
#[inline(always)]
fn escaped(backslash: u64, carry: &mut u64) -> u64 {
    if backslash == 0 {
        return std::mem::take(carry);
    }
    let mut bits = *carry;
    let mut left = backslash & !*carry;
    *carry = 0;
    while left != 0 {
        let i = left.trailing_zeros();
        if i == 63 {
            *carry = 1;
            break;
        }
        bits |= 1 << (i + 1);
        left &= !(3 << i);
    }
    bits
}

/// The operations of an instruction set.
pub(super) trait Simd: Copy {
    /// Masks of quotes, backslashes, `{[` and `}]`.
    fn marks(block: &[u8; BLOCK]) -> Marks;
    /// Mask of quotes and backslashes. Only the lowest bit must be correct.
    fn quotes_and_backslashes(block: &[u8; BLOCK]) -> u64;
    /// Length of the run of number characters; 32 if it exceeds 31.
    fn number_len(block: &[u8; BLOCK]) -> usize;
    /// Compares the bytes of two blocks whose bits are set in the mask.
    ///
    /// # Safety
    /// Both blocks must be readable.
    unsafe fn same_block(a: *const u8, b: *const u8, mask: u64) -> bool;
    /// Prefix xor from bit 0 upwards: turns quotes into a mask of string contents.
    fn prefix_xor(bits: u64) -> u64;
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{BLOCK, Marks, Simd};
    use std::arch::x86_64::*;

    #[derive(Clone, Copy)]
    pub(super) struct Avx2;

    #[inline(always)]
    unsafe fn halves(block: &[u8; BLOCK]) -> (__m256i, __m256i) {
        let p = block.as_ptr().cast::<__m256i>();
        // SAFETY: a block is two halves of 32 bytes.
        unsafe { (_mm256_loadu_si256(p), _mm256_loadu_si256(p.add(1))) }
    }

    #[inline(always)]
    unsafe fn equal(a: __m256i, b: __m256i, byte: u8) -> u64 {
        // SAFETY: `Avx2` is used only by `run`, which has checked the features.
        unsafe {
            let k = _mm256_set1_epi8(byte as i8);
            let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(a, k)) as u32;
            let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(b, k)) as u32;
            u64::from(low) | u64::from(high) << 32
        }
    }

    // SAFETY of all blocks below: `Avx2` is used only by `run`, which has checked the features.
    impl Simd for Avx2 {
        #[inline(always)]
        fn marks(block: &[u8; BLOCK]) -> Marks {
            // SAFETY: see above.
            unsafe {
                let (a, b) = halves(block);
                let bit = _mm256_set1_epi8(0x20); // maps `[` and `]` to `{` and `}`
                let (c, d) = (_mm256_or_si256(a, bit), _mm256_or_si256(b, bit));
                Marks {
                    quote: equal(a, b, b'"'),
                    backslash: equal(a, b, b'\\'),
                    open: equal(c, d, b'{'),
                    close: equal(c, d, b'}'),
                }
            }
        }

        #[inline(always)]
        fn quotes_and_backslashes(block: &[u8; BLOCK]) -> u64 {
            // SAFETY: see above.
            unsafe {
                let (a, b) = halves(block);
                equal(a, b, b'"') | equal(a, b, b'\\')
            }
        }

        #[inline(always)]
        fn number_len(block: &[u8; BLOCK]) -> usize {
            // SAFETY: see above.
            unsafe {
                let (x, _) = halves(block);
                let is = |byte: u8| _mm256_cmpeq_epi8(x, _mm256_set1_epi8(byte as i8));
                // `+ , - . / 0..9` are consecutive. Exclude the comma and the slash.
                let from_plus = _mm256_sub_epi8(x, _mm256_set1_epi8(b'+' as i8));
                let run =
                    _mm256_cmpeq_epi8(_mm256_min_epu8(from_plus, _mm256_set1_epi8(14)), from_plus);
                let run = _mm256_andnot_si256(_mm256_or_si256(is(b','), is(b'/')), run);
                let exponent = _mm256_cmpeq_epi8(
                    _mm256_or_si256(x, _mm256_set1_epi8(0x20)),
                    _mm256_set1_epi8(b'e' as i8),
                );
                let bits = _mm256_movemask_epi8(_mm256_or_si256(run, exponent)) as u32;
                (!bits).trailing_zeros() as usize
            }
        }

        #[inline(always)]
        unsafe fn same_block(a: *const u8, b: *const u8, mask: u64) -> bool {
            // SAFETY: the caller guarantees readable blocks.
            unsafe {
                let differ = |i: usize| {
                    let (x, y) =
                        (_mm256_loadu_si256(a.add(i).cast()), _mm256_loadu_si256(b.add(i).cast()));
                    !_mm256_movemask_epi8(_mm256_cmpeq_epi8(x, y)) as u32
                };
                (u64::from(differ(0)) | u64::from(differ(32)) << 32) & mask == 0
            }
        }

        #[inline(always)]
        fn prefix_xor(bits: u64) -> u64 {
            // SAFETY: see above.
            unsafe {
                _mm_cvtsi128_si64(_mm_clmulepi64_si128(
                    _mm_set_epi64x(0, bits as i64),
                    _mm_set1_epi8(-1),
                    0,
                )) as u64
            }
        }
    }
}

/// Plain 64-bit arithmetic.
#[derive(Clone, Copy)]
pub(super) struct Portable;

#[inline(always)]
fn word(bytes: &[u8; BLOCK], i: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[8 * i..8 * i + 8]);
    u64::from_le_bytes(word)
}

/// One bit for every byte of the word that equals `byte`.
#[inline(always)]
fn equal(word: u64, byte: u8) -> u64 {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const REST: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let x = word ^ (LOW * u64::from(byte));
    let zero = !(((x & REST) + REST) | x | REST);
    (zero >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

#[inline(always)]
fn gather(block: &[u8; BLOCK], bits: impl Fn(u64) -> u64) -> u64 {
    (0..8).fold(0, |all, i| all | bits(word(block, i)) << (8 * i))
}

impl Simd for Portable {
    #[inline(always)]
    fn marks(block: &[u8; BLOCK]) -> Marks {
        const BIT: u64 = 0x2020_2020_2020_2020;
        Marks {
            quote: gather(block, |w| equal(w, b'"')),
            backslash: gather(block, |w| equal(w, b'\\')),
            open: gather(block, |w| equal(w | BIT, b'{')),
            close: gather(block, |w| equal(w | BIT, b'}')),
        }
    }

    #[inline(always)]
    fn quotes_and_backslashes(block: &[u8; BLOCK]) -> u64 {
        for i in 0..8 {
            let w = word(block, i);
            let bits = equal(w, b'"') | equal(w, b'\\');
            if bits != 0 {
                return bits << (8 * i);
            }
        }
        0
    }

    #[inline(always)]
    fn number_len(block: &[u8; BLOCK]) -> usize {
        block[..32]
            .iter()
            .position(|b| !matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'))
            .unwrap_or(32)
    }

    #[inline(always)]
    unsafe fn same_block(a: *const u8, b: *const u8, mask: u64) -> bool {
        // Masks always cover the first bytes of a block.
        let len = mask.trailing_ones() as usize;
        // SAFETY: words of readable blocks, guaranteed by the caller.
        let differ = |i: usize| unsafe {
            a.add(i).cast::<u64>().read_unaligned() ^ b.add(i).cast::<u64>().read_unaligned()
        };
        let mut i = 0;
        while i + 8 <= len {
            if differ(i) != 0 {
                return false;
            }
            i += 8;
        }
        i == len || u64::to_le(differ(i)) & ((1u64 << (8 * (len - i))) - 1) == 0
    }

    #[inline(always)]
    fn prefix_xor(mut bits: u64) -> u64 {
        for shift in [1, 2, 4, 8, 16, 32] {
            bits ^= bits << shift;
        }
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Primitives<'a>(&'a [u8]);
    impl Task for Primitives<'_> {
        type Out = Vec<(Option<usize>, Option<(usize, bool)>, Option<usize>, usize)>;
        #[inline(always)]
        fn run<S: Simd>(self) -> Self::Out {
            let text = Text::new(self.0);
            (0..text.safe())
                .map(|at| {
                    let number = text.block(at).map_or(0, S::number_len);
                    (
                        text.plain_string_end::<S>(at),
                        text.string_end::<S>(at),
                        text.close::<S>(at, 1),
                        number,
                    )
                })
                .collect()
        }
    }

    #[test]
    fn instruction_sets_agree_at_every_position() {
        let mut seed = 1u64;
        let alphabet = br#""\{}[],:0123456789.+-eE/ax"#;
        let text: Vec<u8> = (0..4000)
            .map(|_| {
                seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                alphabet[(seed >> 33) as usize % alphabet.len()]
            })
            .collect();
        assert_eq!(run(Isa::detect(), Primitives(&text)), run(Isa::Portable, Primitives(&text)));
    }

    #[test]
    fn ignores_brackets_in_strings() {
        let mut text = br#"{"a": "}\"}", "b": [{}, "]"]} rest"#.to_vec();
        text.resize(text.len() + SLACK, b' ');
        let end = Text::new(&text).close::<Portable>(1, 1);
        assert_eq!(end, Some(29));
    }
}
