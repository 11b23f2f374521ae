//! Divergence points.

use super::merged::PathFunction;

/// The points of a pair.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Divergence {
    /// The points in the order in which they were found: each holds most of what was left. The last
    /// ones may be places where B is faster.
    pub points: Vec<Point>,
    /// For A and B, the point of each entry of [`super::Stacks::spent`]; `None` for the rest.
    pub of_spent: [Vec<Option<usize>>; 2],
}

/// A point where the call paths diverge.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// The function, or the statement.
    pub place: Place,
    /// Functions from the statement to the place, both excluded.
    pub path: Vec<Step>,
    /// Whether the paths diverge at the statement: the place is then on B's own path below it.
    pub is_own_path: bool,
    /// Functions among which B's additional time is divided at the end of its own path, by decreasing
    /// time.
    pub divided: Vec<String>,
    /// Time of A and B in it, in nanoseconds per call.
    pub ns: [f64; 2],
    /// Number of samples of A and B.
    pub samples: [u64; 2],
    /// What A and B call at this place, by decreasing time.
    pub callees: [Vec<Callee>; 2],
    /// What differs there.
    pub cause: Cause,
}

impl Point {
    /// Whether B is faster here.
    pub fn is_faster(&self) -> bool {
        self.ns[1] < self.ns[0]
    }

    /// The place: `Index.join (pandas/core/indexes/base.py:4618)`.
    pub fn label(&self) -> String {
        match &self.place.function {
            Some(function) if function.is_python => with_line(function, self.place.line()),
            Some(function) => function.label(),
            None => self.python_label(),
        }
    }

    /// The Python function that leads to the place, or the statement.
    pub fn python_label(&self) -> String {
        match &self.place.python {
            Some(function) => with_line(function, self.place.line()),
            None => match self.place.line() {
                // Profiles of commands have no statement.
                0 => "program".into(),
                line => format!("statement (<statement>:{line})"),
            },
        }
    }
}

fn with_line(function: &PathFunction, line: u32) -> String {
    match line {
        0 => function.label(),
        line => format!("{} ({}:{line})", function.name, function.file),
    }
}

/// A place in the source of both sides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    /// The function; `None` for the statement.
    pub function: Option<PathFunction>,
    /// The Python function that runs it: itself or its innermost Python caller; `None` for the
    /// statement.
    pub python: Option<PathFunction>,
    /// Line of A and B in the Python function where the paths part; 0 if unknown.
    pub lines: [u32; 2],
}

impl Place {
    /// The line of B, or of A if B has no time there.
    fn line(&self) -> u32 {
        self.lines.into_iter().rev().find(|&line| line > 0).unwrap_or(0)
    }
}

/// A function of a call path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// Its name.
    pub name: String,
    /// Its file, with the line in Python code.
    pub at: String,
    /// Whether it is a Python function.
    pub is_python: bool,
}

impl Step {
    pub(super) fn new(function: &PathFunction, line: u32) -> Step {
        let at = match line {
            0 => function.file.clone(),
            line => format!("{}:{line}", function.file),
        };
        Step { name: function.name.clone(), at, is_python: function.is_python }
    }

    /// The function with its file: `Index.join (pandas/core/indexes/base.py:4618)`.
    pub fn label(&self) -> String {
        match (self.name.as_str(), self.at.as_str()) {
            ("", at) => format!("[{at}]"),
            (name, "") => name.to_owned(),
            (name, at) => format!("{name} ({at})"),
        }
    }
}

/// A function that is called at a point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Callee {
    /// Its name.
    pub name: String,
    /// Its file or library.
    pub file: String,
    /// Calls per call of the side; `None` if they were not counted.
    pub calls: Option<f64>,
    /// Time in it, with its callees, in nanoseconds per call.
    pub ns: f64,
    /// The functions that it calls, by decreasing time.
    pub below: Vec<String>,
    /// Whether the other side also calls it here.
    pub is_common: bool,
}

/// What differs at a point.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Cause {
    /// B calls functions that A does not, or the code of the function differs.
    OtherPath,
    /// B calls the same function more often: its name, and the calls of A and B.
    MoreCalls {
        /// The function.
        name: String,
        /// Calls of A and B.
        calls: [f64; 2],
    },
    /// The same path takes longer.
    #[default]
    Slower,
}

impl Cause {
    /// The id in JSON, which is that of the culprit if there is one.
    pub fn word(&self) -> &'static str {
        match self {
            Cause::OtherPath => "other-path",
            Cause::MoreCalls { .. } => "more-calls",
            Cause::Slower => "slower",
        }
    }
}
