//! Finds Python interpreters and the packages they have.

use crate::failure;
use anyhow::{Context, ensure};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A script that describes an interpreter as JSON.
const ASK: &str = include_str!("about.py");
/// Oldest supported version.
const OLDEST: (u32, u32) = (3, 9);

/// An interpreter, as described by `about.py`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Interpreter {
    #[serde(rename = "executable")]
    pub(crate) path: PathBuf,
    /// Such as `3.11.7`.
    pub(crate) version: String,
    implementation: String,
    /// Such as `cpython-311`.
    pub(crate) tag: String,
    /// Suffix of extension modules.
    pub(crate) suffix: String,
    /// Include directories.
    pub(crate) include: Vec<String>,
    /// Whether Python.h exists.
    pub(crate) has_headers: bool,
    /// Installed packages for building bindings.
    packages: Vec<Package>,
}

/// A package for building bindings.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Package {
    name: String,
    pub(crate) version: String,
    /// Include directory.
    #[serde(default)]
    pub(crate) include: String,
    /// Source directory.
    #[serde(default)]
    pub(crate) source: String,
}

impl Interpreter {
    /// Finds an interpreter by version (`3.12`), name in PATH, or path.
    pub(crate) fn find(wanted: &str) -> anyhow::Result<Interpreter> {
        let is_version = wanted.starts_with(|c: char| c.is_ascii_digit())
            && wanted.chars().all(|c| c.is_ascii_digit() || c == '.');
        let name = if is_version { format!("python{wanted}") } else { wanted.to_owned() };
        let found = match name.contains('/') {
            true => Some(PathBuf::from(&name)).filter(|path| path.is_file()),
            false => in_path(&name),
        };
        let path = found.ok_or_else(|| missing(&name))?;
        let path = std::path::absolute(&path).unwrap_or(path);
        let about = Command::new(&path)
            .args(["-c", ASK])
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot run {}", path.display()))?;
        if !about.status.success() {
            let said = String::from_utf8_lossy(&about.stderr);
            let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
            let first = lines.next().unwrap_or("it failed without output");
            // The last line of a traceback has the error.
            let said = if first.starts_with("Traceback") {
                lines.next_back().unwrap_or(first)
            } else {
                first
            };
            return Err(failure::with_hint(
                format!("cannot run {}: {said}", path.display()),
                "give the path of an interpreter: --python /path/to/bin/python3".into(),
            ));
        }
        let said: Interpreter = serde_json::from_slice(&about.stdout)
            .with_context(|| format!("{} is not a Python interpreter", path.display()))?;
        let (version, implementation) = (said.version(), &said.implementation);
        let (major, minor) = OLDEST;
        ensure!(
            implementation == "cpython" && version >= OLDEST,
            "{} is {implementation} {}: CPython {major}.{minor} or later is required",
            path.display(),
            said.version
        );
        // The program may be a wrapper script, such as a shim of pyenv, that runs another interpreter.
        let is_known = said.path.is_absolute() && said.path.is_file();
        Ok(Interpreter { path: if is_known { said.path.clone() } else { path }, ..said })
    }

    fn version(&self) -> (u32, u32) {
        let mut parts = self.version.split('.').map_while(|part| part.parse().ok());
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
    }

    pub(crate) fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }

    /// The number of elements of a tuple expression; `None` for other expressions. Fails on syntax
    /// errors.
    pub(crate) fn elements(&self, expression: &str) -> anyhow::Result<Option<usize>> {
        const COUNT: &str = "import ast, sys
value = ast.parse(sys.argv[1], mode='eval').body
print(len(value.elts) if isinstance(value, ast.Tuple) else '')";
        let answer = Command::new(&self.path)
            .args(["-c", COUNT, expression])
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot run {}", self.path.display()))?;
        let said = String::from_utf8_lossy(&answer.stderr);
        ensure!(
            answer.status.success(),
            "--args {expression} is not valid Python: {}",
            said.lines().last().unwrap_or_default()
        );
        Ok(String::from_utf8_lossy(&answer.stdout).trim().parse().ok())
    }

    /// Identifies the interpreter in the build cache.
    pub(crate) fn identity(&self) -> String {
        format!("{} {} {} {}", self.version, self.tag, self.suffix, self.include.join(" "))
    }
}

/// Finds a program in PATH.
pub(crate) fn in_path(name: &str) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        use std::os::unix::fs::PermissionsExt;
        path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|directory| directory.join(name))
        .find(is_program)
}

fn missing(name: &str) -> anyhow::Error {
    let what = if Path::new(name).components().count() > 1 { "file" } else { "program" };
    failure::with_hint(
        format!("{what} {name} not found"),
        "give the path of an interpreter: --python /path/to/bin/python3".into(),
    )
}
