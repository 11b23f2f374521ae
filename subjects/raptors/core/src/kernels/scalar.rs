//! The tables of the scalar kernels, which are in a separate crate and have no streaming stores.

use super::{Kernels, Tables, Writers};
use raptors_scalar::*;

pub(crate) static TABLES: Tables = Tables { f32: &F32, f64: &F64, i32: &I32 };

static F32: Kernels<f32> = Kernels {
    cached: WRITERS_F32,
    streaming: WRITERS_F32,
    sum: sum_f32_scalar,
    sum_axis0: sum_axis0_f32_scalar,
    sum_axis1: sum_axis1_f32_scalar,
};

static F64: Kernels<f64> = Kernels {
    cached: WRITERS_F64,
    streaming: WRITERS_F64,
    sum: sum_f64_scalar,
    sum_axis0: sum_axis0_f64_scalar,
    sum_axis1: sum_axis1_f64_scalar,
};

static I32: Kernels<i32> = Kernels {
    cached: WRITERS_I32,
    streaming: WRITERS_I32,
    sum: sum_i32_scalar,
    sum_axis0: sum_axis0_i32_scalar,
    sum_axis1: sum_axis1_i32_scalar,
};

const WRITERS_F32: Writers<f32> = Writers {
    add: add_f32_scalar,
    broadcast_row_add: broadcast_row_add_f32_scalar,
    broadcast_col_add: broadcast_col_add_f32_scalar,
    scale: scale_f32_scalar,
};

const WRITERS_F64: Writers<f64> = Writers {
    add: add_f64_scalar,
    broadcast_row_add: broadcast_row_add_f64_scalar,
    broadcast_col_add: broadcast_col_add_f64_scalar,
    scale: scale_f64_scalar,
};

const WRITERS_I32: Writers<i32> = Writers {
    add: add_i32_scalar,
    broadcast_row_add: broadcast_row_add_i32_scalar,
    broadcast_col_add: broadcast_col_add_i32_scalar,
    scale: scale_i32_scalar,
};
