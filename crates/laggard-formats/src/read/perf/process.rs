//! Names and mappings of processes over time.

use super::bytes::Rest;
use super::header::{Header, hex};
use super::jitdump;
use super::perf_map::PerfMap;
use super::records::{Record, kind};
use laggard_symbols::{AddressSpace, Area, Elf, FileSystem, Files, Missing, Modules};
use rustc_hash::FxHashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Flags of records.
const COMM_EXEC: u16 = 1 << 13;
const MMAP_DATA: u16 = 1 << 13;
const MMAP_BUILD_ID: u16 = 1 << 14;
const PROT_EXEC: u32 = 4;

/// All processes.
pub(super) struct Processes {
    all: FxHashMap<u32, Process>,
    pub(super) modules: Modules,
    ids: BuildIds,
    nowhere: AddressSpace,
}

/// One process.
#[derive(Default)]
pub(super) struct Process {
    pub(super) space: AddressSpace,
    /// Names of its threads. The name of the main thread is that of the process.
    names: FxHashMap<u32, String>,
    map: Option<PerfMap>,
    /// The jitdump of the process.
    jitdump: Option<PathBuf>,
}

/// Build IDs of the recorded files, by path.
type BuildIds = Arc<Mutex<FxHashMap<PathBuf, String>>>;

impl Processes {
    pub(super) fn new(header: &Header) -> Processes {
        let ids = header.build_ids.iter();
        let ids = ids.map(|(path, id)| (PathBuf::from(OsStr::from_bytes(path)), id.clone()));
        let ids: BuildIds = Arc::new(Mutex::new(ids.collect()));
        let modules = Modules::new(Box::new(Recorded { ids: Arc::clone(&ids) }));
        Processes { all: FxHashMap::default(), modules, ids, nowhere: AddressSpace::default() }
    }

    pub(super) fn get(&mut self, pid: u32) -> &mut Process {
        self.all.entry(pid).or_default()
    }

    /// The address space of a process; empty if the process is unknown.
    pub(super) fn space(&self, pid: u32) -> &AddressSpace {
        self.all.get(&pid).map_or(&self.nowhere, |process| &process.space)
    }

    /// The build ID of the recorded file, if known.
    pub(super) fn build_id(&self, path: &Path) -> Option<String> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned()
    }

    /// Handles a record about processes. `None` if it is malformed.
    pub(super) fn take(&mut self, record: &Record<'_>) -> Option<()> {
        let mut rest = Rest(&record.body);
        match record.kind {
            kind::COMM => {
                let (pid, tid) = (rest.u32()?, rest.u32()?);
                let process = self.all.entry(pid).or_default();
                if record.misc & COMM_EXEC != 0 {
                    process.space.clear();
                }
                process.names.insert(tid, String::from_utf8_lossy(rest.text()).into_owned());
            }
            kind::FORK => {
                let (pid, parent, tid, parent_thread) =
                    (rest.u32()?, rest.u32()?, rest.u32()?, rest.u32()?);
                let from = self.all.get(&parent);
                let name = from.and_then(|from| from.names.get(&parent_thread)).cloned();
                if pid != parent {
                    let space = from.map(|from| from.space.clone()).unwrap_or_default();
                    self.all.insert(pid, Process { space, ..Process::default() });
                }
                if let Some(name) = name {
                    self.all.entry(pid).or_default().names.insert(tid, name);
                }
            }
            kind::MMAP => {
                let is_code = record.misc & MMAP_DATA == 0;
                self.map(rest, is_code, None)?;
            }
            kind::MMAP2 => {
                let mut after = rest;
                after.take(32)?;
                let file = after.take(24)?;
                let is_code = after.u32()? & PROT_EXEC != 0;
                let id = (record.misc & MMAP_BUILD_ID != 0)
                    .then(|| hex(&file[4..4 + usize::from(file[0]).min(20)]));
                self.map(rest, is_code, Some((file, id)))?;
            }
            _ => {}
        }
        Some(())
    }

    /// Adds a mapping. `file` has the file identity of the longer record.
    fn map(
        &mut self,
        mut rest: Rest<'_>,
        executable: bool,
        file: Option<(&[u8], Option<String>)>,
    ) -> Option<()> {
        let (pid, _tid) = (rest.u32()?, rest.u32()?);
        let (start, size, offset) = (rest.u64()?, rest.u64()?, rest.u64()?);
        // The kernel is mapped in a process with id -1.
        if pid == u32::MAX {
            return Some(());
        }
        let (mut device, mut inode) = ((0, 0), 0);
        let mut id = None;
        if let Some((fields, build_id)) = file {
            rest.take(32)?;
            match build_id {
                Some(build_id) => id = Some(build_id),
                None => {
                    let mut fields = Rest(fields);
                    device = (fields.u32()?, fields.u32()?);
                    inode = fields.u64()?;
                }
            }
        }
        let path = rest.text();
        let (path, is_deleted) = match path.strip_suffix(b" (deleted)") {
            Some(path) => (path, true),
            None => (path, false),
        };
        // A process maps its jitdump only to announce it to perf.
        if jitdump::is_jitdump(path) {
            let process = self.all.entry(pid).or_default();
            process.jitdump = Some(PathBuf::from(OsStr::from_bytes(path)));
            process.map = None;
            return Some(());
        }
        // Memory without a file has pseudo names.
        let is_file =
            !["//anon", "/memfd:", "anon_inode", "[heap]", "[stack", "[anon", "/dev/zero"]
                .iter()
                .any(|name| path.starts_with(name.as_bytes()));
        let path = PathBuf::from(OsStr::from_bytes(if is_file { path } else { b"" }));
        if let Some(id) = id.filter(|id| !id.is_empty()) {
            let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
            ids.insert(path.clone(), id);
        }
        let end = start.checked_add(size).filter(|end| *end > start)?;
        let area = Area { start, end, executable, offset, device, inode, path, is_deleted };
        self.all.entry(pid).or_default().space.map(&area, &mut self.modules);
        Some(())
    }
}

impl Process {
    /// The name of a thread, or of the process.
    pub(super) fn name(&self, tid: u32) -> &str {
        self.names.get(&tid).map_or("", String::as_str)
    }

    /// The JIT symbols of the process.
    pub(super) fn perf_map(&mut self, pid: u32) -> &PerfMap {
        let jitdump = self.jitdump.as_deref();
        self.map.get_or_insert_with(|| PerfMap::of(pid, jitdump))
    }
}

/// The files of this machine, if they are the recorded ones.
struct Recorded {
    ids: BuildIds,
}

impl Files for Recorded {
    fn find(&self, path: &Path, id: Option<&str>) -> Result<Arc<Elf>, Missing> {
        let known = self.ids.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned();
        FileSystem.find(path, known.as_deref().or(id))
    }
}
