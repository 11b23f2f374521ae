//! Scans events into columns: selects the path for each event and splits the text for threads.

use super::Options;
use super::careful::{self, Read};
use super::event::Values;
use super::json::{Stop, Token};
use super::layout::{Layouts, gap_end};
use super::part::Part;
use super::simd::{self, Isa, Simd, Task, Text};
use super::walk;
use laggard_core::model::timeline::LossReason;
use std::thread;

/// The allowed paths. All but `Any` are for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    /// The fastest path that works for each event.
    Any,
    /// The structural walk, then the careful path.
    Walk,
    /// Only the careful path.
    Careful,
}

/// Why a scan stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// At an event at or after the limit.
    Limit,
    /// At the `]` of the event array.
    Array,
    /// Before an event that is incomplete in the text.
    Window,
    /// At the end of the text, within an event or the array.
    Text,
    /// At something that is not an event, with no event after it.
    Garbage,
}

/// Reads events. Keeps learned layouts between texts.
pub(super) struct Scanner {
    pub(super) part: Part,
    layouts: Layouts,
    values: Values,
    tokens: Vec<Token>,
    isa: Isa,
    paths: Paths,
    learned: u64,
    /// Increases with every event that no layout matches, decreases with every match.
    distrust: u32,
}

/// Distrust above which layouts are only tried occasionally.
const UNSETTLED: u32 = 1 << 13;
/// Prefetch distance.
const AHEAD: usize = 2048;

impl Scanner {
    pub(super) fn new(isa: Isa, paths: Paths) -> Scanner {
        Scanner {
            part: Part::new(),
            layouts: Layouts::new(),
            values: Values::new(),
            tokens: vec![],
            isa,
            paths,
            learned: 0,
            distrust: 0,
        }
    }

    /// Reads events from `at` (an event or the gap before it) until one starts at or after `limit`.
    /// Unless this is the `last` text, stops before its end is reached. `offset` is the position of
    /// the text in the file. Returns where and why it stopped.
    pub(super) fn scan(
        &mut self,
        bytes: &[u8],
        offset: u64,
        at: usize,
        limit: usize,
        last: bool,
    ) -> (usize, End) {
        simd::run(self.isa, Scan { text: Text::new(bytes), offset, at, limit, last, scanner: self })
    }

    #[inline(always)]
    fn fast<S: Simd>(&mut self, text: Text, at: usize, offset: u64) -> Option<usize> {
        let settled = self.distrust < UNSETTLED;
        if !settled && !self.part.events.is_multiple_of(64) {
            return None;
        }
        let next = self.layouts.read::<S>(text, at, offset, &mut self.part, &mut self.values);
        match next {
            Some(_) => self.distrust = self.distrust.saturating_sub(if settled { 1 } else { 512 }),
            None => self.distrust = (self.distrust + 16).min(2 * UNSETTLED),
        }
        next
    }

    #[cold]
    #[inline(never)]
    fn careful(&mut self, b: &[u8], at: usize, offset: u64, learn: bool) -> Result<usize, Stop> {
        let (end, read) =
            careful::element(b, at, offset, &mut self.part, &mut self.values, &mut self.tokens)?;
        if let (Read::Kept(stamp), true) = (read, learn) {
            self.learned += 1;
            self.layouts.learn(b, at, end, &self.tokens, stamp, self.part.tracks.len());
        }
        Ok(end)
    }
}

struct Scan<'a> {
    scanner: &'a mut Scanner,
    text: Text<'a>,
    offset: u64,
    at: usize,
    limit: usize,
    last: bool,
}

