//! Records that name C functions for Python: methods, attributes, module definitions and types.
//!
//! Records are read at any address. Every field is checked, because an address can be arbitrary.

use super::image::{Image, Pointer};
use super::slots::{SLOTS, TABLES, Table, slot_of};

/// Size of a `PyMethodDef`.
pub(super) const METHOD_SIZE: u64 = 32;
/// Size of a `PyGetSetDef`.
pub(super) const ATTRIBUTE_SIZE: u64 = 40;
/// Offset of the name in a `PyTypeObject`.
pub(super) const TYPE_NAME: u64 = 24;
/// Offset of the name in a `PyModuleDef`.
pub(super) const MODULE_NAME: u64 = 40;

/// Maximum size of an instance. Larger values are not sizes.
const LARGEST_INSTANCE: u64 = 1 << 24;
/// Maximum number of slots in an array.
const MOST_SLOTS: u64 = 256;
/// Offset of the last field of a `PyTypeObject` that every static type initializes.
const LAST_CERTAIN: u16 = 320;

/// Number of records and slots that may still be read. Limits the time on hostile files.
pub(super) struct Budget(pub(super) usize);

/// A `PyMethodDef`.
pub(super) struct Method<'a> {
    pub(super) name: &'a str,
    pub(super) function: u64,
}

/// A `PyGetSetDef`.
pub(super) struct Attribute<'a> {
    pub(super) name: &'a str,
    pub(super) getter: Option<u64>,
    pub(super) setter: Option<u64>,
}

/// A `PyTypeObject`, `PyType_Spec` or `PyModuleDef`.
pub(super) struct Definition<'a> {
    /// The last component of its dotted name.
    pub(super) name: &'a str,
    /// Names of special methods, and their functions.
    pub(super) slots: Vec<(&'static str, u64)>,
    /// Address of the array of methods.
    pub(super) methods: Option<u64>,
    /// Address of the array of attributes.
    pub(super) attributes: Option<u64>,
}

impl Budget {
    /// Reserves one record. `None` if too many were read.
    pub(super) fn reserve(&mut self) -> Option<()> {
        self.0 = self.0.checked_sub(1)?;
        Some(())
    }
}

impl<'a> Method<'a> {
    pub(super) fn read(image: &Image<'a>, at: u64) -> Option<Method<'a>> {
        image.number(at.checked_add(16)?).filter(|flags| is_convention(*flags))?;
        let function = function(image, at + 8)??;
        image.pointer(at.checked_add(24)?)?;
        Some(Method { name: simple_name(image, at)?, function })
    }
}

impl<'a> Attribute<'a> {
    pub(super) fn read(image: &Image<'a>, at: u64) -> Option<Attribute<'a>> {
        let getter = function(image, at.checked_add(8)?)?;
        let setter = function(image, at.checked_add(16)?)?;
        Some(Attribute { name: simple_name(image, at)?, getter, setter })
    }
}

impl<'a> Definition<'a> {
    fn new(image: &Image<'a>, name_at: u64) -> Option<Definition<'a>> {
        let Pointer::To(name) = image.pointer(name_at)? else { return None };
        let name = image.name(name)?.rsplit('.').next()?;
        Some(Definition { name, slots: vec![], methods: None, attributes: None })
    }

    fn is_used(&self) -> bool {
        !self.slots.is_empty() || self.methods.is_some() || self.attributes.is_some()
    }

    /// Reads a `PyTypeObject`.
    pub(super) fn of_type(
        image: &Image<'a>,
        at: u64,
        budget: &mut Budget,
    ) -> Option<Definition<'a>> {
        at.checked_add(u64::from(u16::MAX))?;
        let small = |offset: u64, most: u64| image.number(at + offset).is_some_and(|n| n <= most);
        let is_plausible = is_object(image, at)
            && small(16, 0)
            && [32, 40, 56].into_iter().all(|size| small(size, LARGEST_INSTANCE))
            && small(168, u64::from(u32::MAX));
        if !is_plausible {
            return None;
        }
        budget.reserve()?;
        let mut tables = vec![(at, Table::Type)];
        for (offset, table) in TABLES {
            tables.extend(data(image, at + offset)?.map(|at| (at, table)));
        }
        let mut slots = vec![];
        for slot in &SLOTS {
            let Some((start, table)) = tables.iter().find(|(_, table)| *table == slot.table) else {
                continue;
            };
            let found = start.checked_add(slot.offset.into()).and_then(|at| function(image, at));
            if found.is_none() && *table == Table::Type && slot.offset <= LAST_CERTAIN {
                return None;
            }
            slots.extend(found.flatten().map(|function| (slot.name, function)));
        }
        let (methods, attributes) = (data(image, at + 232)?, data(image, at + 248)?);
        let definition = Definition::new(image, at + TYPE_NAME)?;
        Some(Definition { slots, methods, attributes, ..definition }).filter(Definition::is_used)
    }

