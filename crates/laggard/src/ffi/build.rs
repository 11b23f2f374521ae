//! Builds bindings: one command a step, in a directory that appears in the cache once it is whole.
//!
//! What is built is named after all that it is built from: sources, commands, compilers, interpreter
//! and processor. What is there already is not built again.

use super::binding::{Binding, File, LIBRARY};
use super::interpreter::{Interpreter, in_path};
use super::script;
use super::suite::Suite;
use anyhow::Context;
use laggard_core::model::code::Code;
use laggard_core::model::ffi::Library;
use laggard_symbols::{Elf, inspect};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use xxhash_rust::xxh3::xxh3_128;

/// The file that says how a directory was made. It is written last.
pub(crate) const RECORD: &str = "built.json";
/// What directories are called while they are made.
const UNFINISHED: &str = ".unfinished-";
/// The library's file, whichever the profile.
const LIBRARY_FILE: &str = "libbenchlib.so";
/// Flags that both profiles share, in two halves.
const OPTIMISE: &str = "-O3 -march=native -mtune=native -g1";
const LINKABLE: &str = "-fvisibility=hidden -fPIC -Wall -Wextra";

/// A way to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Profile {
    /// As fast as the compilers can.
    Fast,
    /// The same with frame pointers, for profilers that follow these.
    Instrumented,
}

impl Profile {
    pub(crate) const ALL: [Profile; 2] = [Profile::Fast, Profile::Instrumented];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Profile::Fast => "fast",
            Profile::Instrumented => "instrumented",
        }
    }

    /// Flags for C and C++.
    pub(crate) fn c_flags(self) -> String {
        match self {
            Profile::Fast => format!("{OPTIMISE} {LINKABLE}"),
            Profile::Instrumented => format!("{OPTIMISE} -fno-omit-frame-pointer {LINKABLE}"),
        }
    }

    /// What the library is called by those that are linked with it. Profiles differ in it, as one
    /// process loads both.
    fn soname(self) -> String {
        format!("libbenchlib-{}.so", self.name())
    }

    fn rust_flags(self) -> &'static str {
        match self {
            Profile::Fast => "",
            Profile::Instrumented => "-C force-frame-pointers=yes",
        }
    }

    /// What cargo is told, for people.
    pub(crate) fn rust_words(self) -> String {
        let shared = "opt-level=3, debug=line-tables-only, codegen-units=1";
        match self {
            Profile::Fast => shared.to_owned(),
            Profile::Instrumented => format!("{shared}, RUSTFLAGS=\"{}\"", self.rust_flags()),
        }
    }

    fn cargo_profile(self) -> &'static str {
        match self {
            Profile::Fast => "release",
            Profile::Instrumented => "instrumented",
        }
    }
}

/// A binding that can be imported.
#[derive(Clone, Debug)]
pub(crate) struct Built {
    pub(crate) binding: Binding,
    pub(crate) profile: Profile,
    pub(crate) directory: PathBuf,
    /// The file that is imported.
    pub(crate) module: PathBuf,
    pub(crate) record: Record,
    /// Whether it was there already.
    pub(crate) is_cached: bool,
}

/// How a directory was made.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Of the package that makes the binding; empty where there is none.
    pub(crate) version: String,
    pub(crate) commands: Vec<String>,
    libraries: Vec<Looked>,
}

/// What a look at a library told, as it is kept.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Looked {
    name: String,
    frame_setups: (u64, u64),
    of_callers: (u64, u64),
    debug_info: String,
}

impl Record {
    pub(crate) fn libraries(&self) -> Vec<Library> {
        let library = |of: &Looked| Library {
            name: of.name.clone(),
            frame_setups: of.frame_setups,
            of_callers: of.of_callers,
            debug_info: of.debug_info.clone(),
        };
        self.libraries.iter().map(library).collect()
    }
}

/// Why a binding is not there, and what helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotBuilt {
    pub(crate) why: String,
    pub(crate) hint: String,
}

