//! Mapped files, shared by all processes.

use crate::maps::Area;
use crate::{Elf, FileSystem, Files};
use rustc_hash::FxHashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Number of a module in its [`Modules`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleIndex(pub u32);

/// A mapped file, or a pseudo file such as the vdso.
pub struct Module {
    /// The path, or a name in brackets.
    pub path: PathBuf,
    /// The file; `None` if it could not be read.
    pub elf: Option<Arc<Elf>>,
}

/// All modules, each once.
pub struct Modules {
    files: Box<dyn Files + Send + Sync>,
    all: Vec<Module>,
    numbers: FxHashMap<Key, ModuleIndex>,
}

/// Distinguishes a file from a later one at the same path.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    path: PathBuf,
    device: (u32, u32),
    inode: u64,
    is_deleted: bool,
    size: u64,
    modified: (i64, i64),
}

impl Default for Modules {
    fn default() -> Modules {
        Modules::new(Box::new(FileSystem))
    }
}

impl Modules {
    /// Creates an empty list. Files are found through `files`.
    pub fn new(files: Box<dyn Files + Send + Sync>) -> Modules {
        Modules { files, all: vec![], numbers: FxHashMap::default() }
    }

    /// The module with this number.
    pub fn get(&self, index: ModuleIndex) -> Option<&Module> {
        self.all.get(index.0 as usize)
    }

    /// Number of modules.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All modules, ordered by number.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (ModuleIndex, &Module)> {
        self.all.iter().enumerate().map(|(number, module)| (ModuleIndex(number as u32), module))
    }

    /// The number of the module in an area. Adds the module if needed. `None` for anonymous memory.
    pub fn of_area(&mut self, area: &Area) -> Option<ModuleIndex> {
        if area.path.as_os_str().is_empty() {
            return None;
        }
        let key = Key::new(area);
        if let Some(&number) = self.numbers.get(&key) {
            return Some(number);
        }
        // The path of a deleted file may now have another file.
        let elf = if area.is_deleted { None } else { self.files.find(&area.path, None).ok() };
        let number = ModuleIndex(self.all.len() as u32);
        self.all.push(Module { path: area.path.clone(), elf });
        self.numbers.insert(key, number);
        Some(number)
    }
}

impl std::fmt::Debug for Modules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.all.iter().map(|module| &module.path)).finish()
    }
}

impl Key {
    fn new(area: &Area) -> Key {
        let meta = match Path::is_absolute(&area.path) && !area.is_deleted {
            true => std::fs::metadata(&area.path).ok(),
            false => None,
        };
        Key {
            path: area.path.clone(),
            device: area.device,
            inode: area.inode,
            is_deleted: area.is_deleted,
            size: meta.as_ref().map_or(0, MetadataExt::size),
            modified: meta.as_ref().map_or((0, 0), |meta| (meta.mtime(), meta.mtime_nsec())),
        }
    }
}