impl Task for Scan<'_> {
    type Out = (usize, End);

    #[inline(always)]
    fn run<S: Simd>(self) -> (usize, End) {
        let Scan { scanner, text, offset, mut at, limit, last } = self;
        let b = text.bytes();
        loop {
            if at >= text.safe() || b[at] != b'{' {
                at = gap_end(b, at);
                match b.get(at) {
                    None if last => return (at, End::Text),
                    None => return (at, End::Window),
                    Some(b']') => return (at, End::Array),
                    _ => {}
                }
            }
            if at >= limit {
                return (at, End::Limit);
            }
            let mut learn = false;
            if at < text.safe() {
                text.prefetch(at + AHEAD, 6);
                if scanner.paths == Paths::Any {
                    if let Some(next) = scanner.fast::<S>(text, at, offset) {
                        at = next;
                        continue;
                    }
                    // Layouts that keep changing are not learned.
                    learn = scanner.distrust < UNSETTLED
                        && scanner.learned * 32 < scanner.part.events + 2048;
                }
                if !learn
                    && scanner.paths != Paths::Careful
                    && b[at] == b'{'
                    && let Some(next) =
                        walk::event::<S>(text, at, offset, &mut scanner.part, &mut scanner.values)
                {
                    at = next;
                    continue;
                }
            } else if !last {
                return (at, End::Window);
            }
            match scanner.careful(b, at, offset, learn) {
                Ok(next) => at = next,
                Err(Stop::Incomplete) if !last => return (at, End::Window),
                Err(stop) => {
                    let Some((next, broken)) = careful::next_event(b, at, &mut scanner.tokens)
                    else {
                        return (
                            at,
                            if stop == Stop::Incomplete { End::Text } else { End::Garbage },
                        );
                    };
                    let place = offset.wrapping_add(at as u64);
                    scanner.part.events += broken;
                    scanner.part.losses.add_many(LossReason::NotJson, broken, place);
                    at = next;
                }
            }
        }
    }
}

/// Parts in file order, and where and why reading stopped.
pub(super) struct Scanned {
    pub(super) parts: Vec<Part>,
    pub(super) at: usize,
    pub(super) end: End,
}

/// Bytes between progress reports.
const REPORT_EVERY: usize = 16 << 20;

/// Reads the events of an array from `start` on several threads. The text is split where events
/// seem to start. A part is used only if the previous one ended exactly there, and is read again
/// otherwise.
pub(super) fn scan_all(
    b: &[u8],
    start: usize,
    options: &Options,
    progress: &(dyn Fn(u64) + Sync),
) -> Scanned {
    let size = b.len() - start;
    let chunks = options.threads.min(size / options.smallest_chunk.max(1)).max(1);
    let mut cuts = vec![start];
    for i in 1..chunks {
        let cut = careful::guess_start(b, start + size / chunks * i).unwrap_or(b.len());
        if cut > cuts[cuts.len() - 1] && cut < b.len() {
            cuts.push(cut);
        }
    }
    cuts.push(usize::MAX);
    let chunk = |from: usize, to: usize| {
        let mut scanner = Scanner::new(options.isa, options.paths);
        let mut at = from;
        loop {
            let limit = to.min(at.saturating_add(REPORT_EVERY));
            let (next, end) = scanner.scan(b, 0, at, limit, true);
            progress((next - at) as u64);
            at = next;
            if end != End::Limit || at >= to {
                return (scanner.part, at, end);
            }
        }
    };
    let mut read = if cuts.len() == 2 {
        vec![chunk(cuts[0], cuts[1])]
    } else {
        thread::scope(|scope| {
            let handles: Vec<_> =
                cuts.windows(2).map(|cut| scope.spawn(|| chunk(cut[0], cut[1]))).collect();
            handles
                .into_iter()
                .map(|handle| {
                    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
                .collect()
        })
    };
    let mut parts = Vec::with_capacity(read.len());
    let (mut at, mut end) = (start, End::Limit);
    for (i, (part, stopped, why)) in read.drain(..).enumerate() {
        if end != End::Limit {
            break;
        }
        let (part, stopped, why) =
            if at == cuts[i] { (part, stopped, why) } else { chunk(at, cuts[i + 1]) };
        parts.push(part);
        (at, end) = (stopped, why);
    }
    Scanned { parts, at, end }
}
