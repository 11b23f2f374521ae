//! Overhead of a traced call, and whether all calls are counted.

use super::figures::{Estimate, range};
use super::tools::answer;
use super::{Lab, machine};
use crate::project;
use anyhow::{Context, Result, bail};
use laggard_core::model::calls::Calls;
use laggard_core::stats::summary::Summary;
use laggard_probe::calls::{Options, trace};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

const PRODUCTS: u64 = 100_000;
/// Measurements that a program makes in one run.
const REPEATS: usize = 5;

/// A program that writes nanoseconds per call, one per line, to the file in its last argument.
struct Case {
    title: String,
    command: Vec<OsString>,
    options: Options,
    /// Part of a function name, and its exact number of calls per run.
    exact: Option<(&'static str, u64)>,
}

pub(super) fn section(lab: &Lab) -> Result<String> {
    let mut text = format!(
        "### Overhead of a traced call\n\n{}\n\n\
         CPU nanoseconds per call, measured {REPEATS} times per run by the program itself; {} runs with \
         and {} runs without tracing, interleaved. Overhead is the difference of the medians, with a 95 % \
         bootstrap confidence interval. {}.\n\n\
         | | n each | untraced ns, median (range) | traced ns, median (range) | overhead ns | overhead ns, best | counted |\n\
         |---|---:|---:|---:|---:|---:|---:|\n",
        machine::describe(),
        lab.rounds,
        lab.rounds,
        machine::python(lab.python()),
    );
    let output = lab.scratch.path().join("nanoseconds");
    for case in cases(lab, &output)? {
        let (plain, traced, counted) = measure(lab, &case, &output)?;
        let added = Estimate::difference(&traced, &plain);
        text += &format!(
            "| {} | {} | {} | {} | {:+.1} [{:+.1}, {:+.1}] | {:+.1} | {counted} |\n",
            case.title,
            plain.len(),
            range(&plain, 1),
            range(&traced, 1),
            added.middle,
            added.low,
            added.high,
            Summary::of(&traced).min - Summary::of(&plain).min,
        );
    }
    Ok(text)
}

fn cases(lab: &Lab, output: &Path) -> Result<Vec<Case>> {
    let options = |library: &str| Options {
        libraries: vec![library.into()],
        quiet: true,
        ..Options::default()
    };
    let native = |program: PathBuf| vec![program.into(), REPEATS.to_string().into(), output.into()];
    let of_native = Some(("add_one", REPEATS as u64 * 1_000_000));
    let mut cases = Vec::new();
    for (name, flag) in
        [("lazy binding", "-Wl,-z,lazy"), ("`-z now`", "-Wl,-z,now"), ("`-fno-plt`", "-fno-plt")]
    {
        let command = native(build(lab.scratch.path(), flag)?);
        cases.push(Case {
            title: format!("one instruction, {name}"),
            command: command.clone(),
            options: options("libtraced"),
            exact: of_native,
        });
        if flag == "-Wl,-z,now" {
            cases.push(Case {
                title: format!("one instruction, {name}, 3 arguments recorded"),
                command,
                options: Options { arguments: 3, ..options("libtraced") },
                exact: of_native,
            });
        }
    }
    let product: Vec<OsString> = vec![lab.python().into(), "-c".into(), DOT.into(), output.into()];
    let exact = Some(("cblas_sgemm", PRODUCTS * REPEATS as u64));
    cases.push(Case {
        title: "`np.dot` of 4x4, BLAS traced".into(),
        command: product.clone(),
        options: options("blas"),
        exact,
    });
    cases.push(Case {
        title: "`np.dot` of 4x4, all calls of extensions".into(),
        command: product,
        options: Options { quiet: true, ..Options::default() },
        exact,
    });
    Ok(cases)
}

const DOT: &str = "
import os, sys, time
os.environ['OPENBLAS_NUM_THREADS'] = '1'
import numpy as np
a = np.arange(16, dtype=np.float32).reshape(4, 4)
b = a + 1
dot = np.dot
with open(sys.argv[1], 'w') as out:
    for _ in range(5):
        start = time.process_time_ns()
        for _ in range(100000):
            dot(a, b)
        print((time.process_time_ns() - start) / 100000, file=out)
";

/// Compiles the one-instruction library and a program that calls it, with a linker flag.
fn build(directory: &Path, flag: &str) -> Result<PathBuf> {
    let library = directory.join("libtraced.so");
    let program = directory.join(format!("calls{flag}"));
    let cc = |arguments: &[&str], files: &[&Path]| {
        let mut cc = Command::new("cc");
        cc.current_dir(project::root().join("subjects/probe")).arg("-O2");
        answer(cc.args(arguments).args(files).arg("-Wl,-rpath,$ORIGIN"))
    };
    if !library.exists() {
        _ = cc(&["-fPIC", "-shared", "calls_lib.c", "-o"], &[&library])?;
    }
    _ = cc(&["calls_bench.c", flag, "-o"], &[&program, &library])?;
    Ok(program)
}

/// Nanoseconds per call without and with tracing, and the result of the count.
fn measure(lab: &Lab, case: &Case, output: &Path) -> Result<(Vec<f64>, Vec<f64>, String)> {
    let (mut plain, mut traced) = (Vec::new(), Vec::new());
    let mut wrong = 0;
    for round in 0..lab.rounds {
        eprintln!("bench: calls, {}: round {} of {}", case.title, round + 1, lab.rounds);
        // The order alternates, so that drift affects both.
        for is_traced in [round % 2 == 0, round % 2 == 1] {
            if is_traced {
                let (calls, ended) = trace(&case.command, &case.options)?;
                if ended.code() != 0 {
                    bail!("the traced program failed with exit status {}", ended.code());
                }
                wrong += u32::from(case.exact.is_some_and(|(name, n)| count(&calls, name) != n));
                traced.extend(numbers(output)?);
            } else {
                let mut run = Command::new(&case.command[0]);
                _ = answer(run.args(&case.command[1..]))?;
                plain.extend(numbers(output)?);
            }
        }
    }
    let counted = match case.exact {
        None => "-".into(),
        Some((_, n)) if wrong == 0 => format!("{n} of {n}, every run"),
        Some((_, n)) => format!("**differs from {n} in {wrong} runs**"),
    };
    Ok((plain, traced, counted))
}

fn count(calls: &Calls, part: &str) -> u64 {
    let is_named = |function: u32| {
        let function = calls.functions.get(function as usize);
        function.is_some_and(|function| calls.profile.texts.get(function.name).contains(part))
    };
    calls.rows.iter().filter(|row| is_named(row.function)).map(|row| row.count).sum()
}

fn numbers(output: &Path) -> Result<Vec<f64>> {
    let text = std::fs::read_to_string(output).context("the measured program wrote no times")?;
    text.lines().map(|line| line.parse().context("not a number")).collect()
}
