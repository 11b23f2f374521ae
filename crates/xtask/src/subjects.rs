//! Builds the libraries in `subjects/`, a separate workspace, and installs them into Python
//! environments.

use crate::project;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds raptors for an interpreter, installs it there and returns the path of the module. Each
/// Python version has its own target directory, so that switching versions does not rebuild.
pub(crate) fn install_raptors(python: &Path) -> Result<PathBuf> {
    let place = Place::of(python)?;
    let target = target()?.join(&place.tag);
    let mut build = in_workspace();
    build
        .args(["build", "--quiet", "--release", "--package", "raptors"])
        .env("PYO3_PYTHON", python)
        .env("CARGO_TARGET_DIR", &target);
    project::must(&mut build)?;
    let built = target.join("release").join(format!(
        "{}raptors{}",
        std::env::consts::DLL_PREFIX,
        std::env::consts::DLL_SUFFIX
    ));
    let installed = place.packages.join(format!("raptors{}", place.suffix));
    // Rename into place: running programs keep the old file mapped.
    let coming = installed.with_extension("new");
    std::fs::copy(&built, &coming)
        .and_then(|_| std::fs::rename(&coming, &installed))
        .with_context(|| format!("cannot install {}", installed.display()))?;
    Ok(installed)
}

/// Paths of the planted pairs in `subjects/culprits`.
pub(crate) struct Culprits {
    /// Directory of the built libraries, for `LAGGARD_CULPRITS`.
    pub(crate) libraries: PathBuf,
    /// Directory of the package `culprits` and its `laggard-bench.toml`, for `PYTHONPATH`.
    pub(crate) package: PathBuf,
}

/// Builds the libraries in `subjects/culprits`, which work with any Python.
pub(crate) fn build_culprits() -> Result<Culprits> {
    let package = project::root().join("subjects/culprits");
    let libraries = target()?.join("culprits");
    std::fs::create_dir_all(&libraries)
        .with_context(|| format!("cannot create {}", libraries.display()))?;
    let name = |of: &str| {
        format!("{}culprits_{of}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX)
    };
    // Rename into place: running programs keep the old file mapped.
    let coming = libraries.join("coming");
    let arrive = |name: String| {
        std::fs::rename(&coming, libraries.join(&name))
            .with_context(|| format!("cannot write {name} to {}", libraries.display()))
    };

    let mut sources: Vec<_> = std::fs::read_dir(package.join("c"))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()?;
    sources.retain(|path| path.extension().is_some_and(|suffix| suffix == "c"));
    sources.sort();
    let mut compile = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    compile.current_dir(package.join("c")).args(["@compile_flags.txt", "-shared", "-o"]);
    project::must(compile.arg(&coming).args(sources))?;
    arrive(name("c"))?;

    let mut build = cargo()?;
    build.args(["build", "--quiet", "--release", "--package", "culprits-rust"]);
    project::must(&mut build)?;
    let built = target()?.join("rust/release").join(name("rust"));
    std::fs::copy(&built, &coming).with_context(|| format!("cannot copy {}", built.display()))?;
    arrive(name("rust"))?;
    Ok(Culprits { libraries, package })
}

/// Cargo in the workspace of the subjects, for packages that do not depend on Python.
pub(crate) fn cargo() -> Result<Command> {
    let mut command = in_workspace();
    command.env("CARGO_TARGET_DIR", target()?.join("rust"));
    Ok(command)
}

fn in_workspace() -> Command {
    let mut command = project::cargo();
    command.current_dir(project::root().join("subjects"));
    command
}

/// A separate target directory: the cargo that runs this program may hold the lock of the main one.
fn target() -> Result<PathBuf> {
    Ok(project::target()?.join("subjects"))
}

/// Where an interpreter imports extension modules from, and their suffix.
struct Place {
    tag: String,
    packages: PathBuf,
    suffix: String,
}

impl Place {
    fn of(python: &Path) -> Result<Self> {
        let ask = "import sys, sysconfig\n\
                   print(sys.implementation.cache_tag)\n\
                   print(sysconfig.get_path('platlib'))\n\
                   print(sysconfig.get_config_var('EXT_SUFFIX'))";
        let output = Command::new(python)
            .args(["-c", ask])
            .output()
            .with_context(|| format!("cannot run {}", python.display()))?;
        let text = String::from_utf8(output.stdout)?;
        match *text.lines().collect::<Vec<_>>() {
            [tag, packages, suffix] => {
                Ok(Self { tag: tag.into(), packages: packages.into(), suffix: suffix.into() })
            }
            _ => bail!(
                "cannot find the module directory of {}: {}",
                python.display(),
                String::from_utf8_lossy(&output.stderr).trim()
            ),
        }
    }
}
