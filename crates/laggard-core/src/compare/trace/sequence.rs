//! Alignment of two sequences.
//!
//! Given a score for each pair of elements, [`align`] finds the alignment with the largest total
//! score. Elements without a counterpart become gaps. Among equally good alignments, the one with
//! the latest gaps wins. Long sequences are aligned in a band around the diagonal.

/// One position of an alignment; at least one index is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Match {
    /// Index in A.
    pub(super) a: Option<usize>,
    /// Index in B.
    pub(super) b: Option<usize>,
}

/// Maximum number of cells computed.
const MOST_CELLS: usize = 16 << 20;
/// Minimum width of the band around the diagonal.
const NARROWEST: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Both,
    OnlyA,
    OnlyB,
}

/// Aligns sequences of `n` and `m` elements. `score` returns the score of a pair, or `None` if the
/// two cannot be paired; `alone` is the score of an element without a counterpart.
pub(super) fn align(
    n: usize,
    m: usize,
    alone: f32,
    score: impl Fn(usize, usize) -> Option<f32>,
) -> Vec<Match> {
    let band = Band::new(n, m);
    let mut steps = vec![Step::OnlyB; (n + 1) * band.width];
    let mut above = vec![f32::NEG_INFINITY; band.width];
    for i in 0..=n {
        let mut row = vec![f32::NEG_INFINITY; band.width];
        let first = band.first(i);
        for j in first..(first + band.width).min(m + 1) {
            let at = j - first;
            let from_above = |j: usize| {
                let before = band.first(i.wrapping_sub(1));
                j.checked_sub(before).and_then(|at| above.get(at)).copied()
            };
            let both = (i > 0 && j > 0)
                .then(|| Some(from_above(j - 1)? + score(i - 1, j - 1)?))
                .flatten()
                .unwrap_or(f32::NEG_INFINITY);
            let only_a =
                (i > 0).then(|| from_above(j)).flatten().map_or(f32::NEG_INFINITY, |s| s + alone);
            let only_b = if at > 0 { row[at - 1] + alone } else { f32::NEG_INFINITY };
            let (best, step) = match () {
                () if i == 0 && j == 0 => (0.0, Step::Both),
                () if only_b >= both && only_b >= only_a => (only_b, Step::OnlyB),
                () if only_a >= both => (only_a, Step::OnlyA),
                () => (both, Step::Both),
            };
            row[at] = best;
            steps[i * band.width + at] = step;
        }
        above = row;
    }
    trace_back(n, m, &band, &steps)
}

fn trace_back(n: usize, m: usize, band: &Band, steps: &[Step]) -> Vec<Match> {
    let (mut i, mut j) = (n, m);
    let mut found = vec![];
    while i > 0 || j > 0 {
        let at = j.checked_sub(band.first(i)).filter(|at| *at < band.width);
        let step = at.map_or(Step::OnlyA, |at| steps[i * band.width + at]);
        match step {
            Step::Both if i > 0 && j > 0 => {
                (i, j) = (i - 1, j - 1);
                found.push(Match { a: Some(i), b: Some(j) });
            }
            Step::OnlyB if j > 0 => {
                j -= 1;
                found.push(Match { a: None, b: Some(j) });
            }
            _ if i > 0 => {
                i -= 1;
                found.push(Match { a: Some(i), b: None });
            }
            _ => {
                j -= 1;
                found.push(Match { a: None, b: Some(j) });
            }
        }
    }
    found.reverse();
    found
}

/// The range of B's indexes considered for each index of A.
struct Band {
    n: usize,
    m: usize,
    width: usize,
}

impl Band {
    fn new(n: usize, m: usize) -> Band {
        let width = (MOST_CELLS / (n + 1)).max(NARROWEST).min(m + 1);
        Band { n, m, width }
    }

    fn first(&self, i: usize) -> usize {
        let i = i.min(self.n);
        let diagonal = if self.n == 0 {
            self.m
        } else {
            (i as u128 * self.m as u128 / self.n as u128) as usize
        };
        diagonal.saturating_sub(self.width / 2).min(self.m + 1 - self.width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn aligned(a: &str, b: &str) -> (String, String) {
        let (x, y): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
        let same = |i: usize, j: usize| (x[i] == y[j]).then_some(2.0);
        let found = align(x.len(), y.len(), -1.0, same);
        let show = |place: Option<usize>, of: &[char]| place.map_or('-', |place| of[place]);
        found.iter().map(|one| (show(one.a, &x), show(one.b, &y))).unzip()
    }

    fn check(a: &str, b: &str, expected: (&str, &str)) {
        assert_eq!(aligned(a, b), (expected.0.to_owned(), expected.1.to_owned()));
    }

    #[test]
    fn gaps_come_last() {
        check("abc", "abc", ("abc", "abc"));
        check("ac", "abc", ("a-c", "abc"));
        check("aaa", "aaaa", ("aaa-", "aaaa"));
        check("", "ab", ("--", "ab"));
        check("ab", "", ("ab", "--"));
        check("xay", "zaw", ("x-ay-", "-za-w"));
    }

    proptest! {
        #[test]
        fn every_element_occurs_once_and_in_order(a in "[abc]{0,40}", b in "[abc]{0,40}") {
            let (x, y) = aligned(&a, &b);
            prop_assert_eq!(x.replace('-', ""), a);
            prop_assert_eq!(y.replace('-', ""), b);
        }
    }

    #[test]
    fn long_sequences_are_aligned_in_a_band() {
        let (n, m) = (MOST_CELLS / 256, MOST_CELLS / 256 + 40);
        let found = align(n, m, -1.0, |i, j| (i % 97 == j % 97).then_some(2.0));
        assert_eq!(found.iter().filter(|one| one.a.is_some()).count(), n);
        assert_eq!(found.iter().filter(|one| one.b.is_some()).count(), m);
    }
}
