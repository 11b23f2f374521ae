//! The tables of the scalar kernels, which are a crate of their own.

use super::{Kernels, Tables};
use raptors_scalar::*;

pub(crate) static TABLES: Tables = Tables { f32: &F32, f64: &F64, i32: &I32 };

static F32: Kernels<f32> = Kernels {
    add: add_f32_scalar,
    broadcast_row_add: broadcast_row_add_f32_scalar,
    broadcast_col_add: broadcast_col_add_f32_scalar,
    scale: scale_f32_scalar,
    sum: sum_f32_scalar,
    sum_axis0: sum_axis0_f32_scalar,
    sum_axis1: sum_axis1_f32_scalar,
};

static F64: Kernels<f64> = Kernels {
    add: add_f64_scalar,
    broadcast_row_add: broadcast_row_add_f64_scalar,
    broadcast_col_add: broadcast_col_add_f64_scalar,
    scale: scale_f64_scalar,
    sum: sum_f64_scalar,
    sum_axis0: sum_axis0_f64_scalar,
    sum_axis1: sum_axis1_f64_scalar,
};

static I32: Kernels<i32> = Kernels {
    add: add_i32_scalar,
    broadcast_row_add: broadcast_row_add_i32_scalar,
    broadcast_col_add: broadcast_col_add_i32_scalar,
    scale: scale_i32_scalar,
    sum: sum_i32_scalar,
    sum_axis0: sum_axis0_i32_scalar,
    sum_axis1: sum_axis1_i32_scalar,
};
