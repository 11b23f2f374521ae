//! How the program behaves among others: pipes, terminals, files that go away, places that cannot
//! be written.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use common::{Place, Ran, fixtures};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::Stdio;

const BY_PHASE: [&str; 4] = ["report", "--no-index", "--by", "phase"];

#[test]
fn standard_input_is_read_plain_and_compressed() {
    let place = Place::with(&["amd-native.json", "one-member.json.gz"]);
    let expected = place.data(&["report", "--no-index", "amd-native.json"]);
    for name in
        ["amd-native.json", "one-member.json.gz", "three-members.json.gz", "zstandard.json.zst"]
    {
        let input = File::open(fixtures().join(name)).unwrap();
        let ran = Ran::from(place.command(&["report", "-"]).stdin(input).output().unwrap());
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{name}");
        let (first, rest) = ran.stdout.split_once('\n').unwrap();
        assert_eq!(first, "-", "{name}");
        assert_eq!(rest, expected.split_once('\n').unwrap().1, "{name}");
    }
    assert_eq!(place.names(), ["amd-native.json", "one-member.json.gz"], "an index of a stream");
}

#[test]
fn standard_input_may_come_slowly_and_in_small_pieces() {
    let place = Place::with(&["traps/several-gpus.json"]);
    let expected = place.data(&["report", "--no-index", "several-gpus.json"]);
    let mut child = place
        .command(&["report", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    for piece in fs::read(place.path("several-gpus.json")).unwrap().chunks(7) {
        input.write_all(piece).unwrap();
        input.flush().unwrap();
    }
    drop(input);
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.stdout.split_once('\n').unwrap().1, expected.split_once('\n').unwrap().1);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let place = Place::with(&["decode.json"]);
    for args in [&["report", "--all", "decode.json"][..], &["report", "--help"], &["index"]] {
        let mut child =
            place.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!((child.wait().unwrap().code(), stderr.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn nobody_listening_to_talk_is_no_failure() {
    let place = Place::with(&["decode.json"]);
    for (args, code) in
        [(&["-v", "report", "decode.json"][..], 0), (&["report", "missing.json"], 2)]
    {
        let mut child =
            place.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stderr.take());
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert_eq!(ran.code, Some(code), "{args:?}");
        assert_eq!(ran.stdout.is_empty(), code != 0, "{args:?}");
    }
}

#[test]
fn data_goes_to_standard_output_and_talk_to_standard_error() {
    let place = Place::with(&["decode.json"]);
    let quiet = place.run(&["report", "--json", "decode.json"]);
    assert_eq!((quiet.code, quiet.stderr.as_str()), (Some(0), ""));
    let talking = place.run(&["-v", "report", "--json", "decode.json"]);
    assert_eq!(talking.stderr, "loaded from the index\n");
    assert_eq!(talking.stdout, quiet.stdout);
    assert!(quiet.stdout.starts_with('{') && quiet.stdout.ends_with("}\n"));
    let failed = place.run(&["report", "missing.json"]);
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(2), ""));
    assert!(failed.stderr.starts_with("error: "), "{}", failed.stderr);
    let usage = place.run(&["report", "--top"]);
    assert_eq!((usage.code, usage.stdout.as_str()), (Some(2), ""));
    let written = place.run(&["report", "decode.json", "-o", "out.json"]);
    assert_eq!((written.stdout.as_str(), written.stderr.as_str()), ("", "wrote out.json\n"));
    assert_eq!(fs::read_to_string(place.path("out.json")).unwrap(), quiet.stdout);
}

/// Whether the program colours its results and its errors, by flag and environment, when both go
/// to a pipe.
#[test]
fn colours_are_for_those_who_ask() {
    let place = Place::with(&["decode.json"]);
    let coloured = |args: &[&str], variables: &[(&str, &str)]| {
        let run = |more: &[&str]| {
            let args: Vec<&str> = args.iter().chain(more).copied().collect();
            let mut command = place.command(&args);
            Ran::from(command.envs(variables.iter().copied()).output().unwrap())
        };
        let (good, bad) = (run(&["report", "decode.json"]), run(&["report", "missing.json"]));
        (good.stdout.contains('\x1b'), bad.stderr.contains('\x1b'))
    };
    assert_eq!(coloured(&[], &[]), (false, false));
    assert_eq!(coloured(&["--color", "always"], &[]), (true, true));
    assert_eq!(coloured(&["--color", "always"], &[("NO_COLOR", "1")]), (true, true));
    assert_eq!(coloured(&["--color", "never"], &[]), (false, false));
    assert_eq!(coloured(&["--color", "auto"], &[("TERM", "xterm-256color")]), (false, false));
    let file = place.run(&["--color", "always", "report", "decode.json", "-o", "out.txt"]);
    assert_eq!(file.code, Some(0));
    assert!(!fs::read_to_string(place.path("out.txt")).unwrap().contains('\x1b'));
    let json = place.data(&["--color", "always", "report", "--json", "decode.json"]);
    assert!(!json.contains('\x1b'));
}

/// The same on a terminal, which `script` makes where there is one.
#[test]
fn colours_on_a_terminal_heed_the_environment() {
    let place = Place::with(&["decode.json"]);
    let coloured = |arguments: &str, variables: &[(&str, &str)]| {
        let mut command = std::process::Command::new("script");
        let line = format!(
            "'{}' {arguments} report --no-index decode.json",
            env!("CARGO_BIN_EXE_laggard")
        );
        command.args(["-qec", &line, "/dev/null"]);
        place.settle(&mut command);
        command.env("TERM", "xterm").envs(variables.iter().copied());
        let output = command.output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8(output.stdout).unwrap().contains("\x1b["))
    };
    // The progress bar has escapes of its own.
    let Some(plain) = coloured("--no-progress", &[]) else { return };
    assert!(plain);
    assert_eq!(coloured("--no-progress", &[("NO_COLOR", "1")]), Some(false));
    assert_eq!(coloured("--no-progress", &[("NO_COLOR", "")]), Some(true));
    assert_eq!(coloured("--no-progress", &[("TERM", "dumb")]), Some(false));
    assert_eq!(coloured("--no-progress --color never", &[]), Some(false));
    assert_eq!(coloured("--no-progress --color always", &[("TERM", "dumb")]), Some(true));
}

#[test]
fn a_file_that_cannot_be_read_is_told() {
    let place = Place::with(&["decode.json"]);
    fs::remove_file(place.path("decode.json")).unwrap();
    let gone = place.run(&["report", "decode.json"]);
    assert_eq!(gone.code, Some(2));
    assert!(gone.stderr.starts_with("error: cannot "), "{}", gone.stderr);
    assert!(gone.stderr.contains("caused by: No such file"), "{}", gone.stderr);
    // A file that may be opened but not read, for root too.
    if cfg!(target_os = "linux") {
        let unreadable = place.run(&["report", "/proc/self/mem"]);
        assert_eq!(unreadable.code, Some(2), "{unreadable:?}");
        assert!(unreadable.stderr.starts_with("error: cannot read /proc/self/mem"));
    }
    assert!(place.names().is_empty());
}

#[test]
fn what_cannot_be_written_is_told() {
    let place = Place::with(&["decode.json"]);
    // A file where a directory would have to be: root cannot write there either.
    let nowhere = place.run(&["report", "--no-index", "decode.json", "-o", "decode.json/out.json"]);
    assert_eq!((nowhere.code, nowhere.stdout.as_str()), (Some(2), ""));
    assert!(nowhere.stderr.starts_with("error: cannot write decode.json/out.json"));
    assert!(!nowhere.stderr.contains(".tmp"), "{}", nowhere.stderr);
    if cfg!(target_os = "linux") {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut command = place.command(&["report", "--no-index", "decode.json"]);
        let ran = Ran::from(command.stdout(full).output().unwrap());
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.starts_with("error: cannot write to standard output"), "{}", ran.stderr);
    }
}

