//! Folding of interpreter frames and inlined frames.
//!
//! A Python call adds about ten frames of the interpreter to the native stack. Trees and flame graphs
//! omit them. Time spent in the interpreter itself is kept, because the innermost frame is never
//! folded.

use super::file_name;
use crate::model::NONE;
use crate::model::profile::{Frame, FrameKind, Interner, Profile};

/// Name prefixes of interpreter functions that only dispatch calls.
const GLUE: [&str; 45] = [
    "py_trampoline_evaluator",
    "_PyEval_",
    "PyEval_",
    "_PyObject_Vectorcall",
    "PyObject_Vectorcall",
    "PyVectorcall_",
    "_PyVectorcall_",
    "_PyFunction_Vectorcall",
    "_PyFunction_FastCall",
    "function_code_fastcall",
    "_PyObject_MakeTpCall",
    "_PyObject_Call",
    "PyObject_Call",
    "_PyObject_FastCall",
    "object_vacall",
    "vectorcall_",
    "method_vectorcall",
    "cfunction_vectorcall_",
    "cfunction_call",
    "call_function",
    "do_call_core",
    "trace_call_function",
    "_PyStack_",
    "slot_tp_",
    "gen_send_ex",
    "gen_iternext",
    "_PyGen_",
    "Py_BytesMain",
    "Py_RunMain",
    "pymain_",
    "main",
    "PyRun_",
    "_PyRun_",
    "pyrun_",
    "run_mod",
    "run_eval_code_obj",
    "builtin_exec",
    "builtin___import__",
    "import_find_and_load",
    "import_name",
    "PyImport_",
    "_PyImport_",
    "thread_run",
    "pythread_wrapper",
    "t_bootstrap",
];

/// Functions that start programs and threads.
const START: [&str; 7] = [
    "_start",
    "__libc_start_main",
    "__libc_start_call_main",
    "__libc_start_main_impl",
    "clone",
    "clone3",
    "start_thread",
];

/// Folds interpreter frames in stacks that contain Python frames or share their start with such a
/// stack.
pub fn fold_interpreter(profile: &mut Profile) {
    let is_glue: Vec<bool> = profile.frames.iter().map(|frame| is_glue(profile, frame)).collect();
    if !is_glue.contains(&true) {
        return;
    }
    let with_python = with_python(profile);
    let old = std::mem::take(&mut profile.stacks);
    let mut interner = Interner::default();
    // New node of each old node as a caller and as the innermost frame.
    let (mut as_caller, mut as_leaf) = (vec![NONE; old.len()], vec![NONE; old.len()]);
    for (at, node) in old.iter().enumerate() {
        let parent = as_caller.get(node.parent as usize).copied().unwrap_or(NONE);
        let new = interner.node(profile, parent, node.frame);
        let folds = with_python[at] && is_glue.get(node.frame as usize) == Some(&true);
        as_leaf[at] = new;
        as_caller[at] = if folds { parent } else { new };
    }
    for sample in &mut profile.samples {
        sample.stack = as_leaf.get(sample.stack as usize).copied().unwrap_or(NONE);
    }
}

/// Replaces inlined frames by the function that they were inlined into, with the line of the call.
pub fn fold_inlined(profile: &mut Profile) {
    let old = std::mem::take(&mut profile.stacks);
    let mut interner = Interner::default();
    let mut numbers = vec![NONE; old.len()];
    for (at, node) in old.iter().enumerate() {
        let parent = numbers.get(node.parent as usize).copied().unwrap_or(NONE);
        let is_inlined = profile
            .frames
            .get(node.frame as usize)
            .is_some_and(|frame| frame.kind == FrameKind::Inlined);
        numbers[at] = if is_inlined { parent } else { interner.node(profile, parent, node.frame) };
    }
    for sample in &mut profile.samples {
        sample.stack = numbers.get(sample.stack as usize).copied().unwrap_or(NONE);
    }
}

/// For each node, whether its stack or a stack through it contains Python frames.
fn with_python(profile: &Profile) -> Vec<bool> {
    let is_python = |frame: u32| {
        profile.frames.get(frame as usize).is_some_and(|frame| frame.kind == FrameKind::Python)
    };
    let mut with: Vec<bool> = profile.stacks.iter().map(|node| is_python(node.frame)).collect();
    // Parents come before their children.
    for at in (0..with.len()).rev() {
        let parent = profile.stacks[at].parent as usize;
        if with[at] && parent < at {
            with[parent] = true;
        }
    }
    for at in 0..with.len() {
        let parent = profile.stacks[at].parent as usize;
        if parent < at && with[parent] {
            with[at] = true;
        }
    }
    with
}

/// Whether an interpreter function only dispatches calls.
pub(crate) fn is_dispatch(name: &str) -> bool {
    GLUE.iter().any(|glue| name.starts_with(glue))
}

fn is_glue(profile: &Profile, frame: &Frame) -> bool {
    if frame.kind == FrameKind::Python {
        // The import system is implemented in Python.
        return profile.texts.get(frame.file).starts_with("<frozen importlib._bootstrap");
    }
    if !matches!(frame.kind, FrameKind::Native | FrameKind::Inlined) {
        return false;
    }
    let name = profile.texts.get(frame.function);
    let library = file_name(profile.module_path(frame));
    let is_interpreter = library.starts_with("libpython") || library.starts_with("python");
    START.contains(&name) || is_interpreter && is_dispatch(name)
}