impl NotBuilt {
    fn new(why: impl Into<String>, hint: impl Into<String>) -> NotBuilt {
        NotBuilt { why: why.into(), hint: hint.into() }
    }
}

impl From<std::io::Error> for NotBuilt {
    fn from(error: std::io::Error) -> NotBuilt {
        NotBuilt::new(format!("it cannot be written: {error}"), "")
    }
}

/// What to build.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order<'a> {
    pub(crate) binding: Binding,
    pub(crate) interpreter: &'a Interpreter,
    pub(crate) profile: Profile,
    /// Whether it is to run on valgrind's processor.
    pub(crate) is_simulated: bool,
}

impl Order<'_> {
    fn c_flags(&self) -> String {
        c_flags(self.profile, self.is_simulated)
    }

    fn cpp_flags(&self) -> String {
        format!("-std=c++17 {}", self.c_flags())
    }

    /// The way to build, as a name.
    fn way(&self) -> String {
        way(self.profile, self.is_simulated)
    }
}

/// What valgrind does not know is left out where it is to run the code.
pub(crate) const SIMULATED: &str = "-mno-avx512f";

fn c_flags(profile: Profile, is_simulated: bool) -> String {
    let flags = profile.c_flags();
    if is_simulated { format!("{flags} {SIMULATED}") } else { flags }
}

fn way(profile: Profile, is_simulated: bool) -> String {
    let simulated = if is_simulated { "-simulated" } else { "" };
    format!("{}{simulated}", profile.name())
}

/// A program that builds, and its version.
#[derive(Clone, Debug)]
struct Tool {
    words: Vec<String>,
    version: String,
}

impl Tool {
    /// What a variable names, or else a program in PATH.
    fn find(variable: &str, name: &str) -> Option<Tool> {
        let named = std::env::var(variable).ok().filter(|value| !value.trim().is_empty());
        let words = shlex::split(named.as_deref().unwrap_or(name))?;
        let program = words.first()?;
        if !program.contains('/') {
            in_path(program)?;
        }
        let asked = Command::new(program)
            .args(&words[1..])
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .ok()
            .filter(|answer| answer.status.success())?;
        let version = String::from_utf8_lossy(&asked.stdout);
        let version = version.lines().next().unwrap_or_default().to_owned();
        Some(Tool { words, version })
    }
}

/// The place where bindings are built, and kept.
pub(crate) struct Workshop {
    place: PathBuf,
    c: Option<Tool>,
    cpp: Option<Tool>,
    cargo: Option<Tool>,
    /// Code for the processor that builds runs on no other.
    processor: String,
    suite: Suite,
}

/// One command.
struct Step {
    words: Vec<String>,
    env: Vec<(&'static str, String)>,
}

impl Step {
    fn new<T: Into<String>>(words: impl IntoIterator<Item = T>) -> Step {
        Step { words: words.into_iter().map(Into::into).collect(), env: vec![] }
    }

    /// As it would be typed.
    fn text(&self) -> String {
        let env = self.env.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
        let words = self.words.iter().map(|word| quoted(word));
        env.chain(words).collect::<Vec<_>>().join(" ")
    }
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_=+./,:@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), |quoted| quoted.into_owned())
}

/// All that a directory is made from.
struct Recipe {
    /// What the directory is called before its number.
    name: String,
    files: Vec<(String, String)>,
    steps: Vec<Step>,
    /// Compilers, interpreter, package: what the result depends on beside files and steps.
    made_with: String,
    version: String,
    /// Files that there must be in the end.
    results: Vec<String>,
    /// The library, where it is to be there before anything is built.
    library: Option<PathBuf>,
    /// What the library calls itself.
    soname: String,
}

impl Workshop {
    /// In the user's cache.
    pub(crate) fn open() -> anyhow::Result<Workshop> {
        let place = place()?;
        fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
        remove_unfinished(&place);
        Ok(Workshop {
            place,
            c: Tool::find("CC", "cc"),
            cpp: Tool::find("CXX", "c++"),
            cargo: Tool::find("CARGO", "cargo"),
            processor: processor(),
            suite: Suite::load()?,
        })
    }

