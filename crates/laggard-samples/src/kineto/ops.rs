//! Operators of the simulated model, with their inputs.

/// An operator of the framework.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Op {
    To,
    ToCopy,
    CopyInto,
    Empty,
    Zero,
    Fill,
    LayerNorm,
    NativeLayerNorm,
    Linear,
    T,
    Transpose,
    AsStrided,
    Addmm,
    View,
    Attention,
    FlashAttention,
    Gelu,
    Add,
    CrossEntropy,
    LogSoftmax,
    NllLoss,
    BackwardLinear,
    AddmmBackward,
    Mm,
    BackwardAttention,
    FlashAttentionBackward,
    BackwardNorm,
    NativeLayerNormBackward,
    ForeachAdd,
    FusedAdam,
    Communicate,
    Rotary,
    KvCache,
    Sample,
    CompiledRegion,
    AddNorm,
}

/// Name and inputs of an operator: shape, type and scalar value of each input.
pub(super) struct OpSpec {
    pub(super) name: &'static str,
    pub(super) dims: &'static [&'static [u32]],
    pub(super) types: &'static [&'static str],
    pub(super) concrete: &'static [&'static str],
}

const BF: &str = "c10::BFloat16";
const TOKENS: &[u32] = &[4096, 2048];
const WIDE: &[u32] = &[2048, 8192];
const NONE: &[u32] = &[];

impl Op {
    /// Number of operators.
    pub(super) const COUNT: usize = Op::AddNorm as usize + 1;

    pub(super) fn all() -> [Op; Op::COUNT] {
        use Op::*;
        [
            To,
            ToCopy,
            CopyInto,
            Empty,
            Zero,
            Fill,
            LayerNorm,
            NativeLayerNorm,
            Linear,
            T,
            Transpose,
            AsStrided,
            Addmm,
            View,
            Attention,
            FlashAttention,
            Gelu,
            Add,
            CrossEntropy,
            LogSoftmax,
            NllLoss,
            BackwardLinear,
            AddmmBackward,
            Mm,
            BackwardAttention,
            FlashAttentionBackward,
            BackwardNorm,
            NativeLayerNormBackward,
            ForeachAdd,
            FusedAdam,
            Communicate,
            Rotary,
            KvCache,
            Sample,
            CompiledRegion,
            AddNorm,
        ]
    }

