//! Converts the shared file to evidence.

use super::clock::Rate;
use super::shared::Shared;
use super::stacks::Stacks;
use laggard_agent::calls_wire::{Entry, OWN, Reason, class_start};
use laggard_core::model::NONE;
use laggard_core::model::calls::{ArgumentRow, CallRow, Calls, Function};
use laggard_core::model::profile::{Event, Frame, FrameKind, Interner, Module, Thread, Unit};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// All counted calls.
pub(super) fn calls(shared: &Shared, rate: &Rate, stacks: Stacks) -> Calls {
    let Stacks { profile, interner } = stacks;
    let mut reader = Reader {
        shared,
        rate,
        calls: Calls { profile, ..Calls::default() },
        interner,
        objects: vec![],
        functions: vec![],
    };
    reader.objects();
    reader.functions();
    reader.rows();
    reader.arguments();
    reader.quality();
    reader.stacks();
    reader.calls
}

struct Reader<'a> {
    shared: &'a Shared,
    rate: &'a Rate,
    calls: Calls,
    interner: Interner,
    objects: Vec<Object>,
    /// Function index by symbol index; `None` if the function is not traced.
    functions: Vec<Option<u32>>,
}

struct Object {
    image: u32,
    start: u64,
    end: u64,
    bias: u64,
    module: u32,
    is_open: bool,
}

