//! The fast path: learned layouts.
//!
//! Every known event layout is a path of steps, each a literal and a hole. The bytes of the literal
//! are compared, the hole is parsed. If all literals of a path match and all holes parse, the event
//! is fully recognized. Category and phase letter are part of the literals, and so are process and
//! thread while there are few of them. Paths share their prefixes in a trie: if a literal differs,
//! a matching sibling leads to another path. An event that matches no path is read by the careful
//! path and learned.
//!
//! Three history tables predict the next path, name and JSON text. A prediction is always verified
//! against the bytes and only saves time.

use super::event::{Form, Slot, Values, wanted_args};
use super::intern::NO_TEXT;
use super::json::{Shape, Token};
use super::number;
use super::part::{Part, Stamp};
use super::simd::{BLOCK, Literal, Simd, Text, advance};
use laggard_core::model::timeline::Table;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Hole {
    /// The literal continues in the next step.
    None,
    /// The event's name. The number is an index into `Layouts::history`.
    Name(u8),
    Time(Slot),
    Id(Slot),
    /// A text that is an id.
    TextId(Slot),
    String(Slot),
    Json(Slot),
    SkipNumber,
    SkipString,
    SkipNested,
    /// All wanted args have been read: skip to the `}` of the args.
    RestOfArgs,
    /// End of the event. Without a track, it is looked up from the values.
    End(Stamp, TrackIs),
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum TrackIs {
    InLiterals,
    InValues,
}

#[derive(Clone)]
struct Step {
    literal: Literal,
    /// Previous length of the hole.
    guess: u32,
    hole: Hole,
    node: u32,
}

struct Node {
    parent: u32,
    /// Index into `steps` of this node's step on one of its paths.
    step: u32,
    kids: Vec<u32>,
}

/// The learned layouts.
pub(super) struct Layouts {
    nodes: Vec<Node>,
    /// All paths, stored consecutively. Each ends with a `Hole::End`.
    steps: Vec<Step>,
    /// Maps the hash of the previous paths to the first step of the next.
    next_path: Box<[u32; PATHS]>,
    /// Maps the previous names to the next.
    next_name: Box<[u32; NAMES]>,
    /// Maps a name and a slot to the previous JSON text there.
    next_json: Box<[u32; JSONS]>,
    /// The two previous names, per `Hole::Name`.
    history: Box<[(u32, u32); 256]>,
    histories: usize,
    recent_paths: usize,
}

/// Maximum number of keys of an event that is learned.
const MAX_TOKENS: usize = 128;
const MAX_NODES: usize = 1 << 14;
const MAX_STEPS: usize = 1 << 16;
const MAX_TRACKS_IN_LITERALS: usize = 256;
const PATHS: usize = 1 << 12;
const NAMES: usize = 1 << 16;
const JSONS: usize = 1 << 14;

fn table<const N: usize>(value: u32) -> Box<[u32; N]> {
    vec![value; N].try_into().unwrap_or_else(|_| unreachable!("the vector has N elements"))
}

impl Layouts {
    pub(super) fn new() -> Layouts {
        Layouts {
            nodes: vec![Node { parent: 0, step: 0, kids: vec![] }],
            steps: vec![],
            next_path: table(0),
            next_name: table(NO_TEXT),
            next_json: table(NO_TEXT),
            history: Box::new([(NO_TEXT, NO_TEXT); 256]),
            histories: 0,
            recent_paths: 0,
        }
    }

    /// Reads the event at `at` into the part and returns the start of the next one. `None` if no
    /// layout matches.
    #[inline(always)]
    pub(super) fn read<S: Simd>(
        &mut self,
        text: Text,
        at: usize,
        offset: u64,
        part: &mut Part,
        values: &mut Values,
    ) -> Option<usize> {
        let place = offset.wrapping_add(at as u64);
        let mut at = at;
        let first = self.next_path[self.recent_paths & (PATHS - 1)];
        let (mut path, mut next) = (first, first as usize);
        let mut name = NO_TEXT;
        values.clear();
        loop {
            let mut step = self.steps.get_mut(next)?;
            let block = match text.behind::<S>(at, &step.literal) {
                Some(block) => block,
                None => {
                    next = self.sibling(next, text, at)?;
                    path = u32::MAX;
                    step = self.steps.get_mut(next)?;
                    text.behind::<S>(at, &step.literal)?
                }
            };
            next += 1;
            at += step.literal.len();
            match step.hole {
                Hole::None => {}
                Hole::Name(context) => {
                    let (last, before) = self.history[context as usize];
                    let mixed = (last ^ before.rotate_left(16) ^ u32::from(context) << 24)
                        .wrapping_mul(0x9e37_79b1);
                    let guess = &mut self.next_name[(mixed >> 16) as usize & (NAMES - 1)];
                    name = *guess;
                    match part.names.string_at::<S>(text, at, name) {
                        Some(len) => at += len,
                        None => {
                            let end = text.plain_string_end::<S>(at)?;
                            name = part.names.intern_at::<S>(text, at, end, place);
                            *guess = name;
                            at = end;
                        }
                    }
                    self.history[context as usize] = (name, last);
                }
                Hole::Time(slot) => {
                    let (ns, len) = number::micros(block)?;
                    values.set(slot, ns);
                    at =
                        if slot == Slot::Ts { advance(at, len, &mut step.guess) } else { at + len };
                }
                Hole::Id(slot) => {
                    let (n, len) = number::integer(block)?;
                    values.set(slot, n);
                    at = advance(at, len, &mut step.guess);
                }
                Hole::Json(slot) => {
                    let mixed = (name ^ (slot as u32) << 24).wrapping_mul(0x9e37_79b1);
                    let guess = &mut self.next_json[(mixed >> 18) as usize & (JSONS - 1)];
                    let mut json = *guess;
                    match part.jsons.text_at::<S>(text, at, json) {
                        Some(len) => at += len,
                        None => {
                            let end = text.close::<S>(at + 1, 1)?;
                            json = part.jsons.intern_at::<S>(text, at, end, place);
                            *guess = json;
                            at = end;
                        }
                    }
                    values.set(slot, i64::from(json));
                }
                Hole::SkipNumber => {
                    let len = S::number_len(block);
                    if len == 0 || len == 32 {
                        return None;
                    }
                    at = advance(at, len, &mut step.guess);
                }
                Hole::SkipString => at = text.plain_string_end::<S>(at)?,
                Hole::SkipNested => at = text.close::<S>(at + 1, 1)?,
                Hole::RestOfArgs => at = text.close::<S>(at, 1)? - 1,
                Hole::TextId(slot) | Hole::String(slot) => {
                    let end = text.plain_string_end::<S>(at)?;
                    let id = part.names.intern_at::<S>(text, at, end, place);
                    if slot.form() == Form::Text {
                        values.set(slot, i64::from(id))
                    } else {
                        values.set_text_id(slot, id)
                    }
                    at = end;
                }
                Hole::End(mut stamp, track) => {
                    if track == TrackIs::InValues {
                        stamp.track = part.track_of(values);
                    }
                    part.push(stamp, name, values, place);
                    self.took(path, next);
                    return Some(at);
                }
            }
        }
    }

    /// Records the path that ends before `behind`.
    #[inline(always)]
    fn took(&mut self, mut path: u32, behind: usize) {
        if path == u32::MAX {
            path = self.start_of(behind);
            self.next_path[self.recent_paths & (PATHS - 1)] = path;
        }
        self.recent_paths = self.recent_paths << 4 ^ (path as usize).wrapping_mul(0x9e5);
    }

    #[cold]
    #[inline(never)]
    fn start_of(&self, behind: usize) -> u32 {
        let before = self.steps[..behind - 1].iter().rposition(|s| matches!(s.hole, Hole::End(..)));
        before.map_or(0, |end| end as u32 + 1)
    }

    /// Another step after the same prefix whose literal matches at `at`.
    #[inline(never)]
    fn sibling(&self, step: usize, text: Text, at: usize) -> Option<usize> {
        let rest = text.bytes().get(at..)?;
        let parent = self.nodes[self.steps[step].node as usize].parent;
        let kid = self.nodes[parent as usize].kids.iter().find(|&&kid| {
            let step = &self.steps[self.nodes[kid as usize].step as usize];
            rest.starts_with(step.literal.text())
        })?;
        Some(self.nodes[*kid as usize].step as usize)
    }

    /// Learns the layout of the event with these tokens, which ended before `end`.
    #[cold]
    #[inline(never)]
    pub(super) fn learn(
        &mut self,
        b: &[u8],
        start: usize,
        end: usize,
        tokens: &[Token],
        stamp: Stamp,
        tracks: usize,
    ) {
        if tokens.len() > MAX_TOKENS
            || self.nodes.len() >= MAX_NODES
            || self.steps.len() >= MAX_STEPS
            || stamp.table == Table::Counter
        {
            return;
        }
        // Nearly every metadata event has its own track: keep it out of the literals.
        let track = if tracks > MAX_TRACKS_IN_LITERALS || stamp.table == Table::Meta {
            TrackIs::InValues
        } else {
            TrackIs::InLiterals
        };
        let Some(mut path) = path_of(b, start, tokens, stamp, track) else { return };
        // The gap before the next event belongs to the path.
        let gap = gap_end(b, end);
        let last = path.pop().map_or(start, |(from, _, _)| from);
        path.push((
            last,
            if b.get(gap) == Some(&b'{') { gap } else { end },
            Hole::End(stamp, track),
        ));
        self.insert(b, &path);
    }

    fn insert(&mut self, b: &[u8], path: &[(usize, usize, Hole)]) {
        let mut at = 0;
        let first = self.steps.len();
        let known = self.nodes.len();
        for &(from, to, hole) in path {
            let mut from = from;
            while to - from > BLOCK {
                at = self.step_into(at, &b[from..from + BLOCK], Hole::None);
                from += BLOCK;
            }
            at = self.step_into(at, &b[from..to], hole);
        }
        if self.nodes.len() == known {
            self.steps.truncate(first); // known, but hidden by a sibling
            return;
        }
        self.next_path[self.recent_paths & (PATHS - 1)] = first as u32;
    }

    /// Appends a step after node `at` to the path under construction. Returns its node.
    fn step_into(&mut self, at: usize, literal: &[u8], mut hole: Hole) -> usize {
        let alike = |a: Hole, b: Hole| a == b || matches!((a, b), (Hole::Name(_), Hole::Name(_)));
        let old = self.nodes[at].kids.iter().copied().find(|&kid| {
            let step = &self.steps[self.nodes[kid as usize].step as usize];
            alike(step.hole, hole) && step.literal.text() == literal
        });
        if let Some(old) = old {
            let step = self.steps[self.nodes[old as usize].step as usize].clone();
            self.steps.push(step);
            return old as usize;
        }
        if let Hole::Name(place) = &mut hole {
            *place = self.histories.min(255) as u8;
            self.histories += 1;
        }
        let node = self.nodes.len() as u32;
        let step = Step { literal: Literal::new(literal), guess: 0, hole, node };
        self.nodes.push(Node { parent: at as u32, step: self.steps.len() as u32, kids: vec![] });
        self.steps.push(step);
        // Longer literals first: a literal must not hide a longer one that starts with it.
        let mut kids = std::mem::take(&mut self.nodes[at].kids);
        kids.push(node);
        kids.sort_by_key(|&kid| {
            std::cmp::Reverse(self.steps[self.nodes[kid as usize].step as usize].literal.len())
        });
        self.nodes[at].kids = kids;
        node as usize
    }
}

/// Skips white space and commas between events.
pub(super) fn gap_end(b: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t' | b',') = b.get(at) {
        at += 1;
    }
    at
}

