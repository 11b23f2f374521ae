//! What a trace says about itself: the values beside the event array.

use laggard_core::model::timeline::{About, Device};
use serde_json::Value;

/// Texts longer than this are no properties to show.
const LONGEST_PROPERTY: usize = 200;

/// Takes over one top-level value; false when it is not JSON.
pub(super) fn add(about: &mut About, key: &str, text: &[u8]) -> bool {
    let Ok(value) = serde_json::from_slice::<Value>(text) else { return false };
    match (key, &value) {
        ("baseTimeNanoseconds", Value::Number(_)) => {
            about.base_time_ns = value.as_i64().unwrap_or(0)
        }
        ("deviceProperties", Value::Array(devices)) => {
            about.devices = devices.iter().map(device).collect()
        }
        ("distributedInfo", Value::Object(info)) => {
            about.rank = info.get("rank").and_then(integer);
            about.world_size = info.get("world_size").and_then(integer);
            about.backend = info.get("backend").and_then(Value::as_str).map(str::to_owned);
        }
        (_, Value::String(text)) if text.len() <= LONGEST_PROPERTY => {
            about.properties.push((key.to_owned(), text.clone()))
        }
        (_, Value::Number(_) | Value::Bool(_)) => {
            about.properties.push((key.to_owned(), value.to_string()))
        }
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
