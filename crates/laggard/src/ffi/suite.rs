//! The definition of the FFI suite: `subjects/ffi/suite.toml`, embedded in the program.

use super::binding::Binding;
use crate::failure;
use anyhow::Context;
use laggard_report::code::glob;
use serde::Deserialize;
use std::collections::BTreeMap;

const TEXT: &str = include_str!("../../../../subjects/ffi/suite.toml");

/// The whole suite.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Suite {
    /// Helper functions for the values of categories.
    helpers: String,
    #[serde(rename = "category")]
    pub(crate) categories: Vec<Category>,
    pub(crate) crossover: Crossover,
    pub(crate) overhead: Workload,
}

/// A Python statement that does the same through each binding.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Category {
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) about: String,
    /// Number of arguments of the function.
    arguments: usize,
    /// Helper functions of the suite, if the values use them.
    #[serde(skip)]
    helpers: String,
    /// Value of the variable `n`, the number of elements.
    n: Option<u64>,
    #[serde(default)]
    values: String,
    /// Names of values shared by all statements of an interpreter.
    #[serde(default)]
    shared: Vec<String>,
    setup: String,
    call: String,
    check: Option<String>,
    /// Additional set-up code of the null control.
    #[serde(default)]
    null: String,
    #[serde(default = "one")]
    pub(crate) calls: u64,
    /// The same calls in a C loop, in the module of the C API binding.
    c: Option<InC>,
    #[serde(default)]
    own: BTreeMap<String, Own>,
    #[serde(default)]
    cannot: BTreeMap<String, String>,
}

/// Overrides of a category for one binding.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    setup: Option<String>,
    call: Option<String>,
    check: Option<String>,
    #[serde(default)]
    note: String,
}

/// Calls made by C, with their number per statement.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct InC {
    setup: String,
    call: String,
    calls: u64,
}

/// Measures from which number of elements the work takes longer than the call.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Crossover {
    category: String,
    pub(crate) sizes: Vec<u64>,
    pub(crate) quick: Vec<u64>,
    c: String,
    c_setup: String,
}

/// The category for measuring the overhead of profilers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Workload {
    pub(crate) category: String,
}

/// The statement of a category for one binding or control.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Statement {
    pub(crate) setup: String,
    pub(crate) code: String,
    /// Expression compared with other bindings: `None` disables the check, an empty string compares
    /// the result of the statement.
    pub(crate) check: Option<String>,
    /// Number of calls per statement.
    pub(crate) calls: u64,
    /// How the statement differs from other bindings.
    pub(crate) note: String,
}

fn one() -> u64 {
    1
}

impl Suite {
    pub(crate) fn load() -> anyhow::Result<Suite> {
        let mut suite: Suite =
            toml::from_str(TEXT).context("cannot read the built-in FFI suite")?;
        for category in suite.categories.iter_mut().filter(|of| of.values.contains("aligned(")) {
            category.helpers.clone_from(&suite.helpers);
        }
        Ok(suite)
    }

    /// The categories whose name or group matches any of the patterns; all without patterns.
    pub(crate) fn chosen(&self, patterns: &[String]) -> anyhow::Result<Vec<&Category>> {
        let fits =
            |pattern: &str, of: &Category| glob(pattern, &of.name) || glob(pattern, &of.group);
        for pattern in patterns {
            if !self.categories.iter().any(|category| fits(pattern, category)) {
                let names: Vec<&str> = self.categories.iter().map(|of| of.name.as_str()).collect();
                return Err(failure::with_hint(
                    format!("no category matches {pattern}"),
                    format!("categories: {}", names.join(", ")),
                ));
            }
        }
        let is_chosen = |of: &&Category| {
            patterns.is_empty() || patterns.iter().any(|pattern| fits(pattern, of))
        };
        Ok(self.categories.iter().filter(is_chosen).collect())
    }

    /// The category for the crossover measurement.
    pub(crate) fn scanned(&self) -> anyhow::Result<&Category> {
        let is_it = |of: &&Category| of.name == self.crossover.category;
        self.categories.iter().find(is_it).context("the suite lacks its crossover category")
    }
}

