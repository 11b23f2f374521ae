//! Parses frame labels of formats that have no function tables.
//!
//! `f (app.py:3)` is a Python frame, `f (libx.so)` a native frame in a library, `f (f.c:12)` a
//! native frame with a line, and `[libx.so+0x12]` a frame without a symbol. The suffixes `_[k]`,
//! `_[i]` and `_[j]` mark kernel, inlined and JIT-compiled frames. Any other label is a function
//! name.

use laggard_core::model::NONE;
use laggard_core::model::profile::{Frame, FrameKind, Interner, Module, Profile};

/// Label of the mark between a worker and its caller.
const WORKER_MARK: &str = "worker thread";
/// Label of a sample without frames in our output.
pub(super) const NO_STACK: &str = "[no stack]";
/// Longer labels are truncated: no compiler generates such names.
const LONGEST: usize = 1 << 14;

/// Parses a label.
pub(super) fn frame(label: &[u8], profile: &mut Profile, interner: &mut Interner) -> Frame {
    let label = String::from_utf8_lossy(&label[..label.len().min(LONGEST)]);
    let mut made = Maker { profile, interner };
    made.bracketed(&label)
        .or_else(|| made.placed(&label))
        .unwrap_or_else(|| made.named(FrameKind::Native, &label))
}

/// The frame of a name with a separate file, which is a Python file, a source file or a library.
pub(super) fn frame_in(
    name: &str,
    file: &str,
    line: u32,
    profile: &mut Profile,
    interner: &mut Interner,
) -> Frame {
    if is_python(file, line) {
        let mut made = Maker { profile, interner }.named(FrameKind::Native, name);
        made.kind = FrameKind::Python;
        (made.file, made.line) = (profile.texts.add(file), line);
        return made;
    }
    let mut made = frame(name.as_bytes(), profile, interner);
    let is_module = line == 0 && (is_library(file) || file.starts_with('[') || !file.contains('.'));
    if made.kind == FrameKind::Mark || made.kind == FrameKind::Python {
        return made;
    }
    if is_module && made.module == NONE {
        made.module = module_number(file, profile, interner);
    } else if !is_module && made.file == 0 {
        (made.file, made.line) = (profile.texts.add(file), line);
    }
    if is_kernel(file) {
        made.kind = FrameKind::Kernel;
    }
    made
}

struct Maker<'a> {
    profile: &'a mut Profile,
    interner: &'a mut Interner,
}

impl Maker<'_> {
    fn named(&mut self, kind: FrameKind, name: &str) -> Frame {
        let (name, kind) = match name {
            WORKER_MARK => (name, FrameKind::Mark),
            _ => match name.get(name.len().saturating_sub(4)..) {
                Some("_[k]") => (&name[..name.len() - 4], FrameKind::Kernel),
                Some("_[i]") => (&name[..name.len() - 4], FrameKind::Inlined),
                Some("_[j]") => (&name[..name.len() - 4], kind),
                _ => (name, kind),
            },
        };
        let function = self.profile.texts.add(name);
        Frame { kind, module: NONE, address: 0, function, file: 0, line: 0 }
    }

    fn nameless(&mut self, module: &str, address: u64) -> Frame {
        let kind = if is_kernel(module) { FrameKind::Kernel } else { FrameKind::Native };
        let module = module_number(module, self.profile, self.interner);
        Frame { kind, module, address, function: 0, file: 0, line: 0 }
    }

    /// `[unknown]`, `[libx.so]` and `[libx.so+0x12]`.
    fn bracketed(&mut self, label: &str) -> Option<Frame> {
        let inner = label.strip_prefix('[')?.strip_suffix(']')?;
        if let Some((module, address)) = inner.rsplit_once("+0x") {
            let address = u64::from_str_radix(address, 16).ok()?;
            let module = match module {
                "unknown" => "",
                // Our writer removes the brackets of modules without a file.
                "kernel" | "vdso" | "vsyscall" | "heap" | "stack" | "anon" => {
                    &label[..=module.len()]
                }
                _ => module,
            };
            let bracketed = module.strip_prefix('[').map(|name| format!("[{name}]"));
            return Some(self.nameless(bracketed.as_deref().unwrap_or(module), address));
        }
        match inner {
            "unknown" => Some(self.nameless("", 0)),
            _ if inner.starts_with('[') || is_library(inner) => Some(self.nameless(inner, 0)),
            _ => None,
        }
    }

    /// `f (app.py:3)`, `f (app.py)`, `f (f.c:12)` and `f (libx.so)`.
    fn placed(&mut self, label: &str) -> Option<Frame> {
        let (name, place) = label.strip_suffix(')')?.rsplit_once(" (")?;
        let (file, line) = match place.rsplit_once(':') {
            Some((file, line)) if line.bytes().all(|byte| byte.is_ascii_digit()) => {
                (file, line.parse().ok()?)
            }
            _ => (place, 0),
        };
        if is_python(file, line) {
            let mut frame = self.named(FrameKind::Native, name);
            frame.kind = FrameKind::Python;
            (frame.file, frame.line) = (self.profile.texts.add(file), line);
            return Some(frame);
        }
        if line > 0 && !file.is_empty() && !file.contains(['(', ')']) {
            let mut frame = self.named(FrameKind::Native, name);
            (frame.file, frame.line) = (self.profile.texts.add(file), line);
            return Some(frame);
        }
        if !is_library(place) {
            return None;
        }
        // py-spy writes the process address if it has no symbol. It is useless here.
        if name.strip_prefix("0x").is_some_and(|hex| u64::from_str_radix(hex, 16).is_ok()) {
            return Some(self.nameless(place, 0));
        }
        let mut frame = self.named(FrameKind::Native, name);
        frame.module = module_number(place, self.profile, self.interner);
        Some(frame)
    }
}

