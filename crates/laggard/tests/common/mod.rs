//! What the tests of the program share: runs of it that touch nothing outside a directory.

#![allow(dead_code)] // each test file uses its part

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The project's fixtures.
pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// Copies the files of a directory, and those of its directories.
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

/// A place for a test: a directory with traces in it, and a cache directory of its own.
pub(crate) struct Place {
    root: tempfile::TempDir,
}

impl Place {
    /// A place with these fixtures, under their own names.
    pub(crate) fn with(fixtures: &[&str]) -> Place {
        let place = Place { root: tempfile::tempdir().unwrap() };
        fs::create_dir_all(place.path("")).unwrap();
        for name in fixtures {
            let target = Path::new(name).file_name().unwrap().to_str().unwrap();
            fs::copy(self::fixtures().join(name), place.path(target)).unwrap();
        }
        place
    }

    /// A file in the directory that the program runs in.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join("here").join(name)
    }

    /// The cache directory for indexes.
    pub(crate) fn cache(&self) -> PathBuf {
        self.root.path().join("cache/laggard/index")
    }

    /// Names of all files in the directory that the program runs in.
    pub(crate) fn names(&self) -> Vec<String> {
        names(&self.path(""))
    }

    /// A run of the program in this place, yet to be started.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_laggard"));
        self.settle(command.args(args));
        command
    }

    /// Gives a command this place and an environment without surprises.
    pub(crate) fn settle(&self, command: &mut Command) {
        command
            .current_dir(self.path(""))
            .env("HOME", self.root.path())
            .env("XDG_CACHE_HOME", self.root.path().join("cache"))
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR_FORCE")
            .stdin(std::process::Stdio::null());
    }

    /// Runs the program.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::from(self.command(args).output().unwrap())
    }

    /// Runs the program and expects it to go well; returns what it wrote to standard output.
    pub(crate) fn data(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
        ran.stdout
    }
}

/// Names of all files in a directory, in order.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return vec![] };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// What came of a run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    /// What it wrote to standard output.
    pub(crate) stdout: String,
    /// What it wrote to standard error.
    pub(crate) stderr: String,
    /// Its exit code; none when a signal ended it.
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
