//! The FFI suite: one C library behind every binding, in both build profiles, measured together.
//!
//! [`run`] finds interpreters, builds what is not built, measures, and gives an [`Ffi`]. What it means
//! is worked out by `laggard_core::ffi`, and shown by `laggard_report::ffi`.

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

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) bindings: Vec<Binding>,
    /// Patterns of categories' names; none is all.
    pub(crate) categories: Vec<String>,
    pub(crate) profiles: Vec<Profile>,
    /// As the user named them.
    pub(crate) pythons: Vec<String>,
    pub(crate) is_quick: bool,
    /// Calls of every function, in place of a time.
    pub(crate) iterations: Option<u64>,
    pub(crate) launches: Option<u32>,
    pub(crate) cpus: Vec<usize>,
    pub(crate) timeout: Duration,
    /// A function of the user's.
    pub(crate) own: Option<Own>,
}

impl Wanted {
    /// Whether instructions are counted.
    fn is_counted(&self) -> bool {
        !self.is_quick
    }
}

/// Time for all batches of the whole suite, for one interpreter; what is beside it, the start of
/// processes and the counting, takes about as long again when it is quick and little when it is not.
const TIME: Duration = Duration::from_secs(200);
const TIME_IF_QUICK: Duration = Duration::from_secs(36);
/// Processes one after the other.
const LAUNCHES: u32 = 8;
const LAUNCHES_IF_QUICK: u32 = 3;

/// Builds and measures.
pub(crate) fn run(wanted: &Wanted, printer: &Printer) -> anyhow::Result<Ffi> {
    let suite = Suite::load()?;
    // Before anything is built for nothing.
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
        ffi.warnings.push(format!("the floor, {capi}, is not measured: ratios are to {floor}"));
    }
    stock.warn(&mut ffi.warnings);
    Ok(ffi)
}

/// The interpreters that are asked for.
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

/// What they are called in tables: as much of the version as tells them apart.
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

/// What is built, for every interpreter and profile.
pub(crate) struct Stock {
    /// Those that there is at least one of.
    bindings: Vec<Binding>,
    /// By interpreter, in the order they were asked for.
    built: Vec<(usize, Built)>,
    /// The same for a processor that knows less, where instructions are to be counted on one.
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

    /// Says once for both profiles what keeps a binding away.
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

    /// The one that a simulated processor can run, where there is one of its own for that.
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

    /// What a look at the libraries should have shown and did not.
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
                        "{place} has frame pointers in {with} of {of} functions that call others"
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

/// Whether instructions are counted by valgrind, which knows fewer of them than this processor.
fn must_simulate(wanted: &Wanted) -> bool {
    let knows_more = || host::cpu_features().iter().any(|feature| feature.starts_with("avx512"));
    wanted.is_counted() && in_path("valgrind").is_some() && knows_more() && !counts_instructions()
}

/// What `inspect` says of a library without any.
const NO_DEBUG_INFO: &str = "none";

/// Puts what is built where the user wants it: a directory a binding, with its program.
pub(crate) fn copy_to(built: &Built, directory: &std::path::Path) -> std::io::Result<PathBuf> {
    let place = clear_copy(built.binding, directory)?;
    std::fs::create_dir_all(&place)?;
    for entry in std::fs::read_dir(&built.directory)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            let to = place.join(entry.file_name());
            // A library that a program has mapped is replaced, not written into.
            let coming = place.join(".coming");
            std::fs::copy(entry.path(), &coming)?;
            std::fs::rename(&coming, &to)?;
        }
    }
    Ok(place)
}

/// Removes what was put there of a binding before: it may be of another profile. Says where that is.
pub(crate) fn clear_copy(
    binding: Binding,
    directory: &std::path::Path,
) -> std::io::Result<PathBuf> {
    let place = directory.join(format!("{}_impl", script::identifier(binding)));
    // What has no record is not ours to remove.
    if place.join(build::RECORD).is_file() {
        std::fs::remove_dir_all(&place)?;
    }
    Ok(place)
}
