//! `laggard record` under adverse conditions: unprivileged users, kills, full disks, unsupported
//! programs. The exit status of the program and the samples recorded so far must never be lost.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test fails by panicking

mod common;

use common::{Place, Ran};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// User id of `nobody`.
const NOBODY: u32 = 65534;

/// Burns CPU time in a known function and line, for the number of seconds in its first argument, then
/// exits with status 7.
const PROGRAM: &str = "\
import os, signal, sys, time; open('pid', 'w').write(str(os.getpid()))
signal.signal(signal.SIGINT, signal.default_int_handler)  # not so from a shell's background
def burn_here():
    total = 0
    while time.process_time() < float(sys.argv[1]):
        total += sum(range(1000))  # line 6
def main():
    burn_here()
main()
open('done', 'w').close()
sys.exit(7)
";

/// A working directory with the program.
fn place() -> Place {
    let place = Place::with(&[]);
    fs::write(place.path("burn.py"), PROGRAM).unwrap();
    place
}

/// A system interpreter that every user may run.
fn python() -> Option<&'static str> {
    let all = ["/usr/bin/python3", "/usr/local/bin/python3", "python3"];
    let found = all.into_iter().find(|python| {
        as_nobody(python).args(["-c", ""]).status().is_ok_and(|status| status.success())
    });
    if found.is_none() {
        eprintln!("skipped: no Python that another user may run");
    }
    found
}

fn am_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// A command without privileges: it runs as `nobody` if the test runs as root.
fn as_nobody(program: impl AsRef<Path>) -> Command {
    let program = program.as_ref();
    if !am_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]).arg(program);
    command.env_remove("TMPDIR");
    command
}

