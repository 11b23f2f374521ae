//! `cargo xtask bench`: benchmarks of laggard and of comparable tools.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod capture;
mod child;
mod compare;
mod document;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod ffi;
mod inputs;
mod machine;
#[cfg(target_os = "linux")]
mod package;
mod peers;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod profiles;
mod summary;
mod traces;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod verdicts;

use anyhow::Result;
use clap::Subcommand;
use std::process::ExitCode;

/// Run benchmarks, print a table and write it to docs/benchmarks.md
#[derive(Subcommand)]
pub(crate) enum Verb {
    Traces(traces::Args),
    Compare(compare::Args),
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    Capture(capture::Args),
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    Verdicts(verdicts::Args),
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    Profiles(profiles::Args),
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    Ffi(ffi::Args),
    #[cfg(target_os = "linux")]
    Python(package::PythonArgs),
    #[cfg(target_os = "linux")]
    Fleet(package::FleetArgs),
}

pub(crate) fn run(verb: &Verb) -> Result<ExitCode> {
    match verb {
        Verb::Traces(args) => traces::run(args),
        Verb::Compare(args) => compare::run(args),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        Verb::Capture(args) => capture::run(args),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        Verb::Verdicts(args) => verdicts::run(args),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        Verb::Profiles(args) => profiles::run(args),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        Verb::Ffi(args) => ffi::run(args),
        #[cfg(target_os = "linux")]
        Verb::Python(args) => package::python(args),
        #[cfg(target_os = "linux")]
        Verb::Fleet(args) => package::fleet(args),
    }
}
