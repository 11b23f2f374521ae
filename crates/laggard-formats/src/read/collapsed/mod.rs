//! Reads collapsed stacks: one line per stack, with frames joined by `;` and a count. Written by
//! `stackcollapse-*`, inferno, `py-spy record -f raw` and laggard.
//!
//! You give a [`Source`], you get a [`Profile`] without times: one sample per distinct stack, with
//! the count of the file. Lines with two counts, the input of differential flame graphs, give two
//! events, `first` and `second`. Threads that py-spy writes as outermost frames become threads.
//! Lines without a stack are skipped and counted.
//!
//! Files can have gigabytes, so several threads read lines and build their own trees of names
//! (`part`), which are merged at the end (`join`).

mod join;
mod part;

use crate::error::Error;
use crate::source::{Bytes, Source};
use laggard_core::model::profile::Profile;
use part::{LONGEST_LINE, Part, Value, stack_and_values};
use std::io::{self, Read};
use std::sync::{Mutex, mpsc};
use std::thread;

/// Bytes between progress reports, and the block size of a stream.
const BLOCK: usize = 8 << 20;
/// Minimum number of bytes per thread.
const WORTH_A_THREAD: usize = 1 << 20;
/// Lines used for format detection.
const LINES_FOR_DETECTION: usize = 100;

/// Number of counts after each stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    One = 1,
    Two = 2,
}

/// Whether a file with this head contains collapsed stacks: text with a count at the end of nearly
/// every line.
pub fn is_collapsed(head: &[u8]) -> bool {
    let (mut stacks, mut others, mut deep) = (0, 0, 0);
    for line in lines_of(head) {
        if line.iter().any(|byte| *byte < b' ' && *byte != b'\t') {
            return false;
        }
        match stack_and_values(line, Counts::One) {
            Some((stack, _)) if is_stack(stack) => {
                stacks += 1;
                deep += u32::from(stack.contains(&b';'));
            }
            _ => others += 1,
        }
    }
    // Without any `;` the file could be a table of words and numbers, so every line must match.
    stacks > 0 && others * 10 <= stacks && (deep > 0 || others == 0)
}

/// Whether the text before a count can be a stack: not a number, and not the start of a comment or
/// of JSON.
fn is_stack(stack: &[u8]) -> bool {
    let is_number = stack.iter().all(|byte| matches!(byte, b'0'..=b'9' | b' ' | b'+' | b'-'));
    !is_number && !matches!(stack.first(), Some(b'#' | b'{' | b'"' | b'\t')) && !is_key(stack)
}

/// Whether the text is `key:`, as in headers of other formats.
fn is_key(stack: &[u8]) -> bool {
    stack.ends_with(b":") && !stack.contains(&b';')
}

/// Complete lines at the start of a file that are neither empty nor comments.
fn lines_of(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_all = head.len() < super::HEAD_FOR_DETECTION;
    // A last line without a line end can be truncated, here or in the file.
    let end = match memchr::memrchr(b'\n', head) {
        Some(end) if !is_all || !head.ends_with(b"\n") => end,
        _ => head.len(),
    };
    head[..end]
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii_end)
        .filter(|line| !line.is_empty() && line[0] != b'#')
        .take(LINES_FOR_DETECTION)
}

/// Returns two counts if all lines at the start have two.
fn counts_of(head: &[u8]) -> Counts {
    let mut lines = lines_of(&head[..head.len().min(super::HEAD_FOR_DETECTION)]).peekable();
    let has_two = |line: &[u8]| {
        stack_and_values(line, Counts::Two).is_some_and(|(stack, values)| {
            is_stack(stack) && values.iter().all(|value| matches!(value, Value::Whole(_)))
        })
    };
    match lines.peek().is_some() && lines.all(has_two) {
        true => Counts::Two,
        false => Counts::One,
    }
}

