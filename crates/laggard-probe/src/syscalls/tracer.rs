//! Traces a program from stop to stop.

use super::sums::Sums;
use super::{Options, names};
use crate::child::{self, Ended};
use crate::held::Held;
use crate::ptrace::{self, Change, Door};
use laggard_agent::patterns;
use laggard_core::model::calls::Calls;
use laggard_symbols::{AddressSpace, Modules};
use rustc_hash::FxHashMap;
use std::io::{self, Write};
use std::time::Instant;

/// Overhead of tracing per system call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// Total overhead.
    pub(super) call_ns: f64,
    /// Part of the overhead that is included in the measured time.
    pub(super) included_ns: f64,
}

/// A traced thread.
struct Task {
    /// Its process ID.
    pid: i32,
    /// Its index in the evidence, once it has made a call.
    thread: Option<u32>,
    inside: Option<Visit>,
}

/// A system call in progress.
struct Visit {
    row: usize,
    since: Instant,
}

/// The address space of a process.
#[derive(Default)]
struct Image {
    space: AddressSpace,
    /// Frames by address; `None` if they are filtered out.
    places: FxHashMap<u64, Option<u32>>,
    program: String,
}

struct Tracer<'a> {
    options: &'a Options,
    sums: Sums,
    tasks: FxHashMap<i32, Task>,
    images: FxHashMap<i32, Image>,
    modules: Modules,
    /// The function by call number and table; `None` if it is filtered out.
    wanted: FxHashMap<(u64, bool), Option<u32>>,
}

/// Lets a program run to its end and traces it.
pub(super) fn follow(held: Held, options: &Options) -> io::Result<(Calls, Ended)> {
    let root = held.pid();
    if let Err(error) = ptrace::seize(root, options.children) {
        held.cancel();
        return Err(error);
    }
    // Nothing is counted before the exec.
    let start = held.release()?;
    let mut tracer = Tracer {
        options,
        sums: Sums::default(),
        tasks: FxHashMap::default(),
        images: FxHashMap::default(),
        modules: Modules::default(),
        wanted: FxHashMap::default(),
    };
    tracer.tasks.insert(root, Task { pid: root, thread: None, inside: None });
    let followed = tracer.run(root);
    child::answer_for(0);
    start.done()?;
    let ended = followed?;
    let left = tracer.tasks.len();
    let mut calls = tracer.sums.finish();
    if left > 0 {
        let warning = format!("{left} threads outlived the program and were not traced further");
        calls.profile.quality.warnings.push(warning);
    }
    Ok((calls, ended))
}

