//! Builds [`Seen`] from tables: samples of the timed code by function, with roles and callers.

use super::build::ModuleBuild;
use super::partition::{shared_name, stem};
use super::role::{Place, Role, role};
use super::seen::{Called, SURELY_PARALLEL, Seen, Work};
use crate::calls::{By, View, totals};
use crate::divergence::{Spent, Stacks};
use crate::model::NONE;
use crate::model::calls::Calls;
use crate::model::code::{Code, CodeFile, Mix, Role as LibraryRole};
use crate::model::counts::{Counts, Simulated};
use crate::model::profile::{Event, Frame, FrameKind, Profile, Sample};
use crate::model::timings::{Batch, Series};
use crate::profile::{file_name, frame_label, short_path};
use crate::stats::summary::Summary;
use rustc_hash::{FxHashMap, FxHashSet};

/// Per-call times of a side from its timings. Does not fill [`Seen::work`].
pub fn times(series: &Series) -> Seen {
    let sum = |of: fn(&Batch) -> u64| series.batches.iter().map(of).sum::<u64>() as f64;
    let calls = sum(|batch| batch.calls).max(1.0);
    let median = |of: fn(&Batch) -> u64| {
        let each = |batch: &Batch| of(batch) as f64 / batch.calls.max(1) as f64;
        Summary::of(&series.batches.iter().map(each).collect::<Vec<_>>()).median
    };
    let cpu_ns = median(|batch| batch.user_ns + batch.system_ns);
    // The median limits the effect of disturbed batches. Time in which other programs used the CPU is
    // noise. With several busy threads, the delay may come from these threads.
    let whole_ns = median(|batch| batch.wall_ns);
    let is_parallel = cpu_ns >= SURELY_PARALLEL * whole_ns;
    let (wall_ns, queued_ns) = match is_parallel {
        true => (whole_ns, 0.0),
        false => (
            median(|batch| batch.wall_ns.saturating_sub(batch.queued_ns)),
            median(|batch| batch.queued_ns.min(batch.wall_ns)),
        ),
    };
    // A single thread cannot use more CPU time than wall time; clock resolution causes the excess.
    let busy = cpu_ns / wall_ns.max(f64::MIN_POSITIVE);
    let cpu_ns = if (1.0..SURELY_PARALLEL).contains(&busy) { wall_ns } else { cpu_ns };
    let [user, system] = [sum(|batch| batch.user_ns), sum(|batch| batch.system_ns)];
    let user_ns = cpu_ns * user / (user + system).max(1.0);
    Seen {
        wall_ns,
        user_ns,
        system_ns: cpu_ns - user_ns,
        queued_ns,
        faults: sum(|batch| batch.minor_faults + batch.major_faults) / calls,
        waits: sum(|batch| batch.waits) / calls,
        threads: series.threads,
        rounds: series.batches.len() as u64,
        ..Seen::default()
    }
}

/// Times of a whole program run from its recording.
pub fn of_run(profile: &Profile) -> Seen {
    let about = &profile.about;
    let sampled = || profile.samples.iter().map(|sample| sample.weight).sum::<u64>();
    let is_known = about.user_ns + about.system_ns > 0;
    Seen {
        wall_ns: about.duration_ns as f64,
        user_ns: if is_known { about.user_ns } else { sampled() } as f64,
        system_ns: about.system_ns as f64,
        threads: profile.threads.len() as u32,
        rounds: 1,
        runs: about.command.join(" "),
        measured_unix: about.started_unix + about.duration_ns as f64 / 1e9,
        ..Seen::default()
    }
}

/// For each sample, whether it was taken during an import or while loading a library. Call this
/// before interpreter frames are folded.
pub fn loading(profile: &Profile) -> Vec<bool> {
    let mut stack = vec![];
    let is_loading = |sample: &Sample| {
        frames(profile, sample.stack, &mut stack);
        stack.iter().any(|frame| is_import(profile, frame))
    };
    profile.samples.iter().map(is_loading).collect()
}

/// Whether a sample was taken between two batches of calls, such as during a garbage collection, which
/// is not timed either.
pub(super) fn is_harness(profile: &Profile, stack: &[&Frame]) -> bool {
    let texts = &profile.texts;
    let is = |of: fn(&Frame) -> u32, text: &str| {
        let mut python = stack.iter().filter(|frame| frame.kind == FrameKind::Python);
        python.any(|frame| texts.get(of(frame)) == text)
    };
    is(|frame| frame.function, "_laggard_work") && !is(|frame| frame.file, "<statement>")
}

