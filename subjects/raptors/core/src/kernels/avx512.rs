//! AVX-512: 512 bits; requires only AVX-512F.

use super::lanes::{self, Vector, kernels};
use super::{Kernels, Tables, Writers};
use crate::Element;
use std::arch::x86_64::*;

pub(crate) static TABLES: Tables = Tables { f32: &F32, f64: &F64, i32: &I32 };

kernels!(
    F32, "avx512f", f32, __m512, 8:
    add_f32_avx512 broadcast_row_add_f32_avx512 broadcast_col_add_f32_avx512 scale_f32_avx512
    add_f32_avx512_stream broadcast_row_add_f32_avx512_stream broadcast_col_add_f32_avx512_stream
    scale_f32_avx512_stream
    sum_f32_avx512 sum_axis0_f32_avx512 sum_axis1_f32_avx512
);
kernels!(
    F64, "avx512f", f64, __m512d, 8:
    add_f64_avx512 broadcast_row_add_f64_avx512 broadcast_col_add_f64_avx512 scale_f64_avx512
    add_f64_avx512_stream broadcast_row_add_f64_avx512_stream broadcast_col_add_f64_avx512_stream
    scale_f64_avx512_stream
    sum_f64_avx512 sum_axis0_f64_avx512 sum_axis1_f64_avx512
);
kernels!(
    I32, "avx512f", i32, __m512i, 4:
    add_i32_avx512 broadcast_row_add_i32_avx512 broadcast_col_add_i32_avx512 scale_i32_avx512
    add_i32_avx512_stream broadcast_row_add_i32_avx512_stream broadcast_col_add_i32_avx512_stream
    scale_i32_avx512_stream
    sum_i32_avx512 sum_axis0_i32_avx512 sum_axis1_i32_avx512
);

impl Vector for __m512 {
    type Element = f32;
    type Sums = Self;
    const LANES: usize = 16;

    #[inline(always)]
    unsafe fn load(at: *const f32) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_loadu_ps(at) }
    }
    #[inline(always)]
    unsafe fn store(self, at: *mut f32) {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_storeu_ps(at, self) }
    }
    #[inline(always)]
    unsafe fn stream(self, at: *mut f32) {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_stream_ps(at, self) }
    }
    #[inline(always)]
    unsafe fn splat(element: f32) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_set1_ps(element) }
    }
    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_add_ps(self, other) }
    }
    #[inline(always)]
    unsafe fn times(self, other: Self) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_mul_ps(self, other) }
    }

    #[inline(always)]
    unsafe fn no_sums() -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_setzero_ps() }
    }
    #[inline(always)]
    unsafe fn load_sums(at: *const f32) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_loadu_ps(at) }
    }
    #[inline(always)]
    unsafe fn store_sums(sums: Self, at: *mut f32) {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_storeu_ps(at, sums) }
    }
    #[inline(always)]
    unsafe fn plus_sums(sums: Self, vector: Self) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_add_ps(sums, vector) }
    }
    #[inline(always)]
    unsafe fn join_sums(a: Self, b: Self) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_add_ps(a, b) }
    }
}

impl Vector for __m512d {
    type Element = f64;
    type Sums = Self;
    const LANES: usize = 8;

    #[inline(always)]
    unsafe fn load(at: *const f64) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_loadu_pd(at) }
    }
    #[inline(always)]
    unsafe fn store(self, at: *mut f64) {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_storeu_pd(at, self) }
    }
    #[inline(always)]
    unsafe fn stream(self, at: *mut f64) {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_stream_pd(at, self) }
    }
    #[inline(always)]
    unsafe fn splat(element: f64) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_set1_pd(element) }
    }
    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_add_pd(self, other) }
    }
    #[inline(always)]
    unsafe fn times(self, other: Self) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_mul_pd(self, other) }
    }

    #[inline(always)]
    unsafe fn no_sums() -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_setzero_pd() }
    }
    #[inline(always)]
    unsafe fn load_sums(at: *const f64) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_loadu_pd(at) }
    }
    #[inline(always)]
    unsafe fn store_sums(sums: Self, at: *mut f64) {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_storeu_pd(at, sums) }
    }
    #[inline(always)]
    unsafe fn plus_sums(sums: Self, vector: Self) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_add_pd(sums, vector) }
    }
    #[inline(always)]
    unsafe fn join_sums(a: Self, b: Self) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_add_pd(a, b) }
    }
}

impl Vector for __m512i {
    type Element = i32;
    /// 64 bits per sum: lower lanes, then upper lanes.
    type Sums = [Self; 2];
    const LANES: usize = 16;

    #[inline(always)]
    unsafe fn load(at: *const i32) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_loadu_si512(at.cast()) }
    }
    #[inline(always)]
    unsafe fn store(self, at: *mut i32) {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_storeu_si512(at.cast(), self) }
    }
    #[inline(always)]
    unsafe fn stream(self, at: *mut i32) {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_stream_si512(at.cast(), self) }
    }
    #[inline(always)]
    unsafe fn splat(element: i32) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_set1_epi32(element) }
    }
    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_add_epi32(self, other) }
    }
    #[inline(always)]
    unsafe fn times(self, other: Self) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_mullo_epi32(self, other) }
    }

    #[inline(always)]
    unsafe fn no_sums() -> [Self; 2] {
        // SAFETY: guaranteed by the caller.
        unsafe { [_mm512_setzero_si512(); 2] }
    }
    #[inline(always)]
    unsafe fn load_sums(at: *const i64) -> [Self; 2] {
        // SAFETY: guaranteed by the caller.
        unsafe { [_mm512_loadu_si512(at.cast()), _mm512_loadu_si512(at.add(8).cast())] }
    }
    #[inline(always)]
    unsafe fn store_sums(sums: [Self; 2], at: *mut i64) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            _mm512_storeu_si512(at.cast(), sums[0]);
            _mm512_storeu_si512(at.add(8).cast(), sums[1]);
        }
    }
    #[inline(always)]
    unsafe fn plus_sums(sums: [Self; 2], vector: Self) -> [Self; 2] {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let low = _mm512_cvtepi32_epi64(_mm512_castsi512_si256(vector));
            let high = _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64::<1>(vector));
            [_mm512_add_epi64(sums[0], low), _mm512_add_epi64(sums[1], high)]
        }
    }
    #[inline(always)]
    unsafe fn join_sums(a: [Self; 2], b: [Self; 2]) -> [Self; 2] {
        // SAFETY: guaranteed by the caller.
        unsafe { [_mm512_add_epi64(a[0], b[0]), _mm512_add_epi64(a[1], b[1])] }
    }
}
