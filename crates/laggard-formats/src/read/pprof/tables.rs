//! The tables of a file: strings, modules, functions and locations.

use super::wire::{Fields, each_number};
use crate::read::label::{is_address, is_kernel, is_mark, is_python};
use laggard_core::model::NONE;
use laggard_core::model::profile::{Frame, FrameKind, Interner, Module, Profile};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// Maximum number of functions inlined at one location.
const MOST_INLINED: usize = 1 << 10;
/// Position-independent objects are mapped above this address, and their addresses are relative to
/// the mapping. Fixed-position programs are mapped below it.
const MOVABLE: u64 = 1 << 40;

/// The fields of a file, grouped by kind.
#[derive(Default)]
pub(super) struct File<'a> {
    /// Type and unit of each value.
    pub(super) types: Vec<(u64, u64)>,
    pub(super) samples: Vec<&'a [u8]>,
    mappings: Vec<&'a [u8]>,
    locations: Vec<&'a [u8]>,
    functions: Vec<&'a [u8]>,
    texts: Vec<&'a [u8]>,
    pub(super) time_ns: u64,
    pub(super) duration_ns: u64,
    pub(super) period_type: (u64, u64),
    pub(super) period: u64,
    pub(super) comments: Vec<u64>,
    pub(super) default_type: u64,
    /// Whether the file ends within a field.
    pub(super) is_cut: bool,
}

impl<'a> File<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> File<'a> {
        const MOST_COMMENTS: usize = 100;
        let mut file = File::default();
        let mut fields = Fields::of(bytes);
        for (field, value) in fields.by_ref() {
            match field {
                1 => file.types.push(value_type(value.block())),
                2 => file.samples.push(value.block()),
                3 => file.mappings.push(value.block()),
                4 => file.locations.push(value.block()),
                5 => file.functions.push(value.block()),
                6 => file.texts.push(value.block()),
                9 => file.time_ns = value.number(),
                10 => file.duration_ns = value.number(),
                11 => file.period_type = value_type(value.block()),
                12 => file.period = value.number(),
                13 => each_number(value, |comment| {
                    if file.comments.len() < MOST_COMMENTS {
                        file.comments.push(comment);
                    }
                }),
                14 => file.default_type = value.number(),
                _ => {}
            }
        }
        file.is_cut = fields.is_cut;
        file
    }

    pub(super) fn text(&self, number: u64) -> Cow<'a, str> {
        let text = usize::try_from(number).ok().and_then(|number| self.texts.get(number));
        String::from_utf8_lossy(text.copied().unwrap_or_default())
    }
}

fn value_type(message: &[u8]) -> (u64, u64) {
    let mut read = (0, 0);
    for (field, value) in Fields::of(message) {
        match field {
            1 => read.0 = value.number(),
            2 => read.1 = value.number(),
            _ => {}
        }
    }
    read
}

/// Frame numbers by location, innermost first.
pub(super) struct Frames {
    /// Range of each location in `all`.
    places: FxHashMap<u64, (usize, usize)>,
    all: Vec<u32>,
    /// Number of references to missing functions.
    pub(super) lost: u64,
}

/// A mapped module.
#[derive(Clone, Copy)]
struct Mapping {
    module: u32,
    is_kernel: bool,
    /// Subtracted from an address.
    start: u64,
    /// Then added to it.
    offset: u64,
}

/// Name and file, as texts of the profile.
type Function = (u32, u32);

