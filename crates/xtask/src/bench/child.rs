//! Runs a program and returns its resource usage as counted by the kernel.

use super::machine;
use anyhow::{Context, Result, bail};
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Resource usage and output of a run.
pub(super) struct Run {
    pub(super) wall_s: f64,
    /// User and system time of all threads.
    pub(super) cpu_s: f64,
    /// Peak resident memory, including mapped files.
    pub(super) peak_bytes: u64,
    pub(super) stdout: String,
}

/// Runs `command` with an empty stdin and captures its stdout.
#[cfg(unix)]
pub(super) fn measure(command: &mut Command) -> Result<Run> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let start = Instant::now();
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let (stdout, stderr) = std::thread::scope(|scope| {
        let stderr = child.stderr.take().map(|pipe| scope.spawn(|| drain(pipe)));
        let stdout = child.stdout.take().map(drain).unwrap_or_default();
        (stdout, stderr.and_then(|reader| reader.join().ok()).unwrap_or_default())
    });
    let (status, usage) = wait(child.id()).context("cannot wait for the program")?;
    let wall_s = start.elapsed().as_secs_f64();
    if status != 0 {
        let mut lines = stderr.lines().filter(|line| !line.trim().is_empty());
        let error =
            lines.clone().find(|line| line.starts_with("error")).or_else(|| lines.next_back());
        bail!("{}", error.unwrap_or("failed without an error message"));
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(Run {
        wall_s,
        cpu_s: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        peak_bytes: usage.ru_maxrss.unsigned_abs() * 1024,
        stdout,
    })
}

/// Runs `command` and returns its peak anonymous memory, polled every millisecond. `None` if the
/// system does not report it.
pub(super) fn own_peak(command: &mut Command) -> Result<Option<u64>> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak = None;
    loop {
        peak = peak.max(machine::kilobytes(&status, "RssAnon:").map(|kilobytes| kilobytes * 1024));
        if let Some(exit) = child.try_wait()? {
            anyhow::ensure!(exit.success(), "{} failed", command.get_program().display());
            return Ok(peak);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Reads a pipe to its end.
#[cfg(unix)]
fn drain(mut pipe: impl Read) -> String {
    let mut bytes = Vec::new();
    // Output before a read error is still useful.
    _ = pipe.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Waits for a child and returns its resource usage.
#[cfg(unix)]
#[expect(
    unsafe_code,
    reason = "the standard library does not report the resource usage of a child"
)]
fn wait(pid: u32) -> std::io::Result<(i32, libc::rusage)> {
    let mut status = 0;
    // SAFETY: `rusage` is a C struct of numbers, for which all zeros is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers point to live locals of the right types, and nothing else waits for
        // the child.
        let done = unsafe { libc::wait4(pid.cast_signed(), &raw mut status, 0, &raw mut usage) };
        if done >= 0 {
            return Ok((status, usage));
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Only Unix has `wait4`.
#[cfg(not(unix))]
pub(super) fn measure(_: &mut Command) -> Result<Run> {
    bail!("benchmarks run on Unix only")
}
