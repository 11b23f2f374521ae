use super::*;
use proptest::prelude::*;

/// Kernels of traces of PyTorch, vLLM and SGLang on A100, H100, B200, V100, MI210, MI250 and MI300.
const KERNELS: [(&str, &str); 31] = [
    (
        "void at::native::vectorized_elementwise_kernel<8, at::native::BinaryFunctor<c10::BFloat16, \
         c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, \
         std::array<char*, 3ul> >(int, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, \
         c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul>)",
        "elementwise mul bf16 vec8",
    ),
    (
        "void at::native::vectorized_elementwise_kernel<8, at::native::AUnaryFunctor<c10::BFloat16, \
         c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, \
         std::array<char*, 2ul> >(int, at::native::AUnaryFunctor<c10::BFloat16, c10::BFloat16, \
         c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 2ul>)",
        "elementwise mul bf16 scalar vec8",
    ),
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::tanh_kernel_cuda(\
         at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda()#4}::operator()() \
         const::{lambda(float)#1}, at::detail::Array<char*, 2> >(int, \
         at::native::tanh_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() \
         const::{lambda()#4}::operator()() const::{lambda(float)#1}, at::detail::Array<char*, 2>)",
        "elementwise tanh f32 vec4",
    ),
    (
        "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<\
         at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() \
         const::{lambda()#7}::operator()() const::{lambda(float)#1}>(at::TensorIteratorBase&, \
         at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() \
         const::{lambda()#7}::operator()() const::{lambda(float)#1} const&)::{lambda(int)#1}>(int, \
         int)",
        "elementwise copy f32 128x2",
    ),
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, \
         at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>, \
         at::detail::Array<char*, 3>)",
        "elementwise add f32 vec4",
    ),
    (
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, \
         at::native::func_wrapper_t<float, at::native::sum_functor<float, float, \
         float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4> \
         >(at::native::ReduceOp<float, at::native::func_wrapper_t<float, at::native::sum_functor<float, \
         float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, \
         float, 4>)",
        "reduce sum f32 512x1",
    ),
    (
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<c10::BFloat16, \
         at::native::MeanOps<c10::BFloat16, float, float, c10::BFloat16>, unsigned int, \
         c10::BFloat16, 4> >(at::native::ReduceOp<c10::BFloat16, at::native::MeanOps<c10::BFloat16, \
         float, float, c10::BFloat16>, unsigned int, c10::BFloat16, 4>)",
        "reduce mean bf16 512x1",
    ),
    (
        "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true>(float*, \
         float const*, int, int, int)",
        "softmax_warp_forward<f32, f32, f32, 10, true>",
    ),
    (
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, \
         float>(int, float, c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*, float*, \
         float*, c10::BFloat16*)",
        "vectorized_layer_norm_kernel<bf16, f32>",
    ),
    (
        "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<128, 128, 64, 4, \
         false, false, cutlass::bfloat16_t, pytorch_flash::Flash_kernel_traits<128, 128, 64, 4, \
         cutlass::bfloat16_t> >, false, true, false, false, false, true, \
         false>(pytorch_flash::Flash_fwd_params)",
        "flash_fwd hdim128 bf16 causal 128x64",
    ),
    (
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x128_32x3_tn_align8>(\
         cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x128_32x3_tn_align8::Params)",
        "cutlass gemm 128x128x32 bf16 tn s16816 relu",
    ),
    (
        "void cutlass::Kernel<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(\
         cutlass_80_simt_sgemm_128x32_8x5_nn_align1::Params)",
        "cutlass gemm 128x32x8 f32 nn simt stages5 align1",
    ),
    (
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_\
         segment_k_off_kernel__5x_cublas",
        "xmma gemm 128x128x64 bf16 tn n",
    ),
    (
        "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize64x128x32_stage5_\
         warpsize2x2x1_g1_tensor16x8x8_execute_kernel_cudnn_infer",
        "xmma fprop 64x128x32 tf32 nhwckrsc nhwc stage5",
    ),
    (
        "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn",
        "ampere gemm 128x64 bf16 tn s16816 ldg8 f2f",
    ),
    ("ampere_sgemm_128x128_tn", "ampere_sgemm_128x128_tn"),
    ("nvjet_tst_144x128_64x6_2x1_v_bz_bias_TNN", "nvjet_tst_144x128_64x6_2x1_v_bz_bias_TNN"),
    (
        "Cijk_Alik_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_MT32x32x64_MI16x16x1_SN_LDSB0_AFC1_AFEM1_AFEM1_\
         ASEM1_CLR1_CADS0_DTVA0_DTVB0_EPS0_FDSI0_GRPM1",
        "Tensile gemm 32x32x64 bf16 tn",
    ),
    (
        "Cijk_Ailk_Bjlk_SB_Bias_AS_SAV_UserArgs_MT64x16x16_MI16x16x1_SN_LDSB0_AFC1_AFEM1_AFEM1_ASEM1",
        "Tensile gemm 64x16x16 f32 nt",
    ),
    (
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
    ),
    ("triton_poi_fused_add_mul_0", "triton_poi_fused_add_mul_0"),
    (
        "triton_poi_fused_add_bitwise_and_bitwise_not_bitwise_or_ge_lt_mul_sub_0",
        "triton_poi_fused_add_bitwise_and_bitwise_not…",
    ),
    (
        "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, float, \
         int>::Policy800, false, long, float, int, int>(int*, int*, int*, int const*, long*, long \
         const*, float*, float const*, int, int, int)",
        "cub::DeviceRadixSortOnesweepKernel i64 f32 i32",
    ),
    (
        "void rocprim::ROCPRIM_400200_NS::detail::trampoline_kernel<\
         rocprim::ROCPRIM_400200_NS::detail::wrapped_scan_config<\
         rocprim::ROCPRIM_400200_NS::default_config, long>, \
         (rocprim::ROCPRIM_400200_NS::detail::target_arch)942>(void*)",
        "rocprim scan i64",
    ),
    (
        "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb0ELb0ELb1ELi1EEEvPT0_PT_PfS4_S4_S4_\
         diiiiiiib",
        "aiter::add_rmsnorm_quant_kernel bf16 256 16",
    ),
    (
        "_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16TnPFT_RKS3_EXadL_Z4siluIS2_ES3_S5_\
         EEEEvPS3_PS4_i",
        "activation::act_and_mul_kernel<bf16, silu>",
    ),
    (
        "_ZN2ck16tensor_operation6device12_GLOBAL__N_139kernel_grouped_conv_fwd_xdl_cshuffle_v3INS_1AE\
         ttEEvPS_",
        "kernel_grouped_conv_fwd_xdl_cshuffle_v3 u16 A",
    ),
    (
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous \
         namespace)::TensorListMetadata<2>, at::native::(anonymous namespace)::\
         BinaryOpListAlphaFunctor<float, 2, 2, 0>, std::plus<float>, float>(float)",
        "multi_tensor plus f32",
    ),
    (
        "std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::BFloat16>::exists, void>::type \
         vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long, c10::BFloat16*, \
         c10::BFloat16 const*, float, int, int)",
        "vllm::fused_add_rms_norm_kernel<bf16, 8>",
    ),
    (
        "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128_16x4_nt_align1>(\
         cutlass_80_tensorop_s1688gemm_128x128_16x4_nt_align1::Params)",
        "cutlass gemm 128x128x16 nt s1688 stages4 align1",
    ),
    (
        "fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128PersistentContext",
        "fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCaus…",
    ),
];

