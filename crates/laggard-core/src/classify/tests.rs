use super::*;

fn class_of(rules: &Rules, name: &str, activity: Activity) -> String {
    rules.class(rules.classify(name, activity)).name.clone()
}

/// Checks kernel names against the built-in rules.
fn check(expected: &str, names: &[&str]) {
    assert!(Rules::builtin().find(expected).is_some(), "no class {expected}");
    for name in names {
        assert_eq!(class_of(Rules::builtin(), name, Activity::Kernel), expected, "{name}");
    }
}

#[test]
fn builtin_rules_are_valid() {
    assert_eq!(Rules::empty().add(BUILTIN), Ok(()));
}

#[test]
fn serving_kernels() {
    check(
        "Attention (Prefill)",
        &[
            "kernel_unified_attention_2d",
            "fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128PersistentContext",
            "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, cutlass::bfloat16_t> >(pytorch_flash::Flash_fwd_params)",
            "attn_fwd",
            "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::bfloat16_t>::Params)",
            "void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2> > >(Params)",
            "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_128x128x128_4x1x1_kernel0_0",
            "void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<1> >(Params)",
            "_fwd_kernel",
        ],
    );
    check(
        "Attention (Decode)",
        &[
            "kernel_unified_attention_3d",
            "fmhaSm100fKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ8Kv128StaticSwapsAbForGen",
            "void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16, (vllm::Fp8KVCacheDataType)0>(int)",
            "void vllm::paged_attention_v2_kernel<unsigned short, unsigned short, 128, 16>(float*)",
            "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128> >(flash::Flash_fwd_params)",
            "void flashinfer::BatchDecodeWithPagedKVCacheKernel<(flashinfer::PosEncodingMode)0>(Params)",
            "_fwd_grouped_kernel_stage1",
        ],
    );
    check(
        "Attention (Backward)",
        &[
            "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<64> >(Params)",
            "attn_bwd_preprocess",
        ],
    );
    check(
        "KV Cache",
        &[
            "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, unsigned char, (vllm::Fp8KVCacheDataType)1>(long)",
            "void store_kvcache<2048l, 4, false, long>(StoreKVCacheParams)",
            "create_flashinfer_kv_indices_triton",
        ],
    );
    check(
        "Rotary Embedding",
        &[
            "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*, c10::BFloat16*)",
            "void flashinfer::BatchQKApplyRotaryPosIdsCosSinCacheKernel<true, 128u>(__nv_bfloat16*)",
        ],
    );
    check(
        "SSM",
        &[
            "void selective_scan_fwd_kernel<Selective_Scan_fwd_kernel_traits<32, 4> >(SSMParamsBase)",
            "void causal_conv1d_fwd_kernel<Causal_conv1d_fwd_kernel_traits<128, 4> >(ConvParamsBase)",
            "_chunk_scan_fwd_kernel",
        ],
    );
    check(
        "Quantization",
        &[
            "void vllm::scaled_fp8_quant_kernel_strided<c10::BFloat16, c10::Float8_e4m3fn>(float const*)",
            "void tensorrt_llm::kernels::quantize_with_block_size<(tensorrt_llm::BlockScaleQuantizationType)2, __nv_bfloat16>(int)",
            "_per_token_group_quant_8bit",
        ],
    );
}

#[test]
fn mixtures_of_experts() {
    check(
        "MoE GEMM",
        &[
            "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1",
            "fused_moe_kernel",
            "void moe_q2_K<float>(float*)",
        ],
    );
    check(
        "MoE GEMM",
        &["bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_TN_transOut_clmp_dynBatch_sm100f"],
    );
    check(
        "MoE GEMM+SwiGLU",
        &[
            "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu",
            "bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_TN_clmp_swiGlu_dynBatch_sm100f",
        ],
    );
    check(
        "MoE Routing",
        &[
            "_topk_forward",
            "_combined_routing_memset",
            "_sum_bitmatrix_rows",
            "triton_poi_fused_constant_pad_nd_moe_forward_0",
            "void moe::dev::routing::routingIndicesHistogramKernel<KernelParams<__nv_bfloat16, 128> >(KernelParams)",
            "void vllm::moe::moe_align_block_size_kernel<int>(int*)",
            "void moe_fused_gate_kernel_dynamic<__nv_bfloat16>(void*)",
        ],
    );
    check(
        "MoE Finalize",
        &[
            "_finalize_matmul_scatter_bf16",
            "void moe::dev::finalize::finalizeKernelVecLoad<KernelParams<cutlass::bfloat16_t, 4, true> >(KernelParams)",
        ],
    );
}

