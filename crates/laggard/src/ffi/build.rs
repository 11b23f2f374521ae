//! Builds bindings in a cache directory. A directory gets its final name when the build is complete.
//!
//! The name contains a hash of all inputs: sources, commands, compilers, interpreter and CPU. Existing
//! builds are reused.

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

/// The file that describes a build. It is written last.
pub(crate) const RECORD: &str = "built.json";
/// Prefix of directories with unfinished builds.
const UNFINISHED: &str = ".unfinished-";
/// File name of the C library in all profiles.
const LIBRARY_FILE: &str = "libbenchlib.so";
/// Flags of both profiles, in two parts.
const OPTIMISE: &str = "-O3 -march=native -mtune=native -g1";
const LINKABLE: &str = "-fvisibility=hidden -fPIC -Wall -Wextra";

/// A build profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Profile {
    /// Fully optimized.
    Fast,
    /// Fully optimized with frame pointers, for profilers that need them.
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

    /// The soname of the library. It differs between profiles because one process loads both.
    fn soname(self) -> String {
        format!("libbenchlib-{}.so", self.name())
    }

    fn rust_flags(self) -> &'static str {
        match self {
            Profile::Fast => "",
            Profile::Instrumented => "-C force-frame-pointers=yes",
        }
    }

    /// Cargo settings, for the report.
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

/// A built binding.
#[derive(Clone, Debug)]
pub(crate) struct Built {
    pub(crate) binding: Binding,
    pub(crate) profile: Profile,
    pub(crate) directory: PathBuf,
    /// The module file.
    pub(crate) module: PathBuf,
    pub(crate) record: Record,
    /// Whether it was found in the cache.
    pub(crate) is_cached: bool,
}

/// The content of `built.json`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Version of the package for the binding; empty if there is none.
    pub(crate) version: String,
    pub(crate) commands: Vec<String>,
    libraries: Vec<Looked>,
}

/// Properties of a built library, as stored in `built.json`.
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

/// The reason why a binding could not be built, with a hint.
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
        NotBuilt::new(format!("cannot write the build directory: {error}"), "")
    }
}

/// A binding to build.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order<'a> {
    pub(crate) binding: Binding,
    pub(crate) interpreter: &'a Interpreter,
    pub(crate) profile: Profile,
    /// Whether it is for valgrind, without AVX-512.
    pub(crate) is_simulated: bool,
}

impl Order<'_> {
    fn c_flags(&self) -> String {
        c_flags(self.profile, self.is_simulated)
    }

    fn cpp_flags(&self) -> String {
        format!("-std=c++17 {}", self.c_flags())
    }

    /// The build variant, for directory names.
    fn way(&self) -> String {
        way(self.profile, self.is_simulated)
    }
}

/// Flag for builds that valgrind runs: it cannot decode AVX-512.
pub(crate) const SIMULATED: &str = "-mno-avx512f";

fn c_flags(profile: Profile, is_simulated: bool) -> String {
    let flags = profile.c_flags();
    if is_simulated { format!("{flags} {SIMULATED}") } else { flags }
}

fn way(profile: Profile, is_simulated: bool) -> String {
    let simulated = if is_simulated { "-simulated" } else { "" };
    format!("{}{simulated}", profile.name())
}

/// A build tool with its version.
#[derive(Clone, Debug)]
struct Tool {
    words: Vec<String>,
    version: String,
}

impl Tool {
    /// The program in an environment variable, or else in PATH.
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

/// Builds bindings and caches them.
pub(crate) struct Workshop {
    place: PathBuf,
    c: Option<Tool>,
    cpp: Option<Tool>,
    cargo: Option<Tool>,
    /// Part of the cache key, because code is built for this CPU.
    processor: String,
    suite: Suite,
}

/// One build command.
struct Step {
    words: Vec<String>,
    env: Vec<(&'static str, String)>,
}

impl Step {
    fn new<T: Into<String>>(words: impl IntoIterator<Item = T>) -> Step {
        Step { words: words.into_iter().map(Into::into).collect(), env: vec![] }
    }

