//! Names of Python threads, read when a thread is started.
//!
//! Before 3.14, CPython does not pass the name of a `threading.Thread` to the system. The name is
//! set when the object is created, and `Thread.start` calls `pthread_create` while it holds the
//! GIL. At this moment, the interpreter's own functions can read it: no layout of objects has to be
//! known, and the thread is named before its first sample. Renaming a thread later is not detected.

use crate::python::{Interpreter, Memory};
use crate::ring::Ring;
use crate::sample::{Guarded, find_function};
use crate::sys;
use crate::wire::{self, PythonFrame, kind, sample_flags};

/// Maximum length of a name in bytes.
const LONGEST: usize = 80;

/// The name of a thread; empty if it has none.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct ThreadName {
    length: usize,
    bytes: [u8; LONGEST],
}

type Object = *mut u8;

/// Functions of the interpreter.
struct Functions {
    locals: unsafe extern "C" fn() -> Object,
    item: unsafe extern "C" fn(Object, *const u8) -> Object,
    attribute: unsafe extern "C" fn(Object, *const u8) -> Object,
    text: unsafe extern "C" fn(Object, *mut isize) -> *const u8,
    release: unsafe extern "C" fn(Object),
    clear_error: unsafe extern "C" fn(),
}

impl Functions {
    fn find() -> Option<Functions> {
        let find = |name: &[u8]| find_function(name, false);
        // SAFETY: the functions have these types in all versions of Python 3.
        unsafe {
            Some(Functions {
                locals: core::mem::transmute::<u64, unsafe extern "C" fn() -> Object>(find(
                    b"PyEval_GetLocals",
                )?),
                item: core::mem::transmute::<u64, unsafe extern "C" fn(Object, *const u8) -> Object>(
                    find(b"PyDict_GetItemString")?,
                ),
                attribute: core::mem::transmute::<
                    u64,
                    unsafe extern "C" fn(Object, *const u8) -> Object,
                >(find(b"PyObject_GetAttrString")?),
                text: core::mem::transmute::<
                    u64,
                    unsafe extern "C" fn(Object, *mut isize) -> *const u8,
                >(find(b"PyUnicode_AsUTF8AndSize")?),
                release: core::mem::transmute::<u64, unsafe extern "C" fn(Object)>(find(
                    b"Py_DecRef",
                )?),
                clear_error: core::mem::transmute::<u64, unsafe extern "C" fn()>(find(
                    b"PyErr_Clear",
                )?),
            })
        }
    }
}

impl ThreadName {
    /// The name of the thread that the calling thread starts now with `Thread.start`.
    ///
    /// # Safety
    /// Must be called in a wrapper of `pthread_create`, not in a signal handler.
    pub(crate) unsafe fn of_new_thread(&mut self, python: &Interpreter) {
        // SAFETY: the calling thread runs `Thread.start` and holds the GIL, so it may use the
        // interpreter.
        unsafe {
            if !is_in_start(python) {
                return;
            }
            let Some(functions) = Functions::find() else { return };
            let locals = (functions.locals)();
            if locals.is_null() {
                return (functions.clear_error)();
            }
            let thread = (functions.item)(locals, c"self".as_ptr().cast());
            if thread.is_null() {
                return;
            }
            let name = (functions.attribute)(thread, c"_name".as_ptr().cast());
            if name.is_null() {
                return (functions.clear_error)();
            }
            let mut length = 0;
            let text = (functions.text)(name, &raw mut length);
            if text.is_null() {
                (functions.clear_error)();
            } else {
                self.length = (length.max(0) as usize).min(LONGEST);
                core::ptr::copy_nonoverlapping(text, self.bytes.as_mut_ptr(), self.length);
            }
            (functions.release)(name);
        }
    }

    /// Sends the name of the calling thread, if it has one.
    pub(crate) fn send(&self, ring: &Ring, pid: u32) {
        if self.length == 0 {
            return;
        }
        let size = size_of::<wire::ThreadName>() + self.length;
        let Some(place) = ring.reserve(size, pid) else { return };
        let record = wire::ThreadName { pid, tid: sys::gettid(), text: self.length as u64 };
        // SAFETY: the slot has room for the record and the text.
        unsafe {
            place.payload.cast::<wire::ThreadName>().write(record);
            let text = place.payload.add(size_of::<wire::ThreadName>());
            core::ptr::copy_nonoverlapping(self.bytes.as_ptr(), text, self.length);
        }
        ring.commit(&place, kind::THREAD_NAME);
    }
}

/// Whether this thread holds the GIL and its innermost Python function is `Thread.start`. Other
/// functions are not examined, because reading their variables would keep the values alive.
///
/// # Safety
/// Must be called on a thread of the program.
unsafe fn is_in_start(python: &Interpreter) -> bool {
    let mut chain = [PythonFrame { code: 0, border: 0, lasti: 0, position: 0 }; 4];
    // SAFETY: called on the thread itself.
    let (count, flags) =
        unsafe { python.walk(sys::thread_pointer(), Guarded, &mut chain, |_| true) };
    if flags & sample_flags::GIL == 0 {
        return false;
    }
    let code = chain[..count].iter().find(|frame| frame.code != 0);
    let Some(code) = code.and_then(|frame| python.code(frame.code, Guarded)) else { return false };
    ends_with(python, code.name, b"start") && ends_with(python, code.file, b"threading.py")
}

/// Whether a `str` of ASCII characters ends with these.
fn ends_with(python: &Interpreter, object: u64, end: &[u8]) -> bool {
    let Some((start, length, 1)) = python.text(object, Guarded) else { return false };
    let Some(skipped) = length.checked_sub(end.len() as u64) else { return false };
    (0u64..).zip(end).all(|(at, &byte)| {
        let address = start + skipped + at;
        let word = Guarded.load(address & !7);
        word.is_some_and(|word| (word >> (8 * (address & 7))) as u8 == byte)
    })
}
