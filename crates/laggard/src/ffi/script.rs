//! Generates the program that calls functions through one binding, for use with profilers.

use super::binding::Binding;
use super::suite::Suite;
use serde::Serialize;

/// The template of the program.
const TEXT: &str = include_str!("../../../../subjects/ffi/bench.py");

#[derive(Serialize)]
struct Case<'a> {
    name: &'a str,
    group: &'a str,
    setup: String,
    call: String,
    calls: u64,
}

/// The file name of the program, such as `ctypes_bench.py`.
pub(crate) fn name(binding: Binding) -> String {
    format!("{}_bench.py", identifier(binding))
}

/// The name of a binding as an identifier.
pub(crate) fn identifier(binding: Binding) -> String {
    binding.name().replace('-', "_")
}

/// The program for a binding whose module file is in the same directory.
pub(crate) fn of(suite: &Suite, binding: Binding, module: &str) -> serde_json::Result<String> {
    let case = |category: &super::suite::Category| {
        let statement = category.of(binding, "").ok()?;
        serde_json::to_string(&Case {
            name: &category.name,
            group: &category.group,
            setup: statement.setup,
            call: statement.code,
            calls: statement.calls,
        })
        .into()
    };
    let cases: Vec<String> =
        suite.categories.iter().filter_map(case).collect::<serde_json::Result<_>>()?;
    // JSON strings and numbers are valid Python.
    let cases = format!("[\n    {},\n]", cases.join(",\n    "));
    Ok(TEXT
        .replace("[\"@CASES@\"]", &cases)
        .replace("\"@MODULE@\"", &serde_json::to_string(module)?)
        .replace("@BINDING@", binding.name()))
}
