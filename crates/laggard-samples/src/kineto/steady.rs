//! Jobs to be compared: their work takes the same time in every step, but for noise, so that what one does
//! otherwise than another is the only difference between them.

use super::kernels::{Kernel, Work};

/// A job whose steps are alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// Standard deviation of the time that a piece of device work takes, as a share of that time.
    pub noise: f64,
    /// Decides the noise. The host's times follow from the recipe's seed, so that two sides can share them.
    pub noise_seed: u64,
    /// What the job does otherwise than the plain one.
    pub variant: Variant,
}

/// What a job does otherwise than the plain one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// Nothing.
    #[default]
    Plain,
    /// The backward pass of attention takes a fifth longer.
    SlowAttention,
    /// The sum and the norm amid a layer are one kernel that torch.compile made.
    AddNormFused,
    /// The sum and the norm amid a layer are three kernels.
    AddNormApart,
    /// The wide matrix products run on another tile, which takes three tenths longer.
    OtherTile,
    /// The host takes its time before every launch, more than most kernels take.
    LateLaunches,
    /// Compute waits for every all-reduce.
    CommunicationAlone,
    /// Between forward and backward, the host waits for the device and then does something else.
    PauseAmid,
    /// So many iterations of a server take in one prompt; the others replay a graph.
    PrefillEvery(u64),
}

/// What the host does when it pauses amid a step.
pub(super) const PAUSE_NS: i64 = 900_000;

impl Variant {
    /// The work that the job runs where the plain one runs `work`.
    pub(super) fn instead_of(self, work: Work) -> Work {
        match (self, work) {
            (Variant::OtherTile, Work::WideGemm) => Work::WideGemmOnOtherTile,
            (_, work) => work,
        }
    }

    /// How long a kernel takes, but for noise.
    pub(super) fn nanos(self, work: Work, kernel: &Kernel) -> i64 {
        match (self, work) {
            (Variant::SlowAttention, Work::AttentionBackward) => kernel.nanos * 6 / 5,
            _ => kernel.nanos,
        }
    }

    /// What the host does before every launch.
    pub(super) fn before_launch_ns(self) -> i64 {
        if self == Variant::LateLaunches { 180_000 } else { 0 }
    }
}