impl Category {
    /// The statement of a binding. `load` is code that imports the binding as `m`. The error is the
    /// reason why the binding does not support the category.
    pub(crate) fn of(&self, binding: Binding, load: &str) -> Result<Statement, &str> {
        let family = binding.family();
        let mut names = [binding.name(), family].into_iter();
        if let Some(why) = names.clone().find_map(|name| self.cannot.get(name)) {
            return Err(why);
        }
        let own = names.find_map(|name| self.own.get(name)).cloned().unwrap_or_default();
        Ok(Statement {
            setup: self.with_values([load, own.setup.as_deref().unwrap_or(&self.setup)]),
            code: own.call.unwrap_or_else(|| self.call.clone()),
            check: Some(own.check.or_else(|| self.check.clone()).unwrap_or_default()),
            calls: self.calls,
            note: own.note,
        })
    }

    /// The null control: calls a Python function that does nothing.
    pub(crate) fn null(&self) -> Statement {
        let names: Vec<String> = (0..self.arguments).map(|number| format!("a{number}")).collect();
        let function = format!("def f({}): pass", names.join(", "));
        Statement {
            setup: self.with_values([&function, &self.null]),
            code: self.call.clone(),
            check: None,
            calls: self.calls,
            note: String::new(),
        }
    }

    /// The same calls from C, if the suite defines them.
    pub(crate) fn in_c(&self, load: &str) -> Option<Statement> {
        let InC { setup, call, calls } = self.c.as_ref()?;
        let setup = self.with_values([load, setup]);
        Some(Statement {
            setup,
            code: call.clone(),
            check: None,
            calls: *calls,
            note: String::new(),
        })
    }

    /// The category with another number of elements.
    pub(crate) fn sized(&self, n: u64) -> Category {
        Category { n: Some(n), ..self.clone() }
    }

    /// Number of elements, if the category has one.
    pub(crate) fn size(&self) -> Option<u64> {
        self.n
    }

    fn with_values(&self, more: [&str; 2]) -> String {
        let n = self.n.map_or_else(String::new, |n| format!("n = {n}"));
        // Shared because the address of an array affects the speed of reading it.
        let shared = self.shared.iter().map(|name| {
            let key = format!("laggard {} {:?} {name}", self.name, self.n);
            format!("{name} = __import__('sys').__dict__.setdefault({key:?}, {name})")
        });
        let shared = shared.collect::<Vec<_>>().join("\n");
        let parts = [&self.helpers, n.as_str(), &self.values, &shared, more[0], more[1]];
        let parts: Vec<&str> =
            parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect();
        parts.join("\n")
    }
}

impl Crossover {
    /// The work alone, called in a C loop without Python.
    pub(crate) fn in_c(&self, category: &Category, load: &str) -> Statement {
        /// Total elements per statement, large enough to make the cost of entering C negligible.
        const IN_ALL: u64 = 1 << 16;
        let calls = (IN_ALL / category.size().unwrap_or(1).max(1)).max(1);
        let setup = category.with_values([load, &self.c_setup]);
        let setup = format!("{setup}\ntimes = {calls}");
        Statement { setup, code: self.c.clone(), check: None, calls, note: String::new() }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn suite_names_only_known_bindings() {
        let suite = Suite::load().unwrap();
        let names: BTreeSet<&str> = Binding::ALL.iter().map(|binding| binding.name()).collect();
        let families: BTreeSet<&str> = Binding::ALL.iter().map(|of| of.family()).collect();
        for category in &suite.categories {
            for name in category.own.keys().chain(category.cannot.keys()) {
                let name = name.as_str();
                assert!(names.contains(name) || families.contains(name), "{name}");
            }
        }
        assert!(suite.categories.iter().any(|of| of.name == suite.overhead.category));
        assert!(suite.scanned().unwrap().size().is_some());
    }

    #[test]
    fn bindings_inherit_the_statement_of_their_family() {
        let suite = Suite::load().unwrap();
        let of = |name: &str| suite.chosen(&[name.to_owned()]).unwrap()[0].clone();
        let text = of("str_length");
        assert_eq!(text.of(Binding::Pyo3, "m = 1").unwrap().code, "f(text)");
        assert_eq!(text.of(Binding::CtypesPydll, "m = 1").unwrap().code, "f(text.encode())");
        assert!(of("nogil").of(Binding::CtypesPydll, "").is_err());
        let sum = of("sum_double").sized(8).of(Binding::Capi, "m = 1").unwrap();
        assert!(sum.setup.contains("\nn = 8\ndata = aligned("), "{}", sum.setup);
        assert!(of("add_int32").null().setup.contains("def f(a0, a1): pass"));
        assert_eq!(suite.chosen(&["buffers".into()]).unwrap().len(), 4);
        assert!(suite.chosen(&["nope".into()]).is_err());
    }
}
