//! `laggard ffi`: builds, caching, skipped bindings and measurements. No test depends on how long a
//! call takes. All bindings are tested in tests/python/test_ffi.py.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod common;

use common::{Place, Ran, names};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Keeps measurements short.
const FEW: [&str; 4] = ["--iterations", "2000", "--launches", "2"];

fn place() -> Place {
    Place::with(&[])
}

/// Interpreters to test with, the newest first.
fn pythons() -> Vec<String> {
    let list = std::env::var("LAGGARD_PYTHONS").unwrap_or_default();
    let all: Vec<String> =
        list.split(':').filter(|path| !path.is_empty()).map(Into::into).collect();
    if all.is_empty() { vec!["python3".into()] } else { all }
}

fn cache(place: &Place) -> PathBuf {
    place.cache().with_file_name("ffi")
}

/// Runs the program with additional environment variables.
fn run_with(place: &Place, args: &[&str], env: &[(&str, &str)]) -> Ran {
    let mut command = place.command(args);
    // Cargo sets some of these for tests.
    for name in ["CC", "CXX", "CARGO", "RUSTC"] {
        command.env_remove(name);
    }
    Ran::from(command.envs(env.iter().copied()).output().unwrap())
}

fn ran(place: &Place, args: &[&str]) -> Ran {
    run_with(place, args, &[])
}

