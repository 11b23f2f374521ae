//! `laggard query` and `laggard fleet`: verbs whose engines come with the Python package.

use crate::cli::Talk;
use crate::failure;
use serde::Serialize;
use serde_json::json;
use std::process::ExitCode;

/// Runs a verb of the package: its name, and its flags as JSON. Gives the exit code.
pub type Package<'a> = &'a dyn Fn(&str, &str) -> u8;

/// Runs the verb, if this program is in the package.
pub(crate) fn run(
    verb: &str,
    args: &impl Serialize,
    talk: Talk,
    package: Option<Package>,
) -> anyhow::Result<ExitCode> {
    let Some(package) = package else {
        let extra = if verb == "query" { "sql" } else { "sql,spark" };
        return Err(failure::with_hint(
            format!("{verb} needs an engine that this program does not have inside"),
            format!("it comes with the Python package: pip install 'laggard[{extra}]'"),
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