    /// The compilers, for whoever reads the result.
    pub(crate) fn facts(&self) -> Vec<(String, String)> {
        let fact = |name: &str, tool: &Option<Tool>| {
            let version = tool.as_ref().map_or("none", |tool| &tool.version);
            (name.to_owned(), version.to_owned())
        };
        vec![
            fact("C compiler", &self.c),
            fact("C++ compiler", &self.cpp),
            fact("cargo", &self.cargo),
        ]
    }

    /// Builds what is not there, as many at a time as there are processors. `says` is told what is
    /// begun. Answers come in the order of the orders.
    pub(crate) fn build(
        &self,
        orders: &[Order],
        says: &(dyn Fn(&str) + Sync),
    ) -> Vec<Result<Built, NotBuilt>> {
        let ways: BTreeSet<(Profile, bool)> =
            orders.iter().map(|order| (order.profile, order.is_simulated)).collect();
        let libraries: BTreeMap<(Profile, bool), Result<PathBuf, NotBuilt>> =
            ways.into_iter().map(|way| (way, self.library(way.0, way.1, says))).collect();
        let waiting = Mutex::new(0..orders.len());
        let done = Mutex::new(vec![None; orders.len()]);
        let work = || {
            loop {
                let next = waiting.lock().ok().and_then(|mut waiting| waiting.next());
                let Some(number) = next else { break };
                let order = &orders[number];
                let built = match libraries.get(&(order.profile, order.is_simulated)) {
                    Some(Ok(library)) => self.one(order, library, says),
                    Some(Err(why)) => Err(why.clone()),
                    None => Err(NotBuilt::new("its library is not built", "")),
                };
                if let Ok(mut done) = done.lock() {
                    done[number] = Some(built);
                }
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..threads.min(orders.len()) {
                scope.spawn(work);
            }
        });
        let done = done.into_inner().unwrap_or_default().into_iter();
        done.map(|built| built.unwrap_or_else(|| Err(NotBuilt::new("its builder failed", ""))))
            .collect()
    }

    /// The directory of the library.
    fn library(
        &self,
        profile: Profile,
        is_simulated: bool,
        says: &dyn Fn(&str),
    ) -> Result<PathBuf, NotBuilt> {
        let c = self.c_compiler()?;
        let named = format!("-Wl,-soname,{}", profile.soname());
        let mut words = c.words.clone();
        words.extend(split(&c_flags(profile, is_simulated)));
        let more = ["-shared", &named, "-o", LIBRARY_FILE, "benchlib.c", "-lm"];
        words.extend(more.map(String::from));
        let recipe = Recipe {
            name: format!("benchlib-{}", way(profile, is_simulated)),
            files: owned(&LIBRARY),
            steps: vec![Step::new(words)],
            made_with: format!("{}\n{}", c.version, self.processor),
            version: String::new(),
            results: vec![LIBRARY_FILE.into()],
            library: None,
            soname: profile.soname(),
        };
        self.make(&recipe, says).map(|(directory, ..)| directory)
    }

    fn one(&self, order: &Order, library: &Path, says: &dyn Fn(&str)) -> Result<Built, NotBuilt> {
        let recipe = self.recipe(order, library)?;
        let (directory, record, is_cached) = self.make(&recipe, says)?;
        let Order { binding, profile, .. } = *order;
        let module = directory.join(module_file(binding, order.interpreter));
        Ok(Built { binding, profile, directory, module, record, is_cached })
    }

