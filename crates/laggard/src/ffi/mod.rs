//! The FFI suite: measures calls of one C library through all bindings, in both build profiles.
//!
//! [`run`] finds interpreters, builds missing bindings, measures, and returns an [`Ffi`].
//! `laggard_core::ffi` computes statistics and `laggard_report::ffi` formats them.

pub(crate) mod binding;
pub(crate) mod build;
pub(crate) mod interpreter;
mod overhead;
mod plan;
pub(crate) mod script;
mod show;
pub(crate) mod suite;

use crate::failure;
use crate::printer::Printer;
use anyhow::ensure;
use binding::Binding;
use build::{Built, NotBuilt, Order, Profile, Workshop};
use interpreter::{Interpreter, in_path};
use laggard_core::ffi::figures;
use laggard_core::model::ffi::{self, Build, Ffi, Skipped};
use laggard_probe::bench::counts_instructions;
use laggard_probe::host;
use laggard_report::number::plural;
pub(crate) use plan::{Own, loaded};
pub(crate) use show::{page, report, show};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};
use suite::Suite;

/// Options of a run of the suite.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) bindings: Vec<Binding>,
    /// Patterns of category names; empty selects all.
    pub(crate) categories: Vec<String>,
    pub(crate) profiles: Vec<Profile>,
    /// Interpreters, as given by the user.
    pub(crate) pythons: Vec<String>,
    pub(crate) is_quick: bool,
    /// Number of calls per function, instead of a time.
    pub(crate) iterations: Option<u64>,
    pub(crate) launches: Option<u32>,
    pub(crate) cpus: Vec<usize>,
    pub(crate) timeout: Duration,
    /// The user's own function.
    pub(crate) own: Option<Own>,
}

impl Wanted {
    /// Whether instructions are counted.
    fn is_counted(&self) -> bool {
        !self.is_quick
    }
}

/// Total time of all batches of the suite for one interpreter. Starting processes and counting
/// instructions comes on top: about the same time again with `--quick`, little otherwise.
const TIME: Duration = Duration::from_secs(200);
const TIME_IF_QUICK: Duration = Duration::from_secs(36);
/// Number of process launches.
const LAUNCHES: u32 = 8;
const LAUNCHES_IF_QUICK: u32 = 3;

/// Builds the bindings and measures them.
pub(crate) fn run(wanted: &Wanted, printer: &Printer) -> anyhow::Result<Ffi> {
    let suite = Suite::load()?;
    // Checks the categories before building.
    let categories = suite.chosen(&wanted.categories)?;
    let started_unix = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0.0, |time| time.as_secs_f64());
    let interpreters = interpreters(&wanted.pythons)?;
    let workshop = Workshop::open()?;
    let stock = Stock::of(wanted, &interpreters, &workshop, printer)?;
    let mut ffi = Ffi {
        command: std::env::args().collect(),
        tool: concat!("laggard ", env!("CARGO_PKG_VERSION")).into(),
        started_unix,
        facts: workshop.facts(),
        profiles: wanted.profiles.iter().map(|profile| about_profile(*profile)).collect(),
        bindings: stock.bindings.iter().map(|binding| about_binding(*binding)).collect(),
        pythons: vec![],
        builds: stock.builds(),
        skipped: stock.skipped.clone(),
        ..Ffi::default()
    };
    let names = names(&interpreters);
    for (interpreter, name) in interpreters.iter().zip(names) {
        let path = interpreter.path.to_string_lossy().into_owned();
        ffi.pythons.push(ffi::Python { name, path, facts: vec![] });
    }
    plan::measure(wanted, &suite, &categories, &interpreters, &stock, &mut ffi, printer)?;
    if !wanted.is_quick && wanted.own.is_none() && wanted.iterations.is_none() {
        let measured = overhead::measure(wanted, &suite, &interpreters[0], &stock, printer);
        ffi.overheads = measured.ok_or_else(failure::interrupted)?;
    }
    let floor = figures(&ffi).floor.map(|at| ffi.bindings[at].name.clone());
    if let Some(floor) = floor.filter(|name| name != Binding::Capi.name()) {
        let capi = Binding::Capi.name();
        ffi.warnings
            .push(format!("the floor ({capi}) was not measured: ratios are relative to {floor}"));
    }
    stock.warn(&mut ffi.warnings);
    Ok(ffi)
}

