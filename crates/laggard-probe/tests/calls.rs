//! Real programs with traced calls: exact counts and correct results, however they end.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use laggard_core::model::calls::{CallRow, Calls};
use laggard_probe::Ended;
use laggard_probe::calls::{Options, trace};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

const MANY: u64 = 100_000;

/// The subjects, built once per test process.
static BUILT: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let here = tempfile::tempdir().unwrap();
    let at = |name: &str| here.path().join(name).into_os_string().into_string().unwrap();
    let (library, tail) = (at("libtraced.so"), at("libtail.so"));
    let origin = "-Wl,-rpath,$ORIGIN";
    cc("cc", &["-fPIC", "-shared", "-o", &library, "calls_lib.c"]);
    cc("cc", &["-fPIC", "-shared", "-o", &tail, "calls_tail.c", &library, origin]);
    let program = |name: &str, flags: &[&str]| {
        let out = at(name);
        let mut all =
            vec!["-o", &out, "calls_main.c", &tail, &library, origin, "-lpthread", "-ldl"];
        all.extend(flags);
        cc("cc", &all);
    };
    program("lazy", &["-Wl,-z,lazy"]);
    program("now", &["-Wl,-z,now"]);
    program("no_plt", &["-fno-plt", "-Wl,-z,now"]);
    program("no_plt_lazy", &["-fno-plt", "-Wl,-z,norelro"]);
    program("no_pie", &["-no-pie", "-fno-pie"]);
    here
});

fn cc(compiler: &str, arguments: &[&str]) {
    let subjects = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../subjects/probe");
    let status = Command::new(compiler).current_dir(subjects).arg("-O2").args(arguments).status();
    assert!(status.unwrap().success(), "{arguments:?}");
}

fn exists(compiler: &str) -> bool {
    Command::new(compiler).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn built(name: &str) -> PathBuf {
    BUILT.path().join(name)
}

fn options(libraries: &[&str]) -> Options {
    let libraries = libraries.iter().map(|&name| name.to_owned()).collect();
    Options { libraries, ..Options::default() }
}

fn run_with(words: &[&str], options: &Options) -> (Calls, Ended) {
    let mut command: Vec<OsString> = words.iter().map(OsString::from).collect();
    if !words[0].contains('/') {
        command[0] = built(words[0]).into();
    }
    trace(&command, options).unwrap()
}

/// Runs a subject that must succeed, and traces calls into its libraries.
fn run(words: &[&str]) -> Calls {
    let (calls, status) = run_with(words, &options(&["libtraced", "libtail"]));
    assert_eq!(status.code(), 0, "{words:?} {status:?}");
    calls
}

fn rows<'a>(calls: &'a Calls, name: &str) -> Vec<&'a CallRow> {
    let is_named = |row: &&CallRow| {
        let function = &calls.functions[row.function as usize];
        calls.profile.texts.get(function.name) == name
    };
    calls.rows.iter().filter(is_named).collect()
}

fn count(calls: &Calls, name: &str) -> u64 {
    rows(calls, name).iter().map(|row| row.count).sum()
}

fn unfinished(calls: &Calls, name: &str) -> u64 {
    rows(calls, name).iter().map(|row| row.unfinished).sum()
}

/// Checks every row: times are consistent, and every finished call is in one histogram class.
fn check_times(calls: &Calls) {
    for row in &calls.rows {
        let timed: u64 = row.histogram.iter().map(|class| class.1).sum();
        assert!(timed + row.unfinished <= row.count);
        assert!(row.self_ns <= row.total_ns);
        if timed > 0 {
            assert!(row.min_ns <= row.max_ns && row.max_ns <= row.total_ns);
            // Classes are an eighth of an octave wide.
            let last = row.histogram.last().unwrap().0 as f64;
            assert!(last <= row.max_ns as f64 * 1.01 + 1.0, "{last} {}", row.max_ns);
            assert!(last * 1.25 + 20.0 >= row.max_ns as f64, "{last} {}", row.max_ns);
        }
        assert!(row.histogram.is_sorted_by_key(|class| class.0));
    }
}