/// Weight and number of samples by stack.
type WeightsByStack = FxHashMap<u32, (u64, u64)>;

/// Adds user CPU time by function. `loading` has one entry per sample; samples beyond its end count as
/// not loading.
pub fn add_work(seen: &mut Seen, profile: &Profile, code: &Code, loading: &[bool]) {
    seen.builds = ModuleBuild::of_code(code);
    let files: FxHashMap<&str, &CodeFile> =
        code.files.iter().map(|file| (file.path.as_str(), file)).collect();
    let mut found: FxHashMap<(Role, u32, u32), Work> = FxHashMap::default();
    let mut stack: Vec<&Frame> = vec![];
    let mut whole = 0;
    let mut stacks: FxHashMap<(Role, u32, u32), WeightsByStack> = FxHashMap::default();
    for (number, sample) in profile.samples.iter().enumerate() {
        if !profile.events.get(sample.event as usize).is_some_and(Event::is_time) {
            continue;
        }
        frames(profile, sample.stack, &mut stack);
        if is_harness(profile, &stack) {
            continue;
        }
        whole += sample.weight;
        let loading = loading.get(number).copied().unwrap_or(false);
        let Some(at) = stack.iter().position(|frame| frame.kind != FrameKind::Inlined) else {
            continue;
        };
        let leaf = stack[at];
        let what = match stack.get(at + 1) {
            // Time in stubs is attributed to the role of their caller.
            Some(caller) if is_stub(profile, leaf) => role_of(profile, caller, &files, loading),
            _ => role_of(profile, leaf, &files, loading),
        };
        let work = found.entry((what, leaf.module, leaf.function)).or_insert_with(|| Work {
            name: label(profile, leaf),
            library: file_name(profile.module_path(leaf)).to_owned(),
            role: what,
            place: place(profile, leaf),
            caller: caller(profile, &stack[at + 1..], what, &files),
            parent: parent(profile, &stack[at + 1..]),
            mix: executed(profile, leaf, &files, code),
            ..Work::default()
        });
        work.ns += sample.weight as f64;
        work.samples += 1;
        let key = (what, leaf.module, leaf.function);
        let sum = stacks.entry(key).or_default().entry(sample.stack).or_default();
        *sum = (sum.0 + sample.weight, sum.1 + 1);
    }
    // A stable order, independent of the hash map.
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by(|(x, a), (y, b)| {
        b.ns.total_cmp(&a.ns).then_with(|| a.name.cmp(&b.name)).then(x.cmp(y))
    });
    let hottest = found.first().and_then(|(key, _)| {
        stacks.get(key)?.iter().max_by_key(|&(stack, (weight, _))| (weight, stack))
    });
    seen.path = hottest.map_or_else(Vec::new, |(stack, _)| path(profile, *stack));
    let scale = seen.user_ns / (whole as f64).max(1.0);
    let spent = found.iter().zip(0u32..).flat_map(|((key, _), work)| {
        stacks.get(key).into_iter().flatten().map(move |(&node, &(weight, samples))| Spent {
            node,
            work,
            ns: weight as f64 * scale,
            samples,
        })
    });
    seen.stacks = Stacks::new(profile, spent);
    seen.work = found.into_iter().map(|(_, work)| work).collect();
    for work in &mut seen.work {
        work.ns *= scale;
    }
    seen.available = available(&seen.work, code);
}

/// Adds counts of a simulated CPU to the functions that took time. If the simulated CPU ran another
/// variant of a function, the counts of that variant are used. Functions that callgrind does not name,
/// such as those of stripped libraries, share the remaining counts of their library in proportion to
/// their time.
pub fn add_counts(seen: &mut Seen, counts: &Counts) {
    type Key<'a> = (&'a str, String);
    let mut exact: FxHashMap<(&str, &str), Simulated> = FxHashMap::default();
    let mut alike: FxHashMap<Key, Simulated> = FxHashMap::default();
    for function in &counts.functions {
        let library = file_name(&function.library);
        exact.entry((library, &function.name)).or_default().add(&function.own);
        alike.entry((library, shared_name(&function.name))).or_default().add(&function.own);
    }
    for work in &mut seen.work {
        let own = exact.get(&(work.library.as_str(), work.name.as_str()));
        let variant = || alike.get(&(work.library.as_str(), shared_name(&work.name)));
        work.counted = own.or_else(variant).copied();
    }
    let named: FxHashSet<Key> =
        seen.work.iter().map(|work| (work.library.as_str(), shared_name(&work.name))).collect();
    let mut rest: FxHashMap<&str, Simulated> = FxHashMap::default();
    for (&(library, name), own) in &exact {
        if !named.contains(&(library, shared_name(name))) {
            rest.entry(library).or_default().add(own);
        }
    }
    let mut times: FxHashMap<String, f64> = FxHashMap::default();
    for work in seen.work.iter().filter(|work| work.counted.is_none()) {
        *times.entry(work.library.clone()).or_default() += work.ns;
    }
    for work in seen.work.iter_mut().filter(|work| work.counted.is_none()) {
        let whole_ns = times[&work.library];
        if let Some(rest) = rest.get(work.library.as_str()).filter(|_| work.ns > 0.0) {
            work.counted = Some(rest.divided(whole_ns / work.ns));
        }
    }
    seen.counted = Some(counts.whole);
}

