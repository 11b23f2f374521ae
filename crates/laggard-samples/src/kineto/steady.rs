//! Jobs for comparisons: except for noise, device operations take the same time in every step, so that the
//! variant is the only difference between two jobs.

use super::kernels::{Kernel, Work};

/// A job with equal steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// Relative standard deviation of the duration of a device operation.
    pub noise: f64,
    /// Seed of the noise. Host times use the seed of the recipe, so that two sides can share them.
    pub noise_seed: u64,
    /// Variant of the job.
    pub variant: Variant,
}

/// Difference from the default job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// No difference.
    #[default]
    Plain,
    /// The backward pass of attention takes 20 % longer.
    SlowAttention,
    /// The sum and the norm inside a layer are one kernel of torch.compile.
    AddNormFused,
    /// The sum and the norm inside a layer are three kernels.
    AddNormApart,
    /// Wide matrix products use another tile size, which takes 30 % longer.
    OtherTile,
    /// The host delays every launch by more than the duration of most kernels.
    LateLaunches,
    /// Compute waits for every all-reduce.
    CommunicationAlone,
    /// Between forward and backward pass, the host waits for the device and then does other work.
    PauseAmid,
    /// One of this many server iterations processes a prompt; the others replay a graph.
    PrefillEvery(u64),
}

/// Duration of the host's other work within a step.
pub(super) const PAUSE_NS: i64 = 900_000;

impl Variant {
    /// The work that replaces `work` in this variant.
    pub(super) fn instead_of(self, work: Work) -> Work {
        match (self, work) {
            (Variant::OtherTile, Work::WideGemm) => Work::WideGemmOnOtherTile,
            (_, work) => work,
        }
    }

    /// Duration of a kernel, without noise.
    pub(super) fn nanos(self, work: Work, kernel: &Kernel) -> i64 {
        match (self, work) {
            (Variant::SlowAttention, Work::AttentionBackward) => kernel.nanos * 6 / 5,
            _ => kernel.nanos,
        }
    }

    /// Delay before every launch.
    pub(super) fn before_launch_ns(self) -> i64 {
        if self == Variant::LateLaunches { 180_000 } else { 0 }
    }
}
