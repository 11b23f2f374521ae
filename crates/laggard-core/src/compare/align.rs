//! Matching of functions and libraries between two sides.
//!
//! Functions with the same name in the same library match. The remaining functions are matched by
//! weaker rules, in this order: other builds of a library, Python files in other directories, other
//! files of a Python package, compiler clones of a function, and the same name in another library. Variants for other CPUs do not match,
//! but are linked: they are different kernels for the same operation.

use super::names::{function_stem, library_family, library_stem, path_end, variant_stem};
use crate::model::NONE;
use crate::model::profile::FrameKind;
use crate::profile::{View, file_name, is_address_label, short_path};
use rustc_hash::{FxHashMap, FxHashSet};
use std::hash::Hash;

/// Name for samples without frames; the last entry of functions and of libraries.
const NO_STACK: &str = "[no stack]";
/// Name for samples without native frames; the second-last entry of libraries.
const NO_CODE: &str = "[Python]";

/// Aligned functions and libraries of two sides. Numbers are indexes into these tables.
#[derive(Clone, Debug, Default)]
pub struct Alignment {
    /// Functions with their names on each side.
    pub functions: Vec<Aligned>,
    /// Libraries with their names on each side.
    pub libraries: Vec<Aligned>,
    /// By side and recording: aligned function of each function.
    function_of: [Vec<Vec<u32>>; 2],
    /// By side and recording: aligned library of each frame.
    library_of: [Vec<Vec<u32>>; 2],
}

/// An aligned function or library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aligned {
    /// Displayed name: that of A, if A has it.
    pub name: String,
    /// Library of a function; empty if it has none.
    pub library: String,
    /// Kind of code.
    pub kind: FrameKind,
    /// Names in A and B: several if clones of a function are merged, none if the side does not have
    /// it.
    pub names: [Vec<Named>; 2],
    /// Rule that matched them.
    pub by: AlignedBy,
    /// For a function that only one side has: the other side's variant of it for another CPU.
    pub variant_of: Option<u32>,
}

/// Name of a function on one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// Its library.
    pub library: String,
}

/// Rule that matched functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlignedBy {
    /// Same name and library, or present on one side only.
    Name,
    /// Different builds of the same library.
    Library,
    /// Python files in different directories, or the main scripts.
    File,
    /// Compiler clones of the same function, or one of them is inlined.
    Clone,
    /// The same name in another library, or in another file of the same Python package, where leading
    /// underscores may differ.
    Moved,
}

impl AlignedBy {
    /// The id in JSON.
    pub fn word(self) -> &'static str {
        match self {
            AlignedBy::Name => "name",
            AlignedBy::Library => "library",
            AlignedBy::File => "file",
            AlignedBy::Clone => "clone",
            AlignedBy::Moved => "moved",
        }
    }
}

impl Alignment {
    /// The function of a frame; `NONE` if the frame does not exist.
    pub fn function(&self, side: usize, recording: usize, view: &View, frame: u32) -> u32 {
        let of = self.function_of.get(side).and_then(|side| side.get(recording));
        let number = view.functions.of(frame) as usize;
        of.and_then(|of| of.get(number)).copied().unwrap_or(NONE)
    }

    /// The library of a frame; `NONE` if it has none, as for Python frames.
    pub fn library(&self, side: usize, recording: usize, frame: u32) -> u32 {
        let of = self.library_of.get(side).and_then(|side| side.get(recording));
        of.and_then(|of| of.get(frame as usize)).copied().unwrap_or(NONE)
    }
}