/// The literals (from, to) and holes of an event, and an open last literal. `None` if the event
/// cannot be learned.
fn path_of(
    b: &[u8],
    start: usize,
    tokens: &[Token],
    stamp: Stamp,
    track: TrackIs,
) -> Option<Vec<(usize, usize, Hole)>> {
    let mut path = vec![];
    let mut left = wanted_args(stamp.table);
    let (mut from, mut args_end, mut resting, mut named) = (start, 0, false, false);
    let (mut top_keys, mut slots): (Vec<&[u8]>, u32) = (vec![], 0);
    for (i, token) in tokens.iter().enumerate() {
        if token.in_args && resting {
            continue;
        }
        let key = &b[token.key.0..token.key.1];
        let (mut low, mut high) = token.value;
        if !token.in_args {
            if top_keys.contains(&key) {
                return None; // the last of equal keys is used: left to the careful path
            }
            top_keys.push(key);
        }
        if token.shape == Shape::String {
            if b[low..high].contains(&b'\\') {
                return None;
            }
            (low, high) = (low + 1, high - 1); // quotes belong to the literals
        }
        let more_args = tokens.get(i + 1).is_some_and(|t| t.in_args);
        let slot = if token.in_args {
            Slot::of_arg(key).filter(|&s| wanted_args(stamp.table) & (1 << s as u32) != 0)
        } else {
            Slot::of_key(key)
        };
        if let Some(slot) = slot {
            if slots & (1 << slot as u32) != 0 {
                return None; // so are different keys of the same slot
            }
            slots |= 1 << slot as u32;
        }
        let hole = match (token.in_args, key, token.shape, slot) {
            (false, b"ph" | b"cat", Shape::String, _) => continue,
            (false, b"name", Shape::String, _) => {
                named = true;
                Hole::Name(0)
            }
            (false, b"args", Shape::Object, _) => {
                if more_args {
                    args_end = high;
                }
                continue; // empty strings are literals
            }
            (false, b"ph" | b"cat" | b"name" | b"args", _, _) => return None,
            (false, b"pid" | b"tid", _, _) if track == TrackIs::InLiterals => continue,
            (_, _, Shape::Number, Some(slot)) => match slot.form() {
                Form::Time => Hole::Time(slot),
                Form::Id => Hole::Id(slot),
                Form::Text | Form::Json => return None,
            },
            (_, _, Shape::String, Some(slot)) => match slot.form() {
                Form::Id => Hole::TextId(slot),
                Form::Text => Hole::String(slot),
                Form::Time | Form::Json => return None,
            },
            (_, _, Shape::Array | Shape::Object, Some(slot)) if slot.form() == Form::Json => {
                Hole::Json(slot)
            }
            (_, _, Shape::Array | Shape::Object, Some(_)) => return None,
            (_, _, Shape::Number, None) => Hole::SkipNumber,
            (_, _, Shape::String, None) => Hole::SkipString,
            (_, _, Shape::Array | Shape::Object, None) => Hole::SkipNested,
            (_, _, Shape::Word, _) => continue,
        };
        path.push((from, low, hole));
        from = high;
        if token.in_args {
            if let Some(slot) = slot {
                left &= !(1 << slot as u32);
            }
            let rest = tokens[i + 1..].iter().take_while(|t| t.in_args);
            // Skipping one or two numbers is faster than searching for the end of the args.
            let short = rest.clone().count() <= 2 && rest.clone().all(|t| t.shape == Shape::Number);
            if left == 0 && more_args && !short {
                path.push((from, from + 1, Hole::RestOfArgs)); // the comma or blank distinguishes it from `}`
                from = args_end - 1;
                resting = true;
            }
        }
    }
    path.push((from, from, Hole::None));
    named.then_some(path)
}
