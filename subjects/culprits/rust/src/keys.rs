//! Hashing of keys, one or many per call, and a digest of bytes.

use crate::read;

/// Mixes the bits of a key.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn mix(key: u64) -> u32 {
    let mut bits = key;
    for _ in 0..4 {
        bits = (bits ^ (bits >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        bits = (bits ^ (bits >> 29)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    }
    (bits >> 32) as u32
}

/// Sum of all mixed keys.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mix_all(keys: *const u64, len: usize) -> u64 {
    // SAFETY: the contract of the crate.
    let keys = unsafe { read(keys, len) };
    keys.iter().map(|&key| u64::from(mix(key))).sum()
}

/// FNV-1a.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn digest(bytes: *const u8, len: usize) -> u64 {
    // SAFETY: the contract of the crate.
    let bytes = unsafe { read(bytes, len) };
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_keys_at_a_call_are_mixed_as_one() {
        let keys: Vec<u64> = (0..1000).collect();
        // SAFETY: pointer and length come from one slice.
        let all = unsafe { mix_all(keys.as_ptr(), keys.len()) };
        assert_eq!(all, keys.iter().map(|&key| u64::from(mix(key))).sum());
    }
}
