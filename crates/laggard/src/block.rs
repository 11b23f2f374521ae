//! Records a block of code in the calling process with `laggard_probe::sample::here` and
//! `laggard drive`.
//!
//! For programs that use laggard as a library, such as the Python package. The caller gives a file
//! and the command line that starts laggard. All threads are sampled until the recording is stopped.

use crate::cli::ClockArg;
use clap::ValueEnum;
use laggard_probe::Error;
use laggard_probe::sample::here;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// Options of a recording.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The file to write; its suffix selects the format.
    pub output: PathBuf,
    /// Sampling rate of each thread, in samples per second.
    pub rate: f64,
    /// The clock that drives the samples.
    pub clock: ClockArg,
    /// Maximum stack bytes copied per sample.
    pub stack_size: u64,
    /// Keep only samples whose thread held the GIL.
    pub gil: bool,
    /// Overwrite a file of another kind.
    pub force: bool,
}

impl Wanted {
    /// The defaults of `laggard record` for this file.
    pub fn to(output: impl Into<PathBuf>) -> Wanted {
        Wanted {
            output: output.into(),
            rate: 999.0,
            clock: ClockArg::Cpu,
            stack_size: 64 << 10,
            gil: false,
            force: false,
        }
    }
}

/// Starts sampling this process. `laggard` is the command line that starts laggard, such as
/// `python -m laggard`. Blocks until the driver process has started. Must not be called while holding
/// a lock that other threads wait for, such as the GIL.
pub fn start(wanted: &Wanted, laggard: &[OsString]) -> Result<here::Recording, Error> {
    let (program, words) = match laggard {
        [program, words @ ..] => (program.clone(), words),
        [] => (OsString::from("laggard"), laggard),
    };
    let clock = wanted.clock.to_possible_value();
    let mut driver = Command::new(program);
    driver.args(words).arg("drive");
    driver.args(["--pid", &std::process::id().to_string(), "--rate", &wanted.rate.to_string()]);
    driver.args(["--clock", clock.as_ref().map_or("cpu", |clock| clock.get_name())]);
    driver.args(["--stack-size", &wanted.stack_size.to_string()]);
    driver.args(wanted.gil.then_some("--gil")).args(wanted.force.then_some("--force"));
    // In one argument, so that a name starting with `-` is not parsed as an option.
    let mut output = OsString::from("--output=");
    output.push(&wanted.output);
    driver.arg(output);
    here::start(driver)
}
