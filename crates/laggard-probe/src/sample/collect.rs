//! Converts agent records to a profile: unwinds stacks, merges frames and deduplicates stacks.

use super::code::CodeObject;
use super::merge::{Fit, Native, Piece, merge};
use super::python::{self, Found, Interpreter, Version};
use laggard_agent::wire::{self, PythonFrame, exclusion, kind, options, sample_flags};
use laggard_core::model::NONE;
use laggard_core::model::profile::{
    Children, Event, Frame, FrameKind, Interner, Module, Profile, Sample, Thread, state,
};
use laggard_symbols::{
    AddressSpace, Ending, ModuleIndex, Modules, NativeFrame, Registers, StackCopy, Unwinder,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;

/// Collects records into a profile.
pub(crate) struct Collector {
    pub(crate) profile: Profile,
    interner: Interner,
    modules: Modules,
    unwinder: Unwinder,
    processes: FxHashMap<u32, Process>,
    threads: FxHashMap<(u32, u32), u32>,
    /// Names that interpreters gave to live threads.
    python_names: FxHashMap<(u32, u32), String>,
    /// Indices of modules in the profile.
    module_numbers: FxHashMap<ModuleIndex, u32>,
    /// Frames by address, and whether they are evaluation loops.
    places: FxHashMap<(Option<ModuleIndex>, u64), (u32, bool)>,
    cut: FxHashMap<(u32, &'static str), u64>,
    /// Threads that shared the event of the thread that created them.
    inherited: FxHashSet<u32>,
    /// Interpreters by module.
    interpreters: FxHashMap<ModuleIndex, Option<Found>>,
    /// Versions of interpreters of which frames cannot be read.
    unreadable: BTreeSet<Version>,
    /// Programs that could not be sampled, by path and reason.
    excluded: FxHashMap<(String, u32), u64>,
    /// Frames of the current sample.
    frames: Vec<NativeFrame>,
    origin_ns: u64,
    weight: u64,
}

#[derive(Default)]
struct Process {
    space: AddressSpace,
    codes: FxHashMap<u64, CodeObject>,
    /// Frames by code object and instruction.
    python: FxHashMap<(u64, i32), u32>,
    /// Whether its agent knows an interpreter.
    has_python: bool,
    /// Start time of the current program, as reported by its agent.
    born_ns: u64,
    /// Code pages that the last reading of the mappings did not cover.
    unexplained: FxHashSet<u64>,
    name: u32,
    /// Name of its program, as the system knows it.
    comm: String,
    /// Whether it reported its end.
    has_ended: bool,
}

impl Collector {
    /// `origin_ns` is the start of the run on `CLOCK_MONOTONIC`; every sample represents `weight`
    /// units of `event`.
    pub(crate) fn new(origin_ns: u64, event: Event, weight: u64) -> Collector {
        Collector {
            profile: Profile { events: vec![event], ..Profile::default() },
            interner: Interner::default(),
            modules: Modules::default(),
            unwinder: Unwinder::default(),
            processes: FxHashMap::default(),
            threads: FxHashMap::default(),
            python_names: FxHashMap::default(),
            module_numbers: FxHashMap::default(),
            places: FxHashMap::default(),
            cut: FxHashMap::default(),
            inherited: FxHashSet::default(),
            interpreters: FxHashMap::default(),
            unreadable: BTreeSet::new(),
            excluded: FxHashMap::default(),
            frames: vec![],
            origin_ns,
            weight,
        }
    }

    /// Start of the run on `CLOCK_MONOTONIC`.
    pub(crate) fn origin_ns(&self) -> u64 {
        self.origin_ns
    }

    /// Processes one record of the ring.
    pub(crate) fn take(&mut self, kind: u64, payload: &[u8]) {
        // A record with inconsistent lengths was overwritten and cannot be used.
        let taken = match kind {
            kind::SAMPLE => self.sample(payload),
            kind::CODE => self.code(payload),
            kind::MAPS => self.maps(payload),
            kind::THREAD_END => self.thread_end(payload),
            kind::EXCLUDED => self.exclude(payload),
            kind::THREAD_NAME => self.thread_name(payload),
            kind::PAD => Some(()),
            _ => None,
        };
        if taken.is_none() {
            self.profile.quality.lost += 1;
        }
    }

    /// The processes that the program started, and the CPU time of those that could be sampled.
    pub(crate) fn children(&mut self, header: &wire::Header) -> Children {
        // Processes that were killed did not report their CPU time, but some have samples.
        let killed = |sample: &&Sample| {
            let pid = self.profile.threads[sample.thread as usize].pid;
            self.processes.get(&pid).is_none_or(|process| !process.has_ended)
        };
        let of_killed: u64 =
            self.profile.samples.iter().filter(killed).map(|sample| sample.weight).sum();
        let root = header.root_pid.load(Relaxed);
        let has_reported = self.processes.get(&root).is_some_and(|process| process.has_ended);
        let times = [
            header.ended_user_ns.load(Relaxed).saturating_add(of_killed),
            header.ended_system_ns.load(Relaxed),
        ];
        let [user_ns, system_ns] = if has_reported { times } else { [0, 0] };
        let texts = &mut self.profile.texts;
        let mut excluded: Vec<_> = self.excluded.iter().collect();
        excluded.sort_unstable();
        Children {
            are_followed: header.options.load(Relaxed) & options::CHILDREN != 0,
            followed: header.processes.load(Relaxed),
            excluded: excluded
                .into_iter()
                .map(|((path, reason), &count)| {
                    (texts.add(path), texts.add(reason_of(*reason)), count)
                })
                .collect(),
            user_ns,
            system_ns,
        }
    }

    /// Moves the counts into the profile.
    pub(crate) fn finish(mut self) -> (Profile, Interner) {
        // Short programs end before their mappings are searched for interpreters.
        self.new_interpreters();
        self.profile.quality.warnings.extend(self.unreadable.iter().map(|one| one.notice()));
        let mut cut: Vec<_> = self.cut.into_iter().collect();
        cut.sort_by_key(|&((module, reason), count)| (std::cmp::Reverse(count), module, reason));
        let texts = &mut self.profile.texts;
        self.profile.quality.cut = cut
            .into_iter()
            .map(|((module, reason), count)| (module, count, texts.add(reason)))
            .collect();
        (self.profile, self.interner)
    }

    /// Threads that share an event start at zero of its period, so threads that use less than one
    /// period are never sampled. The weight of their samples is increased to match their CPU time
    /// in user code. Returns the number of threads and the factor.
    pub(crate) fn correct_inherited(&mut self, user_share: f64) -> Option<(usize, f64)> {
        let used: u64 =
            self.inherited.iter().map(|&at| self.profile.threads[at as usize].cpu_ns).sum();
        let is_one = |sample: &&mut Sample| self.inherited.contains(&sample.thread);
        let seen: u64 =
            self.profile.samples.iter_mut().filter(is_one).map(|sample| sample.weight).sum();
        if seen == 0 {
            return None;
        }
        let factor = (used as f64 * user_share / seen as f64).max(1.0);
        for sample in self.profile.samples.iter_mut().filter(is_one) {
            sample.weight = (sample.weight as f64 * factor) as u64;
        }
        Some((self.inherited.len(), factor))
    }

    /// Interpreters that processes have mapped since their start, with their addresses, so that
    /// agents can read their frames. Each is returned once.
    pub(crate) fn new_interpreters(&mut self) -> Vec<(u32, u64, Interpreter)> {
        let mut found = vec![];
        for (&pid, process) in &mut self.processes {
            if process.has_python || process.born_ns == 0 {
                continue;
            }
            for mapping in process.space.mappings() {
                let Some(index) = mapping.module else { continue };
                let interpreter = *self.interpreters.entry(index).or_insert_with(|| {
                    let module = self.modules.get(index)?;
                    python::find(module.elf.as_ref()?, &module.path)
                });
                match interpreter {
                    Some(Found::Readable(interpreter)) => {
                        found.push((pid, process.born_ns, interpreter.moved(mapping.bias)));
                    }
                    Some(Found::Unreadable(version)) => drop(self.unreadable.insert(version)),
                    None => continue,
                }
                process.has_python = true;
                break;
            }
        }
        found
    }

    fn maps(&mut self, payload: &[u8]) -> Option<()> {
        let (record, rest) = part::<wire::Process>(payload)?;
        let text = rest.get(..record.text as usize)?;
        let process = self.processes.entry(record.pid).or_default();
        if record.moment == 1 {
            *process = Process {
                name: NONE,
                born_ns: record.time_ns,
                has_python: record.has_python != 0,
                ..Process::default()
            };
        }
        process.space.refresh(text, &mut self.modules);
        process.has_ended = record.moment == 2;
        if record.moment == 1 {
            let words = rest.get(record.text as usize..)?.get(..record.command as usize)?;
            process.comm = until_zero(&record.name);
            process.name = self.profile.texts.add(&program_name(&process.comm, words));
        }
        Some(())
    }

    fn exclude(&mut self, payload: &[u8]) -> Option<()> {
        let (record, rest) = part::<wire::Excluded>(payload)?;
        let path = String::from_utf8_lossy(rest.get(..record.path as usize)?).into_owned();
        *self.excluded.entry((path, record.reason)).or_default() += 1;
        Some(())
    }

    fn code(&mut self, payload: &[u8]) -> Option<()> {
        let (record, rest) = part::<wire::Code>(payload)?;
        let code = CodeObject::read(&record, rest)?;
        let process = self.processes.entry(record.pid).or_default();
        let known = process.codes.insert(record.code, code);
        if known.is_some() {
            process.python.retain(|&(address, _), _| address != record.code);
        }
        Some(())
    }

    fn thread_name(&mut self, payload: &[u8]) -> Option<()> {
        let (record, rest) = part::<wire::ThreadName>(payload)?;
        let name = String::from_utf8_lossy(rest.get(..record.text as usize)?);
        // A name that was shortened may end with half a character.
        let name = name.trim_end_matches(char::REPLACEMENT_CHARACTER);
        self.python_names.insert((record.pid, record.tid), name.to_owned());
        Some(())
    }

    /// Reads the names of threads again, because threads name themselves after their start.
    pub(crate) fn refresh_names(&mut self) {
        for (&(pid, tid), &number) in &self.threads {
            if let Some(own) = name_in(&format!("/proc/{pid}/task/{tid}/comm")) {
                let comm = self.processes.get(&pid).map_or("", |process| &process.comm);
                let name = thread_label(self.python_names.get(&(pid, tid)), &own, comm);
                let thread = &mut self.profile.threads[number as usize];
                thread.name = self.profile.texts.add(name);
            }
        }
    }

    fn thread_end(&mut self, payload: &[u8]) -> Option<()> {
        let (record, _) = part::<wire::Thread>(payload)?;
        let number = self.thread(record.pid, record.tid);
        let name = record.name.split(|&byte| byte == 0).next().unwrap_or_default();
        let thread = &mut self.profile.threads[number as usize];
        thread.cpu_ns = record.cpu_ns;
        if record.has_inherited != 0 {
            self.inherited.insert(number);
        }
        // Thread IDs are reused.
        self.threads.remove(&(record.pid, record.tid));
        let python_name = self.python_names.remove(&(record.pid, record.tid));
        let own = String::from_utf8_lossy(name);
        let comm = self.processes.get(&record.pid).map_or("", |process| &process.comm);
        thread.name = self.profile.texts.add(thread_label(python_name.as_ref(), &own, comm));
        Some(())
    }

    fn sample(&mut self, payload: &[u8]) -> Option<()> {
        let (record, rest) = part::<wire::Sample>(payload)?;
        let (chain, rest) = parts::<PythonFrame>(rest, record.python as usize)?;
        let stack = StackCopy {
            start: record.regs[STACK_POINTER].wrapping_sub(wire::RED_ZONE),
            bytes: rest.get(..record.stack as usize)?,
        };
        let registers = Registers(record.regs);
        let process = self.processes.entry(record.pid).or_default();
        process.has_python |= record.minor != 0;
        let mut frames = std::mem::take(&mut self.frames);
        let unwinder = &mut self.unwinder;
        let mut ending =
            unwinder.unwind(&registers, stack, &process.space, &self.modules, &mut frames);
        let unmapped = match ending {
            Ending::Unmapped { pc, .. } => Some(pc),
            _ => frames.iter().map(|f| f.pc).find(|&pc| process.space.find(pc).is_none()),
        };
        if unmapped.is_some_and(|pc| process.unexplained.insert(pc >> 12)) {
            // A library was loaded since.
            if let Ok(text) = std::fs::read(format!("/proc/{}/maps", record.pid)) {
                process.space.refresh(&text, &mut self.modules);
                ending =
                    unwinder.unwind(&registers, stack, &process.space, &self.modules, &mut frames);
            }
        }
        let is_complete = ending == Ending::Complete;
        let mut mark = 0;
        if !is_complete {
            mark |= state::CUT;
            let module = ending.module().map_or(NONE, |module| self.module(module));
            let path = self.profile.modules.get(module as usize).map_or(0, |module| module.path);
            *self.cut.entry((path, ending.reason())).or_default() += 1;
        }
        // The agent's thread start function does not belong to the program.
        frames.retain(|frame| frame.module.is_none_or(|module| !self.is_agent(module)));
        let numbered: Vec<(u32, bool)> = frames.iter().map(|frame| self.place(frame)).collect();
        let native: Vec<Native> = frames
            .iter()
            .zip(&numbered)
            .map(|(frame, &(_, is_loop))| Native { sp: frame.sp, cfa: frame.cfa, is_loop })
            .collect();
        let (pieces, fit) = merge(&native, &chain, record.minor, is_complete);
        if record.minor != 0 && (!chain.is_empty() || native.iter().any(|frame| frame.is_loop)) {
            self.profile.quality.with_python += 1;
            let is_bad = record.flags & sample_flags::CHAIN_BAD != 0;
            if is_bad || fit == Fit::Mismatch {
                self.profile.quality.mismatched += 1;
                mark |= state::NO_PYTHON;
            }
        }
        for (flag, bit) in
            [(sample_flags::GIL, state::GIL), (sample_flags::WAITING, state::WAITING)]
        {
            if record.flags & flag != 0 {
                mark |= bit;
            }
        }
        let mut node = NONE;
        for piece in pieces.into_iter().rev() {
            let frame = match piece {
                Piece::Native(at) => numbered[at].0,
                Piece::Python(code, lasti) => self.python(record.pid, code, lasti),
            };
            node = self.interner.node(&mut self.profile, node, frame);
        }
        let thread = self.thread(record.pid, record.tid);
        // A sample of a traced function contains the function and the number of calls that it
        // represents.
        let (event, weight) = match record.about.checked_sub(1) {
            Some(function) => (function as u32, record.value),
            None if record.value != 0 => (0, record.value),
            None => (0, self.weight),
        };
        self.profile.samples.push(Sample {
            time_ns: record.time_ns.saturating_sub(self.origin_ns),
            thread,
            stack: node,
            event,
            count: 1,
            weight,
            state: mark,
        });
        self.frames = frames;
        Some(())
    }

    fn is_agent(&self, module: ModuleIndex) -> bool {
        let path = self.modules.get(module).and_then(|module| module.path.file_name());
        path.is_some_and(|name| name.as_encoded_bytes().starts_with(b"laggard-"))
    }

    /// Index of a native frame, and whether it is an evaluation loop.
    fn place(&mut self, frame: &NativeFrame) -> (u32, bool) {
        let key = (frame.module, frame.svma);
        if let Some(&known) = self.places.get(&key) {
            return known;
        }
        let elf = frame.module.and_then(|module| self.modules.get(module)?.elf.as_ref());
        let is_loop = elf
            .and_then(|elf| elf.symbol(frame.svma))
            .is_some_and(|symbol| symbol.name.starts_with("_PyEval_EvalFrameDefault"));
        let module = frame.module.map_or(NONE, |module| self.module(module));
        let number = self.interner.frame(
            &mut self.profile,
            Frame {
                kind: FrameKind::Native,
                module,
                address: frame.svma,
                function: 0,
                file: 0,
                line: 0,
            },
        );
        self.places.insert(key, (number, is_loop));
        (number, is_loop)
    }

    fn module(&mut self, index: ModuleIndex) -> u32 {
        if let Some(&number) = self.module_numbers.get(&index) {
            return number;
        }
        let Some(module) = self.modules.get(index) else { return NONE };
        let path = self.profile.texts.add(&module.path.to_string_lossy());
        let id = module.elf.as_ref().map_or(0, |elf| self.profile.texts.add(elf.id()));
        let number = self.interner.module(&mut self.profile, Module { path, id });
        self.module_numbers.insert(index, number);
        number
    }

    fn python(&mut self, pid: u32, code: u64, lasti: i32) -> u32 {
        let process = self.processes.entry(pid).or_default();
        if let Some(&frame) = process.python.get(&(code, lasti)) {
            return frame;
        }
        let texts = &mut self.profile.texts;
        let (function, file, line) = match process.codes.get(&code) {
            Some(code) => (texts.add(&code.name), texts.add(&code.file), code.line(lasti)),
            // Its description was lost because the ring was full.
            None => (texts.add("[unknown Python function]"), 0, 0),
        };
        let frame =
            Frame { kind: FrameKind::Python, module: NONE, address: 0, function, file, line };
        let frame = self.interner.frame(&mut self.profile, frame);
        process.python.insert((code, lasti), frame);
        frame
    }

    fn thread(&mut self, pid: u32, tid: u32) -> u32 {
        if let Some(&number) = self.threads.get(&(pid, tid)) {
            return number;
        }
        let texts = &mut self.profile.texts;
        let process = self.processes.entry(pid).or_default();
        if process.name == 0 || process.name == NONE {
            process.comm = name_in(&format!("/proc/{pid}/comm")).unwrap_or_default();
            process.name = texts.add(&process.comm);
        }
        // A process that has ended no longer has names of threads.
        let own = name_in(&format!("/proc/{pid}/task/{tid}/comm"));
        let own = own.as_deref().unwrap_or(&process.comm);
        let name = thread_label(self.python_names.get(&(pid, tid)), own, &process.comm);
        let name = texts.add(name);
        let number = self.profile.threads.len() as u32;
        self.profile.threads.push(Thread { pid, tid, name, process: process.name, cpu_ns: 0 });
        self.threads.insert((pid, tid), number);
        number
    }
}

/// The content of a file below `/proc` that contains a name.
fn name_in(path: &str) -> Option<String> {
    let name = std::fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned())
}

/// The text about a program that could not be sampled ([`exclusion`]).
fn reason_of(number: u32) -> &'static str {
    match number {
        exclusion::STATIC => "statically linked",
        exclusion::MACHINE => "built for another architecture",
        exclusion::PRIVILEGED => "runs with elevated privileges",
        exclusion::GO => "Go program",
        exclusion::ENVIRONMENT => "started without the environment of its parent",
        exclusion::VALGRIND => "runs under valgrind",
        _ => "unknown reason",
    }
}

