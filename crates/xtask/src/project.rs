//! Paths of the workspace, and running commands in it.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// Root directory of the workspace.
pub(crate) fn root() -> PathBuf {
    let manifest =
        std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let manifest = PathBuf::from(manifest);
    manifest.ancestors().nth(2).unwrap_or(&manifest).to_owned()
}

/// Target directory of the workspace.
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
        .context("cargo metadata reports no target directory")?;
    Ok(target.into())
}

/// The cargo that runs this program, in the workspace root.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Builds laggard and returns its path.
pub(crate) fn laggard() -> Result<PathBuf> {
    must(cargo().args(["build", "--quiet", "--release", "--package", "laggard"]))?;
    Ok(target()?.join("release").join(format!("laggard{}", std::env::consts::EXE_SUFFIX)))
}

/// Prints a command to stderr and runs it.
pub(crate) fn run(command: &mut Command) -> Result<ExitStatus> {
    eprintln!("$ {}", spell(command));
    command.status().with_context(|| format!("cannot run {}", command.get_program().display()))
}

/// Prints a command and runs it; fails if it fails.
pub(crate) fn must(command: &mut Command) -> Result<()> {
    let status = run(command)?;
    if !status.success() {
        bail!("{} failed: {status}", spell(command));
    }
    Ok(())
}

/// A path relative to the workspace root, if it is below it.
pub(crate) fn short(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// Finds a program in PATH.
pub(crate) fn which(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|directory| directory.join(format!("{program}{}", std::env::consts::EXE_SUFFIX)))
        .find(|path| path.is_file())
}

/// A command that can be pasted into a shell in the workspace root.
fn spell(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut words = vec![if program.ends_with("cargo") { "cargo".into() } else { short(program) }];
    words.extend(command.get_args().map(|word| match Path::new(word) {
        path if path == root() => ".".into(),
        path => short(path),
    }));
    words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}

/// A command with full paths, which can be pasted into a shell in any directory.
pub(crate) fn spell_full(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| shell_word(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

/// A word quoted for a POSIX shell, if it needs quotes.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_quoted_for_a_shell() {
        let mut command = Command::new("laggard");
        command.args(["why", "--b-env", "SIMD=off", "a * 2", "r.scale(2)", "it's", "", "$HOME"]);
        let spelled = r"laggard why --b-env SIMD=off 'a * 2' 'r.scale(2)' 'it'\''s' '' '$HOME'";
        assert_eq!(spell(&command), spelled);
    }

    #[test]
    fn full_paths_are_not_shortened() {
        let file = root().join("it's.so").display().to_string();
        let mut command = Command::new(root().join("laggard"));
        command.args(["inspect", "--fn", "*scale*", &file]);
        let spelled = format!(
            "{} inspect --fn '*scale*' {}",
            shell_word(&root().join("laggard").display().to_string()),
            shell_word(&file)
        );
        assert_eq!(spell_full(&command), spelled);
    }
}
