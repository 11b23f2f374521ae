//! Python interpreters in PATH and their builds.

use super::root::Root;
use super::{Places, run, symbols};
use laggard_core::model::host::{Known, Python, PythonBuild};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Maximum number of interpreters, because each has to be started.
const MOST: usize = 40;
const SIDE_BY_SIDE: usize = 4;

/// Mapped files are more reliable than the configuration: Debian builds both variants and runs the
/// static one. Each value is on its own line with a prefix, so that output of start-up files is
/// ignored.
const SCRIPT: &str = "
import sys
try:
    import sysconfig
    var = sysconfig.get_config_var
except Exception:
    var = lambda name: None
import os
try:
    maps = [line.split(None, 5)[-1].strip() for line in open('/proc/self/maps')]
    loaded = [path for path in maps if '/libpython' in path or '/libpypy' in path]
except Exception:
    loaded = None
lib = os.path.join(str(var('LIBDIR') or ''), str(var('INSTSONAME') or var('LDLIBRARY') or ''))
flags = ' '.join(str(var(name) or '') for name in ('CFLAGS', 'PY_CFLAGS', 'PY_CORE_CFLAGS', 'CONFIG_ARGS'))
say = lambda name, value: sys.stdout.write('laggard:%s=%s\\n' % (name, value))
say('implementation', getattr(getattr(sys, 'implementation', None), 'name', 'cpython'))
say('version', '%d.%d.%d' % tuple(sys.version_info[:3]))
say('executable', os.path.realpath(sys.executable or ''))
say('free_threaded', int(bool(var('Py_GIL_DISABLED'))))
say('shared', int(bool(var('Py_ENABLE_SHARED') if loaded is None else loaded)))
say('library', loaded[0] if loaded else lib)
say('frame_pointers', int('-fno-omit-frame-pointer' in flags))
";

/// Every interpreter once.
pub(super) fn read(root: &Root, places: &Places) -> Vec<Python> {
    if !root.is_real() {
        return vec![];
    }
    let candidates = candidates(&places.programs);
    let next = AtomicUsize::new(0);
    let mut asked: Vec<(usize, Option<Answer>)> = thread::scope(|scope| {
        let worker = || {
            let mut done = vec![];
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                let Some(candidate) = candidates.get(i) else { return done };
                done.push((i, ask(root, candidate)));
            }
        };
        let workers: Vec<_> = (0..SIDE_BY_SIDE).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    });
    asked.sort_by_key(|(i, _)| *i);
    let mut pythons: Vec<Python> = vec![];
    let mut seen = vec![];
    for answer in asked.into_iter().filter_map(|(_, answer)| answer) {
        if !seen.contains(&answer.executable) {
            seen.push(answer.executable);
            pythons.push(answer.python);
        }
    }
    pythons
}

struct Answer {
    /// The file that is finally executed, which identifies an interpreter with several names.
    executable: String,
    python: Python,
}

/// Files that are named like an interpreter, each once.
fn candidates(programs: &[PathBuf]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = vec![];
    let mut real = vec![];
    for directory in programs {
        let Ok(entries) = directory.read_dir() else { continue };
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| is_interpreter(name)).collect();
        names.sort();
        for path in names.iter().map(|name| directory.join(name)) {
            let Ok(target) = fs::canonicalize(&path) else { continue };
            if target.is_file() && !real.contains(&target) && found.len() < MOST {
                real.push(target);
                found.push(path);
            }
        }
    }
    found
}

/// `python`, `python3`, `python3.13`, `python3.14t`, `pypy3`.
fn is_interpreter(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("python").or_else(|| name.strip_prefix("pypy")) else {
        return false;
    };
    let version = rest.strip_suffix('t').unwrap_or(rest);
    // Python 2 is not supported, and each query costs a process start.
    !version.starts_with('2') && version.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// Returns `None` if the file is not an interpreter.
fn ask(root: &Root, path: &Path) -> Option<Answer> {
    let shown = path.display().to_string();
    let failed = |why: &str| {
        let python = Python { path: shown.clone(), build: Known::unknown(why) };
        Some(Answer { executable: shown.clone(), python })
    };
    // Isolated from the current directory and the user's modules.
    let text = match run::run(path, &["-E", "-s", "-S", "-c", SCRIPT]) {
        Err(why) => return failed(&why),
        Ok((text, _)) => text,
    };
    let Some(answer) = parse(&text) else {
        // A wrapper script may stand for an interpreter that the version manager has not activated.
        let is_script = fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"#!"));
        return failed("it did not report its version").filter(|_| !is_script);
    };
    let holder = if answer.build.shared { &answer.library } else { &answer.executable };
    let build = PythonBuild { symbols: symbols::of(root, holder), ..answer.build };
    let path = if answer.executable.is_empty() { shown } else { answer.executable.clone() };
    let python = Python { path: path.clone(), build: Known::Is(build) };
    Some(Answer { executable: path, python })
}

#[derive(Debug, PartialEq, Eq)]
struct Said {
    build: PythonBuild,
    executable: String,
    library: String,
}

fn parse(text: &str) -> Option<Said> {
    let value = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix("laggard:")?.strip_prefix(name)?.strip_prefix('='))
    };
    let mut version = [0; 3];
    let parts: Vec<u32> = value("version")?.split('.').flat_map(str::parse).collect();
    version.copy_from_slice(parts.get(..3)?);
    let is = |name| value(name) == Some("1");
    let build = PythonBuild {
        implementation: value("implementation")?.to_owned(),
        version,
        free_threaded: is("free_threaded"),
        shared: is("shared"),
        frame_pointers: is("frame_pointers"),
        symbols: Known::default(),
    };
    let path = |name| value(name).unwrap_or_default().to_owned();
    Some(Said { build, executable: path("executable"), library: path("library") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreters_are_recognized_by_name() {
        for (name, expected) in [
            ("python", true),
            ("python3", true),
            ("python2.7", false),
            ("python3.13", true),
            ("python3.14t", true),
            ("pypy3.10", true),
            ("python3-config", false),
            ("python3.11-gdb.py", false),
            ("pythonw", false),
            ("ipython3", false),
        ] {
            assert_eq!(is_interpreter(name), expected, "{name}");
        }
    }

    #[test]
    fn values_are_found_among_other_output() {
        let text = "hello from sitecustomize\nlaggard:version=3.12.1\nlaggard:implementation=cpython\n\
                    laggard:shared=1\nlaggard:library=/x/libpython3.12.so\nbye";
        let said = parse(text).unwrap();
        assert_eq!((said.build.version, said.build.shared), ([3, 12, 1], true));
        assert_eq!(said.library, "/x/libpython3.12.so");
        for bad in
            ["", "laggard:version=x.y", "laggard:version=3\nlaggard:implementation=a", "\u{fffd}"]
        {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }
}
