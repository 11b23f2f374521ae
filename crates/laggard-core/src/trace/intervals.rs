//! Sets of time as sorted, disjoint intervals.

/// The union of intervals sorted by start.
pub(super) fn union(sorted: impl Iterator<Item = (i64, i64)>) -> Vec<(i64, i64)> {
    let mut all: Vec<(i64, i64)> = vec![];
    for (start, end) in sorted {
        match all.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => all.push((start, end)),
        }
    }
    all
}

/// Total length of a set.
pub(super) fn length(set: &[(i64, i64)]) -> i64 {
    set.iter().fold(0i64, |sum, (start, end)| sum.saturating_add(end.saturating_sub(*start)))
}

/// Length of `a` outside `b`.
pub(super) fn length_outside(a: &[(i64, i64)], b: &[(i64, i64)]) -> i64 {
    let mut outside = 0i64;
    let mut next = 0;
    for &(start, end) in a {
        let mut at = start;
        while next < b.len() && b[next].1 <= at {
            next += 1;
        }
        let mut i = next;
        while at < end {
            match b.get(i) {
                Some(&(from, to)) if from < end => {
                    outside = outside.saturating_add(from.saturating_sub(at).max(0));
                    at = at.max(to);
                    i += 1;
                }
                _ => {
                    outside = outside.saturating_add(end.saturating_sub(at));
                    at = end;
                }
            }
        }
    }
    outside
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn covered(set: &[(i64, i64)], t: i64) -> bool {
        set.iter().any(|&(start, end)| (start..end).contains(&t))
    }

    proptest! {
        #[test]
        fn lengths_match_brute_force(mut a in prop::collection::vec((0i64..60, 0i64..9), 0..20), mut b in prop::collection::vec((0i64..60, 0i64..9), 0..20)) {
            a.sort();
            b.sort();
            let (a, b) = (a.into_iter().map(|(s, d)| (s, s + d)).collect::<Vec<_>>(), b.into_iter().map(|(s, d)| (s, s + d)).collect::<Vec<_>>());
            let (ua, ub) = (union(a.iter().copied()), union(b.iter().copied()));
            prop_assert_eq!(length(&ua), (0..80).filter(|&t| covered(&a, t)).count() as i64);
            prop_assert_eq!(length_outside(&ua, &ub), (0..80).filter(|&t| covered(&a, t) && !covered(&b, t)).count() as i64);
        }
    }
}
