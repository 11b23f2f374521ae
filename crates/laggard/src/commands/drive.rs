//! `laggard drive`: internal verb, started by a process that records a block of itself. It reads the
//! samples of that process and reports to it in lines (`laggard_probe::sample::here`).

use super::record::{Growing, complete, ensure_writable, explain, keep, pick_form};
use crate::cli::{ClockArg, DriveArgs, ProfileForm};
use crate::printer::Printer;
use crate::profile::ensure_replaceable;
use laggard_core::model::profile::state;
use laggard_core::profile::quality;
use laggard_probe::Error;
use laggard_probe::sample::here::{Block, Line, drive, leave_parent};
use laggard_probe::sample::{Clock, Options};
use std::path::Path;

/// Runs the verb.
pub(crate) fn run(args: &DriveArgs, printer: &Printer) -> anyhow::Result<()> {
    leave_parent()?;
    // Errors are sent to the recorded process, which shows them.
    if let Err(error) = record(args, printer) {
        printer.data(&Line::Error(format!("{error:#}")).to_string())?;
    }
    Ok(())
}

fn record(args: &DriveArgs, printer: &Printer) -> anyhow::Result<()> {
    let form = pick_form(&args.output)?;
    ensure_writable(&args.output)?;
    ensure_replaceable(&args.output, form, args.force)?;
    let options = Options {
        rate: args.rate,
        clock: match args.clock {
            ClockArg::Cpu => Clock::Cpu,
            ClockArg::Wall => Clock::Wall,
        },
        stack_size: args.stack_size,
        ..Options::default()
    };
    let growing = (form == ProfileForm::Lag).then_some(&*args.output);
    let mut file = Growing::new(growing);
    let mut ready = |ring: &Path| {
        let told = printer.data(&Line::Ring(ring.into()).to_string());
        told.map_err(|error| Error::Driver(std::io::Error::other(error)))
    };
    let block = Block { pid: args.pid, options: &options };
    let mut profile =
        drive(&block, &mut ready, &mut |profile| file.append(profile)).map_err(explain)?;
    if args.gil {
        profile.samples.retain(|sample| sample.state & state::GIL != 0);
    }
    complete(&mut profile);
    if args.gil {
        profile.about.facts.push(("flags".into(), "--gil".into()));
    }
    keep(&mut profile, &args.output, form)?;
    let sum = quality(&profile);
    // Write errors are ignored: the process may have exited, but the recording is complete.
    for warning in &sum.warnings {
        let _ = printer.data(&Line::Warning(warning.clone()).to_string());
    }
    let (samples, complete, lost) = (sum.samples, sum.complete, sum.lost);
    let _ = printer.data(&Line::Done { samples, complete, lost }.to_string());
    Ok(())
}
