//! The current Python stacks of a running process.
//!
//! The input is a process ID, the output is a [`Dump`]. The process is not stopped: its memory is
//! read while it runs, each thread at least twice, until two readings agree. Supports CPython 3.9
//! to 3.14, built with the GIL.
#![allow(unsafe_code, reason = "reads the memory of another process")]

mod find;
mod layout;
mod memory;
mod names;
mod stacks;

use crate::error::Error;
use laggard_core::model::dump::{Dump, Thread};
use memory::Remote;

/// Reads the stacks of a process.
pub fn dump(pid: u32) -> Result<Dump, Error> {
    let directory = format!("/proc/{pid}");
    let maps = std::fs::read(format!("{directory}/maps")).map_err(|why| refused(pid, &why))?;
    let command = std::fs::read(format!("{directory}/cmdline")).unwrap_or_default();
    let command = command.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let mut dump = Dump {
        pid,
        command: command.map(|word| String::from_utf8_lossy(word).into_owned()).collect(),
        python: None,
        threads: threads(pid),
    };
    let memory = Remote::new(pid);
    if maps.is_empty() {
        // A kernel thread, or a zombie.
        return Ok(dump);
    }
    memory.check().map_err(|why| refused(pid, &why))?;
    let Some(python) = find::python(pid, &maps, &memory)? else { return Ok(dump) };
    dump.python = Some(format!("3.{}", python.interpreter.layout.minor));
    stacks::add(&mut dump.threads, &python, &memory);
    dump.threads.sort_by_key(|thread| (!thread.is_python, thread.tid));
    Ok(dump)
}

/// The threads from `/proc`.
fn threads(pid: u32) -> Vec<Thread> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return vec![] };
    let mut all: Vec<Thread> = tasks
        .filter_map(|task| {
            let tid = task.ok()?.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
            let stat = String::from_utf8_lossy(&stat).into_owned();
            // The name is in parentheses and may contain parentheses itself; the rest of the line
            // has none.
            let (head, rest) = stat.rsplit_once(')')?;
            let (_, name) = head.split_once('(')?;
            let is_running = rest.trim_start().starts_with('R');
            Some(Thread { tid, name: name.to_owned(), is_running, ..Thread::default() })
        })
        .collect();
    all.sort_by_key(|thread| thread.tid);
    all
}

/// The reason why a process cannot be read, and the command that helps.
fn refused(pid: u32, why: &std::io::Error) -> Error {
    use std::io::ErrorKind;
    if why.kind() == ErrorKind::NotFound || why.raw_os_error() == Some(libc::ESRCH) {
        return Error::NoProcess { pid };
    }
    let sudo = || Some(format!("sudo laggard dump --pid {pid}"));
    let owner = std::fs::metadata(format!("/proc/{pid}"));
    let owner = owner.map(|data| std::os::unix::fs::MetadataExt::uid(&data)).ok();
    // SAFETY: `geteuid` takes no arguments and cannot fail.
    let user = unsafe { libc::geteuid() };
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let (why, help) = match scope.trim() {
        _ if user != 0 && owner.is_some_and(|owner| owner != user) => {
            (format!("it belongs to user ID {}", owner.unwrap_or(0)), sudo())
        }
        "3" => {
            ("kernel.yama.ptrace_scope is 3: forbidden for all users until a reboot".into(), None)
        }
        "2" if user != 0 => ("kernel.yama.ptrace_scope is 2: only root is allowed".into(), sudo()),
        "1" if user != 0 => (
            "kernel.yama.ptrace_scope is 1: only its parent process is allowed".into(),
            Some("sudo sysctl kernel.yama.ptrace_scope=0".into()),
        ),
        _ if user == 0 => (
            format!("{why}; root lacks the capability CAP_SYS_PTRACE, as in a container"),
            Some("docker run --cap-add SYS_PTRACE …".into()),
        ),
        _ => (why.to_string(), sudo()),
    };
    Error::Unreadable { pid, why, help }
}
