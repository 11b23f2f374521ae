//! Finds and runs perf and py-spy.

use crate::{project, python};
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Paths of the tools, or why they are not available.
pub(super) struct Tools {
    perf: Result<PathBuf, String>,
    spy: Result<PathBuf, String>,
}

impl Tools {
    /// Finds perf in PATH, and installs py-spy into the environment of `python`.
    pub(super) fn find(python: &Path) -> Tools {
        let tools = Tools { perf: perf(), spy: spy(python) };
        for why in [&tools.perf, &tools.spy].into_iter().filter_map(|tool| tool.as_ref().err()) {
            eprintln!("skipped: {why}");
        }
        tools
    }

    /// `perf record` with stack copies.
    pub(super) fn perf_record(
        &self,
        rate: u32,
        output: &Path,
        command: &[OsString],
    ) -> Result<Command> {
        let mut run = Command::new(known(&self.perf)?);
        run.args(["record", "--quiet", "-F", &rate.to_string()])
            .args(["-e", "task-clock:u", "--call-graph", "dwarf,32768", "-o"])
            .arg(output)
            .arg("--")
            .args(command);
        Ok(run)
    }

    /// Output of `perf script`: one block per sample, with frames from the leaf outwards.
    pub(super) fn perf_script(&self, recording: &Path) -> Result<String> {
        let mut run = Command::new(known(&self.perf)?);
        run.args(["script", "--no-inline", "-F", "ip,sym,dso", "-i"]).arg(recording);
        Ok(String::from_utf8_lossy(&answer(&mut run)?.stdout).into_owned())
    }

    /// `py-spy record` with collapsed stacks as output.
    pub(super) fn spy_record(
        &self,
        rate: u32,
        is_native: bool,
        output: &Path,
        command: &[OsString],
    ) -> Result<Command> {
        let mut run = Command::new(known(&self.spy)?);
        run.args(["record", "--rate", &rate.to_string()]);
        if is_native {
            run.arg("--native");
        }
        run.args(["--format", "raw", "-o"]).arg(output).arg("--").args(command);
        Ok(run)
    }
}

/// Runs a command. An error contains the last line of its stderr.
pub(super) fn answer(command: &mut Command) -> Result<Output> {
    let program = command.get_program().to_owned();
    // Errors end up in the document, which must not contain local paths.
    let program = Path::new(&program).file_name().unwrap_or(&program).to_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no error message");
        bail!("{} failed ({}): {}", program.display(), output.status, last.trim());
    }
    Ok(output)
}

fn known(tool: &Result<PathBuf, String>) -> Result<&PathBuf> {
    tool.as_ref().map_err(|why| anyhow::anyhow!("{why}"))
}

fn perf() -> Result<PathBuf, String> {
    let perf = project::which("perf").ok_or("perf is not in PATH")?;
    let mut run = Command::new(&perf);
    run.args(["record", "--quiet", "-e", "task-clock:u", "-o", "/dev/null", "--", "true"]);
    answer(&mut run).map(|_| perf).map_err(|error| format!("{error:#}"))
}

fn spy(python: &Path) -> Result<PathBuf, String> {
    let spy = python.with_file_name("py-spy");
    if !spy.is_file() {
        python::install(python, "py-spy").map_err(|error| format!("py-spy: {error:#}"))?;
    }
    let mut run = Command::new(&spy);
    answer(run.arg("--version")).map(|_| spy).map_err(|error| format!("{error:#}"))
}
