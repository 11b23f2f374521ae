//! Real programs with traced system calls: exact counts, and the same exit status as without
//! tracing.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking")]

mod common;

use common::{compile_c, words};
use laggard_core::model::calls::{CallRow, Calls};
use laggard_probe::syscalls::{Options, trace};
use laggard_probe::{Ended, Error, Refusal};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

static BUILT: LazyLock<(tempfile::TempDir, PathBuf)> =
    LazyLock::new(|| compile_c("syscalls_main.c", &[]));

fn run_with(how: &[&str], options: &Options) -> (Calls, Ended) {
    trace(&words(&BUILT.1, how), options).unwrap()
}

fn run(how: &[&str]) -> (Calls, Ended) {
    run_with(how, &Options::default())
}

fn with_children(how: &[&str]) -> (Calls, Ended) {
    run_with(how, &Options { children: true, ..Options::default() })
}

fn name_of<'a>(calls: &'a Calls, row: &CallRow) -> &'a str {
    calls.profile.texts.get(calls.functions[row.function as usize].name)
}

fn rows<'a>(calls: &'a Calls, name: &str) -> Vec<&'a CallRow> {
    calls.rows.iter().filter(|row| name_of(calls, row) == name).collect()
}

fn count(calls: &Calls, name: &str) -> u64 {
    rows(calls, name).iter().map(|row| row.count).sum()
}

#[test]
fn counts_are_exact() {
    let (calls, ended) = run(&["ask", "5000"]);
    assert_eq!(ended.code(), 0);
    assert_eq!(count(&calls, "getpgrp"), 5000);
    assert_eq!(count(&run(&["write", "700"]).0, "write"), 700);
    // The last call does not return.
    let row = rows(&calls, "exit_group")[0];
    assert_eq!((row.count, row.unfinished, row.total_ns), (1, 1, 0));
    assert_eq!(count(&calls, "execve"), 0, "tracing starts after the exec");
    let module = &calls.profile.modules[calls.functions[0].module as usize];
    assert_eq!(calls.profile.texts.get(module.path), "[kernel]");
}

#[test]
fn times_match_the_calls() {
    let (calls, _) = run(&["sleep", "20"]);
    let row = rows(&calls, "clock_nanosleep")[0];
    assert_eq!((row.count, row.unfinished), (20, 0));
    assert!(row.min_ns >= 2_000_000, "{}", row.min_ns);
    assert!(row.total_ns >= 20 * row.min_ns && row.max_ns <= row.total_ns);
    assert_eq!(row.histogram.iter().map(|class| class.1).sum::<u64>(), 20);
    assert!(row.histogram.iter().all(|class| class.0 <= row.max_ns));
    let cost = calls.quality.cost_ns;
    assert!(cost > 100.0 && cost < 10_000_000.0, "{cost}");
    assert_eq!(calls.profile.about.facts.len(), 3);
}

#[test]
fn the_caller_is_the_instruction_that_enters_the_kernel() {
    let (calls, _) = run(&["ask", "10"]);
    let row = rows(&calls, "getpgrp")[0];
    let frame = calls.profile.frames[row.caller as usize];
    let path = calls.profile.module_path(&frame).to_owned();
    assert!(path.contains("libc"), "{path}");
    let elf = laggard_symbols::Elf::open(&path).unwrap();
    assert_eq!(elf.bytes_at(frame.address, 2), Some(&[0x0f, 0x05][..]));
    assert_eq!(elf.symbol(frame.address).unwrap().name, "syscall");
}

#[test]
fn calls_are_counted_per_thread() {
    let (calls, ended) = run(&["threads", "500"]);
    assert_eq!(ended.code(), 0);
    let mut threads = BTreeMap::new();
    for row in rows(&calls, "getpgrp") {
        *threads.entry(calls.profile.threads[row.thread as usize].tid).or_insert(0) += row.count;
    }
    assert_eq!(threads.into_values().collect::<Vec<u64>>(), [500; 4]);
    let process = calls.profile.threads[0].process;
    assert_eq!(calls.profile.texts.get(process), "syscalls_main");
}

#[test]
fn children_are_traced_on_request() {
    for how in ["fork", "spawn"] {
        let (calls, ended) = run(&[how, "300"]);
        let code = if how == "fork" { 3 } else { 0 };
        assert_eq!(ended.code(), code);
        assert_eq!(count(&calls, "getpgrp"), 0, "{how}");
        let (calls, ended) = with_children(&[how, "300"]);
        assert_eq!(ended.code(), code);
        assert_eq!(count(&calls, "getpgrp"), 300, "{how}");
        let execs = if how == "spawn" { 1 } else { 0 };
        assert_eq!(count(&calls, "execve"), execs);
        let pids: std::collections::BTreeSet<u32> =
            calls.profile.threads.iter().map(|thread| thread.pid).collect();
        assert_eq!(pids.len(), 2);
    }
}

