//! Parts of a run file: some streams behind a header that says how long they are.
//!
//! A header is a stream of its own, so that a reader of plain Arrow streams may pass over it. Its
//! text has the length and the checksum of what follows. A part is written by one call, and is
//! there wholly or not at all.

use super::read::sealed;
use super::tables::Wrong;
use super::write::{write_sealed, write_stream};
use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use memchr::memmem;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use xxhash_rust::xxh3::xxh3_64;

/// How a header's text starts.
const START: &str = "{\"laggard.part\":";
/// The text is padded to this.
const TEXT_SIZE: usize = 192;
/// No header's stream is longer than this.
const LONGEST_HEADER: usize = 4096;

/// What a part says of itself.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Header {
    /// Parts before it.
    #[serde(rename = "laggard.part")]
    pub(super) number: u64,
    /// Whether it has all there is, so that parts before it need not be read.
    pub(super) whole: bool,
    /// Bytes of the header's own stream.
    header: u64,
    /// Bytes behind it.
    length: u64,
    /// XXH3-64 of these, as hexadecimal digits.
    xxh3: String,
}

/// The bytes of a part.
pub(super) fn encode(number: u64, whole: bool, batches: &[RecordBatch]) -> io::Result<Vec<u8>> {
    let mut body = vec![];
    for batch in batches {
        write_stream(&mut body, batch)?;
    }
    let xxh3 = format!("{:016x}", xxh3_64(&body));
    let mut header = Header { number, whole, header: 0, length: body.len() as u64, xxh3 };
    let write = |header: &Header, out: &mut Vec<u8>| {
        write_sealed(out, "part", serde_json::to_string(header)?, TEXT_SIZE)
    };
    // All headers are equally long, whatever they say.
    header.header = write(&header, &mut vec![])?;
    let mut bytes = Vec::with_capacity(body.len() + header.header as usize);
    write(&header, &mut bytes)?;
    bytes.append(&mut body);
    Ok(bytes)
}

/// A part as it lies in a file.
pub(super) struct Part {
    pub(super) header: Header,
    /// Its streams.
    pub(super) streams: Vec<RecordBatch>,
    /// Where the next one starts.
    pub(super) end: usize,
}

/// Why there is no part at a place.
pub(super) enum NoPart {
    /// The file ends.
    Cut,
    /// It is damaged; where the next one may be.
    Damaged(Option<usize>),
}

/// The part at this place of a file.
pub(super) fn read(file: &Buffer, at: usize) -> Result<Part, NoPart> {
    let head = &file[at..file.len().min(at + LONGEST_HEADER)];
    let header = match sealed(head, START, TEXT_SIZE) {
        Ok(text) => serde_json::from_str::<Header>(text).ok(),
        Err(_) => None,
    };
    let Some(header) = header else {
        return Err(if head.len() < LONGEST_HEADER && next(file, at + 1).is_none() {
            NoPart::Cut
        } else {
            NoPart::Damaged(next(file, at + START.len()))
        });
    };
    let start = usize::try_from(header.header).ok().and_then(|own| at.checked_add(own));
    let end = |start: usize| start.checked_add(usize::try_from(header.length).ok()?);
    let (Some(start), Some(end)) = (start, start.and_then(end)) else {
        return Err(NoPart::Damaged(None));
    };
    if end > file.len() {
        return Err(NoPart::Cut);
    }
    let body = file.slice_with_length(start, end - start);
    if format!("{:016x}", xxh3_64(&body)) != header.xxh3 {
        return Err(NoPart::Damaged((end < file.len()).then_some(end)));
    }
    match decode(body) {
        Ok(streams) => Ok(Part { header, streams, end }),
        Err(_) => Err(NoPart::Damaged((end < file.len()).then_some(end))),
    }
}

/// Where the first part starts.
pub(super) fn first(file: &[u8]) -> Option<usize> {
    // The manifest is no multiple of anything: its stream ends where the first header starts.
    next(file, 0)
}

/// Where the next header's stream starts that lies wholly behind this place.
fn next(file: &[u8], from: usize) -> Option<usize> {
    let text = from + memmem::find(file.get(from..)?, START.as_bytes())?;
    // A stream starts with four bytes of 0xff, and a header has two messages before its text.
    let before = &file[from.max(text.saturating_sub(LONGEST_HEADER))..text];
    let marks: Vec<usize> = memmem::find_iter(before, &[0xff; 4]).collect();
    let mark = marks.len().checked_sub(2).map(|second_to_last| marks[second_to_last])?;
    Some(text - before.len() + mark)
}

/// What a stream ends with.
const END_OF_STREAM: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// All streams of a part, each of one batch.
fn decode(mut bytes: Buffer) -> Result<Vec<RecordBatch>, Wrong> {
    let mut batches = vec![];
    while !bytes.is_empty() {
        check_buffers(&bytes)?;
        // The decoder stops behind a batch, and would not go past the end of its stream. What it
        // asserts and a stranger's file breaks is an error here.
        let decoded = catch_unwind(AssertUnwindSafe(|| StreamDecoder::new().decode(&mut bytes)));
        let batch = decoded
            .map_err(|_| "a stream breaks the decoder")?
            .map_err(|error| error.to_string())?;
        batches.push(batch.ok_or("a stream has no rows")?);
        if !bytes.starts_with(&END_OF_STREAM) {
            return Err("a stream does not end".into());
        }
        bytes.advance(END_OF_STREAM.len());
    }
    Ok(batches)
}

/// Refuses a batch whose buffers lie outside its body, which the decoder takes for granted.
fn check_buffers(stream: &[u8]) -> Result<(), Wrong> {
    let mut rest = stream;
    loop {
        let wrong = "a stream is no Arrow stream";
        let size = rest.get(4..8).and_then(|size| size.try_into().ok()).ok_or(wrong)?;
        let size = u32::from_le_bytes(size) as usize;
        let text = rest.get(8..).and_then(|behind| behind.get(..size)).ok_or(wrong)?;
        let message = arrow_ipc::root_as_message(text).map_err(|error| error.to_string())?;
        rest = &rest[8 + size..];
        let Some(batch) = message.header_as_record_batch() else {
            if message.bodyLength() != 0 || message.header_as_schema().is_none() {
                return Err(wrong.into());
            }
            continue;
        };
        let body = message.bodyLength();
        let inside = |buffer: &arrow_ipc::Buffer| {
            let end = buffer.offset().checked_add(buffer.length());
            buffer.offset() >= 0 && buffer.length() >= 0 && end.is_some_and(|end| end <= body)
        };
        let whole = usize::try_from(body).is_ok_and(|body| body <= rest.len());
        let buffers = batch.buffers().is_none_or(|buffers| buffers.iter().all(inside));
        let counted = batch.length() >= 0
            && batch
                .nodes()
                .is_none_or(|nodes| nodes.iter().all(|node| node.length() == batch.length()));
        return if whole && buffers && counted { Ok(()) } else { Err(wrong.into()) };
    }
}
