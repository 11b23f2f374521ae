//! Where bytes come from: a mapped file, or a stream (compressed file, pipe, standard input).

use crate::error::Error;
use crate::map::Map;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// A file to read, with its compression taken off.
pub struct Source {
    /// Its path; `-` for standard input.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: Bytes,
}

/// The bytes of a source.
pub enum Bytes {
    /// All at once.
    Mapped(Map),
    /// One after the other.
    Stream(Box<dyn Read + Send>),
}

const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

impl Source {
    /// Opens a file, or standard input for `-`.
    pub fn open(path: &Path) -> Result<Source, Error> {
        if path == Path::new("-") {
            return Source::stream(path, Box::new(io::stdin()));
        }
        let file = File::open(path).map_err(Error::io("open", path))?;
        let meta = file.metadata().map_err(Error::io("open", path))?;
        if meta.is_dir() {
            return Err(Error::io("read", path)(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        if meta.is_file() && meta.len() > 0 {
            let map = Map::open(&file).map_err(Error::io("map", path))?;
            if !map.starts_with(GZIP) && !map.starts_with(ZSTD) {
                return Ok(Source { path: path.into(), bytes: Bytes::Mapped(map) });
            }
        }
        Source::stream(path, Box::new(file))
    }

    fn stream(path: &Path, mut raw: Box<dyn Read + Send>) -> Result<Source, Error> {
        let mut head = Vec::new();
        raw.by_ref().take(4).read_to_end(&mut head).map_err(Error::io("read", path))?;
        let is = |magic: &[u8]| head.starts_with(magic);
        let (gzip, zstd) = (is(GZIP), is(ZSTD));
        let whole = BufReader::with_capacity(256 << 10, io::Cursor::new(head).chain(raw));
        let stream: Box<dyn Read + Send> = if gzip {
            Box::new(flate2::bufread::MultiGzDecoder::new(whole))
        } else if zstd {
            Box::new(
                zstd::stream::read::Decoder::with_buffer(whole).map_err(Error::io("read", path))?,
            )
        } else {
            Box::new(whole)
        };
        Ok(Source { path: path.into(), bytes: Bytes::Stream(stream) })
    }
}
