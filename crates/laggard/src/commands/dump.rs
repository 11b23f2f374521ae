//! `laggard dump`: what the threads of a running Python program do at this moment.

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
            format!("laggard record --pid {pid} (native stacks, with perf)")
        }
        _ => return error.into(),
    };
    failure::with_hint(error.to_string(), hint)
}
