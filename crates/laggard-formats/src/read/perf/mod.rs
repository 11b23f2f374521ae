//! perf.data: the recordings of Linux perf, from a file or from a pipe (`perf record -o -`).
//!
//! You give a [`Source`], you get a [`Profile`] whose native frames are addresses in modules
//! (`laggard_symbols::resolve` names them later) and whose quality says what was lost. Call graphs
//! of all three kinds are read: frame pointers, copies of the stack, which are unwound here, and
//! the processor's branch records. Of a damaged file what comes before the damage is kept; only a
//! file without any event is refused.
//!
//! The container is read here and not by a crate: a recording that was cut short has to give what
//! it has, no byte of it may cause a panic, and branch records have to be kept. Recordings of
//! little-endian machines only.
//!
//! - [`header`](self): what stands around the records: events, machine, command, build ids
//! - `records`: the records one by one, decompressed and in order of time
//! - `sample`: one sample, as its event laid it out
//! - `process`: names and mappings of processes, as they change
//! - `chain`: from a sample to frames; `stitch`: more of them where the processor keeps few
//! - `kernel`, `perf_map`, `jitdump`: names of code that no library has
//! - `collect`: the profile

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

/// Bytes before the place of reading that stay in memory, for records that are held back.
const KEPT: u64 = 16 << 20;

/// Whether a file that starts with these bytes is a perf.data.
pub fn is_perf(head: &[u8]) -> bool {
    head.starts_with(header::MAGIC) || head.starts_with(header::MAGIC_OF_OTHERS)
}

/// Reads a recording. `progress` is told of every few megabytes read.
pub fn read(source: Source, progress: &(dyn Fn(u64) + Sync)) -> Result<Profile, Error> {
    let path = source.path;
    match source.bytes {
        Bytes::Mapped(map) => {
            // What has been read is not needed again: only the pages in work stay in memory.
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
                profile.quality.warnings.push(format!("the recording ends early: {why}"));
            }
            Ok(profile)
        }
    }
}
