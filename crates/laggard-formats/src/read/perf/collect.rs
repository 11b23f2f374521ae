//! Converts records to a profile.

use super::attr::Attr;
use super::bytes::Rest;
use super::chain::{Chains, End, Link};
use super::header::Header;
use super::kernel::LazyKernel;
use super::perf_map::Named;
use super::process::Processes;
use super::records::{Record, Records, kind};
use super::sample::Sample;
use super::stitch::Stitches;
use crate::Error;
use laggard_core::model::NONE;
use laggard_core::model::profile::{
    Event, Frame, FrameKind, Interner, Module, Profile, Sample as Row, Thread, state,
};
use laggard_symbols::ModuleIndex;
use rustc_hash::FxHashMap;
use std::path::Path;

/// Bytes between progress reports.
const PROGRESS: usize = 4 << 20;
/// Number of samples whose stacks are unwound together, in parallel.
const BATCH: usize = 1024;
/// Minimum number of samples per thread.
const SMALL_BATCH: usize = 128;
/// Maximum size of a stack copy in perf.
const LARGEST_COPY: u64 = 65_528;

/// Reads a whole recording.
pub(super) fn profile(
    bytes: &[u8],
    path: &Path,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Profile, Error> {
    let header =
        Header::read(bytes).map_err(|what| Error::NotARecording { path: path.to_owned(), what })?;
    let mut collector = Collector::new(&header);
    let mut records = Records::new(&bytes[header.records.clone()], &header.attrs);
    let mut told = 0usize;
    while let Some(record) = records.next() {
        collector.take(record);
        if records.position() >= told.saturating_add(PROGRESS) {
            progress(records.position().saturating_sub(told) as u64);
            told = records.position();
        }
    }
    collector.flush();
    progress(bytes.len().saturating_sub(told) as u64);
    if let Some(damage) = &records.damage {
        collector.profile.quality.warnings.push(format!("the file is damaged: {damage}"));
    }
    Ok(collector.finish())
}

struct Collector<'a> {
    header: &'a Header,
    /// Samples that wait for unwinding. Mappings and names must not change in the meantime.
    batch: Vec<Record<'a>>,
    profile: Profile,
    interner: Interner,
    processes: Processes,
    kernel: LazyKernel,
    /// Event number in the profile, by event number in the file.
    events: Vec<u32>,
    threads: FxHashMap<(u32, u32), u32>,
    /// Extent of the stacks of each thread.
    reaches: FxHashMap<u32, Reach>,
    module_numbers: FxHashMap<ModuleIndex, u32>,
    places: FxHashMap<(Option<ModuleIndex>, u64), u32>,
    kernel_frames: FxHashMap<u64, u32>,
    cut: FxHashMap<(u32, &'static str), u64>,
    /// One per worker thread.
    chains: Vec<Chains>,
    origin_ns: Option<u64>,
    last_ns: u64,
    stitches: Stitches,
    throttled: u64,
    /// Whether Python ran with perf trampolines.
    has_trampolines: bool,
    broken: u64,
}

/// Extent of the stacks of a thread, used to compute the required copy size.
#[derive(Default)]
struct Reach {
    /// Highest end of a complete stack.
    top: u64,
    /// Lowest stack pointer of a truncated stack.
    deepest_cut: Option<u64>,
}

impl<'a> Collector<'a> {
    fn new(header: &'a Header) -> Collector<'a> {
        let mut profile = Profile::default();
        let mut events = vec![];
        for attr in &header.attrs {
            let event = Event { name: attr.plain_name(), unit: attr.unit() };
            // The same event on two core types is one event.
            let known = profile.events.iter().position(|known| *known == event);
            events.push(known.unwrap_or_else(|| {
                profile.events.push(event);
                profile.events.len() - 1
            }) as u32);
        }
        Collector {
            header,
            batch: vec![],
            profile,
            interner: Interner::default(),
            processes: Processes::new(header),
            kernel: LazyKernel::default(),
            events,
            threads: FxHashMap::default(),
            reaches: FxHashMap::default(),
            module_numbers: FxHashMap::default(),
            places: FxHashMap::default(),
            kernel_frames: FxHashMap::default(),
            cut: FxHashMap::default(),
            chains: threads().map(|_| Chains::default()).collect(),
            origin_ns: None,
            last_ns: 0,
            stitches: Stitches::default(),
            throttled: 0,
            has_trampolines: false,
            broken: 0,
        }
    }

    fn take(&mut self, record: Record<'a>) {
        // Records that perf synthesizes at the start have no time.
        if record.time > 0 {
            self.origin_ns.get_or_insert(record.time);
            self.last_ns = self.last_ns.max(record.time);
        }
        if record.kind == kind::SAMPLE {
            self.batch.push(record);
            if self.batch.len() == BATCH {
                self.flush();
            }
            return;
        }
        self.flush();
        self.note(&record);
    }

    /// Handles a record that is not a sample.
    fn note(&mut self, record: &Record<'_>) {
        let mut rest = Rest(&record.body);
        let taken = match record.kind {
            kind::LOST => rest.u64().and_then(|_| self.lost(rest)),
            kind::LOST_SAMPLES => self.lost(rest),
            kind::THROTTLE => {
                self.throttled += 1;
                Some(())
            }
            kind::EXIT => (|| {
                let (pid, _, tid) = (rest.u32()?, rest.u32()?, rest.u32()?);
                // Thread ids are reused by later threads.
                self.threads.remove(&(pid, tid));
                Some(())
            })(),
            // Newer versions of perf describe the kernel with the longer record.
            kind::MMAP | kind::MMAP2 => {
                self.check_kernel(rest, record.kind == kind::MMAP2);
                self.processes.take(record)
            }
            kind::COMM => self.processes.take(record).map(|()| self.rename(rest)),
            _ => self.processes.take(record),
        };
        if taken.is_none() {
            self.broken += 1;
        }
    }

    fn lost(&mut self, mut rest: Rest<'_>) -> Option<()> {
        let lost = &mut self.profile.quality.lost;
        *lost = lost.saturating_add(rest.u64()?);
        Some(())
    }

    /// Drops the kernel symbols if the recording is from another boot.
    fn check_kernel(&mut self, mut rest: Rest<'_>, is_long: bool) {
        let at = (|| {
            let pid = rest.u32()?;
            rest.take(20)?;
            let offset = rest.u64()?;
            rest.take(if is_long { 32 } else { 0 })?;
            (pid == u32::MAX && rest.text().starts_with(b"[kernel.kallsyms]_")).then_some(offset)
        })();
        if at.is_some() {
            self.kernel.begins_at = at;
        }
    }

    /// Changes the name of a known thread.
    fn rename(&mut self, mut rest: Rest<'_>) {
        let (Some(pid), Some(tid)) = (rest.u32(), rest.u32()) else { return };
        let Some(&number) = self.threads.get(&(pid, tid)) else { return };
        let name = self.profile.texts.add(&String::from_utf8_lossy(rest.text()));
        let thread = &mut self.profile.threads[number as usize];
        thread.name = name;
        if pid == tid {
            thread.process = name;
        }
    }

    /// Unwinds the waiting samples and adds them in order.
    fn flush(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        if batch.is_empty() {
            return;
        }
        let (attrs, processes) = (&self.header.attrs, &self.processes);
        let read = |records: &[Record<'_>], chains: &mut Chains| -> Vec<Option<(Vec<Link>, End)>> {
            let one = |record: &Record<'_>| {
                let attr = &attrs[record.attr];
                let sample = Sample::read(&record.body, attr)?;
                let at = (processes.space(sample.pid), &processes.modules);
                let mut links = vec![];
                let end = chains.read(&sample, attr, record.misc, at, &mut links);
                Some((links, end))
            };
            records.iter().map(one).collect()
        };
        let workers = if batch.len() < SMALL_BATCH { 1 } else { self.chains.len() };
        let mut parts = batch.chunks(batch.len().div_ceil(workers)).zip(&mut self.chains);
        let found = std::thread::scope(|scope| {
            let first = parts.next();
            let others: Vec<_> =
                parts.map(|(records, chains)| scope.spawn(|| read(records, chains))).collect();
            let mut found = first.map_or_else(Vec::new, |(records, chains)| read(records, chains));
            for part in others {
                found.extend(part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            found
        });
        for (record, found) in batch.iter().zip(found) {
            let taken = found.and_then(|(links, end)| self.sample(record, links, end));
            self.broken += u64::from(taken.is_none());
        }
    }

    fn sample(&mut self, record: &Record<'_>, mut links: Vec<Link>, end: End) -> Option<()> {
        let attr = &self.header.attrs[record.attr];
        let sample = Sample::read(&record.body, attr)?;
        let thread = self.thread(sample.pid, sample.tid);
        let end = match end {
            End::Complete(_) | End::Cut(..) if attr.is_call_stack() => {
                let is_whole = matches!(end, End::Complete(_));
                let is_whole_now = self.stitches.add(thread, &mut links, is_whole);
                if is_whole_now { End::Complete(None) } else { end }
            }
            end => end,
        };
        let is_cut = self.note_end(end, &sample, thread);
        let mut stack = NONE;
        for link in links.iter().rev() {
            let frame = match *link {
                Link::Kernel(address) => self.kernel_frame(address),
                Link::Native { module, svma, pc } => {
                    self.native_frame(sample.pid, module, svma, pc)
                }
            };
            stack = self.interner.node(&mut self.profile, stack, frame);
        }
        self.profile.samples.push(Row {
            time_ns: record.time.saturating_sub(self.origin_ns.unwrap_or(record.time)),
            thread,
            stack,
            event: self.events[record.attr],
            count: 1,
            weight: sample.period.or(attr.period()).unwrap_or(1),
            state: if is_cut { state::CUT } else { 0 },
        });
        Some(())
    }

    /// Counts truncated stacks and tracks the required copy size.
    fn note_end(&mut self, end: End, sample: &Sample<'_>, thread: u32) -> bool {
        let sp = sample.registers.as_ref().map_or(0, laggard_symbols::Registers::sp);
        let (module, reason) = match end {
            End::Complete(top) => {
                if let Some(top) = top {
                    let reach = self.reaches.entry(thread).or_default();
                    reach.top = reach.top.max(top);
                }
                return false;
            }
            End::Cut(module, reason) => (module, reason),
            End::Short(module) => {
                let deepest = &mut self.reaches.entry(thread).or_default().deepest_cut;
                *deepest = Some(deepest.map_or(sp, |known| known.min(sp)));
                (module, "stack copy too short")
            }
        };
        let module = module.map_or(NONE, |module| self.module(module));
        let path = self.profile.modules.get(module as usize).map_or(0, |module| module.path);
        *self.cut.entry((path, reason)).or_default() += 1;
        true
    }

    fn native_frame(&mut self, pid: u32, module: Option<ModuleIndex>, svma: u64, pc: u64) -> u32 {
        if module.is_none() {
            return self.made_up_frame(pid, pc);
        }
        if let Some(&known) = self.places.get(&(module, svma)) {
            return known;
        }
        let number = module.map_or(NONE, |module| self.module(module));
        let frame = Frame { module: number, address: svma, ..frame(FrameKind::Native) };
        let frame = self.interner.frame(&mut self.profile, frame);
        self.places.insert((module, svma), frame);
        frame
    }

    /// The frame of code without a file. The process may have described it in a map.
    fn made_up_frame(&mut self, pid: u32, pc: u64) -> u32 {
        let process = self.processes.get(pid);
        let texts = &mut self.profile.texts;
        let named = process.perf_map(pid).name(pc);
        let frame = match named {
            Some(Named::Python { function, file }) => {
                self.has_trampolines = true;
                Frame {
                    function: texts.add(function),
                    file: texts.add(file),
                    ..frame(FrameKind::Python)
                }
            }
            Some(Named::Other(name)) => {
                Frame { address: pc, function: texts.add(name), ..frame(FrameKind::Native) }
            }
            None => Frame { address: pc, ..frame(FrameKind::Native) },
        };
        self.interner.frame(&mut self.profile, frame)
    }

    fn kernel_frame(&mut self, address: u64) -> u32 {
        if let Some(&known) = self.kernel_frames.get(&address) {
            return known;
        }
        let path = self.profile.texts.add("[kernel]");
        let module = self.interner.module(&mut self.profile, Module { path, id: 0 });
        let name = self.kernel.get(self.header).and_then(|kernel| kernel.name(address));
        let function = self.profile.texts.add(name.unwrap_or("[kernel]"));
        let frame = Frame { module, address, function, ..frame(FrameKind::Kernel) };
        let frame = self.interner.frame(&mut self.profile, frame);
        self.kernel_frames.insert(address, frame);
        frame
    }

    fn module(&mut self, index: ModuleIndex) -> u32 {
        if let Some(&number) = self.module_numbers.get(&index) {
            return number;
        }
        let Some(module) = self.processes.modules.get(index) else { return NONE };
        let id = module.elf.as_ref().map(|elf| elf.id().to_owned());
        let id = id.or_else(|| self.processes.build_id(&module.path)).unwrap_or_default();
        let texts = &mut self.profile.texts;
        let row = Module { path: texts.add(&module.path.to_string_lossy()), id: texts.add(&id) };
        let number = self.interner.module(&mut self.profile, row);
        self.module_numbers.insert(index, number);
        number
    }

    fn thread(&mut self, pid: u32, tid: u32) -> u32 {
        if let Some(&number) = self.threads.get(&(pid, tid)) {
            return number;
        }
        let process = self.processes.get(pid);
        let texts = &mut self.profile.texts;
        let (name, process) = (texts.add(process.name(tid)), texts.add(process.name(pid)));
        let number = self.profile.threads.len() as u32;
        self.profile.threads.push(Thread { pid, tid, name, process, cpu_ns: 0 });
        self.threads.insert((pid, tid), number);
        number
    }

    fn finish(mut self) -> Profile {
        self.about();
        let mut cut: Vec<_> = std::mem::take(&mut self.cut).into_iter().collect();
        cut.sort_by_key(|&((module, reason), count)| (std::cmp::Reverse(count), module, reason));
        let short = self.short_copies(&cut);
        let texts = &mut self.profile.texts;
        let quality = &mut self.profile.quality;
        quality.cut = cut
            .into_iter()
            .map(|((module, reason), count)| (module, count, texts.add(reason)))
            .collect();
        quality.warnings.extend(short);
        quality.warnings.extend(self.header.losses.iter().cloned());
        if self.broken > 0 {
            quality.warnings.push(format!("malformed records skipped: {}", self.broken));
        }
        if self.stitches.count > 0 {
            quality.warnings.push(format!(
                "stacks deeper than the branch records: {}; their outer callers are copied from \
                 the previous sample",
                self.stitches.count
            ));
        }
        if self.has_trampolines {
            quality.warnings.push(
                "Python ran with -X perf, which makes calls of Python functions up to 1.9 times \
                 slower; `laggard record` shows Python functions without it"
                    .into(),
            );
        }
        if self.throttled > 0 {
            quality.warnings.push(format!(
                "the kernel throttled sampling (events: {}): there are fewer samples than \
                 requested; use a lower sampling rate",
                self.throttled
            ));
        }
        self.profile
    }

    fn about(&mut self) {
        let header = self.header;
        let about = &mut self.profile.about;
        about.duration_ns = self.last_ns.saturating_sub(self.origin_ns.unwrap_or(self.last_ns));
        about.command = program_of(&header.command);
        about.rate = header.attrs.iter().find_map(Attr::rate).unwrap_or(0) as f64;
        about.method = format!("perf, {}", call_graph(&header.attrs[0]));
        about.tool = match header.perf.as_str() {
            "" => "perf".into(),
            version => format!("perf {version}"),
        };
        let events: Vec<String> = header
            .attrs
            .iter()
            .map(|attr| match attr.name.as_str() {
                "" => attr.plain_name(),
                name => name.to_owned(),
            })
            .collect();
        let kernel = match header.attrs.iter().all(Attr::excludes_kernel) {
            true => "not sampled",
            false => "sampled",
        };
        for (what, text) in [
            ("host", header.host.as_str()),
            ("kernel", &header.kernel),
            ("architecture", &header.architecture),
            ("processor", &header.cpu),
            ("events", &events.join(", ")),
            ("kernel code", kernel),
        ] {
            if !text.is_empty() {
                about.facts.push((what.into(), text.into()));
            }
        }
    }

    /// Warns about stack copies that are too short, with the required size if complete stacks of
    /// the same thread reveal it.
    fn short_copies(&self, cut: &[((u32, &'static str), u64)]) -> Option<String> {
        let is_short = |reason: &str| reason == "stack copy too short";
        let count: u64 =
            cut.iter().filter(|((_, reason), _)| is_short(reason)).map(|(_, count)| count).sum();
        let size = self.header.attrs.iter().map(|attr| attr.stack_size).max().unwrap_or(0);
        if count == 0 || size == 0 {
            return None;
        }
        let highest = self.reaches.values();
        let needed = highest
            .filter_map(|reach| reach.top.checked_sub(reach.deepest_cut?))
            .filter(|needed| *needed < 1 << 24)
            .max();
        let stacks = format!("stacks larger than the {size} bytes copied: {count}");
        Some(match needed.map(|needed| needed.next_multiple_of(4096)) {
            Some(needed) if needed < LARGEST_COPY => {
                format!("{stacks}; record with --call-graph dwarf,{needed}")
            }
            Some(needed) => {
                format!("{stacks}; they need {needed}, more than perf can copy ({LARGEST_COPY})")
            }
            None if u64::from(size) < LARGEST_COPY => {
                format!("{stacks}; record with --call-graph dwarf,{LARGEST_COPY}")
            }
            None => stacks,
        })
    }
}

/// Worker threads for unwinding.
fn threads() -> std::ops::Range<usize> {
    0..std::thread::available_parallelism().map_or(1, usize::from)
}

fn frame(kind: FrameKind) -> Frame {
    Frame { kind, module: NONE, address: 0, function: 0, file: 0, line: 0 }
}

/// Describes how stacks were recorded.
fn call_graph(attr: &Attr) -> String {
    use super::attr::has;
    if attr.copies_stack() {
        format!("stack copies ({} bytes)", attr.stack_size)
    } else if attr.is_call_stack() {
        "branch records (LBR)".into()
    } else if attr.samples(has::CALLCHAIN) {
        "frame pointers".into()
    } else {
        "without call graph".into()
    }
}

/// The program in perf's command line, without perf's options. The whole command line if none is
/// found.
fn program_of(command: &[String]) -> Vec<String> {
    /// Options whose value is the next word.
    const WITH_VALUE: [&str; 25] = [
        "-e",
        "-F",
        "-o",
        "-c",
        "-C",
        "-p",
        "-t",
        "-u",
        "-m",
        "-j",
        "-k",
        "-D",
        "-G",
        "-r",
        "--filter",
        "--event",
        "--freq",
        "--output",
        "--count",
        "--cpu",
        "--call-graph",
        "--pid",
        "--tid",
        "--mmap-pages",
        "--clockid",
    ];
    let after = command.iter().position(|word| word == "record").map_or(0, |at| at + 1);
    let mut words = command.iter().enumerate().skip(after);
    while let Some((at, word)) = words.next() {
        match word.as_str() {
            "--" => return command[at + 1..].to_vec(),
            flag if WITH_VALUE.contains(&flag) => drop(words.next()),
            flag if flag.starts_with('-') => {}
            _ => return command[at..].to_vec(),
        }
    }
    command.to_vec()
}