    fn recipe(&self, order: &Order, library: &Path) -> Result<Recipe, NotBuilt> {
        let &Order { binding, interpreter, profile, .. } = order;
        let mut made_with = format!("{}\n{}\n", interpreter.identity(), library.display());
        let mut version = String::new();
        let mut include = vec!["-I.".to_owned()];
        let mut package = None;
        if let Some(name) = binding.package() {
            let found = interpreter.package(name).ok_or_else(|| {
                let python = interpreter.path.display();
                NotBuilt::new(
                    format!("{python} has no package {name}"),
                    format!("{python} -m pip install {name}"),
                )
            })?;
            version.clone_from(&found.version);
            if !found.include.is_empty() {
                include.push(format!("-I{}", found.include));
            }
            package = Some(found);
        }
        let is_compiled = !matches!(
            binding,
            Binding::Ctypes | Binding::CtypesPydll | Binding::CffiAbi | Binding::Pyo3
        );
        if is_compiled && !interpreter.has_headers {
            let directory = interpreter.include.first().map_or("", String::as_str);
            return Err(NotBuilt::new(
                format!(
                    "{} has no headers: there is no {directory}/Python.h",
                    interpreter.path.display()
                ),
                "install them, on Debian and Ubuntu with `apt-get install python3-dev`",
            ));
        }
        include.extend(interpreter.include.iter().map(|path| format!("-I{path}")));
        let python = interpreter.path.to_string_lossy().into_owned();
        let mut steps = vec![];
        let result = module_file(binding, interpreter);
        let mut results = vec![result.clone()];
        match binding {
            Binding::Capi => steps.push(self.compile(order, &include, "bench_capi.c", &result)?),
            Binding::Cython => {
                let words = ["-m", "cython", "-3", "bench_cython.pyx", "-o", "bench_cython.c"];
                steps.push(Step::new([&*python].into_iter().chain(words)));
                steps.push(self.compile(order, &include, "bench_cython.c", &result)?);
            }
            Binding::CffiApi => {
                const SOURCE: &str = "_bench_cffi_api.c";
                let compiled = format!("_bench_cffi_api{}", interpreter.suffix);
                steps.push(Step::new([&*python, "emit.py", "cdef.h", SOURCE]));
                steps.push(self.compile(order, &include, SOURCE, &compiled)?);
                results.push(compiled);
            }
            Binding::Pybind11 => {
                // Without it, every count of references asks whether the GIL is held.
                let flags = [include, vec!["-DNDEBUG".into()]].concat();
                let cpp = self.cpp_compiler()?;
                steps.push(compiled(
                    cpp,
                    &order.cpp_flags(),
                    &flags,
                    &["bench_pybind11.cpp"],
                    &result,
                ));
            }
            Binding::Nanobind => {
                let package = package.map_or("", |package| &package.source);
                steps.extend(self.nanobind(order, &include, package, &result)?);
            }
            Binding::Pyo3 => {
                let cargo = self.cargo.as_ref().ok_or_else(|| {
                    NotBuilt::new("there is no cargo", "install Rust, which brings cargo")
                })?;
                let _ = write!(made_with, "{}\n{}\n", cargo.version, rustc_version());
                version = binding.locked_version("pyo3");
                steps.extend(self.with_cargo(cargo, order, &result));
            }
            Binding::Ctypes | Binding::CtypesPydll | Binding::CffiAbi => {}
        }
        for tool in [&self.c, &self.cpp].into_iter().flatten() {
            made_with.push_str(&tool.version);
        }
        let mut files = owned(binding.sources());
        files.push((LIBRARY[0].0.to_owned(), LIBRARY[0].1.to_owned()));
        let script = script::of(&self.suite, binding, &result)
            .map_err(|error| NotBuilt::new(format!("its script cannot be written: {error}"), ""))?;
        files.push((script::name(binding), script));
        Ok(Recipe {
            name: format!("{}-{}-{}", binding.name(), interpreter.tag, order.way()),
            files,
            steps,
            made_with: made_with + &self.processor,
            version,
            results,
            library: Some(library.join(LIBRARY_FILE)),
            soname: profile.soname(),
        })
    }

