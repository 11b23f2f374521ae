//! Finds the Python interpreter of a process: its version and the addresses of its objects.

use super::layout::Lists;
use super::memory::Remote;
use crate::error::Error;
use laggard_agent::python::{Addresses, Interpreter, Memory};
use laggard_symbols::{AddressSpace, Elf, Modules};
use object::{Object, ObjectSymbol};
use std::path::Path;

/// A Python interpreter in a process.
pub(super) struct Python {
    pub(super) interpreter: Interpreter,
    pub(super) lists: Lists,
    /// `_PyRuntime`.
    pub(super) runtime: u64,
}

/// Searches the files that a process maps for Python. Fails if it finds a Python whose frame layout
/// is not known.
pub(super) fn python(pid: u32, maps: &[u8], memory: &Remote) -> Result<Option<Python>, Error> {
    let (mut space, mut modules) = (AddressSpace::default(), Modules::default());
    space.refresh(maps, &mut modules);
    for mapping in space.mappings() {
        let module = mapping.module.and_then(|module| modules.get(module));
        let Some(elf) = module.and_then(|module| module.elf.as_ref()) else { continue };
        let [Some(runtime), Some(code_type), version] =
            symbols(elf, ["_PyRuntime", "PyCode_Type", "Py_Version"])
        else {
            continue;
        };
        let at = |svma: u64| svma.wrapping_add(mapping.bias);
        let minor = version
            .and_then(|version| memory.load(at(version)))
            .map(|word| (word >> 16 & 0xff) as u32)
            .or_else(|| minor_of(&mapping.area.path))
            .or_else(|| minor_of(&std::fs::read_link(format!("/proc/{pid}/exe")).ok()?));
        let Some(minor) = minor else {
            return Err(Error::UnknownPython { pid, version: "of unknown version".into() });
        };
        let (runtime, code_type) = (at(runtime), at(code_type));
        let addresses = Addresses { minor, code_type, runtime, ..Addresses::default() };
        let interpreter = Interpreter::remote(addresses, memory);
        let lists = Lists::of(minor, runtime, memory);
        let (Some(interpreter), Some(lists)) = (interpreter, lists) else {
            let version = format!("3.{minor}, which may be a free-threaded build");
            return Err(Error::UnknownPython { pid, version });
        };
        return Ok(Some(Python { interpreter, lists, runtime }));
    }
    Ok(None)
}

/// Addresses of dynamic symbols of any kind.
fn symbols<const N: usize>(elf: &Elf, names: [&str; N]) -> [Option<u64>; N] {
    let mut found = [None; N];
    let Ok(file) = object::File::parse(elf.bytes()) else { return found };
    for symbol in file.dynamic_symbols().filter(|symbol| symbol.is_definition()) {
        let Ok(name) = symbol.name() else { continue };
        if let Some(at) = names.iter().position(|wanted| *wanted == name) {
            found[at] = Some(symbol.address());
        }
    }
    found
}

/// The minor version in a file name: `libpython3.9.so.1.0`, `python3.10`.
fn minor_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    let (_, rest) = name.split_once("python3.")?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_parsed_from_file_names() {
        let minor = |name: &str| minor_of(Path::new(name));
        assert_eq!(minor("/usr/lib/libpython3.9.so.1.0"), Some(9));
        assert_eq!(minor("/usr/bin/python3.10"), Some(10));
        assert_eq!(minor("/usr/bin/python3"), None);
        assert_eq!(minor("/usr/bin/cat"), None);
    }
}
