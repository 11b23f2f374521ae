//! Real programs under the sampling agent. Their behaviour is known, and so are their stacks.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use common::{compile_c, has, minor, python_frames, pythons, stack, subject, words};
use laggard_agent::wire::Trigger;
use laggard_core::model::profile::{Profile, state};
use laggard_probe::sample::{Clock, Options, PerfEvent, record};
use laggard_probe::{Ended, Error, Refusal};
use laggard_symbols::FileSystem;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

fn sample(command: &[OsString], options: &Options) -> (Profile, Ended) {
    let (mut profile, ended) = record(command, options, &mut |_| ()).unwrap();
    laggard_symbols::resolve(&mut profile, &FileSystem);
    (profile, ended)
}

fn stacks(profile: &Profile) -> Vec<Vec<String>> {
    profile.samples.iter().map(|sample| stack(profile, sample)).collect()
}

/// CPU time that the samples represent.
fn sampled_ns(profile: &Profile) -> u64 {
    profile.samples.iter().map(|sample| sample.weight).sum()
}

/// Runs `check` for each supported interpreter, once per version.
fn each_python(mut check: impl FnMut(&Path, u32)) {
    let mut seen = BTreeSet::new();
    for python in pythons() {
        if let Some(minor) = minor(&python)
            && seen.insert(minor)
        {
            check(&python, minor);
        }
    }
    assert!(!seen.is_empty(), "no Python 3.9 to 3.13 found");
}

/// The name of a Python frame without class, file and line.
fn bare(frame: &str) -> &str {
    let name = frame.split(" (").next().unwrap();
    name.rsplit('.').next().unwrap()
}

#[test]
fn callers_across_c_frames_are_correct() {
    each_python(|python, minor| {
        let mut command = words(python, &[]);
        command.push(subject("callbacks.py").into());
        command.push("2".into());
        let (profile, ended) = sample(&command, &Options { rate: 1999.0, ..Options::default() });
        assert_eq!(ended.code(), 0, "3.{minor}");
        let mut seen = BTreeSet::new();
        for stack in stacks(&profile) {
            let frames = python_frames(&stack);
            for pair in frames.windows(2) {
                if !pair[1].contains("(callbacks.py:") && !pair[1].contains("leaf_exec") {
                    continue;
                }
                let (caller, callee) = (bare(pair[0]), bare(pair[1]));
                let expected = match callee {
                    "burn" => caller.starts_with("leaf_"),
                    "leaf_delete" => caller == "__del__",
                    "__del__" => caller == "by_delete",
                    _ if callee.starts_with("leaf_") => {
                        caller == callee || caller == callee.replacen("leaf_", "by_", 1)
                    }
                    _ => true,
                };
                assert!(expected, "3.{minor}: {caller} does not call {callee}: {stack:?}");
                if callee == "burn" {
                    seen.insert(caller.to_owned());
                }
            }
        }
        for leaf in [
            "sort",
            "reduce",
            "ctypes",
            "generator",
            "raise",
            "delete",
            "property",
            "deep",
            "async",
            "exec",
            "größe",
        ] {
            assert!(seen.contains(&format!("leaf_{leaf}")), "3.{minor}: {leaf} is not in {seen:?}");
        }
        let quality = &profile.quality;
        assert!(quality.mismatched * 50 <= quality.with_python, "3.{minor}: {quality:?}");
        assert_eq!(quality.lost, 0, "3.{minor}");
    });
}

#[test]
fn blas_kernels_appear_below_the_calling_line() {
    each_python(|python, minor| {
        if !has(python, "numpy") {
            return;
        }
        // Small products spend most of their time on the call path, large ones in the kernel.
        // Assembly kernels may have no unwind information.
        for (size, times, numbers) in
            [("4", "600000", "float32"), ("512", "40", "float32"), ("512", "25", "float64")]
        {
            let mut command = words(python, &[]);
            command.push(subject("products.py").into());
            command.extend([size.into(), times.into(), numbers.into()]);
            let (profile, _) = sample(&command, &Options::default());
            let (mut right, mut all) = ([0, 0], 0);
            for (stack, sample) in stacks(&profile).iter().zip(&profile.samples) {
                let is_entry = |name: &String| name.contains("cblas_s") || name.contains("cblas_d");
                let Some(entry) = stack.iter().position(is_entry) else { continue };
                let caller = *python_frames(&stack[..entry]).last().unwrap_or(&"");
                // NumPy tests its library on import.
                if !caller.contains("(products.py:") {
                    continue;
                }
                all += 1;
                let is_complete = stack[0] == "_start" && sample.state & state::CUT == 0;
                let (gemm, syrk) = (stack[entry].contains("gemm"), stack[entry].contains("syrk"));
                if is_complete && gemm && caller == "product_with_itself (products.py:12)" {
                    right[0] += 1;
                }
                if is_complete && syrk && caller == "product_with_transpose (products.py:18)" {
                    right[1] += 1;
                }
            }
            let which = format!("3.{minor}, {size}, {numbers}: {right:?} of {all}");
            let cut = profile.samples.iter().filter(|s| s.state & state::CUT != 0).count();
            assert!(cut * 100 <= profile.samples.len(), "{which}: {cut} stacks are truncated");
            assert!(all > 20 && right[0] > 0 && right[1] > 0, "{which}");
            assert!((right[0] + right[1]) * 100 >= all * 99, "{which}");
        }
    });
}