/// Finds the interpreters. Fails on duplicates.
pub(crate) fn interpreters(wanted: &[String]) -> anyhow::Result<Vec<Interpreter>> {
    let mut found: Vec<Interpreter> = vec![];
    for name in wanted {
        let interpreter = Interpreter::find(name)?;
        ensure!(
            found.iter().all(|other| other.path != interpreter.path),
            "{name} is given twice: {}",
            interpreter.path.display()
        );
        found.push(interpreter);
    }
    Ok(found)
}

/// Display names of interpreters: major and minor version, or more if these are ambiguous.
fn names(interpreters: &[Interpreter]) -> Vec<String> {
    let short = |version: &str| version.split('.').take(2).collect::<Vec<_>>().join(".");
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for interpreter in interpreters {
        *seen.entry(short(&interpreter.version)).or_default() += 1;
    }
    let name = |interpreter: &Interpreter| {
        let name = short(&interpreter.version);
        match seen[&name] {
            1 => name,
            _ => format!("{} {}", interpreter.version, interpreter.path.display()),
        }
    };
    interpreters.iter().map(name).collect()
}

fn about_profile(profile: Profile) -> ffi::Profile {
    ffi::Profile {
        name: profile.name().into(),
        c_flags: profile.c_flags(),
        rust_flags: profile.rust_words(),
    }
}

fn about_binding(binding: Binding) -> ffi::Binding {
    ffi::Binding { name: binding.name().into(), about: binding.about().into(), is_users: false }
}

/// The built bindings of all interpreters and profiles.
pub(crate) struct Stock {
    /// Bindings that were built at least once.
    bindings: Vec<Binding>,
    /// Builds with the index of their interpreter.
    built: Vec<(usize, Built)>,
    /// Additional builds without AVX-512, for counting instructions with valgrind.
    simulated: Vec<(usize, Built)>,
    profiles: Vec<Profile>,
    skipped: Vec<Skipped>,
}

impl Stock {
    pub(crate) fn of(
        wanted: &Wanted,
        interpreters: &[Interpreter],
        workshop: &Workshop,
        printer: &Printer,
    ) -> anyhow::Result<Stock> {
        let mut orders = vec![];
        let kinds: &[bool] = if must_simulate(wanted) { &[false, true] } else { &[false] };
        for &is_simulated in kinds {
            for (python, interpreter) in interpreters.iter().enumerate() {
                for &profile in &wanted.profiles {
                    let order =
                        |&binding| (python, Order { binding, interpreter, profile, is_simulated });
                    orders.extend(wanted.bindings.iter().map(order));
                }
            }
        }
        let bar = printer.steps();
        let began = Instant::now();
        let all: Vec<Order> = orders.iter().map(|(_, order)| *order).collect();
        let answers = workshop.build(&all, &|what| bar.set_message(format!("building {what}")));
        bar.finish_and_clear();
        let mut stock = Stock {
            bindings: vec![],
            built: vec![],
            simulated: vec![],
            profiles: wanted.profiles.clone(),
            skipped: vec![],
        };
        let mut new = 0;
        for ((python, order), answer) in orders.into_iter().zip(answers) {
            new += answer.iter().filter(|built| !built.is_cached).count();
            match answer {
                Ok(built) if order.is_simulated => stock.simulated.push((python, built)),
                Ok(built) => stock.built.push((python, built)),
                Err(_) if order.is_simulated => {}
                Err(why) => stock.skip(&order, python, why),
            }
        }
        if new > 0 {
            let seconds = began.elapsed().as_secs_f64();
            printer.note(&format!("built {} in {seconds:.0} s", plural(new as u64, "module")));
        }
        let is_built = |of: &Binding| stock.built.iter().any(|(_, built)| built.binding == *of);
        stock.bindings = wanted.bindings.iter().copied().filter(is_built).collect();
        if stock.bindings.is_empty() {
            let first = stock.skipped.first();
            let (why, hint) = first.map_or(("", ""), |of| (&of.why, &of.hint));
            let binding = first.map_or("", |of| &of.binding);
            return Err(failure::with_hint(
                format!("no binding could be built: {binding}: {why}"),
                hint.to_owned(),
            ));
        }
        Ok(stock)
    }