fn json(ran: &Ran) -> Value {
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

/// Writes a script that runs instead of the compiler.
fn compiler(place: &Place, name: &str, script: &str) -> String {
    let path = place.path(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\nexec cc \"$@\"\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Writes a Python module that shadows the real one.
fn module(place: &Place, name: &str, text: &str) -> String {
    let directory = place.path("modules");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join(format!("{name}.py")), text).unwrap();
    directory.to_str().unwrap().to_owned()
}

fn unfinished(place: &Place) -> Vec<String> {
    let all = names(&cache(place)).into_iter();
    all.filter(|name| name.starts_with('.')).collect()
}

#[test]
fn caches_builds() {
    let place = place();
    let python = &pythons()[0];
    let build = ["ffi", "build", "--bindings", "capi,ctypes", "--python", python];
    let first = ran(&place, &build);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    assert_eq!(first.stdout.matches("  built: ").count(), 6, "{}", first.stdout);
    assert!(first.stdout.contains("$ cc -O3 -march=native -mtune=native -g1 -fno-omit-frame-pointer -fvisibility=hidden -fPIC -Wall -Wextra"), "{}", first.stdout);
    let there = names(&cache(&place));
    // A compiler that prints its version and otherwise fails.
    let lazy =
        compiler(&place, "lazy", "case \"$*\" in *--version*) exec cc --version;; esac; exit 7");
    let second = run_with(&place, &build, &[("CC", "cc"), ("RUSTFLAGS", "-C opt-level=0")]);
    assert_eq!(second.stdout.matches("  cached: ").count(), 6, "{}", second.stdout);
    assert_eq!(names(&cache(&place)), there);
    // Damaged builds are rebuilt.
    let broken = names(&cache(&place)).into_iter().find(|name| name.starts_with("capi-")).unwrap();
    for file in names(&cache(&place).join(&broken)) {
        if file.starts_with("bench_capi.cpython") {
            fs::remove_file(cache(&place).join(&broken).join(file)).unwrap();
        }
    }
    let mended = ran(&place, &build);
    assert_eq!(mended.stdout.matches("  built: ").count(), 1, "{}", mended.stdout);
    // The cache depends on the compiler.
    let other = run_with(&place, &build, &[("CC", &lazy)]);
    assert_eq!(other.code, Some(2));
    assert!(other.stdout.contains("skipped: lazy failed"), "{}", other.stdout);
    let cleared = ran(&place, &["ffi", "clear"]);
    assert!(cleared.stderr.starts_with("removed "), "{}", cleared.stderr);
    assert!(!cache(&place).exists());
}

#[test]
fn measures_all_bindings() {
    let place = place();
    let python = &pythons()[0];
    let mut args = vec!["ffi", "--bindings", "ctypes", "--json", "--quick", "--python", python];
    args.extend(FEW);
    let found = json(&ran(&place, &args));
    assert_eq!(found["schema"], "laggard.ffi/1");
    assert_eq!(found["floor"], "capi", "the floor must always be measured");
    assert_eq!(found["warnings"].as_array().unwrap().len(), 1, "{}", found["warnings"]);
    assert!(found["warnings"][0].as_str().unwrap().contains("PyDLL never releases the GIL"));
    let cells = found["cells"].as_array().unwrap();
    for cell in cells {
        assert_eq!(cell["trouble"], Value::Null, "{cell}");
        assert_eq!(cell["launches"].as_array().unwrap().len(), 2, "{cell}");
        assert!(cell["gross_ns"].as_f64().unwrap() > 0.0, "{cell}");
    }
    let who = |name: &str| {
        let is_it = |cell: &&Value| {
            cell["who"] == name && cell["build"] == "fast" && cell["size"].is_null()
        };
        cells.iter().filter(is_it).count()
    };
    assert_eq!((who("capi"), who("ctypes"), who("ctypes-pydll"), who("null")), (33, 33, 32, 33));
    assert_eq!(found["crossovers"].as_array().unwrap().len(), 3);
    let ratio = |cell: &&Value| cell["who"] == "capi" && cell["ratio"]["middle"] != 1.0;
    assert_eq!(cells.iter().filter(|cell| cell["size"].is_null()).find(ratio), None);
    // The null control is the same code in both builds, so any difference is noise.
    let differences = found["differences"].as_array().unwrap();
    let nulls: Vec<&Value> = differences.iter().filter(|of| of["who"] == "null").collect();
    assert!(nulls.len() > 20, "{}", nulls.len());
    assert!(nulls.iter().all(|of| of["cost"] == "none" || of["cost"] == "unknown"), "{nulls:?}");
}

#[test]
fn does_not_time_bindings_with_wrong_results() {
    let place = place();
    let python = &pythons()[0];
    // This compiler adds 1 to a sum, for the C API binding only.
    let wrong = compiler(
        &place,
        "wrong",
        "case \"$*\" in *bench_capi.c*) sed -i 's/bl_add_int32(a, b)/(bl_add_int32(a, b) + 1)/' bench_capi.c; grep -q '+ 1' bench_capi.c || exit 9;; esac",
    );
    let mut args = vec!["ffi", "--bindings", "ctypes", "--categories", "add_int32,noop"];
    args.extend(["--profile", "fast", "--json", "--quick", "--python", python]);
    args.extend(FEW);
    let found = json(&run_with(&place, &args, &[("CC", &wrong)]));
    let text = found["warnings"].to_string();
    assert!(text.contains("returns 667 where capi returns 668"), "{text}");
    let has_times = |cell: &&Value| !cell["launches"].as_array().unwrap().is_empty();
    let cells = found["cells"].as_array().unwrap();
    let timed = |category: &str, who: &str| {
        let is_it = |cell: &&Value| cell["category"] == category && cell["who"] == who;
        cells.iter().filter(is_it).all(|cell| has_times(&cell))
    };
    assert!(timed("noop", "ctypes") && timed("add_int32", "capi") && !timed("add_int32", "ctypes"));
}

#[test]
fn skips_bindings_with_missing_tools_and_prints_hints() {
    let place = place();
    let python = &pythons()[0];
    let pybind11 = "__version__ = '3'\ndef get_include(): return '/nonexistent'\n";
    let modules = module(&place, "pybind11", pybind11);
    let nothing = ("PYTHONPATH", modules.as_str());
    let check = |bindings: &str, env: &[(&str, &str)], expected: &[&str]| {
        let args =
            ["ffi", "build", "--profile", "fast", "--bindings", bindings, "--python", python];
        let ran = run_with(&place, &args, env);
        for words in expected {
            assert!(ran.stdout.contains(words), "{words} is not in\n{}{}", ran.stdout, ran.stderr);
        }
        assert!(unfinished(&place).is_empty());
        ran.code
    };
    let no_cpp = [nothing, ("CXX", "/nonexistent")];
    let code = check(
        "ctypes,pybind11",
        &no_cpp,
        &["skipped: no C++ compiler found", "hint: install a C++ compiler"],
    );
    assert_eq!(code, Some(0), "available bindings must be built");
    let code = check(
        "pybind11",
        &[nothing],
        &["skipped: c++ failed: bench_pybind11.cpp", "hint: c++ -std=c++17"],
    );
    assert_eq!(code, Some(2), "nothing can be built");
    check("pyo3", &[("CARGO", "/nonexistent")], &["skipped: cargo not found"]);
    check("capi,ctypes", &[("CC", "/nonexistent")], &["skipped: no C compiler found"]);
    let modules = module(&place, "nanobind", "raise ImportError('not here')");
    check(
        "nanobind",
        &[("PYTHONPATH", &modules)],
        &["package nanobind is not installed", "-m pip install nanobind"],
    );
    let no_headers = "import sysconfig\nreal = sysconfig.get_paths\nsysconfig.get_paths = lambda *a: dict(real(*a), include='/nonexistent', platinclude='/nonexistent')\n";
    let modules = module(&place, "sitecustomize", no_headers);
    let env = [("PYTHONPATH", modules.as_str())];
    check(
        "capi,ctypes",
        &env,
        &["has no headers: /nonexistent/Python.h does not exist", "apt-get install python3-dev"],
    );
    // Without the C API binding, the next binding is the reference.
    let mut args = vec![
        "ffi",
        "--bindings",
        "ctypes",
        "--categories",
        "noop",
        "--json",
        "--quick",
        "--python",
        python,
    ];
    args.extend(FEW);
    let found = json(&run_with(&place, &args, &env));
    assert_eq!(found["floor"], "ctypes-pydll");
    assert!(
        found["warnings"].to_string().contains("ratios are relative to ctypes-pydll"),
        "{}",
        found["warnings"]
    );
    assert_eq!(found["skipped"][0]["binding"], "capi");
    let ran = run_with(&place, &args, &[("CC", "/nonexistent")]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.starts_with("error: no binding could be built: capi: no C compiler found"),
        "{}",
        ran.stderr
    );
}

#[test]
fn interrupted_builds_leave_no_partial_results() {
    let place = place();
    let python = &pythons()[0];
    let slow = compiler(
        &place,
        "slow",
        "case \"$*\" in *bench_capi.c*) touch begun; exec sleep 60;; esac",
    );
    for signal in ["-INT", "-KILL"] {
        let args = ["ffi", "build", "--profile", "fast", "--bindings", "capi", "--python", python];
        let mut command = place.command(&args);
        // Like a terminal, send the signal to the whole process group, including the compiler.
        let mut child = command.env("CC", &slow).process_group(0).spawn().unwrap();
        let has_begun = || {
            let all = unfinished(&place).into_iter();
            all.into_iter().any(|name| cache(&place).join(name).join("begun").exists())
        };
        for _ in 0..600 {
            if has_begun() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(has_begun(), "{signal}");
        let group = format!("-{}", child.id());
        Command::new("kill").args([signal, "--", &group]).status().unwrap();
        assert!(!child.wait().unwrap().success());
        let is_built = |name: &String| name.starts_with("capi-");
        assert!(!names(&cache(&place)).iter().any(is_built), "{signal}");
    }
    let built = ran(
        &place,
        &["ffi", "build", "--profile", "fast", "--bindings", "capi", "--python", python],
    );
    assert!(built.stdout.contains("  built: "), "{}{}", built.stdout, built.stderr);
    assert!(unfinished(&place).is_empty(), "leftovers must be removed");
}

#[test]
fn compares_a_user_function_with_the_floor() {
    let place = place();
    let python = &pythons()[0];
    let text = "class Box:\n  def get(a, b): return a + b\ndef none(): pass\ndef one(x): return len(x)\ndef raises(): 1 / 0\n";
    let modules = module(&place, "mymodule", text);
    let env = [("PYTHONPATH", modules.as_str())];
    let measure = |function: &str, args: &[&str]| {
        let mut all = vec!["ffi", "--fn", function, "--python", python, "--quick"];
        all.extend(FEW);
        all.extend(args);
        run_with(&place, &all, &env)
    };
    let found = json(&measure("mymodule:Box.get", &["--args", "(1, 2)", "--json"]));
    let own = found["cells"]
        .as_array()
        .unwrap()
        .iter()
        .find(|cell| cell["who"] == "mymodule:Box.get")
        .unwrap();
    assert_eq!(own["statement"], "_laggard_f(_laggard_a0, _laggard_a1)");
    assert!(own["ratio"]["middle"].as_f64().unwrap() > 0.0);
    let said = measure("mymodule:none", &[]).stdout;
    assert!(said.starts_with("mymodule:none takes ") && said.contains("x the floor"), "{said}");
    let with_setup = measure("mymodule:one", &["--setup", "x = [1, 2]", "--args", "x"]);
    assert_eq!(with_setup.code, Some(0), "{}", with_setup.stderr);
    // Names defined in the set-up code do not shadow the function.
    let setup = "def f(x): raise ValueError('not this one')\ndef _(): pass";
    let found = json(&measure("mymodule:one", &["--setup", setup, "--args", "([],)", "--json"]));
    assert_eq!(found["profiles"].as_array().unwrap().len(), 1, "one profile");
    let check = |function: &str, args: &[&str], expected: &str| {
        let ran = measure(function, args);
        assert_eq!(ran.code, Some(2), "{function}");
        assert!(ran.stderr.contains(expected), "{expected} is not in {}", ran.stderr);
    };
    check("nowhere:f", &[], "No module named 'nowhere'");
    check("nowhere:f", &[], "hint: set PYTHONPATH");
    check("mymodule:nothing", &[], "has no attribute 'nothing'");
    check("mymodule:raises", &[], "ZeroDivisionError");
    check("mymodule:one", &[], "missing 1 required positional argument");
    check("mymodule:one", &["--args", "(1,"], "error: --args (1, is not valid Python: SyntaxError");
    check("mymodule", &[], "expected MODULE:NAME");
}

#[test]
fn runs_a_single_binding_for_recording() {
    let place = place();
    let python = &pythons()[0];
    let alone = ["ffi", "run", "ctypes", "--python", python, "--iterations", "3000"];
    let said = ran(&place, &[&alone[..], &["--categories", "noop,nogil"]].concat());
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert!(
        lines.len() == 2
            && lines[0].starts_with("noop ")
            && lines[0].ends_with("ns per call, including the loop"),
        "{lines:?}"
    );
    let program = env!("CARGO_BIN_EXE_laggard");
    let recorded =
        ["record", "-o", "run.lag", "--", program, "ffi", "run", "capi", "--python", python];
    let more =
        ["--profile", "instrumented", "--categories", "callback_100", "--iterations", "100000"];
    let done = ran(&place, &[&recorded[..], &more].concat());
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let report = ran(&place, &["report", "--json", "--all", "run.lag"]);
    assert_eq!(report.code, Some(0), "{}", report.stderr);
    assert!(report.stdout.contains("bl_call_many"), "no C function: {}", done.stderr);
    assert!(report.stdout.contains("<lambda>"), "no Python callback");
    let cannot =
        ran(&place, &["ffi", "run", "ctypes-pydll", "--categories", "nogil", "--python", python]);
    let expected = "ctypes-pydll does not support nogil: PyDLL";
    assert!(cannot.stderr.contains(expected), "{}", cannot.stderr);
    let wrong = ran(&place, &["ffi", "run", "ctypes", "--profile", "both", "--python", python]);
    assert!(wrong.stderr.contains("give one profile"), "{}", wrong.stderr);
}

#[test]
fn why_compares_two_bindings() {
    let place = place();
    let python = &pythons()[0];
    let why =
        ["ffi", "why", "capi", "ctypes", "add_int32", "--python", python, "--time", "4s", "--json"];
    let found = json(&ran(&place, &why));
    assert_eq!(found["sides"][0]["name"], "capi");
    assert_eq!(
        (&found["sides"][1]["name"], &found["sides"][1]["runs"]),
        (&"ctypes".into(), &"f(a, b)".into())
    );
    assert_eq!(found["lags"], true, "{found}");
    assert!(!found["culprits"].as_array().unwrap().is_empty(), "{found}");
    let check = |args: &[&str], expected: &str| {
        let ran = ran(&place, &[&["ffi", "why", "--python", python], args].concat());
        assert!(ran.code == Some(2) && ran.stderr.contains(expected), "{args:?}: {}", ran.stderr);
    };
    check(&["capi", "capi", "noop"], "A and B are the same binding");
    check(&["capi", "ctypes", "add_*"], "add_* matches several categories");
    check(
        &["capi", "ctypes-pydll", "nogil"],
        "ctypes-pydll does not support nogil: PyDLL never releases the GIL",
    );
}

#[test]
fn compares_python_versions() {
    let place = place();
    let all = pythons();
    let [newest, .., oldest] = &all[..] else { return };
    let mut args = vec![
        "ffi",
        "--bindings",
        "capi,ctypes",
        "--categories",
        "noop,concat",
        "--profile",
        "fast",
    ];
    args.extend(["--quick", "--python", oldest, "--python", newest]);
    args.extend(FEW);
    let shown = ran(&place, &args);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(shown.stdout.contains("Comparison of Python versions"), "{}", shown.stdout);
    assert_eq!(shown.stderr.matches("warning").count(), 0, "{}", shown.stderr);
    let found = json(&ran(&place, &[&args[..], &["--json"]].concat()));
    let versions: Vec<&str> = found["pythons"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| of["name"].as_str().unwrap())
        .collect();
    assert_eq!(versions.len(), 2);
    assert_ne!(versions[0], versions[1]);
    for cell in found["cells"].as_array().unwrap() {
        assert_eq!(cell["trouble"], Value::Null, "{cell}");
    }
    let twice = ran(&place, &["ffi", "--python", newest, "--python", newest]);
    assert!(twice.stderr.contains("is given twice"), "{}", twice.stderr);
}

#[test]
fn rejects_invalid_arguments_before_building() {
    let place = place();
    let check = |args: &[&str], expected: &str| {
        let ran = ran(&place, &[&["ffi"], args].concat());
        assert_eq!(ran.code, Some(2), "{args:?}");
        assert!(ran.stderr.contains(expected), "{args:?}: {}", ran.stderr);
    };
    check(&["--bindings", "swig"], "error: unknown binding swig\n\nhint: bindings: capi, cython");
    check(&["--categories", "nope"], "error: no category matches nope");
    check(&["--python", "9.99"], "error: program python9.99 not found");
    check(&["--python", "/nonexistent/python"], "error: file /nonexistent/python not found");
    check(&["--python", "/bin/true"], "/bin/true is not a Python interpreter");
    check(&["--python", "/bin/false"], "cannot run /bin/false");
    check(
        &["--cpus", "4000", "--bindings", "ctypes", "--categories", "noop"],
        "cannot run on CPU 4000",
    );
    check(&["-o", "x.pdf"], "cannot infer a format from the suffix of x.pdf");
    check(&["-o", "nowhere/x.json"], "no such directory: nowhere");
    check(&["-o", "nowhere/x.html"], "no such directory: nowhere");
    fs::write(place.path("mine.html"), "my diary").unwrap();
    check(&["-o", "mine.html"], "mine.html");
    assert_eq!(fs::read_to_string(place.path("mine.html")).unwrap(), "my diary");
    fs::write(place.path("file"), "").unwrap();
    check(&["build", "--to", "somewhere"], "--to requires one profile and one interpreter");
    let python = &pythons()[0];
    check(
        &["build", "--profile", "fast", "--bindings", "ctypes", "--python", python, "--to", "file"],
        "cannot write to file",
    );
    assert!(!Path::new("somewhere").exists());
}

#[test]
fn writes_every_format() {
    let place = place();
    let python = &pythons()[0];
    let mut args = vec![
        "ffi",
        "--bindings",
        "ctypes",
        "--categories",
        "noop,sum_double",
        "--quick",
        "--python",
        python,
    ];
    args.extend(FEW);
    for (file, starts, has) in [
        ("f.txt", "noop through capi: ", "Cost of instrumented builds relative to fast builds"),
        ("f.md", "## noop through capi: ", "| rank |"),
        ("f.csv", "category,group,size,binding,", "sum_double,buffers,262144,C to C,fast"),
        ("f.html", "<!doctype html>", "<polyline"),
        ("f.json", "{\n  \"schema\": \"laggard.ffi/1\"", "\"crossing\": "),
    ] {
        // Twice, because a file of the same kind may be overwritten.
        for _ in 0..2 {
            let ran = ran(&place, &[&args[..], &["-o", file]].concat());
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        }
        let text = fs::read_to_string(place.path(file)).unwrap();
        assert!(text.starts_with(starts), "{file}: {}", &text[..200.min(text.len())]);
        assert!(text.contains(has), "{file}: {text}");
    }
}

#[test]
fn reports_saved_results() {
    let place = place();
    let python = &pythons()[0];
    let mut args =
        vec!["ffi", "--bindings", "ctypes", "--categories", "noop,sum_double,dispatch_100"];
    args.extend(["--python", python, "-o", "run.json", "--quick"]);
    args.extend(FEW);
    assert_eq!(ran(&place, &args).code, Some(0));
    let first = fs::read_to_string(place.path("run.json")).unwrap();
    let again = ran(&place, &["report", "--json", "run.json"]);
    let (a, b) = (serde_json::from_str::<Value>(&first).unwrap(), json(&again));
    for (a, b) in a["cells"].as_array().unwrap().iter().zip(b["cells"].as_array().unwrap()) {
        let [a_ns, b_ns] = [a, b].map(|cell| cell["gross_ns"].as_f64().unwrap());
        assert!((a_ns / b_ns - 1.0).abs() < 1e-3, "{a} {b}");
        assert_eq!(
            (&a["who"], &a["statement"], &a["note"]),
            (&b["who"], &b["statement"], &b["note"])
        );
    }
    assert_eq!(
        (&a["builds"], &a["facts"], &a["command"]),
        (&b["builds"], &b["facts"], &b["command"])
    );
    // Rounded values do not change again.
    fs::write(place.path("again.json"), &again.stdout).unwrap();
    assert_eq!(ran(&place, &["report", "--json", "again.json"]).stdout, again.stdout);
    let text = ran(&place, &["report", "--all", "run.json"]).stdout;
    assert!(text.contains("dispatch_100: 100 functions"), "{text}");
    assert_eq!(ran(&place, &["view", "run.json", "-o", "page.html"]).code, Some(0));
    assert!(fs::read_to_string(place.path("page.html")).unwrap().contains("<polyline"));
    let check = |args: &[&str], expected: &str| {
        let ran = ran(&place, args);
        assert!(ran.code == Some(2) && ran.stderr.contains(expected), "{args:?}: {}", ran.stderr);
    };
    check(&["compare", "run.json", "again.json"], "run.json is a result of laggard ffi");
    check(&["report", "--by", "library", "run.json"], "run.json is a result of laggard ffi");
    for (from, to, expected) in [
        ("\"who\": \"capi\"", "\"who\": \"swig\"", "it refers to an unknown binding \"swig\""),
        ("\"cells\": [", "\"sells\": [", "missing field `cells`"),
        ("\"calls\": 1,", "\"calls\": -1,", "invalid value"),
    ] {
        fs::write(place.path("bad.json"), first.replace(from, to)).unwrap();
        check(&["report", "bad.json"], expected);
    }
    fs::write(place.path("bad.json"), &first[..first.len() / 2]).unwrap();
    // The cut may be within a number, which is another error than a missing end.
    check(&["view", "bad.json"], "bad.json is not a result of laggard ffi: ");
}

#[test]
fn build_to_replaces_the_other_profile() {
    let place = place();
    let python = &pythons()[0];
    for profile in ["fast", "instrumented"] {
        let to = ["--to", "out", "--bindings", "ctypes", "--python", python, "--profile", profile];
        let done = ran(&place, &[&["ffi", "build"], &to[..]].concat());
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        let there = names(&place.path("out/ctypes_impl"));
        let soname = format!("libbenchlib-{profile}.so");
        let libraries: Vec<&String> =
            there.iter().filter(|name| name.starts_with("libbenchlib-")).collect();
        assert_eq!(libraries, [&soname], "{there:?}");
    }
    let script = place.path("out/ctypes_impl/ctypes_bench.py");
    let said = Command::new(python).arg(script).args(["--iterations", "100"]).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}

#[test]
fn interpreters_of_one_version_share_builds() {
    let place = place();
    let python = &pythons()[0];
    let ask = "import sys; print(sys.executable)";
    let real = Command::new(python).args(["-c", ask]).output().unwrap();
    let real = String::from_utf8(real.stdout).unwrap();
    let made = Command::new(real.trim())
        .args(["-m", "venv", "--without-pip", "other"])
        .current_dir(place.path(""))
        .status();
    assert!(made.unwrap().success());
    let other = place.path("other/bin/python");
    let other = other.to_str().unwrap();
    let args = [
        "ffi",
        "build",
        "--bindings",
        "capi",
        "--profile",
        "fast",
        "--python",
        python,
        "--python",
        other,
    ];
    let done = ran(&place, &args);
    assert_eq!(done.stdout.matches("skipped: ").count(), 0, "{}", done.stdout);
    assert!(unfinished(&place).is_empty());
}
