//! `Code`: build facts of programs and libraries, and the instruction mix of their functions.
//!
//! [`Function::mix`] counts the instructions in the file. [`Hot::mix`] weights them by samples.

use super::profile::Texts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Inspected files.
#[derive(Clone, Debug, Default)]
pub struct Code {
    /// Names of functions and paths of source files.
    pub texts: Texts,
    /// The files, in the requested order.
    pub files: Vec<CodeFile>,
    /// Disassembled functions, if requested.
    pub listings: Vec<Listing>,
}

/// One program or library.
#[derive(Clone, Debug, Default)]
pub struct CodeFile {
    /// Its path.
    pub path: String,
    /// Its build ID, or `xxh3:` and a hash of its content.
    pub id: String,
    /// Size in bytes.
    pub size: u64,
    /// Its architecture, such as `x86-64`.
    pub machine: String,
    /// Kind of file.
    pub kind: FileKind,
    /// Build facts.
    pub build: Build,
    /// CPUs with specific code, detected from function names.
    pub targets: Vec<Target>,
    /// Its functions, by address.
    pub functions: Vec<Function>,
    /// Why the file was not disassembled; empty if it was.
    pub not_disassembled: String,
    /// Bytes of functions that were skipped because too many overlap.
    pub skipped_bytes: u64,
    /// Samples of a profile in it.
    pub executed: Option<Executed>,
}

/// Kind of file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileKind {
    /// A program with a fixed address.
    Program,
    /// A position-independent program.
    PieProgram,
    /// A shared library.
    #[default]
    Library,
    /// An object file.
    Object,
    /// Any other file.
    Other,
}

impl FileKind {
    /// The words used in reports and JSON.
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

/// Build facts of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Build {
    /// Symbol tables.
    pub symbols: Symbols,
    /// Debug info.
    pub debug: Debug,
    /// Unwind tables.
    pub unwind: Unwind,
    /// The build ID, if it has one.
    pub build_id: Option<String>,
    /// The soname, if it has one.
    pub soname: Option<String>,
    /// The program interpreter (loader), if any.
    pub interpreter: Option<String>,
    /// Required libraries (DT_NEEDED).
    pub needed: Vec<Needed>,
    /// Well-known libraries that it contains, detected from function names.
    pub provides: Vec<Known>,
    /// DT_RPATH, if set.
    pub rpath: Option<String>,
    /// DT_RUNPATH, if set. Searched after LD_LIBRARY_PATH.
    pub runpath: Option<String>,
    /// Relocation read-only protection.
    pub relro: Relro,
    /// Whether functions are bound at load time instead of lazily.
    pub bind_now: bool,
    /// Distinct compilers in its `.comment` section.
    pub compilers: Vec<String>,
    /// Functions with a frame pointer; `None` if the code was not disassembled.
    pub frame_pointers: Option<FramePointers>,
}

/// Symbol tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbols {
    /// Entries of the full symbol table.
    pub full: u64,
    /// Entries of the dynamic symbol table.
    pub dynamic: u64,
    /// Another source of symbols: the path of a debug file, or `.gnu_debugdata`.
    pub elsewhere: Option<String>,
}

impl Symbols {
    /// Whether the full symbol table is missing.
    pub fn is_stripped(&self) -> bool {
        self.full == 0
    }
}

/// Debug info.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Debug {
    /// The highest level of any compilation unit.
    pub level: DebugLevel,
    /// The separate debug file, if it is in one.
    pub separate: Option<String>,
    /// DWARF versions, ascending.
    pub versions: Vec<u16>,
    /// Number of compilation units.
    pub units: u64,
    /// Compilers, by number of units, descending.
    pub producers: Vec<Producer>,
}

/// Level of debug info.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum DebugLevel {
    /// None.
    #[default]
    None,
    /// Source lines and functions, as with `-g1`.
    Lines,
    /// Also variables and types.
    Full,
}

impl DebugLevel {
    /// The words used in reports and JSON.
    pub fn words(self) -> &'static str {
        match self {
            DebugLevel::None => "none",
            DebugLevel::Lines => "line tables only",
            DebugLevel::Full => "full",
        }
    }
}

/// A compiler and its flags, from debug info.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Producer {
    /// The compiler, without its flags.
    pub compiler: String,
    /// Its flags, if recorded.
    pub flags: Vec<String>,
    /// The language, such as `C11`; empty if unknown.
    pub language: String,
    /// Number of compilation units.
    pub units: u64,
}

