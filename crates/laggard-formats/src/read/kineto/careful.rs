//! The careful path: parses one event by its tokens, handling and counting every anomaly.

use super::event::{Form, Slot, Values, wanted_args};
use super::json::{self, Budget, Quotes, Shape, Stop, Token};
use super::number;
use super::part::{Part, Stamp};
use laggard_core::model::timeline::{LossReason, Table};
use std::borrow::Cow;

/// The result of reading an element of the event array.
pub(super) enum Read {
    /// The event was kept, and its layout can be learned.
    Kept(Stamp),
    /// The event was kept or dropped, and counted. Its layout is not learned.
    Odd,
}

/// Reads the element at `at` and returns the position after it. `offset` is the position of the
/// text in the file.
pub(super) fn element(
    b: &[u8],
    at: usize,
    offset: u64,
    part: &mut Part,
    values: &mut Values,
    tokens: &mut Vec<Token>,
) -> Result<(usize, Read), Stop> {
    let place = offset.wrapping_add(at as u64);
    if b.get(at) != Some(&b'{') {
        let (end, _) = json::value(b, at, Quotes::Strict)?;
        part.losses.add(LossReason::NotAnObject, place);
        return Ok((end, Read::Odd));
    }
    match json::event(b, at, Quotes::Strict, tokens) {
        Ok(end) => Ok((end, keep(b, tokens, place, part, values))),
        Err(stop) => {
            // Other damage and truncation can also look like unescaped quotes. The repair must give
            // an event, and no key may contain the start of another event.
            let Ok(end) = json::event(b, at, Quotes::Lenient, tokens) else { return Err(stop) };
            let plausible = |t: &Token| !b[t.key.0..t.key.1].iter().any(|c| b"{}[]\n".contains(c));
            if !is_event(b, tokens) || !tokens.iter().all(plausible) {
                return Err(stop);
            }
            part.losses.add(LossReason::UnescapedQuotes, place);
            keep(b, tokens, place, part, values);
            Ok((end, Read::Odd))
        }
    }
}

/// Finds the next complete event after a broken element at `at`, and the number of broken events
/// before it. `None` if there is no complete event.
pub(super) fn next_event(b: &[u8], at: usize, tokens: &mut Vec<Token>) -> Option<(usize, u64)> {
    let mut budget = Budget::new(b, at);
    let (mut from, mut broken) = (at + 1, 1);
    while budget.is_left() {
        let candidate = from + memchr::memchr(b'{', b.get(from..)?)?;
        from = candidate + 1;
        let head = &b[candidate..b.len().min(candidate + 32)];
        let begins_like_one = memchr::memmem::find(head, b"\"ph\"").is_some();
        if !begins_like_one && !is_behind_object(b, candidate) {
            continue;
        }
        let read = json::event(b, candidate, Quotes::Strict, tokens);
        if read.is_ok() && is_event(b, tokens) {
            return Some((candidate, broken));
        }
        budget.spend(candidate, read);
        // An incomplete text that starts like an event is a broken event.
        broken += u64::from(read.is_err() && begins_like_one);
    }
    None
}

fn is_event(b: &[u8], tokens: &[Token]) -> bool {
    tokens.iter().any(|t| !t.in_args && &b[t.key.0..t.key.1] == b"ph")
}

/// Guesses the start of an event at or after `at`: a `{` after a `}` and a comma. The caller must
/// verify it.
pub(super) fn guess_start(b: &[u8], at: usize) -> Option<usize> {
    let mut braces = memchr::memchr_iter(b'{', b.get(at..)?).map(|i| at + i);
    braces.find(|&brace| is_behind_object(b, brace))
}

/// Whether a `}` and a comma precede `at`.
fn is_behind_object(b: &[u8], at: usize) -> bool {
    let space = |c: &u8| matches!(c, b' ' | b'\n' | b'\r' | b'\t');
    let mut before = b[..at].iter().rev().skip_while(|c| space(c));
    before.next() == Some(&b',') && before.find(|c| !space(c)) == Some(&b'}')
}

