//! Shared code of the tests with live programs: subjects, interpreters, and stacks as text.
#![allow(dead_code, clippy::unwrap_used, clippy::print_stderr)] // not every test uses all of it

use laggard_core::model::profile::{FrameKind, Profile, Sample};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file in `subjects/probe`.
pub(crate) fn subject(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../subjects/probe").join(name)
}

/// Compiles a C subject into its own directory, so that tests do not interfere.
pub(crate) fn compile_c(name: &str, flags: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join(name.trim_end_matches(".c"));
    let mut cc = Command::new("cc");
    cc.arg(subject(name)).args(["-O2", "-g", "-pthread", "-o"]).arg(&program).args(flags);
    assert!(cc.status().unwrap().success(), "{name} does not compile");
    (directory, program)
}

/// Interpreters to test with: those in `LAGGARD_PYTHONS` (separated by colons), otherwise
/// `python3`.
pub(crate) fn pythons() -> Vec<PathBuf> {
    match std::env::var_os("LAGGARD_PYTHONS").filter(|list| !list.is_empty()) {
        Some(list) => std::env::split_paths(&list).collect(),
        None => vec!["python3".into()],
    }
}

/// The minor version of an interpreter, if its frames are supported.
pub(crate) fn minor(python: &Path) -> Option<u32> {
    let output = Command::new(python)
        .args(["-c", "import sys; print(sys.version_info[1])"])
        .output()
        .ok()?;
    let minor = String::from_utf8(output.stdout).ok()?.trim().parse().ok()?;
    (9..=13).contains(&minor).then_some(minor)
}

/// Whether an interpreter has a package.
pub(crate) fn has(python: &Path, package: &str) -> bool {
    let import = format!("import {package}");
    let found = Command::new(python).args(["-c", &import]).output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("skipped: {} has no {package}", python.display());
    }
    found
}

/// The words of a command.
pub(crate) fn words(program: impl Into<OsString>, rest: &[&str]) -> Vec<OsString> {
    std::iter::once(program.into()).chain(rest.iter().map(OsString::from)).collect()
}

/// A stack as names, outermost first; a Python frame is `function (file.py:line)`.
pub(crate) fn stack(profile: &Profile, sample: &Sample) -> Vec<String> {
    let mut names: Vec<String> = profile
        .frames_of(sample.stack)
        .map(|frame| {
            let frame = &profile.frames[frame as usize];
            let name = profile.texts.get(frame.function);
            match frame.kind {
                FrameKind::Python => {
                    let file = profile.texts.get(frame.file).rsplit('/').next().unwrap();
                    format!("{name} ({file}:{})", frame.line)
                }
                _ if name.is_empty() => {
                    let path = profile.module_path(frame);
                    format!("[{}]", path.rsplit('/').next().unwrap())
                }
                _ => name.to_owned(),
            }
        })
        .collect();
    names.reverse();
    names
}

/// The Python frames of a stack, outermost first.
pub(crate) fn python_frames(stack: &[String]) -> Vec<&str> {
    stack
        .iter()
        .map(String::as_str)
        .filter(|name| name.contains(" (") && name.ends_with(')'))
        .collect()
}
