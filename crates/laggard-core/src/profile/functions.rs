//! Grouping of frames into functions.
//!
//! Frames with the same kind, module and name are the same function; Python uses the file instead of
//! the module. All code of a library without a name or label counts as one function.

use crate::model::NONE;
use crate::model::profile::{Frame, FrameKind, Profile};
use rustc_hash::FxHashMap;

/// Functions and libraries of a profile.
#[derive(Clone, Debug, Default)]
pub struct Functions {
    /// Function of each frame.
    of_frame: Vec<u32>,
    /// A frame of each function.
    example: Vec<u32>,
    /// Library of each module.
    of_module: Vec<u32>,
    libraries: Vec<String>,
}

/// Library name of Python frames.
const PYTHON: &str = "[Python]";
/// Library name of code without a known module.
const UNKNOWN: &str = "[unknown]";

impl Functions {
    /// Groups the frames of a profile.
    pub fn new(profile: &Profile) -> Functions {
        let mut functions = Functions::default();
        let mut libraries: FxHashMap<&str, u32> = FxHashMap::default();
        for module in &profile.modules {
            let name = file_name(profile.texts.get(module.path));
            let name = if name.is_empty() { UNKNOWN } else { name };
            let number = *libraries.entry(name).or_insert_with(|| {
                functions.libraries.push(name.to_owned());
                functions.libraries.len() as u32 - 1
            });
            functions.of_module.push(number);
        }
        let mut known: FxHashMap<(FrameKind, u32, u32), u32> = FxHashMap::default();
        for (number, frame) in (0u32..).zip(&profile.frames) {
            let place = match frame.kind {
                FrameKind::Python => frame.file,
                // Modules of the same library in several processes are merged.
                _ => functions.of_module.get(frame.module as usize).copied().unwrap_or(NONE),
            };
            let function = *known.entry((frame.kind, place, frame.function)).or_insert_with(|| {
                functions.example.push(number);
                functions.example.len() as u32 - 1
            });
            functions.of_frame.push(function);
        }
        functions
    }

    /// Number of functions.
    pub fn len(&self) -> usize {
        self.example.len()
    }

    /// Whether there are no functions.
    pub fn is_empty(&self) -> bool {
        self.example.is_empty()
    }

    /// The function of a frame.
    pub fn of(&self, frame: u32) -> u32 {
        self.of_frame.get(frame as usize).copied().unwrap_or(NONE)
    }

    /// A frame of a function.
    pub fn example<'a>(&self, profile: &'a Profile, function: u32) -> Option<&'a Frame> {
        profile.frames.get(*self.example.get(function as usize)? as usize)
    }

    /// File name of a frame's library.
    pub fn library(&self, frame: &Frame) -> &str {
        match (frame.kind, self.of_module.get(frame.module as usize)) {
            (FrameKind::Mark, _) => "",
            (FrameKind::Python, _) => PYTHON,
            (_, Some(&library)) => &self.libraries[library as usize],
            (_, None) => UNKNOWN,
        }
    }

    /// The libraries.
    pub fn libraries(&self) -> &[String] {
        &self.libraries
    }

    /// Label of a function.
    pub fn label(&self, profile: &Profile, function: u32) -> String {
        let Some(frame) = self.example(profile, function) else { return UNKNOWN.to_owned() };
        let name = profile.texts.get(frame.function);
        match frame.kind {
            _ if name.is_empty() => match self.library(frame) {
                bracketed if bracketed.starts_with('[') => bracketed.to_owned(),
                library => format!("[{library}]"),
            },
            FrameKind::Python => format!("{name} ({})", short_path(profile.texts.get(frame.file))),
            FrameKind::Inlined => format!("{name} (inlined)"),
            _ => name.to_owned(),
        }
    }
}

/// Label of a frame: `f (app.py:3)` for Python, `f` for native code, and `[libx.so+0x12]` without a
/// symbol.
pub fn frame_label(profile: &Profile, frame: &Frame) -> String {
    let name = profile.texts.get(frame.function);
    if frame.kind == FrameKind::Python {
        return format!("{name} ({})", python_place(profile, frame));
    }
    if !name.is_empty() {
        return name.to_owned();
    }
    let library = file_name(profile.module_path(frame));
    let library = library.trim_start_matches('[').trim_end_matches(']');
    let library = if library.is_empty() { "unknown" } else { library };
    format!("[{library}+{:#x}]", frame.address)
}

/// Whether a frame has a symbol, not only the label of an unnamed function.
pub fn has_name(profile: &Profile, frame: &Frame) -> bool {
    frame.function != 0 && !is_address_label(profile.texts.get(frame.function))
}

/// Whether a name is the label of an unnamed function: `[libx.so+0x12]`.
pub fn is_address_label(name: &str) -> bool {
    let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let address = inner.and_then(|inner| inner.rsplit_once("+0x")).map(|(_, address)| address);
    address.is_some_and(|address| u64::from_str_radix(address, 16).is_ok())
}

/// Location of a Python frame: `app.py:3`, or `app.py` if the line is unknown.
pub fn python_place(profile: &Profile, frame: &Frame) -> String {
    let file = short_path(profile.texts.get(frame.file));
    if frame.line == 0 { file.to_owned() } else { format!("{file}:{}", frame.line) }
}

/// File name of a path; names in brackets are returned unchanged.
pub fn file_name(path: &str) -> &str {
    if path.starts_with('[') { path } else { path.rsplit('/').next().unwrap_or(path) }
}

/// Path of a Python file without the installation prefix.
pub fn short_path(path: &str) -> &str {
    for mark in ["/site-packages/", "/dist-packages/"] {
        if let Some((_, rest)) = path.rsplit_once(mark) {
            return rest;
        }
    }
    if let Some((_, rest)) = path.rsplit_once("/lib/python3.")
        && let Some((version, rest)) = rest.split_once('/')
        && version.chars().all(|c| c.is_ascii_alphanumeric())
    {
        return rest;
    }
    path
}
