//! Detects CPU-specific code in a library by the names of its functions.
//!
//! Libraries with run-time dispatch name the target in functions: OpenBLAS by CPU family
//! (`sgemm_kernel_SKYLAKEX`), NumPy by features (`FLOAT_add_X86_V3`), the C library in lower case
//! (`__memmove_avx_unaligned`), others by a namespace (`at::native::AVX2`).

use laggard_core::model::code::{Function, Target};
use laggard_core::model::profile::Texts;
use std::collections::BTreeMap;

const V2: &[&str] = &["ssse3", "sse4_1", "sse4_2", "popcnt"];
const V3: &[&str] = &["avx", "avx2", "fma", "f16c", "bmi1", "bmi2", "movbe"];
const V4: &[&str] = &["avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"];
const AVX2_FMA: &[&str] = &["avx2", "fma"];
const ICL: &[&str] = &[
    "avx512f",
    "avx512cd",
    "avx512bw",
    "avx512dq",
    "avx512vl",
    "avx512ifma",
    "avx512vbmi",
    "avx512_vnni",
    "avx512_vbmi2",
    "avx512_bitalg",
    "avx512_vpopcntdq",
];

/// Words in names, and the required CPU features as named by Linux. If a name contains several
/// words, the first in this list is used.
const WORDS: &[(&str, &[&str])] = &[
    // NumPy, most features first.
    ("AVX512_SPR", &["avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_fp16"]),
    ("AVX512_ICL", ICL),
    (
        "AVX512_CNL",
        &["avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl", "avx512ifma", "avx512vbmi"],
    ),
    ("AVX512_CLX", &["avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni"]),
    ("AVX512_SKX", V4),
    ("AVX512CD", &["avx512f", "avx512cd"]),
    ("AVX512F", &["avx512f"]),
    ("X86_V4", V4),
    ("X86_V3", V3),
    ("X86_V2", V2),
    // OpenBLAS.
    ("SAPPHIRERAPIDS", &["avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_bf16"]),
    ("COOPERLAKE", &["avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_bf16"]),
    ("SKYLAKEX", V4),
    ("HASWELL", AVX2_FMA),
    ("ZEN", AVX2_FMA),
    ("EXCAVATOR", &["avx2", "fma4"]),
    ("STEAMROLLER", &["avx", "fma4"]),
    ("PILEDRIVER", &["avx", "fma4"]),
    ("BULLDOZER", &["avx", "fma4"]),
    ("SANDYBRIDGE", &["avx"]),
    ("NEHALEM", &["sse4_2"]),
    ("DUNNINGTON", &["sse4_1"]),
    ("PENRYN", &["sse4_1"]),
    ("CORE2", &["ssse3"]),
    ("ATOM", &["ssse3"]),
    ("NANO", &["ssse3"]),
    ("BARCELONA", &["sse4a"]),
    ("BOBCAT", &["sse4a"]),
    ("OPTERON_SSE3", &["pni"]),
    ("PRESCOTT", &["pni"]),
    ("OPTERON", &["sse2"]),
    // Families of other CPUs, in the same positions.
    ("NEOVERSEV1", &["sve"]),
    ("NEOVERSEN2", &["sve2"]),
    ("NEOVERSEN1", &["asimd"]),
    ("A64FX", &["sve"]),
    ("ARMV8SVE", &["sve"]),
    ("ARMV8", &["asimd"]),
    ("CORTEXA57", &["asimd"]),
    ("ASIMDHP", &["asimdhp"]),
    ("SVE", &["sve"]),
    ("ASIMD", &["asimd"]),
    // Older names in NumPy, and namespaces.
    ("AVX512", &["avx512f"]),
    ("FMA3__AVX2", AVX2_FMA),
    ("AVX2", &["avx2"]),
    ("FMA4", &["fma4"]),
    ("FMA3", &["fma"]),
    ("SSE42", &["sse4_2"]),
    ("SSE41", &["sse4_1"]),
    ("SSSE3", &["ssse3"]),
    // The C library and BLIS.
    ("avx512", &["avx512f"]),
    ("evex512", V4),
    ("evex", &["avx512vl", "avx512bw"]),
    ("skx", V4),
    ("haswell", AVX2_FMA),
    ("zen", AVX2_FMA),
    ("avx2", &["avx2"]),
    ("fma4", &["fma4"]),
    ("fma", &["fma"]),
    ("avx", &["avx"]),
    ("sse42", &["sse4_2"]),
    ("ssse3", &["ssse3"]),
    ("sse2", &["sse2"]),
];

