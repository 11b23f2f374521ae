//! The middle path: a structural walk over one event, block by block, without learned layouts. Used
//! for traces whose layouts keep changing. It rejects any anomaly.

use super::event::{Form, Slot, Values, wanted_args};
use super::json;
use super::number;
use super::part::{Part, Stamp};
use super::simd::{Simd, Text};
use laggard_core::model::timeline::Table;

/// Reads the event at `at` into the part and returns the position after it. Returns `None` without
/// adding a row if the careful path must read it.
#[inline(always)]
pub(super) fn event<S: Simd>(
    text: Text,
    at: usize,
    offset: u64,
    part: &mut Part,
    values: &mut Values,
) -> Option<usize> {
    let b = text.bytes();
    let place = offset.wrapping_add(at as u64);
    values.clear();
    let (mut phase, mut category, mut name) = (None, None, None);
    let mut kind = None;
    let mut at = open(b, at)?;
    while let Some((key, value)) = key::<S>(text, &mut at)? {
        match (key, b[value]) {
            (b"ph", b'"') if phase.is_none() && kind.is_none() => {
                phase = Some(plain::<S>(text, value, &mut at)?)
            }
            (b"cat", b'"') if category.is_none() && kind.is_none() => {
                category = Some(plain::<S>(text, value, &mut at)?)
            }
            (b"name", b'"') => {
                let (end, escapes) = text.string_end::<S>(value + 1)?;
                if end >= text.safe() {
                    return None;
                }
                name = Some((value + 1, end, escapes));
                at = end + 1;
            }
            (b"args", b'{') => {
                let stamp = *kind.get_or_insert_with(|| {
                    part.kind(phase.unwrap_or_default(), category.unwrap_or_default())
                });
                at = args::<S>(text, value, place, stamp.1, part, values)?;
            }
            (b"ph" | b"cat" | b"name" | b"args", _) => return None,
            _ => at = slot_value::<S>(text, value, place, Slot::of_key(key), part, values)?,
        }
        at = behind_value(b, at)?;
    }
    let phase = phase?;
    if matches!(phase, b"B" | b"E" | b"b" | b"e" | b"C") || phase.is_empty() {
        return None;
    }
    let (kind, table, known) =
        kind.unwrap_or_else(|| part.kind(phase, category.unwrap_or_default()));
    if !known {
        return None;
    }
    if !values.has(Slot::Ts) && table != Table::Meta {
        return None;
    }
    let name = match name {
        None => part.names.intern(b"", place),
        Some((from, to, false)) => part.names.intern_at::<S>(text, from, to, place),
        Some((from, to, true)) => part.names.intern(&json::unescape(&b[from..to]), place),
    };
    let track = part.track_of(values);
    part.push(Stamp { kind, table, track }, name, values, place);
    Some(at)
}

#[inline(always)]
fn args<S: Simd>(
    text: Text,
    at: usize,
    place: u64,
    table: Table,
    part: &mut Part,
    values: &mut Values,
) -> Option<usize> {
    let wanted = wanted_args(table);
    let mut at = open(text.bytes(), at)?;
    loop {
        if values.has_all(wanted) {
            return text.close::<S>(at, 1);
        }
        let Some((key, value)) = key::<S>(text, &mut at)? else { return Some(at) };
        at = slot_value::<S>(text, value, place, Slot::of_arg(key), part, values)?;
        at = behind_value(text.bytes(), at)?;
    }
}

/// Position of the first key, or of the `}`, after the `{` at `at`.
#[inline(always)]
fn open(b: &[u8], at: usize) -> Option<usize> {
    (b[at] == b'{').then(|| json::skip_space(b, at + 1))
}

/// The key at `at` and the position of its value. At a `}`, returns `None` and moves `at` after it.
#[inline(always)]
fn key<'a, S: Simd>(text: Text<'a>, at: &mut usize) -> Option<Option<(&'a [u8], usize)>> {
    let b = text.bytes();
    match *b.get(*at)? {
        b'}' => {
            *at += 1;
            Some(None)
        }
        b'"' => {
            let end = text.plain_string_end::<S>(*at + 1)?;
            let colon = json::skip_space(b, end + 1);
            if *b.get(colon)? != b':' {
                return None;
            }
            let value = json::skip_space(b, colon + 1);
            (value < text.safe()).then_some(Some((&b[*at + 1..end], value)))
        }
        _ => None,
    }
}

/// Position of the next key, or of the closing bracket, after a value.
#[inline(always)]
fn behind_value(b: &[u8], at: usize) -> Option<usize> {
    let at = json::skip_space(b, at);
    match *b.get(at)? {
        b'}' => Some(at),
        b',' => {
            let at = json::skip_space(b, at + 1);
            (b.get(at) == Some(&b'"')).then_some(at)
        }
        _ => None,
    }
}

#[inline(always)]
fn plain<'a, S: Simd>(text: Text<'a>, quote: usize, behind: &mut usize) -> Option<&'a [u8]> {
    let end = text.plain_string_end::<S>(quote + 1)?;
    *behind = end + 1;
    Some(&text.bytes()[quote + 1..end])
}

/// Reads the value at `at` into its slot, if it has one. Returns the position after it.
#[inline(always)]
fn slot_value<S: Simd>(
    text: Text,
    at: usize,
    place: u64,
    slot: Option<Slot>,
    part: &mut Part,
    values: &mut Values,
) -> Option<usize> {
    let b = text.bytes();
    match (b[at], slot) {
        (b'"', None) => Some(text.string_end::<S>(at + 1)?.0 + 1),
        (b'{' | b'[', None) => text.close::<S>(at + 1, 1),
        (b'"', Some(slot)) => {
            let end = text.plain_string_end::<S>(at + 1)?;
            let id = part.names.intern_at::<S>(text, at + 1, end, place);
            match slot.form() {
                Form::Text => values.set(slot, i64::from(id)),
                Form::Id => values.set_text_id(slot, id),
                Form::Time | Form::Json => return None,
            }
            Some(end + 1)
        }
        (b'{' | b'[', Some(slot)) if slot.form() == Form::Json => {
            let end = text.close::<S>(at + 1, 1)?;
            if end >= text.safe() {
                return None;
            }
            let id = part.jsons.intern_at::<S>(text, at, end, place);
            values.set(slot, i64::from(id));
            Some(end)
        }
        (b'-' | b'0'..=b'9', Some(slot)) => {
            let block = text.block(at)?;
            let (value, len) = match slot.form() {
                Form::Time => number::micros(block)?,
                Form::Id => number::integer(block)?,
                Form::Text | Form::Json => return None,
            };
            values.set(slot, value);
            Some(at + len)
        }
        (b'-' | b'0'..=b'9', None) => {
            let len = S::number_len(text.block(at)?);
            (len < 32).then_some(at + len)
        }
        (b'n', slot) if text.block(at)?.starts_with(b"null") => {
            if let Some(slot) = slot {
                values.forget(1 << slot as u32);
            }
            Some(at + 4)
        }
        (b't', None) if text.block(at)?.starts_with(b"true") => Some(at + 4),
        (b'f', None) if text.block(at)?.starts_with(b"false") => Some(at + 5),
        _ => None,
    }
}
