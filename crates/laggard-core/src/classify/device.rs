//! Peak rates of devices, looked up by name or by size.

use super::RulesError;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Peak rates of a device from its data sheet.
#[derive(Clone, Debug, PartialEq)]
pub struct DevicePeak {
    /// Product name, such as "MI300X".
    pub name: String,
    /// Memory bandwidth in bytes per second.
    pub bandwidth: f64,
    /// Dense operations per second by type.
    rates: BTreeMap<&'static str, f64>,
    matches: Vec<String>,
    sms: Option<i64>,
    memory_gib: Option<f64>,
}

impl DevicePeak {
    /// Dense operations per second for a type: "fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4"
    /// or "int8", see [`crate::trace::work::peak_key`]. `None` if the device lacks the type.
    pub fn flops(&self, key: &str) -> Option<f64> {
        self.rates.get(key).copied()
    }

    /// All types with their rates.
    pub fn rates(&self) -> impl Iterator<Item = (&'static str, f64)> + '_ {
        self.rates.iter().map(|(key, rate)| (*key, *rate))
    }

    /// Whether the size matches. Unknown sizes and entries without a size always match.
    fn fits(&self, sms: i64, memory_bytes: i64) -> bool {
        self.sms.is_none_or(|own| sms <= 0 || own == sms)
            && self.memory_gib.is_none_or(|own| memory_bytes <= 0 || near(own, memory_bytes))
    }
}

/// A device as written in the file: rates in TFLOP/s, bandwidth in GB/s.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeviceEntry {
    name: String,
    #[serde(rename = "match")]
    matches: Vec<String>,
    sms: Option<i64>,
    memory_gib: Option<f64>,
    bandwidth: f64,
    fp64: Option<f64>,
    fp32: Option<f64>,
    tf32: Option<f64>,
    fp16: Option<f64>,
    bf16: Option<f64>,
    fp8: Option<f64>,
    fp4: Option<f64>,
    int8: Option<f64>,
}

impl DeviceEntry {
    /// Validates the entry and converts it to operations and bytes per second.
    pub(super) fn peak(self, number: usize) -> Result<DevicePeak, RulesError> {
        let stated = [
            ("fp64", self.fp64),
            ("fp32", self.fp32),
            ("tf32", self.tf32),
            ("fp16", self.fp16),
            ("bf16", self.bf16),
            ("fp8", self.fp8),
            ("fp4", self.fp4),
            ("int8", self.int8),
        ];
        let rates: BTreeMap<_, _> =
            stated.into_iter().filter_map(|(key, rate)| Some((key, rate? * 1e12))).collect();
        let positive = |x: &f64| *x > 0.0 && x.is_finite();
        let problem =
            if self.matches.is_empty() && (self.sms.is_none() || self.memory_gib.is_none()) {
                Some("can never match; add `match`, or both `sms` and `memory_gib`")
            } else if self.matches.iter().any(|text| text.trim().is_empty()) {
                Some("has an empty string in `match`")
            } else if !positive(&self.bandwidth) || !rates.values().all(positive) {
                Some("has a rate that is not a positive number")
            } else {
                None
            };
        if let Some(problem) = problem {
            return Err(RulesError::Device { number, name: self.name, problem });
        }
        Ok(DevicePeak {
            name: self.name,
            bandwidth: self.bandwidth * 1e9,
            rates,
            matches: self.matches.iter().map(|text| text.to_lowercase()).collect(),
            sms: self.sms,
            memory_gib: self.memory_gib,
        })
    }
}

/// The first entry that matches a name; for an empty or generic name, the first of the same size.
pub(super) fn find<'a>(
    devices: &'a [DevicePeak],
    name: &str,
    sms: i64,
    memory_bytes: i64,
) -> Option<&'a DevicePeak> {
    let name = name.trim().to_lowercase();
    if name.is_empty() || name.ends_with("radeon graphics") {
        return devices.iter().find(|device| {
            device.sms == Some(sms) && device.memory_gib.is_some_and(|own| near(own, memory_bytes))
        });
    }
    let mut named =
        devices.iter().filter(|device| device.matches.iter().any(|text| has_words(&name, text)));
    named.find(|device| device.fits(sms, memory_bytes))
}

/// Whether a memory size is within 10 % of the nominal size; drivers reserve some memory.
fn near(gib: f64, bytes: i64) -> bool {
    let actual = bytes as f64 / f64::from(1u32 << 30);
    (0.9 * gib..1.1 * gib).contains(&actual)
}

/// Whether a name contains a text as whole words, so that "a10" does not match "a100".
fn has_words(name: &str, text: &str) -> bool {
    let touches = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    name.match_indices(text).any(|(at, _)| {
        !touches(name[..at].chars().next_back()) && !touches(name[at + text.len()..].chars().next())
    })
}
