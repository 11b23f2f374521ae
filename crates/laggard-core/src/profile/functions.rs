//! Functions: frames that are one to a reader.
//!
//! Two frames are the same function when their kind, module and name agree; for Python the file
//! stands for the module. All unnamed code of a library counts as one.

use crate::model::NONE;
use crate::model::profile::{Frame, FrameKind, Profile};
use rustc_hash::FxHashMap;

/// The functions of a profile, and the libraries they are in.
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

/// Where Python's own frames are said to be.
const PYTHON: &str = "[Python]";
/// Where code of no known module is said to be.
const UNKNOWN: &str = "[unknown]";

impl Functions {
    /// Finds them.
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
                // Modules of one library in several processes are one.
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

    /// How many there are.
    pub fn len(&self) -> usize {
        self.example.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.example.is_empty()
    }

    /// The function of a frame.
    pub fn of(&self, frame: u32) -> u32 {
        self.of_frame.get(frame as usize).copied().unwrap_or(NONE)
    }

    /// Some frame of a function.
    pub fn example<'a>(&self, profile: &'a Profile, function: u32) -> Option<&'a Frame> {
        profile.frames.get(*self.example.get(function as usize)? as usize)
    }

    /// The library of a frame, by the last part of its path.
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

    /// A function as it is shown.
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

/// One frame as other programs are to show it: `f (app.py:3)` of Python, `f` of machine code, and
/// `[libx.so+0x12]` where the name is not known.
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

/// Where a frame of Python is: `app.py:3`, or `app.py` where the line is not known.
pub fn python_place(profile: &Profile, frame: &Frame) -> String {
    let file = short_path(profile.texts.get(frame.file));
    if frame.line == 0 { file.to_owned() } else { format!("{file}:{}", frame.line) }
}

/// The last part of a path; all of a name in brackets.
pub fn file_name(path: &str) -> &str {
    if path.starts_with('[') { path } else { path.rsplit('/').next().unwrap_or(path) }
}

/// The path of a Python file without where Python is installed.
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
