//! `Dump`: what the threads of a process do at one moment.

/// One look at a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dump {
    /// The process.
    pub pid: u32,
    /// Its command, word by word.
    pub command: Vec<String>,
    /// Version of the Python in it (`3.12`), if there is one.
    pub python: Option<String>,
    /// Its threads; those that run Python first.
    pub threads: Vec<Thread>,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its number; 0 when the interpreter knows a thread that the system does not show.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Whether it was on a processor or waiting for one.
    pub is_running: bool,
    /// Whether the interpreter knows it.
    pub is_python: bool,
    /// Whether it held the global lock.
    pub has_gil: bool,
    /// Whether it moved on in every try to read it, so that its frames may be of two moments.
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
    /// The line; 0 when unknown.
    pub line: u32,
}
