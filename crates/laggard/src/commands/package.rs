//! `laggard query` and `laggard fleet`: verbs implemented in the Python package.

use crate::cli::Talk;
use crate::failure;
use serde::Serialize;
use serde_json::json;
use std::process::ExitCode;

/// Runs a verb of the package. Takes its name and its flags as JSON, and returns the exit status.
pub type Package<'a> = &'a dyn Fn(&str, &str) -> u8;

/// Runs the verb, or fails if this program is not part of the Python package.
pub(crate) fn run(
    verb: &str,
    args: &impl Serialize,
    talk: Talk,
    package: Option<Package>,
) -> anyhow::Result<ExitCode> {
    let Some(package) = package else {
        let extra = "sql";
        return Err(failure::with_hint(
            format!("laggard {verb} is not included in this binary"),
            format!(
                "install the Python package from the source directory: pip install '.[{extra}]'"
            ),
        ));
    };
    let flags = json!({
        "args": serde_json::to_value(args)?,
        "quiet": talk.quiet,
        "verbose": talk.verbose,
        "progress": !talk.no_progress,
    });
    Ok(ExitCode::from(package(verb, &flags.to_string())))
}
