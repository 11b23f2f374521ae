//! `cargo xtask goldens`: writes the files in `fixtures/`, or checks that they are up to date.

use crate::project;
use anyhow::{Context, Result};
use laggard_samples::compress::expand;
use laggard_samples::fixtures::{self, Fixture};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write the files in fixtures/
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Exit with status 1 if a file is out of date; write nothing
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let directory = project::root().join("fixtures");
    let mut fixtures = fixtures::all()?;
    fixtures.push(document("expected.json", expected(&fixtures)));
    fixtures.push(document("README.md", readme(&fixtures)));
    let stale: Vec<&Fixture> =
        fixtures.iter().filter(|fixture| !is_up_to_date(&directory, fixture)).collect();
    let wanted: BTreeSet<PathBuf> =
        fixtures.iter().map(|fixture| directory.join(&fixture.path)).collect();
    // Files from other programs cannot be regenerated. Their READMEs list the commands.
    let recorded = ["profiles", "bench", "culprits", "real"].map(|name| directory.join(name));
    let strays: Vec<PathBuf> = files_below(&directory)?
        .into_iter()
        .filter(|path| {
            !wanted.contains(path) && !recorded.iter().any(|other| path.starts_with(other))
        })
        .collect();
    if args.check {
        for fixture in &stale {
            eprintln!("error: fixtures/{} is out of date", fixture.path);
        }
        for stray in &strays {
            eprintln!("error: {} is not a generated fixture", project::short(stray));
        }
        if !stale.is_empty() || !strays.is_empty() {
            eprintln!("hint: run `cargo xtask goldens` and review the changes");
            return Ok(ExitCode::FAILURE);
        }
        eprintln!("{} fixtures are up to date", fixtures.len());
        return Ok(ExitCode::SUCCESS);
    }
    for fixture in &stale {
        let path = directory.join(&fixture.path);
        let written = std::fs::create_dir_all(path.parent().unwrap_or(&directory))
            .and_then(|()| std::fs::write(&path, &fixture.bytes));
        written.with_context(|| format!("cannot write {}", path.display()))?;
    }
    for stray in &strays {
        std::fs::remove_file(stray)
            .with_context(|| format!("cannot remove {}", stray.display()))?;
    }
    eprintln!("{} fixtures, {} written, {} removed", fixtures.len(), stale.len(), strays.len());
    Ok(ExitCode::SUCCESS)
}

/// Compares compressed files by content, since compressors change. For a truncated file, the length of
/// the content also depends on the compressor.
fn is_up_to_date(directory: &Path, fixture: &Fixture) -> bool {
    let Ok(bytes) = std::fs::read(directory.join(&fixture.path)) else { return false };
    let is_compressed = [".gz", ".zst"].iter().any(|suffix| fixture.path.ends_with(suffix));
    if !is_compressed {
        return bytes == fixture.bytes;
    }
    let (there, wanted) = (expand(&bytes), expand(&fixture.bytes));
    match fixture.found {
        Some(_) => there == wanted,
        None => !there.is_empty() && (there.starts_with(&wanted) || wanted.starts_with(&there)),
    }
}

fn document(path: &str, text: String) -> Fixture {
    Fixture {
        path: path.into(),
        about: String::new(),
        command: String::new(),
        bytes: text.into_bytes(),
        found: None,
    }
}

/// The exact counts of each file, for tests in any language.
fn expected(fixtures: &[Fixture]) -> String {
    let files: Map<String, Value> = fixtures
        .iter()
        .filter_map(|fixture| Some((fixture.path.clone(), fixture.found?)))
        .map(|(path, found)| {
            (
                path,
                found
                    .named()
                    .into_iter()
                    .map(|(key, count)| (key.to_owned(), count.into()))
                    .collect::<Map<_, _>>()
                    .into(),
            )
        })
        .collect();
    format!("{:#}\n", Value::Object(files))
}

fn readme(fixtures: &[Fixture]) -> String {
    let mut text = String::from(
        "# Fixtures\n\n\
         Small synthetic inputs for tests. `cargo xtask goldens` writes them; `cargo xtask goldens --check` checks that\n\
         they are up to date. `expected.json` has the exact counts of each file whose content is unambiguous.\n\
         `profiles/` and `bench/` contain files of other programs, and `culprits/` and `real/` contain recorded evidence.\n\
         The README in each directory lists the commands that made the files.\n\n\
         | file | description | command |\n|---|---|---|\n",
    );
    for Fixture { path, about, command, .. } in fixtures {
        if !command.is_empty() {
            text += &format!("| `{path}` | {about} | `{command}` |\n");
        }
    }
    text
}

fn files_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let Ok(entries) = std::fs::read_dir(directory) else { return Ok(files) };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else if path.extension().is_none_or(|suffix| suffix != "lag" && suffix != "lagi") {
            files.push(path);
        }
    }
    Ok(files)
}