/// Words with other meanings elsewhere. They are only recognized at the end of a name.
const LAST_ONLY: [&str; 6] = ["ATOM", "NANO", "ZEN", "OPTERON", "CORE2", "SVE"];
/// Words that are only recognized in names with this prefix.
const AFTER: [(&str, &str); 3] = [("haswell", "bli_"), ("zen", "bli_"), ("skx", "bli_")];
/// Minimum number of functions of a target. Fewer are coincidence.
const FEWEST: u64 = 2;

/// The targets of a file, the one with the most functions first.
pub(super) fn find(functions: &[Function], texts: &Texts) -> Vec<Target> {
    let mut counts: BTreeMap<usize, u64> = BTreeMap::new();
    for function in functions.iter().filter(|function| !function.is_stub) {
        if let Some(at) = target(texts.get(function.name)) {
            *counts.entry(at).or_default() += 1;
        }
    }
    let mut targets: Vec<Target> = counts
        .into_iter()
        .filter(|(_, functions)| *functions >= FEWEST)
        .map(|(at, functions)| Target {
            name: WORDS[at].0.to_owned(),
            functions,
            needs: WORDS[at].1.to_vec(),
            lacks: None,
        })
        .collect();
    targets.sort_by_key(|target| std::cmp::Reverse(target.functions));
    targets
}

/// Sets the features that a CPU lacks for each target.
pub fn judge_targets(targets: &mut [Target], features: &[String]) {
    for target in targets {
        let lacking = |need: &&&str| !features.iter().any(|feature| feature == **need);
        target.lacks = Some(target.needs.iter().filter(lacking).copied().collect());
    }
}

fn target(name: &str) -> Option<usize> {
    // Argument types follow a parenthesis.
    let name = &name[..name.find('(').unwrap_or(name.len())];
    let may = ["AVX", "SSE", "FMA", "X86_V", "avx", "sse", "fma", "evex", "bli_"];
    let ends_large =
        name.bytes().next_back().is_some_and(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
    if !ends_large && !may.iter().any(|word| name.contains(word)) {
        return None;
    }
    WORDS.iter().position(|(word, _)| has_word(name, word))
}

/// Whether a name contains a word between separators such as underscores, but not at its start: a
/// function named `avx2` is not a variant of another.
fn has_word(name: &str, word: &str) -> bool {
    if let Some((_, start)) = AFTER.iter().find(|(limited, _)| *limited == word)
        && !name.starts_with(start)
    {
        return false;
    }
    name.match_indices(word).any(|(at, _)| {
        let is_border = |byte: Option<&u8>| byte.is_none_or(|byte| !byte.is_ascii_alphanumeric());
        let end = at + word.len();
        let bytes = name.as_bytes();
        let is_last = end == name.len() || name[end..].starts_with(['.', ' ']);
        at > 0
            && is_border(bytes.get(at - 1))
            && is_border(bytes.get(end))
            && (is_last || !LAST_ONLY.contains(&word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_targets_by_name() {
        for (name, expected) in [
            ("sgemm_kernel_SKYLAKEX", Some("SKYLAKEX")),
            ("dot_compute_ZEN", Some("ZEN")),
            ("FLOAT_add_X86_V3", Some("X86_V3")),
            ("DOUBLE_sin_AVX512_SKX", Some("AVX512_SKX")),
            ("FLOAT_exp_FMA3__AVX2", Some("FMA3__AVX2")),
            ("__memmove_avx_unaligned_erms", Some("avx")),
            ("__strlen_evex", Some("evex")),
            ("__sin_fma", Some("fma")),
            ("at::native::AVX2::add_kernel(at::TensorIteratorBase&)", Some("AVX2")),
            ("bli_sgemm_haswell_asm_6x16", Some("haswell")),
            ("parse_ATOM_feed", None),
            ("chozen", None),
            ("is_zen", None),
            ("avx2", None),
            ("main", None),
            ("", None),
            ("f(X_AVX2)", None),
        ] {
            assert_eq!(target(name).map(|at| WORDS[at].0), expected, "{name}");
        }
    }

    #[test]
    fn reports_missing_cpu_features() {
        let mut targets =
            [Target { name: "HASWELL".into(), needs: AVX2_FMA.to_vec(), ..Target::default() }];
        judge_targets(&mut targets, &["avx2".into()]);
        assert_eq!(targets[0].lacks.as_deref(), Some(&["fma"][..]));
        assert_eq!(targets[0].runs_here(), Some(false));
    }
}
