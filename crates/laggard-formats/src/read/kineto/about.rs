//! Metadata of a trace: the top-level values besides the event array.

use laggard_core::model::timeline::{About, Device};
use serde_json::Value;

/// Maximum length of a text property.
const LONGEST_PROPERTY: usize = 200;
/// Maximum size of the device and rank descriptions.
const LONGEST_STRUCTURE: usize = 16 << 20;
/// Maximum number of properties.
const MOST_PROPERTIES: usize = 200;
const MOST_DEVICES: usize = 256;

/// Adds a top-level value. Returns false if it is not JSON. Only known values are parsed, because
/// others can be as large as the file.
pub(super) fn add(about: &mut About, key: &str, text: &[u8]) -> bool {
    let structured = matches!(key, "deviceProperties" | "distributedInfo");
    let longest = if structured { LONGEST_STRUCTURE } else { LONGEST_PROPERTY };
    let nested = matches!(text.first(), Some(b'{' | b'['));
    if text.len() > longest || (nested && !structured) {
        return true;
    }
    let Ok(value) = serde_json::from_slice::<Value>(text) else { return false };
    let mut property = |text: String| {
        about.properties.retain(|(known, _)| known != key);
        if about.properties.len() < MOST_PROPERTIES {
            about.properties.push((key.to_owned(), text));
        }
    };
    match (key, &value) {
        ("baseTimeNanoseconds", Value::Number(_)) => {
            about.base_time_ns = value.as_i64().unwrap_or(0);
        }
        ("deviceProperties", Value::Array(devices)) => {
            about.devices = devices.iter().take(MOST_DEVICES).map(device).collect();
        }
        ("distributedInfo", Value::Object(info)) => {
            about.rank = info.get("rank").and_then(integer);
            about.world_size = info.get("world_size").and_then(integer);
            about.backend = info.get("backend").and_then(Value::as_str).map(str::to_owned);
        }
        (_, Value::String(text)) => property(text.clone()),
        (_, Value::Number(_) | Value::Bool(_)) => property(value.to_string()),
        _ => {}
    }
    true
}

fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

fn device(value: &Value) -> Device {
    let number = |key: &str| value.get(key).and_then(integer).unwrap_or(0);
    Device {
        id: number("id"),
        name: value.get("name").and_then(Value::as_str).unwrap_or("").to_owned(),
        sms: number("numSms"),
        warp_size: number("warpSize"),
        memory: number("totalGlobalMem"),
        compute: (number("computeMajor"), number("computeMinor")),
    }
}
