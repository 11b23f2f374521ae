//! Shared test helpers: runs the program in a temporary directory with its own cache.

#![allow(dead_code)] // each test file uses only some of the helpers

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The directory of the fixtures.
pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// Copies a directory recursively.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// The environment of a test: a working directory and a cache directory.
pub(crate) struct Place {
    root: tempfile::TempDir,
}

impl Place {
    /// Creates a working directory with copies of these fixtures.
    pub(crate) fn with(fixtures: &[&str]) -> Place {
        let place = Place { root: tempfile::tempdir().unwrap() };
        fs::create_dir_all(place.path("")).unwrap();
        for name in fixtures {
            let target = Path::new(name).file_name().unwrap().to_str().unwrap();
            fs::copy(self::fixtures().join(name), place.path(target)).unwrap();
        }
        place
    }

    /// The path of a file in the working directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join("here").join(name)
    }

    /// The cache directory for indexes.
    pub(crate) fn cache(&self) -> PathBuf {
        self.root.path().join("cache/laggard/index")
    }

    /// Sorted names of all files in the working directory.
    pub(crate) fn names(&self) -> Vec<String> {
        names(&self.path(""))
    }

    /// A command that runs the program in this environment.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_laggard"));
        self.settle(command.args(args));
        command
    }

    /// Sets the working directory and environment variables of a command.
    pub(crate) fn settle(&self, command: &mut Command) {
        command
            .current_dir(self.path(""))
            .env("HOME", self.root.path())
            .env("XDG_CACHE_HOME", self.root.path().join("cache"))
            // An index after each load, because the fixtures load fast.
            .env("LAGGARD_INDEX_AFTER", "0")
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR_FORCE")
            .stdin(std::process::Stdio::null());
    }

    /// Runs the program.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::from(self.command(args).output().unwrap())
    }

    /// Runs the program, asserts that it succeeds, and returns its standard output.
    pub(crate) fn data(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
        ran.stdout
    }
}

/// Sorted names of all files in a directory.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return vec![] };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The output and exit status of a run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
    /// Exit status; `None` if a signal ended the program.
    pub(crate) code: Option<i32>,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code(),
        }
    }
}
