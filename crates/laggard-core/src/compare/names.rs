//! Names without the parts that differ between builds: library versions and hashes, compiler clone
//! suffixes and directories of Python files.
//!
//! CPU suffixes are kept, because a variant for another CPU is a different function.

use crate::culprit::shared_name;

/// The library name without version, hash, suffix and Python tag: `libfoo-2.31.so` and `libfoo.so.2`
/// become `libfoo`.
pub(super) fn library_stem(name: &str) -> &str {
    if name.starts_with('[') {
        return name;
    }
    let name = without_suffix(name);
    let tag = [".cpython-", ".abi3", ".pypy"].into_iter().filter_map(|tag| name.find(tag)).min();
    let name = &name[..tag.unwrap_or(name.len())];
    let mut start = 0;
    for (at, _) in name.match_indices(['-', '.']).chain([(name.len(), "")]) {
        if start > 0 && is_of_build(&name[start..at]) {
            return &name[..start - 1];
        }
        start = at + 1;
    }
    name
}

/// The common name of builds that are named after build options: OpenBLAS with different integer
/// widths, Python as a program or as a library.
pub(super) fn library_family(name: &str) -> &str {
    let stem = library_stem(name);
    if stem.starts_with('[') {
        return stem;
    }
    let plain = stem.strip_prefix("lib").unwrap_or(stem);
    let plain = plain.strip_prefix("scipy_").unwrap_or(plain);
    match ["openblas", "python"].into_iter().find(|family| plain.starts_with(family)) {
        Some(family) => family,
        None => plain.trim_end_matches('_').trim_end_matches("64").trim_end_matches('_'),
    }
}

