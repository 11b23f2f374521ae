//! Profiles of two sides: which functions and libraries take longer in B, and which are on one side
//! alone.
//!
//! You give one or more recordings a side and what to scale them to, you get gaps of self and total
//! cost. Self gaps of all functions add up to the gap of the wholes, and so do those of libraries.
//! With two recordings or more on both sides gaps have intervals and verdicts; with one they have
//! what counting samples alone leaves open, and no verdict.

use super::align::{Aligned, Alignment, align};
use crate::calls::name::Asked;
use crate::model::profile::FrameKind;
use crate::profile::{Cost, Costs, View, sum_groups};
use crate::stats::correct::benjamini_hochberg;
use crate::stats::means::{difference_of_means, difference_with_error};
use crate::stats::ratio::Interval;

/// p from which a difference, or that a function is missing, may be chance.
const CHANCE: f64 = 0.05;

/// Of all samples of both sides, the share from which a function is judged. Hundreds of functions have
/// a sample or two, and a correction over all of them would leave no difference to be found in
/// three recordings. The choice does not look at the gap, so that it makes none.
pub const LEAST_SHARE: f64 = 0.005;

/// What the cost of a recording is measured in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// Nanoseconds of a recording.
    Time,
    /// What the event counts, in a recording.
    Weight,
    /// Samples of a recording.
    Samples,
    /// The share of a recording's own whole.
    Share,
    /// What the event counts in one call; the recordings of A and B have so many.
    PerCall([f64; 2]),
}

impl Scale {
    /// The scale that suits: time where both sides have it, what was counted where both counted the
    /// same, else shares.
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

    /// What a cost is of a recording with this whole.
    pub fn amount(self, side: usize, cost: Cost, whole: Cost) -> f64 {
        match self {
            Scale::Time | Scale::Weight => cost.weight as f64,
            Scale::Samples => cost.samples as f64,
            Scale::Share => cost.share_of(whole),
            Scale::PerCall(calls) => cost.weight as f64 / calls[side],
        }
    }

    /// As the command line and JSON have it.
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

/// What two sides differ in.
#[derive(Clone, Debug)]
pub struct ProfileComparison {
    /// What amounts are.
    pub scale: Scale,
    /// Where intervals come from.
    pub spread: Spread,
    /// The recordings of A and B.
    pub sides: [Recordings; 2],
    /// All of B against all of A.
    pub whole: Gap,
    /// Functions, largest gap of their own first, whichever its sign.
    pub functions: Vec<Finding>,
    /// Libraries, likewise.
    pub libraries: Vec<Finding>,
    /// What functions and libraries are called.
    pub alignment: Alignment,
}

/// Where intervals come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// From how recordings of a side differ.
    Recordings,
    /// From how many samples there are; what another run would change is not in it.
    Sampling,
}

/// The recordings of one side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recordings {
    /// What each amounts to.
    pub wholes: Vec<Cost>,
    /// Functions they reach.
    pub functions: usize,
}

/// A function or library on both sides, or on one.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Place in [`Alignment::functions`] or [`Alignment::libraries`].
    pub number: u32,
    /// In it and in nothing it called.
    pub own: Gap,
    /// In it and in what it called.
    pub total: Gap,
    /// The only side that has it: 0 for A, 1 for B.
    pub only_in: Option<usize>,
    /// Of one that a side does not have: how likely no sample would show it if it were as frequent
    /// there.
    pub missed: Option<f64>,
}

impl Finding {
    /// Whether a side may have it too, with no sample in it.
    pub fn could_be_chance(&self) -> bool {
        self.missed.is_some_and(|missed| missed >= CHANCE)
    }
}

/// An amount of both sides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gap {
    /// What A and B have, in the mean of their recordings.
    pub amounts: [f64; 2],
    /// Samples of all their recordings.
    pub samples: [u64; 2],
    /// The gap, and the range that holds it with 95 % confidence.
    pub interval: Option<Interval>,
    /// How likely so large a gap is by chance; 1 when single recordings cannot say.
    pub p: f64,
    /// The same, corrected over all functions or libraries that are judged; 1 for others.
    pub adjusted_p: f64,
    /// What to make of it.
    pub verdict: GapVerdict,
}

/// What to make of a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GapVerdict {
    /// B has more.
    Slower,
    /// B has less.
    Faster,
    /// Nothing can be told apart from how recordings differ.
    NoDetectableDifference,
    /// Samples are too few to look for a difference, see [`LEAST_SHARE`].
    TooFewSamples,
    /// A side has one recording.
    #[default]
    SingleSample,
}

impl GapVerdict {
    /// As JSON has it.
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
    /// What B has minus what A has.
    pub fn gap(&self) -> f64 {
        self.amounts[1] - self.amounts[0]
    }

    /// What B has over what A has; none when either has none.
    pub fn ratio(&self) -> Option<f64> {
        let [a, b] = self.amounts;
        (a > 0.0 && b > 0.0).then(|| b / a)
    }

    /// The share of a whole gap; none when that is none.
    pub fn share_of(&self, whole: &Gap) -> Option<f64> {
        (whole.gap() != 0.0).then(|| self.gap() / whole.gap())
    }
}

impl ProfileComparison {
    /// What a function is called.
    pub fn function(&self, finding: &Finding) -> &Aligned {
        self.function_at(finding.number)
    }

    /// The function of a number.
    pub fn function_at(&self, number: u32) -> &Aligned {
        &self.alignment.functions[number as usize]
    }

    /// What a library is called.
    pub fn library(&self, finding: &Finding) -> &Aligned {
        &self.alignment.libraries[finding.number as usize]
    }

    /// Functions that one side alone reaches, most of their total first.
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

    /// Functions by the gap of their totals, largest first. Those that are around everything on both
    /// sides, as a program's first, say nothing and are left out.
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

    /// Keeps functions whose name is meant on either side: an exact name, a pattern with `*` or `?`,
    /// or a part. False when there are none, and then nothing changes.
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

/// The name alone, of a label with the file behind it.
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

/// What one recording spends in each of so many groups of frames, some of which stand for stacks
/// without any and for samples without a stack.
fn sum(view: &View, groups: &[u32], count: usize, otherwise: usize, unread: usize) -> Vec<Costs> {
    let mut costs = sum_groups(view, &view.stacks, groups, count);
    for (at, row) in [(unread, costs.pop()), (otherwise, costs.pop())] {
        let Some(row) = row else { continue };
        costs[at].own.add(row.own);
        costs[at].total.add(row.total);
    }
    costs
}

/// The recordings of both sides, and what to scale them to.
struct Scaled {
    scale: Scale,
    wholes: [Vec<Cost>; 2],
    /// What each recording has of the event, whatever the view keeps of it.
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

    /// All samples of both sides.
    fn samples(&self) -> f64 {
        self.wholes.iter().flatten().map(|whole| whole.samples as f64).sum()
    }

    fn whole(&self) -> Gap {
        // How many samples a run has is no matter of luck, since the clock is regular; how many of
        // them are kept is.
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

    /// None when no recording has it.
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

    /// The variance that counting samples gives the mean of a side: of each recording that of a
    /// binomial count, of which half a sample more than was seen keeps none from looking certain.
    fn counting_variance(&self, side: usize, costs: &[Cost]) -> f64 {
        let of_recording = |((cost, whole), taken): ((&Cost, &Cost), &Cost)| {
            // Shares are of what is kept.
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

    /// How likely all `samples` of a function are on this side when both sides spend as much in it.
    fn missed(&self, side: usize, samples: u64) -> f64 {
        let [has, lacks] = [side, 1 - side].map(|side| {
            // Samples that one of an amount would give.
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
