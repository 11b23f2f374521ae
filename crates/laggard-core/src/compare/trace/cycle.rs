//! Detection of repeating sequences: steps in traces without markers, and layers without module
//! calls.

use rustc_hash::FxHashMap;

/// A part of a sequence in which a period repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cycle {
    /// Index of the first period.
    pub(super) start: usize,
    /// Length of a period.
    pub(super) period: usize,
    /// Number of complete periods.
    pub(super) repeats: usize,
}

impl Cycle {
    /// The number of the period that contains an index.
    pub(super) fn of(&self, place: usize) -> Option<usize> {
        let number = place.checked_sub(self.start)? / self.period;
        (number < self.repeats).then_some(number)
    }

    /// Number of elements covered.
    pub(super) fn covered(&self) -> usize {
        self.period * self.repeats
    }
}

/// Minimum number of repetitions.
const FEWEST_REPEATS: usize = 3;
/// Maximum number of candidate periods.
const MOST_PERIODS: usize = 16;
/// Number of matches that offset one mismatch.
const MISMATCH: i64 = 4;
/// Relative score loss that is accepted for a shorter period.
const AS_GOOD: f64 = 0.02;

/// Finds the cycle that covers most of a sequence. Among cycles with nearly equal coverage, the one
/// with the shortest period wins.
pub(super) fn cycle(sequence: &[u32]) -> Option<Cycle> {
    let found: Vec<(i64, Cycle)> =
        periods(sequence).into_iter().filter_map(|period| with_period(sequence, period)).collect();
    let best = found.iter().map(|(score, _)| *score).max()?;
    let as_good = |score: i64| score as f64 >= best as f64 * (1.0 - AS_GOOD);
    let good = found.into_iter().filter(|(score, _)| as_good(*score));
    good.map(|(_, cycle)| cycle).min_by_key(|cycle| cycle.period)
}

/// The best cycle with this period, tolerating some mismatches, and its score.
pub(super) fn with_period(sequence: &[u32], period: usize) -> Option<(i64, Cycle)> {
    let later = sequence.get(period..)?;
    // Maximum-sum subarray of matches and mismatches.
    let (mut best, mut best_from, mut best_to) = (0, 0, 0);
    let (mut sum, mut from) = (0i64, 0);
    for (place, (one, next)) in sequence.iter().zip(later).enumerate() {
        sum += if one == next { 1 } else { -MISMATCH };
        if sum <= 0 {
            (sum, from) = (0, place + 1);
        } else if sum > best {
            (best, best_from, best_to) = (sum, from, place + 1);
        }
    }
    let repeats = (best_to + period - best_from) / period;
    let cycle = Cycle { start: best_from, period, repeats };
    (best > 0 && repeats >= FEWEST_REPEATS).then_some((best, cycle))
}

/// Candidate periods: the most regular distances between equal elements.
fn periods(sequence: &[u32]) -> Vec<usize> {
    let mut last: FxHashMap<u32, usize> = FxHashMap::default();
    let mut by_thing: FxHashMap<(u32, usize), usize> = FxHashMap::default();
    for (place, thing) in sequence.iter().enumerate() {
        if let Some(before) = last.insert(*thing, place) {
            *by_thing.entry((*thing, place - before)).or_default() += 1;
        }
    }
    // Weight of a distance: how much of the sequence its repetitions span.
    let mut weights: FxHashMap<usize, usize> = FxHashMap::default();
    for ((_, distance), count) in by_thing {
        if distance > 1 && count + 1 >= FEWEST_REPEATS {
            let weight = weights.entry(distance).or_default();
            *weight = (*weight).max(count * distance);
        }
    }
    let mut periods: Vec<(usize, usize)> = weights.into_iter().collect();
    periods.sort_by_key(|&(distance, weight)| (std::cmp::Reverse(weight), distance));
    periods.into_iter().take(MOST_PERIODS).map(|(distance, _)| distance).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> Vec<u32> {
        text.bytes().map(u32::from).collect()
    }

    fn check(text: &str, expected: Option<(usize, usize, usize)>) {
        let found = cycle(&numbers(text)).map(|found| (found.start, found.period, found.repeats));
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn layers_between_other_kernels() {
        check("xyabcabcabcabcz", Some((2, 3, 4)));
        check("xyabacabacabacabacz", Some((2, 4, 4)));
        check("abcdef", None);
        check("aaaaaa", None);
        check("", None);
        check("abab", None);
    }

    #[test]
    fn steps_are_preferred_over_their_layers() {
        let step = "pabcabcabcabcq";
        check(&step.repeat(5), Some((0, step.len(), 5)));
    }

    #[test]
    fn a_mismatch_does_not_end_a_cycle() {
        check("abcdeabcdeabXdeabcdeabcdeabcde", Some((0, 5, 6)));
    }
}
