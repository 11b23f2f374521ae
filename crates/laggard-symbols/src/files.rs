//! Access to the files of modules.

use crate::{Elf, Missing, debug_file};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// Finds the ELF file of a module.
pub trait Files {
    /// Returns the file at a path. If `id` ([`Elf::id`]) is given, the file must have it.
    fn find(&self, path: &Path, id: Option<&str>) -> Result<Arc<Elf>, Missing>;
}

/// The files of this machine. The vdso, which is not a file, is taken from this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileSystem;

impl Files for FileSystem {
    fn find(&self, path: &Path, id: Option<&str>) -> Result<Arc<Elf>, Missing> {
        match by_path(path, id) {
            Ok(elf) => Ok(elf),
            // A cache can have the recorded file by its id if the path has none or another one.
            Err(why) => id.and_then(debug_file::cached).map(Arc::new).ok_or(why),
        }
    }
}

fn by_path(path: &Path, id: Option<&str>) -> Result<Arc<Elf>, Missing> {
    let elf = if path == Path::new("[vdso]") {
        vdso().ok_or_else(|| Missing::NoFile { name: "[vdso]".to_owned() })?
    } else if path.is_absolute() {
        Arc::new(Elf::open(path)?)
    } else {
        return Err(Missing::NoFile { name: path.display().to_string() });
    };
    match id.filter(|id| !id.is_empty() && *id != elf.id()) {
        None => Ok(elf),
        Some(wanted) => Err(Missing::Changed {
            path: path.to_owned(),
            wanted: wanted.to_owned(),
            found: elf.id().to_owned(),
        }),
    }
}

/// The vdso, which the kernel maps into every process. It is the same in all of them.
fn vdso() -> Option<Arc<Elf>> {
    static VDSO: OnceLock<Option<Arc<Elf>>> = OnceLock::new();
    VDSO.get_or_init(|| read_vdso().map(Arc::new)).clone()
}

fn read_vdso() -> Option<Elf> {
    use std::os::unix::fs::FileExt;
    /// The vdso has two pages.
    const LARGEST: u64 = 1 << 20;
    let maps = std::fs::read("/proc/self/maps").ok()?;
    let area = crate::maps::parse(&maps).find(|area| area.path == Path::new("[vdso]"))?;
    let mut bytes = vec![0; usize::try_from((area.end - area.start).min(LARGEST)).ok()?];
    let memory = std::fs::File::open("/proc/self/mem").ok()?;
    memory.read_exact_at(&mut bytes, area.start).ok()?;
    Elf::from_bytes(bytes, "[vdso]").ok()
}
