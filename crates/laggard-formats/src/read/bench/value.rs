//! Accessors for untrusted JSON. A missing field or one of another type is `None`.

use serde_json::Value;

/// Maximum plausible time in seconds: 31 years.
const LONGEST_S: f64 = 1e9;

/// A string field.
pub(super) fn text<'a>(of: &'a Value, field: &str) -> Option<&'a str> {
    of.get(field)?.as_str()
}

/// A finite number.
pub(super) fn number(of: &Value, field: &str) -> Option<f64> {
    of.get(field)?.as_f64().filter(|number| number.is_finite())
}

/// A count of at least 1.
pub(super) fn count(of: &Value, field: &str) -> Option<u64> {
    let field = of.get(field)?;
    // Some writers store counts as 1.0.
    let whole = || field.as_f64().filter(|n| n.fract() == 0.0 && (1.0..1e15).contains(n));
    field.as_u64().or_else(|| whole().map(|n| n as u64)).filter(|&n| (1..1 << 50).contains(&n))
}

/// The elements of a list field; empty if it is not a list.
pub(super) fn list<'a>(of: &'a Value, field: &str) -> &'a [Value] {
    of.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A scalar as text, without quotes. `None` for null, lists and objects.
pub(super) fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Scalar fields that are not empty, under their names in laggard.
pub(super) fn facts(of: &Value, fields: &[(&str, &str)]) -> Vec<(String, String)> {
    let fact = |(field, name): &(&str, &str)| {
        let value = plain(of.get(field)?).filter(|value| !value.is_empty())?;
        Some(((*name).to_owned(), value))
    };
    fields.iter().filter_map(fact).collect()
}

/// Converts seconds to nanoseconds. `None` if the time is not plausible.
pub(super) fn nanoseconds(seconds: f64) -> Option<u64> {
    ((0.0..LONGEST_S).contains(&seconds)).then(|| (seconds * 1e9).round() as u64)
}

/// Describes a JSON error.
pub(super) fn not_json(error: &serde_json::Error) -> String {
    if error.is_eof() {
        format!("the JSON is truncated at line {}", error.line())
    } else {
        error.to_string()
    }
}

/// Seconds since 1970 of `2026-11-16T13:09:12.5+01:00`. Without a time zone, UTC is assumed.
pub(super) fn moment(text: &str) -> Option<f64> {
    let text = text.trim();
    let number = |range: std::ops::Range<usize>| -> Option<i64> {
        let digits = text.get(range)?;
        digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let rest = text.get(19..)?;
    let end = rest.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(rest.len());
    let fraction = rest[..end].parse().unwrap_or(0.0);
    let zone = match rest[end..].trim() {
        "" | "Z" => 0,
        zone => {
            let sign = if zone.starts_with('-') { -1 } else { 1 };
            let digits: String = zone.chars().filter(char::is_ascii_digit).collect();
            let part = |range| digits.get(range).and_then(|d: &str| d.parse::<i64>().ok());
            sign * (part(0..2)? * 3600 + part(2..4).unwrap_or(0) * 60)
        }
    };
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - zone;
    Some(seconds as f64 + fraction)
}

/// Days from 1970 to a date. March is the first month, so that leap days come last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_python_timestamps() {
        for (text, expected) in [
            ("1970-01-01T00:00:00", Some(0.0)),
            ("2000-02-29 12:00:00Z", Some(951_825_600.0)),
            ("2026-11-16T13:09:12.500000+00:00", Some(1_794_834_552.5)),
            ("2026-11-16T14:09:12.500000+01:00", Some(1_794_834_552.5)),
            ("2026-11-16 11:39:12.5-0130", Some(1_794_834_552.5)),
            ("yesterday", None),
            ("", None),
            ("2026-13-01T00:00:00", None),
            ("2026-11-16T13:09:1é", None),
        ] {
            assert_eq!(moment(text), expected, "{text}");
        }
    }

    #[test]
    fn rejects_implausible_times() {
        assert_eq!(nanoseconds(1.5e-9), Some(2));
        for seconds in [-1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(nanoseconds(seconds), None);
        }
    }
}
