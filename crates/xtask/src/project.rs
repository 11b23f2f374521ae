//! Where things are in the project, and how to run programs in it.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// The directory of the workspace.
pub(crate) fn root() -> PathBuf {
    let manifest =
        std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let manifest = PathBuf::from(manifest);
    manifest.ancestors().nth(2).unwrap_or(&manifest).to_owned()
}

/// The directory that builds go to.
pub(crate) fn target() -> Result<PathBuf> {
    let mut metadata = cargo();
    metadata.args(["metadata", "--no-deps", "--format-version", "1"]);
    let output = metadata.output().context("cannot run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let target = metadata["target_directory"]
        .as_str()
        .context("cargo metadata names no target directory")?;
    Ok(target.into())
}

/// The cargo that runs this, in the workspace.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Builds the program and says where it is.
pub(crate) fn laggard() -> Result<PathBuf> {
    must(cargo().args(["build", "--quiet", "--release", "--package", "laggard"]))?;
    Ok(target()?.join("release").join(format!("laggard{}", std::env::consts::EXE_SUFFIX)))
}

/// Shows the command on stderr and runs it.
pub(crate) fn run(command: &mut Command) -> Result<ExitStatus> {
    eprintln!("$ {}", spell(command));
    command.status().with_context(|| format!("cannot run {}", command.get_program().display()))
}

/// Shows the command and runs it; its failure is ours.
pub(crate) fn must(command: &mut Command) -> Result<()> {
    let status = run(command)?;
    if !status.success() {
        bail!("{} failed: {status}", spell(command));
    }
    Ok(())
}

/// A path as a person in the workspace would type it.
pub(crate) fn short(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// Where a program stands in PATH.
pub(crate) fn which(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|directory| directory.join(format!("{program}{}", std::env::consts::EXE_SUFFIX)))
        .find(|path| path.is_file())
}

fn spell(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut words = vec![if program.ends_with("cargo") { "cargo".into() } else { short(program) }];
    words.extend(command.get_args().map(|word| {
        let word = short(Path::new(word));
        if word.is_empty() || word.contains([' ', '"', '*', '$']) {
            format!("'{word}'")
        } else {
            word
        }
    }));
    words.join(" ")
}
