//! Reads streams: one thread reads and decompresses, another scans.

use super::scan::{End, Scanner};
use super::top::{Item, Top};
use super::{Options, Trace};
use crate::read::HEAD_FOR_DETECTION;
use crate::read::kineto::json::Stop;
use laggard_core::model::timeline::LossReason;
use std::io::{self, Read};
use std::sync::mpsc;
use std::thread;

/// Size of a piece.
const PIECE: usize = 1 << 20;
/// Free space before a piece, for the unread rest of the previous one.
const ROOM: usize = 1 << 16;
/// Number of pieces in flight.
const PIECES: usize = 4;

/// Reads a whole stream. Returns the content, the size of the text and its first bytes.
pub(super) fn read(
    stream: Box<dyn Read + Send>,
    options: &Options,
    progress: &(dyn Fn(u64) + Sync),
) -> io::Result<(Trace, u64, Vec<u8>)> {
    let (full, pieces) = mpsc::sync_channel(PIECES);
    let (empty, free) = mpsc::channel();
    for _ in 0..PIECES {
        let _ = empty.send(vec![0; ROOM + PIECE]);
    }
    thread::scope(|scope| {
        scope.spawn(move || fill(stream, &free, &full));
        let mut window = Window {
            pieces,
            empty,
            buffer: vec![],
            at: 0,
            end: 0,
            offset: 0,
            last: false,
            failure: None,
            progress,
        };
        let read = consume(&mut window, options);
        let Window { offset, end, failure, .. } = window;
        let (mut trace, head) = read;
        let size = offset.wrapping_add(end as u64);
        let cut = |error: &io::Error| error.kind() == io::ErrorKind::UnexpectedEof;
        match failure {
            Some(error) if size == 0 => return Err(error),
            // A text that is truncated within its events is already reported.
            Some(error) if cut(&error) && trace.losses.has(LossReason::Truncated) => {}
            Some(error) if cut(&error) => trace.losses.add(LossReason::Truncated, size),
            Some(_) => trace.losses.add(LossReason::DamagedCompression, size),
            None => {}
        }
        Ok((trace, size, head))
    })
}

/// A piece of the stream after [`ROOM`] free bytes, its length, and why it is the last.
type Piece = (Vec<u8>, usize, Option<io::Result<()>>);

fn fill(
    mut stream: Box<dyn Read + Send>,
    free: &mpsc::Receiver<Vec<u8>>,
    full: &mpsc::SyncSender<Piece>,
) {
    while let Ok(mut piece) = free.recv() {
        let mut len = 0;
        let mut over = None;
        while len < PIECE && over.is_none() {
            match stream.read(&mut piece[ROOM + len..]) {
                Ok(0) => over = Some(Ok(())),
                Ok(n) => len += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => over = Some(Err(error)),
            }
        }
        let done = over.is_some();
        if full.send((piece, len, over)).is_err() || done {
            return;
        }
    }
}

/// The buffered part of the stream.
struct Window<'a> {
    pieces: mpsc::Receiver<Piece>,
    empty: mpsc::Sender<Vec<u8>>,
    buffer: Vec<u8>,
    /// The unread bytes are `buffer[at..end]`.
    at: usize,
    end: usize,
    /// Position of `buffer[0]` in the text.
    offset: u64,
    last: bool,
    failure: Option<io::Error>,
    progress: &'a (dyn Fn(u64) + Sync),
}

impl Window<'_> {
    fn bytes(&self) -> &[u8] {
        &self.buffer[..self.end]
    }

    fn place(&self) -> u64 {
        self.offset.wrapping_add(self.at as u64)
    }

    /// Buffers more data, at least as much as is unread, so that a long element is not scanned
    /// repeatedly.
    fn more(&mut self) {
        let wanted = self.end - self.at;
        let mut gained = 0;
        while !self.last && gained <= wanted.saturating_sub(ROOM) {
            let Ok((piece, len, over)) = self.pieces.recv() else {
                self.last = true;
                return;
            };
            gained += len;
            (self.progress)(len as u64);
            if let Some(over) = over {
                self.last = true;
                self.failure = over.err();
            }
            self.take(piece, len);
        }
    }

    fn take(&mut self, mut piece: Vec<u8>, len: usize) {
        let left = self.end - self.at;
        let place = self.place();
        let old = if left <= ROOM {
            piece[ROOM - left..ROOM].copy_from_slice(&self.buffer[self.at..self.end]);
            self.at = ROOM - left;
            self.end = ROOM + len;
            std::mem::replace(&mut self.buffer, piece)
        } else {
            self.buffer.truncate(self.end);
            self.buffer.drain(..self.at);
            self.buffer.extend_from_slice(&piece[ROOM..ROOM + len]);
            self.at = 0;
            self.end = self.buffer.len();
            piece
        };
        self.offset = place.wrapping_sub(self.at as u64);
        // Pieces are returned to be filled again. The first buffer is not a piece.
        let mut old = old;
        old.resize(ROOM + PIECE, 0);
        let _ = self.empty.send(old);
    }
}

fn consume(window: &mut Window, options: &Options) -> (Trace, Vec<u8>) {
    let mut trace = Trace::new();
    let mut top = Top::default();
    let mut scanner = Scanner::new(options.isa, options.paths);
    window.more();
    let head = window.bytes()[window.at..].iter().copied().take(HEAD_FOR_DETECTION).collect();
    'top: loop {
        let start = match top.next(window.bytes(), window.at) {
            Ok(Item::Value { key, value }) => {
                let b = window.bytes();
                let place = window.offset.wrapping_add(key.0 as u64);
                trace.add_value(&b[key.0..key.1], &b[value.0..value.1], place);
                window.at = value.1;
                continue;
            }
            Ok(Item::End) => break,
            Ok(Item::Events(start)) => start,
            Err(Stop::Incomplete) if !window.last => {
                window.more();
                continue;
            }
            Err(stop) => loop {
                match trace.damaged_top(window.bytes(), window.at, window.place(), stop) {
                    Some(start) => break start,
                    None if trace.has_events || window.last => break 'top,
                    None => window.more(),
                }
            },
        };
        trace.is_bare_array |= top.is_bare_array();
        trace.has_events = true;
        window.at = start;
        loop {
            let (at, end) = scanner.scan(
                &window.buffer[..window.end],
                window.offset,
                window.at,
                usize::MAX,
                window.last,
            );
            window.at = at;
            if end == End::Window || (end == End::Garbage && !window.last) {
                window.more();
                continue;
            }
            match trace.behind_events(window.bytes(), at, window.place(), end) {
                Some(behind) => window.at = behind,
                None => break 'top,
            }
            break;
        }
    }
    // The rest of the stream must be decompressed to get the correct size.
    while !window.last {
        window.at = window.end;
        window.more();
    }
    trace.parts.push(scanner.part);
    (trace, head)
}
