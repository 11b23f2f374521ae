//! Exact parsing of decimal numbers, eight digits at a time.

use super::simd::BLOCK;

const POWERS: [u64; 9] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Value and number (0 to 8) of the digits at `at`.
#[inline(always)]
fn digits8(block: &[u8; BLOCK], at: usize) -> Option<(u64, usize)> {
    let eight: [u8; 8] = block.get(at..at + 8)?.try_into().ok()?;
    let t = u64::from_le_bytes(eight) ^ 0x3030_3030_3030_3030;
    let not_digit = (t.wrapping_add(0x7676_7676_7676_7676) | t) & 0x8080_8080_8080_8080;
    let n = not_digit.trailing_zeros() as usize / 8;
    let s = t << (8 * (8 - n as u32)).min(63); // without digits the value is not used
    let s = s.wrapping_mul(10).wrapping_add(s >> 8) & 0x00ff_00ff_00ff_00ff;
    let s = s.wrapping_mul(100).wrapping_add(s >> 16) & 0x0000_ffff_0000_ffff;
    Some((s.wrapping_mul(10_000).wrapping_add(s >> 32) & 0xffff_ffff, n))
}

/// Parses 1 to 18 digits.
#[inline(always)]
fn unsigned(block: &[u8; BLOCK], at: usize) -> Option<(u64, usize)> {
    let (v, n) = digits8(block, at)?;
    if n < 8 {
        return (n > 0).then_some((v, n));
    }
    let (w, k) = digits8(block, at + 8)?;
    if k < 8 {
        return Some((if k == 0 { v } else { v * POWERS[k] + w }, 8 + k));
    }
    let (x, j) = digits8(block, at + 16)?;
    let v = v * POWERS[8] + w;
    match j {
        0 => Some((v, 16)),
        1 | 2 => Some((v * POWERS[j] + x, 16 + j)),
        _ => None,
    }
}

/// The integer at the start of the block and its length. The caller checks the next byte.
#[inline(always)]
pub(super) fn integer(block: &[u8; BLOCK]) -> Option<(i64, usize)> {
    #[cold]
    fn negative(block: &[u8; BLOCK]) -> Option<(i64, usize)> {
        let (v, n) = unsigned(block, 1)?;
        Some((-(v as i64), n + 1))
    }
    if block[0] == b'-' {
        return negative(block);
    }
    let (v, n) = unsigned(block, 0)?;
    Some((v as i64, n))
}

/// Microseconds with at most three decimals as nanoseconds, and the length of the number.
#[inline(always)]
pub(super) fn micros(block: &[u8; BLOCK]) -> Option<(i64, usize)> {
    #[cold]
    fn negative(block: &[u8; BLOCK]) -> Option<(i64, usize)> {
        let (v, n) = unsigned_micros(block, 1)?;
        Some((-v, n))
    }
    if block[0] == b'-' {
        return negative(block);
    }
    unsigned_micros(block, 0)
}

/// [`micros`] without a sign, starting at `at`. The length counts from the start of the block.
#[inline(always)]
fn unsigned_micros(block: &[u8; BLOCK], at: usize) -> Option<(i64, usize)> {
    let (v, n) = unsigned(block, at)?;
    let n = at + n;
    if v > 9_000_000_000_000_000 {
        return None;
    }
    let v = v * 1000;
    if block[n & (BLOCK - 1)] != b'.' {
        return Some((v as i64, n));
    }
    let (fraction, k) = digits8(block, n + 1)?;
    let scale = match k {
        1 => 100,
        2 => 10,
        3 => 1,
        _ => return None,
    };
    Some(((v + fraction * scale) as i64, n + 1 + k))
}

/// Any JSON number of microseconds as nanoseconds, exact. Rounded half away from zero if it has
/// more than three decimals. `None` if it is not a number or does not fit.
pub(super) fn micros_token(token: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(token).ok()?;
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(i) => (&text[..i], text[i + 1..].parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    // value = digits * 10^(exponent - fraction length) us = digits * 10^scale ns
    let scale = i64::from(exponent) - fraction.len() as i64 + 3;
    let digits = whole.bytes().chain(fraction.bytes()).map(|b| i128::from(b - b'0'));
    let mut value: i128 = 0;
    let mut scale = scale;
    for digit in digits {
        if value > i128::MAX / 100 {
            scale += 1; // digits after the 36th do not matter
        } else {
            value = value * 10 + digit;
        }
    }
    while scale > 0 && value != 0 {
        value = value.checked_mul(10)?;
        scale -= 1;
    }
    let mut half = 0;
    while scale < 0 && value != 0 {
        half = value % 10;
        value /= 10;
        scale += 1;
    }
    if scale < 0 {
        half = 0; // the value is below the last place
    }
    value += i128::from(half >= 5);
    i64::try_from(if negative { -value } else { value }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(token: &str, expected: Option<i64>) {
        assert_eq!(micros_token(token.as_bytes()), expected, "{token}");
        let mut block = [b' '; BLOCK];
        block[..token.len()].copy_from_slice(token.as_bytes());
        if let Some((value, len)) = micros(&block)
            && len == token.len()
        {
            assert_eq!(Some(value), expected, "fast: {token}");
        }
    }

    #[test]
    fn parses_times_exactly() {
        check("0", Some(0));
        check("7.5", Some(7_500));
        check("1712195495520871.0", Some(1_712_195_495_520_871_000));
        check("1712195495520871.123", Some(1_712_195_495_520_871_123));
        check("3743411222487.063", Some(3_743_411_222_487_063));
        check("-12.5", Some(-12_500));
        check("0.0005", Some(1));
        check("0.00049", Some(0));
        check("0.00009", Some(0));
        check("1e3", Some(1_000_000));
        check("1.5E-3", Some(2));
        check("12345678901234567", None);
        check("99999999999999999999", None);
        check("1e400", None);
        check("1e-400", Some(0));
        check("-", None);
        check("1.2.3", None);
        check("NaN", None);
        check("", None);
    }

    #[test]
    fn parses_integers_of_every_length() {
        for n in 1..=20usize {
            let token = "9876543210123456789012"[..n].to_string();
            for sign in ["", "-"] {
                let token = format!("{sign}{token}");
                let mut block = [b','; BLOCK];
                block[..token.len()].copy_from_slice(token.as_bytes());
                let expected = (n <= 18).then(|| (token.parse::<i64>().unwrap(), token.len()));
                assert_eq!(integer(&block), expected, "{token}");
            }
        }
    }
}
