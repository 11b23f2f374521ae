//! Interpreters that modules are built for: what they are, and what they have.

use crate::failure;
use anyhow::{Context, ensure};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What is asked of an interpreter.
const ASK: &str = include_str!("about.py");
/// Older ones cannot run what is built.
const OLDEST: (u32, u32) = (3, 9);

/// An interpreter, and what it says of itself.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Interpreter {
    /// The program.
    #[serde(rename = "executable")]
    pub(crate) path: PathBuf,
    /// As `3.11.7`.
    pub(crate) version: String,
    implementation: String,
    /// As `cpython-311`.
    pub(crate) tag: String,
    /// What modules end with.
    pub(crate) suffix: String,
    /// Where its headers are.
    pub(crate) include: Vec<String>,
    /// Whether they are really there.
    pub(crate) has_headers: bool,
    /// Version and directories of each package.
    packages: Vec<Package>,
}

/// A package that makes bindings.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Package {
    name: String,
    pub(crate) version: String,
    /// Where its headers are.
    #[serde(default)]
    pub(crate) include: String,
    /// Where its sources are.
    #[serde(default)]
    pub(crate) source: String,
}

impl Interpreter {
    /// The one that is asked for: a version (`3.12`), a name in PATH, or a path.
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
            let first = lines.next().unwrap_or("it ends with a failure and says nothing");
            // Of a traceback the end counts.
            let said = if first.starts_with("Traceback") {
                lines.next_back().unwrap_or(first)
            } else {
                first
            };
            return Err(failure::with_hint(
                format!("{} does not run: {said}", path.display()),
                "give the path of an interpreter: --python /path/to/bin/python3".into(),
            ));
        }
        let said: Interpreter = serde_json::from_slice(&about.stdout)
            .with_context(|| format!("{} does not answer as Python does", path.display()))?;
        let (version, implementation) = (said.version(), &said.implementation);
        let (major, minor) = OLDEST;
        ensure!(
            implementation == "cpython" && version >= OLDEST,
            "{} is {implementation} {}: bindings are measured on CPython {major}.{minor} and later",
            path.display(),
            said.version
        );
        // What was found may be a script that chooses another one in another directory.
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

    /// How many elements an expression has that is a tuple; none when it is none. An error is Python's.
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

    /// What identifies it where a module is built for it.
    pub(crate) fn identity(&self) -> String {
        format!("{} {} {} {}", self.version, self.tag, self.suffix, self.include.join(" "))
    }
}

/// A program of this name in PATH.
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
        format!("there is no {what} {name}"),
        "give the path of an interpreter: --python /path/to/bin/python3".into(),
    )
}
