//! Kernels of AMD's libraries and of PyTorch on ROCm.

use super::{Kernel, Work, kernel};

pub(super) fn kernels(work: Work) -> &'static [Kernel] {
    match work {
        Work::Norm => {
            const {
                &[
                    kernel(
                        "void at::native::(anonymous namespace)::RowwiseMomentsCUDAKernel<c10::BFloat16, float, false>(long, float, c10::BFloat16 const*, float*, float*)",
                        17_900,
                        [4096, 1, 1],
                        [256, 1, 1],
                        32,
                        512,
                    ),
                    kernel(
                        "void at::native::(anonymous namespace)::LayerNormForwardCUDAKernel<c10::BFloat16, float>(long, c10::BFloat16 const*, float const*, float const*, c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16*)",
                        15_200,
                        [4096, 1, 1],
                        [256, 1, 1],
                        28,
                        0,
                    ),
                ]
            }
        }
        Work::Gemm => {
            const {
                &[kernel(
                    "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x160x64_MI16x16x1_SN_LDSB1_AFC1_AFEM1_AFEM1_ASEM1_CLR1_CADS0_DTLA0_DTLB0_DTVA0_DTVB0_EPS0_FDSI0_GRPM1_GRVWA8_GRVWB8_GSUAMB_GLS0_ISA942_IU1_K1",
                    74_100,
                    [208, 1, 1],
                    [256, 1, 1],
                    256,
                    65_536,
                )]
            }
        }
        Work::WideGemm => {
            const {
                &[kernel(
                    "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x256x64_MI16x16x1_SN_LDSB1_AFC1_AFEM1_AFEM1_ASEM1_CLR1_CADS0_DTLA0_DTLB0_DTVA0_DTVB0_EPS0_FDSI0_GRPM1_GRVWA8_GRVWB8_GSUAMB_GLS0_ISA942_IU1_K1",
                    219_000,
                    [512, 1, 1],
                    [256, 1, 1],
                    512,
                    65_536,
                )]
            }
        }
        Work::Attention => {
            const { &[kernel("attn_fwd", 182_000, [16, 16, 4], [256, 1, 1], 256, 32_768)] }
        }
        Work::Gelu => {
            const {
                &[kernel(
                    "void at::native::vectorized_elementwise_kernel<8, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}::operator()() const::{lambda()#4}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}::operator()() const::{lambda()#4}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul>)",
                    47_500,
                    [16384, 1, 1],
                    [256, 1, 1],
                    28,
                    0,
                )]
            }
        }
        Work::Add => {
            const {
                &[kernel(
                    "void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)",
                    16_200,
                    [4096, 1, 1],
                    [256, 1, 1],
                    24,
                    0,
                )]
            }
        }
        Work::Softmax => {
            const {
                &[kernel(
                    "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float, at::native::(anonymous namespace)::LogSoftMaxForwardEpilogue>(float*, float const*, int)",
                    288_000,
                    [4096, 1, 1],
                    [1024, 1, 1],
                    48,
                    4096,
                )]
            }
        }
        Work::Loss => {
            const {
                &[kernel(
                    "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>(float*, float*, float const*, long const*, float const*, bool, long, long, long, long)",
                    11_900,
                    [1, 1, 1],
                    [32, 1, 1],
                    40,
                    256,
                )]
            }
        }
        Work::GemmBackward => {
            const {
                &[
                    kernel(
                        "Cijk_Ailk_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x224x64_MI16x16x1_SN_LDSB1_AFC1_AFEM1_AFEM1_ASEM1_CLR1_CADS0_GRPM1_GRVWA8_GRVWB8_GSUAMB_GLS0_ISA942",
                        226_000,
                        [608, 1, 1],
                        [256, 1, 1],
                        512,
                        65_536,
                    ),
                    kernel(
                        "Cijk_Ailk_Bjlk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x256x32_MI16x16x1_SN_LDSB0_AFC1_AFEM1_AFEM1_ASEM1_CLR1_CADS0_GRPM1_GRVWA8_GRVWB8_GSUAMB_GLS0_ISA942",
                        267_000,
                        [512, 1, 1],
                        [256, 1, 1],
                        512,
                        65_536,
                    ),
                ]
            }
        }
        Work::AttentionBackward => {
            const {
                &[
                    kernel("bwd_preprocess", 24_900, [16, 16, 4], [256, 1, 1], 64, 0),
                    kernel("bwd_kernel_dk_dv", 301_000, [16, 16, 4], [256, 1, 1], 512, 32_768),
                    kernel("bwd_kernel_dq", 248_000, [16, 16, 4], [256, 1, 1], 512, 32_768),
                ]
            }
        }
        Work::NormBackward => {
            const {
                &[
                    kernel(
                        "void at::native::(anonymous namespace)::layer_norm_grad_input_kernel<c10::BFloat16, float>(c10::BFloat16 const*, c10::BFloat16 const*, float const*, float const*, c10::BFloat16 const*, c10::BFloat16*, int)",
                        28_200,
                        [4096, 1, 1],
                        [256, 1, 1],
                        40,
                        32,
                    ),
                    kernel(
                        "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernel<c10::BFloat16, float>(long, long, c10::BFloat16 const*, c10::BFloat16 const*, float const*, float const*, c10::BFloat16*, c10::BFloat16*)",
                        58_600,
                        [64, 1, 1],
                        [16, 16, 1],
                        40,
                        4224,
                    ),
                ]
            }
        }
        Work::Accumulate => {
            const {
                &[kernel(
                    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctorOnSelf_add<c10::BFloat16>, std::array<char*, 2ul> >(int, at::native::CUDAFunctorOnSelf_add<c10::BFloat16>, std::array<char*, 2ul>)",
                    10_700,
                    [8192, 1, 1],
                    [256, 1, 1],
                    20,
                    0,
                )]
            }
        }
        Work::Adam => {
            const {
                &[kernel(
                    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<c10::BFloat16, 4, (at::native::ADAM_MODE)1, false>, float const*, double, double, double, double, double, bool, float const*, float const*, (at::native::ADAM_MODE)1>(at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<c10::BFloat16, 4, (at::native::ADAM_MODE)1, false>, float const*, double, double, double, double, double, bool, float const*, float const*, (at::native::ADAM_MODE)1)",
                    151_000,
                    [320, 1, 1],
                    [512, 1, 1],
                    72,
                    0,
                )]
            }
        }
        Work::AllReduce => {
            const {
                &[kernel(
                    "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)",
                    263_000,
                    [56, 1, 1],
                    [256, 1, 1],
                    112,
                    32_768,
                )]
            }
        }
        Work::Rotary => {
            const {
                &[kernel(
                    "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*, c10::BFloat16*, c10::BFloat16*, c10::BFloat16 const*, int, long, long, int, int, int)",
                    3_900,
                    [32, 1, 1],
                    [512, 1, 1],
                    32,
                    0,
                )]
            }
        }
        Work::KvCache => {
            const {
                &[kernel(
                    "void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16, __hip_bfloat16, (vllm::Fp8KVCacheDataType)0>(__hip_bfloat16 const*, __hip_bfloat16 const*, __hip_bfloat16*, __hip_bfloat16*, long const*, long, long, long, long, long, int, int, int, float const*, float const*)",
                    3_300,
                    [32, 1, 1],
                    [512, 1, 1],
                    32,
                    0,
                )]
            }
        }
        Work::DecodeGemm => {
            const {
                &[kernel(
                    "void wvSplitK_hf_sml_<__hip_bfloat16, 64, 2, 16, 8, 2, 4>(int, int, int, int, __hip_bfloat16 const*, __hip_bfloat16 const*, __hip_bfloat16 const*, __hip_bfloat16*, int, int)",
                    12_400,
                    [304, 1, 1],
                    [64, 16, 1],
                    128,
                    65_536,
                )]
            }
        }
        Work::PagedAttention => {
            const {
                &[
                    kernel(
                        "void paged_attention_ll4mi_QKV_mfma16_kernel<__hip_bfloat16, __hip_bfloat16, (vllm::Fp8KVCacheDataType)0, __hip_bfloat16, 16, 128, 256, false, 8>(__hip_bfloat16 const*, __hip_bfloat16 const*, __hip_bfloat16 const*, int, float, int const*, int const*, int, float const*, int, int, int, float*, float*, __hip_bfloat16*, int, float const*, float const*)",
                        19_600,
                        [32, 8, 4],
                        [256, 1, 1],
                        128,
                        16_384,
                    ),
                    kernel(
                        "void paged_attention_ll4mi_reduce_kernel<__hip_bfloat16, __hip_bfloat16, 128, 128, 256, 1>(__hip_bfloat16*, float const*, float const*, __hip_bfloat16 const*, int const*, int)",
                        5_800,
                        [16, 32, 1],
                        [128, 1, 1],
                        64,
                        2048,
                    ),
                ]
            }
        }
        Work::Activation => {
            const {
                &[kernel(
                    "void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 vllm::silu_kernel<c10::BFloat16>(c10::BFloat16 const&)), true>(c10::BFloat16*, c10::BFloat16 const*, int)",
                    3_500,
                    [32, 1, 1],
                    [1024, 1, 1],
                    28,
                    0,
                )]
            }
        }
        Work::TopK => {
            const {
                &[kernel(
                    "void at::native::sbtopk::gatherTopK<float, unsigned int, 1, false>(at::cuda::detail::TensorInfo<float const, unsigned int>, unsigned int, unsigned int, bool, unsigned int, unsigned int, at::cuda::detail::TensorInfo<float, unsigned int>, unsigned int, at::cuda::detail::TensorInfo<long, unsigned int>, unsigned int, float*)",
                    63_800,
                    [32, 1, 1],
                    [1024, 1, 1],
                    44,
                    4104,
                )]
            }
        }
        Work::WideGemmOnOtherTile => {
            const {
                &[kernel(
                    "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x128x64_MI16x16x1_SN_LDSB1_AFC1_AFEM1_AFEM1_ASEM1_CLR1_CADS0_DTLA0_DTLB0_DTVA0_DTVB0_EPS0_FDSI0_GRPM1_GRVWA8_GRVWB8_GSUAMB_GLS0_ISA942_IU1_K1",
                    284_700,
                    [2048, 1, 1],
                    [256, 1, 1],
                    256,
                    65_536,
                )]
            }
        }
        Work::AddNorm => {
            const {
                &[kernel(
                    "triton_red_fused_add_native_layer_norm_0",
                    19_800,
                    [4096, 1, 1],
                    [512, 1, 1],
                    36,
                    64,
                )]
            }
        }
        Work::NormApart => kernels(Work::Norm),
    }
}
