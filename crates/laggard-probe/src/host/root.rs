//! The file system root of a machine, which may be a synthetic one in tests.

use laggard_core::model::host::Known;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Larger than any file read here, even with hundreds of CPUs.
const LONGEST: u64 = 8 << 20;

/// The directory that stands for `/`.
#[derive(Clone, Debug)]
pub struct Root {
    base: PathBuf,
}

impl Root {
    /// The real machine.
    pub fn real() -> Root {
        Root::at("/")
    }

    /// A directory that stands for `/`. No system calls are made for it, and no programs are run.
    pub fn at(base: impl Into<PathBuf>) -> Root {
        Root { base: base.into() }
    }

    /// Whether this is the real machine.
    pub(super) fn is_real(&self) -> bool {
        self.base == Path::new("/")
    }

    /// The location of an absolute path.
    pub(super) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.base.join(path.strip_prefix("/").unwrap_or(path))
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// The content of a file, without surrounding white space.
    pub(super) fn text(&self, path: &str) -> Known<String> {
        let read = || {
            let mut bytes = vec![];
            File::open(self.path(path))?.take(LONGEST).read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
        };
        known(path, read())
    }

    /// The content of a file that contains one number.
    pub(super) fn number<T: FromStr>(&self, path: &str) -> Known<T> {
        self.text(path).then(|text| match text.parse() {
            Ok(number) => Known::Is(number),
            Err(_) => Known::unknown(format!("unexpected content in {path}: {:?}", short(&text))),
        })
    }

    /// The value after `name:`, on the first line that has it.
    pub(super) fn field(&self, path: &str, name: &str) -> Known<String> {
        self.text(path).then(|text| match field(&text, name) {
            Some(value) => Known::Is(value.to_owned()),
            None => Known::unknown(format!("{path} has no {name}")),
        })
    }

    /// Names in a directory, sorted.
    pub(super) fn names(&self, path: &str) -> Known<Vec<String>> {
        let read = || {
            let mut names = vec![];
            for entry in self.path(path).read_dir()? {
                names.push(entry?.file_name().to_string_lossy().into_owned());
            }
            names.sort();
            Ok(names)
        };
        known(path, read())
    }
}

/// The value after `name:`.
pub(super) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then_some(value.trim())
    })
}

/// The number of CPUs in a list such as `0-3,8`.
pub(super) fn listed(list: &str) -> Option<u64> {
    let one = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse::<u64>().ok()?, last.trim().parse::<u64>().ok()?);
        last.checked_sub(first)?.checked_add(1)
    };
    list.split(',').try_fold(0_u64, |sum, part| sum.checked_add(one(part)?))
}

/// The text, shortened for a message.
pub(super) fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

fn known<T>(path: &str, result: io::Result<T>) -> Known<T> {
    match result {
        Ok(value) => Known::Is(value),
        Err(error) => Known::unknown(match error.kind() {
            io::ErrorKind::NotFound => format!("{path} does not exist"),
            io::ErrorKind::PermissionDenied => format!("{path} is not readable by this user"),
            _ => format!("{path} cannot be read: {error}"),
        }),
    }
}