#[test]
fn children_and_threads_are_sampled_on_request() {
    each_python(|python, minor| {
        let mut command = words(python, &[]);
        command.push(subject("processes.py").into());
        for (children, trigger) in [
            (true, Trigger::SigTrap),
            (true, Trigger::Overflow),
            (true, Trigger::Timer),
            (false, Trigger::SigTrap),
        ] {
            let options = Options { children, trigger, ..Options::default() };
            let (profile, ended) = sample(&command, &options);
            let which = format!("3.{minor}, {trigger:?}, children {children}");
            assert_eq!(ended.code(), 0, "{which}");
            let mut names = BTreeSet::new();
            for stack in stacks(&profile) {
                names.extend(python_frames(&stack).iter().map(|frame| bare(frame).to_owned()));
            }
            assert!(names.contains("in_main") && names.contains("in_thread"), "{which}: {names:?}");
            for name in ["in_child", "in_program"] {
                assert_eq!(names.contains(name), children, "{which}: {name}");
            }
        }
    });
}

#[test]
fn greenlets_have_their_own_stacks() {
    each_python(|python, minor| {
        if !has(python, "greenlet") {
            return;
        }
        let mut command = words(python, &[]);
        command.push(subject("greenlets.py").into());
        let (profile, _) = sample(&command, &Options::default());
        let mut seen = BTreeSet::new();
        for stack in stacks(&profile) {
            let frames = python_frames(&stack);
            for pair in frames.windows(2) {
                if bare(pair[1]) == "burn" {
                    seen.insert(bare(pair[0]).to_owned());
                }
            }
        }
        assert_eq!(seen, ["first".to_owned(), "second".to_owned()].into(), "3.{minor}");
    });
}

#[test]
fn an_interpreter_that_is_loaded_late_is_detected() {
    let (_directory, program) = compile_c("embedded.c", &["-ldl", "-fno-optimize-sibling-calls"]);
    each_python(|python, minor| {
        let ask = "import sysconfig as s; v = s.get_config_var; print(v('LIBDIR') + '/' + v('INSTSONAME'))";
        let output = std::process::Command::new(python).args(["-c", ask]).output().unwrap();
        let library = String::from_utf8(output.stdout).unwrap();
        if !library.trim().ends_with(".so.1.0") || !Path::new(library.trim()).exists() {
            return;
        }
        let (profile, ended) = sample(&words(&program, &[library.trim()]), &Options::default());
        assert_eq!(ended.code(), 0, "3.{minor}");
        let stacks = stacks(&profile);
        let inside = |stack: &&Vec<String>| {
            stack.iter().any(|name| name == "embeds")
                && stack.iter().any(|name| name.starts_with("inside (<string>:"))
        };
        let count = stacks.iter().filter(inside).count();
        assert!(count * 2 > stacks.len(), "3.{minor}: {count} of {}", stacks.len());
    });
}

/// Expected frames above `leaf_burn` in each native subject, outermost first.
const NATIVE: [(&str, &[&str]); 6] = [
    ("realigned", &["_start", "main", "realigned", "burn", "leaf_burn"]),
    ("recursive", &["_start", "main", "recursive", "recursive", "burn", "leaf_burn"]),
    ("callback", &["_start", "main", "callback", "compare", "leaf_burn"]),
    ("handler", &["_start", "main", "in_handler", "on_signal", "burn", "leaf_burn"]),
    ("threads", &["thread_of_its_own", "burn", "leaf_burn"]),
    ("blocked", &["thread_of_its_own", "burn", "leaf_burn"]),
];