/// Aligns the recordings of two sides.
pub fn align(a: &[View], b: &[View]) -> Alignment {
    let sides = [a, b];
    let (libraries, library_of) = align_libraries(sides);
    let mut found = gather(sides, &libraries);
    let mut groups = Groups::new(found.entries.iter().map(|entry| entry.on));
    unite_functions(&mut groups, &found.entries, &libraries.groups);
    let variants = variants(&groups, &found.entries, &libraries.groups);
    let (numbers, count) = groups.numbered();
    for of in found.function_of.iter_mut().flatten().flatten() {
        *of = numbers[*of as usize];
    }
    let mut functions = vec![Aligned::empty(); count];
    for (at, entry) in found.entries.iter().enumerate() {
        let function = &mut functions[numbers[at] as usize];
        function.add(&entry.label, &entry.library_name, entry.kind, entry.on);
        function.by = groups.by[groups.of[at] as usize];
    }
    for (one, other) in variants {
        functions[numbers[one] as usize].variant_of = Some(numbers[other]);
        functions[numbers[other] as usize].variant_of = Some(numbers[one]);
    }
    let (library_numbers, library_count) = libraries.groups.numbered();
    let mut aligned_libraries = vec![Aligned::empty(); library_count];
    for (at, (name, on)) in libraries.names.iter().zip(&libraries.on).enumerate() {
        let library = &mut aligned_libraries[library_numbers[at] as usize];
        library.add(name, "", FrameKind::Native, *on);
        library.by = libraries.groups.by[libraries.groups.of[at] as usize];
    }
    let renumber = |of: Vec<u32>| -> Vec<u32> {
        of.into_iter().map(|at| library_numbers.get(at as usize).copied().unwrap_or(NONE)).collect()
    };
    let library_of = library_of.map(|side| side.into_iter().map(renumber).collect());
    functions.push(Aligned::plain(NO_STACK));
    aligned_libraries.extend([NO_CODE, NO_STACK].map(Aligned::plain));
    Alignment {
        functions,
        libraries: aligned_libraries,
        function_of: found.function_of,
        library_of,
    }
}

impl Aligned {
    /// Entry for samples without a function or library.
    fn plain(name: &str) -> Aligned {
        Aligned { name: name.to_owned(), ..Aligned::empty() }
    }

    fn empty() -> Aligned {
        Aligned {
            name: String::new(),
            library: String::new(),
            kind: FrameKind::Native,
            names: [vec![], vec![]],
            by: AlignedBy::Name,
            variant_of: None,
        }
    }

    fn add(&mut self, name: &str, library: &str, kind: FrameKind, on: [bool; 2]) {
        // Prefer the name in A, and the function's name over a clone's, which is longer.
        let is_first = self.names.iter().all(Vec::is_empty);
        let is_shorter = name.len() < self.name.len() && (on[0] || self.names[0].is_empty());
        let is_of_a = on[0] && self.names[0].is_empty();
        if is_first || is_of_a || is_shorter {
            (self.name, self.library, self.kind) = (name.to_owned(), library.to_owned(), kind);
        }
        for (names, _) in self.names.iter_mut().zip(on).filter(|(_, is_on)| *is_on) {
            names.push(Named { name: name.to_owned(), library: library.to_owned() });
        }
    }
}

/// Union of matching items. Each item starts in its own group.
struct Groups {
    /// Group of each item.
    of: Vec<u32>,
    /// Sides present in each group.
    on: Vec<[bool; 2]>,
    /// Rule that matched each group.
    by: Vec<AlignedBy>,
}

impl Groups {
    fn new(on: impl Iterator<Item = [bool; 2]>) -> Groups {
        let on: Vec<[bool; 2]> = on.collect();
        Groups { of: (0..on.len() as u32).collect(), by: vec![AlignedBy::Name; on.len()], on }
    }

    fn is_unmatched(&self, thing: usize) -> bool {
        let on = self.on[self.of[thing] as usize];
        on[0] != on[1]
    }

    /// Unmatched items that share a key, by key and side.
    fn alike<K: Hash + Eq>(&self, key: impl Fn(usize) -> Option<K>) -> Vec<[Vec<usize>; 2]> {
        let mut numbers: FxHashMap<K, usize> = FxHashMap::default();
        let mut alike: Vec<[Vec<usize>; 2]> = vec![];
        for thing in (0..self.of.len()).filter(|&thing| self.is_unmatched(thing)) {
            let Some(key) = key(thing) else { continue };
            let number = *numbers.entry(key).or_insert_with(|| {
                alike.push([vec![], vec![]]);
                alike.len() - 1
            });
            let side = usize::from(self.on[self.of[thing] as usize][1]);
            alike[number][side].push(thing);
        }
        alike.retain(|[a, b]| !a.is_empty() && !b.is_empty());
        alike
    }

