//! Comparison of profiles: functions and libraries that are slower in B or exist on one side only.
//!
//! Input is one or more recordings per side and a scale. Output is differences in self and total cost.
//! Self cost differences of all functions add up to the overall difference, and so do those of
//! libraries. With at least two recordings per side, differences have confidence intervals and
//! verdicts. With one, intervals cover only the sampling error, and there is no verdict.

use super::align::{Aligned, Alignment, align};
use crate::calls::name::Asked;
use crate::model::profile::FrameKind;
use crate::profile::{Cost, Costs, View, sum_groups};
use crate::stats::correct::benjamini_hochberg;
use crate::stats::means::{difference_of_means, difference_with_error};
use crate::stats::ratio::Interval;

/// Significance level for differences and for functions that are missing on a side.
const CHANCE: f64 = 0.05;

/// Minimum share of all samples for a function to be tested. Hundreds of functions have one or two
/// samples, and correcting for all of them would hide every difference in three recordings. The
/// selection does not depend on the difference, so it does not bias the test.
pub const LEAST_SHARE: f64 = 0.005;

/// Unit of costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// Nanoseconds per recording.
    Time,
    /// Event count per recording.
    Weight,
    /// Samples per recording.
    Samples,
    /// Share of the recording.
    Share,
    /// Event count per call, given the number of calls in A and B.
    PerCall([f64; 2]),
}

impl Scale {
    /// Default scale: time if both sides have it, event counts if both counted the same event,
    /// otherwise shares.
    pub fn of(a: &[View], b: &[View]) -> Scale {
        let all = || a.iter().chain(b);
        let is_counted = |view: &View| view.whole.weight != view.whole.samples;
        match all().next() {
            Some(_) if all().all(View::is_time) => Scale::Time,
            Some(first)
                if all().all(|view| {
                    view.event_name() == first.event_name() && view.unit() == first.unit()
                }) && all().all(is_counted) =>
            {
                Scale::Weight
            }
            _ => Scale::Share,
        }
    }

    /// A cost in this scale, for a recording with the total `whole`.
    pub fn amount(self, side: usize, cost: Cost, whole: Cost) -> f64 {
        match self {
            Scale::Time | Scale::Weight => cost.weight as f64,
            Scale::Samples => cost.samples as f64,
            Scale::Share => cost.share_of(whole),
            Scale::PerCall(calls) => cost.weight as f64 / calls[side],
        }
    }

    /// The id on the command line and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Scale::Time => "time",
            Scale::Weight => "weight",
            Scale::Samples => "samples",
            Scale::Share => "share",
            Scale::PerCall(_) => "call",
        }
    }
}

/// Differences between two sides.
#[derive(Clone, Debug)]
pub struct ProfileComparison {
    /// Unit of amounts.
    pub scale: Scale,
    /// Source of the confidence intervals.
    pub spread: Spread,
    /// The recordings of A and B.
    pub sides: [Recordings; 2],
    /// Overall difference.
    pub whole: Gap,
    /// Functions by decreasing absolute difference in self cost.
    pub functions: Vec<Finding>,
    /// Libraries in the same order.
    pub libraries: Vec<Finding>,
    /// Names of functions and libraries.
    pub alignment: Alignment,
}

/// Source of the confidence intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Variation between the recordings of a side.
    Recordings,
    /// Sampling error only, without the variation between runs.
    Sampling,
}

/// The recordings of one side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recordings {
    /// Total cost of each recording.
    pub wholes: Vec<Cost>,
    /// Number of functions with samples.
    pub functions: usize,
}

/// Comparison of one function or library.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Index in [`Alignment::functions`] or [`Alignment::libraries`].
    pub number: u32,
    /// Self cost.
    pub own: Gap,
    /// Total cost, with callees.
    pub total: Gap,
    /// The only side that has it: 0 for A, 1 for B.
    pub only_in: Option<usize>,
    /// If one side does not have it: probability of seeing no sample there if both sides had the same
    /// cost.
    pub missed: Option<f64>,
}

impl Finding {
    /// Whether the other side may have it too, without a sample by chance.
    pub fn could_be_chance(&self) -> bool {
        self.missed.is_some_and(|missed| missed >= CHANCE)
    }
}

/// An amount on both sides with the difference.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gap {
    /// Mean amount over the recordings of A and B.
    pub amounts: [f64; 2],
    /// Number of samples in all recordings of A and B.
    pub samples: [u64; 2],
    /// The difference with its 95 % confidence interval.
    pub interval: Option<Interval>,
    /// p-value of the difference; 1 with a single recording.
    pub p: f64,
    /// p-value corrected for all tested functions or libraries; 1 for untested ones.
    pub adjusted_p: f64,
    /// Conclusion of the comparison.
    pub verdict: GapVerdict,
}