#[test]
fn calls_are_counted_exactly_for_every_kind_of_binding() {
    for program in ["lazy", "now", "no_plt", "no_plt_lazy", "no_pie"] {
        let calls = run(&[program, "many"]);
        let rows = rows(&calls, "add_one");
        assert_eq!(rows.len(), 1, "{program}");
        assert_eq!((rows[0].count, rows[0].unfinished), (MANY, 0), "{program}");
        let timed: u64 = rows[0].histogram.iter().map(|class| class.1).sum();
        assert_eq!(timed, MANY, "{program}");
        check_times(&calls);
    }
}

#[test]
fn the_caller_is_the_call_site() {
    for program in ["lazy", "no_plt", "no_pie"] {
        let calls = run(&[program, "many"]);
        let row = rows(&calls, "add_one")[0];
        let frame = calls.profile.frames[row.caller as usize];
        assert_eq!(Path::new(calls.profile.module_path(&frame)), built(program));
        let function = &calls.functions[row.function as usize];
        let module = &calls.profile.modules[function.module as usize];
        assert_eq!(Path::new(calls.profile.texts.get(module.path)), built("libtraced.so"));
        let symbols = Command::new("nm").arg(built(program)).output().unwrap();
        let text = String::from_utf8(symbols.stdout).unwrap();
        let of = |name: &str| {
            let line = text.lines().find(|line| line.ends_with(name)).unwrap();
            u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
        };
        // The compiler may have inlined `many` into `main`; both are in the text section of the
        // program.
        let first = of(" _init");
        assert!(frame.address > first && frame.address < of(" _fini"), "{:x}", frame.address);
    }
}

#[test]
fn a_function_found_with_dlsym_is_counted() {
    let library = format!("CALLS_LIBRARY={}", built("libtraced.so").display());
    let program = built("lazy").into_os_string().into_string().unwrap();
    let words = ["/usr/bin/env", &library, &program, "by-name"];
    let (calls, status) = run_with(&words, &options(&["libtraced"]));
    assert_eq!(status.code(), 0);
    assert_eq!(count(&calls, "add_one"), MANY);
}

#[test]
fn calls_are_counted_per_thread() {
    let calls = run(&["lazy", "threads"]);
    let rows = rows(&calls, "add_one");
    assert_eq!(rows.iter().map(|row| row.count).collect::<Vec<_>>(), [MANY, MANY]);
    let tid = |row: &CallRow| calls.profile.threads[row.thread as usize].tid;
    assert_ne!(tid(rows[0]), tid(rows[1]));
    check_times(&calls);
}

#[test]
fn two_thousand_threads_are_counted() {
    let calls = run(&["lazy", "many-threads", "10"]);
    assert_eq!(count(&calls, "add_one"), 20_000);
}

#[test]
fn a_fork_has_its_own_counts() {
    let fast = options(&["libtraced"]);
    let slow = Options { arguments: 1, ..fast.clone() };
    for wish in [fast, slow] {
        check_fork(&wish);
    }
}

fn check_fork(wish: &Options) {
    let (calls, status) = run_with(&["lazy", "forks"], wish);
    assert_eq!(status.code(), 0);
    let mut by_process: Vec<(u32, u64)> = vec![];
    for row in rows(&calls, "add_one") {
        let pid = calls.profile.threads[row.thread as usize].pid;
        match by_process.iter_mut().find(|other| other.0 == pid) {
            Some(sum) => sum.1 += row.count,
            None => by_process.push((pid, row.count)),
        }
        assert_eq!(row.unfinished, 0);
        let frame = calls.profile.frames[row.caller as usize];
        assert_eq!(Path::new(calls.profile.module_path(&frame)), built("lazy"));
    }
    by_process.sort_by_key(|(_, count)| *count);
    let counts: Vec<u64> = by_process.iter().map(|(_, count)| *count).collect();
    assert_eq!(counts, [MANY, 2 * MANY]);
    // The call that forked started once and returned twice.
    assert_eq!((count(&calls, "call_back"), unfinished(&calls, "call_back")), (1, 0));
    check_times(&calls);
}

#[test]
fn a_fork_whose_first_call_is_in_a_new_thread_is_counted() {
    let calls = run(&["now", "forks-thread-first"]);
    assert_eq!(count(&calls, "add_one"), 3 * MANY);
    assert_eq!(unfinished(&calls, "add_one"), 0);
}

#[test]
fn an_immediate_exit_loses_no_counts() {
    let calls = run(&["lazy", "exit"]);
    assert_eq!(count(&calls, "add_one"), MANY);
}

