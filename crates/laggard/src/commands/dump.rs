//! `laggard dump`: prints the current stacks of a running Python program.

use crate::cli::DumpArgs;
use crate::failure;
use crate::printer::Printer;
use laggard_probe::{Error, dump as probe};
use laggard_report::dump as show;

/// Runs the verb.
pub(crate) fn run(args: &DumpArgs, printer: &Printer) -> anyhow::Result<()> {
    let dump = probe::dump(args.pid).map_err(explain)?;
    printer.data(&if args.json { show::json(&dump) } else { show::text(&dump) })
}

fn explain(error: Error) -> anyhow::Error {
    let hint = match &error {
        Error::Unreadable { help: Some(help), .. } => help.clone(),
        Error::UnknownPython { pid, .. } => {
            format!("sample native stacks with perf instead: laggard record --pid {pid}")
        }
        _ => return error.into(),
    };
    failure::with_hint(error.to_string(), hint)
}
