//! `Code`: how programs and libraries were built, and what instructions their functions consist of.
//!
//! What is in a file is one thing, what was executed another: [`Function::mix`] counts the
//! instructions of the file, [`Hot::mix`] weighs them by the samples of a profile.

use super::profile::Texts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Files that were looked at.
#[derive(Clone, Debug, Default)]
pub struct Code {
    /// Names of functions and paths of source files.
    pub texts: Texts,
    /// The files, in the order they were asked for.
    pub files: Vec<CodeFile>,
    /// Functions that were asked for instruction by instruction.
    pub listings: Vec<Listing>,
}

/// One program or library.
#[derive(Clone, Debug, Default)]
pub struct CodeFile {
    /// Where it is.
    pub path: String,
    /// Its build-id, or `xxh3:` and a hash of its content.
    pub id: String,
    /// Its bytes.
    pub size: u64,
    /// What machine it is for, as `x86-64`.
    pub machine: String,
    /// What kind of file it is.
    pub kind: FileKind,
    /// How it was built.
    pub build: Build,
    /// Processors that it has code of its own for, by the names of its functions.
    pub targets: Vec<Target>,
    /// Its functions, by address.
    pub functions: Vec<Function>,
    /// Why there are no instructions; empty when there are.
    pub not_disassembled: String,
    /// Bytes of functions that were left out because too many overlap.
    pub skipped_bytes: u64,
    /// What a profile saw of it.
    pub executed: Option<Executed>,
}

/// What kind of file it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileKind {
    /// A program at a fixed address.
    Program,
    /// A program that runs at any address.
    PieProgram,
    /// A library.
    #[default]
    Library,
    /// Input of a linker.
    Object,
    /// None of these.
    Other,
}

impl FileKind {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            FileKind::Program => "program",
            FileKind::PieProgram => "position-independent program",
            FileKind::Library => "shared library",
            FileKind::Object => "object file",
            FileKind::Other => "other file",
        }
    }
}

/// How a file was built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Build {
    /// Names of functions.
    pub symbols: Symbols,
    /// Debug information.
    pub debug: Debug,
    /// Unwind tables.
    pub unwind: Unwind,
    /// The build-id, if it has one.
    pub build_id: Option<String>,
    /// The name that programs link it by.
    pub soname: Option<String>,
    /// The loader it asks for.
    pub interpreter: Option<String>,
    /// Libraries that it asks for.
    pub needed: Vec<Needed>,
    /// What it brings itself, by names of its functions.
    pub provides: Vec<Known>,
    /// Where its libraries are looked for first, with the kind of the entry.
    pub rpath: Option<String>,
    /// As `rpath`, but after LD_LIBRARY_PATH.
    pub runpath: Option<String>,
    /// Whether its tables of addresses are read-only once it is loaded.
    pub relro: Relro,
    /// Whether all its functions are bound when it is loaded, rather than at their first call.
    pub bind_now: bool,
    /// Compilers that left their name in it, each once.
    pub compilers: Vec<String>,
    /// Functions that keep a frame pointer; none when the code was not disassembled.
    pub frame_pointers: Option<FramePointers>,
}

/// Names of functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbols {
    /// Entries of the full table.
    pub full: u64,
    /// Entries of the table for the loader.
    pub dynamic: u64,
    /// Where else names come from: the path of a debug file, or `.gnu_debugdata`.
    pub elsewhere: Option<String>,
}

impl Symbols {
    /// Whether it has lost the names of its inner functions.
    pub fn is_stripped(&self) -> bool {
        self.full == 0
    }
}

/// Debug information.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Debug {
    /// How much there is: the most that any unit has.
    pub level: DebugLevel,
    /// The separate file it is in, if it is.
    pub separate: Option<String>,
    /// Versions of DWARF in use, lowest first.
    pub versions: Vec<u16>,
    /// Units: what one run of a compiler made.
    pub units: u64,
    /// What made them, the one with the most units first.
    pub producers: Vec<Producer>,
}

/// How much debug information there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum DebugLevel {
    /// None.
    #[default]
    None,
    /// Source lines and functions, as `-g1` makes them.
    Lines,
    /// Variables and types too.
    Full,
}

