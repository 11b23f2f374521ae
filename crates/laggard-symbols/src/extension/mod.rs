//! Names of functions in stripped Python extension modules.
//!
//! A stripped module exports only `PyInit_…`, but its data lists the functions that Python can
//! call: methods, attributes and special methods of types, functions of the module. [`derive_names`]
//! finds these records by the relocations of their pointers. [`tracebacks`] finds further names in
//! code of Cython. A name is that in Python without the module: `HashTable.get_item` for a method,
//! `value_count` for a function of the module.

mod image;
mod names;
mod records;
mod slots;
mod tracebacks;

use crate::elf::{ENDIAN, Header};
use crate::{Elf, Kind};
use image::{Image, Pointer};
use names::{Candidate, Source};
use object::elf;
use object::read::elf::{FileHeader, Sym};
use records::{
    ATTRIBUTE_SIZE, Attribute, Budget, Definition, METHOD_SIZE, MODULE_NAME, Method, TYPE_NAME,
};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Maximum number of records read. The largest modules have twenty thousand.
const MOST_RECORDS: usize = 1 << 18;

/// Functions of an extension module.
pub(crate) struct Extension {
    /// Functions whose names are known, by address.
    pub(crate) named: Vec<NamedFunction>,
    /// All functions in `.eh_frame`, by address.
    pub(crate) functions: Vec<Range<u64>>,
}

/// A function with a derived name.
pub(crate) struct NamedFunction {
    pub(crate) start: u64,
    /// `None` if `.eh_frame` does not list the function.
    pub(crate) end: Option<u64>,
    pub(crate) name: String,
}

/// Derives the names of a file's functions. `None` if it is not an extension module for x86-64.
pub(crate) fn derive_names(elf: &Elf) -> Option<Extension> {
    // Python programs at a fixed address have no relocations.
    let is_library = elf.is_x86_64() && elf.kind() == Kind::Shared;
    let stem = module_name(elf).filter(|_| is_library)?;
    let image = Image::new(elf, elf.function_ranges());
    let mut records = Records { image: &image, budget: Budget(MOST_RECORDS), names: vec![] };
    let classes = records.read_definitions();
    records.read_methods(&classes);
    let mut names = records.names;
    names.extend(tracebacks::find(&image, stem));
    let chosen = names::choose(names).into_iter();
    let end = |start| image.function(start).map(|range| range.end);
    let named =
        chosen.map(|(start, name)| NamedFunction { start, end: end(start), name }).collect();
    Some(Extension { named, functions: image.into_functions() })
}

/// The name of the module, from the function that Python calls to import it.
fn module_name(elf: &Elf) -> Option<&str> {
    let data = elf.bytes();
    let sections = Header::parse(data).ok()?.sections(ENDIAN, data).ok()?;
    let symbols = sections.symbols(ENDIAN, data, elf::SHT_DYNSYM).ok()?;
    let mut exported = symbols.iter().filter(|symbol| !symbol.is_undefined(ENDIAN));
    exported.find_map(|symbol| {
        let name = symbols.symbol_name(ENDIAN, symbol).ok()?.strip_prefix(b"PyInit_")?;
        std::str::from_utf8(name).ok()
    })
}

/// Class of each method record, by its address.
type Classes<'a> = FxHashMap<u64, &'a str>;

/// The names in the records of a module.
struct Records<'a, 'i> {
    image: &'i Image<'a>,
    budget: Budget,
    names: Vec<Candidate<'a>>,
}

impl<'a> Records<'a, '_> {
    /// Reads types and module definitions.
    fn read_definitions(&mut self) -> Classes<'a> {
        let mut classes = Classes::default();
        for (slot, _) in self.image.pointers() {
            let at = |offset| slot.checked_sub(offset);
            let (image, budget) = (self.image, &mut self.budget);
            let of_type = at(TYPE_NAME).and_then(|at| Definition::of_type(image, at, budget));
            if let Some(found) = of_type.or_else(|| Definition::of_spec(image, slot, budget)) {
                self.add_type(&found, &mut classes);
            } else if let Some(at) = at(MODULE_NAME)
                && let Some(found) = Definition::of_module(image, at, budget)
            {
                self.add_slots(&found);
            }
        }
        classes
    }

    /// Reads all method records. Those of Cython's functions are not in an array.
    fn read_methods(&mut self, classes: &Classes<'a>) {
        for (slot, _) in self.image.pointers() {
            if let Some(method) = Method::read(self.image, slot) {
                let class = classes.get(&slot).copied().unwrap_or_default();
                self.add(method.function, class, method.name, "", Source::Method);
            }
        }
    }

    fn add_type(&mut self, found: &Definition<'a>, classes: &mut Classes<'a>) {
        self.add_slots(found);
        for at in found.methods.into_iter().flat_map(|at| (at..).step_by(METHOD_SIZE as usize)) {
            let is_end = !matches!(self.image.pointer(at), Some(Pointer::To(_)));
            if is_end || self.budget.reserve().is_none() {
                break;
            }
            classes.entry(at).or_insert(found.name);
        }
        let attributes = found.attributes.into_iter();
        for at in attributes.flat_map(|at| (at..).step_by(ATTRIBUTE_SIZE as usize)) {
            let Some(attribute) =
                self.budget.reserve().and_then(|()| Attribute::read(self.image, at))
            else {
                break;
            };
            let functions = [(attribute.getter, "__get__"), (attribute.setter, "__set__")];
            for (function, suffix) in functions {
                let Some(function) = function else { continue };
                self.add(function, found.name, attribute.name, suffix, Source::Attribute);
            }
        }
    }

    fn add_slots(&mut self, found: &Definition<'a>) {
        for &(name, function) in &found.slots {
            self.add(function, found.name, name, "", Source::Slot);
        }
    }

    fn add(
        &mut self,
        start: u64,
        class: &'a str,
        name: &'a str,
        suffix: &'static str,
        source: Source,
    ) {
        if self.budget.reserve().is_some() {
            self.names.push(Candidate { start, source, class, name, suffix });
        }
    }
}
