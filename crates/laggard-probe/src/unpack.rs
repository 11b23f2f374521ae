//! Writes the embedded agent libraries to disk, where the dynamic linker can load them.

use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_128;

/// The path of a file with this content, named after its hash; written if it does not exist yet.
pub(crate) fn library(name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    let file = format!("laggard-{name}-{:032x}.so", xxh3_128(bytes));
    let mut failed = None;
    for directory in directories() {
        match place(&directory, &file, bytes) {
            Ok(path) => return Ok(path),
            Err(error) => failed = Some(error),
        }
    }
    Err(failed.unwrap_or_else(|| io::Error::other("no usable directory for it")))
}

/// The user's cache directory, or else a temporary directory.
fn directories() -> impl Iterator<Item = PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .filter(|path| Path::new(path).is_absolute())
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let cache = cache.map(|path| path.join("laggard/agents"));
    // The user ID keeps users apart in a shared directory.
    let own = format!("laggard-{}", user());
    // The dynamic linker separates library lists with spaces and colons.
    cache
        .into_iter()
        .chain([std::env::temp_dir().join(&own), Path::new("/tmp").join(own)])
        .filter(|path| !path.as_os_str().as_bytes().iter().any(|byte| b": ".contains(byte)))
}

fn user() -> u32 {
    std::fs::metadata("/proc/self").map_or(0, |data| data.uid())
}

fn place(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    let path = directory.join(name);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    // Code must not be loaded from a directory that other users can write to.
    let data = directory.metadata()?;
    if data.uid() != user() || data.mode() & 0o022 != 0 {
        return Err(io::Error::other(format!(
            "{} is owned or writable by other users",
            directory.display()
        )));
    }
    if std::fs::read(&path).is_ok_and(|there| there == bytes) {
        return Ok(path);
    }
    let temporary = directory.join(format!("{name}.{}", std::process::id()));
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o755)
        .open(&temporary)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| std::fs::rename(&temporary, &path));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written.map(|()| path)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    #[test]
    fn a_damaged_file_is_rewritten() {
        let directory = tempfile::tempdir().unwrap();
        let inside = directory.path().join("agents");
        let path = place(&inside, "a.so", b"agent").unwrap();
        std::fs::write(&path, b"broken").unwrap();
        assert_eq!(place(&inside, "a.so", b"agent").unwrap(), path);
        assert_eq!(std::fs::read(&path).unwrap(), b"agent");
        assert_eq!(inside.read_dir().unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_directory_writable_by_others_is_rejected() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(directory.path(), open).unwrap();
        assert!(place(directory.path(), "a.so", b"agent").is_err());
    }
}