    /// Merges unmatched items that share a key. With `only_pairs`, only if each side has exactly one.
    fn unite<K: Hash + Eq>(
        &mut self,
        by: AlignedBy,
        only_pairs: bool,
        key: impl Fn(usize) -> Option<K>,
    ) {
        for [a, b] in self.alike(key) {
            if only_pairs && (a.len() > 1 || b.len() > 1) {
                continue;
            }
            let group = self.of[a[0]];
            for thing in a.into_iter().chain(b) {
                self.of[thing] = group;
            }
            (self.on[group as usize], self.by[group as usize]) = ([true; 2], by);
        }
    }

    /// Adds unmatched items to a matched group with the same key.
    fn attach<K: Hash + Eq>(&mut self, by: AlignedBy, key: impl Fn(usize) -> Option<K>) {
        let mut groups: FxHashMap<K, u32> = FxHashMap::default();
        for thing in (0..self.of.len()).filter(|&thing| !self.is_unmatched(thing)) {
            if let Some(key) = key(thing) {
                groups.entry(key).or_insert(self.of[thing]);
            }
        }
        for thing in 0..self.of.len() {
            let found = || groups.get(&key(thing)?).copied();
            if self.is_unmatched(thing)
                && let Some(group) = found()
            {
                (self.of[thing], self.by[group as usize]) = (group, by);
            }
        }
    }

    /// Consecutive group number of each item, and the number of groups.
    fn numbered(&self) -> (Vec<u32>, usize) {
        let mut numbers = vec![NONE; self.on.len()];
        let mut count = 0;
        let mut number = |group: &u32| {
            let number = &mut numbers[*group as usize];
            if *number == NONE {
                *number = count;
                count += 1;
            }
            *number
        };
        let of = self.of.iter().map(&mut number).collect();
        (of, count as usize)
    }
}

/// The libraries of both sides.
struct Libraries {
    names: Vec<String>,
    on: Vec<[bool; 2]>,
    groups: Groups,
}

/// Aligns libraries. Also returns the library of each frame, by side and recording.
fn align_libraries(sides: [&[View]; 2]) -> (Libraries, [Vec<Vec<u32>>; 2]) {
    let mut numbers: FxHashMap<String, u32> = FxHashMap::default();
    let (mut names, mut on): (Vec<String>, Vec<[bool; 2]>) = (vec![], vec![]);
    let mut number = |name: &str, side: usize| {
        let number = match numbers.get(name) {
            Some(&number) => number,
            None => {
                let number = names.len() as u32;
                numbers.insert(name.to_owned(), number);
                names.push(name.to_owned());
                on.push([false; 2]);
                number
            }
        };
        on[number as usize][side] = true;
        number
    };
    let mut library_of = [vec![], vec![]];
    for (side, views) in sides.into_iter().enumerate() {
        for view in views {
            let of = view.profile.frames.iter().map(|frame| match frame.kind {
                FrameKind::Python | FrameKind::Mark => NONE,
                _ => number(view.functions.library(frame), side),
            });
            library_of[side].push(of.collect());
        }
    }
    let mut groups = Groups::new(on.iter().copied());
    groups.unite(AlignedBy::Library, false, |at| Some(library_stem(&names[at])));
    groups.unite(AlignedBy::Library, false, |at| Some(library_family(&names[at])));
    (Libraries { names, on, groups }, library_of)
}

/// A function of one or both sides before matching.
struct Entry<'a> {
    kind: FrameKind,
    /// Index of the library; `NONE` for Python.
    library: u32,
    /// Path of a Python file.
    file: &'a str,
    name: &'a str,
    label: String,
    library_name: String,
    /// Whether its file is the main script.
    is_script: bool,
    on: [bool; 2],
}