const FUNCTIONS: [(&str, &str); 16] = [
    ("std::vector<int, std::allocator<int> >::push_back(int const&)", "vector<i32>::push_back"),
    (
        "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >::_M_append(\
         char const*, unsigned long)",
        "basic_string<char>::_M_append",
    ),
    (
        "std::unordered_map<std::string, long, std::hash<std::string>, std::equal_to<std::string>, \
         std::allocator<std::pair<std::string const, long> > >::operator[](std::string const&)",
        "unordered_map::operator[] string i64",
    ),
    (
        "foo::Matrix<double>::operator*(foo::Matrix<double> const&) const",
        "foo::Matrix<f64>::operator*",
    ),
    (
        "std::ostream& std::operator<< <std::char_traits<char> >(std::basic_ostream<char, \
         std::char_traits<char> >&, char const*)",
        "operator<<",
    ),
    (
        "foo::Functor::operator()(std::vector<long, std::allocator<long> > const&) const",
        "foo::Functor::operator()",
    ),
    (
        "void foo::bar<int>(std::vector<int, std::allocator<int> > const&)::{lambda(int)#1}::\
         operator()(int) const",
        "foo::bar<i32>::{lambda}",
    ),
    (
        "raptors::(anonymous namespace)::sum_loop(double const*, long) [clone .cold]",
        "raptors::sum_loop cold",
    ),
    (
        "<alloc::vec::Vec<T> as core::iter::traits::collect::FromIterator<T>>::from_iter",
        "Vec<T>::from_iter",
    ),
    (
        "core::iter::traits::iterator::a_long_module_name::Iterator::fold",
        "iterator::a_long_module_name::Iterator::fold",
    ),
    (
        "pandas.core.internals.managers.BlockManager._interleave",
        "core.internals.managers.BlockManager._interleave",
    ),
    (
        "/usr/lib/python3.11/site-packages/pandas/core/internals/managers.py:1203",
        "…/pandas/core/internals/managers.py:1203",
    ),
    (
        "transformers/models/qwen2/modeling_qwen2.py(218): forward",
        "…/models/qwen2/modeling_qwen2.py(218): forward",
    ),
    (
        "sgemm_kernel_SKYLAKEX_with_a_name_that_goes_on_and_on",
        "sgemm_kernel_SKYLAKEX_with_a_name_that_goes_on…",
    ),
    ("evil\u{1b}[2J<name", "evil\\u{1b}[2J<name"),
    ("a << b", "a << b"),
];