    fn c_compiler(&self) -> Result<&Tool, NotBuilt> {
        self.c.as_ref().ok_or_else(|| {
            NotBuilt::new(
                "there is no C compiler",
                "install one, on Debian and Ubuntu with `apt-get install gcc libc6-dev`",
            )
        })
    }

    fn compile(
        &self,
        order: &Order,
        flags: &[String],
        source: &str,
        result: &str,
    ) -> Result<Step, NotBuilt> {
        Ok(compiled(self.c_compiler()?, &order.c_flags(), flags, &[source], result))
    }

    fn cpp_compiler(&self) -> Result<&Tool, NotBuilt> {
        self.cpp.as_ref().ok_or_else(|| {
            NotBuilt::new(
                "there is no C++ compiler",
                "install one, on Debian and Ubuntu with `apt-get install g++`",
            )
        })
    }

    /// As its own build does for a module that is optimised: its sources are one unit, and what is
    /// not used goes. The domain keeps modules of both profiles apart in a process that loads both.
    fn nanobind(
        &self,
        order: &Order,
        include: &[String],
        source: &str,
        result: &str,
    ) -> Result<[Step; 3], NotBuilt> {
        let cpp = self.cpp_compiler()?;
        let domain = format!("-DNB_DOMAIN={}", order.profile.name());
        let sections = ["-ffunction-sections", "-fdata-sections"];
        let object = |aliasing: &[&str], from: &str, to: &str| {
            let mut words = cpp.words.clone();
            words.extend(split(&order.cpp_flags()));
            words.extend(["-DNDEBUG", "-DNB_COMPACT_ASSERTIONS", &domain].map(String::from));
            words.extend(aliasing.iter().chain(&sections).map(|&flag| flag.to_owned()));
            words.extend(include.iter().cloned());
            words.push(format!("-I{source}/../ext/robin_map/include"));
            words.extend(["-c", from, "-o", to].map(String::from));
            Step::new(words)
        };
        const LIBRARY: &str = "nb_combined.o";
        const MODULE: &str = "bench_nanobind.o";
        let mut link = cpp.words.clone();
        link.extend(["-shared", MODULE, LIBRARY].map(String::from));
        link.extend(linked(result));
        link.push("-Wl,--gc-sections".into());
        Ok([
            object(&["-fno-strict-aliasing"], &format!("{source}/nb_combined.cpp"), LIBRARY),
            object(&[], "bench_nanobind.cpp", MODULE),
            Step::new(link),
        ])
    }

    fn with_cargo(&self, cargo: &Tool, order: &Order, result: &str) -> [Step; 2] {
        let &Order { interpreter, profile, .. } = order;
        // Its dependencies stay built when only this binding changes.
        let target = self.place.join(format!("target-{}-{}", interpreter.tag, profile.name()));
        let mut build = Step::new(cargo.words.clone());
        let words = ["build", "--quiet", "--locked", "--profile", profile.cargo_profile()];
        build.words.extend(words.map(String::from));
        build.env = vec![
            ("BENCHLIB_DIR", ".".into()),
            ("CARGO_TARGET_DIR", target.to_string_lossy().into_owned()),
            ("PYO3_PYTHON", interpreter.path.to_string_lossy().into_owned()),
            ("PYO3_BUILD_EXTENSION_MODULE", "1".into()),
            ("RUSTFLAGS", profile.rust_flags().into()),
        ];
        let library = target.join(profile.cargo_profile()).join("libbench_pyo3.so");
        [build, Step::new(["cp", &*library.to_string_lossy(), result])]
    }