struct Gathered<'a> {
    entries: Vec<Entry<'a>>,
    function_of: [Vec<Vec<u32>>; 2],
}

/// Collects the functions of both sides; functions with equal names are merged. Unnamed functions
/// are labelled with their addresses, which are only comparable within one build of a library.
fn gather<'a>(sides: [&'a [View]; 2], libraries: &Libraries) -> Gathered<'a> {
    let numbers: FxHashMap<&str, u32> =
        libraries.names.iter().map(String::as_str).zip(0u32..).collect();
    let rebuilt = rebuilt_libraries(sides, &numbers, &libraries.groups);
    let mut known: FxHashMap<(FrameKind, u32, &str, &str), u32> = FxHashMap::default();
    let mut entries: Vec<Entry> = vec![];
    let mut function_of = [vec![], vec![]];
    for (side, views) in sides.into_iter().enumerate() {
        for view in views {
            let script = script(view);
            let mut of = Vec::with_capacity(view.functions.len());
            for function in 0..view.functions.len() as u32 {
                let Some(frame) = view.functions.example(view.profile, function) else {
                    of.push(NONE);
                    continue;
                };
                let texts = &view.profile.texts;
                let is_python = frame.kind == FrameKind::Python;
                let path = if is_python { texts.get(frame.file) } else { "" };
                let library_name = view.functions.library(frame);
                let library = match frame.kind {
                    FrameKind::Python | FrameKind::Mark => NONE,
                    _ => numbers.get(library_name).copied().unwrap_or(NONE),
                };
                let (file, mut name) = (short_path(path), texts.get(frame.function));
                let mut label = view.functions.label(view.profile, function);
                let group = libraries.groups.of.get(library as usize);
                if is_address_label(name) && group.is_some_and(|group| rebuilt.contains(group)) {
                    (name, label) = ("", format!("[{library_name}]"));
                }
                let entry = *known.entry((frame.kind, library, file, name)).or_insert_with(|| {
                    entries.push(Entry {
                        kind: frame.kind,
                        library,
                        file,
                        name,
                        label,
                        library_name: library_name.to_owned(),
                        is_script: is_python && script == Some(path),
                        on: [false; 2],
                    });
                    entries.len() as u32 - 1
                });
                entries[entry as usize].on[side] = true;
                of.push(entry);
            }
            function_of[side].push(of);
        }
    }
    Gathered { entries, function_of }
}

/// Groups of libraries whose files differ between the sides, by their ids.
fn rebuilt_libraries(
    sides: [&[View]; 2],
    numbers: &FxHashMap<&str, u32>,
    groups: &Groups,
) -> FxHashSet<u32> {
    let mut ids: FxHashMap<u32, [FxHashSet<&str>; 2]> = FxHashMap::default();
    for (side, views) in sides.into_iter().enumerate() {
        for profile in views.iter().map(|view| view.profile) {
            for module in &profile.modules {
                let number = numbers.get(file_name(profile.texts.get(module.path)));
                let group = number.and_then(|number| groups.of.get(*number as usize));
                if let Some(group) = group {
                    ids.entry(*group).or_default()[side].insert(profile.texts.get(module.id));
                }
            }
        }
    }
    let differs =
        |[a, b]: &[FxHashSet<&str>; 2]| !a.is_empty() && !b.is_empty() && a.is_disjoint(b);
    ids.into_iter().filter(|(_, ids)| differs(ids)).map(|(group, _)| group).collect()
}