/// The file name before `.so` or another suffix of libraries and programs.
fn without_suffix(name: &str) -> &str {
    let so = name.match_indices(".so").map(|(at, _)| at).find(|&at| {
        let after = &name[at + ".so".len()..];
        after.is_empty() || after.starts_with('.')
    });
    if let Some(at) = so {
        return &name[..at];
    }
    let suffixes = [".dylib", ".dll", ".pyd", ".exe"];
    suffixes.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

/// Whether part of a file name identifies a build: a version, revision or hash.
fn is_of_build(part: &str) -> bool {
    const SHORTEST_HASH: usize = 8;
    let after = part.strip_prefix(['r', 'v']).unwrap_or(part);
    after.starts_with(|c: char| c.is_ascii_digit())
        || part.len() >= SHORTEST_HASH && part.chars().all(|c| c.is_ascii_hexdigit())
}

/// The function name without clone suffixes, symbol version and Rust hash.
pub(super) fn function_stem(name: &str) -> &str {
    const CLONES: [&str; 13] = [
        "cold",
        "constprop",
        "isra",
        "part",
        "llvm",
        "lto_priv",
        "localalias",
        "clone",
        "hot",
        "unlikely",
        "warm",
        "cfi",
        "__uniq",
    ];
    let name = &name[..name.find(" [clone ").or(name.find("[clone ")).unwrap_or(name.len())];
    let name = match name.find('@') {
        Some(at) if at > 0 && !name.contains([' ', '(']) => &name[..at],
        _ => name,
    };
    let is_clone = |&(at, _): &(usize, &str)| {
        let word = name[at + 1..].split('.').next().unwrap_or("");
        at > 0 && CLONES.contains(&word)
    };
    let name = &name[..name.match_indices('.').find(is_clone).map_or(name.len(), |(at, _)| at)];
    match name.rsplit_once("::h") {
        Some((rest, hash)) if hash.len() == 16 && hash.chars().all(|c| c.is_ascii_hexdigit()) => {
            rest
        }
        _ => name,
    }
}

/// The common name of variants for different CPUs; `None` if it is empty.
pub(super) fn variant_stem(name: &str) -> Option<String> {
    let plain = function_stem(name);
    let shared = shared_name(plain);
    (!shared.is_empty()).then_some(shared)
}

/// The last `parts` components of a path.
pub(super) fn path_end(path: &str, parts: usize) -> &str {
    let at = path.rmatch_indices('/').nth(parts - 1).map_or(0, |(at, _)| at + 1);
    &path[at..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_of_a_library_share_a_name() {
        for (name, stem, family) in [
            ("libopenblas64_p-r0-0cf96a72.3.23.dev.so", "libopenblas64_p", "openblas"),
            ("libscipy_openblas64_-32a4b2a6.so", "libscipy_openblas64_", "openblas"),
            ("libopenblas.so.0", "libopenblas", "openblas"),
            (
                "_multiarray_umath.cpython-311-x86_64-linux-gnu.so",
                "_multiarray_umath",
                "_multiarray_umath",
            ),
            (
                "_multiarray_umath.cpython-313-x86_64-linux-gnu.so",
                "_multiarray_umath",
                "_multiarray_umath",
            ),
            ("_rust.abi3.so", "_rust", "_rust"),
            ("libpython3.11.so.1.0", "libpython3", "python"),
            ("libpython3.13t.so.1.0", "libpython3", "python"),
            ("python3.11", "python3", "python"),
            ("python", "python", "python"),
            ("libfoo-2.31.so", "libfoo", "foo"),
            ("libfoo.so.2", "libfoo", "foo"),
            ("libfoo.2.dylib", "libfoo", "foo"),
            ("libcblas64_.so.3", "libcblas64_", "cblas"),
            ("libstdc++.so.6.0.30", "libstdc++", "stdc++"),
            ("libgfortran-040039e1.so.5.0.0", "libgfortran", "gfortran"),
            ("suite-0123456789abcdef", "suite", "suite"),
            ("ld-linux-x86-64.so.2", "ld-linux-x86", "ld-linux-x86"),
            ("[kernel]", "[kernel]", "[kernel]"),
            ("[vdso]", "[vdso]", "[vdso]"),
            // Different libraries for different CPUs.
            ("libmkl_avx2.so.2", "libmkl_avx2", "mkl_avx2"),
            ("libmkl_avx512.so.2", "libmkl_avx512", "mkl_avx512"),
            ("", "", ""),
            ("-", "-", "-"),
            (".so", "", ""),
        ] {
            assert_eq!((library_stem(name), library_family(name)), (stem, family), "{name}");
        }
    }

    #[test]
    fn clone_suffixes_are_removed() {
        for (name, stem) in [
            ("f", "f"),
            ("f.cold", "f"),
            ("f.constprop.0", "f"),
            ("f.isra.0.part.3.cold", "f"),
            ("f.llvm.1234567", "f"),
            ("void f<int>(int) [clone .isra.0] [clone .cold]", "void f<int>(int)"),
            ("printf(char const*, ...)", "printf(char const*, ...)"),
            ("raptors::sum::h0123456789abcdef", "raptors::sum"),
            ("raptors::sum::help", "raptors::sum::help"),
            ("memcpy@GLIBC_2.2.5", "memcpy"),
            ("memcpy@@GLIBC_2.14", "memcpy"),
            (".text", ".text"),
            ("@", "@"),
            ("dgemm_kernel_HASWELL", "dgemm_kernel_HASWELL"),
            ("", ""),
        ] {
            assert_eq!(function_stem(name), stem, "{name}");
        }
    }

    #[test]
    fn variants_of_a_kernel_share_a_name() {
        let check = |a: &str, b: &str| assert_eq!(variant_stem(a), variant_stem(b), "{a}, {b}");
        check("dgemm_kernel_HASWELL", "dgemm_kernel_SKYLAKEX");
        check("__memmove_avx_unaligned_erms", "__memmove_evex_unaligned_erms");
        check("DOUBLE_add_AVX2", "DOUBLE_add_AVX512_SKX");
        assert_ne!(variant_stem("dgemm_kernel_HASWELL"), variant_stem("sgemm_kernel_HASWELL"));
    }

    #[test]
    fn ends_of_paths() {
        assert_eq!(path_end("/a/b/c.py", 1), "c.py");
        assert_eq!(path_end("/a/b/c.py", 2), "b/c.py");
        assert_eq!(path_end("c.py", 3), "c.py");
    }
}
