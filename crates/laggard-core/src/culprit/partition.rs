//! Partition of the lag into slices.
//!
//! With W the wall time of a call, C its CPU time and P the mean number of busy threads,
//! W = C/P + waiting. So W_B - W_A is the sum of three terms: the differences in CPU time by function
//! at A's parallelism, the time that B loses through lower parallelism, and the difference in waiting.

use super::Role;
use super::seen::{Pair, Work};
use std::collections::BTreeMap;

/// A part of the lag.
#[derive(Clone, Debug)]
pub struct Slice<'a> {
    /// What the time is spent on.
    pub part: Part,
    /// Functions of A in it.
    pub a: Vec<&'a Work>,
    /// Functions of B in it.
    pub b: Vec<&'a Work>,
    /// Time of A, in nanoseconds per call.
    pub a_ns: f64,
    /// Time of B.
    pub b_ns: f64,
}

/// What time is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Functions of one role.
    Functions(Role),
    /// The operating system kernel.
    Kernel,
    /// No thread runs.
    Waiting,
    /// Lower parallelism than A.
    Parallelism,
}

impl Slice<'_> {
    /// B minus A; negative if B is faster here.
    pub fn gap_ns(&self) -> f64 {
        self.b_ns - self.a_ns
    }

    /// The hottest function of B.
    pub fn worst(&self) -> Option<&Work> {
        self.b.iter().copied().max_by(|x, y| x.ns.total_cmp(&y.ns))
    }

    /// The hottest function of A.
    pub fn best(&self) -> Option<&Work> {
        self.a.iter().copied().max_by(|x, y| x.ns.total_cmp(&y.ns))
    }

    /// Whether its functions have this role.
    pub fn is(&self, role: Role) -> bool {
        self.part == Part::Functions(role)
    }

    /// Whether its functions do the computation itself.
    pub fn is_work(&self) -> bool {
        use Role::{Blas, Compute, Math, Rearrangement};
        matches!(self.part, Part::Functions(Compute | Blas | Math | Rearrangement))
    }
}

/// Splits the lag into slices. Functions with the same name and role on both sides form a slice. All
/// functions of a role that exist on one side only form one slice together.
pub fn partition<'a>(pair: &Pair<'a>) -> Vec<Slice<'a>> {
    let mut slices = of_functions(pair, pair.a.parallelism());
    slices.extend(beyond_functions(pair));
    slices
}

/// The slices that are not time in functions.
pub(super) fn beyond_functions<'a>(pair: &Pair<'a>) -> [Slice<'a>; 3] {
    let (a, b) = (pair.a, pair.b);
    let (of_a, of_b) = (a.parallelism(), b.parallelism());
    let plain = |part, a_ns, b_ns| Slice { part, a: vec![], b: vec![], a_ns, b_ns };
    [
        plain(Part::Kernel, a.system_ns / of_a, b.system_ns / of_a),
        plain(Part::Waiting, a.waiting_ns(), b.waiting_ns()),
        plain(Part::Parallelism, b.cpu_ns() / of_a, b.cpu_ns() / of_b),
    ]
}

/// The slices of time in functions, at A's `parallelism`.
pub(super) fn of_functions<'a>(pair: &Pair<'a>, parallelism: f64) -> Vec<Slice<'a>> {
    let mut named: BTreeMap<(Role, String), Slice<'a>> = BTreeMap::new();
    for (side, is_b) in [(pair.a, false), (pair.b, true)] {
        for work in &side.work {
            let key = (work.role, shared_name(&work.name));
            let slice = named.entry(key).or_insert_with(|| Slice::empty(work.role));
            slice.add(work, is_b, parallelism);
        }
    }
    let (both, one): (Vec<_>, Vec<_>) =
        named.into_values().partition(|slice| !slice.a.is_empty() && !slice.b.is_empty());
    both.into_iter().chain(by_part(one)).collect()
}

