//! Interpreter, environment and command line of a side.

use super::plan::{CasePlan, Plan, SidePlan};
use super::trouble::Trouble;
use crate::program::{self, Refusal};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// Variables that set the number of threads of a library.
const THREADS: [&str; 11] = [
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "GOTO_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "RAPTORS_THREADS",
];

/// The interpreter of a side.
pub(super) fn interpreter(side: &SidePlan) -> Result<PathBuf, Refusal> {
    let python = side.python.as_ref().map_or(OsStr::new("python3"), |path| path.as_os_str());
    program(&[python.to_owned()])
}

/// The program of a command, resolved from the current directory whatever directory the side runs
/// in.
pub(super) fn program(words: &[OsString]) -> Result<PathBuf, Refusal> {
    let found = program::runnable(words)?;
    // Not canonicalized: the name of a symbolic link may matter, as in a virtual environment.
    Ok(std::path::absolute(&found).unwrap_or(found))
}

/// The full environment of a side: the inherited one, the number of threads, and its own variables.
pub(super) fn environment(plan: &Plan, side: &SidePlan) -> Vec<(OsString, OsString)> {
    let mut all: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    // Sets and dictionaries have the same order on all sides.
    all.entry("PYTHONHASHSEED".into()).or_insert_with(|| (plan.seed as u32).to_string().into());
    all.extend(own_environment(side));
    all.into_iter().collect()
}

/// Environment variables of a side that are not inherited.
pub(super) fn own_environment(side: &SidePlan) -> Vec<(OsString, OsString)> {
    let threads = side.threads.map(|threads| {
        THREADS.map(|name| (OsString::from(name), OsString::from(threads.to_string())))
    });
    threads.into_iter().flatten().chain(side.env.iter().cloned()).collect()
}

/// Replaces `{name}` in the words by the parameters of a case.
pub(super) fn fill(words: &[OsString], case: &CasePlan) -> Vec<OsString> {
    let fill = |word: &OsString| {
        let mut bytes = word.as_bytes().to_vec();
        for (name, value) in &case.parameters {
            bytes = replace(&bytes, format!("{{{name}}}").as_bytes(), value.as_bytes());
        }
        OsString::from_vec(bytes)
    };
    words.iter().map(fill).collect()
}

fn replace(bytes: &[u8], what: &[u8], by: &[u8]) -> Vec<u8> {
    let mut all = vec![];
    let mut rest = bytes;
    while let Some(&first) = rest.first() {
        if let Some(after) = rest.strip_prefix(what) {
            all.extend(by);
            rest = after;
        } else {
            all.push(first);
            rest = &rest[1..];
        }
    }
    all
}

/// `/dev/null`.
pub(super) fn nowhere() -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/null")
}

/// The facts about a side that are known before it runs.
pub(super) fn facts(side: &SidePlan) -> Vec<(String, String)> {
    let mut facts = vec![];
    let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
    for (name, value) in &side.env {
        fact(&format!("env {}", name.to_string_lossy()), value.to_string_lossy().into_owned());
    }
    if let Some(directory) = &side.directory {
        fact("directory", directory.to_string_lossy().into_owned());
    }
    if let Some(threads) = side.threads {
        fact("requested threads", threads.to_string());
    }
    if !side.cpus.is_empty() {
        let cpus: Vec<String> = side.cpus.iter().map(usize::to_string).collect();
        fact("cpus", cpus.join(","));
    }
    facts
}

/// The CPUs of a side, if it has its own.
pub(super) fn cpus(side: &SidePlan) -> Result<Option<super::pin::Cpus>, Trouble> {
    if side.cpus.is_empty() {
        return Ok(None);
    }
    let unknown = |cpu| Trouble::Plan(format!("cannot run on CPU {cpu}: no such CPU"));
    super::pin::Cpus::of(&side.cpus).map(Some).map_err(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_replace_their_names() {
        let case = CasePlan { parameters: vec![("n".into(), "10".into())], ..CasePlan::default() };
        let words = ["{n}x{n}".into(), "{m}".into(), "{".into()];
        assert_eq!(fill(&words, &case), ["10x10", "{m}", "{"]);
    }
}