/// Conclusion about a difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GapVerdict {
    /// B is significantly slower.
    Slower,
    /// B is significantly faster.
    Faster,
    /// The difference is within the variation between recordings.
    NoDetectableDifference,
    /// Too few samples to test, see [`LEAST_SHARE`].
    TooFewSamples,
    /// A side has only one recording.
    #[default]
    SingleSample,
}

impl GapVerdict {
    /// The id in JSON.
    pub fn word(self) -> &'static str {
        match self {
            GapVerdict::Slower => "slower",
            GapVerdict::Faster => "faster",
            GapVerdict::NoDetectableDifference => "not detectable",
            GapVerdict::TooFewSamples => "too few samples",
            GapVerdict::SingleSample => "single sample",
        }
    }
}

impl Gap {
    /// B minus A.
    pub fn gap(&self) -> f64 {
        self.amounts[1] - self.amounts[0]
    }

    /// B divided by A; `None` if either is 0.
    pub fn ratio(&self) -> Option<f64> {
        let [a, b] = self.amounts;
        (a > 0.0 && b > 0.0).then(|| b / a)
    }

    /// Share of the overall difference; `None` if that is 0.
    pub fn share_of(&self, whole: &Gap) -> Option<f64> {
        (whole.gap() != 0.0).then(|| self.gap() / whole.gap())
    }
}

impl ProfileComparison {
    /// The function of a finding.
    pub fn function(&self, finding: &Finding) -> &Aligned {
        self.function_at(finding.number)
    }

    /// The function with this index.
    pub fn function_at(&self, number: u32) -> &Aligned {
        &self.alignment.functions[number as usize]
    }

    /// The library of a finding.
    pub fn library(&self, finding: &Finding) -> &Aligned {
        &self.alignment.libraries[finding.number as usize]
    }

    /// Functions that only one side has, by decreasing total cost.
    pub fn only_in(&self, side: usize) -> Vec<&Finding> {
        let mut only: Vec<&Finding> =
            self.functions.iter().filter(|finding| finding.only_in == Some(side)).collect();
        only.sort_by(|x, y| {
            y.total.amounts[side]
                .total_cmp(&x.total.amounts[side])
                .then_with(|| x.number.cmp(&y.number))
        });
        only
    }

    /// Functions by decreasing absolute difference in total cost. Functions that contain nearly all
    /// cost on both sides, such as `main`, are skipped.
    pub fn by_total(&self) -> Vec<&Finding> {
        const EVERYTHING: f64 = 0.99;
        let is_around_all = |finding: &Finding| {
            finding
                .total
                .amounts
                .iter()
                .zip(self.whole.amounts)
                .all(|(of, whole)| whole > 0.0 && *of >= EVERYTHING * whole)
        };
        let mut all: Vec<&Finding> =
            self.functions.iter().filter(|finding| !is_around_all(finding)).collect();
        all.sort_by(|x, y| {
            let size = |finding: &Finding| finding.total.gap().abs();
            size(y).total_cmp(&size(x)).then_with(|| x.number.cmp(&y.number))
        });
        all
    }

    /// Keeps functions whose name on either side matches: an exact name, a pattern with `*` or `?`, or
    /// a substring. Returns false and changes nothing if no function matches.
    pub fn keep_functions(&mut self, asked: &str) -> bool {
        let functions = &self.alignment.functions;
        let names = |finding: &Finding| {
            let function = &functions[finding.number as usize];
            let all = function.names.iter().flatten().map(|named| named.name.as_str());
            all.flat_map(|label| [label, plain_name(label, function.kind)])
        };
        let asked = Asked::new(asked, self.functions.iter().flat_map(names));
        let is_meant = |finding: &Finding| names(finding).any(|name| asked.fits(name));
        if !self.functions.iter().any(is_meant) {
            return false;
        }
        let kept = std::mem::take(&mut self.functions);
        self.functions = kept.into_iter().filter(|finding| is_meant(finding)).collect();
        true
    }
}

/// The name from a label, without the file.
fn plain_name(label: &str, kind: FrameKind) -> &str {
    match kind {
        FrameKind::Python | FrameKind::Inlined => label.rsplit_once(" (").map_or(label, |(n, _)| n),
        _ => label,
    }
}