impl DebugLevel {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            DebugLevel::None => "none",
            DebugLevel::Lines => "line tables only",
            DebugLevel::Full => "full",
        }
    }
}

/// What made units of debug information.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Producer {
    /// The compiler, without its flags.
    pub compiler: String,
    /// The flags it was run with, if it wrote them down.
    pub flags: Vec<String>,
    /// The language, as `C11`; empty when unknown.
    pub language: String,
    /// How many units.
    pub units: u64,
}

/// Unwind tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unwind {
    /// Whether it has `.eh_frame`.
    pub eh_frame: bool,
    /// Whether it has the index that unwinders look things up in.
    pub header: bool,
    /// Functions that they describe.
    pub functions: u64,
}

/// A library that a file asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needed {
    /// Its name.
    pub name: String,
    /// What it is, when its name says so.
    pub known: Option<Known>,
}

/// A well-known library and what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Known {
    /// What it is for.
    pub role: Role,
    /// As people call it: `OpenBLAS`, `MKL`, `jemalloc`.
    pub name: &'static str,
}

/// What a library is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Basic linear algebra.
    Blas,
    /// Linear algebra above BLAS.
    Lapack,
    /// Parallel loops.
    OpenMp,
    /// Memory.
    Allocator,
    /// Mathematical functions.
    Math,
    /// Work on a GPU.
    Gpu,
}

impl Role {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Role::Blas => "BLAS",
            Role::Lapack => "LAPACK",
            Role::OpenMp => "OpenMP",
            Role::Allocator => "allocator",
            Role::Math => "math",
            Role::Gpu => "GPU",
        }
    }
}

/// Whether tables of addresses are read-only once a file is loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Relro {
    /// They stay writable.
    #[default]
    None,
    /// All but those of functions bound later.
    Partial,
    /// All.
    Full,
}

impl Relro {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Relro::None => "none",
            Relro::Partial => "partial",
            Relro::Full => "full",
        }
    }
}

/// How many functions keep a frame pointer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FramePointers {
    /// Functions that set one up.
    pub with: u64,
    /// Functions that were looked at: all but linkage stubs and split-off cold parts.
    pub of: u64,
    /// Of those that call others, which are the ones that stacks pass through: with one.
    pub callers_with: u64,
    /// Functions that call others.
    pub callers: u64,
}

/// A kind of processor that a library has code of its own for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// As the names of functions have it: `SKYLAKEX`, `AVX512_SKX`, `X86_V3`.
    pub name: String,
    /// How many functions.
    pub functions: u64,
    /// What a processor must have, as Linux calls it: `avx2`, `fma`.
    pub needs: Vec<&'static str>,
    /// What this machine's processor lacks of that; none when it was not asked.
    pub lacks: Option<Vec<&'static str>>,
}

impl Target {
    /// Whether this machine can run it, if that is known.
    pub fn runs_here(&self) -> Option<bool> {
        self.lacks.as_ref().map(Vec::is_empty)
    }
}

/// A function of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// Its first address, as the file's own tables have it.
    pub address: u64,
    /// Its bytes.
    pub size: u64,
    /// Text: its name, demangled; empty when only unwind tables know it.
    pub name: u32,
    /// Whether it sets up a frame pointer.
    pub frame_pointer: bool,
    /// Whether it only leads to another function: a linkage stub.
    pub is_stub: bool,
    /// Its instructions.
    pub mix: Mix,
}

/// What samples of a profile saw of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// Samples of the whole profile.
    pub samples: u64,
    /// Samples whose innermost frame is in this file.
    pub here: u64,
    /// Of those, samples at no instruction of a known function.
    pub astray: u64,
    /// Functions that were seen, most samples first.
    pub hot: Vec<Hot>,
}

/// A function that samples landed in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hot {
    /// Number of the function in its file.
    pub function: u32,
    /// Samples in it.
    pub samples: u64,
    /// What was executed, in thousandths of a sample. Samples of a block, the instructions between
    /// two jumps, are shared evenly among them: they run equally often, while the one that a
    /// sample is at is mostly the one that waited for a slow one before it.
    pub mix: Mix,
}