fn keep(b: &[u8], tokens: &[Token], place: u64, part: &mut Part, values: &mut Values) -> Read {
    values.clear();
    let mut odd = false;
    let (mut phase, mut category, mut name) = (Cow::default(), Cow::default(), None);
    let mut args = None;
    for token in tokens.iter().filter(|t| !t.in_args) {
        let key = &b[token.key.0..token.key.1];
        let value = &b[token.value.0..token.value.1];
        odd |= key.contains(&b'\\');
        match (&*plain(key), token.shape) {
            (b"ph", Shape::String) => phase = plain(unquoted(value)),
            (b"cat", Shape::String) => category = plain(unquoted(value)),
            (b"name", _) => name = Some(intern(part, value, token.shape, place)),
            (b"args", Shape::Object) => args = Some(token.value),
            (key, _) => {
                if let Some(slot) = Slot::of_key(key) {
                    odd |= !set(slot, value, token.shape, part, values, place);
                }
            }
        }
    }
    let (kind, table, known) = part.kind(&phase, &category);
    if table == Table::Counter
        && let Some((from, to)) = args
    {
        let text = part.jsons.intern(&b[from..to], place);
        values.set(Slot::CounterArgs, i64::from(text));
    }
    let wanted = wanted_args(table);
    for token in tokens.iter().filter(|t| t.in_args) {
        if values.has_all(wanted) {
            break;
        }
        let key = &b[token.key.0..token.key.1];
        odd |= key.contains(&b'\\');
        if let Some(slot) = Slot::of_arg(&plain(key)) {
            odd |= !set(slot, &b[token.value.0..token.value.1], token.shape, part, values, place);
        }
    }
    if phase.is_empty() {
        part.events += 1;
        part.losses.add(LossReason::NotJson, place);
        return Read::Odd;
    }
    if !values.has(Slot::Ts) && table != Table::Meta {
        part.events += 1;
        part.with_phase += 1;
        part.losses.add(LossReason::NoTimestamp, place);
        return Read::Odd;
    }
    if matches!(&*phase, b"B" | b"E" | b"b" | b"e") {
        part.losses.add(LossReason::BeginEnd, place);
        odd = true;
    }
    if !known {
        part.losses.add(LossReason::TooManyKinds, place);
        odd = true; // each one is counted
    }
    let name = name.unwrap_or_else(|| part.names.intern(b"", place));
    let stamp = Stamp { kind, table, track: part.track_of(values) };
    part.push(stamp, name, values, place);
    if odd { Read::Odd } else { Read::Kept(stamp) }
}

fn unquoted(string: &[u8]) -> &[u8] {
    &string[1..string.len() - 1]
}

/// The text of a string, without its escapes.
fn plain(string: &[u8]) -> Cow<'_, [u8]> {
    if string.contains(&b'\\') { json::unescape(string).into() } else { string.into() }
}

fn intern(part: &mut Part, value: &[u8], shape: Shape, place: u64) -> u32 {
    match shape {
        Shape::String => part.names.intern(&plain(unquoted(value)), place),
        _ if value == b"null" => part.names.intern(b"", place),
        _ => part.names.intern(value, place),
    }
}

/// Sets the slot. Returns false if the slot does not accept the type of the value.
fn set(
    slot: Slot,
    value: &[u8],
    shape: Shape,
    part: &mut Part,
    values: &mut Values,
    place: u64,
) -> bool {
    if value == b"null" {
        values.forget(1 << slot as u32);
        return true;
    }
    match (slot.form(), shape) {
        (Form::Time, Shape::Number) => match number::micros_token(value) {
            Some(ns) => values.set(slot, ns),
            None => return bad_time(slot, part, values, place),
        },
        (Form::Time, Shape::String) => match number::micros_token(unquoted(value)) {
            Some(ns) => values.set(slot, ns),
            None => return bad_time(slot, part, values, place),
        },
        (Form::Time, _) => return bad_time(slot, part, values, place),
        (Form::Id, Shape::Number) => {
            match std::str::from_utf8(value).ok().and_then(|s| s.parse::<i64>().ok()) {
                Some(n) if n.unsigned_abs() < 1 << 62 => values.set(slot, n),
                _ => {
                    let text = part.names.intern(value, place);
                    values.set_text_id(slot, text);
                }
            }
        }
        (Form::Id, Shape::String) => {
            let text = intern(part, value, shape, place);
            values.set_text_id(slot, text);
        }
        (Form::Text, Shape::String | Shape::Number) => {
            let text = intern(part, value, shape, place);
            values.set(slot, i64::from(text));
        }
        (Form::Json, Shape::Array | Shape::Object) => {
            let text = part.jsons.intern(value, place);
            values.set(slot, i64::from(text));
        }
        _ => {
            values.forget(1 << slot as u32);
            return false;
        }
    }
    true
}

fn bad_time(slot: Slot, part: &mut Part, values: &mut Values, place: u64) -> bool {
    values.forget(1 << slot as u32);
    if slot == Slot::Dur {
        part.losses.add(LossReason::BadDuration, place);
    }
    false
}
