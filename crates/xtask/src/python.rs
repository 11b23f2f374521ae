//! Pythons in directories of their own: one with what the tests are written with, and one of each
//! version for programs that are measured.

use crate::project;
use crate::system;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Oldest version that works.
const OLDEST: (u32, u32) = (3, 9);
/// Newest version that is looked for by its name, `minor` of 3.minor.
const NEWEST: u32 = 13;
/// What is installed, and is imported under the same name.
const PACKAGES: [&str; 5] = ["pyarrow", "orjson", "numpy", "pytest", "jsonschema"];

/// What programs that are measured import, as far as a version has it.
const SUBJECT_PACKAGES: [&str; 2] = ["numpy", "greenlet"];
/// Left in an environment once all was tried, so that what cannot be had is not asked for again.
const TRIED: &str = "laggard-tried";

/// Environment variable with the interpreters to test with, parted by colons.
pub(crate) const LIST: &str = "LAGGARD_PYTHONS";

/// The interpreter of an environment that has all packages; makes the environment on first use.
pub(crate) fn ready() -> Result<PathBuf> {
    let environment = project::target()?.join("python");
    let python = inside(&environment);
    if has_packages(&python, &PACKAGES) {
        return Ok(python);
    }
    make_environment(&environment)?;
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(PACKAGES);
    project::must(&mut install).context("cannot install the Python packages that tests need")?;
    if !has_packages(&python, &PACKAGES) {
        bail!("{} cannot import {}", project::short(&python), PACKAGES.join(", "));
    }
    Ok(python)
}

/// Interpreters for programs that are measured, newest first: one of each version that the machine
/// has, in environments with NumPy and greenlet where these can be had. At most `most` of them.
pub(crate) fn subjects(most: usize) -> Result<Vec<PathBuf>> {
    let target = project::target()?;
    let mut found = None;
    let mut ready = Vec::new();
    for minor in (OLDEST.1..=NEWEST).rev() {
        if ready.len() == most {
            break;
        }
        let environment = target.join(format!("python-3.{minor}"));
        let python = inside(&environment);
        let is_there = environment.join(TRIED).exists() && version(&python) == Some((3, minor));
        if !is_there {
            // Asking every interpreter takes a while: only where one is missing.
            let found: &BTreeMap<u32, PathBuf> = found.get_or_insert_with(installed);
            let Some(base) = found.get(&minor) else { continue };
            if let Err(error) = make_subject(base, &environment) {
                eprintln!("skipped: Python 3.{minor}: {error:#}");
                continue;
            }
        }
        ready.push(python);
    }
    Ok(ready)
}

/// An environment of this interpreter. A package that cannot be had is said and left out.
fn make_subject(base: &Path, environment: &Path) -> Result<()> {
    let mut make = Command::new(base);
    make.args(["-m", "venv", "--clear"]).arg(environment);
    project::must(&mut make)?;
    for package in SUBJECT_PACKAGES {
        if let Err(error) = install(&inside(environment), package) {
            eprintln!(
                "skipped: {package} for {}: {error:#}\nhint: remove {} to try again",
                base.display(),
                project::short(environment)
            );
        }
    }
    std::fs::write(environment.join(TRIED), "")
        .with_context(|| format!("cannot write to {}", environment.display()))
}

/// What makes bindings; names of packages, and what is imported.
const BINDING_PACKAGES: [(&str, &str); 4] =
    [("cffi", "cffi"), ("pybind11", "pybind11"), ("nanobind", "nanobind"), ("cython", "Cython")];

/// Installs what makes bindings. What cannot be had is said: bindings that need it are left out.
pub(crate) fn install_bindings(python: &Path) {
    for (package, module) in BINDING_PACKAGES {
        if !has_packages(python, &[module])
            && let Err(error) = install(python, package)
        {
            eprintln!("skipped: bindings made by {package}: {error:#}");
        }
    }
}

/// Installs a package that comes ready made.
pub(crate) fn install(python: &Path, package: &str) -> Result<()> {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip.args(["--only-binary", ":all:", package]);
    project::must(&mut pip)
}

/// Every CPython of this machine that runs, by `minor` of its version: those that PATH names, and
/// those that pyenv keeps. The first of a version wins.
pub(crate) fn installed() -> BTreeMap<u32, PathBuf> {
    let mut candidates: Vec<PathBuf> = (OLDEST.1..=NEWEST)
        .filter_map(|minor| project::which(&format!("python3.{minor}")))
        .collect();
    candidates.extend(project::which("python3"));
    candidates.extend(of_pyenv());
    let mut found = BTreeMap::new();
    for python in candidates {
        // Names of pyenv stand for versions that may not be switched on.
        if let Some((3, minor)) = version(&python).filter(|version| *version >= OLDEST)
            && minor <= NEWEST
        {
            found.entry(minor).or_insert(python);
        }
    }
    found
}

/// The interpreters of pyenv, whichever of them are switched on.
fn of_pyenv() -> Vec<PathBuf> {
    let Some(pyenv) = project::which("pyenv") else { return Vec::new() };
    let Ok(answer) = Command::new(pyenv).arg("root").output() else { return Vec::new() };
    let root = PathBuf::from(String::from_utf8_lossy(&answer.stdout).trim());
    let Ok(versions) = std::fs::read_dir(root.join("versions")) else { return Vec::new() };
    let mut found: Vec<PathBuf> =
        versions.flatten().map(|version| version.path().join("bin/python3")).collect();
    found.sort();
    found
}

/// The interpreter of an environment.
pub(crate) fn inside(environment: &Path) -> PathBuf {
    environment.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" })
}

/// Tries every Python in PATH; where none can make environments, installs what Debian leaves out.
fn make_environment(environment: &Path) -> Result<()> {
    let candidates = interpreters();
    if candidates.is_empty() {
        let (major, minor) = OLDEST;
        bail!(
            "there is no Python {major}.{minor} or later in PATH\nhint: install one, on Debian and Ubuntu with `apt-get install python3 python3-venv`"
        );
    }
    let make = |python: &Path| {
        let mut command = Command::new(python);
        command.args(["-m", "venv", "--clear"]).arg(environment);
        project::run(&mut command).is_ok_and(|status| status.success())
    };
    if candidates.iter().any(|python| make(python)) {
        return Ok(());
    }
    system::install_debian("python3-venv")?;
    if !interpreters().iter().any(|python| make(python)) {
        bail!("no Python in PATH can make a virtual environment");
    }
    Ok(())
}

/// The Pythons in PATH that are new enough, newest name first.
fn interpreters() -> Vec<PathBuf> {
    let names = (OLDEST.1..=NEWEST)
        .rev()
        .map(|minor| format!("python3.{minor}"))
        .chain(["python3".into(), "python".into()]);
    names
        .filter_map(|name| project::which(&name))
        .filter(|python| version(python) >= Some(OLDEST))
        .collect()
}

/// The version that a CPython says it has; none when it does not run or is another Python.
fn version(python: &Path) -> Option<(u32, u32)> {
    let ask = "import sys; sys.implementation.name == 'cpython' and print(*sys.version_info[:2])";
    let output = Command::new(python).args(["-c", ask]).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().split_once(' ')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Whether an interpreter runs and has these packages.
pub(crate) fn has_packages(python: &Path, packages: &[&str]) -> bool {
    let mut import = Command::new(python);
    import
        .args(["-c", &format!("import {}", packages.join(", "))])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    import.status().is_ok_and(|status| status.success())
}