#[cfg(unix)]
#[test]
fn a_read_only_directory_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::with(&["decode.json"]);
    let closed = place.path("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    let binds = fs::write(closed.join("probe"), "").is_err();
    let ran = place.run(&["report", "--no-index", "decode.json", "-o", "closed/out.json"]);
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
    // Permissions do not bind root.
    if binds {
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("caused by: Permission denied"), "{}", ran.stderr);
        assert!(common::names(&closed).is_empty());
    }
}

#[cfg(unix)]
#[test]
fn devices_and_links_are_written_through() {
    use std::os::unix::fs::FileTypeExt;
    let place = Place::with(&["decode.json"]);
    let expected = place.data(&[&BY_PHASE[..], &["decode.json"]].concat());
    // A pipe with a name stands for any device, and is no loss if it were replaced.
    let pipe = place.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let args = [&BY_PHASE[..], &["decode.json", "--format", "text", "-o", "pipe"]].concat();
    // Open both ways, so that neither side waits for the other.
    let mut opened = File::options().read(true).write(true).open(&pipe).unwrap();
    let mut child = place.command(&args).stderr(Stdio::piped()).spawn().unwrap();
    let ended = (0..1000).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        child.try_wait().unwrap()
    });
    if ended.is_none() {
        child.kill().unwrap();
    }
    assert_eq!(ended.and_then(|status| status.code()), Some(0), "none: it hangs");
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo(), "the pipe was replaced");
    let mut text = vec![0; 1 << 16];
    let length = opened.read(&mut text).unwrap();
    assert_eq!(String::from_utf8_lossy(&text[..length]), expected);

    fs::write(place.path("target.txt"), "").unwrap();
    std::os::unix::fs::symlink("target.txt", place.path("link.txt")).unwrap();
    place.data(&[&BY_PHASE[..], &["decode.json", "-o", "link.txt"]].concat());
    assert!(fs::symlink_metadata(place.path("link.txt")).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(place.path("target.txt")).unwrap(), expected);
}

