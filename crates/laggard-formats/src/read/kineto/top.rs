//! The top level of a trace file: an object that contains `traceEvents`, or a bare array.

use super::json::{self, Budget, Quotes, Stop};
use memchr::memmem;

/// Walks the top level. Positions are relative to the text of each call.
#[derive(Debug, Default)]
pub(super) struct Top {
    state: State,
}

#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
enum State {
    #[default]
    Start,
    Object,
    BareArray,
}

/// The next item of the top level.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// The event array. The position is at its first element or the gap before it.
    Events(usize),
    /// Any other key and value.
    Value { key: (usize, usize), value: (usize, usize) },
    /// The end of the top level.
    End,
}

impl Top {
    /// The item at `at`, which is the start of the file or the end of the previous item.
    pub(super) fn next(&mut self, b: &[u8], at: usize) -> Result<Item, Stop> {
        let mut at = at;
        if self.state == State::Start {
            const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
            let text = b.get(at..).unwrap_or_default();
            at += if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
            at = json::skip_space(b, at);
            match b.get(at).ok_or(Stop::Incomplete)? {
                b'{' => self.state = State::Object,
                b'[' => {
                    self.state = State::BareArray;
                    return Ok(Item::Events(at + 1));
                }
                _ => return Err(Stop::Bad(at)),
            }
            at += 1;
        } else if self.state == State::BareArray {
            return Ok(Item::End);
        }
        at = json::skip_space(b, at);
        if b.get(at) == Some(&b',') {
            at = json::skip_space(b, at + 1);
        }
        if *b.get(at).ok_or(Stop::Incomplete)? == b'}' {
            return Ok(Item::End);
        }
        let (key, value) = json::key(b, at, Quotes::Strict)?;
        if &b[key.0..key.1] == b"traceEvents" && *b.get(value).ok_or(Stop::Incomplete)? == b'[' {
            return Ok(Item::Events(value + 1));
        }
        let (end, _) = json::value(b, value, Quotes::Strict)?;
        Ok(Item::Value { key, value: (value, end) })
    }

    pub(super) fn is_bare_array(&self) -> bool {
        self.state == State::BareArray
    }

    /// Recovers from damaged metadata: finds the start of the event array by its key.
    pub(super) fn find_events(b: &[u8], at: usize) -> Option<usize> {
        let mut from = at;
        loop {
            let name = from + memmem::find(b.get(from..)?, b"\"traceEvents\"")?;
            let colon = json::skip_space(b, name + b"\"traceEvents\"".len());
            if b.get(colon) == Some(&b':') {
                let bracket = json::skip_space(b, colon + 1);
                if b.get(bracket) == Some(&b'[') {
                    return Some(bracket + 1);
                }
            }
            from = name + 1;
        }
    }

    /// Recovers from a broken last event: finds the `]` after which the rest of the file is valid.
    pub(super) fn find_array_end(b: &[u8], at: usize) -> Option<usize> {
        let mut budget = Budget::new(b, at);
        let mut brackets = memchr::memchr_iter(b']', &b[at..]).map(|i| at + i);
        brackets.find(|&bracket| {
            let mut top = Top { state: State::Object };
            let mut behind = bracket + 1;
            while budget.is_left() {
                match top.next(b, behind) {
                    Ok(Item::Value { value, .. }) => behind = value.1,
                    Ok(Item::End) => return true,
                    Ok(Item::Events(_)) => return false,
                    Err(stop) => {
                        budget.spend(bracket, Err(stop));
                        return false;
                    }
                }
            }
            false
        })
    }
}
