//! A command on its way: how it is run, and what is said about its run afterwards.

use crate::child::Ended;
use crate::sample::here::Used;
use laggard_core::model::profile::About;
use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// The command, ready to be started; a quiet one says nothing.
pub(crate) fn command(words: &[OsString], quiet: bool) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    silence(&mut command, quiet);
    command
}

/// Lets what a quiet command writes go nowhere.
pub(crate) fn silence(command: &mut Command, quiet: bool) {
    if quiet {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
}

/// When a command was started.
pub(crate) struct Started {
    command: Vec<String>,
    unix: f64,
    at: Instant,
}

impl Started {
    /// Now.
    pub(crate) fn now(command: &[OsString]) -> Started {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Started {
            command: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            unix: unix.as_secs_f64(),
            at: Instant::now(),
        }
    }

    /// Time since.
    pub(crate) fn elapsed(&self) -> Duration {
        self.at.elapsed()
    }

    /// What is known of the run while it goes on.
    pub(crate) fn so_far(&self) -> About {
        About { command: self.command.clone(), ..About::default() }
    }

    /// What is said about a block of a program that goes on after it.
    pub(crate) fn about_block(&self, used: &Used) -> About {
        About {
            started_unix: self.unix,
            duration_ns: used.wall_ns,
            user_ns: used.user_ns,
            system_ns: used.system_ns,
            method: "agent".into(),
            tool: concat!("laggard ", env!("CARGO_PKG_VERSION")).into(),
            ..self.so_far()
        }
    }

    /// What is said about the run: it ended so, `duration` after its start, and `method` watched
    /// it.
    pub(crate) fn about(&self, ended: &Ended, duration: Duration, method: &str) -> About {
        About {
            exit_code: Some(ended.code()),
            started_unix: self.unix,
            duration_ns: duration.as_nanos() as u64,
            user_ns: ended.user_ns,
            system_ns: ended.system_ns,
            method: method.into(),
            tool: concat!("laggard ", env!("CARGO_PKG_VERSION")).into(),
            ..self.so_far()
        }
    }
}
