//! Sums of system calls, and their conversion to evidence.

use super::names;
use laggard_agent::calls_wire::{CLASSES, class_of, class_start};
use laggard_core::model::NONE;
use laggard_core::model::calls::{CallRow, Calls, FailureRow, Function};
use laggard_core::model::profile::{Frame, FrameKind, Interner, Module, Thread};
use laggard_symbols::{Modules, Place};
use rustc_hash::FxHashMap;

/// The sums so far.
#[derive(Default)]
pub(super) struct Sums {
    pub(super) calls: Calls,
    interner: Interner,
    functions: FxHashMap<(u64, bool), u32>,
    rows: FxHashMap<(u32, u32, u32), usize>,
    /// By index of the row.
    times: Vec<Times>,
    failures: FxHashMap<(u32, u32, u64), u64>,
}

/// Times of one row.
struct Times {
    finished: u64,
    min_ns: u64,
    classes: Box<[u64; CLASSES]>,
}

impl Sums {
    /// Adds a new thread and returns its index.
    pub(super) fn thread(&mut self, pid: i32, tid: i32, name: &str, process: &str) -> u32 {
        let texts = &mut self.calls.profile.texts;
        let (name, process) = (texts.add(name), texts.add(process));
        let (pid, tid) = (pid as u32, tid as u32);
        self.calls.profile.threads.push(Thread { pid, tid, name, process, cpu_ns: 0 });
        self.calls.profile.threads.len() as u32 - 1
    }

    /// The index of a system call as a function; added if it is new.
    pub(super) fn function(&mut self, number: u64, is_64: bool) -> u32 {
        let Sums { functions, calls, interner, .. } = self;
        *functions.entry((number, is_64)).or_insert_with(|| {
            let name = match is_64 {
                true => names::call(number),
                false => format!("32-bit syscall {number}").into(),
            };
            let path = calls.profile.texts.add("[kernel]");
            let module = interner.module(&mut calls.profile, Module { path, id: 0 });
            let name = calls.profile.texts.add(&name);
            calls.functions.push(Function { name, module });
            calls.functions.len() as u32 - 1
        })
    }

    /// The index of a frame that enters the kernel.
    pub(super) fn frame(&mut self, place: Option<Place>, pc: u64, modules: &Modules) -> u32 {
        let profile = &mut self.calls.profile;
        let found = place.and_then(|place| Some((modules.get(place.module?)?, place.svma)));
        let (module, address) = match found {
            Some((module, svma)) => {
                let path = profile.texts.add(&module.path.to_string_lossy());
                let id = module.elf.as_ref().and_then(|elf| elf.build_id()).unwrap_or_default();
                let id = profile.texts.add(id);
                (self.interner.module(profile, Module { path, id }), svma)
            }
            None => (NONE, pc),
        };
        let kind = FrameKind::Native;
        let frame = Frame { kind, module, address, function: 0, file: 0, line: 0 };
        self.interner.frame(profile, frame)
    }

    /// Starts a call and returns the index of its row.
    pub(super) fn begin(&mut self, function: u32, caller: u32, thread: u32) -> usize {
        let new = self.calls.rows.len();
        let row = *self.rows.entry((function, caller, thread)).or_insert(new);
        if row == new {
            self.calls.rows.push(CallRow { function, caller, thread, ..CallRow::default() });
            let classes = Box::new([0; CLASSES]);
            self.times.push(Times { finished: 0, min_ns: u64::MAX, classes });
        }
        self.calls.rows[row].count += 1;
        row
    }

    /// Ends a call of this row after `ns`; `error` is 0 on success.
    pub(super) fn end(&mut self, row: usize, ns: u64, error: u64) {
        let (sum, times) = (&mut self.calls.rows[row], &mut self.times[row]);
        times.finished += 1;
        times.min_ns = times.min_ns.min(ns);
        times.classes[class_of(ns)] += 1;
        sum.total_ns += ns;
        sum.max_ns = sum.max_ns.max(ns);
        if error != 0 {
            *self.failures.entry((sum.function, sum.thread, error)).or_default() += 1;
        }
    }

    /// Converts the sums.
    pub(super) fn finish(mut self) -> Calls {
        for (row, times) in self.calls.rows.iter_mut().zip(&self.times) {
            row.unfinished = row.count - times.finished;
            row.self_ns = row.total_ns;
            row.min_ns = if times.finished == 0 { 0 } else { times.min_ns };
            row.histogram = (0..)
                .zip(times.classes.iter())
                .filter(|(_, count)| **count > 0)
                .map(|(class, count)| (class_start(class), *count))
                .collect();
        }
        let mut failures: Vec<_> = self.failures.into_iter().collect();
        failures.sort_unstable();
        for ((function, thread, error), count) in failures {
            let error = self.calls.profile.texts.add(&names::error(error));
            self.calls.failures.push(FailureRow { function, thread, error, count });
        }
        self.calls
    }
}