impl Hot {
    /// What [`Hot::mix`] counts for one sample.
    pub const SCALE: u64 = 1000;
}

impl CodeFile {
    /// All instructions of the file.
    pub fn mix(&self) -> Mix {
        let mut sum = Mix::default();
        self.functions.iter().for_each(|function| sum.add(&function.mix));
        sum
    }

    /// What samples saw of a function.
    pub fn hot(&self, function: usize) -> Option<&Hot> {
        self.executed.as_ref()?.hot.iter().find(|hot| hot.function as usize == function)
    }

    /// Bytes of code in functions.
    pub fn code_bytes(&self) -> u64 {
        self.functions.iter().fold(0, |sum, function| sum.saturating_add(function.size))
    }

    /// What this file is of the well-known libraries: what it brings itself.
    pub fn role(&self, role: Role) -> Option<&'static str> {
        self.build.provides.iter().find(|known| known.role == role).map(|known| known.name)
    }
}

/// What an instruction is, by its encoding and its widest explicit operand. Each has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// Integers, addresses and flags in general registers.
    Integer = 0,
    /// One float at a time, in a vector register; also moves of one element.
    Float = 1,
    /// The old floating-point unit, and MMX.
    X87 = 2,
    /// Vectors of 128 bits in the oldest encoding.
    Sse = 3,
    /// Vectors of 128 bits in AVX's encoding.
    Avx128 = 4,
    /// Vectors of 256 bits in AVX's encoding.
    Avx256 = 5,
    /// Shorter vectors in AVX-512's encoding, and its masks.
    Evex = 6,
    /// Vectors of 512 bits.
    Avx512 = 7,
    /// Jumps.
    Branch = 8,
    /// Calls and returns.
    Call = 9,
    /// Prefetches.
    Prefetch = 10,
    /// Nothing: padding and marks.
    Nop = 11,
    /// System, traps, matrix tiles and whatever is left.
    Other = 12,
    /// Bytes that are no instruction.
    Bad = 13,
}

impl Class {
    /// All, in order of their numbers.
    pub const ALL: [Class; 14] = [
        Class::Integer,
        Class::Float,
        Class::X87,
        Class::Sse,
        Class::Avx128,
        Class::Avx256,
        Class::Evex,
        Class::Avx512,
        Class::Branch,
        Class::Call,
        Class::Prefetch,
        Class::Nop,
        Class::Other,
        Class::Bad,
    ];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Class::Integer => "integer",
            Class::Float => "float",
            Class::X87 => "x87",
            Class::Sse => "sse",
            Class::Avx128 => "avx-128",
            Class::Avx256 => "avx-256",
            Class::Evex => "evex",
            Class::Avx512 => "avx-512",
            Class::Branch => "branch",
            Class::Call => "call",
            Class::Prefetch => "prefetch",
            Class::Nop => "nop",
            Class::Other => "other",
            Class::Bad => "bad",
        }
    }

    /// What it is, for people.
    pub fn meaning(self) -> &'static str {
        match self {
            Class::Integer => "scalar integers, addresses, flags",
            Class::Float => "one float at a time",
            Class::X87 => "x87 and MMX",
            Class::Sse => "SSE vectors, 128 bits",
            Class::Avx128 => "AVX vectors, 128 bits",
            Class::Avx256 => "AVX vectors, 256 bits",
            Class::Evex => "AVX-512 encoding, up to 256 bits, and masks",
            Class::Avx512 => "AVX-512 vectors, 512 bits",
            Class::Branch => "jumps",
            Class::Call => "calls and returns",
            Class::Prefetch => "prefetches",
            Class::Nop => "padding",
            Class::Other => "system, traps, tiles",
            Class::Bad => "no instruction",
        }
    }

    /// Whether it works on several elements at once.
    pub fn is_packed(self) -> bool {
        matches!(self, Class::Sse | Class::Avx128 | Class::Avx256 | Class::Evex | Class::Avx512)
    }
}

/// What else an instruction is or does. One may have several, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Mark {
    /// Reads memory by an explicit operand; not what pop and return read.
    Load = 0,
    /// Writes memory by an explicit operand; not what push and call write.
    Store = 1,
    /// Multiplies and adds at once.
    Fma = 2,
    /// Divides or takes a root: slow.
    Divide = 3,
    /// Gathers from or scatters to many addresses.
    Gather = 4,
    /// Computes with one float.
    ScalarMath = 5,
    /// Computes with several floats.
    PackedMath = 6,
}