    /// The directory of a recipe, how it was made, and whether it was there.
    fn make(
        &self,
        recipe: &Recipe,
        says: &dyn Fn(&str),
    ) -> Result<(PathBuf, Record, bool), NotBuilt> {
        let directory = self.place.join(format!("{}-{:016x}", recipe.name, recipe.number()));
        if let Some(record) = recipe.is_there(&directory).then(|| recorded(&directory)).flatten() {
            return Ok((directory, record, true));
        }
        says(&recipe.name);
        // Two orders may be for the same: interpreters of one version in two places.
        static BEGUN: AtomicUsize = AtomicUsize::new(0);
        let number = BEGUN.fetch_add(1, Ordering::Relaxed);
        let name = format!("{UNFINISHED}{}-{number}-{}", recipe.name, std::process::id());
        let unfinished = self.place.join(name);
        let made = recipe.follow(&unfinished).and_then(|record| {
            let text = serde_json::to_vec_pretty(&record).map_err(std::io::Error::other)?;
            fs::write(unfinished.join(RECORD), text)?;
            Ok(record)
        });
        let made = made.and_then(|record| match fs::rename(&unfinished, &directory) {
            Ok(()) => Ok(record),
            // Somebody else was faster, or it was damaged.
            Err(_) if recipe.is_there(&directory) && recorded(&directory).is_some() => Ok(record),
            Err(_) => {
                fs::remove_dir_all(&directory)?;
                fs::rename(&unfinished, &directory)?;
                Ok(record)
            }
        });
        let _ = fs::remove_dir_all(&unfinished);
        made.map(|record| (directory, record, false))
    }
}

impl Recipe {
    /// What it is made from, as a number.
    fn number(&self) -> u64 {
        let mut all =
            format!("{}\n{}\n{}\n", env!("CARGO_PKG_VERSION"), self.made_with, self.version);
        for (name, text) in &self.files {
            let _ = write!(all, "{name} {}\n{text}\n", text.len());
        }
        for step in &self.steps {
            let _ = writeln!(all, "{}", step.text());
        }
        xxh3_128(all.as_bytes()) as u64
    }

    /// Whether all is there that it makes.
    fn is_there(&self, directory: &Path) -> bool {
        let library = self.library.as_ref().map(|_| LIBRARY_FILE);
        let mut results = self.results.iter().map(String::as_str).chain(library);
        results.all(|name| directory.join(name).is_file())
    }

    /// Makes the directory and says how.
    fn follow(&self, directory: &Path) -> Result<Record, NotBuilt> {
        let _ = fs::remove_dir_all(directory);
        fs::create_dir_all(directory)?;
        for (name, text) in &self.files {
            let path = directory.join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(path, text)?;
        }
        if let Some(library) = &self.library {
            // The same file for all bindings: a process that loads several has one. Compilers look for
            // it by the one name, what they link by the other.
            for name in [LIBRARY_FILE, &self.soname] {
                let here = directory.join(name);
                if fs::hard_link(library, &here).is_err() {
                    fs::copy(library, &here)?;
                }
            }
        }
        for step in &self.steps {
            run(step, directory)?;
        }
        if let Some(missing) = self.results.iter().find(|name| !directory.join(name).is_file()) {
            return Err(NotBuilt::new(format!("its build left no {missing}"), ""));
        }
        let mut libraries = vec![];
        for name in self
            .results
            .iter()
            .map(String::as_str)
            .chain(self.library.as_ref().map(|_| LIBRARY_FILE))
        {
            if name.ends_with(".so") {
                libraries.push(look(&directory.join(name), name)?);
            }
        }
        let commands = self.steps.iter().map(Step::text).collect();
        Ok(Record { version: self.version.clone(), commands, libraries })
    }
}

/// How variables begin that change what cargo builds.
const OF_OTHER_BUILDS: [&str; 4] =
    ["CARGO_PROFILE_", "CARGO_BUILD_", "CARGO_TARGET_", "CARGO_ENCODED_"];

