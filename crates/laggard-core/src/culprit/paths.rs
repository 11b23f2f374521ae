//! Parts of the lag by place: each [`Region`] is the time of both sides at one divergence point.

use super::build::weaker_build;
use super::operations::{self, Operation};
use super::partition::{Slice, last, of_functions, stem};
use super::python::{PythonPart, accelerator, python_part};
use super::seen::{Pair, Seen, Work};
use super::{Culprit, Finding, Kind, Part, Role, Unit};
use crate::divergence::{Callee, Cause, PathFunction, Point, SideStacks, diverge};
use rustc_hash::FxHashMap;

/// The time of both sides at one place.
pub(super) struct Region {
    number: usize,
    /// The place; `None` for time without a place.
    point: Option<Point>,
    /// The operation of built-in types that takes the time of this region.
    operation: Option<Operation>,
    /// The finding that explains all of this region: B runs Python code where A runs an extension
    /// module, or was compiled with weaker options.
    whole: Option<Finding>,
    /// Observations of both sides with the work of this region only.
    a: Seen,
    b: Seen,
}

/// Splits the time in functions by place. Without stacks, all time is one region without a place.
pub(super) fn regions(pair: &Pair<'_>) -> Vec<Region> {
    let sides = [pair.a, pair.b];
    let given =
        sides.map(|side| SideStacks { stacks: &side.stacks, counts: side.call_counts.as_ref() });
    let is_same = !pair.a.runs.is_empty() && pair.a.runs == pair.b.runs;
    let found = diverge(given, is_same);
    // Entries of the stacks of each region and side. The last region is the rest.
    let rest = found.points.len();
    let mut spent: Vec<[Vec<usize>; 2]> = vec![];
    spent.resize_with(rest + 1, Default::default);
    for side in [0, 1] {
        for (at, point) in found.of_spent[side].iter().enumerate() {
            spent[point.unwrap_or(rest)][side].push(at);
        }
    }
    let operations =
        sides.map(|side| operations::of_stacks(&side.stacks, side.call_counts.as_ref()));
    let weaker_build = weaker_build(pair);
    let mut regions: Vec<Region> = vec![];
    let points = found.points.into_iter().map(Some).chain([None]);
    for (point, mut spent) in points.zip(spent) {
        let slower = point.as_ref().filter(|point| !point.is_faster());
        let whole = slower.and_then(|_| weaker_build.clone().or_else(|| accelerator(pair, &spent)));
        let is_slower = |point: &&Point| point.cause == Cause::Slower && !point.is_faster();
        let operation = match (&whole, point.as_ref().filter(is_slower)) {
            (None, Some(_)) => operations::main_operation(pair, &operations, &spent),
            _ => None,
        };
        if let Some(operation) = operation {
            let is_operation =
                |side: usize, at: &usize| operations[side][*at].as_ref() == Some(&operation.name);
            let own = [0, 1].map(|side: usize| {
                spent[side].extract_if(.., |at| is_operation(side, at)).collect()
            });
            regions.push(Region {
                operation: Some(operation),
                ..Region::new(regions.len(), point.clone(), pair, &own)
            });
        }
        regions.push(Region { whole, ..Region::new(regions.len(), point, pair, &spent) });
    }
    // Without stacks, no time is placed.
    for (side, seen) in sides.iter().enumerate() {
        if let Some(rest) = regions.last_mut().filter(|_| seen.stacks.spent.is_empty()) {
            let whole = |(at, work): (usize, &Work)| (at, (work.ns, work.samples));
            let restricted = restrict(seen, &seen.work.iter().enumerate().map(whole).collect());
            *[&mut rest.a, &mut rest.b][side] = restricted;
        }
    }
    regions.retain(|region| region.a.user_ns + region.b.user_ns > 0.0);
    regions
}

/// Observations of a side with part of its work.
fn restrict(seen: &Seen, part: &FxHashMap<usize, (f64, u64)>) -> Seen {
    let work: Vec<Work> = seen
        .work
        .iter()
        .enumerate()
        .filter_map(|(at, work)| {
            let &(ns, samples) = part.get(&at)?;
            let counted = work.counted.map(|counted| counted.divided(work.ns / ns.max(1e-9)));
            Some(Work { ns, samples, counted, ..work.clone() })
        })
        .collect();
    let user_ns: f64 = work.iter().map(|work| work.ns).sum();
    Seen {
        wall_ns: seen.wall_ns,
        user_ns,
        system_ns: seen.system_ns,
        faults: seen.faults,
        queued_ns: seen.queued_ns,
        waits: seen.waits,
        threads: seen.threads,
        rounds: seen.rounds,
        work,
        calls: seen.calls.clone(),
        counted: seen.counted.map(|counted| counted.divided(seen.user_ns / user_ns.max(1e-9))),
        available: seen.available.clone(),
        fault_spots: seen.fault_spots.clone(),
        wait_spots: seen.wait_spots.clone(),
        ..Seen::default()
    }
}

