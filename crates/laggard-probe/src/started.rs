//! A command that is about to run, and the description of its run.

use crate::child::Ended;
use crate::sample::here::Used;
use laggard_core::model::profile::About;
use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// The command, ready to be started. The output of a quiet command is discarded.
pub(crate) fn command(words: &[OsString], quiet: bool) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    silence(&mut command, quiet);
    command
}

/// Discards the output of a quiet command.
pub(crate) fn silence(command: &mut Command, quiet: bool) {
    if quiet {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
}

/// Command line and start time of a run.
pub(crate) struct Started {
    command: Vec<String>,
    unix: f64,
    at: Instant,
}

impl Started {
    /// A run of this command that starts now.
    pub(crate) fn now(command: &[OsString]) -> Started {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Started {
            command: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            unix: unix.as_secs_f64(),
            at: Instant::now(),
        }
    }

    /// Time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.at.elapsed()
    }

    /// The description of a run that has not ended.
    pub(crate) fn so_far(&self) -> About {
        About { command: self.command.clone(), ..About::default() }
    }

    /// The description of a recorded block, after which the program continues.
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

    /// The description of a run that ended after `duration` and was measured by `method`.
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