/// Prepares both sides for comparison.
///
/// Removes available functions that are not variants of executed ones. Interrupts hit any function:
/// a small share of kernel time that both sides have is distributed over their user code.
pub fn settle(a: &mut Seen, b: &mut Seen) {
    /// Maximum share of CPU time attributed to interrupts.
    const MOST_INTERRUPTED: f64 = 0.15;
    let ran: FxHashSet<String> =
        a.work.iter().chain(&b.work).map(|work| stem(&work.name)).collect();
    let in_kernel = |side: &Seen| side.system_ns / side.cpu_ns().max(1.0);
    let interrupted = in_kernel(a).min(in_kernel(b)).min(MOST_INTERRUPTED);
    for side in [a, b] {
        side.available.retain(|(_, name)| ran.contains(&stem(name)));
        let interrupts = side.cpu_ns() * interrupted;
        let longer = (side.user_ns + interrupts) / side.user_ns.max(1.0);
        side.user_ns += interrupts;
        side.system_ns -= interrupts;
        side.work.iter_mut().for_each(|work| work.ns *= longer);
        side.stacks.spent.iter_mut().for_each(|spent| spent.ns *= longer);
    }
}

/// Calls across library boundaries per call of a side: the weighted sum of counts, divided by `calls`.
/// The cost of tracing is subtracted from their times.
pub fn called(counts: &[(Calls, f64)], calls: u64) -> Vec<Called> {
    let mut found: FxHashMap<(String, String), (f64, f64)> = FxHashMap::default();
    for (traced, weight) in counts {
        for row in totals(&View::whole(traced), By::Function).rows {
            let sum = found.entry((row.name, row.of)).or_default();
            sum.0 += weight * row.tally.count as f64;
            sum.1 += weight * row.tally.total_ns as f64;
        }
    }
    let cost_ns = counts.last().map_or(0.0, |(traced, _)| traced.quality.cost_ns);
    let each = |sum: f64| sum / calls.max(1) as f64;
    let mut all: Vec<Called> = found
        .into_iter()
        // Less than a call in total: the worker's own calls vary a little.
        .filter(|(_, (count, _))| *count >= 0.5)
        .map(|((name, library), (count, ns))| Called {
            name,
            library,
            count: each(count),
            ns: each((ns - count * cost_ns).max(0.0)),
        })
        .collect();
    all.sort_by(|a, b| b.ns.total_cmp(&a.ns).then_with(|| a.name.cmp(&b.name)));
    all
}

/// Labels of a stack, outermost first, starting at the first Python frame of the user's statement.
fn path(profile: &Profile, stack: u32) -> Vec<String> {
    let mut all = vec![];
    frames(profile, stack, &mut all);
    all.reverse();
    let is_own = |frame: &&Frame| {
        frame.kind == FrameKind::Python && profile.texts.get(frame.file) == "<statement>"
    };
    let from = all.iter().position(is_own).unwrap_or(0);
    let called = all[from..].iter().filter(|frame| frame.kind != FrameKind::Inlined);
    let mut labels: Vec<String> = called.map(|frame| frame_label(profile, frame)).collect();
    // Recursion is shown once.
    labels.dedup();
    labels
}

/// Whether a function does no work of its own: symbol resolution by the dynamic linker, thread-local
/// storage access and reads of the floating-point status.
fn is_stub(profile: &Profile, frame: &Frame) -> bool {
    const NAMES: [&str; 3] = ["__tls_get_addr", "fetestexcept", "feclearexcept"];
    let name = profile.texts.get(frame.function);
    NAMES.contains(&name) || name.starts_with("_dl_runtime_resolve")
}

