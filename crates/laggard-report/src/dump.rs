//! A [`Dump`] as text and JSON.

use crate::escape::visible;
use crate::shape::pretty;
use laggard_core::model::dump::{Dump, Frame, Thread};
use serde::Serialize;
use std::fmt::Write;

/// Threads with their stacks, innermost frame first.
pub fn text(dump: &Dump) -> String {
    let mut out = String::new();
    let command = visible(&dump.command.join(" "));
    let _ = match &dump.python {
        Some(version) => writeln!(out, "process {}: {command} (CPython {version})", dump.pid),
        None => writeln!(
            out,
            "process {0}: {command}\nnot a Python process; use `laggard record --pid {0}` for \
             native stacks",
            dump.pid
        ),
    };
    for thread in &dump.threads {
        let _ = writeln!(out, "\n{}", heading(thread, dump.python.is_some()));
        for frame in &thread.frames {
            let _ = writeln!(out, "    {}", place(frame));
        }
    }
    out
}

fn heading(thread: &Thread, has_python: bool) -> String {
    let mut words = vec![if thread.is_running { "running" } else { "waiting" }];
    if thread.has_gil {
        words.push("holds the GIL");
    }
    if has_python && !thread.is_python {
        words.push("no Python");
    } else if thread.is_python && thread.frames.is_empty() {
        words.push("no Python frames");
    }
    if thread.is_torn {
        words.push("changed while being read: its stack may be inconsistent");
    }
    format!("thread {} \"{}\": {}", thread.tid, visible(&thread.name), words.join(", "))
}

fn place(frame: &Frame) -> String {
    let (function, file) = (visible(&frame.function), visible(&frame.file));
    match frame.line {
        0 => format!("{function} ({file})"),
        line => format!("{function} ({file}:{line})"),
    }
}

#[derive(Serialize)]
struct Shape<'a> {
    schema: &'static str,
    pid: u32,
    command: &'a [String],
    /// `3.12`; null if the process does not run Python.
    python: Option<&'a str>,
    threads: Vec<ThreadShape<'a>>,
}

#[derive(Serialize)]
struct ThreadShape<'a> {
    tid: u32,
    name: &'a str,
    running: bool,
    python: bool,
    gil: bool,
    /// Whether the stack changed while it was read and may be inconsistent.
    torn: bool,
    /// Innermost first.
    frames: Vec<FrameShape<'a>>,
}

#[derive(Serialize)]
struct FrameShape<'a> {
    function: &'a str,
    file: &'a str,
    /// Null if unknown.
    line: Option<u32>,
}

/// JSON of schema `laggard.dump/1`.
pub fn json(dump: &Dump) -> String {
    let frame = |frame: &'_ Frame| (frame.line > 0).then_some(frame.line);
    pretty(&Shape {
        schema: "laggard.dump/1",
        pid: dump.pid,
        command: &dump.command,
        python: dump.python.as_deref(),
        threads: dump
            .threads
            .iter()
            .map(|thread| ThreadShape {
                tid: thread.tid,
                name: &thread.name,
                running: thread.is_running,
                python: thread.is_python,
                gil: thread.has_gil,
                torn: thread.is_torn,
                frames: thread
                    .frames
                    .iter()
                    .map(|f| FrameShape { function: &f.function, file: &f.file, line: frame(f) })
                    .collect(),
            })
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dump() -> Dump {
        let frame = |function: &str, line| Frame {
            function: function.into(),
            file: "/a/work\u{1b}.py".into(),
            line,
        };
        let holder = Thread {
            tid: 7,
            name: "python".into(),
            is_running: true,
            is_python: true,
            has_gil: true,
            frames: vec![frame("inner", 3), frame("<module>", 0)],
            ..Thread::default()
        };
        let other = Thread { tid: 8, name: "blas".into(), ..Thread::default() };
        let command = vec!["python".into(), "work.py".into()];
        Dump { pid: 7, command, python: Some("3.12".into()), threads: vec![holder, other] }
    }

    #[test]
    fn text_shows_the_innermost_frame_first() {
        let expected = "process 7: python work.py (CPython 3.12)\n\n\
            thread 7 \"python\": running, holds the GIL\n    \
            inner (/a/work\\u{1b}.py:3)\n    <module> (/a/work\\u{1b}.py)\n\n\
            thread 8 \"blas\": waiting, no Python\n";
        assert_eq!(text(&dump()), expected);
        let native = Dump { python: None, ..dump() };
        assert!(text(&native).contains("use `laggard record --pid 7` for native stacks"));
    }

    #[test]
    fn json_has_a_versioned_schema() {
        let value: serde_json::Value = serde_json::from_str(&json(&dump())).expect("JSON");
        assert_eq!(value["schema"], "laggard.dump/1");
        assert_eq!(value["threads"][0]["frames"][0]["line"], 3);
        assert!(value["threads"][0]["frames"][1]["line"].is_null());
        assert_eq!(value["threads"][0]["gil"], true);
    }
}
