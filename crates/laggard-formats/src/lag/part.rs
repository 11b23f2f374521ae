//! Parts of a run file: a header and a sequence of streams.
//!
//! The header is itself a stream, so that readers of plain Arrow streams can skip it. Its text
//! contains the length and the checksum of the following streams. A part is written with a single
//! call.

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

/// Start of a header's text.
const START: &str = "{\"laggard.part\":";
/// Padded size of the text.
const TEXT_SIZE: usize = 192;
/// Maximum size of a header's stream.
const LONGEST_HEADER: usize = 4096;

/// The header of a part.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Header {
    /// Number of preceding parts.
    #[serde(rename = "laggard.part")]
    pub(super) number: u64,
    /// Whether the part replaces all preceding parts.
    pub(super) whole: bool,
    /// Size of the header's stream in bytes.
    header: u64,
    /// Size of the following streams in bytes.
    length: u64,
    /// XXH3-64 of the following streams, in hexadecimal.
    xxh3: String,
}

/// Encodes a part.
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
    // All headers have the same size.
    header.header = write(&header, &mut vec![])?;
    let mut bytes = Vec::with_capacity(body.len() + header.header as usize);
    write(&header, &mut bytes)?;
    bytes.append(&mut body);
    Ok(bytes)
}

/// A part read from a file.
pub(super) struct Part {
    pub(super) header: Header,
    /// The streams of the part.
    pub(super) streams: Vec<RecordBatch>,
    /// Offset of the next part.
    pub(super) end: usize,
}

/// Why no part was found at an offset.
pub(super) enum NoPart {
    /// The file ends before the end of the part.
    Cut,
    /// The part is damaged. Contains the offset of the next part, if known.
    Damaged(Option<usize>),
}

/// Reads the part at an offset.
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

/// Offset of the first part.
pub(super) fn first(file: &[u8]) -> Option<usize> {
    // The manifest has no fixed alignment: the first header starts where the manifest's stream
    // ends.
    next(file, 0)
}

/// Offset of the next header's stream that starts at or after `from`.
fn next(file: &[u8], from: usize) -> Option<usize> {
    let text = from + memmem::find(file.get(from..)?, START.as_bytes())?;
    // A stream starts with four 0xff bytes. Two messages of the header precede its text.
    let before = &file[from.max(text.saturating_sub(LONGEST_HEADER))..text];
    let marks: Vec<usize> = memmem::find_iter(before, &[0xff; 4]).collect();
    let mark = marks.len().checked_sub(2).map(|second_to_last| marks[second_to_last])?;
    Some(text - before.len() + mark)
}

/// End marker of a stream.
const END_OF_STREAM: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// Decodes the streams of a part. Each has one batch.
fn decode(mut bytes: Buffer) -> Result<Vec<RecordBatch>, Wrong> {
    let mut batches = vec![];
    while !bytes.is_empty() {
        check_buffers(&bytes)?;
        // The decoder stops after a batch, before the end marker of the stream. It can panic on
        // malformed input, which is an error here.
        let decoded = catch_unwind(AssertUnwindSafe(|| StreamDecoder::new().decode(&mut bytes)));
        let batch = decoded
            .map_err(|_| "a stream cannot be decoded")?
            .map_err(|error| error.to_string())?;
        batches.push(batch.ok_or("a stream has no rows")?);
        if !bytes.starts_with(&END_OF_STREAM) {
            return Err("a stream has no end marker".into());
        }
        bytes.advance(END_OF_STREAM.len());
    }
    Ok(batches)
}

/// Rejects a batch whose buffers lie outside its body. The decoder does not check this.
fn check_buffers(stream: &[u8]) -> Result<(), Wrong> {
    let mut rest = stream;
    loop {
        let wrong = "a stream is not in Arrow format";
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