/// The main script: the outermost Python file of most samples. Imports at interpreter start-up are
/// ignored, because they dominate in short programs.
fn script<'a>(view: &View<'a>) -> Option<&'a str> {
    let profile = view.profile;
    let file = |frame: u32| {
        let frame = profile.frames.get(frame as usize)?;
        let path = profile.texts.get(frame.file);
        let is_launcher = path == "<frozen runpy>" || path_end(path, 1) == "runpy.py";
        (frame.kind == FrameKind::Python && !is_launcher).then_some(frame.file)
    };
    let mut outermost: Vec<Option<u32>> = Vec::with_capacity(profile.stacks.len());
    for node in &profile.stacks {
        let above = outermost.get(node.parent as usize).copied().flatten();
        outermost.push(above.or_else(|| file(node.frame)));
    }
    let mut costs: FxHashMap<u32, u64> = FxHashMap::default();
    for &(stack, cost) in &view.stacks {
        if let Some(file) = outermost.get(stack as usize).copied().flatten() {
            *costs.entry(file).or_default() += cost.samples;
        }
    }
    let path = |file: u32| profile.texts.get(file);
    let most = costs
        .into_iter()
        .filter(|&(file, _)| !path(file).starts_with("<frozen importlib"))
        .max_by_key(|&(file, samples)| (samples, std::cmp::Reverse(file)));
    most.map(|(file, _)| path(file))
}

/// Maximum number of trailing path components used to match Python files.
const MOST_PARTS: usize = 3;

fn unite_functions(groups: &mut Groups, entries: &[Entry], libraries: &Groups) {
    let library = |entry: &Entry| libraries.of.get(entry.library as usize).copied();
    let is_code = |entry: &Entry| matches!(entry.kind, FrameKind::Native | FrameKind::Inlined);
    let is_python = |entry: &Entry| entry.kind == FrameKind::Python;
    // Unnamed code of a library is one function with an empty name.
    groups.unite(AlignedBy::Library, false, |at| {
        let entry = &entries[at];
        Some((entry.kind, library(entry)?, entry.name))
    });
    for parts in (1..=MOST_PARTS).rev() {
        groups.unite(AlignedBy::File, true, |at| {
            let entry = &entries[at];
            is_python(entry).then(|| (path_end(entry.file, parts), entry.name))
        });
    }
    groups.unite(AlignedBy::File, true, |at| {
        let entry = &entries[at];
        (is_python(entry) && entry.is_script).then_some(entry.name)
    });
    // The same function in another file of the same package, where it may be private in one version.
    let in_package = |at: usize| {
        let entry = &entries[at];
        let (package, _) = entry.file.split_once('/')?;
        let is_named = is_python(entry) && !package.is_empty() && !entry.name.starts_with('<');
        is_named.then_some((package, entry.name))
    };
    groups.unite(AlignedBy::Moved, true, in_package);
    groups.unite(AlignedBy::Moved, true, |at| {
        let (package, name) = in_package(at)?;
        let public = name.trim_start_matches('_');
        (!public.is_empty() && !name.ends_with("__")).then_some((package, public))
    });
    let clone = |at: usize| {
        let entry = &entries[at];
        let is_named = is_code(entry) && !entry.name.is_empty();
        is_named.then(|| Some((library(entry)?, function_stem(entry.name)))).flatten()
    };
    groups.unite(AlignedBy::Clone, false, clone);
    groups.attach(AlignedBy::Clone, clone);
    groups.unite(AlignedBy::Moved, true, |at| {
        let entry = &entries[at];
        (is_code(entry) && !entry.name.is_empty()).then(|| function_stem(entry.name))
    });
}

/// Pairs of functions that are variants for different CPUs.
fn variants(groups: &Groups, entries: &[Entry], libraries: &Groups) -> Vec<(usize, usize)> {
    let alike = groups.alike(|at| {
        let entry = &entries[at];
        let library = libraries.of.get(entry.library as usize)?;
        Some((*library, variant_stem(entry.name)?))
    });
    let pairs = alike.into_iter().flat_map(|[a, b]| {
        let most = a.len().max(b.len());
        // If one side has more variants, the last one of the other side is used repeatedly.
        let at = |all: &[usize], i: usize| all[i.min(all.len() - 1)];
        (0..most).rev().map(move |i| (at(&a, i), at(&b, i))).collect::<Vec<_>>()
    });
    pairs.collect()
}