#[test]
fn norms() {
    check(
        "RMSNorm",
        &[
            "triton_red_fused__unsafe_view_add_mean_mul_pow_rsqrt_1",
            "_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePassE",
            "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb1ELb0ELb1ELi1EEEvPT0_",
            "std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::BFloat16>::exists, void>::type vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*)",
        ],
    );
    check("RMSNorm+GEMM", &["triton_red_fused_addmm_mean_mul_pow_rsqrt_3"]);
    check(
        "LayerNorm",
        &[
            "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float)",
            "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernel<float, float>(long, long)",
            "triton_per_fused_native_layer_norm_0",
        ],
    );
    check(
        "BatchNorm",
        &[
            "void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>(float, cudnnTensorStruct)",
            "void at::native::batch_norm_backward_kernel<c10::BFloat16, c10::BFloat16, float, int>(long)",
            "MIOpenBatchNormFwdTrainSpatial",
            "triton_poi_fused__native_batch_norm_legit_functional_relu_4",
        ],
    );
}

#[test]
fn matrix_products_and_convolutions() {
    check(
        "Dense GEMM",
        &[
            "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN_LDSB1",
            "Custom_Cijk_Alik_Bljk_BBS_BH_MT128x128x64",
            "nvjet_tst_64x64_64x16_2x1_2cta_v_bz_bias_TNT",
            "ampere_sgemm_32x32_sliced1x4_tn",
            "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x64x64_execute_segment_k_off_kernel__5x_cublas",
            "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_64x6_tn_align8>(Params)",
            "void splitKreduce_kernel<float, float, float, float, true, false, false>(cublasSplitKParams<float>)",
            "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float, cublasGemvParams<float> >(float)",
            "void epilogue::impl::globalKernel<float, float, float, true, true>(int, cublasLtEpilogue_t, int)",
            "void wvSplitK_hf_sml_<__hip_bfloat16, 64, 2, 16, 8, 2, 1>(int, int)",
            "triton_tem_fused_mm_2",
            "void mul_mat_q2_K<float, true>(void const*)",
            "_ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalIN4cute5tupleE",
        ],
    );
    check(
        "Convolution",
        &[
            "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_execute_kernel_cudnn",
            "cudnn_infer_volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1",
            "void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_s16816fprop_optimized_bf16_256x64_32x4_nhwc_align8>(Params)",
            "void implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3, 5, 1, false, true, true>(int, kernel_conv_params)",
            "void wgrad_alg0_engine<float, 128, 6, 7, 3, 3, 5, false, 512>(int, kernel_grad_params)",
            "igemm_wrw_gtcx2_nhwc_bf16_bx0_ex1_bt256x128x16_wt32x32x8_ws2x1_wr2x2_gkgs",
            "_ZN2ck16tensor_operation6device12_GLOBAL__N_149kernel_grouped_conv_fwd_multiple_abd_xdl_cshuffleE",
            "_ZN2ck16tensor_operation6device37kernel_batched_gemm_xdlops_bwd_weightINS_47GridwiseGemmE",
            "miopenSp3AsmConv_v30_3_1_gfx94x_fp32_f2x3_stride1",
            "void fft2d_r2c_32x32<float, false, 5u, true>(float2*, cudnn::reduced_divisor)",
        ],
    );
    check(
        "Layout Transform",
        &[
            "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)2>(float)",
            "batched_transpose_16x64_pack_1x4_ediv_1x2_half",
            "transpose_NCHW2CNHW_V2_2D_WG_off64",
        ],
    );
}

