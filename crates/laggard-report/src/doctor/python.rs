//! Python interpreters and the C compiler for extensions.

use super::fix::{Package, Site};
use super::{Check, Findings, Group};
use laggard_core::model::host::{Known, Python, PythonBuild};

/// Minor versions of CPython 3 whose frame layouts laggard contains and tests.
const TESTED: std::ops::RangeInclusive<u32> = 9..=13;
/// The version that describes its own frame layout (`_Py_DebugOffsets`).
const BY_ITS_OWN_TABLES: u32 = 14;

pub(super) fn checks(site: &Site) -> Vec<Check> {
    let mut findings = Findings::new(Group::Python);
    for python in &site.host.pythons {
        judge(site, python, &mut findings);
    }
    if site.host.pythons.is_empty() {
        let fix = site.install("install Python", &Package::Python);
        let cost = "bench and why can measure programs, but not Python statements";
        findings.costs("python", "Python", "not in PATH", cost, fix);
    }
    compiler(site, &mut findings);
    findings.checks
}

fn judge(site: &Site, python: &Python, findings: &mut Findings) {
    let id = "python";
    let build = match &python.build {
        Known::Is(build) => build,
        Known::Unknown(why) => {
            return findings.unknown(id, "Python", &format!("{}: {why}", python.path));
        }
    };
    let [major, minor, micro] = build.version;
    let kind = match build.implementation.as_str() {
        "cpython" => "Python",
        "pypy" => "PyPy",
        other => other,
    };
    let letter = if build.free_threaded { "t" } else { "" };
    let title = format!("{kind} {major}.{minor}.{micro}{letter}");
    let found = format!("{}, {}", python.path, how_built(build));
    if let Some(cost) = unread(build) {
        return findings.costs(id, &title, found, cost, None);
    }
    if build.symbols == Known::Is(None) {
        let fix = python.path.starts_with("/usr/bin/").then(|| {
            let package = Package::PythonSymbols(major, minor);
            site.install(&format!("install symbols of Python {major}.{minor}"), &package)
        });
        let cost = "report and flame show no names for internal functions of the interpreter; Python frames are not affected";
        return findings.costs(id, &title, found, cost, fix.flatten());
    }
    findings.fine(id, &title, found);
}

fn how_built(build: &PythonBuild) -> String {
    let mut parts = vec![if build.shared { "shared" } else { "static" }];
    parts.push(if build.frame_pointers { "frame pointers" } else { "no frame pointers" });
    match &build.symbols {
        Known::Is(Some(_)) => parts.push("symbols"),
        Known::Is(None) => parts.push("exported symbols only"),
        Known::Unknown(_) => {}
    }
    if build.version[..2] == [3, BY_ITS_OWN_TABLES] {
        parts.push("describes its own frame layout");
    }
    parts.join(", ")
}

/// The consequence if laggard cannot read Python frames of this interpreter.
fn unread(build: &PythonBuild) -> Option<&'static str> {
    if build.implementation != "cpython" {
        return Some(
            "record shows only native frames: Python frames are supported for CPython only",
        );
    }
    if build.free_threaded {
        return Some("record shows only native frames: free-threaded builds are not supported");
    }
    match build.version {
        [3, minor, _] if TESTED.contains(&minor) || minor == BY_ITS_OWN_TABLES => None,
        [3, minor, _] if minor > BY_ITS_OWN_TABLES => {
            Some("record shows only native frames: newer than the supported versions, 3.9 to 3.14")
        }
        _ => {
            Some("record shows only native frames: older than the supported versions, 3.9 to 3.14")
        }
    }
}

fn compiler(site: &Site, findings: &mut Findings) {
    let (id, title) = ("compiler", "C compiler");
    match findings.value(id, title, &site.host.tools.compiler) {
        None => {}
        Some(Some(tool)) => match &tool.version {
            Known::Is(version) => findings.fine(id, title, version.clone()),
            Known::Unknown(why) => findings.unknown(id, title, &format!("{}: {why}", tool.path)),
        },
        Some(None) => {
            let fix = site.install("install a C compiler", &Package::Compiler);
            findings.costs(id, title, "not in PATH", "ffi cannot build its bindings", fix);
        }
    }
}