#[test]
fn readers_recognize_kernels_in_narrow_columns() {
    for (name, expected) in KERNELS.into_iter().chain(FUNCTIONS) {
        assert_eq!(short(name, 48), expected, "{name}");
    }
}

#[test]
fn wider_columns_show_more() {
    let name = KERNELS[10].0;
    for (width, expected) in [
        (16, "cutlass gemm"),
        (24, "cutlass gemm 128x128x32"),
        (36, "cutlass gemm 128x128x32 bf16 tn"),
        (60, "cutlass gemm 128x128x32 bf16 tn s16816 relu stages3 align8"),
        (500, name),
    ] {
        assert_eq!(short(name, width), expected);
    }
}

#[test]
fn similar_kernels_differ_in_the_parts_that_distinguish_them() {
    let check = |width: usize, names: [&str; 2], expected: [&str; 2]| {
        let set = Names::new(names);
        assert_eq!(names.map(|name| set.short(name, width)), expected);
    };
    check(
        24,
        [
            "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align1>(Params)",
            "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4>(Params)",
        ],
        ["cutlass gemm align1", "cutlass gemm align4"],
    );
    check(
        40,
        [
            "cudnn_infer_volta_scudnn_128x32_sliced1x4_ldg4_relu_exp_medium_nhwc_tn_v1",
            "cudnn_infer_volta_scudnn_128x32_sliced1x4_ldg4_relu_exp_small_nhwc_tn_v1",
        ],
        ["cudnn_infer_volta_scudnn_128x32…_medium…", "cudnn_infer_volta_scudnn_128x32…_small…"],
    );
    check(
        30,
        [
            "foo::convert_all_values(int, double const*)",
            "foo::convert_all_values(long, double const*)",
        ],
        ["foo::convert_all_values i32", "foo::convert_all_values i64"],
    );
    // Nothing readable differs.
    check(
        30,
        ["foo::convert_all_values(int, int, long)", "foo::convert_all_values(int, long, long)"],
        ["foo::convert_all_values #ab90", "foo::convert_all_values #77c8"],
    );
}

#[test]
fn real_kernels_look_different_at_every_width() {
    let names: Vec<&str> = KERNELS.into_iter().chain(FUNCTIONS).map(|(name, _)| name).collect();
    let set = Names::new(names.iter().copied());
    for width in 12..200 {
        assert_distinct(&set, &names, width);
    }
}

#[test]
fn malformed_names_are_shortened_too() {
    let nested = "a<".repeat(5000);
    for name in [
        nested.as_str(),
        "f<<<<<<((((((((((((((((((((((((((((",
        ">>>>::::((()))>>>::::::::::::::",
        "_ZN99999999999999999999999999999",
        "::::::::::::::::::::::",
        "Cijk_______________________________",
        "operator operator operator operator",
    ] {
        assert!(escape::columns(&short(name, 20)) <= 20, "{}", short(name, 20));
    }
}

fn assert_distinct(set: &Names, names: &[&str], width: usize) {
    let mut seen: FxHashMap<String, &str> = FxHashMap::default();
    for name in names {
        let form = set.short(name, width);
        assert!(escape::columns(&form) <= width, "{form:?} is wider than {width}");
        if let Some(other) = seen.insert(form.clone(), name) {
            assert_eq!(&other, name, "both are {form:?} at {width}");
        }
    }
}

proptest! {
    #[test]
    fn different_names_look_different(
        names in proptest::collection::btree_set(name(), 2..30),
        width in 12usize..100,
    ) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_distinct(&Names::new(names.iter().copied()), &names, width);
    }

    #[test]
    fn any_text_has_a_form(text in "\\PC{0,200}", width in 0usize..60) {
        let form = short(&text, width);
        prop_assert!(escape::columns(&form) <= width.max(1));
    }
}

/// Names that resemble each other: variants of real names, and C++ built from few words.
fn name() -> impl Strategy<Value = String> {
    let word =
        || proptest::sample::select(vec!["add", "mul", "float", "int", "kernel", "Policy", "4"]);
    let args = proptest::collection::vec(word(), 0..5).prop_map(|args| args.join(", "));
    let real = (0..KERNELS.len(), word(), 0usize..40).prop_map(|(i, word, at)| {
        let name = KERNELS[i].0;
        let at = name.char_indices().map(|(at, _)| at).nth(at).unwrap_or(name.len());
        format!("{}{word}{}", &name[..at], &name[at..])
    });
    let built = (word(), word(), args.clone(), args)
        .prop_map(|(scope, name, args, params)| format!("void {scope}::{name}<{args}>({params})"));
    prop_oneof![real, built]
}