#[test]
fn a_killed_program_keeps_its_counts() {
    let (calls, status) = run_with(&["lazy", "killed"], &options(&["libtraced"]));
    assert_eq!(status.code(), 128 + 9);
    assert_eq!(count(&calls, "add_one"), MANY + 1);
    assert_eq!(calls.profile.about.exit_code, Some(137));
}

#[test]
fn calls_left_by_longjmp_are_counted() {
    for program in ["lazy", "no_plt"] {
        let calls = run(&[program, "jumps"]);
        assert_eq!((count(&calls, "jump_out"), unfinished(&calls, "jump_out")), (100, 100));
        assert_eq!((count(&calls, "add_one"), unfinished(&calls, "add_one")), (200, 0));
    }
}

#[test]
fn exceptions_pass_through_traced_calls() {
    if !exists("c++") {
        return;
    }
    let here = tempfile::tempdir().unwrap();
    let at = |name: &str| here.path().join(name).into_os_string().into_string().unwrap();
    let (thrower, program) = (at("libthrow.so"), at("throws"));
    let library = built("libtraced.so").into_os_string().into_string().unwrap();
    let rpath = format!("-Wl,-rpath,$ORIGIN,-rpath,{}", BUILT.path().display());
    cc("c++", &["-DLIBRARY", "-fPIC", "-shared", "-o", &thrower, "calls_throw.cpp"]);
    cc("cc", &["-fPIC", "-fexceptions", "-shared", "-o", &at("libtraced.so"), "calls_lib.c"]);
    cc("c++", &["-o", &program, "calls_throw.cpp", &thrower, &library, &rpath]);
    for options in [options(&["libthrow", "libtraced"]), options(&["*"])] {
        let (calls, status) = run_with(&[&program], &options);
        assert_eq!(status.code(), 0, "{status:?}");
        assert_eq!((count(&calls, "throw_out"), unfinished(&calls, "throw_out")), (100, 100));
        assert_eq!((count(&calls, "call_back"), unfinished(&calls, "call_back")), (100, 100));
        assert_eq!((count(&calls, "add_one"), unfinished(&calls, "add_one")), (100, 0));
    }
}

#[test]
fn arguments_and_results_are_preserved() {
    for program in ["lazy", "now", "no_plt"] {
        let calls = run(&[program, "values"]);
        for name in ["sum_numbers", "half", "longer", "make_pair", "make_big", "sum_doubles"] {
            assert_eq!(count(&calls, name), 1000, "{program} {name}");
        }
        let calls = run(&[program, "wide"]);
        assert!([0, 1000].contains(&count(&calls, "add_wide")));
        // The same on the slow path.
        for way in ["values", "wide"] {
            let slow = Options { arguments: 6, ..options(&["libtraced"]) };
            assert_eq!(run_with(&[program, way], &slow).1.code(), 0, "{program} {way}");
        }
    }
}

#[test]
fn variadic_libc_functions_work() {
    let wish = Options { from: vec!["lazy".into()], ..options(&["libc.so"]) };
    let (calls, status) = run_with(&["lazy", "values"], &wish);
    assert_eq!(status.code(), 0);
    assert_eq!(count(&calls, "snprintf") + count(&calls, "__snprintf_chk"), 1000);
}

#[test]
fn a_tail_call_is_attributed_to_its_caller() {
    let calls = run(&["lazy", "tails"]);
    assert_eq!((count(&calls, "tail"), count(&calls, "add_one")), (MANY, MANY));
    let row = rows(&calls, "add_one")[0];
    let frame = calls.profile.frames[row.caller as usize];
    assert_eq!(Path::new(calls.profile.module_path(&frame)), built("libtail.so"));
    assert_eq!((row.unfinished, rows(&calls, "tail")[0].unfinished), (0, 0));
    check_times(&calls);
}

#[test]
fn calls_nested_too_deeply_are_counted() {
    let calls = run(&["lazy", "deep"]);
    assert_eq!((count(&calls, "descend"), unfinished(&calls, "descend")), (30_003, 0));
    assert_eq!(count(&calls, "add_one"), MANY);
    assert_eq!(calls.quality.too_deep, 3 * (10_001 - 4096));
}

