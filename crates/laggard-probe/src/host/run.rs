//! Runs other programs, which may hang, print too much or fail.

use super::sys;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Time limit.
const PATIENCE: Duration = Duration::from_secs(3);
/// Maximum number of bytes read from each stream.
const LONGEST: u64 = 16 << 10;

/// The text that a program wrote to both streams, and whether it succeeded; or why there is no
/// result.
pub(super) fn run(program: &Path, args: &[&str]) -> Result<(String, bool), String> {
    let deadline = Instant::now() + PATIENCE;
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env_remove("LD_PRELOAD")
        .env_remove("LD_AUDIT")
        // Its own group, so that its children can be killed with it.
        .process_group(0)
        .spawn()
        .map_err(|error| format!("cannot start it: {error}"))?;
    let out = gather(child.stdout.take());
    let err = gather(child.stderr.take());
    let status = ended(&mut child, deadline);
    if status.is_none() {
        sys::kill_group(child.id());
        let _ = child.wait();
        return Err(format!("no response within {} s", PATIENCE.as_secs()));
    }
    // Its children may still hold the pipe open, so do not wait for more output.
    let rest =
        || deadline.saturating_duration_since(Instant::now()).min(Duration::from_millis(200));
    let mut text = out.recv_timeout(rest()).unwrap_or_default();
    text.push('\n');
    text += &err.recv_timeout(rest()).unwrap_or_default();
    Ok((text, status == Some(true)))
}

/// Reads a stream in a detached thread.
fn gather(from: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    if let Some(mut from) = from {
        thread::spawn(move || {
            let mut bytes = vec![];
            let _ = from.by_ref().take(LONGEST).read_to_end(&mut bytes);
            let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
        });
    }
    receiver
}

/// Whether the child succeeded; `None` if it did not end in time.
fn ended(child: &mut Child, deadline: Instant) -> Option<bool> {
    let mut pause = Duration::from_millis(1);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.success()),
            Ok(None) if Instant::now() < deadline => thread::sleep(pause),
            _ => return None,
        }
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Result<(String, bool), String> {
        run(Path::new("/bin/sh"), &["-c", script])
    }

    #[test]
    fn misbehaving_programs_do_not_block() {
        assert_eq!(shell("echo 1; echo 2 >&2"), Ok(("1\n\n2\n".into(), true)));
        assert_eq!(shell("exit 3").map(|(_, well)| well), Ok(false));
        assert_eq!(shell("kill -9 $$").map(|(_, well)| well), Ok(false));
        let (text, _) = shell("printf '\\377\\0x'").unwrap();
        assert_eq!(text, "\u{fffd}\0x\n");
        let (text, _) = shell("yes | head -c 1000000").unwrap();
        assert!(text.len() <= 2 * LONGEST as usize);
        assert!(run(Path::new("/nowhere"), &[]).unwrap_err().starts_with("cannot start it"));
        let start = Instant::now();
        assert_eq!(shell("sleep 60 & sleep 60"), Err("no response within 3 s".into()));
        // A program that leaves a child with its output open.
        assert_eq!(shell("sleep 8 & echo here").map(|(_, well)| well), Ok(true));
        assert!(start.elapsed() < Duration::from_secs(8));
    }
}
