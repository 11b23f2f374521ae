//! Plans and runs the measurement of all statements of the suite.

use super::binding::Binding;
use super::build::{Built, SIMULATED};
use super::interpreter::Interpreter;
use super::suite::{Category, Statement, Suite};
use super::{LAUNCHES, LAUNCHES_IF_QUICK, Stock, TIME, TIME_IF_QUICK, Wanted};
use crate::bench::SEED;
use crate::commands::bench::explain;
use crate::printer::Printer;
use laggard_core::model::ffi::{self, Cell, Ffi, Who};
use laggard_probe::bench::{
    CaseTogether, Effort, Interpreter as Host, StatementTogether, Together, measure_together,
};
use std::path::Path;

/// A function of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Own {
    pub(crate) module: String,
    pub(crate) function: String,
    /// A Python expression: a tuple of arguments, or a single argument.
    pub(crate) arguments: String,
    /// Number of arguments in the tuple; `None` for a single argument.
    pub(crate) count: Option<usize>,
    pub(crate) setup: String,
}

impl Own {
    pub(crate) fn name(&self) -> String {
        format!("{}:{}", self.module, self.function)
    }

    /// The names of its arguments, separated by commas.
    fn names(&self) -> String {
        let name = |at: usize| format!("_laggard_a{at}");
        (0..self.count.unwrap_or(1)).map(name).collect::<Vec<_>>().join(", ")
    }

    /// A call of `_laggard_f`, which `makes_f` defines. Arguments are in variables, as in the suite.
    fn called(&self, makes_f: &str) -> Statement {
        let names = self.names();
        let taken = match self.count {
            Some(0) => String::new(),
            Some(_) => format!("{names}, = {}", self.arguments),
            None => format!("{names} = {}", self.arguments),
        };
        // Last, so that the user's set-up code cannot redefine it.
        let parts = [self.setup.as_str(), &taken, makes_f];
        Statement {
            setup: parts.join("\n"),
            code: format!("_laggard_f({names})"),
            check: None,
            calls: 1,
            note: String::new(),
        }
    }
}

/// Code that loads a built module as `m`. One process loads the modules of both profiles, which have
/// the same name, so each gets a unique name in `sys.modules`.
pub(crate) fn loaded(profile: &str, module: &str, path: &Path) -> String {
    let name = python_text(&format!("laggard_{profile}.{module}"));
    let path = python_text(&path.to_string_lossy());
    format!(
        "def _laggard_load(name, path):
    import importlib.util, sys
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]
m = _laggard_load({name}, {path})"
    )
}

/// A Python string literal. JSON strings are valid in Python.
fn python_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Runs the measurement and adds the results to `ffi`.
pub(super) fn measure(
    wanted: &Wanted,
    suite: &Suite,
    categories: &[&Category],
    interpreters: &[Interpreter],
    stock: &Stock,
    ffi: &mut Ffi,
    printer: &Printer,
) -> anyhow::Result<()> {
    let mut planner =
        Planner { wanted, stock, pythons: interpreters.len(), cases: vec![], cells: vec![] };
    match &wanted.own {
        Some(own) => planner.own(own, ffi),
        None => {
            for category in categories {
                planner.category(category, ffi);
            }
            // The crossover is measured if its category is selected.
            let scanned = suite.scanned()?;
            if categories.iter().any(|category| category.name == scanned.name) {
                let sizes =
                    if wanted.is_quick { &suite.crossover.quick } else { &suite.crossover.sizes };
                for &size in sizes {
                    planner.scan(suite, &scanned.sized(size), ffi);
                }
            }
        }
    }
    let Planner { cases, mut cells, .. } = planner;
    let (time, launches) = match wanted.is_quick {
        true => (TIME_IF_QUICK, LAUNCHES_IF_QUICK),
        false => (TIME, LAUNCHES),
    };
    let launches = wanted.launches.unwrap_or(launches);
    let statements: usize = cases.iter().map(|case| case.statements.len()).sum();
    let share = statements as f64 / statements_of_all(suite, wanted.is_quick) as f64;
    let plan = Together {
        interpreters: interpreters
            .iter()
            .map(|of| Host { python: of.path.clone(), env: vec![] })
            .collect(),
        cases,
        launches,
        // Part of the suite gets its share of the time, with a lower limit.
        effort: wanted
            .iterations
            .map_or_else(|| Effort::Time(time.mul_f64(share.max(LEAST_SHARE))), Effort::Calls),
        cpus: wanted.cpus.clone(),
        seed: SEED,
        timeout: wanted.timeout,
    };
    let bar = printer.steps();
    let measured = measure_together(&plan, &mut |step| {
        let words = match step.launch {
            Some(launch) => format!(
                "process launch {} of {launches}: category {} of {}, {}",
                launch + 1,
                step.done + 1,
                plan.cases.len(),
                step.name
            ),
            None => format!("counting instructions: {}", step.name),
        };
        bar.set_message(words);
    });
    bar.finish_and_clear();
    let measured = measured.map_err(explain)?;
    let times = measured.cases.into_iter().flatten();
    for (cell, times) in cells.iter_mut().zip(times) {
        (cell.launches, cell.counters) = (times.launches, times.counters);
        cell.trouble = times.trouble;
    }
    ffi.cells = cells;
    ffi.facts.extend(measured.facts);
    if !stock.simulated.is_empty() {
        let words = format!("on builds with {SIMULATED}: valgrind cannot decode AVX-512");
        ffi.facts.push(("instructions counted".into(), words));
    }
    for (python, facts) in ffi.pythons.iter_mut().zip(measured.interpreters) {
        python.facts = facts;
    }
    for cell in &ffi.cells {
        if let Some(trouble) = &cell.trouble {
            let who = who_is(ffi, cell.who);
            let category = &ffi.categories[cell.category].name;
            let (python, profile) =
                (&ffi.pythons[cell.python].name, &ffi.profiles[cell.profile].name);
            ffi.warnings.push(format!("{category} through {who} ({profile}, {python}) {trouble}"));
        }
    }
    Ok(())
}