/// Collects the frames of a stack, innermost first.
pub(super) fn frames<'a>(profile: &'a Profile, mut node: u32, stack: &mut Vec<&'a Frame>) {
    stack.clear();
    while node != NONE
        && let Some(here) = profile.stacks.get(node as usize)
    {
        stack.extend(profile.frames.get(here.frame as usize));
        node = here.parent;
    }
}

/// Whether a frame belongs to Python's import system or to the dynamic linker loading a library.
fn is_import(profile: &Profile, frame: &Frame) -> bool {
    let name = profile.texts.get(frame.function);
    match frame.kind {
        FrameKind::Python => profile.texts.get(frame.file).contains("importlib"),
        _ => matches!(
            name,
            "_dl_open" | "dl_open_worker" | "dlopen" | "PyImport_ImportModuleLevelObject"
        ),
    }
}

fn role_of(
    profile: &Profile,
    frame: &Frame,
    files: &FxHashMap<&str, &CodeFile>,
    is_loading: bool,
) -> Role {
    let path = profile.module_path(frame);
    let known = files.get(path).and_then(|file| {
        use LibraryRole::{Allocator, Blas, Lapack, Math};
        [Blas, Lapack, Math, Allocator].into_iter().find(|role| file.role(*role).is_some())
    });
    let library = match frame.kind {
        FrameKind::Python => "[Python]",
        _ => file_name(path),
    };
    let by_name = || {
        let has = |words: &[&str]| words.iter().any(|word| library.contains(word));
        match () {
            () if has(&["openblas", "libmkl_", "libblis", "libblas"]) => Some(LibraryRole::Blas),
            () if library.starts_with("libm.so") => Some(LibraryRole::Math),
            () => None,
        }
    };
    let function = profile.texts.get(frame.function);
    role(Place { function, library, library_role: known.or_else(by_name), is_loading })
}

/// The nearest caller with another role; for interpreter and start-up time, the nearest Python frame.
fn caller(
    profile: &Profile,
    above: &[&Frame],
    what: Role,
    files: &FxHashMap<&str, &CodeFile>,
) -> String {
    let is_other = |frame: &&&Frame| match what {
        Role::Interpreter | Role::StartUp => frame.kind == FrameKind::Python,
        _ => frame.kind != FrameKind::Mark && role_of(profile, frame, files, false) != what,
    };
    above.iter().find(is_other).map_or_else(String::new, |frame| {
        let place = place(profile, frame);
        let name = frame_label(profile, frame);
        if frame.kind == FrameKind::Python || place.is_empty() {
            name
        } else {
            format!("{name}, {place}")
        }
    })
}

/// The direct caller, ignoring inlined frames.
fn parent(profile: &Profile, above: &[&Frame]) -> String {
    let caller = above.iter().find(|frame| frame.kind != FrameKind::Inlined);
    caller.map_or_else(String::new, |frame| label(profile, frame))
}

fn label(profile: &Profile, frame: &Frame) -> String {
    match profile.texts.get(frame.function) {
        "" => frame_label(profile, frame),
        name => name.to_owned(),
    }
}

/// Source file and line, without the directories.
fn place(profile: &Profile, frame: &Frame) -> String {
    match (profile.texts.get(frame.file), frame.line) {
        ("", _) | (_, 0) => String::new(),
        (file, line) => format!("{}:{line}", file_name(short_path(file))),
    }
}

/// Instruction mix of a function, if its file was disassembled.
fn executed(
    profile: &Profile,
    frame: &Frame,
    files: &FxHashMap<&str, &CodeFile>,
    code: &Code,
) -> Option<Mix> {
    let file = files.get(profile.module_path(frame))?;
    let name = profile.texts.get(frame.function);
    let at = |address: u64| {
        file.functions
            .iter()
            .position(|function| address.wrapping_sub(function.address) < function.size.max(1))
    };
    let function = at(frame.address)
        .or_else(|| file.functions.iter().position(|f| code.texts.get(f.name) == name))?;
    file.hot(function).map(|hot| hot.mix)
}

/// All functions of the libraries that do computation.
fn available(work: &[Work], code: &Code) -> Vec<(String, String)> {
    let mut all = vec![];
    for file in &code.files {
        let library = file_name(&file.path);
        let is_work = |work: &Work| {
            work.library == library && matches!(work.role, Role::Compute | Role::Blas | Role::Math)
        };
        if !work.iter().any(is_work) {
            continue;
        }
        let names = file.functions.iter().filter(|function| !function.is_stub);
        let names = names.map(|function| code.texts.get(function.name));
        all.extend(
            names.filter(|name| !name.is_empty()).map(|name| (library.to_owned(), name.to_owned())),
        );
    }
    all
}
