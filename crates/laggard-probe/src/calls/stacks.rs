//! Whole stacks of some calls, which come through the sampler's ring.

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

/// A profile of calls: the event of a sample is the number of a symbol, its weight the number of
/// calls that it stands for.
#[derive(Default)]
pub(super) struct Stacks {
    pub(super) profile: Profile,
    pub(super) interner: Interner,
}

/// Bytes of the ring.
const RING: u64 = 4 << 20;
/// Most of a stack that is copied.
const STACK: u64 = 64 << 10;

/// Makes the ring, and tells the agent of it.
pub(super) fn open(shared: &Shared, every: u32) -> Result<Arc<SharedFile>, Error> {
    let ring = SharedFile::create(RING).map_err(Error::Shared)?;
    ring.header().stack_size.store(STACK, Relaxed);
    let header = &shared.tables().header;
    let path = ring.path().as_os_str().as_bytes();
    // Its last byte stays zero; a path that long is none of ours.
    for (cell, byte) in header.ring.iter().zip(path.iter().take(header.ring.len() - 1)) {
        cell.store(*byte, Relaxed);
    }
    header.stack_every.store(every, Release);
    Ok(Arc::new(ring))
}

/// Takes stacks until the program has ended.
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