/// Unwind tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unwind {
    /// Whether it has `.eh_frame`.
    pub eh_frame: bool,
    /// Whether it has the lookup table `.eh_frame_hdr`.
    pub header: bool,
    /// Number of functions with unwind information.
    pub functions: u64,
}

/// A required library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needed {
    /// Its name.
    pub name: String,
    /// The well-known library it is, detected from its name.
    pub known: Option<Known>,
}

/// A well-known library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Known {
    /// Its purpose.
    pub role: Role,
    /// Common name: `OpenBLAS`, `MKL`, `jemalloc`.
    pub name: &'static str,
}

/// Purpose of a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Basic linear algebra.
    Blas,
    /// Linear algebra on top of BLAS.
    Lapack,
    /// OpenMP runtime.
    OpenMp,
    /// Memory allocator.
    Allocator,
    /// Mathematical functions.
    Math,
    /// GPU runtime or library.
    Gpu,
}

impl Role {
    /// The word used in reports and JSON.
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

/// Relocation read-only protection (RELRO).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Relro {
    /// Relocations stay writable.
    #[default]
    None,
    /// All except those of lazily bound functions are read-only.
    Partial,
    /// All are read-only.
    Full,
}

impl Relro {
    /// The word used in reports and JSON.
    pub fn word(self) -> &'static str {
        match self {
            Relro::None => "none",
            Relro::Partial => "partial",
            Relro::Full => "full",
        }
    }
}

/// Counts of functions with a frame pointer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FramePointers {
    /// Functions that set up a frame pointer.
    pub with: u64,
    /// All functions except linkage stubs and split-off cold parts.
    pub of: u64,
    /// Non-leaf functions that set up a frame pointer. Only these matter for stack unwinding.
    pub callers_with: u64,
    /// Non-leaf functions.
    pub callers: u64,
}

/// A CPU type that a library has specific code for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// As in the names of functions: `SKYLAKEX`, `AVX512_SKX`, `X86_V3`.
    pub name: String,
    /// Number of functions.
    pub functions: u64,
    /// Required CPU features with their Linux names: `avx2`, `fma`.
    pub needs: Vec<&'static str>,
    /// Features that the CPU of this machine lacks; `None` if unknown.
    pub lacks: Option<Vec<&'static str>>,
}

impl Target {
    /// Whether this machine can run it, if known.
    pub fn runs_here(&self) -> Option<bool> {
        self.lacks.as_ref().map(Vec::is_empty)
    }
}

/// A function of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// Its address in the file's address space.
    pub address: u64,
    /// Size in bytes.
    pub size: u64,
    /// Text: its demangled name; empty if it is known only from unwind tables.
    pub name: u32,
    /// Whether it sets up a frame pointer.
    pub frame_pointer: bool,
    /// Whether it is a linkage stub.
    pub is_stub: bool,
    /// Its instruction mix.
    pub mix: Mix,
}

/// Samples of a profile in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// Samples of the whole profile.
    pub samples: u64,
    /// Samples whose innermost frame is in this file.
    pub here: u64,
    /// Of those, samples that are not at an instruction of a known function.
    pub astray: u64,
    /// Functions with samples, most samples first.
    pub hot: Vec<Hot>,
}

/// A function with samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hot {
    /// Number of the function in its file.
    pub function: u32,
    /// Samples in it.
    pub samples: u64,
    /// Executed instructions, in thousandths of a sample. The samples of a basic block are divided
    /// evenly among its instructions: all of them execute equally often, while samples accumulate
    /// at the instruction after a slow one.
    pub mix: Mix,
}

impl Hot {
    /// Units of [`Hot::mix`] per sample.
    pub const SCALE: u64 = 1000;
}

impl CodeFile {
    /// Instruction mix of the whole file.
    pub fn mix(&self) -> Mix {
        let mut sum = Mix::default();
        self.functions.iter().for_each(|function| sum.add(&function.mix));
        sum
    }

    /// Samples of a function.
    pub fn hot(&self, function: usize) -> Option<&Hot> {
        self.executed.as_ref()?.hot.iter().find(|hot| hot.function as usize == function)
    }

    /// Total size of all functions, in bytes.
    pub fn code_bytes(&self) -> u64 {
        self.functions.iter().fold(0, |sum, function| sum.saturating_add(function.size))
    }

