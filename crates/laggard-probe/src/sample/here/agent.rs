//! The agent in this process: checks whether it can be loaded, and calls its two functions.

use crate::error::Error;
use crate::{program, unpack};
use laggard_agent::wire::{RING_VARIABLE, refusal};
use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Why a block of this process cannot be sampled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Only one recording at a time is supported.
    #[error("this process is already being recorded: recordings cannot be nested")]
    Busy,
    /// Started by `laggard record`.
    #[error("this process is already sampled by `laggard record`, which loaded the sampling agent")]
    Preloaded,
    /// Started by `laggard calls`.
    #[error("`laggard calls` is tracing this process: the tracer would show up in every stack")]
    Traced,
    /// Another version of the agent is loaded.
    #[error("another version of the laggard agent is loaded in this process: {}", .0.display())]
    OtherAgent(PathBuf),
    /// The Go runtime is loaded.
    #[error("{} contains the Go runtime, which takes over the signals that the agent needs", .0.display())]
    Go(PathBuf),
    /// The dynamic linker cannot load the agent.
    #[error("cannot load the agent into this process: {0}")]
    NotLoadable(String),
    /// The agent and the driver are incompatible, or the file is gone.
    #[error(
        "cannot use the driver's shared memory file: it is gone, or the driver has another version"
    )]
    Ring,
    /// Neither perf events nor timers are available.
    #[error("no sampling clock is available for threads: {0}")]
    NoClock(io::Error),
    /// A sample of an earlier recording has not finished.
    #[error("a blocked thread has an unfinished sample of an earlier recording: try again later")]
    UnderWay,
}

/// The agent's functions. The agent is never unloaded.
#[derive(Debug)]
pub(super) struct Agent {
    start: unsafe extern "C" fn(*const libc::c_char) -> i32,
    stop: unsafe extern "C" fn() -> i32,
}

static AGENT: OnceLock<Agent> = OnceLock::new();
static LOADING: Mutex<()> = Mutex::new(());

impl Agent {
    /// The agent of this process, loaded on first use.
    pub(super) fn load() -> Result<&'static Agent, Error> {
        let _one = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
        let library = unpack::library("sample", laggard_agent::SAMPLE).map_err(Error::Unpack)?;
        // A library that was loaded since the last recording may prevent sampling.
        check(&library, &loaded())?;
        if let Some(agent) = AGENT.get() {
            return Ok(agent);
        }
        let agent = open(&library)?;
        Ok(AGENT.get_or_init(|| agent))
    }

    pub(super) fn start(&self, ring: &Path) -> Result<(), Error> {
        let path = CString::new(ring.as_os_str().as_bytes()).map_err(|_| Refusal::Ring)?;
        // SAFETY: the function is the agent's, and the path is null-terminated.
        let answer = unsafe { (self.start)(path.as_ptr()) };
        Err(match answer {
            0 => return Ok(()),
            refusal::BUSY => Refusal::Busy,
            refusal::PRELOADED => Refusal::Preloaded,
            refusal::NO_RING => Refusal::Ring,
            refusal::UNDER_WAY => Refusal::UnderWay,
            error => Refusal::NoClock(io::Error::from_raw_os_error(-error)),
        }
        .into())
    }

    pub(super) fn stop(&self) -> i32 {
        // SAFETY: the function is the agent's, and may be called at any time.
        unsafe { (self.stop)() }
    }
}

/// Checks whether one of these loaded files prevents sampling.
fn check(own: &Path, loaded: &BTreeSet<PathBuf>) -> Result<(), Refusal> {
    let is_named = |path: &Path, start: &str| {
        path.file_name().is_some_and(|name| name.as_bytes().starts_with(start.as_bytes()))
    };
    // The agent would join that recording as soon as it is loaded.
    if std::env::var_os(RING_VARIABLE).is_some() {
        return Err(Refusal::Preloaded);
    }
    for path in loaded {
        if is_named(path, "laggard-calls-") {
            return Err(Refusal::Traced);
        }
        if is_named(path, "laggard-sample-") && path.file_name() != own.file_name() {
            return Err(Refusal::OtherAgent(path.clone()));
        }
        if program::is_go(path) {
            return Err(Refusal::Go(path.clone()));
        }
    }
    Ok(())
}

/// Files from which this process maps executable code.
fn loaded() -> BTreeSet<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let path = |line: &str| {
        let mut fields = line.splitn(6, ' ');
        let is_code = fields.nth(1)?.contains('x');
        let path = fields.nth(3)?.trim_start();
        (is_code && path.starts_with('/')).then(|| PathBuf::from(path))
    };
    maps.lines().filter_map(path).collect()
}

fn open(library: &Path) -> Result<Agent, Refusal> {
    let refuse = || Refusal::NotLoadable(last_error());
    let path = CString::new(library.as_os_str().as_bytes())
        .map_err(|_| Refusal::NotLoadable("its path contains a zero byte".into()))?;
    // SAFETY: the library is our own, and its constructor only inspects the process. The functions
    // have the types given here.
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if handle.is_null() {
            return Err(refuse());
        }
        let function = |name: &CStr| {
            let at = libc::dlsym(handle, name.as_ptr());
            if at.is_null() { Err(refuse()) } else { Ok(at) }
        };
        type Start = unsafe extern "C" fn(*const libc::c_char) -> i32;
        type Stop = unsafe extern "C" fn() -> i32;
        Ok(Agent {
            start: std::mem::transmute::<*mut libc::c_void, Start>(function(c"laggard_start")?),
            stop: std::mem::transmute::<*mut libc::c_void, Stop>(function(c"laggard_stop")?),
        })
    }
}

/// The dynamic linker's last error message.
fn last_error() -> String {
    // SAFETY: `dlerror` returns null or a string that is valid until its next call in this thread.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            return "the dynamic linker gave no reason".into();
        }
        CStr::from_ptr(text).to_string_lossy().into_owned()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    #[test]
    fn conflicting_libraries_are_rejected() {
        let own = Path::new("/c/laggard-sample-1.so");
        let with = |path: &str| check(own, &BTreeSet::from([own.into(), path.into()]));
        assert!(with("/lib/libc.so.6").is_ok());
        assert!(matches!(with("/c/laggard-calls-1.so"), Err(Refusal::Traced)));
        assert!(matches!(with("/c/laggard-sample-2.so"), Err(Refusal::OtherAgent(_))));
        assert!(loaded().contains(&std::env::current_exe().unwrap()));
    }
}
