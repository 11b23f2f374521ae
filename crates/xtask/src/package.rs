//! The Python package: its wheel, and environments with only the wheel and its test dependencies.

use crate::{project, python, system};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Minor version of the oldest CPython 3 that the wheel supports.
const OLDEST: u32 = 10;

/// Test dependencies of the package.
const PACKAGES: [&str; 11] = [
    "duckdb",
    "pyarrow",
    "polars",
    "pandas",
    "numpy",
    "pytest",
    "mypy",
    "nbclient",
    "nbformat",
    "ipykernel",
    "jsonschema",
];
/// Additional dependency of the Spark tests.
const SPARK: &str = "pyspark";

/// Builds the wheel with maturin, which is installed if missing, and returns its path.
pub(crate) fn wheel(python: &Path) -> Result<PathBuf> {
    if !python::has_packages(python, &["maturin"]) {
        python::install(python, "maturin").context("cannot install maturin")?;
    }
    let place = project::target()?.join("wheels");
    // A wheel of an earlier version must not be used instead.
    let _ = std::fs::remove_dir_all(&place);
    let mut build = Command::new(python);
    build
        .args(["-m", "maturin", "build", "--release", "--quiet", "--out"])
        .arg(&place)
        .arg("--interpreter")
        .arg(python)
        .current_dir(project::root());
    project::must(&mut build)?;
    let built = std::fs::read_dir(&place)?.next().transpose()?;
    Ok(built.context("maturin built no wheel")?.path())
}

/// Environments with the wheel, for the oldest and the newest supported CPython of this machine.
pub(crate) fn environments(wheel: &Path, is_for_spark: bool) -> Result<Vec<PathBuf>> {
    let found = python::installed();
    let mut versions = found.iter().filter(|(minor, _)| **minor >= OLDEST);
    let (oldest, newest) = (versions.next(), versions.next_back());
    let mut ready = vec![];
    for (minor, base) in oldest.into_iter().chain(newest) {
        ready.push(environment(*minor, base, wheel)?);
    }
    let Some(newest) = ready.last() else {
        bail!("the Python package requires CPython 3.{OLDEST} or later, and none was found");
    };
    if is_for_spark && !python::has_packages(newest, &[SPARK]) {
        install(newest, &[SPARK])?;
    }
    Ok(ready)
}

/// An environment with the wheel, created on first use.
fn environment(minor: u32, base: &Path, wheel: &Path) -> Result<PathBuf> {
    let place = project::target()?.join(format!("package-3.{minor}"));
    let python = python::inside(&place);
    if !python::has_packages(&python, &PACKAGES) {
        let mut make = Command::new(base);
        make.args(["-m", "venv", "--clear"]).arg(&place);
        project::must(&mut make)?;
        install(&python, &PACKAGES)?;
    }
    let mut pip = pip(&python);
    pip.args(["--force-reinstall", "--no-deps"]).arg(wheel);
    project::must(&mut pip)?;
    Ok(python)
}

fn install(python: &Path, packages: &[&str]) -> Result<()> {
    let mut pip = pip(python);
    pip.args(packages);
    project::must(&mut pip)
}

fn pip(python: &Path) -> Command {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip
}

/// Installs Java, which Spark requires.
pub(crate) fn ensure_java() -> Result<()> {
    system::ensure_debian("openjdk-17-jre-headless", "java")
}

/// Command that tests the installed package: only the Spark tests, or all others.
pub(crate) fn tests(python: &Path, is_for_spark: bool) -> Command {
    let marked = if is_for_spark { "spark" } else { "not spark" };
    let mut pytest = Command::new(python);
    pytest
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", marked, "tests/package"])
        .current_dir(project::root());
    pytest
}
