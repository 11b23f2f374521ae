//! Reads perf.data: recordings of Linux perf, from a file or a pipe (`perf record -o -`).
//!
//! You give a [`Source`], you get a [`Profile`] whose native frames are addresses in modules
//! (`laggard_symbols::resolve` symbolizes them later) and whose quality includes all losses. All
//! three kinds of call graphs are supported: frame pointers, stack copies, which are unwound here,
//! and branch records (LBR). A damaged file is read up to the damage. A file without any event is
//! an error.
//!
//! The parser is our own: it must read truncated recordings as far as possible, never panic, and
//! keep branch records. Only recordings of little-endian machines are supported.
//!
//! - [`header`](self): metadata: events, machine, command, build IDs
//! - `records`: single records, decompressed and ordered by time
//! - `sample`: one sample in the layout of its event
//! - `process`: names and mappings of processes over time
//! - `chain`: converts a sample to frames; `stitch`: extends stacks of branch records
//! - `kernel`, `perf_map`, `jitdump`: symbols of code without a file
//! - `collect`: builds the profile

mod attr;
mod bytes;
mod chain;
mod collect;
mod header;
mod jitdump;
mod kernel;
mod perf_map;
mod process;
mod records;
mod sample;
mod stitch;
#[cfg(test)]
mod tests;

use crate::{Bytes, Error, Source};
use laggard_core::model::profile::Profile;
use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes before the read position that stay in memory, for delayed records.
const KEPT: u64 = 16 << 20;

/// Whether a file with this head is a perf.data file.
pub fn is_perf(head: &[u8]) -> bool {
    head.starts_with(header::MAGIC) || head.starts_with(header::MAGIC_OF_OTHERS)
}

/// Reads a recording. `progress` receives the number of bytes every few megabytes.
pub fn read(source: Source, progress: &(dyn Fn(u64) + Sync)) -> Result<Profile, Error> {
    let path = source.path;
    match source.bytes {
        Bytes::Mapped(map) => {
            // Data already read is not needed again, so its pages are released.
            let done = AtomicU64::new(0);
            let profile = collect::profile(&map, &path, &|bytes| {
                let read = done.fetch_add(bytes, Relaxed) + bytes;
                map.let_go(read.saturating_sub(KEPT) as usize);
                progress(bytes);
            });
            if !map.is_whole() {
                return Err(Error::Shrank { path });
            }
            profile
        }
        Bytes::Stream(mut stream) => {
            let mut bytes = vec![];
            let end = stream.read_to_end(&mut bytes);
            let mut profile = collect::profile(&bytes, &path, progress)?;
            if let Err(why) = end {
                profile
                    .quality
                    .warnings
                    .push(format!("the file could not be read to its end: {why}"));
            }
            Ok(profile)
        }
    }
}