impl Mark {
    /// All, in order of their numbers.
    pub const ALL: [Mark; 7] = [
        Mark::Load,
        Mark::Store,
        Mark::Fma,
        Mark::Divide,
        Mark::Gather,
        Mark::ScalarMath,
        Mark::PackedMath,
    ];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Mark::Load => "load",
            Mark::Store => "store",
            Mark::Fma => "fma",
            Mark::Divide => "divide",
            Mark::Gather => "gather",
            Mark::ScalarMath => "scalar-math",
            Mark::PackedMath => "packed-math",
        }
    }

    /// What it is, for people.
    pub fn meaning(self) -> &'static str {
        match self {
            Mark::Load => "loads",
            Mark::Store => "stores",
            Mark::Fma => "multiply and add at once",
            Mark::Divide => "divisions and roots",
            Mark::Gather => "gathers and scatters",
            Mark::ScalarMath => "arithmetic on one float",
            Mark::PackedMath => "arithmetic on several floats",
        }
    }
}

/// The marks of one instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Marks(pub u8);

impl Marks {
    /// Whether it has this one.
    pub fn has(self, mark: Mark) -> bool {
        self.0 & (1 << mark as u8) != 0
    }

    /// With this one too.
    #[must_use]
    pub fn and(self, mark: Mark) -> Marks {
        Marks(self.0 | 1 << mark as u8)
    }

    /// Those that it has.
    pub fn iter(self) -> impl Iterator<Item = Mark> {
        Mark::ALL.into_iter().filter(move |mark| self.has(*mark))
    }
}

/// How many instructions of each class, and with each mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<String, u64>", into = "BTreeMap<String, u64>")]
pub struct Mix {
    classes: [u64; Class::ALL.len()],
    marks: [u64; Mark::ALL.len()],
}

/// By the words of classes and marks; those that do not occur are left out.
impl From<Mix> for BTreeMap<String, u64> {
    fn from(mix: Mix) -> Self {
        let classes = Class::ALL.map(|class| (class.word().to_owned(), mix.of(class)));
        let marks = Mark::ALL.map(|mark| (mark.word().to_owned(), mix.with(mark)));
        classes.into_iter().chain(marks).filter(|(_, count)| *count > 0).collect()
    }
}

impl From<BTreeMap<String, u64>> for Mix {
    fn from(counts: BTreeMap<String, u64>) -> Mix {
        let of = |word: &str| counts.get(word).copied().unwrap_or(0);
        Mix {
            classes: Class::ALL.map(|class| of(class.word())),
            marks: Mark::ALL.map(|mark| of(mark.word())),
        }
    }
}

impl Mix {
    /// Counts an instruction so many times.
    pub fn count(&mut self, class: Class, marks: Marks, times: u64) {
        let cell = &mut self.classes[class as usize];
        *cell = cell.saturating_add(times);
        for mark in marks.iter() {
            let cell = &mut self.marks[mark as usize];
            *cell = cell.saturating_add(times);
        }
    }

    /// Adds another.
    pub fn add(&mut self, other: &Mix) {
        let cells = self.classes.iter_mut().chain(&mut self.marks);
        for (cell, more) in cells.zip(other.classes.iter().chain(&other.marks)) {
            *cell = cell.saturating_add(*more);
        }
    }

    /// Adds so many times another, divided by a number.
    pub fn add_part(&mut self, other: &Mix, times: u64, divisor: u64) {
        let part = |count: u64| {
            let product = u128::from(count) * u128::from(times);
            u64::try_from(product / u128::from(divisor.max(1))).unwrap_or(u64::MAX)
        };
        let cells = self.classes.iter_mut().chain(&mut self.marks);
        for (cell, more) in cells.zip(other.classes.iter().chain(&other.marks)) {
            *cell = cell.saturating_add(part(*more));
        }
    }

    /// Instructions of a class.
    pub fn of(&self, class: Class) -> u64 {
        self.classes[class as usize]
    }