#[test]
fn native_stacks_are_complete() {
    let (_directory, program) = compile_c("stacks.c", &["-fno-optimize-sibling-calls"]);
    for (what, expected) in NATIVE {
        let (profile, ended) = sample(&words(&program, &[what, "150"]), &Options::default());
        assert_eq!(ended.code(), 0, "{what}");
        let mut leaves = 0;
        for (stack, sample) in stacks(&profile).iter().zip(&profile.samples) {
            if stack.last().map(String::as_str) != Some("leaf_burn") {
                continue;
            }
            leaves += 1;
            assert_eq!(sample.state & state::CUT, 0, "{what}: {stack:?}");
            let mut rest = stack.iter();
            let is_there = expected.iter().all(|name| rest.any(|frame| frame == name));
            assert!(is_there, "{what}: {expected:?} is not in {stack:?}");
        }
        assert!(leaves > 50, "{what}: {leaves} samples");
        // libc itself blocks all signals briefly, for example when it starts a thread.
        let late = profile.quality.late as usize;
        assert!(late * 20 <= profile.samples.len(), "{what}: {late} samples were late");
    }
}

#[test]
fn difficult_programs_end_as_they_do_without_the_agent() {
    let (_directory, program) = compile_c("stacks.c", &[]);
    for (what, code) in [
        ("closes", 0),
        ("exits", 5),
        ("killed", 128 + 9),
        ("traps", 128 + 5),
        ("faults", 128 + 11),
        ("jumping", 0),
        ("allocating", 0),
        ("coroutine", 0),
    ] {
        let (profile, ended) = sample(&words(&program, &[what, "100"]), &Options::default());
        assert_eq!(ended.code(), code, "{what}");
        // Until the end: early actions of a program must not stop the samples.
        let (seen, spent) = (sampled_ns(&profile), profile.about.user_ns);
        assert!(seen * 10 > spent * 6, "{what}: {seen} of {spent} ns");
    }
}

#[test]
fn a_program_may_use_the_signals_of_the_agent() {
    // A shell with an exit trap handles every signal that ends it.
    let script = "trap 'exit 3' EXIT; i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";
    let (profile, ended) = sample(&words("bash", &["-c", script]), &Options::default());
    assert_eq!(ended.code(), 3);
    assert!(profile.samples.len() > 20);
    let script = "import os, signal\ngot = []\nsignal.signal(signal.SIGTRAP, lambda *_: got.append(1))\nsum(range(5000000))\nos.kill(os.getpid(), signal.SIGTRAP)\nsum(range(1000))\nos._exit(len(got))";
    let (_, ended) = sample(&words("python3", &["-c", script]), &Options::default());
    assert_eq!(ended.code(), 1, "it receives its own trap and no other");
}

/// Memory that the agent reads may have been unmapped, so its fault handler must stay installed,
/// whatever the program installs.
#[test]
fn a_program_may_handle_its_own_faults() {
    // Queries which handler the kernel has, then reads an unmapped address.
    let script = "
import ctypes, faulthandler, sys
faulthandler.enable()
action = (ctypes.c_uint64 * 4)()
ctypes.CDLL(None).syscall(13, 11, None, action, 8)
for line in open('/proc/self/maps'):
    start, end = (int(part, 16) for part in line.split()[0].split('-'))
    if start <= action[0] < end and 'laggard-sample' not in line:
        sys.exit(line)
sum(range(3000000))
ctypes.string_at(8)
";
    let (profile, ended) = sample(&words("python3", &["-c", script]), &Options::default());
    assert_eq!(ended.code(), 128 + 11, "the program's own fault ends it");
    assert!(profile.samples.len() > 10);
    let (_directory, program) = compile_c("stacks.c", &[]);
    let (profile, ended) = sample(&words(&program, &["mends", "100"]), &Options::default());
    assert_eq!(ended.code(), 0, "a fault that the program handles does not end it");
    assert!(sampled_ns(&profile) * 10 > profile.about.user_ns * 6);
}

#[test]
fn state_is_not_carried_over_an_exec() {
    // At a low rate, Python is detected late, and by then the process runs another program.
    let script = "import os, time\ntime.sleep(0.5)\nos.execvp('sh', ['sh', '-c', 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; exit 4'])";
    let options = Options { rate: 20.0, ..Options::default() };
    let (_, ended) = sample(&words("python3", &["-c", script]), &options);
    assert_eq!(ended.code(), 4);
}

#[test]
fn rust_names_are_demangled() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("spin");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut rustc = std::process::Command::new(rustc);
    rustc.arg(subject("spin.rs")).args(["-O", "--edition", "2024", "-o"]).arg(&program);
    assert!(rustc.status().unwrap().success());
    let options = Options { quiet: true, ..Options::default() };
    let (profile, _) = sample(&words(&program, &["300"]), &options);
    let in_turn = |stack: &Vec<String>| {
        stack.last().is_some_and(|leaf| leaf == "<spin::Wheel<u64> as spin::Turn>::turn")
            && stack.iter().any(|name| name == "spin::spin")
            && stack[0] == "_start"
    };
    let turning = stacks(&profile).iter().filter(|stack| in_turn(stack)).count();
    assert!(turning * 2 > profile.samples.len(), "{:?}", stacks(&profile).first());
}

