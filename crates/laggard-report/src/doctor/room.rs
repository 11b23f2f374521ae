//! Memory, disk space and limits.

use super::fix::{Fix, Site};
use super::{Check, Findings, Group, Verdict};
use crate::number::{bytes, count};
use laggard_core::model::host::{Known, Space};

/// Memory for a large trace or recording.
const MEMORY: u64 = 1 << 30;
/// Shared memory for the ring buffers of a program and its children.
const SHARED: u64 = 64 << 20;
/// Disk space for agents and indexes. Agents alone need `CACHE_AT_LEAST`.
const CACHE: u64 = 1 << 30;
const CACHE_AT_LEAST: u64 = 16 << 20;
/// One file descriptor per sampled thread, plus some spare.
const FILES: u64 = 1024;

pub(super) fn checks(site: &Site) -> Vec<Check> {
    let mut findings = Findings::new(Group::Room);
    memory(site, &mut findings);
    if site.is_linux() {
        shared(site, &mut findings);
    }
    cache(site, &mut findings);
    files(site, &mut findings);
    findings.checks
}

fn size(n: u64) -> String {
    bytes(n.min(i64::MAX as u64) as i64)
}

fn memory(site: &Site, findings: &mut Findings) {
    let room = &site.host.room;
    let (id, title) = ("memory", "memory");
    let Some(&available) = findings.value(id, title, &room.available) else { return };
    let all = room.memory.get().map_or_else(String::new, |all| format!(" of {}", size(*all)));
    let limit = room.memory_limit.get().copied().flatten();
    let limit = limit.filter(|limit| room.memory.get().is_none_or(|all| limit < all));
    let limited = limit.map_or_else(String::new, |limit| format!(", limited to {}", size(limit)));
    let found = format!("{}{all} available{limited}", size(available));
    if limit.unwrap_or(u64::MAX).min(available) >= MEMORY {
        return findings.fine(id, title, found);
    }
    let cost = "large traces may not load, and measured programs may swap or be killed";
    let fix = match limit {
        Some(limit) if limit < MEMORY => "raise the memory limit of the container (memory.max)",
        _ => "stop programs that use much memory",
    };
    findings.costs(id, title, found, cost, Some(site.advice(fix)));
}

fn shared(site: &Site, findings: &mut Findings) {
    let (id, title) = ("shared_memory", "shared memory");
    let cost = "record and calls pass their samples through shared memory";
    let bigger = match site.container() {
        Some("Docker" | "Podman") => Some("start the container with --shm-size 256m"),
        Some("Kubernetes") => Some("mount an emptyDir with medium: Memory at /dev/shm"),
        _ => None,
    };
    let grow = |command: &str| match bigger {
        Some(how) => site.advice(how),
        None => site.mount("provide enough shared memory", command),
    };
    let space = match &site.host.room.shared_memory {
        Known::Is(space) => space,
        Known::Unknown(why) if is_missing(why) => {
            let fix = grow("mount -t tmpfs -o size=256m tmpfs /dev/shm");
            return findings.bad(id, title, Verdict::Blocks, why.clone(), cost, Some(fix));
        }
        Known::Unknown(why) => return findings.unknown(id, title, why),
    };
    let found = format!("{} of {} free in {}", size(space.free), size(space.size), space.path);
    if !space.writable {
        let fix = site.mount("allow all users to use shared memory", "chmod 1777 /dev/shm");
        let found = format!("{found}, not writable by this user");
        return findings.bad(id, title, Verdict::Blocks, found, cost, Some(fix));
    }
    if space.free < SHARED {
        let cost = format!(
            "{cost}: with less than {}, programs with many threads lose samples",
            size(SHARED)
        );
        return findings.costs(
            id,
            title,
            found,
            cost,
            Some(grow("mount -o remount,size=256m /dev/shm")),
        );
    }
    findings.fine(id, title, found);
}

/// Whether the reason is that the directory does not exist.
fn is_missing(why: &str) -> bool {
    why.starts_with("there is no ") || why.ends_with(" does not exist")
}

fn cache(site: &Site, findings: &mut Findings) {
    let (id, title) = ("cache", "cache directory");
    let elsewhere =
        || site.shell("use another cache directory", "export XDG_CACHE_HOME=\"$(mktemp -d)\"");
    let Some(space) = findings.value(id, title, &site.host.room.cache) else { return };
    let Space { path, free, size: all, writable } = space;
    let found = format!("{} of {} free in {path}", size(*free), size(*all));
    if !writable || *free < CACHE_AT_LEAST {
        let found = if *writable {
            found
        } else {
            format!("cannot be created or written: {path} is not writable by this user")
        };
        let cost = "record and calls cannot unpack their agents";
        return findings.bad(id, title, Verdict::Blocks, found, cost, Some(elsewhere()));
    }
    if *free < CACHE {
        let cost =
            "indexes of large traces may not fit: report then reads the whole trace every time";
        let fix = Fix {
            commands: vec!["laggard index --clear".to_owned()],
            ..site.advice("delete indexes, or free disk space")
        };
        return findings.costs(id, title, found, cost, Some(fix));
    }
    findings.fine(id, title, found);
}

fn files(site: &Site, findings: &mut Findings) {
    let (id, title) = ("open_files", "open file limit");
    let Some(limit) = findings.value(id, title, &site.host.room.open_files) else { return };
    let found = limit
        .map_or_else(|| "no limit".to_owned(), |limit| format!("{} per process", count(limit)));
    if limit.is_none_or(|limit| limit >= FILES) {
        return findings.fine(id, title, found);
    }
    let cost = "record needs one file descriptor per sampled thread: some threads of large programs are not sampled";
    let fix = site.shell("raise the limit", "ulimit -n \"$(ulimit -Hn)\"");
    findings.costs(id, title, found, cost, Some(fix));
}
