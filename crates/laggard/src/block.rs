//! Recording a block of code in the calling process: `laggard_probe::sample::here` with
//! `laggard drive` beside it.
//!
//! For programs that have laggard as a library, such as its Python package. You give a file and
//! the words that start laggard, you get samples of all threads until you stop them.

use crate::cli::ClockArg;
use clap::ValueEnum;
use laggard_probe::Error;
use laggard_probe::sample::here;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// What is recorded, and where it goes.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The file to write; its suffix says the form.
    pub output: PathBuf,
    /// Samples per second of each thread's clock.
    pub rate: f64,
    /// The clock that drives the samples.
    pub clock: ClockArg,
    /// Most of a stack that is copied for a sample, bytes.
    pub stack_size: u64,
    /// Keep only samples whose thread held Python's global lock.
    pub gil: bool,
    /// Overwrite a file of another kind.
    pub force: bool,
}

impl Wanted {
    /// What `laggard record` does when it is told no more than this file.
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

/// Samples this process from now on. `laggard` are the words that start laggard, such as
/// `python -m laggard`; a driver is started with them and waited for, so this takes as long as that
/// program needs to start. Not to be called with a lock held that another thread of the program
/// waits for, such as Python's.
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
    // Not taken for a flag, whatever it is called.
    let mut output = OsString::from("--output=");
    output.push(&wanted.output);
    driver.arg(output);
    here::start(driver)
}
