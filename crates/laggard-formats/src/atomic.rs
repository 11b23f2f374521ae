//! Atomic file writes: a file is complete or does not exist.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes a temporary file beside `path` and renames it to `path` after `fill` has returned.
pub fn write(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<&mut File>) -> io::Result<()>,
) -> io::Result<()> {
    let directory =
        path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".laggard-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o644));
    }
    let mut temporary = builder.tempfile_in(directory).map_err(|error| without_name(&error))?;
    let mut out = BufWriter::with_capacity(1 << 20, temporary.as_file_mut());
    fill(&mut out)?;
    out.flush()?;
    drop(out);
    temporary.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Removes the temporary file name from the message, because users do not know it.
fn without_name(error: &io::Error) -> io::Error {
    let text = error.to_string();
    let answer = text.split(" at path ").next().unwrap_or(&text);
    io::Error::new(error.kind(), answer)
}
