//! The libraries of `subjects/`, which are a workspace of their own: built apart, and put into Python environments.

use crate::project;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds raptors for this interpreter and puts it where it imports from. Cargo sees to it that only what changed is
/// built; each version of Python has a directory of its own, so that they do not undo each other's work.
pub(crate) fn install_raptors(python: &Path) -> Result<()> {
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
    // Under another name first: a program that has the old one mapped keeps it.
    let coming = installed.with_extension("new");
    std::fs::copy(&built, &coming)
        .and_then(|_| std::fs::rename(&coming, &installed))
        .with_context(|| format!("cannot put raptors at {}", installed.display()))
}

/// Where Python finds the pairs of `subjects/culprits`.
pub(crate) struct Culprits {
    /// The directory of the built libraries, for `LAGGARD_CULPRITS`.
    pub(crate) libraries: PathBuf,
    /// The directory of the package `culprits` and of its `laggard-bench.toml`, for `PYTHONPATH`.
    pub(crate) package: PathBuf,
}

/// Builds the libraries of `subjects/culprits`, for any Python.
pub(crate) fn build_culprits() -> Result<Culprits> {
    let package = project::root().join("subjects/culprits");
    let libraries = target()?.join("culprits");
    std::fs::create_dir_all(&libraries)
        .with_context(|| format!("cannot make {}", libraries.display()))?;
    let name = |of: &str| {
        format!("{}culprits_{of}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX)
    };
    // Under another name first: a program that has the old one mapped keeps it.
    let coming = libraries.join("coming");
    let arrive = |name: String| {
        std::fs::rename(&coming, libraries.join(&name))
            .with_context(|| format!("cannot put {name} into {}", libraries.display()))
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

/// The cargo that runs this, in the workspace of the subjects, for all that needs no Python.
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

/// Builds go below the directory of all builds, but not into it: whoever runs this may hold its lock.
fn target() -> Result<PathBuf> {
    Ok(project::target()?.join("subjects"))
}

/// Where an interpreter looks for modules, and what it calls them.
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
                "{} does not say where modules go: {}",
                python.display(),
                String::from_utf8_lossy(&output.stderr).trim()
            ),
        }
    }
}
