//! Python environments below the target directory: one for the tests themselves, and one per Python
//! version for measured programs.

use crate::project;
use crate::system;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Oldest supported version.
const OLDEST: (u32, u32) = (3, 9);
/// Minor version of the newest Python 3 to look for.
const NEWEST: u32 = 13;
/// Packages of the test environment; each is imported under the same name.
const PACKAGES: [&str; 5] = ["pyarrow", "orjson", "numpy", "pytest", "jsonschema"];

/// Packages of measured programs, where available for the Python version.
const SUBJECT_PACKAGES: [&str; 2] = ["numpy", "greenlet"];
/// Marks an environment as complete, so that packages that failed to install are not retried.
const TRIED: &str = "laggard-tried";

/// Environment variable with the interpreters to test, separated by colons.
pub(crate) const LIST: &str = "LAGGARD_PYTHONS";

/// The interpreter of the test environment, which is created on first use.
pub(crate) fn ready() -> Result<PathBuf> {
    let environment = project::target()?.join("python");
    let python = inside(&environment);
    if has_packages(&python, &PACKAGES) {
        return Ok(python);
    }
    make_environment(&environment)?;
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(PACKAGES);
    project::must(&mut install).context("cannot install the Python packages for the tests")?;
    if !has_packages(&python, &PACKAGES) {
        bail!("{} cannot import {}", project::short(&python), PACKAGES.join(", "));
    }
    Ok(python)
}

/// Interpreters for measured programs, newest first: one per version that this machine has, in
/// environments with NumPy and greenlet where available. Returns at most `most`.
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
            // Running every interpreter is slow, so only do it if an environment is missing.
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

/// Creates an environment. Packages that cannot be installed are skipped with a notice.
fn make_subject(base: &Path, environment: &Path) -> Result<()> {
    let mut make = Command::new(base);
    make.args(["-m", "venv", "--clear"]).arg(environment);
    project::must(&mut make)?;
    for package in SUBJECT_PACKAGES {
        if let Err(error) = install(&inside(environment), package) {
            eprintln!(
                "skipped: {package} for {}: {error:#}\nhint: delete {} to retry",
                base.display(),
                project::short(environment)
            );
        }
    }
    std::fs::write(environment.join(TRIED), "")
        .with_context(|| format!("cannot write to {}", environment.display()))
}

/// Packages that build bindings: package name and module name.
const BINDING_PACKAGES: [(&str, &str); 4] =
    [("cffi", "cffi"), ("pybind11", "pybind11"), ("nanobind", "nanobind"), ("cython", "Cython")];

/// Installs the packages that build bindings. Missing packages are skipped with a notice.
pub(crate) fn install_bindings(python: &Path) {
    for (package, module) in BINDING_PACKAGES {
        if !has_packages(python, &[module])
            && let Err(error) = install(python, package)
        {
            eprintln!("skipped: {package} bindings: {error:#}");
        }
    }
}

/// Installs a package from a wheel.
pub(crate) fn install(python: &Path, package: &str) -> Result<()> {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip.args(["--only-binary", ":all:", package]);
    project::must(&mut pip)
}

/// All working CPython interpreters of this machine by minor version: those in PATH, then those of
/// pyenv. The first of a version wins.
pub(crate) fn installed() -> BTreeMap<u32, PathBuf> {
    let mut candidates: Vec<PathBuf> = (OLDEST.1..=NEWEST)
        .filter_map(|minor| project::which(&format!("python3.{minor}")))
        .collect();
    candidates.extend(project::which("python3"));
    candidates.extend(of_pyenv());
    let mut found = BTreeMap::new();
    for python in candidates {
        // A pyenv shim may belong to a version that is not active.
        if let Some((3, minor)) = version(&python).filter(|version| *version >= OLDEST)
            && minor <= NEWEST
        {
            found.entry(minor).or_insert(python);
        }
    }
    found
}

/// All interpreters of pyenv, active or not.
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

/// Path of the interpreter in an environment.
pub(crate) fn inside(environment: &Path) -> PathBuf {
    environment.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" })
}

/// Creates an environment with any Python in PATH. If all fail, installs Debian's python3-venv.
fn make_environment(environment: &Path) -> Result<()> {
    let candidates = interpreters();
    if candidates.is_empty() {
        let (major, minor) = OLDEST;
        bail!(
            "no Python {major}.{minor} or later in PATH\nhint: on Debian and Ubuntu run `apt-get install python3 python3-venv`"
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
        bail!("no Python in PATH can create a virtual environment");
    }
    Ok(())
}

/// Supported Pythons in PATH, newest first.
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

/// Version of a CPython; `None` if it does not run or is another implementation.
fn version(python: &Path) -> Option<(u32, u32)> {
    let ask = "import sys; sys.implementation.name == 'cpython' and print(*sys.version_info[:2])";
    let output = Command::new(python).args(["-c", ask]).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().split_once(' ')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Whether an interpreter runs and can import these modules.
pub(crate) fn has_packages(python: &Path, packages: &[&str]) -> bool {
    let mut import = Command::new(python);
    import
        .args(["-c", &format!("import {}", packages.join(", "))])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    import.status().is_ok_and(|status| status.success())
}