/// The text of a padded field.
fn until_zero(field: &[u8]) -> String {
    let end = |byte: &u8| matches!(byte, 0 | b'\n');
    String::from_utf8_lossy(field.split(end).next().unwrap_or_default()).into_owned()
}

/// The name of a thread: the one from Python, or `own`, the one of the system. A name that the
/// program set itself has precedence over one that Python generated.
fn thread_label<'a>(python: Option<&'a String>, own: &'a str, process: &str) -> &'a str {
    match python {
        Some(python)
            if python.starts_with("Thread-") && own != process && !python.starts_with(own) =>
        {
            own
        }
        Some(python) => python,
        None => own,
    }
}

/// The name of a process: that of its program and, for an interpreter, that of its script.
fn program_name(name: &str, command: &[u8]) -> String {
    match script_of(name, command) {
        Some(script) if !script.starts_with(name) => format!("{name} {script}"),
        _ => name.to_owned(),
    }
}

/// The script, module or code that an interpreter runs; `None` for other programs.
fn script_of(name: &str, command: &[u8]) -> Option<String> {
    const INTERPRETERS: [&str; 10] =
        ["python", "pypy", "sh", "bash", "dash", "zsh", "perl", "ruby", "node", "Rscript"];
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if !INTERPRETERS.contains(&bare) {
        return None;
    }
    let mut words = command.split(|&byte| byte == 0).skip(1).map(String::from_utf8_lossy);
    while let Some(word) = words.next() {
        match &*word {
            "-m" => return Some(format!("-m {}", words.next()?)),
            "-c" => return None,
            // Code, except for shells, which stop at errors.
            "-e" if !bare.ends_with("sh") => return None,
            // These options of Python have a value.
            "-X" | "-W" => drop(words.next()),
            option if option.starts_with('-') => {}
            path => return Some(path.rsplit('/').next().unwrap_or(path).to_owned()),
        }
    }
    None
}

