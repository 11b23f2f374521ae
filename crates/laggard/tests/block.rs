//! Recording blocks of running processes. Stacks of threads started before and during the block must
//! be complete, and the process must continue undisturbed.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test fails by panicking

use laggard::block::{Wanted, start};
use laggard_core::model::profile::{FrameKind, Profile, state};
use laggard_formats::lag::{Run, read_run};
use laggard_probe::Error;
use laggard_probe::sample::here::Refusal;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

const LAGGARD: &str = env!("CARGO_BIN_EXE_laggard");
const SIGTRAP: usize = 0;
const OVERFLOW: usize = 1;
const TIMER: usize = 2;

/// A temporary directory with the agent.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        fs::write(place.path("laggard-sample-test.so"), laggard_agent::SAMPLE).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs a scenario of `subjects/probe/block.py`.
    fn run(&self, python: &Path, scenario: &str, trigger: usize, flags: &[&str]) -> ExitStatus {
        let subject = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../subjects/probe/block.py");
        let mut command = Command::new(python);
        command.arg(subject).arg(self.path("laggard-sample-test.so")).arg(LAGGARD);
        command.arg(self.path("")).args([scenario, &trigger.to_string()]).args(flags);
        command.status().unwrap()
    }

    /// The profile of a finished block. If the process died, the driver writes it with a delay.
    fn profile(&self, name: &str) -> Profile {
        const PATIENCE: Duration = Duration::from_secs(60);
        let began = Instant::now();
        loop {
            match read_run(&self.path(name)) {
                // The method is set when the recording is finished.
                Ok((Run::Profile(profile), _)) if !profile.about.method.is_empty() => {
                    return profile;
                }
                _ => assert!(began.elapsed() < PATIENCE, "{name} is not written"),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Function names of all stacks, outermost first. Python frames have a line number.
fn stacks(profile: &Profile) -> Vec<Vec<String>> {
    let name = |frame: u32| {
        let frame = &profile.frames[frame as usize];
        let name = profile.texts.get(frame.function);
        match frame.kind {
            FrameKind::Python => format!("{name}:{}", frame.line),
            _ => name.to_owned(),
        }
    };
    let stack = |stack| {
        let mut names: Vec<String> = profile.frames_of(stack).map(name).collect();
        names.reverse();
        names
    };
    profile.samples.iter().map(|sample| stack(sample.stack)).collect()
}

/// All functions in the stacks, without line numbers.
fn functions(profile: &Profile) -> BTreeSet<String> {
    let bare = |name: String| name.split(':').next().unwrap().to_owned();
    stacks(profile).into_iter().flatten().map(bare).collect()
}

/// Asserts that nearly all stacks are complete and nearly all Python frames match native frames.
fn assert_whole(profile: &Profile, which: &str) {
    let cut = profile.samples.iter().filter(|sample| sample.state & state::CUT != 0).count();
    let quality = &profile.quality;
    assert!(!profile.samples.is_empty(), "{which}: no samples");
    assert!(cut * 20 <= profile.samples.len(), "{which}: {cut} of {}", profile.samples.len());
    assert!(quality.mismatched * 20 <= quality.with_python, "{which}: {quality:?}");
}

/// Runs a check with one interpreter of each version.
fn each_python(mut check: impl FnMut(&Path, &str)) {
    let list = std::env::var_os("LAGGARD_PYTHONS").filter(|list| !list.is_empty());
    let all = list.map_or_else(|| vec!["python3".into()], |l| std::env::split_paths(&l).collect());
    let mut seen = BTreeSet::new();
    for python in all {
        let ask = "import sys; print('3.%d' % sys.version_info[1])";
        let output = Command::new(&python).args(["-c", ask]).output().unwrap();
        let version = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        if seen.insert(version.clone()) {
            check(&python, &version);
        }
    }
}

#[test]
fn samples_threads_started_before_and_in_a_block() {
    each_python(|python, version| {
        for trigger in [SIGTRAP, OVERFLOW, TIMER] {
            let place = Place::new();
            assert!(place.run(python, "threads", trigger, &[]).success(), "{version}, {trigger}");
            let first = place.profile("first.lag");
            let which = format!("{version}, trigger {trigger}");
            assert_whole(&first, &which);
            let seen = functions(&first);
            for name in ["in_main", "in_old_thread", "in_new_thread", "burn"] {
                assert!(seen.contains(name), "{which}: {name} is not in {seen:?}");
            }
            assert!(first.about.command.iter().any(|word| word.ends_with("block.py")));
            let lines: BTreeSet<String> = stacks(&first).into_iter().flatten().collect();
            assert!(lines.iter().any(|name| name.starts_with("burn:") && name != "burn:0"));
            let second = place.profile("second.lag");
            assert_whole(&second, &which);
            let seen = functions(&second);
            assert!(seen.contains("in_second") && !seen.contains("in_main"), "{which}: {seen:?}");
        }
    });
}

#[test]
fn wall_clock_samples_waiting_threads() {
    each_python(|python, version| {
        let place = Place::new();
        assert!(place.run(python, "waits", SIGTRAP, &["--clock", "wall"]).success());
        let profile = place.profile("waits.lag");
        assert_whole(&profile, version);
        let seen = functions(&profile);
        for name in ["waits", "waits_in_old_thread", "waits_in_new_thread"] {
            assert!(seen.contains(name), "{version}: {name} is not in {seen:?}");
        }
        let waiting = profile.samples.iter().filter(|s| s.state & state::WAITING != 0).count();
        assert!(waiting * 2 > profile.samples.len(), "{version}: {waiting} wait");
    });
}

#[test]
fn rejects_nested_blocks() {
    each_python(|python, version| {
        let place = Place::new();
        assert!(place.run(python, "nested", SIGTRAP, &[]).success(), "{version}");
        assert_whole(&place.profile("outer.lag"), version);
        assert!(!place.path("inner.lag").exists(), "{version}");
    });
}

#[test]
fn does_not_sample_forked_processes() {
    each_python(|python, version| {
        for trigger in [SIGTRAP, OVERFLOW, TIMER] {
            let place = Place::new();
            assert!(place.run(python, "forks", trigger, &[]).success(), "{version}, {trigger}");
            let profile = place.profile("forks.lag");
            assert_whole(&profile, version);
            assert!(!functions(&profile).contains("in_child"), "{version}");
            assert!(functions(&place.profile("parent.lag")).contains("in_main"), "{version}");
            assert!(functions(&place.profile("child.lag")).contains("in_child"), "{version}");
        }
    });
}

#[test]
fn preserves_signal_handlers_of_the_program() {
    each_python(|python, version| {
        let place = Place::new();
        let status = place.run(python, "faults", SIGTRAP, &[]);
        assert_eq!(status.signal(), Some(11), "{version}: must die of its own fault");
        let profile = place.profile("faults.lag");
        assert_whole(&profile, version);
        let seen = functions(&profile);
        assert!(seen.contains("in_main") && seen.contains("in_careful"), "{version}: {seen:?}");
        let fatal = place.profile("fatal.lag");
        assert!(functions(&fatal).contains("in_main"), "{version}");
        assert!(fatal.quality.warnings[0].contains("before the recorded block ended"), "{version}");
    });
}

#[test]
fn warns_about_threads_that_block_signals() {
    each_python(|python, version| {
        let place = Place::new();
        assert!(place.run(python, "blocked", SIGTRAP, &[]).success(), "{version}");
        let profile = place.profile("blocked.lag");
        assert_whole(&profile, version);
        let warnings = profile.quality.warnings.join("\n");
        assert!(warnings.contains("block the sampling signal"), "{version}: {warnings}");
    });
}

#[test]
fn keeps_samples_of_a_killed_process() {
    each_python(|python, version| {
        let place = Place::new();
        assert_eq!(place.run(python, "killed", SIGTRAP, &[]).signal(), Some(9), "{version}");
        assert!(functions(&place.profile("killed.lag")).contains("in_main"), "{version}");
        assert!(place.run(python, "replaced", SIGTRAP, &[]).success(), "{version}");
        assert!(functions(&place.profile("replaced.lag")).contains("in_main"), "{version}");
    });
}

#[test]
fn starts_and_stops_blocks_while_threads_run() {
    each_python(|python, version| {
        let place = Place::new();
        assert!(place.run(python, "many", SIGTRAP, &[]).success(), "{version}");
    });
}

#[test]
fn finds_blas_kernels_below_their_python_line() {
    each_python(|python, version| {
        let has_numpy = Command::new(python).args(["-c", "import numpy"]).output().unwrap();
        if !has_numpy.status.success() {
            eprintln!("skipped: {} has no numpy", python.display());
            return;
        }
        let place = Place::new();
        assert!(place.run(python, "product", SIGTRAP, &[]).success(), "{version}");
        let profile = place.profile("product.lag");
        assert_whole(&profile, version);
        let stacks = stacks(&profile);
        let is_kernel =
            |stack: &&Vec<String>| stack.last().is_some_and(|leaf| leaf.contains("gemm_kernel"));
        let has_line = |stack: &Vec<String>| stack.iter().any(|name| name.starts_with("multiply:"));
        let kernels: Vec<_> = stacks.iter().filter(is_kernel).collect();
        let under = kernels.iter().filter(|stack| has_line(stack)).count();
        assert!(under > 0, "{version}: {} kernels", kernels.len());
        // BLAS threads started before the block have complete stacks without Python frames.
        let mine = profile.samples.iter().map(|sample| sample.thread).collect::<BTreeSet<_>>();
        assert!(mine.len() == 1 || under < kernels.len(), "{version}");
    });
}

/// Burns CPU time until `is_over` returns true.
#[inline(never)]
fn work_of_a_thread(is_over: &dyn Fn() -> bool) -> u64 {
    let mut sum = 0u64;
    while !is_over() {
        for i in 0..10_000u64 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(i));
        }
    }
    sum
}

fn for_a_while() -> impl Fn() -> bool {
    let end = Instant::now() + Duration::from_millis(400);
    move || Instant::now() >= end
}

#[test]
fn records_a_block_of_a_rust_program() {
    let place = Place::new();
    let wanted = Wanted::to(place.path("own.lag"));
    let laggard = [OsString::from(LAGGARD)];
    let (begin, begun) = channel();
    let old = std::thread::spawn(move || {
        begun.recv().unwrap();
        work_of_a_thread(&for_a_while())
    });
    let recording = start(&wanted, &laggard).unwrap();
    begin.send(()).unwrap();
    let refused = start(&wanted, &laggard).unwrap_err();
    assert!(matches!(refused, Error::RefusedHere(Refusal::Busy)), "{refused}");
    let new = std::thread::spawn(|| work_of_a_thread(&for_a_while()));
    new.join().unwrap();
    old.join().unwrap();
    let recorded = recording.stop().unwrap().unwrap();
    assert!(recorded.samples > 0 && recorded.complete * 20 >= recorded.samples * 19);
    let profile = place.profile("own.lag");
    assert_whole(&profile, "own");
    let sampled: BTreeSet<u32> = profile.samples.iter().map(|sample| sample.thread).collect();
    assert!(sampled.len() >= 2, "old and new: {sampled:?}");
    assert!(profile.about.user_ns > 0 && profile.about.duration_ns > 0);

    // Errors of the driver are reported. A program that is not a driver does not block the start.
    let nowhere = Wanted::to(place.path("no/such/directory.lag"));
    let error = start(&nowhere, &laggard).unwrap_err().to_string();
    assert!(error.contains("no such directory"), "{error}");
    let error = start(&wanted, &[OsString::from("/bin/true")]).unwrap_err();
    assert!(matches!(error, Error::Driver(_)), "{error}");
    let error = start(&wanted, &[OsString::from("/no/such/program")]).unwrap_err();
    assert!(matches!(error, Error::Start { .. }), "{error}");

    // A dropped recording is written too.
    let dropped = Wanted { rate: 499.0, ..Wanted::to(place.path("dropped.lag")) };
    drop(start(&dropped, &laggard).unwrap());
    assert_eq!(place.profile("dropped.lag").about.rate, 499.0);
}

#[test]
fn rejects_blocks_in_a_recorded_process() {
    let place = Place::new();
    // Runs the ignored test below with the environment of a recorded process.
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "prints_the_refusal_in_this_environment", "--ignored", "--nocapture"]);
    let output = command.env("LAGGARD_RING", place.path("none")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("by `laggard record`"), "{said}");
}

/// Started by the test above.
#[test]
#[ignore = "needs the environment of `laggard record`"]
fn prints_the_refusal_in_this_environment() {
    let place = Place::new();
    let error = start(&Wanted::to(place.path("a.lag")), &[LAGGARD.into()]).unwrap_err();
    eprintln!("{error}");
    assert!(matches!(error, Error::RefusedHere(Refusal::Preloaded)));
}
