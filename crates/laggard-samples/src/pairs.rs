//! Pairs of synthetic traces in which B is slower than A for a planted reason, with their exact differences.
//!
//! A transformer with eight layers is trained or serves requests. Both sides have the same work and the same
//! host times. Durations of device operations vary by 1 %, independently on each side. The device is busy
//! nearly all the time unless idle time is planted.

use crate::kineto::{self, Gpu, Piece, Recipe, Steady, Totals, Variant, Workload};
use crate::rng::Rng;
use laggard_core::classify::Rules;
use laggard_core::model::timeline::Activity;
use std::io::{self, Write};

/// The planted difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Planted {
    /// The backward pass of attention, a separate class, takes 20 % longer.
    SlowClass,
    /// A sum and a norm in each layer are one kernel in A, and three slower kernels in B.
    Fused,
    /// B has one more layer.
    LayerMore,
    /// The host of B delays every launch, so that the device is idle.
    LateLaunches,
    /// All-reduces overlap with compute in A. In B, compute waits for them.
    ExposedCommunication,
    /// More iterations of B process a prompt. Each kind of iteration is as fast as in A.
    PhaseMix,
    /// Within each step, the host of B waits for the device and then does other work.
    SlowHostGap,
    /// Wide matrix products use another tile size, which takes 30 % longer.
    OtherKernel,
    /// No difference: the same trace twice.
    Nothing,
    /// No difference, but durations of device operations vary by 3 %.
    Noise,
    /// A is NVIDIA and B is AMD; only the totals are known.
    Vendors,
}

impl Planted {
    /// All differences.
    pub const ALL: [Planted; 11] = [
        Planted::SlowClass,
        Planted::Fused,
        Planted::LayerMore,
        Planted::LateLaunches,
        Planted::ExposedCommunication,
        Planted::PhaseMix,
        Planted::SlowHostGap,
        Planted::OtherKernel,
        Planted::Nothing,
        Planted::Noise,
        Planted::Vendors,
    ];

    /// The name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Planted::SlowClass => "slow-class",
            Planted::Fused => "fused",
            Planted::LayerMore => "layer-more",
            Planted::LateLaunches => "late-launches",
            Planted::ExposedCommunication => "exposed-communication",
            Planted::PhaseMix => "phase-mix",
            Planted::SlowHostGap => "slow-host-gap",
            Planted::OtherKernel => "other-kernel",
            Planted::Nothing => "nothing",
            Planted::Noise => "noise",
            Planted::Vendors => "vendors",
        }
    }

    /// Variants of A and B.
    fn variants(self) -> [Variant; 2] {
        match self {
            Planted::SlowClass => [Variant::Plain, Variant::SlowAttention],
            Planted::Fused => [Variant::AddNormFused, Variant::AddNormApart],
            Planted::LateLaunches => [Variant::Plain, Variant::LateLaunches],
            Planted::ExposedCommunication => [Variant::Plain, Variant::CommunicationAlone],
            Planted::PhaseMix => [Variant::PrefillEvery(5), Variant::PrefillEvery(2)],
            Planted::SlowHostGap => [Variant::Plain, Variant::PauseAmid],
            Planted::OtherKernel => [Variant::Plain, Variant::OtherTile],
            Planted::LayerMore | Planted::Nothing | Planted::Noise | Planted::Vendors => {
                [Variant::Plain; 2]
            }
        }
    }

    /// The kernel class of the planted difference; empty if it is not limited to one class.
    fn class(self) -> &'static str {
        match self {
            Planted::SlowClass => "Attention (Backward)",
            Planted::ExposedCommunication => "Communication",
            Planted::OtherKernel => "Dense GEMM",
            _ => "",
        }
    }
}

/// Parameters of a pair.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The planted difference.
    pub planted: Planted,
    /// Length of the traces; both have the same number of steps.
    pub length: Length,
    /// Seed of all random values.
    pub seed: u64,
    /// Whether to record Python functions, including modules.
    pub python: bool,
}

/// Length of the traces.
#[derive(Clone, Copy, Debug)]
pub enum Length {
    /// Number of steps, at least one. A server makes at least 20 iterations.
    Steps(u64),
    /// Complete steps until A has about this many bytes.
    Bytes(u64),
}