    /// The command line, quoted for a shell.
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

/// All inputs of a build.
struct Recipe {
    /// Name of the directory, without the hash.
    name: String,
    files: Vec<(String, String)>,
    steps: Vec<Step>,
    /// Other inputs: compilers, interpreter, package.
    made_with: String,
    version: String,
    /// Files that the build must produce.
    results: Vec<String>,
    /// The C library, which is linked into the directory before the build.
    library: Option<PathBuf>,
    /// The soname of the C library.
    soname: String,
}

impl Workshop {
    /// Opens the cache directory of the user.
    pub(crate) fn open() -> anyhow::Result<Workshop> {
        let place = place()?;
        fs::create_dir_all(&place).with_context(|| format!("cannot create {}", place.display()))?;
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

    /// Versions of the build tools, for the report.
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

    /// Builds missing bindings in parallel. Calls `says` with the name of each build that starts.
    /// Results have the order of `orders`.
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
                    None => Err(NotBuilt::new("its library was not built", "")),
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
        done.map(|built| built.unwrap_or_else(|| Err(NotBuilt::new("the build failed", ""))))
            .collect()
    }

    /// Builds the C library and returns its directory.
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
                    format!("package {name} is not installed for {python}"),
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
                    "{} has no headers: {directory}/Python.h does not exist",
                    interpreter.path.display()
                ),
                "install the headers; on Debian and Ubuntu: apt-get install python3-dev",
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
                // Without NDEBUG, pybind11 checks the GIL on each reference count change.
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
                    NotBuilt::new("cargo not found", "install Rust, which includes cargo")
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
            .map_err(|error| NotBuilt::new(format!("cannot write its script: {error}"), ""))?;
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
                "no C compiler found",
                "install a C compiler; on Debian and Ubuntu: apt-get install gcc libc6-dev",
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
                "no C++ compiler found",
                "install a C++ compiler; on Debian and Ubuntu: apt-get install g++",
            )
        })
    }

    /// Builds like nanobind's own optimized build: its sources are one translation unit, and unused
    /// sections are removed. The domain separates the modules of both profiles in one process.
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
        // A shared target directory, so that dependencies are not rebuilt when the binding changes.
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

    /// Builds a recipe unless it is cached. Returns the directory, its record, and whether it was
    /// cached.
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
        // Two orders may have the same recipe, for example two interpreters of the same version.
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
            // Another process finished first, or the existing directory is damaged.
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
    /// A hash of all inputs.
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

    /// Whether a directory has all results.
    fn is_there(&self, directory: &Path) -> bool {
        let library = self.library.as_ref().map(|_| LIBRARY_FILE);
        let mut results = self.results.iter().map(String::as_str).chain(library);
        results.all(|name| directory.join(name).is_file())
    }

    /// Runs the build in a new directory.
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
            // A hard link to the same file for all bindings, so that a process loads it only once.
            // Linkers use the file name, the dynamic loader uses the soname.
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
            return Err(NotBuilt::new(format!("the build did not produce {missing}"), ""));
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

/// Prefixes of environment variables that change the output of cargo.
const OF_OTHER_BUILDS: [&str; 4] =
    ["CARGO_PROFILE_", "CARGO_BUILD_", "CARGO_TARGET_", "CARGO_ENCODED_"];

/// Runs a command. On failure, the reason contains its error message.
fn run(step: &Step, directory: &Path) -> Result<(), NotBuilt> {
    let mut command = Command::new(&step.words[0]);
    command.args(&step.words[1..]).current_dir(directory).stdin(Stdio::null());
    // Settings for other cargo builds must not affect this one.
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
        .map_err(|error| NotBuilt::new(format!("{name} is not a library: {error}"), ""))?;
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

/// The record of a build; `None` if it is incomplete.
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

/// The linker arguments of a module, which finds the library in its own directory.
fn linked(result: &str) -> [String; 5] {
    ["-o", result, "-L.", "-lbenchlib", "-Wl,-rpath,$ORIGIN"].map(String::from)
}

/// The file name of the module.
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

/// Model and features of the CPU, if known.
fn processor() -> String {
    let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = |name: &str| about.lines().find(|line| line.starts_with(name)).unwrap_or("");
    format!("{}\n{}", line("model name"), line("flags"))
}

/// The cache directory for builds.
fn place() -> anyhow::Result<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    let cache = cache.context("no cache directory: neither XDG_CACHE_HOME nor HOME is set")?;
    Ok(cache.join("laggard/ffi"))
}

/// Removes all builds. Returns their size in bytes.
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

/// Removes unfinished builds of processes that no longer exist.
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
