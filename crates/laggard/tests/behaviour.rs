//! Behaviour with pipes, terminals, missing files and unwritable directories.

#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use common::{Place, Ran, fixtures};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::Stdio;

const BY_PHASE: [&str; 4] = ["report", "--no-index", "--by", "phase"];

#[test]
fn reads_plain_and_compressed_standard_input() {
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
    assert_eq!(
        place.names(),
        ["amd-native.json", "one-member.json.gz"],
        "a stream must have no index"
    );
}

#[test]
fn reads_standard_input_in_small_chunks() {
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
fn closed_stdout_is_not_a_failure() {
    let place = Place::with(&["decode.json"]);
    for args in [&["report", "--all", "decode.json"][..], &["report", "--help"], &["index"]] {
        let mut command = place.command(args);
        // Without the line about a new index.
        command.env("LAGGARD_INDEX_AFTER", "1000").stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!((child.wait().unwrap().code(), stderr.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn closed_stderr_is_not_a_failure() {
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
fn writes_data_to_stdout_and_messages_to_stderr() {
    let place = Place::with(&["decode.json"]);
    let quiet = place.run(&["report", "--json", "decode.json"]);
    assert_eq!((quiet.code, quiet.stderr.as_str()), (Some(0), "wrote index decode.json.lagi\n"));
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

/// Both outputs are pipes: only `--color always` enables colours.
#[test]
fn colours_in_pipes_only_on_request() {
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

/// The terminal is provided by `script`, if it is installed.
#[test]
fn colours_on_terminals_respect_the_environment() {
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
    // The progress bar writes escape sequences too.
    let Some(plain) = coloured("--no-progress", &[]) else { return };
    assert!(plain);
    assert_eq!(coloured("--no-progress", &[("NO_COLOR", "1")]), Some(false));
    assert_eq!(coloured("--no-progress", &[("NO_COLOR", "")]), Some(true));
    assert_eq!(coloured("--no-progress", &[("TERM", "dumb")]), Some(false));
    assert_eq!(coloured("--no-progress --color never", &[]), Some(false));
    assert_eq!(coloured("--no-progress --color always", &[("TERM", "dumb")]), Some(true));
}

#[test]
fn reports_unreadable_files() {
    let place = Place::with(&["decode.json"]);
    fs::remove_file(place.path("decode.json")).unwrap();
    let gone = place.run(&["report", "decode.json"]);
    assert_eq!(gone.code, Some(2));
    assert!(gone.stderr.starts_with("error: cannot "), "{}", gone.stderr);
    assert!(gone.stderr.contains("caused by: No such file"), "{}", gone.stderr);
    // This file can be opened but not read, even by root.
    if cfg!(target_os = "linux") {
        let unreadable = place.run(&["report", "/proc/self/mem"]);
        assert_eq!(unreadable.code, Some(2), "{unreadable:?}");
        assert!(unreadable.stderr.starts_with("error: cannot read /proc/self/mem"));
    }
    assert!(place.names().is_empty());
}

/// A wrong file is reported for what it is, whichever verb reads it.
#[test]
fn names_the_kind_of_unknown_files() {
    let place = Place::with(&["decode.json", "bench/pyperf.json"]);
    let gzip = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3][..], b"\x4b\xcc\x4d\x05\x00"].concat();
    let files: [(&str, &[u8], &str); 10] = [
        ("empty", b"", "it looks like an empty file"),
        ("text", b"Dear diary\n", "it looks like plain text"),
        ("image", b"\x89PNG\r\n\x1a\n", "it looks like a PNG image"),
        (
            "keys",
            b"{\"when\": 1, \"where\": [{\"who\": 2}]}",
            "JSON with the keys \"when\", \"where\"",
        ),
        ("array", b"[1, 2]", "it looks like a JSON array without trace events"),
        ("database", b"SQLite format 3\0", "it looks like an SQLite database"),
        ("a.nsys-rep", b"\x01\x00\x02", "named like a report of Nsight Systems"),
        ("packed", &gzip, ", compressed with gzip"),
        ("zip", b"PK\x03\x04", "it looks like a zip archive"),
        ("bytes", b"\x01\x00\xfe", "it looks like a binary file"),
    ];
    for (name, content, expected) in files {
        fs::write(place.path(name), content).unwrap();
        for args in [
            &["report", name][..],
            &["compare", name, name],
            &["compare", "decode.json", name],
            &["view", "-o", "page.html", name],
            &["flame", "-o", "flame.svg", name],
            &["convert", name, "out.folded"],
        ] {
            let ran = place.run(args);
            assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.stdout);
            let error = &ran.stderr;
            assert!(error.contains(" is not a format laggard reads: "), "{args:?}: {error}");
            assert!(error.contains(expected), "{args:?}: {error}");
        }
    }
    // A valid file of another kind is named, too.
    for (file, kind) in [("decode.json", "a PyTorch trace"), ("pyperf.json", "a benchmark")] {
        for args in [&["flame", "-o", "flame.svg", file][..], &["convert", file, "out.folded"]] {
            let ran = place.run(args);
            assert!(ran.stderr.contains(&format!("it is {kind}, not a profile")), "{}", ran.stderr);
            assert!(ran.stderr.contains(&format!("laggard view {file}")), "{}", ran.stderr);
        }
    }
    let ran = place.run(&["view", "-o", "page.html", "."]);
    assert!(ran.stderr.contains(". is a directory, not a file"), "{}", ran.stderr);
    assert!(ran.stderr.contains("laggard report ."), "{}", ran.stderr);
}

#[test]
fn reports_unwritable_outputs() {
    let place = Place::with(&["decode.json"]);
    // The parent is a file, so that even root cannot write there.
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
fn reports_read_only_directories() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::with(&["decode.json"]);
    let closed = place.path("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    let binds = fs::write(closed.join("probe"), "").is_err();
    let ran = place.run(&["report", "--no-index", "decode.json", "-o", "closed/out.json"]);
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
    // Permissions do not apply to root.
    if binds {
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("caused by: Permission denied"), "{}", ran.stderr);
        assert!(common::names(&closed).is_empty());
    }
}

#[cfg(unix)]
#[test]
fn writes_to_devices_and_through_links() {
    use std::os::unix::fs::FileTypeExt;
    let place = Place::with(&["decode.json"]);
    let expected = place.data(&[&BY_PHASE[..], &["decode.json"]].concat());
    // A named pipe stands for any device. Replacing it by mistake does no harm.
    let pipe = place.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let args = [&BY_PHASE[..], &["decode.json", "--format", "text", "-o", "pipe"]].concat();
    // Opened for reading and writing, so that neither side blocks.
    let mut opened = File::options().read(true).write(true).open(&pipe).unwrap();
    let mut child = place.command(&args).stderr(Stdio::piped()).spawn().unwrap();
    let ended = (0..1000).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        child.try_wait().unwrap()
    });
    if ended.is_none() {
        child.kill().unwrap();
    }
    assert_eq!(ended.and_then(|status| status.code()), Some(0), "none: the program hangs");
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

/// Each case has the content of the existing file, its name, and whether `-o` replaces it.
#[test]
fn overwrites_only_files_of_the_same_kind() {
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
fn accepts_file_names_with_spaces_and_unicode() {
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
fn doctor_works_on_any_machine() {
    let place = Place::with(&[]);
    // A short PATH avoids slow version managers such as pyenv.
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
    let groups = ["Sampling", "Python", "Counters", "Noise", "Resources"];
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
    // `--strict` changes only the exit status.
    let blocks = run(&["--strict=blocks", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&blocks.stdout).unwrap();
    assert_eq!(blocks.code, Some(i32::from(json["worst"] == "blocks")));
    // It overwrites its own reports but no other files.
    for form in ["doctor.txt", "doctor.md", "doctor.csv", "doctor.json"] {
        data(&["-o", form]);
        data(&["-o", form]);
    }
    fs::write(place.path("notes.md"), "## Mine\n").unwrap();
    assert_eq!(run(&["-o", "notes.md"]).code, Some(2));
}
