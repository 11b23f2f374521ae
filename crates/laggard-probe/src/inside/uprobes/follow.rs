//! Counts entries in every thread of a program, from its first instruction on.
//!
//! Uprobe events must not be inherited. For each new thread, the kernel reads the path of the
//! probed file again, from an address that is not valid there, and the program's `pthread_create`
//! or `fork` fails (observed on Linux 6.18: `EFAULT`). Instead, each thread gets its own events at
//! the ptrace stop that announces it; there are no other stops.
#![allow(unsafe_code, reason = "perf_event_open has no safe interface")]

use super::Target;
use crate::child::{self, Ended};
use crate::held::Held;
use crate::ptrace::{self, Change};
use perf_event_open_sys as perf;
use perf_event_open_sys::bindings as name;
use rustc_hash::FxHashMap;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;

/// Counts of all threads.
pub(super) struct Watched {
    pub(super) threads: Vec<Counted>,
    pub(super) ended: Ended,
    /// Threads for which no events could be opened.
    pub(super) unwatched: u64,
}

/// Counts of one thread.
pub(super) struct Counted {
    pub(super) pid: i32,
    pub(super) tid: i32,
    pub(super) name: String,
    pub(super) program: String,
    /// By index of the target.
    pub(super) counts: Vec<u64>,
}

/// A thread with its events.
struct Probed {
    counted: Counted,
    events: Vec<File>,
}

/// Lets a program run to its end and counts entries of functions.
pub(super) fn follow(
    held: Held,
    kind: u32,
    targets: &[Target],
    children: bool,
) -> io::Result<Watched> {
    let root = held.pid();
    let opened = ptrace::seize(root, children)
        .and_then(|()| Probed::new(root, root, kind, targets, From::NextProgram));
    let first = match opened {
        Ok(first) => first,
        Err(error) => {
            held.cancel();
            return Err(error);
        }
    };
    let start = held.release()?;
    let mut probed: FxHashMap<i32, Probed> = [(root, first)].into_iter().collect();
    let mut threads = vec![];
    let mut unwatched = 0;
    let followed = loop {
        let Some((tid, change, usage)) = ptrace::next()? else {
            break Err(io::Error::other("lost track of the traced program"));
        };
        match change {
            Change::Ended(status) => {
                threads.extend(probed.remove(&tid).map(Probed::counted));
                if tid == root {
                    break Ok(Ended::new(status, &usage));
                }
            }
            Change::Hello if !probed.contains_key(&tid) => {
                let pid = ptrace::process_of(tid).unwrap_or(tid);
                if children || probed.values().any(|other| other.counted.pid == pid) {
                    match Probed::new(pid, tid, kind, targets, From::Now) {
                        Ok(new) => {
                            probed.insert(tid, new);
                        }
                        Err(_) => unwatched += 1,
                    }
                    ptrace::run_on(tid, 0);
                } else {
                    ptrace::detach(tid);
                }
            }
            Change::Exec { before } => {
                // The thread keeps its events, and its ID becomes that of the process.
                let gone: Vec<i32> = probed
                    .iter()
                    .filter(|(other, thread)| thread.counted.pid == tid && **other != before)
                    .map(|(other, _)| *other)
                    .collect();
                threads.extend(gone.iter().filter_map(|tid| probed.remove(tid)?.counted().into()));
                if let Some(mut thread) = probed.remove(&before) {
                    thread.counted.program = ptrace::program_of(tid);
                    thread.counted.name = ptrace::name_of(tid);
                    probed.insert(tid, thread);
                }
                ptrace::run_on(tid, 0);
            }
            Change::Hello | Change::Made | Change::Syscall => ptrace::run_on(tid, 0),
            Change::GroupStop => ptrace::listen(tid),
            Change::Signal(signal) => ptrace::run_on(tid, signal),
        }
    };
    child::answer_for(0);
    start.done()?;
    let ended = followed?;
    threads.extend(probed.into_values().map(Probed::counted));
    threads.sort_unstable_by_key(|thread| (thread.pid != root, thread.pid, thread.tid));
    Ok(Watched { threads, ended, unwatched })
}

/// When an event starts to count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    Now,
    NextProgram,
}

impl Probed {
    fn new(pid: i32, tid: i32, kind: u32, targets: &[Target], from: From) -> io::Result<Probed> {
        let events: io::Result<Vec<File>> =
            targets.iter().map(|target| open(target, kind, tid, from)).collect();
        let (name, program) = (ptrace::name_of(tid), ptrace::program_of(tid));
        let counted = Counted { pid, tid, name, program, counts: vec![] };
        Ok(Probed { counted, events: events? })
    }

    fn counted(self) -> Counted {
        let read = |mut event: File| {
            let mut count = [0; 8];
            event.read_exact(&mut count).map_or(0, |()| u64::from_ne_bytes(count))
        };
        Counted { counts: self.events.into_iter().map(read).collect(), ..self.counted }
    }
}

/// Opens an event that counts entries of a function in one thread.
fn open(target: &Target, kind: u32, tid: i32, from: From) -> io::Result<File> {
    let path = CString::new(target.path.as_os_str().as_bytes())?;
    let mut attr = name::perf_event_attr { type_: kind, ..name::perf_event_attr::default() };
    attr.size = size_of::<name::perf_event_attr>() as u32;
    attr.__bindgen_anon_3.config1 = path.as_ptr() as u64;
    attr.__bindgen_anon_4.config2 = target.offset;
    let waits = u64::from(from == From::NextProgram);
    attr.set_disabled(waits);
    attr.set_enable_on_exec(waits);
    let flags = u64::from(name::PERF_FLAG_FD_CLOEXEC);
    // SAFETY: `attr` and the path that it points to outlive the call.
    let fd = unsafe { perf::perf_event_open(&raw mut attr, tid, -1, -1, flags as _) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    Ok(unsafe { File::from_raw_fd(fd) })
}
