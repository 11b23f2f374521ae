//! Recognizes CPU-specific kernels by the suffixes of function names (`sgemm_kernel_HASWELL`).

use laggard_symbols::Elf;
use std::collections::BTreeSet;

/// Suffixes of OpenBLAS and NumPy, and whether they need AVX-512, which valgrind hides.
const ENDINGS: [(&str, bool); 27] = [
    ("PRESCOTT", false),
    ("CORE2", false),
    ("PENRYN", false),
    ("DUNNINGTON", false),
    ("NEHALEM", false),
    ("ATOM", false),
    ("NANO", false),
    ("OPTERON", false),
    ("OPTERON_SSE3", false),
    ("BARCELONA", false),
    ("BOBCAT", false),
    ("BULLDOZER", false),
    ("PILEDRIVER", false),
    ("STEAMROLLER", false),
    ("EXCAVATOR", false),
    ("ZEN", false),
    ("SANDYBRIDGE", false),
    ("HASWELL", false),
    ("X86_V2", false),
    ("X86_V3", false),
    ("AVX2", false),
    ("SKYLAKEX", true),
    ("COOPERLAKE", true),
    ("SAPPHIRERAPIDS", true),
    ("X86_V4", true),
    ("AVX512F", true),
    ("AVX512_SKX", true),
];

/// The suffix of a function, and whether it needs AVX-512.
pub(super) fn ending(name: &str) -> Option<(&'static str, bool)> {
    ENDINGS
        .into_iter()
        .find(|(ending, _)| name.strip_suffix(ending).is_some_and(|before| before.ends_with('_')))
}

/// The AVX-512 suffixes of functions in a file.
pub(super) fn wide_in(elf: &Elf) -> BTreeSet<&'static str> {
    elf.functions()
        .filter_map(|function| ending(&function.name))
        .filter(|(_, is_wide)| *is_wide)
        .map(|(ending, _)| ending)
        .collect()
}

/// Whether this CPU has AVX-512.
pub(super) fn is_wide_here() -> bool {
    std::is_x86_feature_detected!("avx512f")
}

#[test]
fn kernels_are_recognized_by_their_suffix() {
    assert_eq!(ending("sgemm_kernel_HASWELL"), Some(("HASWELL", false)));
    assert_eq!(ending("dgemm_kernel_SKYLAKEX"), Some(("SKYLAKEX", true)));
    assert_eq!(ending("FLOAT_add_X86_V3"), Some(("X86_V3", false)));
    assert_eq!(ending("sgemm_kernelHASWELL"), None);
    assert_eq!(ending("cblas_sgemm"), None);
}