/// Merges slices of the same part whose differences are small.
pub(super) fn joined(slices: Vec<Slice<'_>>, small_ns: f64) -> Vec<Slice<'_>> {
    let (small, mut all): (Vec<_>, Vec<_>) =
        slices.into_iter().partition(|slice| (0.0..small_ns).contains(&slice.gap_ns()));
    all.extend(by_part(small));
    all
}

/// Merges slices into one per part.
fn by_part(slices: Vec<Slice<'_>>) -> impl Iterator<Item = Slice<'_>> {
    let mut parts: BTreeMap<Part, Slice<'_>> = BTreeMap::new();
    for slice in slices {
        match parts.get_mut(&slice.part) {
            Some(sum) => sum.join(slice),
            None => {
                parts.insert(slice.part, slice);
            }
        }
    }
    parts.into_values()
}

impl<'a> Slice<'a> {
    fn empty(role: Role) -> Slice<'a> {
        Slice { part: Part::Functions(role), a: vec![], b: vec![], a_ns: 0.0, b_ns: 0.0 }
    }

    fn add(&mut self, work: &'a Work, is_b: bool, parallelism: f64) {
        let ns = work.ns / parallelism;
        if is_b {
            self.b.push(work);
            self.b_ns += ns;
        } else {
            self.a.push(work);
            self.a_ns += ns;
        }
    }

    fn join(&mut self, other: Slice<'a>) {
        self.a.extend(other.a);
        self.b.extend(other.b);
        self.a_ns += other.a_ns;
        self.b_ns += other.b_ns;
    }
}

/// Calls of a function on both sides, per call of the side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallPair<'a> {
    /// The function.
    pub name: &'a str,
    /// The file name of its library.
    pub library: &'a str,
    /// Number of calls by A and B.
    pub count: [f64; 2],
    /// Time in these calls.
    pub ns: [f64; 2],
}

/// Functions that one side calls much more often than the other, by decreasing difference in time.
/// `None` if the calls of a side were not traced.
pub fn calls_that_differ<'a>(pair: &Pair<'a>) -> Option<Vec<CallPair<'a>>> {
    /// Rarer calls, per call of the side, are ignored.
    const SELDOM: f64 = 0.05;
    let mut all: BTreeMap<(&str, &str), CallPair<'a>> = BTreeMap::new();
    for (side, seen) in [pair.a, pair.b].into_iter().enumerate() {
        for call in seen.calls.as_ref()? {
            let (name, library) = (call.name.as_str(), call.library.as_str());
            let new = CallPair { name, library, count: [0.0; 2], ns: [0.0; 2] };
            let sum = all.entry((library, name)).or_insert(new);
            sum.count[side] += call.count;
            sum.ns[side] += call.ns;
        }
    }
    let differs = |call: &CallPair| {
        let [a, b] = call.count;
        a.max(b) > SELDOM && (a > b * 1.5 || b > a * 1.5)
    };
    let mut all: Vec<CallPair> = all.into_values().filter(differs).collect();
    let gap = |call: &CallPair| (call.ns[1] - call.ns[0]).abs();
    all.sort_by(|x, y| gap(y).total_cmp(&gap(x)));
    Some(all)
}

/// The function name without its module path.
pub(super) fn last(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

/// The shared name of a function's variants, without its module path.
pub(super) fn stem(name: &str) -> String {
    shared_name(last(name))
}

/// Time of a function on both sides, or of a slice without functions.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeRow {
    /// The part of the lag that it belongs to.
    pub part: Part,
    /// Function and library, by side; empty if the side does not run it.
    pub functions: [(String, String); 2],
    /// Time of A and B in nanoseconds per call.
    pub ns: [f64; 2],
}

impl TimeRow {
    /// Time of B minus time of A.
    pub fn gap_ns(&self) -> f64 {
        self.ns[1] - self.ns[0]
    }
}

