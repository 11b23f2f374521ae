//! Operations named in kernel names. Kernels of torch.compile list the operators they were made
//! from; library kernels name the operations fused into them.

use super::run::Kernel;

/// Operations that occur in kernel names, each with its synonyms.
const OPERATIONS: [(&str, &[&str]); 24] = [
    ("add", &["add", "residual", "bias"]),
    ("mul", &["mul", "scale"]),
    ("sub", &["sub"]),
    ("div", &["div", "true_divide"]),
    ("pow", &["pow"]),
    ("rsqrt", &["rsqrt"]),
    ("mean", &["mean"]),
    ("sum", &["sum"]),
    ("max", &["amax", "max"]),
    ("norm", &["norm", "rsqrt"]),
    ("softmax", &["softmax"]),
    ("silu", &["silu", "swiglu", "swish"]),
    ("gelu", &["gelu"]),
    ("relu", &["relu"]),
    ("sigmoid", &["sigmoid"]),
    ("tanh", &["tanh"]),
    ("exp", &["exp"]),
    ("cat", &["cat"]),
    ("copy", &["copy", "clone", "contiguous"]),
    ("rotary", &["rotary", "rope", "cos", "sin"]),
    ("quantize", &["quant"]),
    ("dropout", &["dropout"]),
    ("neg", &["neg"]),
    ("gather", &["gather", "embedding", "index"]),
];

/// Whether the name of `taker` includes an operation of `other`, which `op` launched.
pub(super) fn absorbs(taker: &Kernel, other: &Kernel, op: &str) -> bool {
    let is_made_of_parts = is_compiled(&taker.name)
        || taker.class.contains('+')
        || (other.class == "Activation" || other.class == "Elementwise") && taker.group == "GEMM";
    if !is_made_of_parts || taker.name == other.name {
        return false;
    }
    let taken = words(&taker.name);
    let wanted: Vec<&str> = words(&other.name).into_iter().chain(words(op)).collect();
    wanted.iter().any(|word| taken.contains(word))
}

/// Whether a kernel was fused by torch.compile.
pub(super) fn is_compiled(name: &str) -> bool {
    name.starts_with("triton_") && name.contains("fused")
}

/// The operations that occur in a name.
pub(super) fn words(name: &str) -> Vec<&'static str> {
    // Longer names only add template arguments.
    const LONGEST: usize = 400;
    let name = name[..name.floor_char_boundary(LONGEST)].to_lowercase();
    let parts: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let says = |other: &&str| match is_compiled(&name) {
        true => parts.iter().any(|part| {
            part == other
                || part
                    .strip_prefix(*other)
                    .is_some_and(|rest| rest.bytes().all(|c| c.is_ascii_digit()))
        }),
        false => parts.iter().any(|part| part.contains(*other)),
    };
    OPERATIONS
        .iter()
        .filter(|(_, others)| others.iter().any(&says))
        .map(|(word, _)| *word)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiled_kernel_names_list_operators() {
        assert_eq!(words("triton_poi_fused_add_mul_silu_2"), ["add", "mul", "silu"]);
        assert_eq!(
            words("triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0"),
            ["add", "mul", "pow", "rsqrt", "mean", "norm", "copy"]
        );
        assert_eq!(words("aten::add"), ["add"]);
        assert!(words("Cijk_Alik_Bljk").is_empty());
    }

    #[test]
    fn only_fused_kernels_absorb_others() {
        let kernel = |name: &str, class: &str, group: &str| Kernel {
            name: name.into(),
            class: class.into(),
            group: group.into(),
        };
        let fused = kernel("triton_poi_fused_add_mul_1", "Triton Fused", "Fused");
        let add = kernel(
            "void at::native::vectorized_elementwise_kernel<CUDAFunctor_add>",
            "Elementwise",
            "Elementwise",
        );
        assert!(absorbs(&fused, &add, ""));
        assert!(!absorbs(&add, &fused, ""));
        let gelu = kernel("void at::native::GeluCUDAKernelImpl", "Activation", "Activation");
        let product = kernel("cutlass_gemm_bias_gelu", "Dense GEMM", "GEMM");
        assert!(absorbs(&product, &gelu, ""));
        assert!(!absorbs(&kernel("nvjet_tst", "Dense GEMM", "GEMM"), &gelu, ""));
    }
}