impl Frames {
    pub(super) fn of(file: &File, profile: &mut Profile, interner: &mut Interner) -> Frames {
        let mappings = mappings(file, profile, interner);
        let functions = functions(file, profile);
        let mut frames = Frames { places: FxHashMap::default(), all: vec![], lost: 0 };
        for location in &file.locations {
            let (mut id, mut mapping, mut address) = (0, 0, 0);
            let mut lines: Vec<(u64, u64)> = vec![];
            for (field, value) in Fields::of(location) {
                match field {
                    1 => id = value.number(),
                    2 => mapping = value.number(),
                    3 => address = value.number(),
                    4 if lines.len() < MOST_INLINED => lines.push(value_type(value.block())),
                    _ => {}
                }
            }
            let mapping = mappings.get(&mapping);
            if let Some(Mapping { start, offset, .. }) = mapping {
                address = address.wrapping_sub(*start).wrapping_add(*offset);
            }
            let plain = Frame {
                kind: match mapping {
                    Some(mapping) if mapping.is_kernel => FrameKind::Kernel,
                    _ => FrameKind::Native,
                },
                module: mapping.map_or(NONE, |mapping| mapping.module),
                address,
                function: 0,
                file: 0,
                line: 0,
            };
            let start = frames.all.len();
            for (number, (function, line)) in lines.iter().enumerate() {
                let found = functions.get(function);
                frames.lost += u64::from(found.is_none());
                let (function, source) = found.copied().unwrap_or_default();
                let line = u32::try_from(*line).unwrap_or(0);
                let mut frame = Frame { function, file: source, line, ..plain };
                if is_python(profile.texts.get(source), line) {
                    (frame.kind, frame.module, frame.address) = (FrameKind::Python, NONE, 0);
                } else if number + 1 < lines.len() && frame.kind == FrameKind::Native {
                    frame.kind = FrameKind::Inlined;
                } else if mapping.is_none() && is_mark(profile.texts.get(function)) {
                    frame.kind = FrameKind::Mark;
                } else if is_address(profile.texts.get(function)) {
                    frame.function = 0;
                }
                frames.all.push(interner.frame(profile, frame));
            }
            if lines.is_empty() {
                frames.all.push(interner.frame(profile, plain));
            }
            frames.places.insert(id, (start, frames.all.len()));
        }
        frames
    }

    /// The frames of a location, innermost first.
    pub(super) fn of_location(&self, id: u64) -> Option<&[u32]> {
        let (start, end) = *self.places.get(&id)?;
        self.all.get(start..end)
    }
}

fn mappings(
    file: &File,
    profile: &mut Profile,
    interner: &mut Interner,
) -> FxHashMap<u64, Mapping> {
    let mut mappings = FxHashMap::default();
    for message in &file.mappings {
        let (mut id, mut start, mut offset, mut path, mut build_id) = (0, 0, 0, 0, 0);
        for (field, value) in Fields::of(message) {
            match field {
                1 => id = value.number(),
                2 => start = value.number(),
                4 => offset = value.number(),
                5 => path = value.number(),
                6 => build_id = value.number(),
                _ => {}
            }
        }
        let path = file.text(path);
        let is_movable = start >= MOVABLE && !is_kernel(&path);
        let module = match path.is_empty() {
            true => NONE,
            false => {
                let id = profile.texts.add(&file.text(build_id));
                let path = profile.texts.add(&path);
                interner.module(profile, Module { path, id })
            }
        };
        let (start, offset) = if is_movable { (start, offset) } else { (0, 0) };
        let is_kernel = is_kernel(&path);
        mappings.insert(id, Mapping { module, is_kernel, start, offset });
    }
    mappings
}

fn functions(file: &File, profile: &mut Profile) -> FxHashMap<u64, Function> {
    let mut functions = FxHashMap::default();
    for message in &file.functions {
        let (mut id, mut name, mut system_name, mut source) = (0, 0, 0, 0);
        for (field, value) in Fields::of(message) {
            match field {
                1 => id = value.number(),
                2 => name = value.number(),
                3 => system_name = value.number(),
                4 => source = value.number(),
                _ => {}
            }
        }
        let name = match file.text(name) {
            empty if empty.is_empty() => file.text(system_name),
            name => name,
        };
        let function = (profile.texts.add(&name), profile.texts.add(&file.text(source)));
        functions.insert(id, function);
    }
    functions
}
