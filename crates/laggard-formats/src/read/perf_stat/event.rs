//! Parses event names.

use laggard_core::model::counters::Reading;

/// Modifier letters after the name of an event.
const MODIFIERS: &str = "ukhGHIepPSDWbR";
/// Longer names are truncated.
const LONGEST_NAME: usize = 1 << 10;

/// An event in perf notation.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) modifiers: String,
    pub(super) pmu: String,
}

/// Parses `cpu_core/cycles/u`.
pub(super) fn event(text: &str) -> Event {
    let text = shortened(text.trim());
    // Some versions write the PMU after the name: `cycles [cpu_core]`.
    if let Some((name, pmu)) = text.strip_suffix(']').and_then(|text| text.rsplit_once(" [")) {
        return Event { pmu: pmu.to_owned(), ..event(name) };
    }
    if let Some((pmu, rest)) = text.split_once('/')
        && let Some((name, modifiers)) = rest.rsplit_once('/')
        && !pmu.is_empty()
        && !name.is_empty()
        && are_modifiers(modifiers.trim_start_matches(':'))
    {
        let modifiers = modifiers.trim_start_matches(':');
        return Event {
            name: name.to_owned(),
            modifiers: modifiers.to_owned(),
            pmu: pmu.to_owned(),
        };
    }
    match text.rsplit_once(':') {
        // A tracepoint also has a colon: `sched:sched_switch`.
        Some((name, modifiers))
            if !name.is_empty() && !modifiers.is_empty() && are_modifiers(modifiers) =>
        {
            Event { name: name.to_owned(), modifiers: modifiers.to_owned(), pmu: String::new() }
        }
        _ => Event { name: text.to_owned(), ..Event::default() },
    }
}

fn are_modifiers(text: &str) -> bool {
    text.len() <= 8 && text.chars().all(|c| MODIFIERS.contains(c))
}

fn shortened(text: &str) -> &str {
    let end = (0..=LONGEST_NAME.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
    &text[..end.unwrap_or(0)]
}

/// Whether the text can be the name of an event.
pub(super) fn is_event(text: &str) -> bool {
    let text = text.trim();
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && !text.contains(['"', '{', '}', '<', '>', '\''])
        && !text.chars().any(char::is_control)
}

/// Parses a counter value of CSV or JSON.
pub(super) fn reading(text: &str) -> Option<Reading> {
    match text.trim() {
        "<not counted>" => Some(Reading::NotCounted),
        "<not supported>" => Some(Reading::NotSupported),
        text => number(text).map(Reading::Value),
    }
}

/// Parses a finite number that is not negative and starts with a digit.
pub(super) fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_plain = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | '+' | '-');
    if !text.starts_with(|c: char| c.is_ascii_digit()) || !text.chars().all(is_plain) {
        return None;
    }
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Parses a percentage as a share.
pub(super) fn share(text: &str) -> Option<f64> {
    number(text).map(|percent| percent / 100.0)
}

/// Converts seconds to nanoseconds.
pub(super) fn nanoseconds(seconds: f64) -> Option<u64> {
    (0.0..1e9).contains(&seconds).then(|| (seconds * 1e9).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_event_names() {
        let check = |text: &str, name: &str, modifiers: &str, pmu: &str| {
            let expected =
                Event { name: name.into(), modifiers: modifiers.into(), pmu: pmu.into() };
            assert_eq!(event(text), expected, "{text}");
        };
        check("cycles", "cycles", "", "");
        check("cycles:u", "cycles", "u", "");
        check("cycles:ppp", "cycles", "ppp", "");
        check("cpu_core/cycles/", "cycles", "", "cpu_core");
        check("cpu_atom/L1-dcache-loads/uP", "L1-dcache-loads", "uP", "cpu_atom");
        check("cpu/event=0x3c,umask=0x0/", "event=0x3c,umask=0x0", "", "cpu");
        check("cycles [cpu_core]", "cycles", "", "cpu_core");
        check("sched:sched_switch", "sched:sched_switch", "", "");
        check("syscalls:sys_enter_read", "syscalls:sys_enter_read", "", "");
        check("a/b", "a/b", "", "");
        check("//", "//", "", "");
        check(":u", ":u", "", "");
        check("", "", "", "");
    }
}
