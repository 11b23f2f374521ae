//! Memory, disk space and other resources that laggard needs.

use super::noise::groups;
use super::root::Root;
use super::{Places, sys};
use laggard_core::model::host::{Known, Room, Space};
use std::path::Path;

/// Larger memory limits mean no limit: the kernel reports a huge number.
const NO_LIMIT: u64 = 1 << 60;

pub(super) fn read(root: &Root, places: &Places) -> Room {
    let cache = match &places.cache {
        Some(path) => space(root, path),
        None => Known::unknown("neither XDG_CACHE_HOME nor HOME is set"),
    };
    let swap = memory(root, "SwapTotal")
        .then(|total| memory(root, "SwapFree").map(|free| total.saturating_sub(free)));
    Room {
        memory: memory(root, "MemTotal"),
        available: memory(root, "MemAvailable"),
        memory_limit: Known::Is(limit(root)),
        swap_used: swap,
        shared_memory: space(root, Path::new("/dev/shm")).then(|space| {
            // Otherwise it is the parent, which is another file system.
            match space.path == "/dev/shm" {
                true => Known::Is(space),
                false => Known::unknown("/dev/shm does not exist"),
            }
        }),
        cache,
        open_files: if root.is_real() { sys::open_files() } else { Known::default() },
    }
}

/// A value of `/proc/meminfo`, in bytes.
pub(super) fn memory(root: &Root, name: &str) -> Known<u64> {
    root.field("/proc/meminfo", name).then(|value| {
        let kib = value.strip_suffix("kB").and_then(|number| number.trim().parse::<u64>().ok());
        match kib {
            Some(kib) => Known::Is(kib.saturating_mul(1024)),
            None => {
                Known::unknown(format!("unexpected value of {name} in /proc/meminfo: {value:?}"))
            }
        }
    })
}

/// The tightest memory limit that applies to this process.
fn limit(root: &Root) -> Option<u64> {
    let read = |group: String, file: &str| root.number(&format!("{group}/{file}")).get().copied();
    let new = groups(root, "").into_iter().filter_map(|group| read(group, "memory.max"));
    let old =
        groups(root, "memory").into_iter().filter_map(|group| read(group, "memory.limit_in_bytes"));
    new.chain(old).filter(|&limit| limit < NO_LIMIT).min()
}

/// The file system of a directory, or of its nearest existing ancestor.
fn space(root: &Root, path: &Path) -> Known<Space> {
    if !root.is_real() {
        return Known::default();
    }
    let Some(there) = path.ancestors().find(|path| root.path(path).is_dir()) else {
        return Known::unknown(format!("{} does not exist", path.display()));
    };
    sys::space(there).map(|(free, size)| Space {
        path: there.display().to_string(),
        free,
        size,
        writable: sys::is_writable(there),
    })
}
