//! `laggard convert`: converts profiles and call traces to other formats.

use crate::calls::readable;
use crate::cli::{ConvertArgs, ProfileForm};
use crate::evidence::Evidence;
use crate::failure;
use crate::output;
use crate::printer::Printer;
use crate::profile::{self, form_of};
use anyhow::{Context, bail};
use laggard_core::model::calls::Calls;
use laggard_core::profile::{View, fold_interpreter};
use laggard_formats::lag::{self, Run};
use laggard_formats::write;
use std::path::Path;

/// Runs the verb.
pub(crate) fn run(args: &ConvertArgs, printer: &Printer) -> anyhow::Result<()> {
    let to_stdout = args.output == Path::new("-");
    let Some(form) = args.to.or_else(|| form_of(&args.output)) else {
        bail!("cannot infer a format from the suffix of {}: give --to", args.output.display())
    };
    if form == ProfileForm::Lag && to_stdout {
        bail!("cannot write a .lag recording to standard output")
    }
    if form == ProfileForm::Lag
        && let Some(flag) = args.narrow.given().next()
    {
        bail!("filters do not apply to .lag output: remove {flag}")
    }
    if !to_stdout {
        profile::ensure_replaceable(&args.output, form, args.force)?;
    }
    let mut loaded = match Evidence::load(&args.input, printer)? {
        Evidence::Profile(loaded) => loaded,
        // For `.lag` files, the call trace is loaded again below to keep the mangled names.
        Evidence::Calls(loaded) if !profile::is_run(&args.input).unwrap_or(false) => {
            return calls(args, printer, form, loaded.calls);
        }
        Evidence::Calls(_) => {
            let (run, losses) = profile::load_run(&args.input)?;
            for loss in &losses {
                printer.warning(loss);
            }
            let Run::Calls(found) = run else {
                bail!("{} changed while it was read", args.input.display())
            };
            return calls(args, printer, form, found);
        }
        other => {
            return Err(failure::with_hint(
                format!(
                    "cannot convert {}: it is {}, not a profile or a call trace",
                    args.input.display(),
                    other.words()
                ),
                format!("show it in a browser: laggard view {}", args.input.display()),
            ));
        }
    };
    for loss in loaded.losses.iter().chain(&loaded.profile.quality.warnings) {
        printer.warning(loss);
    }
    if form != ProfileForm::Lag {
        args.narrow.fold(&mut loaded.profile, true);
    }
    // Start-up samples are hidden only with a library filter.
    let filter = args.narrow.filter();
    let view = View::new(&loaded.profile, &filter).map_err(|missing| profile::missing(&missing))?;
    profile::ensure_some(&view)?;
    if to_stdout {
        return printer.bytes(&profile::content(&view, form, false)?);
    }
    profile::write_view(&view, &args.output, form)?;
    printer.note(&format!("wrote {}", args.output.display()));
    Ok(())
}

/// Converts a call trace to collapsed stacks. `laggard report` writes its tables.
fn calls(
    args: &ConvertArgs,
    printer: &Printer,
    form: ProfileForm,
    mut found: Calls,
) -> anyhow::Result<()> {
    let mut given = args.narrow.given().filter(|flag| *flag != "--interpreter");
    if let Some(flag) = given.next() {
        bail!("{flag} applies to profiles; {} is a call trace", args.input.display());
    }
    match form {
        ProfileForm::Lag => lag::write_calls(&args.output, &found)?,
        ProfileForm::Collapsed => {
            readable(&mut found);
            if !args.narrow.interpreter {
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
                format!(
                    "{} is a call trace, which can only be converted to collapsed stacks",
                    args.input.display()
                ),
                format!(
                    "use the suffix .folded, or write tables as JSON, CSV or Markdown: laggard report {} -o FILE",
                    args.input.display()
                ),
            ));
        }
    }
    printer.note(&format!("wrote {}", args.output.display()));
    Ok(())
}
