//! Names of Python threads: `self._name` of the outermost frame, `Thread._bootstrap`.
//!
//! Before 3.14, CPython does not pass these names to the system. The offsets come from the headers
//! of 3.9 to 3.13 (x86-64, release builds).

use super::find::Python;
use super::memory::Remote;
use crate::sample::code::text;
use laggard_agent::python::Memory;
use laggard_agent::wire::PythonFrame;

/// Limits: bytes of a name, and attributes of an object.
const LONGEST_NAME: u64 = 1 << 12;
const MOST_ATTRIBUTES: u64 = 1000;

const OB_TYPE: u16 = 8;
const TYPE_BASIC_SIZE: u16 = 32;
const TYPE_DICT_OFFSET: u16 = 288;
const DICT_KEYS: u16 = 32;
const DICT_VALUES: u16 = 40;
/// Offsets of the words before an object that hold its dictionary, and in 3.11 its values.
const BEFORE_DICT: u64 = 24;
const BEFORE_VALUES: u64 = 32;

/// The name of the thread with these frames, innermost first; `None` if `threading` did not start
/// it.
pub(super) fn of_thread(python: &Python, memory: &Remote, chain: &[PythonFrame]) -> Option<String> {
    let names = Names { python, memory, minor: python.interpreter.layout.minor };
    let outermost = chain.iter().rfind(|frame| frame.code != 0)?;
    let code = python.interpreter.code(outermost.code, memory)?;
    let is_start = names.text(code.name)?.ends_with("_bootstrap")
        && names.text(code.file)?.ends_with("threading.py");
    if !is_start {
        return None;
    }
    let first_local = match names.minor {
        9 => 360,
        10 => 352,
        11..=13 => 72,
        _ => return None,
    };
    let thread = memory.field(outermost.position, first_local)?;
    names.text(names.attribute(thread, "_name")?)
}

struct Names<'a> {
    python: &'a Python,
    memory: &'a Remote,
    minor: u32,
}

/// Where the values of attributes are.
#[derive(Clone, Copy)]
enum Values {
    /// In an array, in the order of the keys.
    Array(u64),
    /// Beside the keys.
    Entries,
}

impl Names<'_> {
    /// The content of a `str`.
    fn text(&self, object: u64) -> Option<String> {
        let (start, length, width) = self.python.interpreter.text(object, self.memory)?;
        let bytes = self.memory.bytes(start, length.checked_mul(width)?, LONGEST_NAME)?;
        Some(text(&bytes, width as u32))
    }

    /// An attribute of an instance.
    fn attribute(&self, object: u64, name: &str) -> Option<u64> {
        let memory = self.memory;
        let class = memory.field(object, OB_TYPE)?;
        let in_dictionary = |dictionary: u64| {
            let keys = memory.field(dictionary, DICT_KEYS)?;
            let values = memory.field(dictionary, DICT_VALUES)?;
            let values = match values {
                0 => Values::Entries,
                values => Values::Array(values.wrapping_add(self.before_values())),
            };
            self.search(keys, values, name)
        };
        let shared_keys = || memory.field(class, self.cached_keys());
        match self.minor {
            ..=10 => {
                let offset = memory.field(class, TYPE_DICT_OFFSET)?;
                in_dictionary(memory.load(object.checked_add(offset)?)?)
            }
            11 => match memory.load(object.checked_sub(BEFORE_VALUES)?)? {
                0 => in_dictionary(memory.load(object.wrapping_sub(BEFORE_DICT))?),
                values => self.search(shared_keys()?, Values::Array(values), name),
            },
            // An odd word is the address of the values minus one.
            12 => match memory.load(object.checked_sub(BEFORE_DICT)?)? {
                word if word & 1 == 1 => {
                    self.search(shared_keys()?, Values::Array(word.wrapping_add(1)), name)
                }
                dictionary => in_dictionary(dictionary),
            },
            _ => match memory.load(object.checked_sub(BEFORE_DICT)?)? {
                0 => {
                    let size = memory.field(class, TYPE_BASIC_SIZE)?;
                    let values = object.checked_add(size)?.wrapping_add(self.before_values());
                    self.search(shared_keys()?, Values::Array(values), name)
                }
                dictionary => in_dictionary(dictionary),
            },
        }
    }

    /// Offset of the keys that instances of a class share.
    fn cached_keys(&self) -> u16 {
        if self.minor >= 12 { 880 } else { 872 }
    }

    /// Size of what precedes the values in their array.
    fn before_values(&self) -> u64 {
        if self.minor >= 13 { 8 } else { 0 }
    }

    /// The value of a key.
    fn search(&self, keys: u64, values: Values, name: &str) -> Option<u64> {
        let memory = self.memory;
        let (entries, count, size, key_at) = if self.minor >= 11 {
            let indexes = 1u64.checked_shl(memory.small(keys, 9, 8)? as u32)?;
            let has_hashes = memory.small(keys, 10, 8)? == 0;
            let (size, key_at) = if has_hashes { (24, 8) } else { (16, 0) };
            (keys.checked_add(32)?.checked_add(indexes)?, memory.field(keys, 24)?, size, key_at)
        } else {
            let slots = memory.field(keys, 8)?;
            let width = match slots {
                ..=0xff => 1,
                0x100..=0xffff => 2,
                _ => 4,
            };
            let indexes = slots.checked_mul(width)?;
            (keys.checked_add(40)?.checked_add(indexes)?, memory.field(keys, 32)?, 24, 8)
        };
        for number in 0..count.min(MOST_ATTRIBUTES) {
            let entry = entries.wrapping_add(number * size);
            let key = memory.load(entry.wrapping_add(key_at))?;
            if self.text(key).as_deref() == Some(name) {
                return match values {
                    Values::Array(start) => memory.load(start.wrapping_add(8 * number)),
                    Values::Entries => memory.load(entry.wrapping_add(key_at + 8)),
                };
            }
        }
        None
    }
}
