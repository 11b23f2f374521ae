//! Selects the traced calls by name.
//!
//! A pattern with `*` or `?` must match the whole name. Otherwise, a module pattern matches any
//! part of the file name, and a function pattern must equal the whole name. A module pattern with a
//! slash is matched against the whole path.

use crate::calls_wire::Reason;

/// Patterns as in the shared file: null-terminated strings, followed by zeros.
#[derive(Clone, Copy)]
pub(crate) struct Patterns<'a>(pub(crate) &'a [u8]);

/// The requested patterns.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) from: Patterns<'a>,
    pub(crate) library: Patterns<'a>,
    pub(crate) function: Patterns<'a>,
}

/// The roles of an object in traced calls, determined once when it is loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Roles {
    /// Its calls are traced.
    pub(crate) caller: bool,
    /// Calls to it are traced.
    pub(crate) callee: bool,
    /// Calls within it are also traced, because it was named as caller and as callee.
    pub(crate) within: bool,
}

impl Wanted<'_> {
    /// The roles of an object, by its path.
    ///
    /// Without patterns, callers are extension modules and libraries, and callees are other
    /// libraries; the program and system libraries are excluded. If only libraries are named, all
    /// callers are traced; if only functions are named, they are traced everywhere.
    pub(crate) fn roles(&self, path: &[u8], is_program: bool) -> Roles {
        let ordinary = !is_program && !is_of_the_system(path);
        let nothing_else = self.library.is_empty() && self.function.is_empty();
        let caller = match self.from.is_empty() {
            false => self.from.match_file(path),
            true if nothing_else => ordinary,
            true => !is_the_loader(path),
        };
        let callee = match self.library.is_empty() {
            false => self.library.match_file(path),
            true if self.function.is_empty() => ordinary,
            true => true,
        };
        let named = !self.from.is_empty() && !self.library.is_empty();
        Roles { caller, callee, within: named && caller && callee }
    }

    /// Whether a function is to be traced, by its name.
    pub(crate) fn function(&self, name: &[u8]) -> bool {
        self.function.is_empty() || self.function.iter().any(|pattern| glob(pattern, name))
    }
}

impl<'a> Patterns<'a> {
    fn is_empty(self) -> bool {
        self.iter().next().is_none()
    }

    fn iter(self) -> impl Iterator<Item = &'a [u8]> {
        self.0.split(|byte| *byte == 0).take_while(|pattern| !pattern.is_empty())
    }

    fn match_file(self, path: &[u8]) -> bool {
        self.iter().any(|pattern| match_file(pattern, path))
    }
}

/// Whether a module pattern matches this file.
pub(crate) fn match_file(pattern: &[u8], path: &[u8]) -> bool {
    let name = if pattern.contains(&b'/') { path } else { file_name(path) };
    if pattern.is_empty() || pattern.iter().any(|byte| matches!(byte, b'*' | b'?')) {
        glob(pattern, name)
    } else {
        name.windows(pattern.len()).any(|part| part == pattern)
    }
}