impl Reader<'_> {
    /// Replaces the symbols in the events of recorded stacks by functions.
    fn stacks(&mut self) {
        let profile = &mut self.calls.profile;
        let functions = &self.functions;
        profile.samples.retain_mut(|sample| {
            let function = functions.get(sample.event as usize).copied().flatten();
            sample.event = function.unwrap_or(NONE);
            function.is_some()
        });
        let event = |function: &Function| Event {
            name: profile.texts.get(function.name).to_owned(),
            unit: Unit::Count,
        };
        profile.events = self.calls.functions.iter().map(event).collect();
    }

    fn objects(&mut self) {
        let tables = self.shared.tables();
        let count = tables.header.objects.load(Acquire) as usize;
        for row in tables.objects.iter().take(count) {
            let ready = row.ready.load(Acquire);
            let path = self.shared.text(row.path.load(Relaxed), row.path_size.load(Relaxed));
            let path = if ready == 0 { String::new() } else { absolute(path) };
            let path = self.calls.profile.texts.add(&path);
            // Modules that occur in recorded stacks already exist.
            let known = self.calls.profile.modules.iter().find(|module| module.path == path);
            let module = known.cloned().unwrap_or(Module { path, id: 0 });
            self.objects.push(Object {
                image: row.image.load(Relaxed),
                start: row.start.load(Relaxed),
                end: row.end.load(Relaxed),
                bias: row.bias.load(Relaxed),
                module: self.interner.module(&mut self.calls.profile, module),
                is_open: ready == 1,
            });
        }
    }

    fn functions(&mut self) {
        let tables = self.shared.tables();
        let count = tables.header.symbols.load(Acquire) as usize;
        let mut known: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let mut left = BTreeSet::new();
        for symbol in tables.symbols.iter().take(count) {
            let reason = symbol.reason.load(Relaxed);
            if symbol.ready.load(Acquire) == 0 || reason == OWN {
                self.functions.push(None);
                continue;
            }
            let name = self.shared.text(symbol.name.load(Relaxed), symbol.name_size.load(Relaxed));
            if let Some(reason) = reason.checked_sub(1).and_then(|at| Reason::ALL.get(at as usize))
            {
                left.insert((name, reason.words().to_owned()));
                self.functions.push(None);
                continue;
            }
            let object = self.objects.get(symbol.object.load(Relaxed) as usize);
            let module = object.map_or(NONE, |object| object.module);
            let name = self.calls.profile.texts.add(&name);
            let number = *known.entry((name, module)).or_insert_with(|| {
                self.calls.functions.push(Function { name, module });
                self.calls.functions.len() as u32 - 1
            });
            self.functions.push(Some(number));
        }
        self.calls.quality.not_wrapped = left.into_iter().collect();
    }

    fn rows(&mut self) {
        let tables = self.shared.tables();
        let count = tables.header.threads.load(Acquire) as usize;
        let mut known: FxHashMap<(u32, u32, u32), usize> = FxHashMap::default();
        let mut threads: FxHashMap<(u32, u32, u32), u32> = FxHashMap::default();
        for thread in tables.threads.iter().take(count) {
            if thread.ready.load(Acquire) == 0 {
                continue;
            }
            self.calls.quality.too_deep += thread.too_deep.load(Relaxed);
            self.calls.quality.table_full += thread.table_full.load(Relaxed);
            let image = thread.image.load(Relaxed);
            let key = (thread.pid.load(Relaxed), thread.tid.load(Relaxed), self.program(image));
            let new = self.calls.profile.threads.len() as u32;
            let followed = |thread: &Thread| (thread.pid, thread.tid) == (key.0, key.1);
            let number = threads.get(&key).copied().unwrap_or_else(|| {
                let known = self.calls.profile.threads.iter().position(followed);
                known.map_or(new, |at| at as u32)
            });
            let name: Vec<u8> = thread
                .name
                .iter()
                .map(|cell| cell.load(Relaxed))
                .take_while(|byte| *byte != 0)
                .collect();
            let name = self.calls.profile.texts.add(&String::from_utf8_lossy(&name));
            let mut is_used = false;
            for entry in self.shared.entries(thread.first.load(Acquire)) {
                let symbol = entry.symbol.load(Relaxed) as usize;
                let Some(function) = self.functions.get(symbol).copied().flatten() else {
                    continue;
                };
                let caller = self.frame(image, entry.place.load(Relaxed));
                let row = self.row(entry, function, caller, number);
                if row.count == 0 {
                    continue;
                }
                is_used = true;
                match known.get(&(function, caller, number)) {
                    Some(&at) => add(&mut self.calls.rows[at], row),
                    None => {
                        known.insert((function, caller, number), self.calls.rows.len());
                        self.calls.rows.push(row);
                    }
                }
            }
            if is_used && number != new {
                // The stack collector may have seen this thread when its name was no longer
                // available.
                let (pid, tid, process) = key;
                threads.insert(key, number);
                let known = &mut self.calls.profile.threads[number as usize];
                *known = Thread { pid, tid, name, process, cpu_ns: known.cpu_ns };
            }
            if is_used && number == new {
                let (pid, tid, process) = key;
                threads.insert(key, number);
                self.calls.profile.threads.push(Thread { pid, tid, name, process, cpu_ns: 0 });
            }
        }
        self.uncounted();
    }

    /// Calls that did not fit in any table, by function only.
    fn uncounted(&mut self) {
        let unknown = Frame {
            kind: FrameKind::Native,
            module: NONE,
            address: 0,
            function: 0,
            file: 0,
            line: 0,
        };
        for (symbol, function) in self.shared.tables().symbols.iter().zip(self.functions.clone()) {
            let count = symbol.uncounted.load(Relaxed);
            if let Some(function) = function.filter(|_| count > 0) {
                let caller = self.interner.frame(&mut self.calls.profile, unknown);
                self.calls.rows.push(CallRow {
                    function,
                    caller,
                    thread: NONE,
                    count,
                    unfinished: 0,
                    total_ns: 0,
                    self_ns: 0,
                    min_ns: 0,
                    max_ns: 0,
                    histogram: vec![],
                    instructions: None,
                });
            }
        }
    }

    fn row(&self, entry: &Entry, function: u32, caller: u32, thread: u32) -> CallRow {
        let ns = |ticks| self.rate.ns(ticks);
        let count = entry.begun.load(Relaxed);
        let finished = entry.finished.load(Relaxed);
        let untimed = entry.untimed.load(Relaxed);
        let shortest = entry.min.load(Relaxed);
        CallRow {
            function,
            caller,
            thread,
            count,
            unfinished: count.saturating_sub(finished).saturating_sub(untimed),
            total_ns: ns(entry.total.load(Relaxed)),
            self_ns: ns(entry.own.load(Relaxed)),
            min_ns: if finished == 0 { 0 } else { ns(shortest) },
            max_ns: ns(entry.max.load(Relaxed)),
            histogram: entry
                .classes
                .iter()
                .enumerate()
                .map(|(class, count)| (ns(class_start(class)), count.load(Relaxed)))
                .filter(|(_, count)| *count > 0)
                .collect(),
            instructions: None,
        }
    }

    /// The frame of a call, by its return address.
    fn frame(&mut self, image: u32, place: u64) -> u32 {
        let call = place.wrapping_sub(1);
        let found = (place != 0).then(|| self.object_of(image, call)).flatten();
        let (module, address) = match found {
            Some(object) => (object.module, call.wrapping_sub(object.bias)),
            None => (NONE, if place == 0 { 0 } else { call }),
        };
        let kind = FrameKind::Native;
        let frame = Frame { kind, module, address, function: 0, file: 0, line: 0 };
        self.interner.frame(&mut self.calls.profile, frame)
    }

    /// The object that contains an address, in the image or in those it was forked from.
    fn object_of(&self, mut image: u32, address: u64) -> Option<&Object> {
        let holds = |object: &&Object, image| {
            object.image == image && (object.start..object.end).contains(&address)
        };
        while image != 0 {
            let mut all = self.objects.iter().rev().filter(|object| holds(object, image));
            let found = all.clone().find(|object| object.is_open).or_else(|| all.next());
            if found.is_some() {
                return found;
            }
            let parent = self.parent(image);
            image = if parent < image { parent } else { 0 };
        }
        None
    }

    fn parent(&self, image: u32) -> u32 {
        let row = self.shared.tables().processes.get(image as usize - 1);
        row.map_or(0, |row| row.parent.load(Relaxed))
    }

    /// The program name of an image: that of its first object.
    fn program(&mut self, image: u32) -> u32 {
        let mut first = image;
        while self.parent(first) != 0 && self.parent(first) < first {
            first = self.parent(first);
        }
        let Some(object) = self.objects.iter().find(|object| object.image == first) else {
            return 0;
        };
        let path = self.calls.profile.modules.get(object.module as usize).map_or(0, |m| m.path);
        let texts = &mut self.calls.profile.texts;
        let name = texts.get(path).rsplit('/').next().unwrap_or_default().to_owned();
        texts.add(&name)
    }

    fn arguments(&mut self) {
        let tables = self.shared.tables();
        let wanted = tables.header.arguments.load(Relaxed) as usize;
        if wanted == 0 {
            return;
        }
        let mut known: FxHashMap<(u32, Vec<i64>), (u64, u64)> = FxHashMap::default();
        for row in tables.arguments.iter().filter(|row| row.ready.load(Acquire) == 1) {
            let symbol = row.symbol.load(Relaxed) as usize;
            let Some(function) = self.functions.get(symbol).copied().flatten() else { continue };
            let values: Vec<i64> =
                row.values.iter().take(wanted).map(|value| value.load(Relaxed) as i64).collect();
            let sums = known.entry((function, values)).or_default();
            sums.0 += row.count.load(Relaxed);
            sums.1 += row.total.load(Relaxed);
        }
        self.calls.arguments = known
            .into_iter()
            .map(|((function, values), (count, ticks))| ArgumentRow {
                function,
                values,
                count,
                total_ns: self.rate.ns(ticks),
            })
            .collect();
        self.calls.arguments.sort_by(|a, b| {
            (a.function, b.count, &a.values).cmp(&(b.function, a.count, &b.values))
        });
    }

    fn quality(&mut self) {
        let header = &self.shared.tables().header;
        self.calls.quality.table_full += header.table_full.load(Relaxed);
        self.calls.quality.cost_ns = self.rate.ns_exact(header.cost.load(Relaxed));
        let warnings = &mut self.calls.profile.quality.warnings;
        let mut warn = |count: u64, text: &str| {
            if count > 0 {
                warnings.push(format!("{count} {text}"));
            }
        };
        warn(
            header.arguments_lost.load(Relaxed),
            "calls without recorded arguments: the argument table was full",
        );
        warn(
            u64::from(header.untraced.load(Relaxed)),
            "child processes were not traced: the tables are nearly full (use --lib or --from to \
             trace fewer functions, or --no-children)",
        );
        warn(
            u64::from(header.unpatched.load(Relaxed)),
            "function slots could not be redirected; calls through them are not counted",
        );
        warn(
            u64::from(header.count_only.load(Relaxed)),
            "processes loaded greenlet, which moves stacks: from then on calls were counted but \
             not timed",
        );
        warn(
            u64::from(header.no_wipe.load(Relaxed)),
            "processes could not be distinguished from their forks",
        );
    }
}

fn add(sum: &mut CallRow, row: CallRow) {
    let (a, b) = (sum.count - sum.unfinished, row.count - row.unfinished);
    sum.min_ns =
        if a == 0 || b == 0 { sum.min_ns.max(row.min_ns) } else { sum.min_ns.min(row.min_ns) };
    sum.max_ns = sum.max_ns.max(row.max_ns);
    sum.count += row.count;
    sum.unfinished += row.unfinished;
    sum.total_ns += row.total_ns;
    sum.self_ns += row.self_ns;
    for (start, count) in row.histogram {
        match sum.histogram.binary_search_by_key(&start, |class| class.0) {
            Ok(at) => sum.histogram[at].1 += count,
            Err(at) => sum.histogram.insert(at, (start, count)),
        }
    }
}

/// The path of a library may be relative to the directory in which the program started.
fn absolute(path: String) -> String {
    if !path.contains('/') || path.starts_with('/') {
        return path;
    }
    std::fs::canonicalize(&path).map_or(path, |path| path.to_string_lossy().into_owned())
}
