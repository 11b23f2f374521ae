//! Files that are whole or not there at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes a file under a temporary name beside `path`, and puts it in its place once `fill` has
/// written all of it.
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

/// The operating system's answer alone: nobody asked for the temporary name.
fn without_name(error: &io::Error) -> io::Error {
    let text = error.to_string();
    let answer = text.split(" at path ").next().unwrap_or(&text);
    io::Error::new(error.kind(), answer)
}
