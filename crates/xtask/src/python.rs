//! A Python with the packages that tests and benchmarks need, in a directory of its own.

use crate::project;
use crate::system;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Oldest version that works.
const OLDEST: (u32, u32) = (3, 9);
/// What is installed, and is imported under the same name.
const PACKAGES: [&str; 3] = ["pyarrow", "orjson", "pytest"];

/// The interpreter of an environment that has all packages; makes the environment on first use.
pub(crate) fn ready() -> Result<PathBuf> {
    let environment = project::target()?.join("python");
    let python = environment.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    if has_packages(&python) {
        return Ok(python);
    }
    make_environment(&environment)?;
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(PACKAGES);
    project::must(&mut install).context("cannot install the Python packages that tests need")?;
    if !has_packages(&python) {
        bail!("{} cannot import {}", project::short(&python), PACKAGES.join(", "));
    }
    Ok(python)
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
    let names = (OLDEST.1..=13)
        .rev()
        .map(|minor| format!("python3.{minor}"))
        .chain(["python3".into(), "python".into()]);
    names
        .filter_map(|name| project::which(&name))
        .filter(|python| version(python) >= Some(OLDEST))
        .collect()
}

/// The version a program says it has; none when it does not run.
fn version(python: &Path) -> Option<(u32, u32)> {
    let output = Command::new(python)
        .args(["-c", "import sys; print(*sys.version_info[:2])"])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().split_once(' ')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn has_packages(python: &Path) -> bool {
    let mut import = Command::new(python);
    import
        .args(["-c", &format!("import {}", PACKAGES.join(", "))])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    import.status().is_ok_and(|status| status.success())
}