    /// Instructions with a mark.
    pub fn with(&self, mark: Mark) -> u64 {
        self.marks[mark as usize]
    }

    /// All instructions, padding too.
    pub fn instructions(&self) -> u64 {
        self.classes.iter().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// Instructions that do something: all but padding and what is no instruction.
    pub fn working(&self) -> u64 {
        self.instructions().saturating_sub(self.of(Class::Nop)).saturating_sub(self.of(Class::Bad))
    }

    /// Instructions on several elements at once.
    pub fn packed(&self) -> u64 {
        Class::ALL.into_iter().filter(|class| class.is_packed()).map(|class| self.of(class)).sum()
    }

    /// The share of instructions that work on several elements at once; none without any.
    pub fn packed_share(&self) -> Option<f64> {
        ratio(self.packed(), self.working())
    }

    /// Of all arithmetic on floats, the share on several at once; none without any. Unlike
    /// [`Mix::packed_share`] it is not blurred by moves: scalar code copies and clears whole
    /// vector registers too.
    pub fn packed_math_share(&self) -> Option<f64> {
        let packed = self.with(Mark::PackedMath);
        ratio(packed, packed + self.with(Mark::ScalarMath))
    }

    /// The widest vectors that are worked on, in bits; none when there are none.
    pub fn widest_vector(&self) -> Option<u32> {
        let widths = [
            (Class::Avx512, 512),
            (Class::Avx256, 256),
            (Class::Evex, 256),
            (Class::Avx128, 128),
            (Class::Sse, 128),
        ];
        widths.into_iter().find(|(class, _)| self.of(*class) > 0).map(|(_, bits)| bits)
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// A function, instruction by instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Number of the file.
    pub file: u32,
    /// Number of the function in its file.
    pub function: u32,
    /// The instructions, by address.
    pub lines: Vec<AsmLine>,
    /// Loops, by address, an outer one before those in it.
    pub loops: Vec<Loop>,
    /// Whether a profile was given: then samples are counts, else they mean nothing.
    pub sampled: bool,
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsmLine {
    /// Its address.
    pub address: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// As an assembler writes it, in Intel's syntax.
    pub mnemonic: String,
    /// Its operands.
    pub operands: String,
    /// What it is.
    pub class: Class,
    /// What else it is.
    pub marks: Marks,
    /// Where it jumps or calls, when that is fixed.
    pub target: Option<u64>,
    /// Text: the function that it calls or jumps to, when that is another one and known.
    pub target_name: u32,
    /// Whether a jump of this function leads here.
    pub is_target: bool,
    /// Text: the source file; empty when unknown.
    pub source: u32,
    /// The source line; 0 when unknown.
    pub line: u32,
    /// Samples at it.
    pub samples: u64,
}

/// A loop: from where a jump leads back to, to the last such jump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loop {
    /// The address of its first instruction.
    pub start: u64,
    /// The address behind its last instruction.
    pub end: u64,
    /// Whether it has no other loop inside.
    pub innermost: bool,
    /// Whether more samples are in it than in any other innermost loop.
    pub hottest: bool,
    /// Its instructions.
    pub mix: Mix,
    /// Samples in it.
    pub samples: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places() {
        for (at, class) in Class::ALL.into_iter().enumerate() {
            assert_eq!(class as usize, at);
        }
        for (at, mark) in Mark::ALL.into_iter().enumerate() {
            assert_eq!(mark as usize, at);
        }
    }

    #[test]
    fn shares_leave_padding_out() {
        let mut mix = Mix::default();
        assert_eq!((mix.packed_share(), mix.packed_math_share()), (None, None));
        mix.count(Class::Nop, Marks::default(), 7);
        mix.count(Class::Avx256, Marks::default().and(Mark::PackedMath).and(Mark::Fma), 3);
        mix.count(Class::Float, Marks::default().and(Mark::ScalarMath), 1);
        assert_eq!(mix.instructions(), 11);
        assert_eq!(mix.packed_share(), Some(0.75));
        assert_eq!(mix.packed_math_share(), Some(0.75));
        assert_eq!((mix.with(Mark::Fma), mix.widest_vector()), (3, Some(256)));
    }
}