#[test]
fn only_the_wall_clock_samples_waiting() {
    let sleeper =
        words("python3", &["-c", "import time\ndef waits():\n  time.sleep(0.5)\nwaits()"]);
    let wall = Options { clock: Clock::Wall, rate: 200.0, ..Options::default() };
    let (profile, _) = sample(&sleeper, &wall);
    let waits = |profile: &Profile| {
        let sleeps = |stack: &Vec<String>| stack.iter().any(|name| name.starts_with("waits ("));
        stacks(profile).iter().filter(|stack| sleeps(stack)).count()
    };
    assert!(waits(&profile) > 50, "{} of {}", waits(&profile), profile.samples.len());
    let marked = profile.samples.iter().filter(|s| s.state & state::WAITING != 0).count();
    assert!(marked > 50, "{marked} samples are marked as waiting");
    let (profile, _) = sample(&sleeper, &Options { rate: 200.0, ..Options::default() });
    assert!(waits(&profile) < 5);
}

#[test]
fn kernel_events_are_attributed_to_their_location() {
    let directory = tempfile::tempdir().unwrap();
    let counted = directory.path().join("counted");
    let program = "import resource, sys\n\
        def faults():\n  return [b\"x\" * (1 << 20) for _ in range(300)]\n\
        kept = faults()\n\
        count = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n\
        open(sys.argv[1], 'w').write(str(count))";
    let options = Options { event: PerfEvent::named("page-faults"), ..Options::default() };
    let mut command = words("python3", &["-c", program]);
    command.push(counted.clone().into());
    let (profile, _) = sample(&command, &options);
    assert_eq!(profile.events[0].name, "page-faults");
    // Samples have the requested rate, so each represents the faults since the previous one.
    let counted: u64 = std::fs::read_to_string(counted).unwrap().parse().unwrap();
    let sampled = sampled_ns(&profile);
    assert!(sampled * 2 > counted && sampled <= counted, "{sampled} of {counted}");
    let inside = stacks(&profile)
        .iter()
        .filter(|stack| stack.iter().any(|name| name.contains("faults (")))
        .count();
    assert!(inside * 2 > profile.samples.len(), "{inside} of {}", profile.samples.len());
}

#[test]
fn programs_that_cannot_be_sampled_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("empty.c");
    std::fs::write(&source, "int main(void) { return 0; }").unwrap();
    let program = directory.path().join("fixed");
    let mut cc = std::process::Command::new("cc");
    cc.arg(&source).args(["-static", "-o"]).arg(&program);
    if cc.status().is_ok_and(|status| status.success()) {
        let refused = record(&words(&program, &[]), &Options::default(), &mut |_| ());
        assert!(matches!(refused, Err(Error::Refused(Refusal::Static(_)))));
    }
    let missing = record(&words("/no/such/program", &[]), &Options::default(), &mut |_| ());
    assert_eq!(missing.unwrap_err().to_string(), "program not found: /no/such/program");
}

#[test]
fn sigwait_receives_only_signals_of_the_program() {
    let program = "import signal, time\n\
        everything = signal.valid_signals() - {signal.SIGSEGV, signal.SIGBUS}\n\
        signal.pthread_sigmask(signal.SIG_BLOCK, everything)\n\
        while time.process_time() < 0.2: pass\n\
        signal.setitimer(signal.ITIMER_REAL, 0.2)\n\
        raise SystemExit(signal.sigwait(everything))";
    let (profile, ended) = sample(&words("python3", &["-c", program]), &Options::default());
    const SIGALRM: i32 = 14;
    assert_eq!(ended.code(), SIGALRM);
    let late = profile.quality.late as usize;
    assert!(
        late * 20 <= profile.samples.len(),
        "{late} samples were late although nothing is blocked"
    );
}

#[test]
fn a_duration_kills_a_program_that_ignores_signals() {
    let options =
        Options { duration: Some(std::time::Duration::from_millis(200)), ..Options::default() };
    let stubborn = "trap '' TERM; while :; do :; done";
    let (profile, ended) = sample(&words("sh", &["-c", stubborn]), &options);
    const KILLED: i32 = 128 + 9;
    assert_eq!(ended.code(), KILLED);
    assert!(profile.samples.len() > 100);
}

#[test]
fn a_duration_ends_the_program() {
    let options =
        Options { duration: Some(std::time::Duration::from_millis(300)), ..Options::default() };
    let (profile, ended) = sample(&words("sh", &["-c", "while :; do :; done"]), &options);
    assert_eq!(ended.code(), 128 + 15);
    assert!(!profile.samples.is_empty());
}
