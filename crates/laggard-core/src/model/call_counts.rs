//! `CallCounts`: exact numbers of calls of Python functions, and of C functions by Python code.

use crate::profile::file_name;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

/// Calls during some calls of a side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallCounts {
    /// Number of calls of the side during which calls were counted.
    pub calls: u64,
    /// Version of the interpreter's bytecode.
    pub python: String,
    /// The functions.
    pub functions: Vec<CountedFunction>,
    /// Index of the caller, -1 if it is not Python code; index of the callee; number of calls.
    pub edges: Vec<(i64, u32, u64)>,
    /// Qualified name and file name of Python functions that exist in the process, whether called or
    /// not.
    pub defined: Vec<(String, String)>,
}

impl CallCounts {
    /// Removes defined functions that the other side does not call: only those are of interest.
    pub fn keep_defined(&mut self, other: &CallCounts) {
        let called: FxHashSet<(&str, &str)> =
            other.functions.iter().map(CountedFunction::definition).collect();
        self.defined.retain(|(name, file)| called.contains(&(name.as_str(), file.as_str())));
        self.defined.sort();
        self.defined.dedup();
    }
}

/// Names of the functions of comprehensions and generator expressions.
pub(crate) const COMPREHENSIONS: [&str; 4] = ["<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"];

/// A function that was called or that calls another one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CountedFunction {
    /// Its qualified name, such as `list.insert`.
    pub name: String,
    /// File of a Python function; empty for C functions.
    pub file: String,
    /// Module of a C function; empty for methods.
    pub module: String,
    /// First and last line of a Python function.
    pub lines: [u32; 2],
    /// Whether a Python function passes on any arguments, as the wrapper of a decorator does.
    pub forwards: bool,
    /// Checksum of a Python function's bytecode.
    pub code: u32,
    /// Address of a C function in its process; 0 if unknown.
    #[serde(skip_serializing)]
    pub address: u64,
    /// File name of the library and symbol of a C function; empty if unknown.
    pub symbol: (String, String),
}

impl CountedFunction {
    /// Whether it is a Python function.
    pub fn is_python(&self) -> bool {
        !self.file.is_empty()
    }

    /// Whether it is the code of a comprehension or generator expression.
    pub fn is_comprehension(&self) -> bool {
        COMPREHENSIONS.iter().any(|part| self.name.ends_with(part))
    }

    /// Its qualified name and the name of its file, as in [`CallCounts::defined`].
    fn definition(&self) -> (&str, &str) {
        (&self.name, file_name(&self.file))
    }

    /// Its name with the module.
    pub fn full_name(&self) -> String {
        match self.module.as_str() {
            "" | "builtins" => self.name.clone(),
            module => format!("{module}.{}", self.name),
        }
    }
}
