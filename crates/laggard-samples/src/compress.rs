//! Writes compressed files.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// A file that is compressed according to its suffix: `.gz`, `.zst`, or none.
pub enum Sink {
    /// Uncompressed.
    Plain(File),
    /// Gzip.
    Gz(GzEncoder<File>),
    /// Zstandard.
    Zst(zstd::Encoder<'static, File>),
}

impl Sink {
    /// Creates the file.
    pub fn create(path: &Path) -> io::Result<Sink> {
        let file = File::create(path)?;
        Ok(match path.extension().and_then(|suffix| suffix.to_str()) {
            Some("gz") => Sink::Gz(GzEncoder::new(file, Compression::new(6))),
            Some("zst") => Sink::Zst(zstd::Encoder::new(file, 3)?),
            _ => Sink::Plain(file),
        })
    }

    /// Flushes all data.
    pub fn finish(self) -> io::Result<()> {
        match self {
            Sink::Plain(mut file) => file.flush(),
            Sink::Gz(encoder) => encoder.finish().map(drop),
            Sink::Zst(encoder) => encoder.finish().map(drop),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::Plain(out) => out.write(bytes),
            Sink::Gz(out) => out.write(bytes),
            Sink::Zst(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::Plain(out) => out.flush(),
            Sink::Gz(out) => out.flush(),
            Sink::Zst(out) => out.flush(),
        }
    }
}

/// `bytes` as gzip with `members` members, like concatenated gzip files.
pub fn gz(bytes: &[u8], members: usize) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    for part in bytes.chunks(bytes.len().div_ceil(members).max(1)) {
        let mut encoder = GzEncoder::new(&mut out, Compression::new(6));
        encoder.write_all(part)?;
        encoder.finish()?;
    }
    Ok(out)
}

/// `bytes` as Zstandard.
pub fn zst(bytes: &[u8]) -> io::Result<Vec<u8>> {
    zstd::encode_all(bytes, 3)
}

/// Decompresses gzip or Zstandard data, up to the first error.
pub fn expand(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    // Data before an error has already been written.
    _ = match bytes {
        [0x1f, 0x8b, ..] => io::copy(&mut flate2::read::MultiGzDecoder::new(bytes), &mut out),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            zstd::Decoder::new(bytes).and_then(|mut decoder| io::copy(&mut decoder, &mut out))
        }
        plain => out.write_all(plain).map(|()| 0),
    };
    out
}