#[test]
fn coroutines_and_signal_stacks_work() {
    for program in ["lazy", "no_plt"] {
        for way in ["coroutines", "coroutines-on-heap"] {
            let calls = run(&[program, way]);
            assert_eq!((count(&calls, "add_one"), unfinished(&calls, "add_one")), (301, 0));
            assert_eq!((count(&calls, "call_back"), unfinished(&calls, "call_back")), (402, 0));
        }
        let calls = run(&[program, "signals"]);
        assert!(count(&calls, "add_one") >= 200);
        assert_eq!(unfinished(&calls, "add_one"), 0);
    }
}

#[test]
fn a_cancelled_thread_unwinds_through_traced_calls() {
    let calls = run(&["lazy", "cancels"]);
    assert_eq!((count(&calls, "call_back"), unfinished(&calls, "call_back")), (20, 20));
}

#[test]
fn arguments_are_counted() {
    let wish = Options { arguments: 3, ..options(&["libtraced"]) };
    let (calls, status) = run_with(&["lazy", "arguments"], &wish);
    assert_eq!(status.code(), 0);
    let rows: Vec<(&[i64], u64)> =
        calls.arguments.iter().map(|row| (row.values.as_slice(), row.count)).collect();
    assert_eq!(rows, [(&[1, 7, -1][..], 500), (&[2, 7, -1][..], 500)]);
    assert!(calls.arguments.iter().all(|row| row.total_ns > 0));
}

#[test]
fn tracing_continues_after_exec() {
    let program = built("lazy").into_os_string().into_string().unwrap();
    let calls = run(&["lazy", "runs", &program, "many"]);
    assert_eq!(count(&calls, "add_one"), MANY);
}

#[test]
fn child_programs_are_traced_on_request() {
    let program = built("now").into_os_string().into_string().unwrap();
    let words = ["lazy", "spawns", &program, "many"];
    assert_eq!(count(&run(&words), "add_one"), MANY);
    let wish = Options { children: true, ..options(&["libtraced"]) };
    let (calls, status) = run_with(&words, &wish);
    assert_eq!(status.code(), 0);
    assert_eq!(count(&calls, "add_one"), 2 * MANY);
    let names: Vec<&str> = calls
        .profile
        .threads
        .iter()
        .map(|thread| calls.profile.texts.get(thread.process))
        .collect();
    assert_eq!(names, ["lazy", "now"]);
}

#[test]
fn all_features_work_together() {
    for program in ["lazy", "now", "no_plt"] {
        for way in ["many", "threads", "forks", "jumps", "values", "wide", "tails", "deep"] {
            let (calls, status) = run_with(&[program, way], &options(&["*"]));
            assert_eq!(status.code(), 0, "{program} {way} {status:?}");
            assert!(!calls.rows.is_empty());
            check_times(&calls);
        }
    }
}

#[test]
fn functions_that_are_not_wrapped_are_reported() {
    let (calls, _) = run_with(&["lazy", "jumps"], &options(&["*"]));
    let found = calls.quality.not_wrapped.iter().find(|(name, _)| name.ends_with("setjmp"));
    assert_eq!(found.unwrap().1, "it returns twice");
}

#[test]
fn a_small_table_counts_by_function() {
    let wish = Options { memory: 0, ..options(&["libtraced", "libtail"]) };
    let (calls, status) = run_with(&["lazy", "many-threads", "10"], &wish);
    assert_eq!(status.code(), 0);
    assert_eq!(count(&calls, "add_one"), 20_000);
    assert!(calls.quality.table_full > 0);
}

#[test]
fn waiting_functions_can_be_traced() {
    let functions = vec!["pthread_*".to_owned()];
    let wish = Options { functions, ..options(&["libc.so", "libpthread"]) };
    let (calls, status) = run_with(&["lazy", "threads"], &wish);
    assert_eq!(status.code(), 0);
    assert_eq!(count(&calls, "pthread_join"), 2);
    assert_eq!(count(&calls, "pthread_create"), 2);
}

#[test]
fn the_overhead_per_call_is_reported() {
    let calls = run(&["lazy", "many"]);
    assert!(calls.quality.cost_ns > 1.0 && calls.quality.cost_ns < 1000.0);
}

#[test]
fn programs_that_cannot_be_traced_are_rejected() {
    let words = [OsString::from("/no/such/program")];
    let error = trace(&words, &Options::default()).unwrap_err();
    assert_eq!(error.to_string(), "program not found: /no/such/program");
}