#[test]
fn training_and_recommendation() {
    check(
        "Communication",
        &[
            "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)",
            "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)",
            "void multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*, unsigned long)",
            "void vllm::cross_device_reduce_2stage<__hip_bfloat16, 8>(vllm::RankData*)",
            "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<float>(Params)",
        ],
    );
    check(
        "Optimizer",
        &[
            "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float>(int)",
            "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::BinaryOpListAlphaFunctor<float, 2, 2, 0>, std::plus<float> >(float)",
            "triton_for_fused_0",
        ],
    );
    check(
        "Embedding",
        &[
            "void split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel_cta_per_row_1<float, 2ul>(long)",
            "void permute_pooled_embs_kernel<float>(float const*, long const*)",
        ],
    );
    check(
        "Indexing",
        &[
            "void fbgemm_gpu::permute_2D_data_kernel<false, int, int, decltype(nullptr)>(int)",
            "void at::native::index_elementwise_kernel<128, 4, at::native::index_copy_kernel_impl<at::native::OpaqueType<8> >(long)::{lambda(int)#1}>(int)",
            "void at::native::(anonymous namespace)::searchsorted_cuda_kernel<float, long>(long*)",
        ],
    );
    check("Loss", &["void cunn_ClassNLLCriterion_updateOutput_kernel<float, float>(float*)"]);
    check(
        "Softmax",
        &[
            "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true, false>(float*)",
        ],
    );
    check(
        "Pooling",
        &[
            "void at::native::(anonymous namespace)::max_pool_backward_nchw<float, float>(float const*)",
        ],
    );
    check(
        "Random",
        &[
            "void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float, float, unsigned int, 1, 4, bool>(long)",
        ],
    );
    check(
        "Cat",
        &[
            "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 64, 64>(float*)",
        ],
    );
}

#[test]
fn other_classes() {
    check(
        "Activation",
        &[
            "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&)::{lambda()#2}>(int)",
            "_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16TnPFT_RKS3_EXadL_Z4siluIS2_ES3_S5_EEEEvPS3_PS4_i",
        ],
    );
    check(
        "Elementwise",
        &[
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >(int)",
            "void (anonymous namespace)::elementwise_kernel_with_index<int, at::native::arange_cuda_out(c10::Scalar const&)>(int)",
        ],
    );
    check(
        "Copy/Memory",
        &[
            "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}>(int)",
            "_copy_page_indices_kernel",
            "__amd_rocclr_copyBuffer",
            "void at::native::multi_tensor_apply_kernel<at::native::CopyFunctor<int, long, 2, 1, 1>, at::native::Copy<int, long> >(long)",
        ],
    );
    check(
        "Fill",
        &[
            "void at::native::vectorized_elementwise_kernel<8, at::native::FillFunctor<c10::BFloat16> >(int)",
            "__amd_rocclr_fillBufferAligned",
        ],
    );
    check(
        "Sorting",
        &[
            "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int, int>::Policy800>(int*)",
            "void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(float)",
        ],
    );
    check(
        "Reduce",
        &[
            "reduce_segments",
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float> > >(float)",
            "void rocprim::detail::trampoline_kernel<rocprim::detail::wrapped_scan_config<rocprim::default_config> >(int)",
        ],
    );
    check(
        "Triton Fused",
        &[
            "triton_poi_fused__to_copy_1",
            "triton_poi_fused__unsafe_view_mul_silu_2",
            "triton_poi_fused_convolution_relu_0",
        ],
    );
}

/// The words "merge" and "copy" alone do not make a kernel a sort or a copy.
#[test]
fn words_in_arguments_are_ignored() {
    check("Other", &["merge_lora_weights", "void plan<MergePolicy, CopyTraits>(Params)", ""]);
    check(
        "Attention (Prefill)",
        &["void flash_fwd_kernel<cutlass::gemm::GemmShape<64, 64, 32> >(Params)"],
    );
}