/// The slices of the lag by function. Only variants of a function share a row: that two functions take
/// time in the same slice is no evidence that one replaces the other.
pub fn time_rows(pair: &Pair<'_>) -> Vec<TimeRow> {
    let mut rows = vec![];
    for slice in partition(pair) {
        let of_slice = |ns| TimeRow { part: slice.part, functions: Default::default(), ns };
        let Part::Functions(_) = slice.part else {
            rows.push(of_slice([slice.a_ns, slice.b_ns]));
            continue;
        };
        let mut by_name: BTreeMap<String, (TimeRow, [f64; 2])> = BTreeMap::default();
        let sides = [(&slice.a, slice.a_ns), (&slice.b, slice.b_ns)];
        for (side, (works, whole)) in sides.into_iter().enumerate() {
            let scale = whole / works.iter().map(|work| work.ns).sum::<f64>().max(1e-9);
            for work in works {
                let new = || (of_slice([0.0; 2]), [0.0; 2]);
                let (row, largest) = by_name.entry(shared_name(&work.name)).or_insert_with(new);
                row.ns[side] += work.ns * scale;
                if work.ns >= largest[side] {
                    largest[side] = work.ns;
                    row.functions[side] = (work.name.clone(), work.library.clone());
                }
            }
        }
        rows.extend(by_name.into_values().map(|(row, _)| row));
    }
    rows
}

/// The name that variants of a function share: without CPU suffixes, compiler suffixes and argument
/// types.
pub(crate) fn shared_name(name: &str) -> String {
    let (words, variants) = words(name);
    words[..words.len() - variants].join("_")
}

/// Generation of the instruction set that a variant of a function needs, by its suffix. `None` if no
/// suffix names one.
pub(super) fn generation(name: &str) -> Option<u8> {
    let (words, variants) = words(last(name));
    words[words.len() - variants..].iter().filter_map(|word| variant(word)?.1).max()
}

/// The words of a name, and how many at its end name a variant.
fn words(name: &str) -> (Vec<&str>, usize) {
    let name = &name[..name.find(['(', '<', '.']).unwrap_or(name.len())];
    let words: Vec<&str> = name.split('_').collect();
    let is_variant = |&at: &usize| {
        // Also a version of an interface, unless it follows the name of the architecture.
        let is_version = matches!(words[at], "v2" | "v3" | "v4" | "V2" | "V3" | "V4");
        let is_architecture =
            words[at - 1].eq_ignore_ascii_case("x86") || words[at - 1].eq_ignore_ascii_case("64");
        variant(words[at]).is_some() && (!is_version || is_architecture)
    };
    let variants = (1..words.len()).rev().take_while(is_variant).count();
    (words, variants)
}

/// A suffix that names an instruction set or CPU model, with the generation of vector instructions.
fn variant(word: &str) -> Option<&'static (&'static str, Option<u8>)> {
    const VARIANTS: [(&str, Option<u8>); 35] = [
        ("scalar", Some(0)),
        ("generic", Some(0)),
        ("baseline", Some(0)),
        ("sse", Some(1)),
        ("sse2", Some(1)),
        ("sse3", Some(1)),
        ("prescott", Some(1)),
        ("ssse3", Some(2)),
        ("sse41", Some(3)),
        ("sse42", Some(3)),
        ("nehalem", Some(3)),
        ("v2", Some(3)),
        ("avx", Some(4)),
        ("sandybridge", Some(4)),
        ("avx2", Some(5)),
        ("fma", Some(5)),
        ("fma3", Some(5)),
        ("haswell", Some(5)),
        ("zen", Some(5)),
        ("v3", Some(5)),
        ("avx512", Some(6)),
        ("avx512f", Some(6)),
        ("evex", Some(6)),
        ("skylakex", Some(6)),
        ("skx", Some(6)),
        ("v4", Some(6)),
        ("cooperlake", Some(7)),
        ("sapphirerapids", Some(8)),
        ("neon", Some(1)),
        ("asimd", Some(1)),
        ("neoversen1", Some(1)),
        ("sve", Some(2)),
        ("neoversev1", Some(2)),
        ("erms", None),
        ("unaligned", None),
    ];
    let word = word.to_ascii_lowercase();
    VARIANTS.iter().find(|(name, _)| *name == word)
}
