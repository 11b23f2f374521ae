//! Converts tables of a thread, or shared tables, to frames and stacks.

use super::file::TablesOf;
use crate::read::json::Row;
use crate::read::label;
use laggard_core::model::NONE;
use laggard_core::model::profile::{Frame, FrameKind, Interner, Profile};

/// Maximum depth of a stack. Innermost frames beyond it are skipped.
const DEEPEST: u32 = 1 << 14;

/// The tables of a thread, and the shared tables as a fallback.
pub(super) struct Tables<'a> {
    pub(super) own: &'a TablesOf,
    pub(super) shared: Option<&'a TablesOf>,
    /// Names of the frame categories.
    pub(super) categories: &'a [&'a str],
}

/// Nodes by row of the stack table.
pub(super) struct Stacks {
    pub(super) nodes: Vec<u32>,
    /// Number of invalid references.
    pub(super) lost: u64,
}

impl<'a> Tables<'a> {
    fn table<T>(&self, of: impl Fn(&'a TablesOf) -> Option<&'a T>) -> Option<&'a T> {
        of(self.own).or_else(|| self.shared.and_then(of))
    }

    /// Reads all stacks. `libraries` has the module number of each library.
    pub(super) fn stacks(
        &self,
        libraries: &[u32],
        profile: &mut Profile,
        interner: &mut Interner,
    ) -> Stacks {
        let frames = self.frames(libraries, profile, interner);
        let mut stacks = Stacks { nodes: vec![], lost: 0 };
        let Some(table) = self.table(|tables| tables.stacks.as_ref()) else { return stacks };
        let mut depths: Vec<u32> = vec![];
        for (at, frame) in table.frame.iter().enumerate() {
            let row = value(&table.prefix, at);
            // Callers precede their callees.
            let parent = stacks.nodes.get(row as usize).copied();
            stacks.lost += u64::from(parent.is_none() && row != NONE);
            let parent = parent.unwrap_or(NONE);
            let depth = depths.get(row as usize).map_or(0, |depth| depth + 1);
            let node = match frames.get(frame.0 as usize) {
                Some(frame) if depth < DEEPEST => interner.node(profile, parent, *frame),
                _ => {
                    stacks.lost += 1;
                    parent
                }
            };
            stacks.nodes.push(node);
            depths.push(depth.min(DEEPEST));
        }
        stacks
    }

    fn frames(
        &self,
        libraries: &[u32],
        profile: &mut Profile,
        interner: &mut Interner,
    ) -> Vec<u32> {
        let Some(frames) = self.table(|tables| tables.frames.as_ref()) else { return vec![] };
        let functions = self.table(|tables| tables.functions.as_ref());
        let resources = self.table(|tables| tables.resources.as_ref());
        let sources = self.table(|tables| tables.sources.as_ref());
        let strings = self.table(|tables| tables.strings.as_ref());
        let text = |row: u32| {
            let text = strings.and_then(|strings| strings.get(row as usize));
            text.map_or("", String::as_str)
        };
        let mut numbers = Vec::with_capacity(frames.func.len());
        for (at, function) in frames.func.iter().enumerate() {
            let of = |column: Option<&[Row]>| {
                column.map_or(NONE, |column| value(column, function.0 as usize))
            };
            let name = text(of(functions.map(|functions| &functions.name[..])));
            let file = match of(functions.map(|functions| &functions.file_name[..])) {
                NONE => {
                    let source = of(functions.map(|functions| &functions.source[..]));
                    sources.map_or("", |sources| text(value(&sources.filename, source as usize)))
                }
                row => text(row),
            };
            let resource = of(functions.map(|functions| &functions.resource[..]));
            let library = resources.map_or(NONE, |table| value(&table.lib, resource as usize));
            let category = value(&frames.category, at);
            let address = frames.address.get(at).map_or(-1.0, |address| address.0);
            let depth = frames.inline_depth.get(at).map_or(0.0, |depth| depth.0);
            let line = value(&frames.line, at);
            let place = Place {
                name,
                file,
                line: if line == NONE { 0 } else { line },
                module: libraries.get(library as usize).copied().unwrap_or(NONE),
                address: if address >= 0.0 { address as u64 } else { 0 },
                is_inlined: depth > 0.0,
                category: self.categories.get(category as usize).copied().unwrap_or_default(),
            };
            let frame = place.frame(profile, interner);
            numbers.push(interner.frame(profile, frame));
        }
        numbers
    }
}

fn value(column: &[Row], at: usize) -> u32 {
    column.get(at).map_or(NONE, |row| row.0)
}

/// The properties of a frame.
struct Place<'a> {
    name: &'a str,
    file: &'a str,
    line: u32,
    module: u32,
    address: u64,
    is_inlined: bool,
    category: &'a str,
}

impl Place<'_> {
    fn frame(&self, profile: &mut Profile, interner: &mut Interner) -> Frame {
        let Place { name, file, line, module, address, .. } = *self;
        let is_python =
            label::is_python(file, line) || self.category == "Python" && !file.is_empty();
        if is_python {
            let (function, file) = (profile.texts.add(name), profile.texts.add(file));
            let kind = FrameKind::Python;
            return Frame { kind, module: NONE, address: 0, function, file, line };
        }
        // Without a library, the name can contain all information.
        if module == NONE && file.is_empty() {
            let mut frame = label::frame(name.as_bytes(), profile, interner);
            if self.category == "Kernel" {
                frame.kind = FrameKind::Kernel;
            }
            return frame;
        }
        let path = profile.modules.get(module as usize).map(|module| module.path);
        let is_kernel = path.is_some_and(|path| label::is_kernel(profile.texts.get(path)));
        let kind = match self.category {
            "Kernel" => FrameKind::Kernel,
            _ if is_kernel => FrameKind::Kernel,
            _ if self.is_inlined => FrameKind::Inlined,
            _ => FrameKind::Native,
        };
        let file = profile.texts.add(file);
        let mut frame = Frame { kind, module, address, function: 0, file, line };
        // Frames without a symbol have an address as name: `0x12` in samply, `[libx.so+0x12]` in
        // laggard.
        let hex = match name.strip_suffix(']') {
            Some(inner) if label::is_address(name) => inner.rsplit_once("+0x").map(|(_, hex)| hex),
            _ => name.strip_prefix("0x"),
        };
        match hex.and_then(|hex| u64::from_str_radix(hex, 16).ok()) {
            Some(said) if address == 0 => frame.address = said,
            Some(_) => {}
            None => frame.function = profile.texts.add(name),
        }
        frame
    }
}