impl Region {
    /// A region of these entries of the stacks.
    fn new(
        number: usize,
        point: Option<Point>,
        pair: &Pair<'_>,
        spent: &[Vec<usize>; 2],
    ) -> Region {
        let part = |seen: &Seen, spent: &[usize]| {
            let mut works: FxHashMap<usize, (f64, u64)> = FxHashMap::default();
            for entry in spent.iter().map(|&at| &seen.stacks.spent[at]) {
                let sum = works.entry(entry.work as usize).or_default();
                *sum = (sum.0 + entry.ns, sum.1.saturating_add(entry.samples));
            }
            restrict(seen, &works)
        };
        let (a, b) = (part(pair.a, &spent[0]), part(pair.b, &spent[1]));
        Region { number, point, operation: None, whole: None, a, b }
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    pub(super) fn pair(&self) -> Pair<'_> {
        Pair { a: &self.a, b: &self.b }
    }

    /// The region with most of the time that B loses in functions.
    pub(super) fn main(regions: &[Region]) -> Option<&Region> {
        const MOST: f64 = 0.6;
        let lost = |region: &Region| (region.b.user_ns - region.a.user_ns).max(0.0);
        let whole: f64 = regions.iter().map(lost).sum();
        regions.iter().find(|region| whole > 0.0 && lost(region) >= MOST * whole)
    }

    /// The point if B is faster there.
    pub(super) fn faster(&self) -> Option<&Point> {
        self.point.as_ref().filter(|point| point.is_faster())
    }