    /// Records a skipped binding, once if the reason is the same for both profiles.
    fn skip(&mut self, order: &Order, python: usize, NotBuilt { why, hint }: NotBuilt) {
        let profile = self.profiles.iter().position(|profile| *profile == order.profile);
        let binding = order.binding.name().to_owned();
        let same =
            |of: &&mut Skipped| (&of.binding, of.python, &of.why) == (&binding, python, &why);
        match self.skipped.iter_mut().find(same) {
            Some(known) => known.profile = None,
            None => self.skipped.push(Skipped { binding, python, profile, why, hint }),
        }
    }

    pub(crate) fn get(&self, python: usize, profile: Profile, binding: Binding) -> Option<&Built> {
        of(&self.built, python, profile, binding)
    }

    /// The build for valgrind, if a separate one is needed.
    fn simulated(&self, python: usize, profile: Profile, binding: Binding) -> Option<&Built> {
        of(&self.simulated, python, profile, binding)
    }

    fn builds(&self) -> Vec<Build> {
        let build = |(python, built): &(usize, Built)| Build {
            binding: self.bindings.iter().position(|of| *of == built.binding).unwrap_or_default(),
            python: *python,
            profile: self.profiles.iter().position(|of| *of == built.profile).unwrap_or_default(),
            version: built.record.version.clone(),
            commands: built.record.commands.clone(),
            directory: built.directory.to_string_lossy().into_owned(),
            is_cached: built.is_cached,
            libraries: built.record.libraries(),
        };
        self.built.iter().map(build).collect()
    }

    /// Warns about libraries without debug info or expected frame pointers.
    fn warn(&self, warnings: &mut Vec<String>) {
        for (_, built) in &self.built {
            for library in built.record.libraries() {
                let place = format!(
                    "{} of {} ({})",
                    library.name,
                    built.binding.name(),
                    built.profile.name()
                );
                if library.debug_info == NO_DEBUG_INFO {
                    warnings.push(format!("{place} has no debug info"));
                }
                let (with, of) = library.of_callers;
                if built.profile == Profile::Instrumented && with * 2 < of {
                    warnings.push(format!(
                        "{place} has frame pointers in {with} of {of} non-leaf functions"
                    ));
                }
            }
        }
        warnings.sort();
        warnings.dedup();
    }
}

fn of(all: &[(usize, Built)], python: usize, profile: Profile, binding: Binding) -> Option<&Built> {
    let is_it = |(of, built): &&(usize, Built)| {
        (*of, built.profile, built.binding) == (python, profile, binding)
    };
    all.iter().find(is_it).map(|(_, built)| built)
}

/// Whether instructions are counted by valgrind on a CPU with AVX-512, which valgrind cannot decode.
fn must_simulate(wanted: &Wanted) -> bool {
    let knows_more = || host::cpu_features().iter().any(|feature| feature.starts_with("avx512"));
    wanted.is_counted() && in_path("valgrind").is_some() && knows_more() && !counts_instructions()
}

/// The value of `debug_info` for a library without debug info.
const NO_DEBUG_INFO: &str = "none";

/// Copies a build to a directory of the user, with its program. Each binding has a subdirectory.
pub(crate) fn copy_to(built: &Built, directory: &std::path::Path) -> std::io::Result<PathBuf> {
    let place = clear_copy(built.binding, directory)?;
    std::fs::create_dir_all(&place)?;
    for entry in std::fs::read_dir(&built.directory)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            let to = place.join(entry.file_name());
            // Replaces the file instead of overwriting it, as a running program may have it mapped.
            let coming = place.join(".coming");
            std::fs::copy(entry.path(), &coming)?;
            std::fs::rename(&coming, &to)?;
        }
    }
    Ok(place)
}

/// Removes an earlier copy of a binding, which may be of another profile. Returns its directory.
pub(crate) fn clear_copy(
    binding: Binding,
    directory: &std::path::Path,
) -> std::io::Result<PathBuf> {
    let place = directory.join(format!("{}_impl", script::identifier(binding)));
    // Only directories with a build record were created by laggard.
    if place.join(build::RECORD).is_file() {
        std::fs::remove_dir_all(&place)?;
    }
    Ok(place)
}