#[test]
fn activities_other_than_kernels() {
    let check = |name, activity, expected: &str| {
        assert_eq!(class_of(Rules::builtin(), name, activity), expected, "{name}");
    };
    for kind in
        ["Memcpy HtoD (Pageable -> Device)", "Memcpy DtoH (Device -> Pinned)", "Memcpy PtoP", ""]
    {
        check(kind, Activity::Copy, "Copy/Memory");
    }
    check("Memset (Device)", Activity::Fill, "Fill");
    check("event_wait", Activity::Device, "Wait");
    check("dma_request", Activity::Device, "Copy/Memory");
    check("pe_exe", Activity::Device, "Device Program");
}

#[test]
fn communication_is_a_group() {
    let rules = Rules::builtin();
    assert!(
        rules.is_communication(rules.classify("ncclDevKernel_AllGather_RING_LL", Activity::Kernel))
    );
    assert!(!rules.is_communication(rules.classify("nvjet_tst", Activity::Kernel)));
    assert!(!rules.is_communication(rules.other()));
}

#[test]
fn user_rules_take_precedence_and_keep_class_ids() {
    let builtin = Rules::builtin();
    let rules = Rules::with_user(
        r#"
        [[rule]]
        class = "My Norm"
        group = "Norm"
        any = ["Fancy"]
        case = "sensitive"
        [[rule]]
        class = "Dense GEMM"
        prefix = ["fancy"]
        activity = "kernel|device"
        [[rule]]
        class = "Mine"
        all = ["fancy", "two"]
        none = ["three"]
        "#,
    )
    .unwrap();
    let check = |name, expected: &str| {
        assert_eq!(class_of(&rules, name, Activity::Kernel), expected, "{name}");
    };
    check("void nvjet_Fancy()", "My Norm");
    check("fancy_attention", "Dense GEMM");
    check("a_fancy_two", "Mine");
    check("a_fancy_two_three", "Other");
    check("flash_fwd", "Attention (Prefill)");
    assert_eq!(class_of(&rules, "fancy", Activity::Copy), "Copy/Memory");
    assert_eq!(rules.find("Softmax"), builtin.find("Softmax"));
    let mine = rules.find("Mine").unwrap();
    assert_eq!(rules.class(mine).group, "Mine");
    assert_eq!(usize::from(mine.0), rules.classes().len() - 1);
    assert_ne!(rules.fingerprint(), builtin.fingerprint());
    assert_eq!(builtin.fingerprint(), Rules::with_user("").unwrap().fingerprint());
    assert_eq!(rules.class(ClassId(u16::MAX)).name, "Other");
}

#[test]
fn errors_name_the_rule_and_the_problem() {
    let check = |toml, expected: &str| {
        assert_eq!(Rules::with_user(toml).unwrap_err().to_string(), expected);
    };
    check(
        "[[rule]]\nclass = \"A\"\nany = [\"a\"]\n[[rule]]\nclass = \"B\"\nnone = [\"b\"]",
        "rule 2 (class \"B\") has no condition and would match every kernel; add `any`, `all`, `prefix`, `head` or `activity`",
    );
    check(
        "[[rule]]\nclass = \"A\"\nany = [\"\"]",
        "rule 1 (class \"A\") has an empty string in `any`, which matches every name",
    );
    check(
        "[[rule]]\nclass = \" \"\nany = [\"a\"]",
        "rule 1 has an empty `class`; set a class name",
    );
    check(
        "[[rule]]\nclass = \"A\"\nactivity = \"kernels\"",
        "rule 1 (class \"A\") has an invalid `activity = \"kernels\"`; valid values are \"kernel\", \"copy\", \"fill\" and \"device\"",
    );
    check(
        "[[rule]]\nclass = \"A\"\nany = [\"a\"]\ncase = \"upper\"",
        "rule 1 (class \"A\") has an invalid `case = \"upper\"`; valid values are \"sensitive\" and \"insensitive\"",
    );
    check(
        "[[rule]]\nclass = \"Softmax\"\ngroup = \"Norm\"\nany = [\"a\"]",
        "rule 1 puts class \"Softmax\" into group \"Norm\", but the class already belongs to group \"Softmax\"",
    );
    check(
        "[[device]]\nname = \"X\"\nmatch = []\nbandwidth = 1.0",
        "device 1 (\"X\") can never match; add `match`, or both `sms` and `memory_gib`",
    );
    check(
        "[[device]]\nname = \"X\"\nmatch = [\"x\"]\nbandwidth = -1.0",
        "device 1 (\"X\") has a rate that is not a positive number",
    );
    let unknown = Rules::with_user("[[rule]]\nclass = \"A\"\nregex = [\"a\"]").unwrap_err();
    assert!(
        matches!(&unknown, RulesError::Syntax { line: 3, message } if message.contains("regex")),
        "{unknown}"
    );
    assert!(matches!(Rules::with_user("[[rule\n"), Err(RulesError::Syntax { line: 1, .. })));
}