/// Index of the stack pointer among the DWARF registers.
const STACK_POINTER: usize = 7;

/// Records of the wire format: any bytes are valid for them.
trait Record: Copy {}
impl Record for wire::Sample {}
impl Record for wire::Code {}
impl Record for wire::Process {}
impl Record for wire::Thread {}
impl Record for wire::Excluded {}
impl Record for wire::ThreadName {}
impl Record for PythonFrame {}

fn part<T: Record>(bytes: &[u8]) -> Option<(T, &[u8])> {
    let (head, rest) = bytes.split_at_checked(size_of::<T>())?;
    // SAFETY: `head` has the size of `T`, and any bytes are a valid `Record`.
    Some((unsafe { head.as_ptr().cast::<T>().read_unaligned() }, rest))
}

fn parts<T: Record>(mut bytes: &[u8], count: usize) -> Option<(Vec<T>, &[u8])> {
    // The count comes from another process, so the capacity is bounded by the available bytes.
    let mut all = Vec::with_capacity(count.min(bytes.len() / size_of::<T>()));
    for _ in 0..count {
        let (one, rest) = part(bytes)?;
        all.push(one);
        bytes = rest;
    }
    Some((all, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_named_by_program_and_script() {
        let check = |name: &str, words: &[&str], expected: &str| {
            let command: Vec<u8> = words.iter().flat_map(|word| word.bytes().chain([0])).collect();
            assert_eq!(program_name(name, &command), expected, "{words:?}");
        };
        check("python3", &["python3", "-X", "dev", "/tmp/train.py", "--fast"], "python3 train.py");
        check("python3.12", &["python3.12", "-m", "http.server"], "python3.12 -m http.server");
        check("python3", &["python3", "-c", "pass"], "python3");
        check("sh", &["sh", "-e", "./run.sh"], "sh run.sh");
        check("run.sh", &["/bin/sh", "./run.sh"], "run.sh");
        check("true", &["/bin/true", "x"], "true");
        check("sh", &[], "sh");
    }

    #[test]
    fn names_that_the_program_set_have_precedence_over_generated_names() {
        let check = |python: Option<&str>, own: &str, expected: &str| {
            let python = python.map(str::to_owned);
            assert_eq!(thread_label(python.as_ref(), own, "python3"), expected);
        };
        check(None, "worker", "worker");
        check(Some("loader of images"), "python3", "loader of images");
        check(Some("loader of images"), "loader of image", "loader of images");
        check(Some("Thread-1 (work)"), "python3", "Thread-1 (work)");
        check(Some("Thread-1 (works_long)"), "Thread-1 (works", "Thread-1 (works_long)");
        check(Some("Thread-1 (work)"), "set-by-prctl", "set-by-prctl");
    }
}
