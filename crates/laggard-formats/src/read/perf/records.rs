//! Iterates over records, decompressed and ordered by time.
//!
//! perf copies the buffers of all CPUs in rounds and marks the end of each round. A record can be
//! older than the last one of the previous round, but not older than the last one of the round
//! before that. Two rounds are therefore buffered and sorted.

use super::attr::Attr;
use super::bytes::Rest;
use super::header::extra;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// Supported kinds of records.
pub(super) mod kind {
    pub(in super::super) const MMAP: u32 = 1;
    pub(in super::super) const LOST: u32 = 2;
    pub(in super::super) const COMM: u32 = 3;
    pub(in super::super) const EXIT: u32 = 4;
    pub(in super::super) const THROTTLE: u32 = 5;
    pub(in super::super) const FORK: u32 = 7;
    pub(in super::super) const SAMPLE: u32 = 9;
    pub(in super::super) const MMAP2: u32 = 10;
    pub(in super::super) const LOST_SAMPLES: u32 = 13;
    pub(super) const FIRST_OF_PERF: u32 = 64;
    pub(super) const FINISHED_ROUND: u32 = 68;
    pub(super) const COMPRESSED: u32 = 81;
    pub(super) const COMPRESSED2: u32 = 83;
}

/// A record.
#[derive(Debug)]
pub(super) struct Record<'a> {
    pub(super) kind: u32,
    pub(super) misc: u16,
    pub(super) time: u64,
    /// Number of its event.
    pub(super) attr: usize,
    pub(super) body: Cow<'a, [u8]>,
}

/// Iterator over records.
pub(super) struct Records<'a> {
    bytes: &'a [u8],
    at: usize,
    attrs: &'a [Attr],
    by_id: FxHashMap<u64, usize>,
    /// Records of the last rounds.
    held: Vec<Record<'a>>,
    /// Records ready to return, last first.
    ready: Vec<Record<'a>>,
    /// Latest time of the previous round, and of all records.
    round_before: u64,
    latest: u64,
    decoder: Option<Decoder<'static>>,
    /// Decompressed bytes of an incomplete record.
    pending: Vec<u8>,
    /// Damage that ended the iteration, if any.
    pub(super) damage: Option<String>,
}

impl<'a> Records<'a> {
    pub(super) fn new(bytes: &'a [u8], attrs: &'a [Attr]) -> Records<'a> {
        let ids = attrs.iter().enumerate();
        Records {
            bytes,
            at: 0,
            attrs,
            by_id: ids.flat_map(|(n, attr)| attr.ids.iter().map(move |&id| (id, n))).collect(),
            held: vec![],
            ready: vec![],
            round_before: 0,
            latest: 0,
            decoder: None,
            pending: vec![],
            damage: None,
        }
    }

    /// Number of bytes read.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Returns the next record; `None` at the end.
    pub(super) fn next(&mut self) -> Option<Record<'a>> {
        while self.ready.is_empty() {
            if self.at >= self.bytes.len() || self.damage.is_some() {
                if !self.pending.is_empty() && self.damage.is_none() {
                    self.damage = Some("the last record is truncated".into());
                }
                self.release(u64::MAX);
                return self.ready.pop();
            }
            self.read();
        }
        self.ready.pop()
    }

    /// Reads one record of the file.
    fn read(&mut self) {
        let start = self.at;
        let Some((kind, misc, body)) = split(&self.bytes[start..]) else {
            self.damage = Some(format!(
                "{} bytes at offset {start} of the records cannot be read",
                self.bytes.len() - start
            ));
            return;
        };
        self.at = start.saturating_add(8 + body.len()).saturating_add(extra(kind, body));
        match kind {
            kind::FINISHED_ROUND => {
                self.release(self.round_before);
                self.round_before = self.latest;
            }
            kind::COMPRESSED => self.decompress(body),
            kind::COMPRESSED2 => {
                let mut rest = Rest(body);
                match rest.u64().and_then(|size| rest.take(size)) {
                    Some(body) => self.decompress(body),
                    None => self.damage = Some("a compressed record is truncated".into()),
                }
            }
            kind::FIRST_OF_PERF.. => {}
            _ => self.hold(kind, misc, Cow::Borrowed(body)),
        }
    }

    fn hold(&mut self, kind: u32, misc: u16, body: Cow<'a, [u8]>) {
        let first = &self.attrs[0];
        let attr = match kind {
            kind::SAMPLE if self.attrs.len() > 1 => {
                first.id_of_sample(&body).and_then(|id| self.by_id.get(&id)).copied().unwrap_or(0)
            }
            _ => 0,
        };
        let time = match kind {
            kind::SAMPLE => self.attrs[attr].time_of_sample(&body),
            _ => first.time_of_other(&body),
        };
        let time = time.unwrap_or(self.latest);
        self.latest = self.latest.max(time);
        self.held.push(Record { kind, misc, time, attr, body });
    }

    /// Makes all records up to a time ready.
    fn release(&mut self, until: u64) {
        let mut ready = vec![];
        let mut held = vec![];
        for record in self.held.drain(..) {
            if record.time <= until { ready.push(record) } else { held.push(record) }
        }
        ready.sort_by_key(|record| record.time);
        ready.reverse();
        (self.held, self.ready) = (held, ready);
    }

    fn decompress(&mut self, body: &[u8]) {
        let mut bytes = std::mem::take(&mut self.pending);
        if let Err(why) = self.inflate(body, &mut bytes) {
            self.damage = Some(format!("a compressed record is damaged ({why})"));
        }
        let mut rest = &bytes[..];
        while let Some((kind, misc, body)) = split(rest) {
            rest = &rest[8 + body.len()..];
            if kind < kind::FIRST_OF_PERF {
                self.hold(kind, misc, Cow::Owned(body.to_vec()));
            }
        }
        self.pending = rest.to_vec();
    }

    fn inflate(&mut self, body: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
        let decoder = match &mut self.decoder {
            Some(decoder) => decoder,
            none => none.insert(Decoder::new()?),
        };
        let mut input = InBuffer::around(body);
        let mut room = vec![0; 256 << 10];
        loop {
            let mut output = OutBuffer::around(&mut room[..]);
            decoder.run(&mut input, &mut output)?;
            let written = output.pos();
            out.extend_from_slice(&room[..written]);
            if written < room.len() && input.pos() == body.len() {
                return Ok(());
            }
        }
    }
}

/// Kind, flags and body of the first record.
fn split(bytes: &[u8]) -> Option<(u32, u16, &[u8])> {
    let mut rest = Rest(bytes);
    let kind = rest.u32()?;
    let sizes = rest.u32()?;
    let body = rest.take(u64::from(sizes >> 16).checked_sub(8)?)?;
    Some((kind, sizes as u16, body))
}
