//! The kernels of each vendor, which differ in speed and fusion like real ones.

mod amd;
mod nvidia;

use super::Gpu;

/// A kernel of one vendor.
#[derive(Debug)]
pub(super) struct Kernel {
    pub(super) name: &'static str,
    pub(super) nanos: i64,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) registers: u32,
    pub(super) shared: u32,
}

const fn kernel(
    name: &'static str,
    nanos: i64,
    grid: [u32; 3],
    block: [u32; 3],
    registers: u32,
    shared: u32,
) -> Kernel {
    Kernel { name, nanos, grid, block, registers, shared }
}

/// An operation of the model. Each vendor runs it as one kernel, or as several if it is not fused.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    Norm,
    Gemm,
    WideGemm,
    Attention,
    Gelu,
    Add,
    Softmax,
    Loss,
    GemmBackward,
    AttentionBackward,
    NormBackward,
    Accumulate,
    Adam,
    AllReduce,
    Rotary,
    KvCache,
    DecodeGemm,
    PagedAttention,
    Activation,
    TopK,
    WideGemmOnOtherTile,
    /// A sum and its norm, fused.
    AddNorm,
    /// A norm of unaligned data, which computes the moments first.
    NormApart,
}

impl Work {
    pub(super) fn kernels(self, gpu: Gpu) -> &'static [Kernel] {
        match gpu {
            Gpu::Nvidia => nvidia::kernels(self),
            Gpu::Amd => amd::kernels(self),
        }
    }
}