impl Tracer<'_> {
    fn run(&mut self, root: i32) -> io::Result<Ended> {
        while let Some((tid, change, usage)) = ptrace::next()? {
            let now = Instant::now();
            match change {
                Change::Ended(status) => {
                    self.tasks.remove(&tid);
                    if tid == root {
                        return Ok(Ended::new(status, &usage));
                    }
                    self.images.remove(&tid);
                }
                Change::Syscall => {
                    self.at_door(tid, now)?;
                    ptrace::go_on(tid, 0);
                }
                Change::Exec { before } => {
                    self.exec(tid, before);
                    ptrace::go_on(tid, 0);
                }
                Change::Hello if !self.tasks.contains_key(&tid) => match self.hello(tid) {
                    true => ptrace::go_on(tid, 0),
                    false => ptrace::detach(tid),
                },
                Change::Hello | Change::Made => ptrace::go_on(tid, 0),
                Change::GroupStop => ptrace::listen(tid),
                Change::Signal(signal) => ptrace::go_on(tid, signal),
            }
        }
        Err(io::Error::other("lost track of the traced program"))
    }

    /// Adds a new thread. Returns whether it is to be traced.
    fn hello(&mut self, tid: i32) -> bool {
        let pid = ptrace::process_of(tid).unwrap_or(tid);
        if !self.options.children && !self.tasks.values().any(|task| task.pid == pid) {
            return false;
        }
        self.tasks.insert(tid, Task { pid, thread: None, inside: None });
        true
    }

    /// Handles an exec. The other threads of the process are gone, and the thread that called exec
    /// now has the ID of the process.
    fn exec(&mut self, pid: i32, before: i32) {
        let inside = self.tasks.remove(&before).and_then(|task| task.inside);
        self.tasks.retain(|_, task| task.pid != pid);
        self.tasks.insert(pid, Task { pid, thread: None, inside });
        self.images.remove(&pid);
    }

    fn at_door(&mut self, tid: i32, now: Instant) -> io::Result<()> {
        let door = match ptrace::door(tid) {
            Ok(door) => door,
            // The thread was killed meanwhile.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(()),
            Err(error) => return Err(error),
        };
        match door {
            Door::Entry { number, from, is_64 } => {
                let row = self.begin(tid, number, is_64, from);
                if let Some(task) = self.tasks.get_mut(&tid) {
                    task.inside = row.map(|row| Visit { row, since: Instant::now() });
                }
            }
            Door::Exit { error } => {
                let visit = self.tasks.get_mut(&tid).and_then(|task| task.inside.take());
                if let Some(Visit { row, since }) = visit {
                    let ns = now.saturating_duration_since(since).as_nanos();
                    self.sums.end(row, u64::try_from(ns).unwrap_or(u64::MAX), error);
                }
            }
            Door::Other => {}
        }
        Ok(())
    }

    /// Starts a call and returns its row; `None` if it is filtered out.
    fn begin(&mut self, tid: i32, number: u64, is_64: bool, from: u64) -> Option<usize> {
        let Tracer { options, sums, wanted, .. } = self;
        let function = (*wanted.entry((number, is_64)).or_insert_with(|| {
            let name = names::call(number);
            let is_wanted = options.functions.is_empty()
                || options.functions.iter().any(|pattern| patterns::function(pattern, &name));
            is_wanted.then(|| sums.function(number, is_64))
        }))?;
        let pid = self.tasks.get(&tid)?.pid;
        let caller = self.place(pid, tid, from)?;
        let task = self.tasks.get_mut(&tid)?;
        let thread = *task.thread.get_or_insert_with(|| {
            let program = self.images.get(&pid).map_or("", |image| &image.program);
            self.sums.thread(pid, tid, &ptrace::name_of(tid), program)
        });
        Some(self.sums.begin(function, caller, thread))
    }

    /// The frame of the instruction before an address; `None` if it is filtered out.
    fn place(&mut self, pid: i32, tid: i32, from: u64) -> Option<u32> {
        /// Length of `syscall`, `sysenter` and `int 0x80`.
        const INSTRUCTION: u64 = 2;
        let Tracer { options, sums, images, modules, .. } = self;
        let image = images
            .entry(pid)
            .or_insert_with(|| Image { program: ptrace::program_of(tid), ..Image::default() });
        if let Some(&known) = image.places.get(&from) {
            return known;
        }
        let pc = from.wrapping_sub(INSTRUCTION);
        if image.space.find(pc).is_none() {
            let maps = std::fs::read(format!("/proc/{tid}/maps")).unwrap_or_default();
            image.space.refresh(&maps, modules);
        }
        let place = image.space.find(pc);
        let path = place.and_then(|place| modules.get(place.module?)).map(|module| &module.path);
        let path = path.map(|path| path.to_string_lossy()).unwrap_or_default();
        let is_wanted = options.from.is_empty()
            || options.from.iter().any(|pattern| patterns::module(pattern, &path));
        let frame = is_wanted.then(|| sums.frame(place, pc, modules));
        image.places.insert(from, frame);
        frame
    }
}

/// Measures the overhead of tracing, with a system call that takes almost no time.
pub(super) fn cost() -> io::Result<Cost> {
    const TIMES: usize = 200;
    let (pid, mut go) = ptrace::caller(TIMES)?;
    let seized = ptrace::seize(pid, false).and_then(|()| ptrace::interrupt(pid));
    if let Err(error) = seized {
        drop(go);
        child::wait(pid);
        return Err(error);
    }
    let mut inside: Vec<u64> = Vec::with_capacity(TIMES);
    let mut entered = None;
    let (mut first, mut last) = (None, None);
    let mut go_once = Some(());
    let mut failed = None;
    while let Some((tid, change, _)) = ptrace::next()? {
        let now = Instant::now();
        match change {
            Change::Ended(_) => break,
            Change::Hello => {
                if go_once.take().is_some() {
                    go.write_all(&[1])?;
                }
                ptrace::go_on(tid, 0);
            }
            Change::Syscall => {
                match ptrace::door(tid) {
                    Ok(Door::Entry { number, .. }) if number == libc::SYS_getppid as u64 => {
                        first.get_or_insert(now);
                        entered = Some(Instant::now());
                    }
                    Ok(Door::Exit { .. }) => {
                        if let Some(since) = entered.take() {
                            last = Some(now);
                            inside.push((now - since).as_nanos() as u64);
                        }
                    }
                    Ok(_) => {}
                    Err(error) => failed = Some(error),
                }
                ptrace::go_on(tid, 0);
            }
            Change::Signal(signal) => ptrace::go_on(tid, signal),
            _ => ptrace::go_on(tid, 0),
        }
    }
    if let Some(error) = failed {
        return Err(error);
    }
    inside.sort_unstable();
    let included_ns = inside.get(inside.len() / 2).copied().unwrap_or(0) as f64;
    let whole = match (first, last) {
        (Some(first), Some(last)) => (last - first).as_nanos() as f64,
        _ => 0.0,
    };
    Ok(Cost { call_ns: whole / inside.len().max(1) as f64, included_ns })
}
