//! `laggard bench` and `laggard why` with real interpreters and commands: results and error messages.
//! No test depends on how long anything takes.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use common::{Place, Ran};
use serde_json::Value;

const QUICK: [&str; 6] = ["--rounds", "6", "--warmup", "1", "--timeout", "20s"];

fn bench(place: &Place, args: &[&str]) -> Ran {
    let all: Vec<&str> = [&["bench"], &QUICK[..], args].concat();
    Ran::from(place.command(&all).output().unwrap())
}

#[test]
fn measures_sides_and_writes_a_benchmark() {
    let place = Place::with(&[]);
    let ran = bench(
        &place,
        &["-o", "b.json", "--setup", "x = list(range(100))", "sum(x)", "sum(reversed(x))"],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let file = std::fs::read_to_string(place.path("b.json")).unwrap();
    let bench: Value = serde_json::from_str(&file).unwrap();
    assert_eq!(bench["schema"], "laggard.bench/1");
    let series = bench["cases"][0]["series"].as_array().unwrap();
    assert_eq!(series.len(), 2);
    // Compared with itself, the benchmark shows no change.
    assert!(place.data(&["report", "b.json"]).contains("n = 6 rounds"));
    let same =
        place.command(&["compare", "--fail-above", "5%", "b.json", "b.json"]).output().unwrap();
    assert_eq!(same.status.code(), Some(0));
}

#[test]
fn prints_a_few_lines_unless_details_are_requested() {
    let place = Place::with(&[]);
    let sides = ["sum(range(100))", "sum(range(100))"];
    let short = bench(&place, &sides).stdout;
    // Notices about a busy machine take a few more lines.
    assert!(short.lines().count() <= 20, "{short}");
    assert!(short.contains("use -v") && !short.contains("Measurement"), "{short}");
    assert_eq!(short.matches(sides[0]).count(), 2, "{short}");
    let long = bench(&place, &[&["-v"], &sides[..]].concat()).stdout;
    assert!(long.contains("\nSides\n") && long.contains("\nMeasurement\n"), "{long}");
    // A file is complete, and may be overwritten by the next result.
    for _ in 0..2 {
        let ran = bench(&place, &[&["-o", "b.txt"], &sides[..]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    assert!(std::fs::read_to_string(place.path("b.txt")).unwrap().contains("\nMeasurement\n"));
}

#[test]
fn sides_have_the_given_names() {
    let place = Place::with(&[]);
    let names = ["--name", "A=old", "--name", "b=new one"];
    let sides = ["sum(range(10))", "sum(range(10))"];
    let text = bench(&place, &[&names[..], &sides].concat()).stdout;
    assert!(
        text.contains("  old ") && text.contains("  new one ") && !text.contains("  A  "),
        "{text}"
    );
    let json: Value =
        serde_json::from_str(&bench(&place, &[&["--json"], &names[..], &sides].concat()).stdout)
            .unwrap();
    assert_eq!(json["sides"][0]["name"], "old");
    assert_eq!(json["sides"][1]["name"], "new one");
    let fast = ["why", "--time", "2s", "--name", "A=slow", "--name", "B=fast"];
    let why = place.data(&[&fast[..], &["sum(range(20000))", "sum(range(10))"]].concat());
    assert!(why.contains("\nslow lags fast: "), "{why}");
    assert!(why.contains("below, A is fast and B is slow"), "{why}");
    for (name, expected) in [
        ("C=x", "cannot name side C: side C is missing"),
        ("A=", "expected SIDE=NAME"),
        ("A= ", "expected SIDE=NAME"),
        ("AB=x", "expected SIDE=NAME"),
        ("A=a\u{1b}b", "control characters"),
        ("A=B", "two sides are named B"),
    ] {
        for verb in ["bench", "why"] {
            let ran = Ran::from(place.command(&[verb, "--name", name, "1", "1"]).output().unwrap());
            assert_eq!(ran.code, Some(2), "{name}: {}", ran.stdout);
            assert!(ran.stderr.contains(expected), "{name}: {}", ran.stderr);
        }
    }
    let twice = bench(&place, &["--name", "A=x", "--name", "A=y", "1"]);
    assert!(twice.stderr.contains("side A has two names"), "{}", twice.stderr);
}

#[test]
fn commands_with_shell_syntax_need_the_option() {
    let place = Place::with(&[]);
    for verb in ["bench", "why"] {
        let args = [verb, "--commands", "echo 'a|b'", "echo a | cat"];
        let ran = Ran::from(place.command(&args).output().unwrap());
        assert_eq!(ran.code, Some(2), "{}", ran.stdout);
        assert!(ran.stderr.contains("contains shell syntax (|)"), "{}", ran.stderr);
        assert!(ran.stderr.contains("hint: add --shell"), "{}", ran.stderr);
    }
    // The file exists only if a shell interprets the redirection.
    let args = ["--commands", "--shell", "--param", "n=1,2", "echo {n} > out", "true && : $HOME"];
    let ran = bench(&place, &args);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(place.path("out")).unwrap(), "2\n");
    assert!(ran.stdout.contains("sh -c 'echo {n} > out'"), "{}", ran.stdout);
    let ran = bench(&place, &["-v", "--commands", "--shell", "true", "false"]);
    assert!(ran.stderr.contains("side B exited with status 1"), "{}", ran.stderr);
    let ran = bench(&place, &["--json", "--commands", "--shell", "true"]);
    assert!(ran.stdout.contains("\"empty shell start\""), "{}", ran.stdout);
}

/// A statement that writes the number of its calls to a file, and then waits for ever once the file
/// `stop` exists. `hold` is called from the given call on.
const COUNTING: &str = "
import os, time
class Count:
    calls = 0
def call(name, hold):
    Count.calls += 1
    if Count.calls >= hold:
        open(name, 'w').close()
        time.sleep(600)
    time.sleep(0.002)
";

/// Starts a command, sends SIGINT when the file exists, and returns how the command ended.
fn interrupted_at(place: &Place, file: &str, args: &[&str]) -> Ran {
    let mut command = place.command(args);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    while !place.path(file).exists() {
        assert!(child.try_wait().unwrap().is_none(), "{args:?} ended before its call");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let status =
        std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(status.unwrap().success());
    Ran::from(child.wait_with_output().unwrap())
}

#[test]
fn an_interrupt_keeps_the_rounds_so_far() {
    let place = Place::with(&[]);
    let common = ["--timeout", "10m", "--no-check", "--rounds", "1000", "--warmup", "1"];
    let sides = ["call('x', 10**9)", "call('held', 60)"];
    let args = [
        &["bench", "-o", "b.json", "--format", "text"],
        &common[..],
        &["--setup", COUNTING],
        &sides,
    ]
    .concat();
    let ran = interrupted_at(&place, "held", &args);
    assert_eq!(ran.code, Some(130), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("warning: interrupted after "), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains(sides[1]), "{}", ran.stdout);
    let file = std::fs::read_to_string(place.path("b.json")).unwrap();
    let json: Value = serde_json::from_str(&file).unwrap();
    let rounds = [0, 1].map(|side| {
        json["cases"][0]["series"][side]["batches"]["wall_ns"].as_array().unwrap().len()
    });
    assert!(rounds[0] > 0 && rounds[0] == rounds[1], "{rounds:?}");
    // Nothing to report before the first round.
    let early = ["call('x', 10**9)", "call('early', 1)"];
    let args = [&["bench"], &common[..], &["--setup", COUNTING], &early].concat();
    let ran = interrupted_at(&place, "early", &args);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(130), "error: interrupted\n"));
}

#[test]
fn an_interrupt_keeps_complete_cases() {
    let place = Place::with(&[]);
    let common = ["bench", "--timeout", "10m", "--rounds", "6", "--warmup", "1"];
    let args = [
        &common[..],
        &["--param", "hold=1000000000,1,2", "--setup", COUNTING, "call('held', hold)"],
    ];
    let ran = interrupted_at(&place, "held", &args.concat());
    assert_eq!(ran.code, Some(130), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("warning: interrupted: 2 cases not measured"), "{}", ran.stdout);
}

#[test]
fn an_interrupt_of_why_keeps_the_verdict() {
    let place = Place::with(&[]);
    // Every step starts a process of its own: the first two time the sides, the next ones sample them.
    let setup = "
import os, time
def starts(name):
    open(name, 'a').write('x')
    return os.path.getsize(name)
number = starts('starts')
def call(fast):
    end = time.perf_counter() + (0.001 if fast else 0.003)
    while time.perf_counter() < end: pass
    if not fast and number >= 3:
        open('held', 'w').close()
        time.sleep(600)
";
    let args = ["why", "--time", "4s", "--timeout", "10m", "--no-check", "--setup", setup];
    let ran = interrupted_at(&place, "held", &[&args[..], &["call(True)", "call(False)"]].concat());
    assert_eq!(ran.code, Some(130), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.starts_with("B lags A: "), "{}", ran.stdout);
    let note = "interrupted: the causes of the lag were not examined";
    assert!(ran.stdout.contains(note), "{}", ran.stdout);
}

#[test]
fn compares_with_a_baseline() {
    let place = Place::with(&[]);
    let quick = bench(&place, &["-o", "b.json", "sum(range(10))"]);
    assert_eq!(quick.code, Some(0), "{}", quick.stderr);
    let slow = ["--baseline", "b.json", "--fail-above", "5%", "sum(range(100000))"];
    let ran = bench(&place, &slow);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let missing = bench(&place, &["--baseline", "none.json", "sum(range(10))"]);
    assert_eq!(missing.code, Some(2));
}

#[test]
fn runs_a_case_per_parameter_combination() {
    let place = Place::with(&[]);
    let ran = bench(&place, &["--json", "--param", "n=1,10", "--param", "m=2,3", "n * m", "m * n"]);
    let bench: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(bench["cases"].as_array().unwrap().len(), 4);
    let commands = bench_commands(&place);
    assert_eq!(commands.code, Some(0), "{}", commands.stderr);
}

fn bench_commands(place: &Place) -> Ran {
    bench(place, &["--commands", "--param", "n=a,b", "sh -c 'test {n} != c'", "true"])
}

#[test]
fn reports_failing_sides_by_name() {
    let place = Place::with(&[]);
    for (args, expected) in [
        (&["1 + 1", "'2'"][..], "sides A and B give different results"),
        (&["1", "import no_such_module_at_all"], "side B failed in"),
        (&["1", "1 +"], "side B contains invalid Python code"),
        (&["1", "import os; os.kill(os.getpid(), 11)"], "side B was killed by signal 11"),
        (&["1", "import os; os._exit(3)"], "side B exited with status 3"),
        (&["--timeout", "1s", "1", "while True: pass"], "side B did not finish"),
        (&["--commands", "true", "no-such-program-at-all"], "side B cannot start"),
        (&["--commands", "true", "false"], "side B exited with status 1"),
        (&["--b-python", "no-such-python", "1", "1"], "side B cannot start"),
        (&["--b-env", "X=1", "1"], "cannot set options of side B: side B is missing"),
        (&["--commands", "true 'x", "true"], "unbalanced quotes"),
        (&["--setup", "x = 1", "--prepare", "true", "x"], "side A failed in its preparation"),
    ] {
        let all: Vec<&str> = [&["bench", "--rounds", "6", "--warmup", "1"], args].concat();
        let ran = Ran::from(place.command(&all).output().unwrap());
        assert_eq!(ran.code, Some(2), "{args:?}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(expected), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn why_explains_the_first_side_if_it_is_slower() {
    let place = Place::with(&[]);
    let args = ["why", "--time", "4s", "--json", "--setup", "x = [*range(3000)]"];
    let sides = ["[i in x for i in x[-20:]]", "[True] * 20"];
    let why = |sides: [&str; 2]| -> Value {
        let ran = Ran::from(place.command(&[&args[..], &sides].concat()).output().unwrap());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        serde_json::from_str(&ran.stdout).unwrap()
    };
    let (reversed, usual) = (why(sides), why([sides[1], sides[0]]));
    assert_eq!((&reversed["exchanged"], &usual["exchanged"]), (&true.into(), &Value::Null));
    for verdict in [&reversed, &usual] {
        assert_eq!(verdict["lags"], true);
        let runs = [0, 1].map(|side| verdict["sides"][side]["runs"].as_str().unwrap());
        assert_eq!(runs, [sides[1], sides[0]]);
        let names = [0, 1].map(|side| verdict["sides"][side]["name"].as_str().unwrap());
        assert_eq!(names, ["A", "B"]);
    }
    // Stacks need an agent of this architecture.
    if cfg!(target_arch = "x86_64") {
        assert_eq!(reversed["culprits"][0]["kind"], usual["culprits"][0]["kind"]);
        assert_eq!(reversed["culprits"][0]["kind"], "builtin", "{}", reversed["culprits"]);
    }
}

#[test]
fn why_blames_a_python_loop_on_the_interpreter() {
    let place = Place::with(&[]);
    let setup = "x = list(range(3000))\ndef loop(x):\n  total = 0\n  for i in x: total = total + i\n  return total";
    let args =
        ["why", "--time", "6s", "--setup", setup, "-o", "why.html", "--json", "sum(x)", "loop(x)"];
    let ran = Ran::from(place.command(&args).output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let why: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&why["schema"], &why["lags"]), (&"laggard.why/1".into(), &true.into()));
    let culprits = why["culprits"].as_array().unwrap();
    if cfg!(target_arch = "x86_64") {
        assert_eq!(culprits[0]["kind"], "interpreter", "{}", ran.stdout);
        assert!(culprits[0]["explains"].as_f64().unwrap() > 0.5);
        assert!(!culprits[0]["facts"].as_array().unwrap().is_empty());
    }
    let page = std::fs::read_to_string(place.path("why.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("B lags A"));
    // Other HTML files are not overwritten.
    std::fs::write(place.path("mine.html"), "<p>mine").unwrap();
    let args = ["why", "-o", "mine.html", "1", "1"];
    let ran = Ran::from(place.command(&args).output().unwrap());
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("--force"), "{}", ran.stderr);
}