    /// The slices of the region. If the path itself is the cause, or if B is faster, the region is one
    /// slice.
    pub(super) fn slices(&self, parallelism: f64) -> Vec<Slice<'_>> {
        if self.path_finding().is_none() && self.faster().is_none() {
            return of_functions(&self.pair(), parallelism);
        }
        vec![Slice {
            part: Part::Functions(Role::Interpreter),
            a: self.a.work.iter().collect(),
            b: self.b.work.iter().collect(),
            a_ns: self.a.user_ns / parallelism,
            b_ns: self.b.user_ns / parallelism,
        }]
    }

    /// The finding if the path of B is the cause.
    pub(super) fn path_finding(&self) -> Option<Finding> {
        let point = self.point.as_ref()?;
        if let Some(operation) = &self.operation {
            return Some(operation.finding());
        }
        if let Some(whole) = &self.whole {
            return Some(whole.clone());
        }
        match &point.cause {
            Cause::Slower => None,
            Cause::OtherPath => Some(other_path(point)),
            Cause::MoreCalls { name, calls } => {
                let advice = format!("call {name} once for all elements, or keep its result");
                let what = format!("calls of {name}");
                let finding = Finding::new(Kind::MoreCalls, place_label(point), advice);
                Some(timed(finding.fact(&what, *calls, Unit::Count, 1), point))
            }
        }
    }

    /// The finding if the code at the place differs.
    pub(super) fn changed_path(&self) -> Option<Finding> {
        let is_changed = |point: &&Point| {
            let function = point.place.function.as_ref();
            !point.is_faster()
                && !point.is_own_path
                && function.is_some_and(PathFunction::is_changed)
        };
        self.point.as_ref().filter(is_changed).map(other_path)
    }

    /// Whether the changed code is the cause, instead of the findings of the judges: most of the time is
    /// in functions that only B calls and that do not move data, or has no specific cause.
    pub(super) fn is_path(&self, found: &[Culprit], whole: f64) -> bool {
        use Kind::{Allocation, Builtin, CallOverhead, Conversion, Copy, Interpreter, Layout};
        let sum = |is: fn(Kind) -> bool| {
            let of_kind = found.iter().filter(|culprit| is(culprit.finding.kind));
            of_kind.map(|culprit| culprit.gap_ns).sum::<f64>()
        };
        let specific = sum(|kind| !matches!(kind, Builtin | Interpreter | CallOverhead));
        let moved = sum(|kind| matches!(kind, Copy | Conversion | Layout | Allocation));
        let callees = self.point.iter().flat_map(|point| &point.callees[1]);
        let only_b =
            callees.filter(|callee| !callee.is_common).map(|callee| callee.ns).sum::<f64>();
        specific < whole / 2.0 || only_b > whole / 2.0 && moved < whole / 2.0
    }

    /// The finding for time at the place that no judge explains: B runs native functions that A does
    /// not run, or the reason is unknown. `open_ns` is this time.
    pub(super) fn slower(&self, open_ns: f64) -> Option<Finding> {
        let point = self.point.as_ref()?;
        if let Some(finding) = self.other_functions(point, open_ns) {
            return Some(finding);
        }
        let advice = "the cause is not known: compare the callees and the hottest call path of both \
                      sides below";
        Some(timed(Finding::new(Kind::Slower, place_label(point), advice), point))
    }

    /// The finding if most of the time is in native functions that only B runs.
    fn other_functions(&self, point: &Point, open_ns: f64) -> Option<Finding> {
        const MOST: f64 = 0.6;
        let own = |side: &'_ Seen, other: &Seen| -> Vec<Work> {
            let runs = |work: &Work| {
                let is_variant = |own: &Work| stem(&own.name) == stem(&work.name);
                other.work.iter().any(|own| own.library == work.library && is_variant(own))
            };
            // Functions without a name have other labels in another build.
            let is_own = |work: &&Work| {
                work.role != Role::Interpreter && !work.name.starts_with('[') && !runs(work)
            };
            side.work.iter().filter(is_own).cloned().collect()
        };
        let largest = |works: &[Work]| works.iter().max_by(|x, y| x.ns.total_cmp(&y.ns)).cloned();
        let (of_a, of_b) = (own(&self.a, &self.b), own(&self.b, &self.a));
        if of_b.iter().map(|work| work.ns).sum::<f64>() < MOST * open_ns {
            return None;
        }
        let b = largest(&of_b)?;
        let advice = match largest(&of_a) {
            Some(a) => format!(
                "A runs {} here, B runs {}: check why B takes this path",
                last(&a.name),
                last(&b.name)
            ),
            None => format!("only B runs {} here: check why it is needed", last(&b.name)),
        };
        let finding = Finding::new(Kind::OtherPath, place_label(point), advice);
        let what = format!("time in {}", last(&b.name));
        Some(timed(finding, point).fact(&what, [0.0, b.ns], Unit::Nanos, b.samples))
    }

    /// Adds the place to a culprit.
    pub(super) fn place(&self, mut culprit: Culprit) -> Culprit {
        let Some(point) = &self.point else { return culprit };
        let place = place_label(point);
        let finding = &mut culprit.finding;
        finding.at = match finding.kind {
            Kind::OtherPath | Kind::Interpreter | Kind::Slower => place,
            Kind::MoreCalls if finding.at == place => place,
            Kind::LibraryNotUsed if place.contains(&finding.at) => place,
            Kind::Builtin => match &self.operation {
                Some(operation) if !place.contains(&operation.name) => {
                    format!("{}, {place}", operation.name)
                }
                _ => place,
            },
            _ if finding.at.is_empty() => place,
            Kind::Build => finding.at.clone(),
            // The path names the callers of a function without a name.
            _ if finding.at.starts_with('[') && point.is_own_path => place,
            _ => format!("{}, in {}", without_python_caller(&finding.at), point.python_label()),
        };
        if finding.kind == Kind::Interpreter {
            finding.advice = self.interpreter_advice(point);
        }
        culprit.work = work_by_kind(&self.b);
        culprit.point = Some(Box::new(point.clone()));
        culprit
    }
}

impl Region {
    /// How to spend less time in Python code at a place.
    fn interpreter_advice(&self, point: &Point) -> String {
        /// Minimum share of calls in the interpreter's time.
        const MANY_CALLS: f64 = 0.3;
        let python = || self.b.work.iter().filter(|work| work.role == Role::Interpreter);
        let calls = python()
            .filter(|work| python_part(&work.name, &work.place) == PythonPart::Calls)
            .map(|work| work.ns)
            .sum::<f64>();
        if calls >= MANY_CALLS * python().map(|work| work.ns).sum::<f64>() {
            return "call fewer small Python functions: inline them, or process several elements in \
                    each call"
                .into();
        }
        match point.place.function.as_ref().filter(|function| function.is_python) {
            Some(function) if !function.name.is_empty() => format!(
                "call {} less often, or use a function that does the same in native code",
                function.name
            ),
            _ => "move the loop into native code: a built-in function, or one call on whole arrays"
                .into(),
        }
    }
}