/// Runs a command to its end; what it said is part of why it failed.
fn run(step: &Step, directory: &Path) -> Result<(), NotBuilt> {
    let mut command = Command::new(&step.words[0]);
    command.args(&step.words[1..]).current_dir(directory).stdin(Stdio::null());
    // What the user set for other builds is no part of this one.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if OF_OTHER_BUILDS.iter().any(|start| text.starts_with(start)) {
            command.env_remove(&name);
        }
    }
    command.envs(step.env.iter().map(|(name, value)| (name, value)));
    let program = Path::new(&step.words[0]).file_name().unwrap_or_default().to_string_lossy();
    let ran = command
        .output()
        .map_err(|error| NotBuilt::new(format!("cannot run {program}: {error}"), ""))?;
    if ran.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ran.stderr);
    let is_telling = |line: &&str| line.contains("error") || line.contains("Error");
    let line = said.lines().find(is_telling).or(said.lines().last()).unwrap_or("").trim();
    Err(NotBuilt::new(format!("{program} failed: {line}"), step.text()))
}

fn look(path: &Path, name: &str) -> Result<Looked, NotBuilt> {
    let elf = Elf::open(path)
        .map_err(|error| NotBuilt::new(format!("{name} is no library: {error}"), ""))?;
    let mut code = Code::default();
    let file = inspect(&elf, name, &mut code.texts);
    let frames = file.build.frame_pointers.unwrap_or_default();
    Ok(Looked {
        name: name.to_owned(),
        frame_setups: (frames.with, frames.of),
        of_callers: (frames.callers_with, frames.callers),
        debug_info: file.build.debug.level.words().to_owned(),
    })
}

/// How a directory was made; none unless it is whole.
fn recorded(directory: &Path) -> Option<Record> {
    serde_json::from_slice(&fs::read(directory.join(RECORD)).ok()?).ok()
}

fn compiled(tool: &Tool, profile: &str, flags: &[String], sources: &[&str], result: &str) -> Step {
    let mut words = tool.words.clone();
    words.extend(split(profile));
    words.extend(flags.iter().cloned());
    words.push("-shared".into());
    words.extend(sources.iter().map(|&source| source.to_owned()));
    words.extend(linked(result));
    Step::new(words)
}

/// The end of a command that links a module, which finds the library beside itself.
fn linked(result: &str) -> [String; 5] {
    ["-o", result, "-L.", "-lbenchlib", "-Wl,-rpath,$ORIGIN"].map(String::from)
}

/// The file that Python imports.
fn module_file(binding: Binding, interpreter: &Interpreter) -> String {
    let suffix = if binding.is_python() { ".py" } else { &interpreter.suffix };
    format!("{}{suffix}", binding.module())
}

fn split(flags: &str) -> impl Iterator<Item = String> {
    flags.split(' ').filter(|word| !word.is_empty()).map(str::to_owned)
}

fn owned(files: &[File]) -> Vec<(String, String)> {
    files.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect()
}

fn rustc_version() -> String {
    Tool::find("RUSTC", "rustc").map(|tool| tool.version).unwrap_or_default()
}

/// Model and abilities of the processor, as far as the system tells.
fn processor() -> String {
    let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = |name: &str| about.lines().find(|line| line.starts_with(name)).unwrap_or("");
    format!("{}\n{}", line("model name"), line("flags"))
}

/// Where bindings are built, and kept.
fn place() -> anyhow::Result<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    let cache =
        cache.context("there is no cache directory: neither XDG_CACHE_HOME nor HOME is set")?;
    Ok(cache.join("laggard/ffi"))
}

/// Removes all that was built; says how many bytes that were.
pub(crate) fn clear() -> anyhow::Result<u64> {
    let place = place()?;
    if !place.exists() {
        return Ok(0);
    }
    let bytes = size_of_tree(&place);
    fs::remove_dir_all(&place).with_context(|| format!("cannot remove {}", place.display()))?;
    Ok(bytes)
}

fn size_of_tree(path: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(path) else { return 0 };
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(data) if data.is_dir() => size_of_tree(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}

/// Removes what somebody began to build who is no longer there.
fn remove_unfinished(place: &Path) {
    let Ok(entries) = fs::read_dir(place) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(pid) = name.strip_prefix(UNFINISHED).and_then(|rest| rest.rsplit('-').next())
        else {
            continue;
        };
        if !Path::new("/proc").join(pid).exists() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
