//! Python scripts given as commands.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The interpreter of scripts that are not executable.
const PYTHON: &str = "python3";

/// A command that runs: a Python script that is not executable is run by `python3`.
pub(crate) fn with_interpreter(mut command: Vec<OsString>) -> Vec<OsString> {
    let is_script = |path: &Path| {
        let is_python = path.extension().is_some_and(|suffix| suffix == "py");
        let about = path.metadata().ok().filter(|about| is_python && about.is_file());
        about.is_some_and(|about| about.permissions().mode() & 0o111 == 0)
    };
    if command.first().is_some_and(|first| is_script(Path::new(first))) {
        command.insert(0, PYTHON.into());
    }
    command
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    #[test]
    fn only_scripts_that_are_not_executable_get_an_interpreter() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str, mode: u32| {
            let path = directory.path().join(name);
            std::fs::write(&path, "pass").unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            path.into_os_string()
        };
        let check = |first: OsString, expected: usize| {
            let command = with_interpreter(vec![first, "arg".into()]);
            assert_eq!(command.len(), expected, "{command:?}");
        };
        check(path("plain.py", 0o644), 3);
        check(path("executable.py", 0o755), 2);
        check(path("other.txt", 0o644), 2);
        check(directory.path().join("missing.py").into_os_string(), 2);
        assert!(with_interpreter(vec![]).is_empty());
    }
}