/// The number of the module with this path; `NONE` if the path is empty.
pub(super) fn module_number(path: &str, profile: &mut Profile, interner: &mut Interner) -> u32 {
    if path.is_empty() {
        return NONE;
    }
    let path = profile.texts.add(path);
    interner.module(profile, Module { path, id: 0 })
}

/// Whether a name is that of a mark, not of a function.
pub(super) fn is_mark(name: &str) -> bool {
    name == WORKER_MARK
}

/// Whether a name is only an address, as written by our writers: `[libx.so+0x12]`.
pub(super) fn is_address(name: &str) -> bool {
    let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    inner
        .and_then(|inner| inner.rsplit_once("+0x"))
        .is_some_and(|(_, hex)| !hex.is_empty() && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Whether a module is the kernel or a kernel module.
pub(super) fn is_kernel(module: &str) -> bool {
    module == "[kernel]"
        || module.starts_with("[kernel.")
        || module.starts_with("[guest.kernel")
        || module.ends_with(".ko")
        || module.ends_with(".ko.xz")
        || module.ends_with(".ko.zst")
}

/// Whether a location in parentheses is a Python file, by its name, or Python code without a file.
pub(super) fn is_python(file: &str, line: u32) -> bool {
    let by_name = [".py", ".pyx", ".pyw", ".pxd", ".pyi"].iter().any(|end| file.ends_with(end));
    by_name || line > 0 && file.len() > 2 && file.starts_with('<') && file.ends_with('>')
}

/// Whether a name is that of a library or program, not of a type.
fn is_library(name: &str) -> bool {
    let is_path_like = !name.is_empty() && !name.contains([' ', '(', ')', ',', '&', '*']);
    is_path_like
        && (name.ends_with(".so")
            || name.contains(".so.")
            || name.ends_with(".dylib")
            || name.ends_with(".dll")
            || name.ends_with(".exe")
            || name.starts_with('/')
            || name.starts_with("python3")
            || matches!(name, "[vdso]" | "vdso"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use laggard_core::profile::frame_label;

    /// Expected: kind, module, address, function, file, line.
    fn check(label: &str, expected: (FrameKind, &str, u64, &str, &str, u32)) {
        let mut profile = Profile::default();
        let frame = frame(label.as_bytes(), &mut profile, &mut Interner::default());
        let texts = &profile.texts;
        let found = (
            frame.kind,
            profile.module_path(&frame),
            frame.address,
            texts.get(frame.function),
            texts.get(frame.file),
            frame.line,
        );
        assert_eq!(found, expected, "{label}");
    }

    #[test]
    fn parses_labels_of_all_kinds() {
        use FrameKind::{Inlined, Kernel, Mark, Native, Python};
        check("main", (Native, "", 0, "main", "", 0));
        check("run (app.py:3)", (Python, "", 0, "run", "app.py", 3));
        check("run (app.py)", (Python, "", 0, "run", "app.py", 0));
        check("<module> (<string>:1)", (Python, "", 0, "<module>", "<string>", 1));
        check("_load (<frozen importlib._bootstrap>:690)", {
            (Python, "", 0, "_load", "<frozen importlib._bootstrap>", 690)
        });
        check("dgemm (libopenblas.so)", (Native, "libopenblas.so", 0, "dgemm", "", 0));
        check("f (numpy/core/x.so)", (Native, "numpy/core/x.so", 0, "f", "", 0));
        check("0x7f92 (libc.so.6)", (Native, "libc.so.6", 0, "", "", 0));
        check("f (src/f.c:12)", (Native, "", 0, "f", "src/f.c", 12));
        check("do_fork_[k]", (Kernel, "", 0, "do_fork", "", 0));
        check("push_[i]", (Inlined, "", 0, "push", "", 0));
        check("Foo.bar_[j]", (Native, "", 0, "Foo.bar", "", 0));
        check("[unknown]", (Native, "", 0, "", "", 0));
        check("[unknown+0x12]", (Native, "", 0x12, "", "", 0));
        check("[liba.so+0x1f]", (Native, "liba.so", 0x1f, "", "", 0));
        check("[app+0x1f]", (Native, "app", 0x1f, "", "", 0));
        check("[kernel+0x1f]", (Kernel, "[kernel]", 0x1f, "", "", 0));
        check("[vdso+0x9]", (Native, "[vdso]", 9, "", "", 0));
        check("[libc-2.31.so]", (Native, "libc-2.31.so", 0, "", "", 0));
        check("[[kernel.kallsyms]]", (Kernel, "[kernel.kallsyms]", 0, "", "", 0));
        check("worker thread", (Mark, "", 0, "worker thread", "", 0));
        check("[idle]", (Native, "", 0, "[idle]", "", 0));
        check("std::function<void (int)>", (Native, "", 0, "std::function<void (int)>", "", 0));
        check("operator() (int, char)", (Native, "", 0, "operator() (int, char)", "", 0));
        check("f (.cold)", (Native, "", 0, "f (.cold)", "", 0));
        check("_[k]", (Kernel, "", 0, "", "", 0));
        check(" (.py:1)", (Python, "", 0, "", ".py", 1));
        check("é)", (Native, "", 0, "é)", "", 0));
        check("a]é", (Native, "", 0, "a]é", "", 0));
    }

    #[test]
    fn round_trips_labels_of_our_writers() {
        for label in ["run (app.py:3)", "[liba.so+0x1f]", "[kernel+0x1f]", "[unknown+0x3]", "main"]
        {
            let mut profile = Profile::default();
            let frame = frame(label.as_bytes(), &mut profile, &mut Interner::default());
            assert_eq!(frame_label(&profile, &frame), label);
        }
    }
}