/// Gives the working directory to `nobody`, with a copy of laggard that this user may run.
fn hand_over(place: &Place) -> PathBuf {
    let laggard = place.path("laggard");
    // Copied by another process: a child forked by a concurrent test could inherit a file open for
    // writing, and executing the copy would then fail with "text file busy".
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_laggard")).arg(&laggard).status();
    assert!(copied.unwrap().success());
    if am_root() {
        let here = place.path("");
        let root = here.parent().unwrap().parent().unwrap_or(&here);
        for path in [root, here.parent().unwrap(), &here]
            .into_iter()
            .filter(|path| path.starts_with(std::env::temp_dir()) && *path != std::env::temp_dir())
        {
            fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        for name in place.names() {
            chown(place.path(&name), Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
    laggard
}

fn run(command: &mut Command) -> Ran {
    Ran::from(command.output().unwrap())
}

/// Waits until a condition holds.
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends a signal to a process, or to a group by its negative id. Uses Python because shells differ.
fn signal(python: &str, number: u32, whom: &str) {
    let line = format!("import os; os.kill({whom}, {number})");
    assert!(Command::new(python).args(["-c", &line]).status().unwrap().success(), "{line}");
}

/// Starts a recording of the program in a new process group.
fn start(place: &Place, python: &str, seconds: &str) -> Child {
    place
        .command(&["record", "-o", "run.lag", "--duration", "30", "--", python, "burn.py", seconds])
        .process_group(0)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The number of stacks with the function of the program, and of all stacks.
fn stacks(place: &Place) -> (usize, usize) {
    place.data(&["convert", "run.lag", "run.folded", "--force"]);
    let text = fs::read_to_string(place.path("run.folded")).unwrap();
    let right = |line: &&str| {
        line.contains("main (") && line.contains("burn_here (") && line.contains("burn.py:6)")
    };
    (text.lines().filter(right).count(), text.lines().count())
}

#[test]
fn commands_need_no_separator_and_scripts_no_interpreter() {
    let place = place();
    for command in [&["--", "python3", "burn.py"][..], &["python3", "burn.py"], &["burn.py"]] {
        let args =
            [&["record", "-q", "--force", "-o", "run.lag"], command, &["0.1", "-o"]].concat();
        let ran = Ran::from(place.command(&args).output().unwrap());
        assert_eq!(ran.code, Some(7), "{command:?}: {}", ran.stderr);
        let report = Ran::from(place.command(&["report", "run.lag"]).output().unwrap());
        assert!(report.stdout.contains("burn_here"), "{command:?}: {}", report.stdout);
    }
    assert!(!place.path("0.1").exists());
}

#[test]
fn unprivileged_user_records_python() {
    let Some(python) = python() else { return };
    let place = place();
    let laggard = hand_over(&place);
    let mut command = as_nobody(laggard);
    command.args(["record", "-o", "run.lag", "--", python, "burn.py", "0.5"]);
    place.settle(&mut command);
    let ran = run(&mut command);
    assert_eq!(ran.code, Some(7), "{}", ran.stderr);
    assert!(ran.stderr.contains("100.0 % complete"), "{}", ran.stderr);
    let (right, all) = stacks(&place);
    assert!(right > 0, "none of {all}");
    let cache = place.cache().parent().unwrap().join("agents");
    assert_eq!(common::names(&cache).len(), 1, "the agent must be cached");
}

#[test]
fn records_with_an_unwritable_cache() {
    let Some(python) = python() else { return };
    let place = place();
    let temporary = place.path("temporary");
    fs::create_dir(&temporary).unwrap();
    let locked = place.path("locked");
    fs::create_dir(&locked).unwrap();
    let laggard = hand_over(&place);
    if am_root() {
        chown(&locked, Some(0), Some(0)).unwrap();
    }
    fs::set_permissions(&locked, Permissions::from_mode(0o555)).unwrap();
    let mut command = as_nobody(laggard);
    command.args(["record", "-o", "run.lag", "--", python, "burn.py", "0.2"]);
    place.settle(&mut command);
    let ran = run(command.env("XDG_CACHE_HOME", &locked).env("TMPDIR", &temporary));
    assert_eq!(ran.code, Some(7), "{}", ran.stderr);
    let names = common::names(&temporary);
    assert!(names.len() == 1 && names[0].starts_with("laggard-"), "{names:?}");
}

#[test]
fn killed_recording_is_readable_and_leaves_no_files() {
    let Some(python) = python() else { return };
    let place = place();
    let mut laggard = start(&place, python, "4");
    wait_for("samples", || place.path("run.lag").exists());
    let ring = format!("/dev/shm/laggard-{}-0.ring", laggard.id());
    let was_there = Path::new(&ring).exists();
    laggard.kill().unwrap();
    assert_eq!(laggard.wait().unwrap().signal(), Some(9));
    let ran = place.run(&["report", "run.lag"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("warning: the recording was not finished"), "{}", ran.stdout);
    assert!(ran.stdout.contains("burn_here"), "{}", ran.stdout);
    // The program continues although nobody reads its samples.
    wait_for("the end of the program", || place.path("done").exists());
    assert_eq!(place.run(&["record", "-o", "again.lag", "--", "true"]).code, Some(0));
    assert!(was_there && !Path::new(&ring).exists(), "{ring}");
    let names = place.names();
    assert_eq!(names, ["again.lag", "burn.py", "done", "pid", "run.lag"]);
}

#[test]
fn keeps_samples_of_a_killed_program() {
    let Some(python) = python() else { return };
    let place = place();
    let laggard = start(&place, python, "60");
    wait_for("samples", || place.path("run.lag").exists());
    let pid = fs::read_to_string(place.path("pid")).unwrap();
    signal(python, 9, &pid);
    let ran = Ran::from(laggard.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(128 + 9), "{}", ran.stderr);
    assert!(stacks(&place).0 > 0);
    let ran = place.run(&["report", "run.lag"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
}

#[test]
fn interrupt_ends_the_program_and_keeps_its_samples() {
    let Some(python) = python() else { return };
    // To the whole group, like a terminal, and to laggard alone, like a script.
    for to_group in [true, false] {
        let place = place();
        let laggard = start(&place, python, "60");
        wait_for("samples", || place.path("run.lag").exists());
        let whom = if to_group { format!("-{}", laggard.id()) } else { laggard.id().to_string() };
        signal(python, 2, &whom);
        let ran = Ran::from(laggard.wait_with_output().unwrap());
        assert_eq!(ran.code, Some(128 + 2), "{}", ran.stderr);
        assert!(ran.stderr.contains("KeyboardInterrupt"), "{}", ran.stderr);
        assert!(ran.stderr.contains("wrote run.lag"), "{}", ran.stderr);
        assert!(stacks(&place).0 > 0);
        assert!(!place.path("done").exists());
    }
}

#[test]
fn full_disk_fails_and_keeps_the_older_recording() {
    if !am_root() {
        eprintln!("skipped: only root may mount a small file system");
        return;
    }
    let Some(python) = python() else { return };
    let place = place();
    fs::create_dir(place.path("small")).unwrap();
    assert_eq!(place.run(&["record", "-o", "old.lag", "--", "true"]).code, Some(0));
    // In a separate mount namespace, so that nothing stays mounted. The program runs long enough for
    // laggard to write samples meanwhile.
    let line = "
        mount -t tmpfs -o size=64k laggard small || exit 99
        cp old.lag small/run.lag && cat /dev/zero > small/filler 2> /dev/null
        \"$@\"
        echo code $?
        cmp old.lag small/run.lag && ls small";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", line, "sh", env!("CARGO_BIN_EXE_laggard")]);
    command.args(["record", "-o", "small/run.lag", "--", python, "burn.py", "1.7"]);
    place.settle(&mut command);
    let ran = run(&mut command);
    if ran.code == Some(99) {
        eprintln!("skipped: {}", ran.stderr);
        return;
    }
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "code 125\nfiller\nrun.lag\n"),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("error: cannot write the recording"), "{}", ran.stderr);
    assert!(ran.stderr.contains("No space left on device"), "{}", ran.stderr);
}

#[test]
fn rejects_unsupported_programs_before_running_them() {
    let place = place();
    let program = |name: &str, content: &[u8], mode: u32| {
        fs::write(place.path(name), content).unwrap();
        fs::set_permissions(place.path(name), Permissions::from_mode(mode)).unwrap();
    };
    // The ELF header of a 64-bit program for this machine without a dynamic linker.
    let mut elf = [0u8; 64];
    elf[..5].copy_from_slice(b"\x7fELF\x02");
    elf[18] = 62;
    program("static", &elf, 0o755);
    elf[4] = 1;
    program("small", &elf, 0o755);
    program("plain", b"#!/bin/sh\n", 0o644);
    let check = |name: &str, expected: &str| {
        // Without --backend agent, record would fall back to perf.
        let ran = place.run(&["record", "--backend", "agent", "-o", "run.lag", "--", name]);
        assert_eq!(ran.code, Some(125), "{name}: {}", ran.stderr);
        let is_expected = ran.stderr.starts_with("error: ") && ran.stderr.contains(expected);
        assert!(is_expected, "{}", ran.stderr);
        assert!(!place.path("run.lag").exists(), "{name}");
    };
    check("./static", "./static is statically linked");
    check("./small", "./small is built for another architecture (32-bit)");
    check("./plain", "./plain is not executable");
    check("./missing", "program not found: ./missing");
    check("no-such-program", "program not found: no-such-program");
    if am_root() {
        fs::copy("/bin/true", place.path("privileged")).unwrap();
        chown(place.path("privileged"), Some(NOBODY), None).unwrap();
        fs::set_permissions(place.path("privileged"), Permissions::from_mode(0o4755)).unwrap();
        check("./privileged", "./privileged runs with elevated privileges (setuid)");
    }
}

/// Writes an executable script or program.
fn executable(place: &Place, name: &str, content: &[u8]) {
    fs::write(place.path(name), content).unwrap();
    fs::set_permissions(place.path(name), Permissions::from_mode(0o755)).unwrap();
}

/// The report of `run.lag` as JSON.
fn report(place: &Place, words: &[&str]) -> serde_json::Value {
    serde_json::from_str(&place.data(&[&["report", "--json", "run.lag"], words].concat())).unwrap()
}

/// Names of the rows of a table by group.
fn rows(place: &Place, by: &str) -> Vec<String> {
    let table = report(place, &["--all", "--by", by]);
    let rows = table["tables"][by]["rows"].as_array().unwrap();
    rows.iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn programs_started_by_a_script_are_sampled_and_named() {
    let Some(python) = python() else { return };
    let place = place();
    executable(&place, "run.sh", format!("#!/bin/sh\n{python} burn.py 0.5; exit 3\n").as_bytes());
    let ran = place.run(&["record", "-o", "run.lag", "--", "./run.sh"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(stacks(&place).0 > 0, "{}", ran.stderr);
    let processes = rows(&place, "process");
    assert!(processes.iter().any(|name| name.contains(" burn.py (")), "{processes:?}");
    let quality = &report(&place, &[])["quality"];
    assert_eq!(quality["children"]["followed"], 1, "{quality}");
    assert_eq!(quality["unsampled"]["children_ns"], 0, "{quality}");

    let words = ["record", "--force", "--no-children", "-o", "run.lag", "--", "./run.sh"];
    let ran = place.run(&words);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let why = "in child processes (not followed because of --no-children)";
    assert!(ran.stderr.contains(why), "{}", ran.stderr);
    let text = place.data(&["report", "run.lag"]);
    assert!(!text.contains("burn_here") && text.contains("--no-children"), "{text}");
}

#[test]
fn programs_that_cannot_be_sampled_are_counted_with_the_reason() {
    let Some(python) = python() else { return };
    let place = place();
    let source = "int main(void) { for (volatile long i = 0; i < 30000000; i++); return 0; }\n";
    fs::write(place.path("fixed.c"), source).unwrap();
    let words = ["-O1", "-static", "-o", "fixed", "fixed.c"];
    let built = Command::new("cc").args(words).current_dir(place.path("")).output().unwrap();
    if !built.status.success() {
        eprintln!("skipped: static programs cannot be built");
        return;
    }
    let program = "
import os, subprocess, sys
for _ in range(2):
    subprocess.run(['./fixed'], check=True)
if os.fork() == 0:
    os.execv('./fixed', ['fixed'])
os.wait()
subprocess.run(['/bin/true'], check=True, env={})
subprocess.run(['./static-interpreter.sh'])
subprocess.run('true', check=True)
";
    fs::write(place.path("starts.py"), program).unwrap();
    executable(&place, "static-interpreter.sh", b"#!./fixed\n");
    let ran = place.run(&["record", "-o", "run.lag", "--", python, "starts.py"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let quality = &report(&place, &[])["quality"];
    let excluded = quality["children"]["excluded"].as_array().unwrap();
    let excluded: Vec<String> = excluded
        .iter()
        .map(|row| format!("{} {} {}", row["count"], row["program"], row["reason"]))
        .collect();
    let expected = [
        "3 \"fixed\" \"statically linked\"",
        "1 \"static-interpreter.sh\" \"statically linked\"",
        "1 \"true\" \"started without the environment of its parent\"",
    ];
    assert_eq!(excluded, expected, "{quality}");
    assert_eq!(quality["children"]["followed"], 1, "{quality}");
    let text = place.data(&["report", "run.lag"]);
    assert!(text.contains("not followed: 3 of fixed (statically"), "{text}");
}

#[test]
fn many_short_processes_are_counted_and_not_listed() {
    let place = place();
    let line = "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done; exit 4";
    let ran = place.run(&["record", "-o", "run.lag", "--", "sh", "-c", line]);
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    let quality = &report(&place, &[])["quality"];
    assert_eq!(quality["children"]["followed"], 300, "{quality}");
    assert_eq!(quality["children"]["excluded"], serde_json::json!([]), "{quality}");
    // Up to 20 processes of one program have rows of their own, here of `sh` and of `true`.
    assert!(rows(&place, "process").len() <= 2 * 20, "one row per process");
}

#[test]
fn threads_have_the_names_that_the_program_gave_them() {
    let Some(python) = python() else { return };
    let place = place();
    let program = "
import ctypes, threading, time
from concurrent.futures import ThreadPoolExecutor
def burn():
    end = time.thread_time() + 0.3
    while time.thread_time() < end: sum(range(1000))
def names_itself():
    ctypes.CDLL(None).prctl(15, b'named-by-prctl', 0, 0, 0)
    burn()
threads = [
    threading.Thread(target=burn, name='a name longer than fifteen bytes'),
    threading.Thread(target=names_itself, name=''),
]
for thread in threads: thread.start()
with ThreadPoolExecutor(1, thread_name_prefix='pool') as pool: pool.submit(burn).result()
for thread in threads: thread.join()
";
    fs::write(place.path("threads.py"), program).unwrap();
    let ran = place.run(&["record", "-o", "run.lag", "--", python, "threads.py"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let names = rows(&place, "thread");
    for name in ["a name longer than fifteen bytes (", "pool_0 (", "named-by-prctl ("] {
        assert!(names.iter().any(|found| found.starts_with(name)), "{name}: {names:?}");
    }
    let page = place.run(&["view", "run.lag", "-o", "run.html"]);
    assert_eq!(page.code, Some(0), "{}", page.stderr);
    let page = fs::read_to_string(place.path("run.html")).unwrap();
    assert!(page.contains("a name longer than fifteen bytes"), "not on the page");
}

#[test]
fn an_unsupported_python_is_named_in_the_recording() {
    let place = place();
    // A library with the symbols of an interpreter of this version.
    let library = "
const unsigned long Py_Version = 0x030f02f0;
const char *Py_GetVersion(void) { return \"3.15.2\"; }
int PyCode_Type, _PyRuntime;
void *PyGILState_GetThisThreadState(void) { return 0; }
void *PyThreadState_GetUnchecked(void) { return 0; }
";
    let program = "
const char *Py_GetVersion(void);
int main(void) {
    for (volatile long i = 0; i < 100000000; i++);
    return Py_GetVersion()[0] != '3';
}
";
    fs::write(place.path("library.c"), library).unwrap();
    fs::write(place.path("program.c"), program).unwrap();
    for words in [
        &["-shared", "-fPIC", "-o", "libpython3.15.so.1.0", "library.c"][..],
        &["-O1", "-o", "program", "program.c", "./libpython3.15.so.1.0"],
    ] {
        let built = Command::new("cc").args(words).current_dir(place.path("")).status().unwrap();
        assert!(built.success(), "{words:?}");
    }
    let ran = place.run(&["record", "-o", "run.lag", "--", "./program"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let notice = "frames of Python 3.15 are not supported: its stacks have native frames only";
    assert!(ran.stderr.contains(&format!("warning: {notice}")), "{}", ran.stderr);
    let text = place.data(&["report", "run.lag"]).replace("\n  ", " ");
    assert!(text.contains(&format!("note: {notice}")), "{text}");
}
