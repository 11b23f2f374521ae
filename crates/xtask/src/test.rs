//! `cargo xtask test`: sets up compilers and Python environments, then runs all tests.

use crate::{package, project, python, subjects, system};
use anyhow::{Context, Result};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

/// Run all tests: Rust, Python and page scripts
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Skip slow tests
    #[arg(long)]
    quick: bool,
    /// Also run the tests that need Spark; Spark is set up on this machine
    #[arg(long, conflicts_with = "quick")]
    all: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let python = python::ready()?;
    let interpreters = if cfg!(target_os = "linux") {
        ensure_compilers()?;
        python::subjects(if args.quick { 1 } else { usize::MAX })?
    } else {
        Vec::new()
    };
    let interpreters = std::env::join_paths(interpreters)?;
    ensure_browser(&python);
    python::install_bindings(&python);
    subjects::install_raptors(&python)?;
    let culprits = subjects::build_culprits()?;
    let program = project::laggard()?;
    let mut cargo = project::cargo();
    cargo
        // The Python extension is tested from Python.
        .args(["test", "--release", "--workspace", "--exclude", "laggard-py", "--no-fail-fast"])
        .env(python::LIST, &interpreters);
    let mut pytest = Command::new(&python);
    pytest
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/python"])
        .current_dir(project::root())
        .env("LAGGARD_BIN", &program)
        .env(python::LIST, &interpreters);
    if args.quick {
        cargo.env("LAGGARD_QUICK", "1");
        pytest.args(["-m", "not slow"]);
    }
    let mut cargo_subjects = subjects::cargo()?;
    cargo_subjects.args(["test", "--quiet", "--release", "--workspace"]);
    let mut pairs = Command::new(&python);
    pairs
        .args(["-m", "culprits"])
        .env("PYTHONPATH", &culprits.package)
        .env("LAGGARD_CULPRITS", &culprits.libraries);
    let mut results = vec![
        ("cargo test", project::run(&mut cargo)?),
        ("cargo test in subjects", project::run(&mut cargo_subjects)?),
        ("planted pairs", project::run(&mut pairs)?),
        ("pytest", project::run(&mut pytest)?),
    ];
    for (name, mut tests) in of_package(&python, args)? {
        results.push((name, project::run(&mut tests)?));
    }
    match page_scripts() {
        Ok(mut node) => results.push(("page scripts", project::run(&mut node)?)),
        Err(error) => eprintln!("skipped: page script tests: {error:#}"),
    }
    let failed: Vec<String> = results
        .iter()
        .filter(|(_, status)| !status.success())
        .map(|(name, status)| format!("{name} ({status})"))
        .collect();
    if failed.is_empty() {
        let passed: Vec<&str> = results.iter().map(|(name, _)| *name).collect();
        println!("test: passed ({})", passed.join(", "));
    } else {
        println!("test: failed: {}", failed.join(", "));
    }
    let code = results.iter().map(|(_, status)| code(*status)).find(|code| *code != 0).unwrap_or(0);
    Ok(ExitCode::from(code))
}

/// Tests of the Python package: its wheel, in clean environments.
fn of_package(python: &Path, args: &Args) -> Result<Vec<(&'static str, Command)>> {
    let wheel = package::wheel(python)?;
    if args.all {
        package::ensure_java()?;
    }
    let mut environments = package::environments(&wheel, args.all)?;
    if args.quick {
        environments.truncate(1);
    }
    let mut tests: Vec<(&str, Command)> =
        environments.iter().map(|python| ("package", package::tests(python, false))).collect();
    if let Some(newest) = environments.last().filter(|_| args.all) {
        tests.push(("package on Spark", package::tests(newest, true)));
    }
    Ok(tests)
}

/// The measured test programs are written in C and C++.
fn ensure_compilers() -> Result<()> {
    if project::which("cc").is_none() {
        system::install_debian("libc6-dev")?;
        system::ensure_debian("gcc", "cc")?;
    }
    if let Err(error) = system::ensure_debian("g++", "c++") {
        eprintln!("skipped: C++ tests: {error:#}");
    }
    Ok(())
}

/// HTML pages are tested in a browser. Without one, pytest reports these tests as skipped.
fn ensure_browser(python: &Path) {
    if let Err(error) = system::ensure_debian("chromium", "chromium") {
        eprintln!("skipped: browser tests: {error:#}");
        return;
    }
    let is_there = python::has_packages(python, &["playwright.sync_api"]);
    if !is_there && let Err(error) = python::install(python, "playwright") {
        eprintln!("skipped: browser tests: cannot install playwright: {error:#}");
    }
}

/// Tests of the page scripts, which need no browser. Lists the files, since `node --test DIRECTORY`
/// depends on the version of node.
fn page_scripts() -> Result<Command> {
    system::ensure_debian("nodejs", "node")?;
    let place = project::root().join("crates/laggard-report/web/test");
    let mut files = vec![];
    for entry in
        std::fs::read_dir(&place).with_context(|| format!("cannot read {}", place.display()))?
    {
        files.push(entry?.path());
    }
    files.retain(|path| path.to_string_lossy().ends_with(".test.mjs"));
    files.sort();
    let mut node = Command::new("node");
    node.arg("--test").args(files);
    Ok(node)
}

/// The exit status; 1 for a process that was killed by a signal.
fn code(status: ExitStatus) -> u8 {
    status.code().map_or(1, |code| code.clamp(0, 255) as u8)
}
