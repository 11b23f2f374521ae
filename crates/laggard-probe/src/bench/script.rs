//! Commands that run a Python program, as statements of the worker.

use crate::program;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A Python program as a statement.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Script {
    /// Its interpreter.
    pub(super) python: PathBuf,
    /// Sets the arguments and the import path as the interpreter does.
    pub(super) setup: String,
    /// Runs the program.
    pub(super) code: &'static str,
}

const FILE: &str = "try:
    runpy.run_path(sys.argv[0], run_name='__main__')
except SystemExit:
    pass";
const MODULE: &str = "try:
    runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)
except SystemExit:
    pass";
const CODE: &str = "try:
    exec(compile(text, '<string>', 'exec'), {'__name__': '__main__', '__builtins__': __builtins__})
except SystemExit:
    pass";

/// Options of the interpreter that do not change which functions a program calls.
const HARMLESS: &str = "bBdqsuv";
/// Options with a value.
const WITH_VALUE: &str = "WX";

impl Script {
    /// The program that a command runs, or why it is none that can be run here.
    pub(super) fn of(words: &[OsString]) -> Result<Script, String> {
        let (first, rest) = words.split_first().ok_or("the command is empty")?;
        let path = program::find(first).ok_or("its program was not found")?;
        if is_python(path.as_os_str()) {
            return of_arguments(&path, rest);
        }
        let shebang =
            interpreter(&path).filter(|words| words.first().is_some_and(|word| is_python(word)));
        let Some((python, options)) = shebang.as_deref().and_then(<[OsString]>::split_first) else {
            return Err("it is not a Python program".into());
        };
        let python = program::find(python).ok_or("its interpreter was not found")?;
        let arguments: Vec<OsString> =
            options.iter().cloned().chain([path.into()]).chain(rest.iter().cloned()).collect();
        of_arguments(&python, &arguments)
    }
}

/// The program in the arguments of an interpreter.
fn of_arguments(python: &Path, arguments: &[OsString]) -> Result<Script, String> {
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let target = |code, path: &str, argv: Vec<&OsString>| {
            Ok(Script { python: python.to_owned(), setup: setup(path, &argv), code })
        };
        let text = word.to_string_lossy();
        let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            if word == "-" {
                return Err("it reads its program from standard input".into());
            }
            let argv = [word].into_iter().chain(rest).collect();
            return target(FILE, "os.path.dirname(os.path.realpath(sys.argv[0]))", argv);
        };
        for (at, letter) in letters.char_indices() {
            if HARMLESS.contains(letter) {
                continue;
            }
            // The value is the rest of the word, or the next word.
            let attached = OsString::from_vec(word.as_bytes()[at + 2..].to_vec());
            let value = if attached.is_empty() { rest.next().cloned() } else { Some(attached) };
            let value = value.ok_or_else(|| format!("option -{letter} has no value"))?;
            match letter {
                'm' => {
                    let argv = [&value].into_iter().chain(rest).collect();
                    return target(MODULE, "os.getcwd()", argv);
                }
                'c' => {
                    let name = OsString::from("-c");
                    let argv = [&name].into_iter().chain(rest).collect();
                    let mut script = target(CODE, "''", argv)?;
                    let _ = writeln!(script.setup, "text = os.fsdecode({})", literal(&value));
                    return Ok(script);
                }
                _ if WITH_VALUE.contains(letter) => break,
                _ => return Err(format!("its interpreter has the option -{letter}")),
            }
        }
    }
    Err("it starts an interactive interpreter".into())
}

/// Sets the arguments and the first entry of the import path.
fn setup(path: &str, argv: &[&OsString]) -> String {
    let words: String = argv.iter().map(|word| format!("{}, ", literal(word))).collect();
    format!(
        "import os, runpy, sys
sys.argv[:] = [os.fsdecode(word) for word in ({words})]
if not getattr(sys.flags, 'safe_path', False):
    sys.path[0] = {path}
"
    )
}

/// A bytes literal.
fn literal(word: &OsStr) -> String {
    let bytes: String = word.as_bytes().iter().map(|byte| format!("\\x{byte:02x}")).collect();
    format!("b'{bytes}'")
}

/// Whether a program is an interpreter of Python, by its name.
fn is_python(path: &OsStr) -> bool {
    let name = path.as_bytes().rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    name.strip_prefix(b"python").is_some_and(|version| {
        version.iter().all(|byte| byte.is_ascii_digit() || b".t".contains(byte))
    })
}

/// The interpreter of a script with its options: the words after `#!`, without `env`.
fn interpreter(path: &Path) -> Option<Vec<OsString>> {
    let mut head = vec![];
    File::open(path).ok()?.take(4096).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut words: Vec<OsString> = words.map(|word| OsString::from_vec(word.to_vec())).collect();
    if words.first().is_some_and(|word| word.as_bytes().ends_with(b"/env")) {
        words.remove(0);
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test fails by panicking
    use super::*;

    fn of(words: &[&str]) -> Result<Script, String> {
        let words: Vec<OsString> = words.iter().map(Into::into).collect();
        of_arguments(Path::new("python3"), &words)
    }

    #[test]
    fn a_program_is_a_file_a_module_or_code() {
        assert_eq!(of(&["a.py", "-m", "x"]).unwrap().code, FILE);
        assert_eq!(of(&["-m", "json.tool", "x"]).unwrap().code, MODULE);
        assert_eq!(of(&["-uBmjson.tool"]).unwrap().code, MODULE);
        assert_eq!(of(&["-Wignore", "-X", "dev", "a.py"]).unwrap().code, FILE);
        let code = of(&["-c", "é", "x"]).unwrap();
        assert_eq!(code.code, CODE);
        assert!(code.setup.contains("(b'\\x2d\\x63', b'\\x78', )"), "{}", code.setup);
        assert!(code.setup.contains("text = os.fsdecode(b'\\xc3\\xa9')"), "{}", code.setup);
    }

    #[test]
    fn other_commands_are_rejected_with_a_reason() {
        assert_eq!(of(&[]).unwrap_err(), "it starts an interactive interpreter");
        assert_eq!(of(&["-"]).unwrap_err(), "it reads its program from standard input");
        assert_eq!(of(&["-m"]).unwrap_err(), "option -m has no value");
        assert_eq!(of(&["-O", "a.py"]).unwrap_err(), "its interpreter has the option -O");
        let error = Script::of(&["true".into()]).unwrap_err();
        assert_eq!(error, "it is not a Python program");
    }

    #[test]
    fn the_interpreter_of_a_script_is_in_its_first_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tool");
        let words = |text: &str| {
            std::fs::write(&path, text).unwrap();
            interpreter(&path)
        };
        assert_eq!(words("#!/usr/bin/env python3\nx"), Some(vec!["python3".into()]));
        assert_eq!(
            words("#! /opt/bin/python3.12 -s\n"),
            Some(vec!["/opt/bin/python3.12".into(), "-s".into()])
        );
        assert_eq!(words("import os\n"), None);
    }

    #[test]
    fn interpreters_are_known_by_their_names() {
        let is = |name: &str| is_python(OsStr::new(name));
        assert!(is("python") && is("/usr/bin/python3.13t") && is("python3"));
        assert!(!is("python3-config") && !is("/opt/python/bin/perl"));
    }
}