/// Compares the recordings of two sides.
pub fn compare(a: &[View], b: &[View], scale: Scale) -> ProfileComparison {
    let sides = [a, b];
    let alignment = align(a, b);
    let per_side = |sum: &dyn Fn(usize, usize, &View) -> Vec<Costs>| -> [Vec<Vec<Costs>>; 2] {
        [0, 1].map(|side| {
            let views = sides[side].iter().enumerate();
            views.map(|(recording, view)| sum(side, recording, view)).collect()
        })
    };
    let last = alignment.functions.len() - 1;
    let functions = per_side(&|side, recording, view| {
        let groups: Vec<u32> = (0u32..)
            .zip(&view.profile.frames)
            .map(|(number, frame)| match frame.kind {
                FrameKind::Mark => u32::MAX,
                _ => alignment.function(side, recording, view, number),
            })
            .collect();
        sum(view, &groups, alignment.functions.len(), last, last)
    });
    let last = alignment.libraries.len() - 1;
    let libraries = per_side(&|side, recording, view| {
        let groups: Vec<u32> = (0..view.profile.frames.len() as u32)
            .map(|frame| alignment.library(side, recording, frame))
            .collect();
        sum(view, &groups, alignment.libraries.len(), last - 1, last)
    });
    let scaled = Scaled::new(sides, scale);
    let functions = scaled.findings(&functions);
    let reached = |side: usize| functions.iter().filter(|f| f.total.samples[side] > 0).count();
    let recordings = [0, 1]
        .map(|side| Recordings { wholes: scaled.wholes[side].clone(), functions: reached(side) });
    ProfileComparison {
        scale,
        spread: scaled.spread(),
        sides: recordings,
        whole: scaled.whole(),
        functions,
        libraries: scaled.findings(&libraries),
        alignment,
    }
}

/// Costs of each group of frames in one recording. `otherwise` is the group for stacks without any
/// grouped frame, `unread` the one for samples without a stack.
fn sum(view: &View, groups: &[u32], count: usize, otherwise: usize, unread: usize) -> Vec<Costs> {
    let mut costs = sum_groups(view, &view.stacks, groups, count);
    for (at, row) in [(unread, costs.pop()), (otherwise, costs.pop())] {
        let Some(row) = row else { continue };
        costs[at].own.add(row.own);
        costs[at].total.add(row.total);
    }
    costs
}

/// Totals of the recordings of both sides, and the scale.
struct Scaled {
    scale: Scale,
    wholes: [Vec<Cost>; 2],
    /// Total of the event in each recording, before filters.
    taken: [Vec<Cost>; 2],
}

impl Scaled {
    fn new(sides: [&[View]; 2], scale: Scale) -> Scaled {
        let taken = |view: &View| {
            let mut taken = Cost::default();
            let of_event = view.profile.samples.iter().filter(|sample| sample.event == view.event);
            of_event.for_each(|sample| taken.add(Cost::of(sample)));
            taken
        };
        Scaled {
            scale,
            wholes: sides.map(|views| views.iter().map(|view| view.whole).collect()),
            taken: sides.map(|views| views.iter().map(taken).collect()),
        }
    }

    fn spread(&self) -> Spread {
        match self.wholes.iter().all(|side| side.len() > 1) {
            true => Spread::Recordings,
            false => Spread::Sampling,
        }
    }

    /// Number of samples of both sides.
    fn samples(&self) -> f64 {
        self.wholes.iter().flatten().map(|whole| whole.samples as f64).sum()
    }

    fn whole(&self) -> Gap {
        // The number of samples in a recording is not random, because the clock is regular. The
        // number that passes the filter is.
        let variance = [0, 1].map(|side| self.counting_variance(side, &self.wholes[side]));
        let mut gap = self.gap(&self.wholes, variance);
        if self.spread() == Spread::Sampling && variance == [0.0; 2] {
            gap.interval = None;
        }
        gap.judge(gap.p);
        gap
    }

    fn findings(&self, costs: &[Vec<Vec<Costs>>; 2]) -> Vec<Finding> {
        let count = costs.iter().flatten().next().map_or(0, Vec::len);
        let mut found: Vec<Finding> =
            (0..count).filter_map(|number| self.finding(number, costs)).collect();
        let parts: [fn(&mut Finding) -> &mut Gap; 2] = [|of| &mut of.own, |of| &mut of.total];
        for gap in parts {
            let mut judged: Vec<&mut Gap> = vec![];
            for gap in found.iter_mut().map(gap) {
                match gap.samples.iter().sum::<u64>() as f64 >= LEAST_SHARE * self.samples() {
                    true => judged.push(gap),
                    false if gap.verdict == GapVerdict::SingleSample => {}
                    false => gap.verdict = GapVerdict::TooFewSamples,
                }
            }
            let p: Vec<f64> = judged.iter().map(|gap| gap.p).collect();
            for (gap, adjusted) in judged.into_iter().zip(benjamini_hochberg(&p)) {
                gap.judge(adjusted);
            }
        }
        found.sort_by(|x, y| {
            let size = |gap: &Gap| gap.gap().abs();
            size(&y.own)
                .total_cmp(&size(&x.own))
                .then_with(|| size(&y.total).total_cmp(&size(&x.total)))
                .then_with(|| x.number.cmp(&y.number))
        });
        found
    }