    /// Name of the well-known library with this purpose that the file contains.
    pub fn role(&self, role: Role) -> Option<&'static str> {
        self.build.provides.iter().find(|known| known.role == role).map(|known| known.name)
    }
}

/// Class of an instruction, by encoding and widest explicit operand. Each instruction has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// Integers, addresses and flags in general registers.
    Integer = 0,
    /// Scalar floating point in vector registers, including moves of one element.
    Float = 1,
    /// x87 floating point and MMX.
    X87 = 2,
    /// 128-bit vectors, SSE encoding.
    Sse = 3,
    /// 128-bit vectors, AVX encoding.
    Avx128 = 4,
    /// 256-bit vectors, AVX encoding.
    Avx256 = 5,
    /// Shorter vectors in AVX-512 encoding, and mask instructions.
    Evex = 6,
    /// 512-bit vectors.
    Avx512 = 7,
    /// Branches.
    Branch = 8,
    /// Calls and returns.
    Call = 9,
    /// Prefetches.
    Prefetch = 10,
    /// Padding and markers.
    Nop = 11,
    /// System instructions, traps, matrix tiles and all others.
    Other = 12,
    /// Invalid instructions.
    Bad = 13,
}

impl Class {
    /// All classes, in order of their numbers.
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

    /// The word used in reports and JSON.
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

    /// Description.
    pub fn meaning(self) -> &'static str {
        match self {
            Class::Integer => "scalar integers, addresses, flags",
            Class::Float => "scalar floating point",
            Class::X87 => "x87 and MMX",
            Class::Sse => "SSE vectors, 128 bits",
            Class::Avx128 => "AVX vectors, 128 bits",
            Class::Avx256 => "AVX vectors, 256 bits",
            Class::Evex => "AVX-512 encoding, up to 256 bits, and masks",
            Class::Avx512 => "AVX-512 vectors, 512 bits",
            Class::Branch => "branches",
            Class::Call => "calls and returns",
            Class::Prefetch => "prefetches",
            Class::Nop => "padding",
            Class::Other => "system, traps, tiles",
            Class::Bad => "invalid instructions",
        }
    }

    /// Whether it operates on several elements at once (SIMD).
    pub fn is_packed(self) -> bool {
        matches!(self, Class::Sse | Class::Avx128 | Class::Avx256 | Class::Evex | Class::Avx512)
    }
}

/// A property of an instruction. An instruction may have several or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Mark {
    /// Reads memory through an explicit operand. Excludes the stack accesses of pop and return.
    Load = 0,
    /// Writes memory through an explicit operand. Excludes the stack accesses of push and call.
    Store = 1,
    /// Fused multiply-add.
    Fma = 2,
    /// Division or square root, which is slow.
    Divide = 3,
    /// Gather or scatter.
    Gather = 4,
    /// Scalar floating-point arithmetic.
    ScalarMath = 5,
    /// SIMD floating-point arithmetic.
    PackedMath = 6,
    /// Reads or writes memory relative to the stack pointer or frame pointer, where compilers keep local
    /// variables.
    Local = 7,
}

impl Mark {
    /// All marks, in order of their numbers.
    pub const ALL: [Mark; 8] = [
        Mark::Load,
        Mark::Store,
        Mark::Fma,
        Mark::Divide,
        Mark::Gather,
        Mark::ScalarMath,
        Mark::PackedMath,
        Mark::Local,
    ];

    /// The word used in reports and JSON.
    pub fn word(self) -> &'static str {
        match self {
            Mark::Load => "load",
            Mark::Store => "store",
            Mark::Fma => "fma",
            Mark::Divide => "divide",
            Mark::Gather => "gather",
            Mark::ScalarMath => "scalar-math",
            Mark::PackedMath => "packed-math",
            Mark::Local => "local",
        }
    }

    /// Description.
    pub fn meaning(self) -> &'static str {
        match self {
            Mark::Load => "loads",
            Mark::Store => "stores",
            Mark::Fma => "fused multiply-add",
            Mark::Divide => "divisions and square roots",
            Mark::Gather => "gathers and scatters",
            Mark::ScalarMath => "scalar floating-point arithmetic",
            Mark::PackedMath => "vector floating-point arithmetic",
            Mark::Local => "accesses to local variables on the stack",
        }
    }
}

/// The marks of one instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Marks(pub u8);

impl Marks {
    /// Whether it has this mark.
    pub fn has(self, mark: Mark) -> bool {
        self.0 & (1 << mark as u8) != 0
    }