/// What is in the way of `-o`, the form asked for, and whether it is replaced.
#[test]
fn only_files_of_the_same_kind_are_overwritten() {
    let place = Place::with(&["decode.json"]);
    let long = format!("{{\"text\": \"{}ä\"}}", "a".repeat(4085));
    let letters = "ä".repeat(3000);
    let cases: [(&[u8], &str, bool); 15] = [
        (b"", "out.json", true),
        (b"{\"schema\": \"laggard.report.trace/1\"}", "out.json", true),
        (b"{\"schema\": \"other\"}", "out.json", false),
        (b"{\"traceEvents\": []}", "out.json", false),
        (long.as_bytes(), "out.json", false),
        (letters.as_bytes(), "out.json", false),
        (b"\x89PNG\xff\xff", "out.txt", false),
        (b"{\"mine\": 1}", "out.txt", false),
        (b"name,class,count,time_ns\n", "out.csv", true),
        (b"my,own,table\n", "out.csv", false),
        (b"## decode.json\n\n## Totals\n", "out.md", true),
        (b"## my own notes\n", "out.md", false),
        (b"decode.json\n\nDevice time by kernel\n", "out.txt", true),
        (b"my own notes\n", "out.txt", false),
        (b"my own notes\n", "out.md", false),
    ];
    for (before, name, replaced) in cases {
        let what = String::from_utf8_lossy(&before[..before.len().min(40)]).into_owned();
        fs::write(place.path(name), before).unwrap();
        let args = ["report", "--no-index", "decode.json", "-o", name];
        let ran = place.run(&args);
        assert_eq!(
            ran.code,
            Some(if replaced { 0 } else { 2 }),
            "{what} in {name}: {}",
            ran.stderr
        );
        assert_eq!(fs::read(place.path(name)).unwrap() != before, replaced, "{what} in {name}");
        place.data(&[&args[..], &["--force"]].concat());
        assert_ne!(fs::read(place.path(name)).unwrap(), before, "{what} in {name}");
    }
    assert_eq!(place.names(), ["decode.json", "out.csv", "out.json", "out.md", "out.txt"]);
}

#[test]
fn names_with_spaces_and_odd_letters_are_fine() {
    let place = Place::with(&[]);
    let name = "Spur 1 – \u{e4}\u{1f600}.json";
    fs::copy(fixtures().join("decode.json"), place.path(name)).unwrap();
    let ran = place.run(&["-v", "report", name]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.starts_with(name));
    assert_eq!(place.run(&["-v", "report", name]).stderr, "loaded from the index\n");
}

#[cfg(target_os = "linux")]
#[test]
fn doctor_describes_any_machine() {
    let place = Place::with(&[]);
    // Without version managers, which take long to answer.
    let run = |args: &[&str]| {
        let mut command = place.command(&["doctor"]);
        Ran::from(command.args(args).env("PATH", "/usr/bin:/bin").output().unwrap())
    };
    let data = |args: &[&str]| {
        let ran = run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
        ran.stdout
    };
    let text = data(&[]);
    assert!(text.starts_with("laggard record "), "{text}");
    let groups = ["Sampling", "Python", "Counters", "Noise", "Room"];
    let found: Vec<&str> = text.lines().filter(|line| groups.contains(line)).collect();
    assert_eq!(found, groups);
    let json: serde_json::Value = serde_json::from_str(&data(&["--json"])).unwrap();
    assert_eq!(json["schema"], "laggard.doctor/1");
    let checks = json["checks"].as_array().unwrap();
    for check in checks {
        let verdict = check["verdict"].as_str().unwrap();
        assert!(["blocks", "costs", "unknown", "fine"].contains(&verdict), "{check}");
        assert_ne!(check["found"], "", "{check}");
        assert_eq!(check["cost"].is_null(), ["unknown", "fine"].contains(&verdict), "{check}");
    }
    for id in ["trigger", "perf_event_paranoid", "hardware_counters", "load", "shared_memory"] {
        assert!(checks.iter().any(|check| check["id"] == id), "{id}");
    }
    // A gate trips by what is found, and the answer is the same.
    let blocks = run(&["--strict=blocks", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&blocks.stdout).unwrap();
    assert_eq!(blocks.code, Some(i32::from(json["worst"] == "blocks")));
    // Its own report is overwritten, another's file is not.
    for form in ["doctor.txt", "doctor.md", "doctor.csv", "doctor.json"] {
        data(&["-o", form]);
        data(&["-o", form]);
    }
    fs::write(place.path("notes.md"), "## Mine\n").unwrap();
    assert_eq!(run(&["-o", "notes.md"]).code, Some(2));
}
