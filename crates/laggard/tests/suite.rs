//! Suite files and built-in suites in `bench`, `why`, `record` and `calls`. No test depends on how
//! long anything takes.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use common::{Place, Ran};
use serde_json::Value;

const QUICK: [&str; 6] = ["--rounds", "6", "--warmup", "1", "--timeout", "20s"];

const FILE: &str = r#"
setup = "import os"
[a]
env = { SIDE = "a" }
[b]
name = "mine"
env = { SIDE = "b" }

[[case]]
name = "loop"
setup = """
x = list(range(n))
def loop(x):
  total = 0
  for i in x: total = total + i
  return total"""
a = "sum(x)"
b = "loop(x)"
params = { n = [10, 3000] }

[[case]]
name = "side"
run = "len(os.environ['SIDE'])"

[[case]]
name = "commands"
commands = true
a = "true"
b = { run = "sh -c 'test $K = V'", env = { K = "V" } }
"#;

/// Cases that cannot be measured.
const BAD: &str = r#"
[[case]]
name = "differs"
run = "os.environ['SIDE']"
[[case]]
name = "raises"
a = "1"
b = "1 / 0"
[[case]]
name = "cannot"
setup = "raise NotImplementedError('nobody can')"
run = "1"
"#;

fn place(text: &str) -> Place {
    let place = Place::with(&[]);
    std::fs::write(place.path("laggard-bench.toml"), text).unwrap();
    place
}

fn bench(place: &Place, args: &[&str]) -> Ran {
    let all: Vec<&str> = [&["bench"], &QUICK[..], args].concat();
    Ran::from(place.command(&all).output().unwrap())
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}{}", ran.stdout, ran.stderr))
}

/// Without sides, a suite compares the libraries that are installed, not one that few people have.
#[test]
fn built_in_suites_use_the_installed_libraries() {
    let place = Place::with(&[]);
    let list = |modules: &[&str], args: &[&str]| {
        let room = place.path("modules");
        std::fs::create_dir_all(&room).unwrap();
        for module in modules {
            std::fs::write(room.join(module).with_extension("py"), "").unwrap();
        }
        // Without site packages, so that only these modules exist.
        let wrapper = "#!/bin/sh\nPYTHONPATH=$PWD/modules exec python3 -S \"$@\"\n";
        std::fs::write(place.path("python"), wrapper).unwrap();
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(place.path("python"), mode).unwrap();
        place.run(&[&["bench", "--suite", "2d", "--python", "./python"], args].concat())
    };
    let nothing = list(&[], &["--list"]);
    assert_eq!(nothing.code, Some(2), "{}", nothing.stdout);
    assert!(nothing.stderr.contains("./python -m pip install numpy"), "{}", nothing.stderr);
    let alone = list(&["numpy"], &[]);
    assert_eq!(alone.code, Some(2), "{}", alone.stdout);
    assert!(alone.stderr.contains("./python has only NumPy"), "{}", alone.stderr);
    assert!(alone.stderr.contains("--baseline FILE"), "{}", alone.stderr);
    let listed = list(&["numpy"], &["--list"]);
    assert!(listed.stdout.contains("numpy: a.sum()"), "{}{}", listed.stdout, listed.stderr);
    let both = list(&["numpy", "torch"], &["--list"]);
    assert!(both.stdout.contains("numpy: a.sum()  torch: a.sum()"), "{}", both.stdout);
    assert!(!both.stdout.contains("raptors"), "{}", both.stdout);
}