#[test]
fn tracing_continues_after_exec() {
    let (calls, ended) = run(&["exec", "250"]);
    assert_eq!(ended.code(), 0);
    assert_eq!(count(&calls, "getpgrp"), 250);
    let exec = rows(&calls, "execve")[0];
    assert_eq!((exec.count, exec.unfinished), (1, 0));
}

#[test]
fn signals_and_exit_status_are_preserved() {
    let (calls, ended) = run(&["signals", "50"]);
    assert_eq!(ended.code(), 5);
    assert_eq!(count(&calls, "kill"), 50);
    assert_eq!(count(&calls, "rt_sigreturn"), 50);
    assert_eq!(run(&["killed"]).1.code(), 128 + libc::SIGKILL);
    assert_eq!(run(&["crash"]).1.code(), 128 + libc::SIGABRT);
    let (calls, ended) = with_children(&["stop", "20"]);
    assert_eq!((ended.code(), count(&calls, "getpgrp")), (0, 20));
    assert_eq!(run(&["stop", "20"]).1.code(), 0);
}

#[test]
fn an_external_signal_ends_the_program() {
    let command = words(&BUILT.1, &["waits"]);
    let traced = std::thread::spawn(move || trace(&command, &Options::default()));
    let wanted = format!("{}\0waits\0", BUILT.1.display());
    let deadline = Instant::now() + Duration::from_secs(20);
    while !traced.is_finished() {
        assert!(Instant::now() < deadline);
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let pid = entry.file_name().into_string().unwrap();
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            if line == wanted.as_bytes() {
                Command::new("kill").args(["-INT", &pid]).status().unwrap();
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let (calls, ended) = traced.join().unwrap().unwrap();
    assert_eq!(ended.code(), 128 + libc::SIGINT);
    assert!(count(&calls, "pause") <= 1);
}

#[test]
fn failures_are_counted_by_error() {
    // The dynamic linker has failing calls of its own.
    let options = Options { from: vec!["libc.so".into()], ..Options::default() };
    let (calls, _) = run_with(&["fails", "40"], &options);
    let texts = &calls.profile.texts;
    let mut seen: Vec<(&str, &str, u64)> = calls
        .failures
        .iter()
        .map(|row| {
            let function = calls.functions[row.function as usize].name;
            (texts.get(function), texts.get(row.error), row.count)
        })
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, [("close", "EBADF", 20), ("openat", "ENOENT", 40)]);
}

#[test]
fn filters_restrict_the_counted_calls() {
    let options = Options { functions: vec!["get*".into()], ..Options::default() };
    let (calls, _) = run_with(&["ask", "30"], &options);
    assert_eq!(count(&calls, "getpgrp"), 30);
    assert!(calls.rows.iter().all(|row| name_of(&calls, row).starts_with("get")));
    let options = Options { from: vec!["ld-linux".into()], ..Options::default() };
    let (calls, _) = run_with(&["ask", "30"], &options);
    assert_eq!(count(&calls, "getpgrp"), 0);
    assert!(count(&calls, "mmap") > 0);
}

#[test]
fn processes_that_outlive_the_program_keep_running() {
    let (calls, ended) = with_children(&["leaves"]);
    assert_eq!(ended.code(), 0);
    assert_eq!(calls.profile.quality.warnings.len(), 1);
    assert!(calls.profile.about.duration_ns < 900_000_000);
}

#[test]
fn a_program_that_cannot_run_is_an_error() {
    let missing = trace(&words("no-such-program", &[]), &Options::default());
    assert!(matches!(missing, Err(Error::Refused(Refusal::Missing(_)))));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("odd");
    std::fs::write(&path, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    for _ in 0..20 {
        let odd = trace(&words(&path, &[]), &Options::default());
        assert!(matches!(odd, Err(Error::Start { .. })));
    }
}

/// Counts of strace, by call.
fn strace(how: &[&str]) -> Option<BTreeMap<String, u64>> {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let mut command = Command::new("strace");
    command.args(["-f", "-c", "-U", "calls,name", "-o"]).arg(&out).arg(&BUILT.1).args(how);
    command.status().ok()?;
    let text = std::fs::read_to_string(out).unwrap();
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let count = words.next()?.parse().ok()?;
        words.next().filter(|name| *name != "total").map(|name| (name.to_owned(), count))
    };
    Some(text.lines().filter_map(line).collect())
}

#[test]
fn strace_counts_the_same() {
    for how in [["fork", "123"], ["spawn", "123"], ["fails", "21"], ["signals", "9"]] {
        let Some(mut expected) = strace(&how) else {
            eprintln!("skipped: strace is not installed");
            return;
        };
        let (calls, _) = with_children(&how);
        let mut counted: BTreeMap<String, u64> = BTreeMap::new();
        for row in &calls.rows {
            *counted.entry(name_of(&calls, row).to_owned()).or_default() += row.count;
        }
        // strace also counts the initial exec, and omits calls that do not return.
        *expected.entry("execve".into()).or_default() -= 1;
        expected.retain(|_, count| *count > 0);
        counted.remove("exit_group");
        expected.remove("exit_group");
        assert_eq!(counted, expected, "{how:?}");
    }
}