/// B calls other functions than A at a place, or its code differs.
fn other_path(point: &Point) -> Finding {
    let [a, b] = [0, 1].map(|side: usize| {
        let only = point.callees[side].iter().filter(|callee| !callee.is_common);
        only.map(|callee| callee.name.clone()).next()
    });
    let advice = match (a, b) {
        (Some(a), Some(b)) => {
            format!("A calls {a} here, B calls {b}: check why B takes this path")
        }
        (None, Some(b)) => format!("only B calls {b} here: check why it is needed"),
        _ => "the code of this function differs: compare its source on both sides".into(),
    };
    timed(Finding::new(Kind::OtherPath, place_label(point), advice), point)
}

/// Adds the time at a place.
fn timed(finding: Finding, point: &Point) -> Finding {
    finding.fact("time at this place", point.ns, Unit::Nanos, point.samples[1])
}

/// A native location without a caller in Python, which the place replaces.
fn without_python_caller(at: &str) -> &str {
    match at.split_once(", called from ") {
        Some((native, caller)) if caller.contains(".py:") || caller.contains("(<") => native,
        _ => at,
    }
}

/// `Index.join (pandas/core/indexes/base.py:4618)`, or B's own path below the statement:
/// `loads > JSONDecoder.decode (json/decoder.py:337)`. If B's time is divided among several functions
/// that the statement calls, these functions.
fn place_label(point: &Point) -> String {
    /// Maximum number of functions of a path.
    const MOST: usize = 6;
    let last = point.label();
    if !point.is_own_path {
        let called = if point.place.function.is_none() { called(point) } else { String::new() };
        return if called.is_empty() { last } else { format!("{called}, in {last}") };
    }
    let mut names: Vec<&str> = point.path.iter().map(|step| step.name.as_str()).collect();
    names.retain(|name| !name.is_empty());
    if names.len() >= MOST {
        names.splice(MOST / 2..names.len() + 1 - MOST / 2, ["…"]);
    }
    names.push(&last);
    let path = names.join(" > ");
    match &point.divided[..] {
        [] => path,
        divided => format!("{path} > {}", divided.join(", ")),
    }
}

/// The functions that take most of B's time at a place: `Decimal.__add__, Decimal.__truediv__
/// (_pydecimal.py)`. Empty if B's own code there takes most of it.
fn called(point: &Point) -> String {
    /// Functions with a smaller share of the time are omitted.
    const LEAST: f64 = 0.2;
    let is_named = |callee: &&Callee| !callee.name.is_empty() && callee.ns >= LEAST * point.ns[1];
    let callees: Vec<&Callee> = point.callees[1].iter().filter(is_named).collect();
    if callees.iter().map(|callee| callee.ns).sum::<f64>() < point.ns[1] / 2.0 {
        return String::new();
    }
    let files = callees.chunk_by(|x, y| x.file == y.file).map(|same| {
        let names: Vec<&str> = same.iter().map(|callee| callee.name.as_str()).collect();
        let (names, file) = (names.join(", "), &same[0].file);
        if file.is_empty() { names } else { format!("{names} ({file})") }
    });
    files.collect::<Vec<_>>().join(", ")
}

/// Shares of the time by role; computation is split by library.
fn work_by_kind(seen: &Seen) -> Vec<(String, f64)> {
    /// Smaller shares are omitted.
    const LEAST: f64 = 0.02;
    let mut sums: FxHashMap<String, f64> = FxHashMap::default();
    for work in &seen.work {
        let kind = match work.role {
            Role::Compute if !work.library.is_empty() => {
                // `hashtable` for `hashtable.cpython-311-x86_64-linux-gnu.so`.
                let library = work.library.split('.').next().unwrap_or_default();
                format!("computation in {library}")
            }
            Role::Interpreter => python_part(&work.name, &work.place).label().to_owned(),
            role => role.label().to_owned(),
        };
        *sums.entry(kind).or_default() += work.ns / seen.user_ns.max(1e-9);
    }
    let mut shares: Vec<(String, f64)> =
        sums.into_iter().filter(|(_, share)| *share >= LEAST).collect();
    shares.sort_by(|x, y| y.1.total_cmp(&x.1).then_with(|| x.0.cmp(&y.0)));
    shares
}
