//! Kernels of NVIDIA's libraries and of PyTorch on CUDA.

use super::{Kernel, Work, kernel};

pub(super) fn kernels(work: Work) -> &'static [Kernel] {
    match work {
        Work::Norm => {
            const {
                &[kernel(
                    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float, c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*, float*, float*, c10::BFloat16*)",
                    14_300,
                    [4096, 1, 1],
                    [32, 4, 1],
                    36,
                    24,
                )]
            }
        }
        Work::Gemm => {
            const {
                &[kernel(
                    "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_bias_TNN",
                    68_400,
                    [8, 16, 1],
                    [384, 1, 1],
                    168,
                    213_248,
                )]
            }
        }
        Work::WideGemm => {
            const {
                &[kernel(
                    "nvjet_tst_256x128_64x4_1x2_h_bz_coopA_bias_TNN",
                    236_000,
                    [16, 32, 1],
                    [384, 1, 1],
                    168,
                    213_248,
                )]
            }
        }
        Work::Attention => {
            const {
                &[kernel(
                    "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, cutlass::bfloat16_t, Flash_kernel_traits<128, 128, 64, 4, cutlass::bfloat16_t> >, false, true, false, false, false, true, false, false>(flash::Flash_fwd_params)",
                    121_500,
                    [8, 4, 16],
                    [128, 1, 1],
                    255,
                    65_536,
                )]
            }
        }
        Work::Gelu => {
            const {
                &[kernel(
                    "void at::native::vectorized_elementwise_kernel<8, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}::operator()() const::{lambda()#4}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#2}::operator()() const::{lambda()#4}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul>)",
                    52_700,
                    [32768, 1, 1],
                    [128, 1, 1],
                    32,
                    0,
                )]
            }
        }
        Work::Add => {
            const {
                &[kernel(
                    "void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)",
                    18_900,
                    [8192, 1, 1],
                    [128, 1, 1],
                    32,
                    0,
                )]
            }
        }
        Work::Softmax => {
            const {
                &[kernel(
                    "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float, at::native::(anonymous namespace)::LogSoftMaxForwardEpilogue>(float*, float const*, int)",
                    301_000,
                    [4096, 1, 1],
                    [1024, 1, 1],
                    40,
                    4096,
                )]
            }
        }
        Work::Loss => {
            const {
                &[kernel(
                    "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>(float*, float*, float const*, long const*, float const*, bool, long, long, long, long)",
                    8_200,
                    [1, 1, 1],
                    [32, 1, 1],
                    38,
                    256,
                )]
            }
        }
        Work::GemmBackward => {
            const {
                &[
                    kernel(
                        "nvjet_tst_256x128_64x4_2x1_v_bz_coopA_TNT",
                        231_000,
                        [16, 32, 1],
                        [384, 1, 1],
                        168,
                        213_248,
                    ),
                    kernel(
                        "nvjet_tst_192x192_64x4_2x1_v_bz_coopA_NTT",
                        244_000,
                        [11, 43, 1],
                        [384, 1, 1],
                        168,
                        213_248,
                    ),
                ]
            }
        }
        Work::AttentionBackward => {
            const {
                &[
                    kernel(
                        "void flash::flash_bwd_dot_do_o_kernel<true, Flash_bwd_kernel_traits<128, 64, 128, 8, 2, 4, 2, false, false, cutlass::bfloat16_t, Flash_kernel_traits<128, 64, 128, 8, cutlass::bfloat16_t> > >(flash::Flash_bwd_params)",
                        21_400,
                        [16, 4, 16],
                        [256, 1, 1],
                        88,
                        0,
                    ),
                    kernel(
                        "void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<128, 64, 128, 8, 2, 4, 2, false, false, cutlass::bfloat16_t, Flash_kernel_traits<128, 64, 128, 8, cutlass::bfloat16_t> >, false, true, false, false, true, true, false>(flash::Flash_bwd_params)",
                        358_000,
                        [8, 4, 16],
                        [256, 1, 1],
                        255,
                        147_456,
                    ),
                ]
            }
        }
        Work::NormBackward => {
            const {
                &[
                    kernel(
                        "void at::native::(anonymous namespace)::layer_norm_grad_input_kernel_vectorized<c10::BFloat16, float>(c10::BFloat16 const*, c10::BFloat16 const*, float const*, float const*, c10::BFloat16 const*, c10::BFloat16*, int)",
                        23_800,
                        [4096, 1, 1],
                        [128, 1, 1],
                        40,
                        16,
                    ),
                    kernel(
                        "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernel_32x32<c10::BFloat16, float>(long, long, c10::BFloat16 const*, c10::BFloat16 const*, float const*, float const*, c10::BFloat16*, c10::BFloat16*)",
                        31_500,
                        [64, 1, 1],
                        [32, 32, 1],
                        40,
                        8448,
                    ),
                ]
            }
        }
        Work::Accumulate => {
            const {
                &[kernel(
                    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctorOnSelf_add<c10::BFloat16>, std::array<char*, 2ul> >(int, at::native::CUDAFunctorOnSelf_add<c10::BFloat16>, std::array<char*, 2ul>)",
                    12_100,
                    [16384, 1, 1],
                    [128, 1, 1],
                    24,
                    0,
                )]
            }
        }
        Work::Adam => {
            const {
                &[kernel(
                    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<c10::BFloat16, 4, (at::native::ADAM_MODE)1, false>, float const*, double, double, double, double, double, bool, float const*, float const*, (at::native::ADAM_MODE)1>(at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<c10::BFloat16, 4, (at::native::ADAM_MODE)1, false>, float const*, double, double, double, double, double, bool, float const*, float const*, (at::native::ADAM_MODE)1)",
                    187_000,
                    [320, 1, 1],
                    [512, 1, 1],
                    64,
                    0,
                )]
            }
        }
        Work::AllReduce => {
            const {
                &[kernel(
                    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                    214_000,
                    [24, 1, 1],
                    [640, 1, 1],
                    96,
                    103_808,
                )]
            }
        }
        Work::Rotary => {
            const {
                &[kernel(
                    "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*, c10::BFloat16*, c10::BFloat16*, c10::BFloat16 const*, int, long, long, int, int, int)",
                    3_100,
                    [32, 1, 1],
                    [512, 1, 1],
                    30,
                    0,
                )]
            }
        }
        Work::KvCache => {
            const {
                &[kernel(
                    "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, (vllm::Fp8KVCacheDataType)0>(__nv_bfloat16 const*, __nv_bfloat16 const*, __nv_bfloat16*, __nv_bfloat16*, long const*, long, long, long, long, long, int, int, int, float const*, float const*)",
                    2_600,
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
                    "nvjet_tst_64x16_64x16_2x4_2cta_h_bz_bias_TNT",
                    9_700,
                    [128, 1, 1],
                    [256, 1, 1],
                    168,
                    181_504,
                )]
            }
        }
        Work::PagedAttention => {
            const {
                &[kernel(
                    "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, cutlass::bfloat16_t, Flash_kernel_traits<128, 64, 128, 4, cutlass::bfloat16_t> >, true, false, false, false, false, false, true, false>(flash::Flash_fwd_params)",
                    16_800,
                    [1, 12, 128],
                    [128, 1, 1],
                    250,
                    81_920,
                )]
            }
        }
        Work::Activation => {
            const {
                &[kernel(
                    "void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 vllm::silu_kernel<c10::BFloat16>(c10::BFloat16 const&)), true>(c10::BFloat16*, c10::BFloat16 const*, int)",
                    2_900,
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
                    41_300,
                    [32, 1, 1],
                    [1024, 1, 1],
                    40,
                    4104,
                )]
            }
        }
        Work::WideGemmOnOtherTile => {
            const {
                &[kernel(
                    "nvjet_tst_128x128_64x6_1x2_h_bz_coopA_bias_TNN",
                    306_800,
                    [32, 32, 1],
                    [384, 1, 1],
                    168,
                    197_632,
                )]
            }
        }
        Work::AddNorm => {
            const {
                &[kernel(
                    "triton_red_fused_add_native_layer_norm_0",
                    21_600,
                    [4096, 1, 1],
                    [256, 1, 1],
                    38,
                    64,
                )]
            }
        }
        Work::NormApart => {
            const {
                &[
                    kernel(
                        "void at::native::(anonymous namespace)::RowwiseMomentsCUDAKernel<c10::BFloat16, float, false>(long, float, c10::BFloat16 const*, float*, float*)",
                        29_400,
                        [4096, 1, 1],
                        [512, 1, 1],
                        32,
                        512,
                    ),
                    kernel(
                        "void at::native::(anonymous namespace)::LayerNormForwardCUDAKernel<c10::BFloat16, float>(long, c10::BFloat16 const*, float const*, float const*, c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16*)",
                        24_700,
                        [4096, 1, 1],
                        [256, 1, 1],
                        28,
                        0,
                    ),
                ]
            }
        }
    }
}
