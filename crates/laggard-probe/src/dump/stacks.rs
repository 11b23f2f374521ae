//! Reads the frames of each thread until two readings agree.

use super::find::Python;
use super::layout::Gil;
use super::memory::Remote;
use super::names;
use crate::sample::code::{CodeObject, text};
use laggard_agent::python::Memory;
use laggard_agent::wire::{PythonFrame, sample_flags};
use laggard_core::model::dump::{Frame, Thread};

/// Readings of a thread before an inconsistent one is accepted.
const TRIES: usize = 20;
/// Limits: entries of a chain, bytes of a name, bytes of a line table.
const LONGEST_CHAIN: usize = 4096;
const LONGEST_NAME: u64 = 1 << 16;
const LONGEST_TABLE: u64 = 1 << 22;
/// Offset of the thread ID in glibc's `struct pthread`, which `pthread_self` points to.
const TID_OF_PTHREAD: u16 = 720;
/// Maximum total number of interpreters and threads.
const MOST: usize = 10_000;

/// Adds the frames to each thread that runs Python.
pub(super) fn add(threads: &mut Vec<Thread>, python: &Python, memory: &Remote) {
    let at = &python.lists;
    let mut interpreter = memory.field(python.runtime, at.first).unwrap_or(0);
    let mut left = MOST;
    while interpreter != 0 && left > 0 {
        let mut state = memory.field(interpreter, at.threads).unwrap_or(0);
        while state != 0 && left > 0 {
            left -= 1;
            thread(threads, python, memory, interpreter, state);
            state = memory.field(state, at.thread_next).unwrap_or(0);
        }
        left = left.saturating_sub(1);
        interpreter = memory.field(interpreter, at.next).unwrap_or(0);
    }
}

fn thread(
    threads: &mut Vec<Thread>,
    python: &Python,
    memory: &Remote,
    interpreter: u64,
    state: u64,
) {
    let tid = tid(python, memory, state);
    let (frames, is_torn) = frames(python, memory, state);
    let name = names::of_thread(python, memory, &chain(python, memory, state).0);
    let has_gil = has_gil(python, memory, interpreter, state);
    let found = threads.iter().position(|thread| Some(thread.tid) == tid);
    let thread = match found {
        Some(at) => &mut threads[at],
        None => {
            threads.push(Thread::default());
            let last = threads.len() - 1;
            &mut threads[last]
        }
    };
    thread.is_python = true;
    if let Some(name) = name {
        thread.name = name;
    }
    thread.is_torn = is_torn;
    thread.has_gil = has_gil;
    thread.frames = frames;
}

fn tid(python: &Python, memory: &Remote, state: u64) -> Option<u32> {
    let word = match python.lists.native_id {
        Some(offset) => memory.field(state, offset)?,
        None => memory.field(memory.field(state, python.lists.thread_id)?, TID_OF_PTHREAD)?,
    };
    Some(word as u32)
}

fn has_gil(python: &Python, memory: &Remote, interpreter: u64, state: u64) -> bool {
    match python.lists.gil {
        Gil::Current(offset) => memory.field(python.runtime, offset) == Some(state),
        Gil::Lock { at, holder, locked } => (|| {
            let lock = memory.field(interpreter, at)?;
            let is_held = memory.small(lock, locked, 32)? == 1;
            Some(is_held && memory.field(lock, holder)? == state)
        })()
        .unwrap_or(false),
    }
}

/// The frames, and whether no two readings agreed.
fn frames(python: &Python, memory: &Remote, state: u64) -> (Vec<Frame>, bool) {
    let mut last = read(python, memory, state);
    for _ in 0..TRIES {
        let again = read(python, memory, state);
        let agrees = match (&last, &again) {
            (Some(a), Some(b)) => a.iter().map(place).eq(b.iter().map(place)),
            _ => false,
        };
        if agrees {
            return (again.unwrap_or_default(), false);
        }
        last = again.or(last);
    }
    (last.unwrap_or_default(), true)
}

/// The part of a frame that must not change between two readings. The line of a running thread does
/// change.
fn place(frame: &Frame) -> (&str, &str) {
    (&frame.function, &frame.file)
}

/// One reading; `None` if it is inconsistent.
fn read(python: &Python, memory: &Remote, state: u64) -> Option<Vec<Frame>> {
    let (chain, flags) = chain(python, memory, state);
    if flags & sample_flags::CHAIN_BAD != 0 {
        return None;
    }
    let real = chain.iter().filter(|frame| frame.code != 0);
    real.map(|frame| describe(python, memory, frame)).collect()
}

/// The frame chain of a thread, and [`sample_flags`].
fn chain(python: &Python, memory: &Remote, state: u64) -> (Vec<PythonFrame>, u32) {
    let nothing = PythonFrame { code: 0, border: 0, lasti: 0, position: 0 };
    let mut chain = vec![nothing; LONGEST_CHAIN];
    let interpreter = &python.interpreter;
    let is_code = |code| interpreter.code(code, memory).is_some();
    let (count, flags) = interpreter.chain(state, memory, &mut chain, is_code);
    chain.truncate(count);
    (chain, flags)
}

fn describe(python: &Python, memory: &Remote, frame: &PythonFrame) -> Option<Frame> {
    let interpreter = &python.interpreter;
    let code = interpreter.code(frame.code, memory)?;
    let read = |object: u64| {
        let (start, length, width) = interpreter.text(object, memory)?;
        let bytes = memory.bytes(start, length.checked_mul(width)?, LONGEST_NAME)?;
        Some(text(&bytes, width as u32))
    };
    let (name, file) = (read(code.name)?, read(code.file)?);
    let (start, length) = interpreter.bytes(code.lines, memory)?;
    let table = memory.bytes(start, length, LONGEST_TABLE)?;
    let minor = interpreter.layout.minor;
    let object = CodeObject::new(minor, code.first_line, name, file, table);
    let line = object.line(frame.lasti);
    Some(Frame { function: object.name, file: object.file, line })
}