    /// `None` if no recording has samples.
    fn finding(&self, number: usize, costs: &[Vec<Vec<Costs>>; 2]) -> Option<Finding> {
        let of = |part: fn(&Costs) -> Cost| {
            let costs: [Vec<Cost>; 2] = [0, 1]
                .map(|side| costs[side].iter().map(|recording| part(&recording[number])).collect());
            let variance = [0, 1].map(|side| self.counting_variance(side, &costs[side]));
            self.gap(&costs, variance)
        };
        let (own, total) = (of(|costs| costs.own), of(|costs| costs.total));
        let only_in = match total.samples {
            [0, 0] => return None,
            [_, 0] => Some(0),
            [0, _] => Some(1),
            _ => None,
        };
        let missed = only_in.map(|side| self.missed(side, total.samples[side]));
        Some(Finding { number: number as u32, own, total, only_in, missed })
    }

    fn gap(&self, costs: &[Vec<Cost>; 2], variance: [f64; 2]) -> Gap {
        let amounts: [Vec<f64>; 2] = [0, 1].map(|side| {
            let pairs = costs[side].iter().zip(&self.wholes[side]);
            pairs.map(|(cost, whole)| self.scale.amount(side, *cost, *whole)).collect()
        });
        let [a, b] = [0, 1].map(|side| mean(&amounts[side]));
        let difference = difference_of_means(&amounts[0], &amounts[1], variance);
        let of_counting = || difference_with_error(b - a, variance.iter().sum());
        Gap {
            amounts: [a, b],
            samples: [0, 1].map(|side| costs[side].iter().map(|cost| cost.samples).sum()),
            interval: Some(difference.map_or_else(of_counting, |found| found.gap)),
            p: difference.map_or(1.0, |found| found.p),
            adjusted_p: 1.0,
            verdict: match difference {
                Some(_) => GapVerdict::NoDetectableDifference,
                None => GapVerdict::SingleSample,
            },
        }
    }

    /// Sampling variance of a side's mean: binomial variance of each recording. Adding half a sample
    /// avoids zero variance for functions without samples.
    fn counting_variance(&self, side: usize, costs: &[Cost]) -> f64 {
        let of_recording = |((cost, whole), taken): ((&Cost, &Cost), &Cost)| {
            // Shares are relative to the samples that pass the filter.
            let all = if self.scale == Scale::Share { whole.samples } else { taken.samples };
            if whole.samples == 0 {
                return 0.0;
            }
            let (n, all) = (cost.samples as f64, all as f64);
            let seen = if cost.samples > 0 { cost } else { whole };
            let one = self.scale.amount(side, *seen, *whole) / seen.samples as f64;
            one * one * (n + 0.5) * (1.0 - n / all).max(0.0)
        };
        let pairs = costs.iter().zip(&self.wholes[side]).zip(&self.taken[side]);
        let sum: f64 = pairs.map(of_recording).sum();
        sum / (costs.len() as f64).powi(2)
    }

    /// Probability that all `samples` of a function are on this side if both sides have the same cost.
    fn missed(&self, side: usize, samples: u64) -> f64 {
        let [has, lacks] = [side, 1 - side].map(|side| {
            // Expected number of samples per unit of cost.
            let recordings = self.taken[side].iter().zip(&self.wholes[side]);
            let chances = recordings.map(|(taken, whole)| {
                let all = if self.scale == Scale::Share { whole } else { taken };
                let amount = self.scale.amount(side, *all, *all);
                if amount > 0.0 { all.samples as f64 / amount } else { 0.0 }
            });
            chances.sum::<f64>()
        });
        if lacks > 0.0 { (has / (has + lacks)).powf(samples as f64) } else { 1.0 }
    }
}

impl Gap {
    fn judge(&mut self, adjusted_p: f64) {
        self.adjusted_p = adjusted_p;
        if self.verdict != GapVerdict::SingleSample {
            self.verdict = match self.gap() {
                _ if adjusted_p >= CHANCE => GapVerdict::NoDetectableDifference,
                gap if gap > 0.0 => GapVerdict::Slower,
                _ => GapVerdict::Faster,
            };
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}