    /// Reads a `PyType_Spec`.
    pub(super) fn of_spec(
        image: &Image<'a>,
        at: u64,
        budget: &mut Budget,
    ) -> Option<Definition<'a>> {
        const METHODS: u64 = 64;
        const ATTRIBUTES: u64 = 73;
        const LARGEST_ID: u64 = 128;
        // The basic size is negative if it is relative to that of the base type.
        let sizes = image.number(at.checked_add(8)?)?;
        let flags = image.number(at.checked_add(16)?)?;
        let is_plausible = u64::from((sizes as u32 as i32).unsigned_abs()) <= LARGEST_INSTANCE
            && sizes >> 32 <= LARGEST_INSTANCE
            && flags <= u64::from(u32::MAX);
        let Pointer::To(slots) = image.pointer(at.checked_add(24)?).filter(|_| is_plausible)?
        else {
            return None;
        };
        let mut definition = Definition::new(image, at)?;
        for number in 0..MOST_SLOTS {
            budget.reserve()?;
            let at = slots.checked_add(16 * number)?;
            let id = image.number(at)?;
            match id {
                0 => break,
                METHODS => definition.methods = data(image, at.checked_add(8)?)?,
                ATTRIBUTES => definition.attributes = data(image, at.checked_add(8)?)?,
                _ if id > LARGEST_ID => return None,
                _ => {
                    let function = || function(image, at.checked_add(8)?)?;
                    let slot = slot_of(id).and_then(|slot| Some((slot.name, function()?)));
                    definition.slots.extend(slot);
                }
            }
        }
        Some(definition).filter(Definition::is_used)
    }

    /// Reads a `PyModuleDef`.
    pub(super) fn of_module(
        image: &Image<'a>,
        at: u64,
        budget: &mut Budget,
    ) -> Option<Definition<'a>> {
        const NAMES: [(u64, &str); 3] = [(80, "m_traverse"), (88, "m_clear"), (96, "m_free")];
        at.checked_add(256)?;
        // -1 for modules without sub-interpreters.
        let size = image.number(at + 56)?.wrapping_add(1);
        if !is_object(image, at) || size > LARGEST_INSTANCE {
            return None;
        }
        let mut definition = Definition::new(image, at + MODULE_NAME)?;
        definition.methods = data(image, at + 64)?;
        for (offset, name) in NAMES {
            definition.slots.extend(function(image, at + offset)?.map(|function| (name, function)));
        }
        let slots = data(image, at + 72)?;
        for at in slots.into_iter().flat_map(|at| (at..).step_by(16)) {
            budget.reserve()?;
            let name = match image.number(at)? {
                0 => break,
                1 => "Py_mod_create",
                2 => "Py_mod_exec",
                _ => continue,
            };
            let function = function(image, at.checked_add(8)?)?;
            definition.slots.extend(function.map(|function| (name, function)));
        }
        Some(definition).filter(Definition::is_used)
    }
}

/// Whether the header of a static object is at an address: a reference count and a type, which is
/// often set at run time. Free-threaded Python has a longer header, whose local reference count is
/// before this address; the fields after the header are the same.
fn is_object(image: &Image<'_>, at: u64) -> bool {
    let is_counted = |count: u64| count as u32 > 0;
    let local = || image.number(at.checked_sub(8)?).map(|word| word >> 32);
    image.pointer(at + 8).is_some()
        && image
            .number(at)
            .is_some_and(|count| is_counted(count) || count == 0 && local().is_some_and(is_counted))
}

/// Whether flags of a method are a calling convention.
fn is_convention(flags: u64) -> bool {
    const CLASS: u64 = 0x10;
    const STATIC: u64 = 0x20;
    const COEXIST: u64 = 0x40;
    /// `VARARGS`, `VARARGS | KEYWORDS`, `NOARGS`, `O`, `FASTCALL`, `FASTCALL | KEYWORDS`, and
    /// `METHOD | FASTCALL | KEYWORDS`.
    const CONVENTIONS: [u64; 7] = [0x1, 0x3, 0x4, 0x8, 0x80, 0x82, 0x282];
    CONVENTIONS.contains(&(flags & !(CLASS | STATIC | COEXIST)))
        && flags & (CLASS | STATIC) != CLASS | STATIC
}

/// The name of a method or attribute.
fn simple_name<'a>(image: &Image<'a>, at: u64) -> Option<&'a str> {
    let Pointer::To(name) = image.pointer(at)? else { return None };
    image.name(name).filter(|name| !name.contains('.'))
}

/// The function of this library that a pointer refers to, if it is not null. `None` if the word is
/// not a pointer to a function.
fn function(image: &Image<'_>, at: u64) -> Option<Option<u64>> {
    match image.pointer(at)? {
        Pointer::To(start) => image.is_function(start).then_some(Some(start)),
        Pointer::Null | Pointer::Outside => Some(None),
    }
}

/// The data of this library that a pointer refers to, if it is not null. `None` if the word is not
/// a pointer to data.
fn data(image: &Image<'_>, at: u64) -> Option<Option<u64>> {
    match image.pointer(at)? {
        Pointer::To(start) => image.is_data(start).then_some(Some(start)),
        Pointer::Null | Pointer::Outside => Some(None),
    }
}