#[test]
fn devices_by_name_and_by_size() {
    const GIB: i64 = 1 << 30;
    let check = |name, sms, memory, expected: Option<&str>| {
        let found = Rules::builtin().device(name, sms, memory).map(|device| device.name.as_str());
        assert_eq!(found, expected, "{name} {sms} {memory}");
    };
    check("NVIDIA A100-PG509-200", 108, 42_297_524_224, Some("A100 40GB"));
    check("NVIDIA A100-SXM4-80GB", 108, 85_100_000_000, Some("A100 80GB"));
    check("NVIDIA A10", 72, 24 * GIB, Some("A10"));
    check("NVIDIA A10G", 80, 24 * GIB, None);
    check("NVIDIA H100 80GB HBM3", 132, 85_018_279_936, Some("H100 SXM"));
    check("NVIDIA H100 PCIe", 114, 85_018_279_936, Some("H100 PCIe"));
    check("NVIDIA B200", 148, 191_503_138_816, Some("B200"));
    check("NVIDIA L4", 58, 24 * GIB, Some("L4"));
    check("NVIDIA L40S", 142, 48 * GIB, Some("L40S"));
    check("Tesla V100-SXM2-16GB", 80, 16_945_512_448, Some("V100"));
    check("Tesla T4", 40, 16 * GIB, Some("T4"));
    check("AMD Instinct MI300X VF", 304, 205_571_227_648, Some("MI300X"));
    check("AMD Instinct MI325X", 304, 256 * GIB, Some("MI325X"));
    check("AMD Instinct MI250X/MI250", 110, 64 * GIB, Some("MI250X (one die)"));
    check("AMD Instinct MI250X/MI250", 104, 64 * GIB, Some("MI250 (one die)"));
    check("AMD Radeon Graphics", 104, 68_702_699_520, Some("MI210"));
    check("", 304, 206_141_652_992, Some("MI300X"));
    check("", 304, 0, None);
    check("", 0, 0, None);
    check("ARTEMIS", 0, 0, None);

    let peak = Rules::builtin().device("AMD Instinct MI300X", 0, 0).unwrap();
    assert_eq!(peak.flops("bf16"), Some(1307.4e12));
    assert_eq!(peak.flops("fp4"), None);
    assert_eq!(peak.bandwidth, 5300e9);
    assert_eq!(peak.rates().count(), 7);
}

#[test]
fn user_devices_take_precedence() {
    let toml = "[[device]]\nname = \"Mine\"\nmatch = [\"H100\"]\nbandwidth = 1000.0\nbf16 = 1.0";
    let rules = Rules::with_user(toml).unwrap();
    assert_eq!(
        rules.device("NVIDIA H100 PCIe", 114, 0).map(|device| device.name.as_str()),
        Some("Mine")
    );
}