/// Reads a file. `progress` receives the number of bytes every few megabytes.
pub fn read(source: Source, progress: &(dyn Fn(u64) + Sync)) -> Result<Profile, Error> {
    let Source { path, bytes } = source;
    let (parts, counts, end) = match bytes {
        Bytes::Mapped(map) => {
            let counts = counts_of(&map);
            let parts = mapped(&map, counts, progress);
            if !map.is_whole() {
                return Err(Error::Shrank { path });
            }
            (parts, counts, Ok(()))
        }
        Bytes::Stream(stream) => streamed(stream, progress),
    };
    let is_cut = parts.last().is_some_and(|part| part.is_cut);
    let bad_lines: u64 = parts.iter().map(|part| part.bad_lines).sum();
    let mut profile = join::profile(parts, counts);
    if profile.samples.is_empty() {
        if let Err(why) = end {
            return Err(Error::io("read", path)(why));
        }
        let what = "no line has a stack and a count".to_owned();
        return Err(Error::NotARecording { path, what });
    }
    let warnings = &mut profile.quality.warnings;
    if counts == Counts::Two {
        warnings.push(
            "each line ends in two counts: they are read as events named first and second"
                .to_owned(),
        );
    }
    match bad_lines {
        0 => {}
        1 => warnings.push("skipped 1 line without a stack".to_owned()),
        n => warnings.push(format!("skipped {n} lines without a stack")),
    }
    match end {
        Err(why) => warnings.push(format!("the file could not be read to its end: {why}")),
        Ok(()) if is_cut => {
            warnings.push("the file is truncated: its last line has no count".to_owned());
        }
        Ok(()) => {}
    }
    Ok(profile)
}

/// Reads the parts of a text in parallel, one per thread.
fn mapped(text: &[u8], counts: Counts, progress: &(dyn Fn(u64) + Sync)) -> Vec<Part> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.min(text.len() / WORTH_A_THREAD).max(1);
    let room = text.len() / threads;
    let mut parts: Vec<Part> = (0..threads).map(|_| Part::with_room_for(room)).collect();
    thread::scope(|scope| {
        let mut rest = text;
        for (number, part) in parts.iter_mut().enumerate() {
            let (own, others) = split_at_line(rest, rest.len() / (threads - number));
            rest = others;
            scope.spawn(move || {
                let mut rest = own;
                while !rest.is_empty() {
                    let (block, others) = split_at_line(rest, BLOCK);
                    rest = others;
                    part.take(block, counts);
                    progress(block.len() as u64);
                }
            });
        }
    });
    parts
}

/// Splits a text after the line that contains byte `length`.
fn split_at_line(text: &[u8], length: usize) -> (&[u8], &[u8]) {
    let length = length.min(text.len());
    let end = memchr::memchr(b'\n', &text[length..]).map_or(text.len(), |at| length + at + 1);
    text.split_at(end)
}

/// Reads a stream: this thread splits it into blocks of whole lines, other threads parse them. Also
/// returns how the stream ended.
fn streamed(
    mut stream: Box<dyn Read + Send>,
    progress: &(dyn Fn(u64) + Sync),
) -> (Vec<Part>, Counts, io::Result<()>) {
    let mut block = vec![];
    let mut end = fill(&mut stream, &mut block, BLOCK);
    progress(block.len() as u64);
    let counts = counts_of(&block);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let (sender, receiver) = mpsc::sync_channel::<Vec<u8>>(threads);
    let receiver = Mutex::new(receiver);
    let next = || receiver.lock().ok().and_then(|receiver| receiver.recv().ok());
    let mut lost = 0;
    let mut parts: Vec<Part> = thread::scope(|scope| {
        let read = || {
            let mut part = Part::default();
            while let Some(block) = next() {
                part.take(&block, counts);
            }
            part
        };
        let readers: Vec<_> = (0..threads).map(|_| scope.spawn(read)).collect();
        let mut is_skipping = false;
        loop {
            if is_skipping {
                let end = memchr::memchr(b'\n', &block).map(|at| at + 1);
                is_skipping = end.is_none();
                block.drain(..end.unwrap_or(block.len()));
            }
            let is_last = !matches!(end, Ok(true));
            let whole = match memchr::memrchr(b'\n', &block) {
                _ if is_last => block.len(),
                Some(at) => at + 1,
                None if block.len() <= LONGEST_LINE => 0,
                None => {
                    lost += 1;
                    is_skipping = true;
                    block.clear();
                    0
                }
            };
            let left = block.split_off(whole);
            let _ = sender.send(std::mem::replace(&mut block, left));
            if is_last {
                break;
            }
            let kept = block.len();
            end = fill(&mut stream, &mut block, kept + BLOCK);
            progress((block.len() - kept) as u64);
        }
        drop(sender);
        readers
            .into_iter()
            .map(|reader| reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    // Only the last block can be truncated, and any thread can have read it.
    let is_cut = parts.iter().any(|part| part.is_cut);
    if let Some(last) = parts.last_mut() {
        last.is_cut = is_cut;
        last.bad_lines += lost;
    }
    (parts, counts, end.map(|_| ()))
}

/// Reads until a block has `length` bytes. Returns whether there may be more.
fn fill(stream: &mut dyn Read, block: &mut Vec<u8>, length: usize) -> io::Result<bool> {
    let wanted = length.saturating_sub(block.len()) as u64;
    let read = stream.take(wanted).read_to_end(block)?;
    Ok(read as u64 == wanted)
}
