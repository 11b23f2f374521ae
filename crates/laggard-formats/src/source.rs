//! Input bytes: a mapped file or a stream (compressed file, pipe, standard input).

use crate::error::Error;
use crate::map::Map;
use crate::read::HEAD_FOR_DETECTION;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// An input file, decompressed.
pub struct Source {
    /// The path; `-` for standard input.
    pub path: PathBuf,
    /// The content.
    pub bytes: Bytes,
}

/// The content of a [`Source`].
pub enum Bytes {
    /// A memory-mapped file.
    Mapped(Map),
    /// A stream.
    Stream(Box<dyn Read + Send>),
}

/// The compression of a file, detected from its first bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compression {
    None,
    Gzip,
    Zstandard,
}

/// The largest window of Zstandard (`--long=31`).
const LARGEST_WINDOW_LOG: u32 = 31;

impl Compression {
    fn of(head: &[u8]) -> Compression {
        match head {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            // A data frame, or a skippable frame, which parallel compressors write first.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
                Compression::Zstandard
            }
            _ => Compression::None,
        }
    }
}

/// Returns the stored error once. A read error in the head is reported again to the reader of the
/// rest.
struct Failed(Option<io::Error>);

impl Read for Failed {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

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
            // A file that cannot be mapped is read as a stream.
            if let Ok(map) = Map::open(&file)
                && Compression::of(&map) == Compression::None
            {
                return Ok(Source { path: path.into(), bytes: Bytes::Mapped(map) });
            }
        }
        Source::stream(path, Box::new(file))
    }

    /// Returns the first bytes for format detection. They are still part of later reads.
    pub fn head(&mut self) -> Vec<u8> {
        match &mut self.bytes {
            Bytes::Mapped(map) => map[..map.len().min(HEAD_FOR_DETECTION)].to_vec(),
            Bytes::Stream(stream) => {
                let mut head = vec![];
                // The reader of the rest reports errors.
                let end = stream.take(HEAD_FOR_DETECTION as u64).read_to_end(&mut head);
                let rest = std::mem::replace(stream, Box::new(io::empty()));
                let failed = Failed(end.err());
                *stream = Box::new(io::Cursor::new(head.clone()).chain(failed).chain(rest));
                head
            }
        }
    }

    /// The number of bytes, if known.
    pub fn size(&self) -> Option<u64> {
        match &self.bytes {
            Bytes::Mapped(map) => Some(map.len() as u64),
            Bytes::Stream(_) => None,
        }
    }

    /// Returns the path and the whole content of a small file. Fails if it exceeds `most` bytes.
    pub(crate) fn whole(self, most: u64) -> Result<(PathBuf, Vec<u8>), Error> {
        let Source { path, bytes } = self;
        let text = match bytes {
            Bytes::Mapped(map) => {
                let text = map[..map.len().min(most as usize + 1)].to_vec();
                if !map.is_whole() {
                    return Err(Error::Shrank { path });
                }
                text
            }
            Bytes::Stream(stream) => {
                let mut text = vec![];
                stream.take(most + 1).read_to_end(&mut text).map_err(Error::io("read", &path))?;
                text
            }
        };
        if text.len() as u64 > most {
            let source = io::Error::other(format!("it is larger than {} MiB", most >> 20));
            return Err(Error::io("read", path)(source));
        }
        Ok((path, text))
    }

    fn stream(path: &Path, mut raw: Box<dyn Read + Send>) -> Result<Source, Error> {
        let mut head = Vec::new();
        raw.by_ref().take(4).read_to_end(&mut head).map_err(Error::io("read", path))?;
        let compression = Compression::of(&head);
        let whole = BufReader::with_capacity(256 << 10, io::Cursor::new(head).chain(raw));
        let stream: Box<dyn Read + Send> = match compression {
            Compression::None => Box::new(whole),
            Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(whole)),
            Compression::Zstandard => {
                let decoder = zstd::stream::read::Decoder::with_buffer(whole);
                let mut decoder = decoder.map_err(Error::io("read", path))?;
                decoder.window_log_max(LARGEST_WINDOW_LOG).map_err(Error::io("read", path))?;
                Box::new(decoder)
            }
        };
        Ok(Source { path: path.into(), bytes: Bytes::Stream(stream) })
    }
}
