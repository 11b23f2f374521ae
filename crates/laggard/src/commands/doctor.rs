//! `laggard doctor`: checks what this machine supports and what makes timings noisy, and prints fixes.

use crate::cli::{DoctorArgs, Format, Strict};
use crate::printer::Printer;
use laggard_probe::host::{self, Places, Root};
use laggard_report::doctor::{self as show, Verdict};
use std::process::ExitCode;

/// Exit status if `--strict` trips.
const TRIPPED: u8 = 1;

/// Runs the verb.
pub(crate) fn run(args: &DoctorArgs, printer: &Printer) -> anyhow::Result<ExitCode> {
    let places = args.output.places()?;
    let host = host::read(&Root::real(), &Places::from_env());
    let diagnosis = show::diagnose(&host);
    places.write(printer, |form, style| match form {
        Format::Text => show::text(&diagnosis, style),
        Format::Json => show::json(&host, &diagnosis),
        Format::Csv => show::csv(&diagnosis),
        Format::Md | Format::Html => show::markdown(&diagnosis),
    })?;
    let tripped = match args.strict {
        None => false,
        Some(Strict::Costs) => diagnosis.worst() <= Verdict::Costs,
        Some(Strict::Blocks) => diagnosis.worst() <= Verdict::Blocks,
    };
    Ok(if tripped { ExitCode::from(TRIPPED) } else { ExitCode::SUCCESS })
}
