//! Full stacks of some calls, received through the sampler's ring.

use super::shared::Shared;
use crate::child::{Child, Ended};
use crate::error::Error;
use crate::sample::collect::Collector;
use crate::sample::monotonic_ns;
use crate::sample::shared::SharedFile;
use laggard_core::model::profile::{Event, Interner, Profile, Unit};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::Ordering::*;
use std::time::Duration;

/// A profile of calls: the event of a sample is the index of a symbol, its weight the number of
/// calls that it represents.
#[derive(Default)]
pub(super) struct Stacks {
    pub(super) profile: Profile,
    pub(super) interner: Interner,
}

/// Size of the ring in bytes.
const RING: u64 = 4 << 20;
/// Maximum stack bytes copied per sample.
const STACK: u64 = 64 << 10;

/// Creates the ring and publishes it to the agent.
pub(super) fn open(shared: &Shared, every: u32) -> Result<Arc<SharedFile>, Error> {
    let ring = SharedFile::create(RING).map_err(Error::Shared)?;
    ring.header().stack_size.store(STACK, Relaxed);
    let header = &shared.tables().header;
    let path = ring.path().as_os_str().as_bytes();
    // The last byte stays zero. Paths of rings are shorter than the field.
    for (cell, byte) in header.ring.iter().zip(path.iter().take(header.ring.len() - 1)) {
        cell.store(*byte, Relaxed);
    }
    header.stack_every.store(every, Release);
    Ok(Arc::new(ring))
}

/// Collects stacks until the program has ended.
pub(super) fn collect(ring: &SharedFile, child: &Child) -> (Ended, Stacks) {
    let event = Event { name: "calls".into(), unit: Unit::Count };
    let mut collector = Collector::new(monotonic_ns(), event, 1);
    loop {
        let ended = child.ended();
        let skipped = ring.drain(ended.is_some(), |kind, payload| collector.take(kind, payload));
        collector.profile.quality.lost += skipped;
        if let Some(ended) = ended {
            let (mut profile, interner) = collector.finish();
            profile.quality.lost += ring.header().dropped.load(Relaxed);
            return (ended, Stacks { profile, interner });
        }
        ring.wait(Duration::from_millis(100));
    }
}