    pub(super) fn spec(self) -> OpSpec {
        let spec = |name, dims, types, concrete| OpSpec { name, dims, types, concrete };
        match self {
            Op::To => spec(
                "aten::to",
                &[&[4, 1024], NONE, NONE],
                &["long int", "Device", "Scalar"],
                &["", "", "True"],
            ),
            Op::ToCopy => spec(
                "aten::_to_copy",
                &[&[4, 1024], NONE, NONE],
                &["long int", "Scalar", ""],
                &["", "4", ""],
            ),
            Op::CopyInto => spec(
                "aten::copy_",
                &[&[4, 1024], &[4, 1024], NONE],
                &["long int", "long int", "Scalar"],
                &["", "", "True"],
            ),
            Op::Empty => spec(
                "aten::empty",
                &[NONE, NONE, NONE, NONE],
                &["ScalarList", "Scalar", "", "Device"],
                &["[4096, 2048]", "15", "", ""],
            ),
            Op::Zero => spec("aten::zero_", &[&[2048]], &[BF], &[""]),
            Op::Fill => spec("aten::fill_", &[&[2048], NONE], &[BF, "Scalar"], &["", "0"]),
            Op::LayerNorm => spec(
                "aten::layer_norm",
                &[TOKENS, NONE, &[2048], &[2048], NONE, NONE],
                &[BF, "ScalarList", BF, BF, "Scalar", "Scalar"],
                &["", "[2048]", "", "", "1.0000000000000001e-05", "True"],
            ),
            Op::NativeLayerNorm => spec(
                "aten::native_layer_norm",
                &[TOKENS, NONE, &[2048], &[2048], NONE],
                &[BF, "ScalarList", BF, BF, "Scalar"],
                &["", "[2048]", "", "", "1.0000000000000001e-05"],
            ),
            Op::Linear => {
                spec("aten::linear", &[TOKENS, WIDE, &[8192]], &[BF, BF, BF], &["", "", ""])
            }
            Op::T => spec("aten::t", &[WIDE], &[BF], &[""]),
            Op::Transpose => spec(
                "aten::transpose",
                &[WIDE, NONE, NONE],
                &[BF, "Scalar", "Scalar"],
                &["", "0", "1"],
            ),
            Op::AsStrided => spec(
                "aten::as_strided",
                &[WIDE, NONE, NONE, NONE],
                &[BF, "ScalarList", "ScalarList", ""],
                &["", "[8192, 2048]", "[1, 8192]", ""],
            ),
            Op::Addmm => spec(
                "aten::addmm",
                &[&[8192], TOKENS, WIDE, NONE, NONE],
                &[BF, BF, BF, "Scalar", "Scalar"],
                &["", "", "", "1", "1"],
            ),
            Op::View => {
                spec("aten::view", &[TOKENS, NONE], &[BF, "ScalarList"], &["", "[4, 1024, 2048]"])
            }
            Op::Attention => spec(
                "aten::scaled_dot_product_attention",
                &[&[4, 16, 1024, 128], &[4, 16, 1024, 128], &[4, 16, 1024, 128], NONE, NONE, NONE],
                &[BF, BF, BF, "", "Scalar", "Scalar"],
                &["", "", "", "", "0.", "True"],
            ),
            Op::FlashAttention => spec(
                "aten::_flash_attention_forward",
                &[&[4, 1024, 16, 128], &[4, 1024, 16, 128], &[4, 1024, 16, 128], NONE, NONE],
                &[BF, BF, BF, "", "Scalar"],
                &["", "", "", "", "1024"],
            ),
            Op::Gelu => spec("aten::gelu", &[&[4096, 8192], NONE], &[BF, ""], &["", ""]),
            Op::Add => {
                spec("aten::add", &[TOKENS, TOKENS, NONE], &[BF, BF, "Scalar"], &["", "", "1"])
            }
            Op::CrossEntropy => spec(
                "aten::cross_entropy_loss",
                &[&[4096, 32000], &[4096], NONE, NONE, NONE],
                &["float", "long int", "", "Scalar", "Scalar"],
                &["", "", "", "1", "-100"],
            ),
            Op::LogSoftmax => spec(
                "aten::_log_softmax",
                &[&[4096, 32000], NONE, NONE],
                &["float", "Scalar", "Scalar"],
                &["", "1", "False"],
            ),
            Op::NllLoss => spec(
                "aten::nll_loss_forward",
                &[&[4096, 32000], &[4096], NONE, NONE, NONE],
                &["float", "long int", "", "Scalar", "Scalar"],
                &["", "", "", "1", "-100"],
            ),
            Op::BackwardLinear => {
                spec("autograd::engine::evaluate_function: AddmmBackward0", &[], &[], &[])
            }
            Op::AddmmBackward => spec("AddmmBackward0", &[&[4096, 8192]], &[BF], &[""]),
            Op::Mm => spec("aten::mm", &[&[4096, 8192], &[8192, 2048]], &[BF, BF], &["", ""]),
            Op::BackwardAttention => spec(
                "autograd::engine::evaluate_function: ScaledDotProductFlashAttentionBackward0",
                &[],
                &[],
                &[],
            ),
            Op::FlashAttentionBackward => spec(
                "aten::_flash_attention_backward",
                &[&[4, 1024, 16, 128], &[4, 1024, 16, 128], &[4, 1024, 16, 128]],
                &[BF, BF, BF],
                &["", "", ""],
            ),
            Op::BackwardNorm => {
                spec("autograd::engine::evaluate_function: NativeLayerNormBackward0", &[], &[], &[])
            }
            Op::NativeLayerNormBackward => spec(
                "aten::native_layer_norm_backward",
                &[TOKENS, TOKENS, NONE, &[4096, 1], &[4096, 1]],
                &[BF, BF, "ScalarList", "float", "float"],
                &["", "", "[2048]", "", ""],
            ),
            Op::ForeachAdd => {
                spec("aten::_foreach_add_", &[NONE, NONE], &["TensorList", "Scalar"], &["", "1"])
            }
            Op::FusedAdam => spec(
                "aten::_fused_adamw_",
                &[NONE, NONE, NONE, NONE],
                &["TensorList", "TensorList", "TensorList", "TensorList"],
                &["", "", "", ""],
            ),
            Op::Communicate => spec(
                "record_param_comms",
                &[&[8388608], NONE, NONE],
                &[BF, "Scalar", "Scalar"],
                &["", "0", "1"],
            ),
            Op::Rotary => spec(
                "_C::rotary_embedding",
                &[&[32], &[32, 2048], &[32, 512]],
                &["long int", BF, BF],
                &["", "", ""],
            ),
            Op::KvCache => spec(
                "_C_cache_ops::reshape_and_cache_flash",
                &[&[32, 4, 128], &[32, 4, 128], &[9120, 16, 4, 128]],
                &[BF, BF, BF],
                &["", "", ""],
            ),
            Op::Sample => {
                spec("aten::topk", &[&[32, 32000], NONE], &["float", "Scalar"], &["", "50"])
            }
            Op::CompiledRegion => spec("Torch-Compiled Region: 0/0", &[], &[], &[]),
            Op::AddNorm => spec(
                "triton_red_fused_add_native_layer_norm_0",
                &[TOKENS, TOKENS, &[2048], &[2048], TOKENS, NONE, NONE],
                &[BF, BF, BF, BF, BF, "Scalar", "Scalar"],
                &["", "", "", "", "", "4096", "2048"],
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operator_table_is_consistent() {
        for (nth, op) in Op::all().into_iter().enumerate() {
            let spec = op.spec();
            assert_eq!(op as usize, nth);
            assert_eq!(
                (spec.dims.len(), spec.concrete.len()),
                (spec.types.len(), spec.types.len()),
                "{}",
                spec.name
            );
        }
    }
}