/// Minimum share of the time of the suite.
const LEAST_SHARE: f64 = 0.02;

/// Number of statements in the whole suite for one interpreter.
fn statements_of_all(suite: &Suite, is_quick: bool) -> usize {
    let sizes = if is_quick { &suite.crossover.quick } else { &suite.crossover.sizes };
    let each = Binding::ALL.len() + 1;
    suite.categories.len() * (2 * each + 1) + sizes.len() * (each + 1)
}

fn who_is(ffi: &Ffi, who: Who) -> String {
    match who {
        Who::Loop => "the loop".into(),
        Who::Null => "the null control".into(),
        Who::C => "C".into(),
        Who::Binding(at) => ffi.bindings[at].name.clone(),
    }
}

struct Planner<'a> {
    wanted: &'a Wanted,
    stock: &'a Stock,
    pythons: usize,
    cases: Vec<CaseTogether>,
    /// In the order of all statements.
    cells: Vec<Cell>,
}

impl Planner<'_> {
    /// Starts a case. Following statements belong to it.
    fn begin(&mut self, ffi: &mut Ffi, category: ffi::Category, is_counted: bool) -> usize {
        let name = match category.size {
            Some(size) => format!("{} of {size}", category.name),
            None => category.name.clone(),
        };
        let is_counted = is_counted && self.wanted.is_counted();
        self.cases.push(CaseTogether { name, statements: vec![], is_counted });
        ffi.categories.push(category);
        ffi.categories.len() - 1
    }

    fn cell(&self, at: (usize, usize, usize), who: Who, statement: &Statement) -> Cell {
        let (category, python, profile) = at;
        Cell {
            category,
            python,
            profile,
            who,
            statement: statement.code.trim().to_owned(),
            calls: statement.calls,
            note: statement.note.clone(),
            launches: vec![],
            counters: vec![],
            trouble: None,
        }
    }

    fn put(&mut self, at: (usize, usize, usize), who: Who, name: &str, statement: Statement) {
        self.cells.push(self.cell(at, who, &statement));
        let simulated_setup = self.simulated(at, who, &statement.setup);
        let Some(case) = self.cases.last_mut() else { return };
        case.statements.push(StatementTogether {
            name: name.to_owned(),
            interpreter: at.1,
            setup: statement.setup,
            code: statement.code,
            simulated_setup,
            check: statement.check,
        });
    }

    /// The set-up code with the build for valgrind, if there is a separate one.
    fn simulated(&self, at: (usize, usize, usize), who: Who, setup: &str) -> Option<String> {
        let binding = match who {
            Who::Binding(place) => *self.stock.bindings.get(place)?,
            Who::C => Binding::Capi,
            Who::Loop | Who::Null => return None,
        };
        let (_, python, profile) = at;
        let profile = self.wanted.profiles[profile];
        let text = |built: &Built| python_text(&built.module.to_string_lossy());
        let own = self.stock.simulated(python, profile, binding)?;
        Some(setup.replace(&text(self.stock.get(python, profile, binding)?), &text(own)))
    }

    /// Code that loads a binding as `m`, if it was built.
    fn load(&self, python: usize, profile: usize, binding: Binding) -> Option<String> {
        let profile = self.wanted.profiles[profile];
        let built = self.stock.get(python, profile, binding)?;
        Some(loaded(profile.name(), binding.module(), &built.module))
    }

    /// Adds the empty loop, the null control and all bindings, in all profiles.
    fn category(&mut self, category: &Category, ffi: &mut Ffi) {
        let at = self.begin(ffi, about(category, None), true);
        for python in 0..self.pythons {
            self.put((at, python, 0), Who::Loop, "the loop", empty());
            if let Some(statement) =
                self.load(python, 0, Binding::Capi).and_then(|load| category.in_c(&load))
            {
                self.put((at, python, 0), Who::C, "C", statement);
            }
            for number in 0..self.wanted.profiles.len() {
                self.put((at, python, number), Who::Null, "the null control", category.null());
                for (place, &binding) in self.stock.bindings.iter().enumerate() {
                    let Some(load) = self.load(python, number, binding) else { continue };
                    let who = Who::Binding(place);
                    match category.of(binding, &load) {
                        Ok(statement) => {
                            self.put((at, python, number), who, binding.name(), statement)
                        }
                        Err(why) if number == 0 && python == 0 => {
                            let words = format!(
                                "{} through {} is skipped: {why}",
                                category.name,
                                binding.name()
                            );
                            ffi.warnings.push(words);
                        }
                        Err(_) => {}
                    }
                }
            }
        }
    }

    /// Adds a category of one size, in the first profile, and the same work in C.
    fn scan(&mut self, suite: &Suite, category: &Category, ffi: &mut Ffi) {
        let at = self.begin(ffi, about(category, category.size()), false);
        for python in 0..self.pythons {
            self.put((at, python, 0), Who::Loop, "the loop", empty());
            if let Some(load) = self.load(python, 0, Binding::Capi) {
                self.put((at, python, 0), Who::C, "C", suite.crossover.in_c(category, &load));
            }
            for (place, &binding) in self.stock.bindings.iter().enumerate() {
                let Some(load) = self.load(python, 0, binding) else { continue };
                if let Ok(statement) = category.of(binding, &load) {
                    self.put((at, python, 0), Who::Binding(place), binding.name(), statement);
                }
            }
        }
    }

    /// Adds the user's function, and a C API function that takes the same arguments and does nothing.
    fn own(&mut self, own: &Own, ffi: &mut Ffi) {
        let category = ffi::Category {
            name: own.name(),
            group: "your function".into(),
            about: format!("called with {}", own.arguments),
            calls: 1,
            size: None,
        };
        let at = self.begin(ffi, category, true);
        ffi.bindings.push(ffi::Binding {
            name: own.name(),
            about: "your function".into(),
            is_users: true,
        });
        let users = Who::Binding(ffi.bindings.len() - 1);
        for python in 0..self.pythons {
            self.put((at, python, 0), Who::Loop, "the loop", empty());
            for number in 0..self.wanted.profiles.len() {
                let here = (at, python, number);
                self.put(
                    here,
                    Who::Null,
                    "the null control",
                    own.called(&format!("def _laggard_f({}): pass", own.names())),
                );
                let floor = self.stock.bindings.iter().position(|of| *of == Binding::Capi);
                let load = self.load(python, number, Binding::Capi);
                if let (Some(place), Some(load)) = (floor, load) {
                    let statement = own.called(&format!("{load}\n_laggard_f = m.anything"));
                    self.put(here, Who::Binding(place), Binding::Capi.name(), statement);
                }
                if number == 0 {
                    let load = format!(
                        "import importlib\n_laggard_f = importlib.import_module({})\nfor _laggard_part in {}.split('.'): _laggard_f = getattr(_laggard_f, _laggard_part)",
                        python_text(&own.module),
                        python_text(&own.function)
                    );
                    self.put(here, users, &own.name(), own.called(&load));
                }
            }
        }
    }
}

/// The empty loop.
fn empty() -> Statement {
    Statement { code: "pass".into(), calls: 1, ..Statement::default() }
}

fn about(category: &Category, size: Option<u64>) -> ffi::Category {
    ffi::Category {
        name: category.name.clone(),
        group: category.group.clone(),
        about: category.about.clone(),
        calls: category.calls,
        size,
    }
}