/// Exact values of a pair. Differences are B minus A, per step on average, including the noise.
#[derive(Clone, Debug, PartialEq)]
pub struct Truth {
    /// Steps per side.
    pub steps: u64,
    /// Difference in time from the first to the last device operation of a step, including idle time.
    pub gap_ns: f64,
    /// Kernel class of the planted difference, by the built-in rules; empty if not limited to one class.
    pub class: &'static str,
    /// Difference in kernel time of that class. For communication the overlap matters instead.
    pub class_gap_ns: f64,
    /// Kernels that only A or only B runs, in the order of their first launch.
    pub only: [Vec<&'static str>; 2],
}

/// Two traces and their exact values, as in [`Truth`].
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The reference.
    pub a: String,
    /// The slower side.
    pub b: String,
    /// Steps per side.
    pub steps: u64,
    /// Difference in device time of a step, including idle time.
    pub gap_ns: f64,
    /// Kernel class of the planted difference; empty if not limited to one class.
    pub class: &'static str,
    /// Difference in kernel time of that class per step.
    pub class_gap_ns: f64,
    /// Kernels that only A or only B runs.
    pub only: [Vec<&'static str>; 2],
}

/// A pair with Python functions and modules.
pub fn pair(planted: Planted, steps: u64, seed: u64) -> Pair {
    text(&Plan { planted, length: Length::Steps(steps), seed, python: true })
}

/// A pair without Python functions, so that layers must be detected from kernels.
pub fn pair_without_python(planted: Planted, steps: u64, seed: u64) -> Pair {
    text(&Plan { planted, length: Length::Steps(steps), seed, python: false })
}

fn text(plan: &Plan) -> Pair {
    let mut texts = [Vec::new(), Vec::new()];
    let [a, b] = &mut texts;
    let Truth { steps, gap_ns, class, class_gap_ns, only } = match write(plan, a, b) {
        Ok(truth) => truth,
        Err(error) => unreachable!("writing to memory failed: {error}"),
    };
    let [a, b] = texts.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Pair { a, b, steps, gap_ns, class, class_gap_ns, only }
}

/// Writes both sides.
pub fn write(plan: &Plan, a: impl Write, b: impl Write) -> io::Result<Truth> {
    let [recipe_a, recipe_b] = recipes(plan);
    let class = plan.planted.class();
    let (totals, a) = write_side(&recipe_a, class, a)?;
    let recipe_b = Recipe { steps: Some(totals.steps), ..recipe_b };
    let (_, b) = write_side(&recipe_b, class, b)?;
    let of_step = |ns: i64| ns as f64 / totals.steps as f64;
    let without = |side: &Side, other: &Side| {
        side.kernels.iter().copied().filter(|kernel| !other.kernels.contains(kernel)).collect()
    };
    Ok(Truth {
        steps: totals.steps,
        gap_ns: of_step(b.wall_ns - a.wall_ns),
        class,
        class_gap_ns: of_step(b.class_ns - a.class_ns),
        only: [without(&a, &b), without(&b, &a)],
    })
}

const LAYERS: u32 = 8;
/// Minimum number of server iterations to include enough of both kinds.
const LEAST_ITERATIONS: u64 = 20;

fn recipes(plan: &Plan) -> [Recipe; 2] {
    let Plan { planted, length, seed, python } = *plan;
    let serves = planted == Planted::PhaseMix;
    let (bytes, steps) = match length {
        Length::Steps(steps) => (0, Some(steps.max(if serves { LEAST_ITERATIONS } else { 1 }))),
        Length::Bytes(bytes) => (bytes, None),
    };
    let mut noise_seeds = Rng::new(!seed);
    let noise_seeds = [noise_seeds.bits(), noise_seeds.bits()];
    [0, 1].map(|side| Recipe {
        steps,
        python,
        seed,
        workload: if serves { Workload::Decode } else { Workload::Training },
        layers: LAYERS + u32::from(planted == Planted::LayerMore && side == 1),
        ranks: if planted == Planted::ExposedCommunication { 8 } else { 1 },
        steady: Some(Steady {
            noise: if planted == Planted::Noise { 0.03 } else { 0.01 },
            noise_seed: noise_seeds[if planted == Planted::Nothing { 0 } else { side }],
            variant: planted.variants()[side],
        }),
        ..Recipe::new(
            bytes,
            if planted == Planted::Vendors && side == 1 { Gpu::Amd } else { Gpu::Nvidia },
        )
    })
}

/// Device operations of one side, over all steps.
#[derive(Default)]
struct Side {
    wall_ns: i64,
    class_ns: i64,
    kernels: Vec<&'static str>,
}

fn write_side(recipe: &Recipe, class: &str, out: impl Write) -> io::Result<(Totals, Side)> {
    let rules = Rules::builtin();
    let class = rules.find(class);
    let mut side = Side::default();
    let mut in_class = Vec::new();
    let totals = kineto::write_watched(recipe, out, |pieces| {
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        for Piece { kernel, start_ns, dur_ns } in pieces {
            (first, last) = (first.min(start_ns), last.max(start_ns + dur_ns));
            let Some(name) = kernel else { continue };
            let nth = side.kernels.iter().position(|kernel| *kernel == name).unwrap_or_else(|| {
                side.kernels.push(name);
                in_class.push(Some(rules.classify(name, Activity::Kernel)) == class);
                side.kernels.len() - 1
            });
            side.class_ns += if in_class[nth] { dur_ns } else { 0 };
        }
        side.wall_ns += last - first;
    })?;
    Ok((totals, side))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// Device operations of a trace, parsed from its text.
    #[derive(Default)]
    struct Told {
        /// Of each step: its annotation, the time from first to last operation, and the busy time.
        steps: Vec<(String, i64, i64)>,
        class_ns: i64,
        kernels: usize,
    }

    impl Told {
        fn of(text: &str, class: &str) -> Told {
            let trace: Value = serde_json::from_str(text).expect("JSON");
            let events = trace["traceEvents"].as_array().expect("events");
            let ns = |event: &Value, key: &str| {
                (event[key].as_f64().expect("a time") * 1000.0).round() as i64
            };
            let cat = |event: &&Value, wanted: &[&str]| {
                event["cat"].as_str().is_some_and(|cat| wanted.contains(&cat))
            };
            let rules = Rules::builtin();
            let mut told = Told::default();
            let mut work = Vec::new();
            for event in events.iter().filter(|e| cat(e, &["kernel", "gpu_memcpy", "gpu_memset"])) {
                work.push((ns(event, "ts"), ns(event, "ts") + ns(event, "dur")));
                let name = event["name"].as_str().expect("a name");
                if cat(&event, &["kernel"]) {
                    told.kernels += 1;
                    if rules.class(rules.classify(name, Activity::Kernel)).name == class {
                        told.class_ns += ns(event, "dur");
                    }
                }
            }
            work.sort_unstable();
            for mark in events.iter().filter(|e| cat(e, &["user_annotation"])) {
                let name = mark["name"].as_str().expect("a name");
                if !name.starts_with("ProfilerStep#") && !name.starts_with("execute_") {
                    continue;
                }
                let (start, end) = (ns(mark, "ts"), ns(mark, "ts") + ns(mark, "dur"));
                let own = work.iter().filter(|span| span.0 >= start && span.1 <= end);
                let (mut from, mut to, mut busy) = (i64::MAX, i64::MIN, 0);
                for span in own {
                    busy += span.1 - span.0.max(to).min(span.1);
                    (from, to) = (from.min(span.0), to.max(span.1));
                }
                told.steps.push((name.to_owned(), to - from, busy));
            }
            told
        }

        fn wall_ns(&self) -> i64 {
            self.steps.iter().map(|step| step.1).sum()
        }

        fn busy_share(&self) -> f64 {
            self.steps.iter().map(|step| step.2).sum::<i64>() as f64 / self.wall_ns() as f64
        }

        /// Mean time of steps whose annotation starts with `mark`.
        fn mean_ns(&self, mark: &str) -> f64 {
            let of: Vec<i64> =
                self.steps.iter().filter(|step| step.0.starts_with(mark)).map(|s| s.1).collect();
            of.iter().sum::<i64>() as f64 / of.len() as f64
        }
    }

    fn told(pair: &Pair) -> [Told; 2] {
        [&pair.a, &pair.b].map(|text| Told::of(text, pair.class))
    }

    #[test]
    fn exact_values_match_the_traces() {
        for planted in Planted::ALL {
            for pair in
                [pair(planted, 1, 5), pair(planted, 3, 1), pair_without_python(planted, 2, 9)]
            {
                let [a, b] = told(&pair);
                let steps = pair.steps as f64;
                assert_eq!([a.steps.len(), b.steps.len()], [pair.steps as usize; 2], "{planted:?}");
                let gap_ns = (b.wall_ns() - a.wall_ns()) as f64 / steps;
                assert!((gap_ns - pair.gap_ns).abs() < 1e-3, "{planted:?}: {gap_ns} {pair:.0?}");
                let class_gap_ns = (b.class_ns - a.class_ns) as f64 / steps;
                assert!((class_gap_ns - pair.class_gap_ns).abs() < 1e-3, "{planted:?}");
                assert_eq!(a.class_ns > 0, !pair.class.is_empty(), "{planted:?}");
                for (text, other, kernels) in
                    [(&pair.a, &pair.b, &pair.only[0]), (&pair.b, &pair.a, &pair.only[1])]
                {
                    assert!(kernels.iter().all(|k| text.contains(k) && !other.contains(k)));
                }
            }
        }
    }

    /// Tests of comparisons rely on this: the difference is the planted one, and noise is small.
    #[test]
    fn difference_is_the_planted_one() {
        let layers = f64::from(LAYERS);
        let check = |planted, expected_us: f64, within_us: f64| {
            let gap_us = pair(planted, 6, 2).gap_ns / 1e3;
            assert!((gap_us - expected_us).abs() < within_us, "{planted:?}: {gap_us} µs");
        };
        check(Planted::SlowClass, layers * 0.2 * (21.4 + 358.0), 60.0);
        check(Planted::Fused, layers * (18.9 + 29.4 + 24.7 - 21.6 + 2.0), 60.0);
        check(Planted::LayerMore, 2_250.0, 150.0);
        check(Planted::OtherKernel, layers * 2.0 * 0.3 * 236.0, 60.0);
        check(Planted::ExposedCommunication, (layers - 1.0) * 215.0, 100.0);
        check(Planted::SlowHostGap, 950.0, 150.0);
        check(Planted::Nothing, 0.0, f64::MIN_POSITIVE);
        check(Planted::Noise, 0.0, 150.0);
    }

    #[test]
    fn exclusive_kernels_are_the_planted_ones() {
        let only = |planted| pair(planted, 1, 1).only;
        let [a, b] = only(Planted::Fused);
        assert_eq!(a, ["triton_red_fused_add_native_layer_norm_0"]);
        assert!(
            b.len() == 2 && b[0].contains("RowwiseMoments") && b[1].contains("LayerNormForward")
        );
        let [a, b] = only(Planted::OtherKernel);
        assert!(
            a.len() == 1
                && b.len() == 1
                && a[0].starts_with("nvjet_")
                && b[0].starts_with("nvjet_")
        );
        for planted in Planted::ALL {
            let differ = [Planted::Fused, Planted::OtherKernel, Planted::Vendors];
            let alike = only(planted).iter().all(Vec::is_empty);
            assert_eq!(alike, !differ.contains(&planted), "{planted:?}");
        }
    }

    /// A slower kernel lengthens a step only if the device is not waiting for the host.
    #[test]
    fn device_is_busy_unless_idle_time_is_planted() {
        for planted in Planted::ALL {
            let waits = [Planted::LateLaunches, Planted::SlowHostGap].contains(&planted);
            let [a, b] = told(&pair(planted, 2, 1)).map(|told| told.busy_share());
            assert!(a > 0.92, "{planted:?}: {a}");
            assert_eq!(b < a - 0.03, waits, "{planted:?}: {a} {b}");
        }
        let [a, b] = told(&pair(Planted::LateLaunches, 2, 1));
        assert!(b.busy_share() < 0.75 && a.kernels == b.kernels);
    }

    #[test]
    fn phase_mix_is_not_slower_within_a_phase() {
        let [a, b] = told(&pair(Planted::PhaseMix, 1, 3));
        assert!(a.steps.len() >= 20);
        for mark in ["execute_context_1", "execute_context_0"] {
            let ratio = b.mean_ns(mark) / a.mean_ns(mark);
            assert!((ratio - 1.0).abs() < 0.01, "{mark}: {ratio}");
        }
        assert!(b.wall_ns() > a.wall_ns() * 3 / 2);
    }

    #[test]
    fn pairs_are_reproducible() {
        for planted in Planted::ALL {
            let made = pair(planted, 1, 4);
            assert_eq!(made, pair(planted, 1, 4), "{planted:?}");
            assert_ne!(made.a, pair(planted, 1, 5).a, "{planted:?}");
            assert_eq!(made.a == made.b, planted == Planted::Nothing, "{planted:?}");
        }
    }

    #[test]
    fn without_python_there_are_no_frames_or_modules() {
        let (with, without) =
            (pair(Planted::LayerMore, 1, 1), pair_without_python(Planted::LayerMore, 1, 1));
        assert!(with.a.contains("python_function") && with.a.contains("nn.Module: Block_7"));
        for text in [&without.a, &without.b] {
            assert!(!text.contains("python_function") && !text.contains("with_stack"));
        }
        let kernels = |pair: &Pair| told(pair).map(|told| told.kernels);
        assert_eq!(kernels(&with), kernels(&without));
    }

    #[test]
    fn large_pairs_have_the_requested_size_and_equal_steps() {
        let plan = Plan {
            planted: Planted::SlowClass,
            length: Length::Bytes(3_000_000),
            seed: 1,
            python: true,
        };
        let pair = text(&plan);
        assert!((3_000_000..4_500_000).contains(&pair.a.len()), "{}", pair.a.len());
        assert!(pair.steps > 1 && told(&pair).iter().all(|t| t.steps.len() as u64 == pair.steps));
    }
}
