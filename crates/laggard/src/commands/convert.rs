//! `laggard convert`: a recording in another format.

use crate::calls::readable;
use crate::cli::{ConvertArgs, ProfileForm};
use crate::failure;
use crate::output;
use crate::printer::Printer;
use crate::profile::{self, Loaded, form_of, render};
use anyhow::{Context, bail};
use laggard_core::model::calls::Calls;
use laggard_core::profile::{Filter, View, fold_interpreter};
use laggard_formats::lag::{self, Run};
use laggard_formats::write;
use std::path::Path;

/// Runs the verb.
pub(crate) fn run(args: &ConvertArgs, printer: &Printer) -> anyhow::Result<()> {
    let to_stdout = args.output == Path::new("-");
    let Some(form) = args.to.or_else(|| form_of(&args.output)) else {
        bail!("cannot tell the format of {} by its suffix: give --to", args.output.display())
    };
    let narrows = args.event.is_some() || args.thread.is_some() || args.comm.is_some();
    if form == ProfileForm::Lag && narrows {
        bail!("a recording is written whole: leave --event, --thread and --comm out")
    }
    if !to_stdout {
        profile::ensure_replaceable(&args.output, form, args.force)?;
    }
    let (run, losses) = profile::load_run(&args.input)?;
    for loss in &losses {
        printer.warning(loss);
    }
    let mut loaded = match run {
        Run::Profile(found) => Loaded::new(found, losses),
        Run::Calls(found) => return calls(args, printer, form, found),
    };
    if form != ProfileForm::Lag && !args.interpreter {
        fold_interpreter(&mut loaded.profile);
    }
    let filter = Filter {
        event: args.event.clone(),
        thread: args.thread.clone(),
        process: args.comm.clone(),
        start_up: true,
        ..Filter::default()
    };
    let view = View::new(&loaded.profile, &filter).map_err(|missing| profile::missing(&missing))?;
    if to_stdout {
        let content = render(&view, form)?;
        let text =
            String::from_utf8(content).context("this format cannot go to standard output")?;
        return printer.data(&text);
    }
    profile::write_view(&view, &args.output, form)?;
    printer.note(&format!("wrote {}", args.output.display()));
    Ok(())
}

/// Traced calls become collapsed stacks; tables are the report's affair.
fn calls(
    args: &ConvertArgs,
    printer: &Printer,
    form: ProfileForm,
    mut found: Calls,
) -> anyhow::Result<()> {
    let given = [
        ("--event", args.event.is_some()),
        ("--thread", args.thread.is_some()),
        ("--comm", args.comm.is_some()),
    ];
    if let Some((flag, _)) = given.iter().find(|(_, given)| *given) {
        bail!("{flag} narrows samples, and {} has traced calls", args.input.display());
    }
    match form {
        ProfileForm::Lag => lag::write_calls(&args.output, &found)?,
        ProfileForm::Collapsed => {
            readable(&mut found);
            if !args.interpreter {
                fold_interpreter(&mut found.profile);
            }
            let mut content = vec![];
            write::collapsed_calls(&found, &mut content)?;
            if args.output == Path::new("-") {
                return printer.data(&String::from_utf8_lossy(&content));
            }
            output::put(&args.output, &content)
                .with_context(|| format!("cannot write {}", args.output.display()))?;
        }
        _ => {
            return Err(failure::with_hint(
                format!("{} has traced calls, which become collapsed stacks", args.input.display()),
                format!(
                    "give a .folded file; tables as JSON, CSV or Markdown: laggard report {} -o FILE",
                    args.input.display()
                ),
            ));
        }
    }
    printer.note(&format!("wrote {}", args.output.display()));
    Ok(())
}
