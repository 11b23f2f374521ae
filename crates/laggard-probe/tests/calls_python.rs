//! Call traces of every Python with NumPy: those in `LAGGARD_PYTHONS`, or `python3` in the path.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "test code")]

mod common;

use common::{has, pythons};
use laggard_core::model::calls::Calls;
use laggard_core::model::profile::state;
use laggard_probe::calls::{Options, trace};
use std::path::Path;

/// Runs `check` for each interpreter that has a package.
fn each_with(package: &str, check: impl Fn(&Path)) {
    for python in pythons().iter().filter(|python| has(python, package)) {
        check(python);
    }
}

fn run(python: &Path, program: &str, options: &Options) -> Calls {
    let (calls, status) = trace(&[python.into(), "-c".into(), program.into()], options).unwrap();
    assert_eq!(status.code(), 0, "{}: {status:?}", python.display());
    calls
}

fn count(calls: &Calls, part: &str) -> u64 {
    let is_named = |function: u32| {
        calls.profile.texts.get(calls.functions[function as usize].name).contains(part)
    };
    calls.rows.iter().filter(|row| is_named(row.function)).map(|row| row.count).sum()
}

const DOT: &str = "
import numpy as np
a = np.arange(16, dtype=np.float32).reshape(4, 4)
b = a + 1
for _ in range(100000):
    np.dot(a, b)
";

#[test]
fn every_product_reaches_blas_once() {
    each_with("numpy", |python| {
        let wish = Options { libraries: vec!["blas".into()], ..Options::default() };
        let calls = run(python, DOT, &wish);
        assert_eq!(count(&calls, "cblas_sgemm"), 100_000);
        // The default options trace calls from extension modules to the libraries they link.
        let calls = run(python, DOT, &Options::default());
        assert_eq!(count(&calls, "cblas_sgemm"), 100_000);
        let gemm = calls.rows.iter().find(|row| row.count == 100_000).unwrap();
        let caller = calls.profile.frames[gemm.caller as usize];
        assert!(calls.profile.module_path(&caller).contains("_multiarray_umath"));
    });
}

#[test]
fn greenlets_work_and_are_counted() {
    each_with("greenlet", |python| {
        let program = "
import greenlet
def work(n):
    for _ in range(n):
        sorted([3, 2, 1], key=lambda value: main.switch(value) or value)
main = greenlet.getcurrent()
all = [greenlet.greenlet(work) for _ in range(20)]
for each in all: each.switch(50)
while any(not each.dead for each in all):
    for each in all:
        if not each.dead: each.switch(0)
";
        let all = vec!["*".to_owned()];
        let wish = Options { libraries: all.clone(), from: all, ..Options::default() };
        let calls = run(python, program, &wish);
        assert!(calls.profile.quality.warnings.iter().any(|warning| warning.contains("greenlet")));
        assert!(!calls.rows.is_empty());
    });
}

#[test]
fn tracing_all_calls_does_not_break_the_program() {
    each_with("numpy", |python| {
        let all = vec!["*".to_owned()];
        let wish = Options { libraries: all.clone(), from: all, ..Options::default() };
        let program = "
import ctypes, json, threading
import numpy as np
a = np.random.rand(64, 64)
def work():
    for _ in range(200):
        np.linalg.svd(a[:16, :16]); np.dot(a, a); json.dumps(a[0].tolist())
    try:
        np.linalg.cholesky(-a)
    except np.linalg.LinAlgError:
        pass
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
libm = ctypes.CDLL('libm.so.6'); libm.cos.restype = ctypes.c_double
libm.cos.argtypes = [ctypes.c_double]
assert sum(libm.cos(0.0) for _ in range(1000)) == 1000
";
        let calls = run(python, program, &wish);
        assert!(calls.functions.len() > 1000);
        assert!(count(&calls, "cos") >= 1000);
    });
}

#[test]
fn recorded_stacks_contain_the_calling_line() {
    for python in common::pythons() {
        let Some(minor) = common::minor(&python).filter(|_| common::has(&python, "numpy")) else {
            continue;
        };
        let mut command = common::words(&python, &[]);
        command.push(common::subject("products.py").into());
        command.extend(["4".into(), "10000".into()]);
        // With all calls traced, recorded stacks go through many traced calls.
        for (libraries, stack_every) in [("blas", 64), ("*", 512)] {
            let wish = Options {
                libraries: vec![libraries.into()],
                from: vec!["*".into()],
                stack_every,
                ..Options::default()
            };
            let (mut calls, _) = trace(&command, &wish).unwrap();
            let count = calls.profile.samples.len();
            let cut = calls.profile.samples.iter().filter(|s| s.state & state::CUT != 0).count();
            assert!(
                count > 100 && cut * 100 <= count,
                "3.{minor}: {cut} of {count} are truncated, {:?}",
                calls.profile.quality
            );
            laggard_symbols::resolve(&mut calls.profile, &laggard_symbols::FileSystem);
            let (mut right, mut all) = (0, 0);
            for sample in &calls.profile.samples {
                let name = &calls.profile.events[sample.event as usize].name;
                let line = match name {
                    name if name.contains("cblas_sgemm") => "product_with_itself (products.py:12)",
                    name if name.contains("cblas_ssyrk") => {
                        "product_with_transpose (products.py:18)"
                    }
                    _ => continue,
                };
                let stack = common::stack(&calls.profile, sample);
                // NumPy tests the library on import.
                if stack.iter().any(|frame| frame.contains("numpy/__init__.py")) {
                    continue;
                }
                all += 1;
                let last = common::python_frames(&stack).last().copied();
                right += usize::from(last == Some(line) && stack.last() == Some(name));
            }
            assert!(all > 0 && all - right <= 1, "3.{minor}: {right} of {all}");
        }
    }
}