/// Why a function must not be traced, if so.
pub(crate) fn obstacle(name: &[u8]) -> Option<Reason> {
    use Reason::*;
    let whole: &[(&[u8], Reason)] = &[
        (b"setjmp", ReturnsTwice),
        (b"_setjmp", ReturnsTwice),
        (b"__setjmp", ReturnsTwice),
        (b"sigsetjmp", ReturnsTwice),
        (b"__sigsetjmp", ReturnsTwice),
        (b"savectx", ReturnsTwice),
        (b"vfork", ReturnsTwice),
        (b"__vfork", ReturnsTwice),
        (b"clone", ReturnsTwice),
        (b"__clone", ReturnsTwice),
        (b"clone3", ReturnsTwice),
        (b"getcontext", ReturnsTwice),
        (b"swapcontext", ReturnsTwice),
        (b"posix_spawn", ReturnsTwice),
        (b"posix_spawnp", ReturnsTwice),
        (b"setcontext", DoesNotReturn),
        (b"longjmp", DoesNotReturn),
        (b"_longjmp", DoesNotReturn),
        (b"siglongjmp", DoesNotReturn),
        (b"__longjmp_chk", DoesNotReturn),
        (b"pthread_exit", DoesNotReturn),
        (b"thrd_exit", DoesNotReturn),
        (b"exit", DoesNotReturn),
        (b"_exit", DoesNotReturn),
        (b"_Exit", DoesNotReturn),
        (b"quick_exit", DoesNotReturn),
        (b"abort", DoesNotReturn),
        (b"__assert_fail", DoesNotReturn),
        (b"__stack_chk_fail", DoesNotReturn),
        (b"__libc_start_main", DoesNotReturn),
        (b"dlopen", AsksWhoCalls),
        (b"dlmopen", AsksWhoCalls),
        (b"dlsym", AsksWhoCalls),
        (b"dlvsym", AsksWhoCalls),
        (b"dlclose", AsksWhoCalls),
        (b"dlerror", AsksWhoCalls),
        (b"dl_iterate_phdr", AsksWhoCalls),
        (b"__cyg_profile_func_enter", AsksWhoCalls),
        (b"__cyg_profile_func_exit", AsksWhoCalls),
        (b"backtrace", Unwinds),
        (b"__cxa_throw", Unwinds),
        (b"__cxa_rethrow", Unwinds),
        (b"__tls_get_addr", OwnConvention),
        (b"___tls_get_addr", OwnConvention),
        (b"__fentry__", OwnConvention),
        (b"mcount", OwnConvention),
        (b"_mcount", OwnConvention),
        (b"__morestack", OwnConvention),
    ];
    if let Some((_, reason)) = whole.iter().find(|(other, _)| *other == name) {
        return Some(*reason);
    }
    let starts: &[(&[u8], Reason)] = &[
        (b"_Unwind_", Unwinds),
        (b"unw_", Unwinds),
        (b"_ULx86_64_", Unwinds),
        (b"_ZSt17rethrow_exception", Unwinds),
        (b"_ZSt9terminatev", DoesNotReturn),
        (b"__dlopen", AsksWhoCalls),
        (b"__dlsym", AsksWhoCalls),
        (b"__libc_dl", AsksWhoCalls),
    ];
    starts.iter().find(|(start, _)| name.starts_with(start)).map(|(_, reason)| *reason)
}

/// Libraries that every process or every Python has. Calls into them are frequent and rarely of
/// interest.
fn is_of_the_system(path: &[u8]) -> bool {
    let starts: &[&[u8]] = &[
        b"libc.so",
        b"libc-2",
        b"libm.so",
        b"libm-2",
        b"libmvec",
        b"libpthread",
        b"libdl.",
        b"libdl-",
        b"librt.",
        b"librt-",
        b"libutil.",
        b"libutil-",
        b"libresolv",
        b"libanl",
        b"libgcc_s",
        b"libstdc++",
        b"libpython",
    ];
    let name = file_name(path);
    is_the_loader(path) || starts.iter().any(|start| name.starts_with(start))
}

/// Whether a library switches stacks by copying them, as greenlet does. Two active calls may then
/// have the same address on the stack and cannot be distinguished.
pub(crate) fn moves_stacks(path: &[u8]) -> bool {
    let name = file_name(path);
    name.starts_with(b"_greenlet.") || name.starts_with(b"greenlet.")
}

fn is_the_loader(path: &[u8]) -> bool {
    let starts: &[&[u8]] = &[b"ld-linux", b"ld-2", b"ld.so", b"ld64", b"linux-vdso"];
    starts.iter().any(|start| file_name(path).starts_with(start))
}

fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// Whether a pattern matches the whole text. `*` matches any text, `?` any byte.
pub(crate) fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(b'?') => (p, t) = (p + 1, t + 1),
            Some(byte) if *byte == text[t] => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((at, from)) => {
                    (p, t) = (at + 1, from + 1);
                    star = Some((at, from + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted<'a>(from: &'a [u8], library: &'a [u8], function: &'a [u8]) -> Wanted<'a> {
        Wanted { from: Patterns(from), library: Patterns(library), function: Patterns(function) }
    }

    #[test]
    fn a_glob_matches_the_whole_text() {
        let check = |pattern: &str, text: &str| glob(pattern.as_bytes(), text.as_bytes());
        assert!(check("cblas_*gemm*", "cblas_dgemm64_"));
        assert!(check("?gemm_", "dgemm_"));
        assert!(check("*", ""));
        assert!(check("a*b*c", "aXbXbc"));
        assert!(!check("cblas_*gemm", "cblas_dgemm64_"));
        assert!(!check("?", ""));
        assert!(!check("", "a"));
    }

    #[test]
    fn by_default_calls_between_extensions_and_libraries_are_traced() {
        let wish = wanted(b"\0", b"\0", b"\0");
        let check = |path: &str, is_program, caller, callee| {
            let expected = Roles { caller, callee, within: false };
            assert_eq!(wish.roles(path.as_bytes(), is_program), expected, "{path}");
        };
        check(
            "/v/numpy/_core/_multiarray_umath.cpython-311-x86_64-linux-gnu.so",
            false,
            true,
            true,
        );
        check("/v/numpy.libs/libscipy_openblas64_-32a4b2a6.so", false, true, true);
        check("/usr/bin/python3.11", true, false, false);
        check("/usr/lib/libpython3.11.so.1.0", false, false, false);
        check("/lib/x86_64-linux-gnu/libc.so.6", false, false, false);
        check("/lib/x86_64-linux-gnu/libcblas.so.3", false, true, true);
        check("/lib64/ld-linux-x86-64.so.2", false, false, false);
        check("linux-vdso.so.1", false, false, false);
    }

    #[test]
    fn all_callers_of_a_named_library_are_traced() {
        let wish = wanted(b"\0", b"libm.so\0/opt/*/libx.so\0", b"\0");
        assert!(wish.roles(b"/bin/a", true).caller);
        assert!(wish.roles(b"/lib/libc.so.6", false).caller);
        assert!(wish.roles(b"/lib/libm.so.6", false).callee);
        assert!(wish.roles(b"/opt/1/libx.so", false).callee);
        assert!(!wish.roles(b"/lib/libx.so", false).callee);
        assert!(!wish.roles(b"/lib/libm.so.6", false).within);
    }

    #[test]
    fn calls_within_a_library_named_on_both_sides_are_traced() {
        let wish = wanted(b"openblas\0", b"openblas\0", b"*gemm*\0");
        assert!(wish.roles(b"/v/libopenblas.so", false).within);
        assert!(wish.function(b"dgemm_"));
        assert!(!wish.function(b"dsyrk_"));
    }

    #[test]
    fn function_patterns_alone_apply_everywhere() {
        let wish = wanted(b"\0", b"\0", b"pthread_cond_wait\0");
        assert!(wish.roles(b"/lib/libc.so.6", false).callee);
        assert!(wish.roles(b"/bin/a", true).caller);
        assert!(!wish.function(b"pthread_cond_waits"));
    }

    #[test]
    fn libraries_that_move_stacks_are_recognized() {
        assert!(moves_stacks(b"/v/greenlet/_greenlet.cpython-311-x86_64-linux-gnu.so"));
        assert!(!moves_stacks(b"/v/greenlet/other.so"));
    }

    #[test]
    fn special_functions_are_not_traced() {
        assert_eq!(obstacle(b"__sigsetjmp"), Some(Reason::ReturnsTwice));
        assert_eq!(obstacle(b"_Unwind_RaiseException"), Some(Reason::Unwinds));
        assert_eq!(obstacle(b"dlsym"), Some(Reason::AsksWhoCalls));
        assert_eq!(obstacle(b"pthread_cond_wait"), None);
        assert_eq!(obstacle(b"exit_code"), None);
    }
}