    /// Adds a mark.
    #[must_use]
    pub fn and(self, mark: Mark) -> Marks {
        Marks(self.0 | 1 << mark as u8)
    }

    /// The marks of the instruction.
    pub fn iter(self) -> impl Iterator<Item = Mark> {
        Mark::ALL.into_iter().filter(move |mark| self.has(*mark))
    }
}

/// Instruction mix: counts by class and by mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<String, u64>", into = "BTreeMap<String, u64>")]
pub struct Mix {
    classes: [u64; Class::ALL.len()],
    marks: [u64; Mark::ALL.len()],
}

/// Serialized by the words of classes and marks, without zero counts.
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
    /// Adds an instruction `times` times.
    pub fn count(&mut self, class: Class, marks: Marks, times: u64) {
        let cell = &mut self.classes[class as usize];
        *cell = cell.saturating_add(times);
        for mark in marks.iter() {
            let cell = &mut self.marks[mark as usize];
            *cell = cell.saturating_add(times);
        }
    }

    /// Adds another mix.
    pub fn add(&mut self, other: &Mix) {
        let cells = self.classes.iter_mut().chain(&mut self.marks);
        for (cell, more) in cells.zip(other.classes.iter().chain(&other.marks)) {
            *cell = cell.saturating_add(*more);
        }
    }

    /// Adds another mix, multiplied by `times` and divided by `divisor`.
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

    /// All instructions, including padding.
    pub fn instructions(&self) -> u64 {
        self.classes.iter().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// All instructions except padding and invalid ones.
    pub fn working(&self) -> u64 {
        self.instructions().saturating_sub(self.of(Class::Nop)).saturating_sub(self.of(Class::Bad))
    }

    /// Vector (SIMD) instructions.
    pub fn packed(&self) -> u64 {
        Class::ALL.into_iter().filter(|class| class.is_packed()).map(|class| self.of(class)).sum()
    }

    /// Share of vector (SIMD) instructions; `None` without instructions.
    pub fn packed_share(&self) -> Option<f64> {
        ratio(self.packed(), self.working())
    }

    /// Share of vector instructions in floating-point arithmetic; `None` without any. More specific
    /// than [`Mix::packed_share`], since scalar code also copies and clears whole vector registers.
    pub fn packed_math_share(&self) -> Option<f64> {
        let packed = self.with(Mark::PackedMath);
        ratio(packed, packed + self.with(Mark::ScalarMath))
    }

    /// Width of the widest vectors in bits; `None` without vector instructions.
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

/// A disassembled function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Index of the file.
    pub file: u32,
    /// Index of the function in its file.
    pub function: u32,
    /// The instructions, by address.
    pub lines: Vec<AsmLine>,
    /// Loops by address, outer loops before inner ones.
    pub loops: Vec<Loop>,
    /// Whether there was a profile. If not, sample counts have no meaning.
    pub sampled: bool,
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsmLine {
    /// Its address.
    pub address: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Mnemonic, in Intel syntax.
    pub mnemonic: String,
    /// Its operands.
    pub operands: String,
    /// Its class.
    pub class: Class,
    /// Its marks.
    pub marks: Marks,
    /// Target of a direct jump or call.
    pub target: Option<u64>,
    /// Text: name of the target function, if it is another function and known.
    pub target_name: u32,
    /// Whether it is the target of a jump in this function.
    pub is_target: bool,
    /// Text: the source file; empty if unknown.
    pub source: u32,
    /// The source line; 0 if unknown.
    pub line: u32,
    /// Samples at this instruction.
    pub samples: u64,
}

/// A loop: from the target of a backward jump to the last such jump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loop {
    /// Address of its first instruction.
    pub start: u64,
    /// Address after its last instruction.
    pub end: u64,
    /// Whether it contains no other loop.
    pub innermost: bool,
    /// Whether it has more samples than any other innermost loop.
    pub hottest: bool,
    /// Its instruction mix.
    pub mix: Mix,
    /// Samples in it.
    pub samples: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discriminants_are_indexes() {
        for (at, class) in Class::ALL.into_iter().enumerate() {
            assert_eq!(class as usize, at);
        }
        for (at, mark) in Mark::ALL.into_iter().enumerate() {
            assert_eq!(mark as usize, at);
        }
    }

    #[test]
    fn shares_exclude_padding() {
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
