//! `Dump`: stacks of all threads of a process at one moment.

/// A snapshot of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dump {
    /// Process ID.
    pub pid: u32,
    /// Its command line arguments.
    pub command: Vec<String>,
    /// Version of its Python interpreter (`3.12`), if any.
    pub python: Option<String>,
    /// Its threads; Python threads first.
    pub threads: Vec<Thread>,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Thread ID; 0 for a thread of the interpreter that the system does not list.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Whether it was running or runnable.
    pub is_running: bool,
    /// Whether it is a Python thread.
    pub is_python: bool,
    /// Whether it held the GIL.
    pub has_gil: bool,
    /// Whether it ran during every attempt to read it, so that its frames may be inconsistent.
    pub is_torn: bool,
    /// Its Python frames, innermost first.
    pub frames: Vec<Frame>,
}

/// A Python frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The function.
    pub function: String,
    /// Its file.
    pub file: String,
    /// The line; 0 if unknown.
    pub line: u32,
}