#[test]
fn measures_the_suite_file_by_default() {
    let place = place(FILE);
    let ran = bench(&place, &["--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let all = json(&ran);
    let names: Vec<&str> = all["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| case["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["loop", "loop", "side", "commands"]);
    assert_eq!(all["sides"][1]["name"], "mine");
    assert_eq!(all["cases"][1]["series"][1]["runs"], "loop(x)");
    // Facts that differ between cases are stored per case.
    let side = &all["cases"][3]["series"][1];
    assert!(side["facts"].as_array().unwrap().iter().any(|fact| fact["name"] == "env K"), "{side}");
    let some = bench(&place, &["--json", "--case", "s*", "--case", "loop n=10"]);
    assert_eq!(json(&some)["cases"].as_array().unwrap().len(), 2);
    // One side, selected by name.
    let one = bench(&place, &["--json", "--case", "side", "mine"]);
    assert_eq!(json(&one)["sides"].as_array().unwrap().len(), 1);
    let listed = place.data(&["bench", "--list"]);
    assert_eq!(listed.lines().count(), 4, "{listed}");
    assert!(listed.starts_with("loop n=10    A: sum(x)  mine: loop(x)\n"), "{listed}");
}

#[test]
fn measures_other_cases_if_some_fail() {
    let place = place(&format!("{FILE}{BAD}"));
    let ran = bench(&place, &["-o", "bench.json"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    assert!(ran.stderr.contains("2 of 7 cases could not be measured"), "{}", ran.stderr);
    let shown = place.data(&["report", "bench.json"]);
    for said in [
        "differs  failed: sides A and mine give different results: \"a\" and \"b\"",
        "raises  failed: side mine failed in its statement: ZeroDivisionError",
        "cannot  skipped: nobody can",
        "mine compared with A (4 cases)",
    ] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    let skipped = bench(&place, &["--case", "side", "--case", "cannot"]);
    assert_eq!(skipped.code, Some(0), "a skipped case is not a failure: {}", skipped.stderr);
    let no_check = bench(&place, &["--no-check", "--case", "differs"]);
    assert_eq!(no_check.code, Some(0), "{}", no_check.stderr);
}

#[test]
fn rejects_invalid_cases_and_options() {
    let place = place(&format!("{FILE}{BAD}"));
    std::fs::write(place.path("bad.toml"), "\n[[cases]]\n").unwrap();
    for (args, said) in [
        (&["--case", "raises"][..], "case raises: side mine failed in its statement"),
        (
            &["--case", "raises", "--case", "differs"],
            "none of 2 cases could be measured; for example, case",
        ),
        (&["--case", "cannot"], "case cannot cannot be measured: nobody can"),
        (&["--case", "nothing"], "no case matches nothing"),
        (&["--suite", "3d"], "no suite or file named 3d"),
        (&["--suite", "bad.toml"], "line 2"),
        (&["--suite", "bad.toml"], "unknown field `cases`"),
        (
            &["--suite", "laggard-bench.toml", "--shape", "4x4"],
            "--shape applies to the built-in suites",
        ),
        (&["--suite", "laggard-bench.toml", "x"], "no side is named \"x\": sides are A, mine"),
        (&["--case", "sum:4x4:float31"], "no case matches sum:4x4:float31"),
        (&["--suite", "2d", "--case", "sum:4x4:float31"], "unknown element type"),
        (&["--suite", "2d", "--param", "n=1"], "--param applies to sides given"),
        (&["--suite", "2d", "--commands", "numpy"], "--commands applies to sides given"),
        (&["--suite", "2d", "numpy", "a.sum()"], "import names of libraries"),
        (&["--case", "sum:4:int32", "--python", "no-such-python"], "cannot start"),
    ] {
        let ran = bench(&place, args);
        assert_eq!(ran.code, Some(2), "{args:?}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(said), "{args:?}: {}", ran.stderr);
    }
    std::fs::remove_file(place.path("laggard-bench.toml")).unwrap();
    let nothing = bench(&place, &[]);
    assert!(nothing.stderr.contains("nothing to time"), "{}", nothing.stderr);
}

#[test]
fn why_takes_both_sides_from_a_case() {
    let place = place(FILE);
    let args = ["why", "--time", "6s", "--json", "--case", "loop n=3000"];
    let ran = Ran::from(place.command(&args).output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let why = json(&ran);
    assert_eq!(why["lags"], true, "{}", ran.stdout);
    for (args, said) in [
        (&["--case", "loop"][..], "--case loop matches several cases: loop n=10, loop n=3000"),
        (&["--case", "loop n=10", "a", "z"], "no side is named \"z\""),
        (&["sum(range(9))"], "<B>"),
        (&[], "<A>"),
    ] {
        let ran = place.run(&[&["why"], args].concat());
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.stdout);
        assert!(ran.stderr.contains(said), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn records_and_traces_a_single_side() {
    let place = place(&format!("{FILE}{BAD}"));
    let case = ["--case", "loop n=3000", "--side"];
    let ran = place
        .run(&[&["record", "--duration", "500ms", "-o", "b.lag"], &case[..], &["mine"]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let shown = place.data(&["report", "b.lag"]);
    assert!(shown.contains("loop(x)") && shown.contains("loop"), "{shown}");
    // The default output is named after the case, not the interpreter.
    let ran = place.run(&["calls", "--case", "side", "--lib", "libc", "--iterations", "5"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(place.names().iter().any(|name| name.starts_with("laggard-side-A-")));
    // A command runs once, with the environment of its side.
    let ran = place.run(&["record", "--case", "commands", "--side", "b", "-o", "c.lag"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran = place.run(&["record", "--case", "raises", "--side", "b", "-o", "d.lag"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("ZeroDivisionError"), "{}", ran.stderr);
    for (args, said) in [
        (&["--case", "side", "--side", "c"][..], "this case has no side c"),
        (&["--case", "side", "--side", "other"], "no side is named \"other\""),
        (&["--side", "a", "--", "true"], "cannot be used with"),
        (&["--case", "side", "--", "true"], "cannot be used with"),
    ] {
        let ran = place.run(&[&["record"], args].concat());
        assert!(matches!(ran.code, Some(2 | 125)), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(said), "{args:?}: {}", ran.stderr);
    }
}

/// Interpreters in LAGGARD_PYTHONS that have NumPy.
fn with_numpy() -> Vec<String> {
    let given = std::env::var("LAGGARD_PYTHONS").unwrap_or_default();
    let has_numpy = |python: &&str| {
        let asked = std::process::Command::new(python).args(["-c", "import numpy"]).output();
        asked.is_ok_and(|asked| asked.status.success())
    };
    given.split(':').filter(|python| !python.is_empty()).filter(has_numpy).map(Into::into).collect()
}

/// An array library that supports only float32.
const SMALL: &str = "
import numpy
def array(x):
    if x.dtype != 'float32':
        raise TypeError('only float32')
    return numpy.array(x)
";

#[test]
fn compares_two_array_libraries() {
    // Only the newest and the oldest version, as there are many cases with two interpreters each.
    let pythons = with_numpy();
    for python in pythons.iter().take(1).chain(pythons.iter().skip(1).last()) {
        let place = Place::with(&[]);
        std::fs::write(place.path("small.py"), SMALL).unwrap();
        let suite = ["--python", python, "--shape", "4x5,6", "--dtype", "float32,int32"];
        let rest = ["--json", "--layout", "contiguous,transpose,fortran", "numpy", "small"];
        let ran = bench(&place, &[&suite[..], &rest].concat());
        assert_eq!(ran.code, Some(0), "{python}: {}{}", ran.stdout, ran.stderr);
        let all = json(&ran);
        let why = |name: &str| -> Option<String> {
            let all = all["unmeasured"].as_array().unwrap();
            Some(all.iter().find(|case| case["case"] == name)?["why"].as_str().unwrap().to_owned())
        };
        let cannot = "small does not support this: only float32";
        assert_eq!(why("sum:4x5:int32").as_deref(), Some(cannot));
        let measured: Vec<&str> = all["cases"]
            .as_array()
            .unwrap()
            .iter()
            .map(|case| case["name"].as_str().unwrap())
            .collect();
        assert!(measured.contains(&"broadcast_add:4x5:float32:fortran"), "{measured:?}");
        assert!(measured.contains(&"mean_axis1:4x5:float32"), "{measured:?}");
        assert!(!measured.contains(&"mean_axis1:6:float32"), "{measured:?}");
        let every = "--operations=sum,mean,mean_axis0,mean_axis1,broadcast_add,scale,sum_axis0,sum_axis1,add,max,matmul";
        let ran = bench(
            &place,
            &["--python", python, "--shape", "3x4", every, "--json", "numpy", "numpy"],
        );
        assert_eq!(ran.code, Some(0), "{python}: {}", ran.stderr);
        assert_eq!(json(&ran)["cases"].as_array().unwrap().len(), 22);
    }
}
