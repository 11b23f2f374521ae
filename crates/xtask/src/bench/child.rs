//! Runs a program and says what it cost, as the kernel counted it.

use super::machine;
use anyhow::{Context, Result, bail};
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What a run cost, and what it printed.
pub(super) struct Run {
    pub(super) wall_s: f64,
    /// User and system time of all its threads.
    pub(super) cpu_s: f64,
    /// Most memory it had at once, mapped files included.
    pub(super) peak_bytes: u64,
    pub(super) stdout: String,
}

/// Runs `command` to its end, with nothing on its stdin and its stdout kept.
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
        bail!("{}", error.unwrap_or("it failed and said nothing"));
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(Run {
        wall_s,
        cpu_s: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        peak_bytes: usage.ru_maxrss.unsigned_abs() * 1024,
        stdout,
    })
}

/// Runs `command` to its end for the most memory it had of its own, mapped files not included, as
/// looked at every millisecond; none where the system does not say.
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

/// All that comes out of a pipe.
#[cfg(unix)]
fn drain(mut pipe: impl Read) -> String {
    let mut bytes = Vec::new();
    // What came before an error is still worth showing.
    _ = pipe.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Waits as the standard library does, but keeps the usage of this one child.
#[cfg(unix)]
#[expect(unsafe_code, reason = "the standard library does not say what a child used")]
fn wait(pid: u32) -> std::io::Result<(i32, libc::rusage)> {
    let mut status = 0;
    // SAFETY: `rusage` is a C struct of numbers, for which all zeroes is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live locals of the right types; the child is ours and not waited for yet.
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

/// Other systems have no `wait4`.
#[cfg(not(unix))]
pub(super) fn measure(_: &mut Command) -> Result<Run> {
    bail!("benchmarks run on Unix only")
}
