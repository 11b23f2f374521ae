//! The `complexity` judge: B's time grows faster with the size of the input than A's.

use super::{Culprit, Finding, Judgement, Kind, Pair, SMALLEST_SHARE, Unit};

/// Smaller differences of the exponents are ignored.
const SMALLEST_DIFFERENCE: f64 = 0.1;

/// The finding and the share of the lag that it explains: the part by which B's time exceeds the time
/// that it would have if it had grown as A's.
fn judge_complexity(pair: &Pair<'_>) -> Option<(Finding, f64)> {
    let (a, b) = (pair.a.growth.as_ref()?, pair.b.growth.as_ref()?);
    let (of_a, of_b) = (a.exponent(), b.exponent());
    if of_b.low <= of_a.high || of_b.middle - of_a.middle < SMALLEST_DIFFERENCE {
        return None;
    }
    let ends = |points: &[(f64, f64)]| Some([points.first()?.1, points.last()?.1]);
    let ([a_first, a_last], [b_first, b_last]) = (ends(&a.points)?, ends(&b.points)?);
    let expected = b_first * a_last / a_first;
    let lag = b_last - a_last;
    if lag <= 0.0 {
        return None;
    }
    let share = ((b_last - expected) / lag).clamp(0.0, 1.0);
    let n = &b.parameter;
    let advice = format!(
        "B's algorithm takes more steps per element for larger {n}: look for a search, a copy or an \
         insertion inside a loop at this place"
    );
    let points = b.points.len() as u64;
    let finding = Finding::new(Kind::Complexity, "", advice)
        .fact(&format!("exponent of {n}"), [of_a.middle, of_b.middle], Unit::Count, points)
        .fact(&format!("time at the smallest {n}"), [a_first, b_first], Unit::Nanos, points)
        .fact(&format!("time at the largest {n}"), [a_last, b_last], Unit::Nanos, points);
    (share >= SMALLEST_SHARE).then_some((finding, share))
}

impl Judgement {
    /// Adds the culprit `complexity` at the place of the first culprit. The shares
    /// of the other culprits are multiplied by the part that it does not explain.
    pub(super) fn add_complexity(&mut self, pair: &Pair<'_>, lost: f64) {
        let Some((mut finding, share)) = judge_complexity(pair) else { return };
        let first = self.culprits.first().cloned();
        finding.at = first.as_ref().map_or("the whole call", |first| &first.finding.at).to_owned();
        let (point, work) = first.map(|first| (first.point, first.work)).unwrap_or_default();
        let culprit = Culprit::new(finding, share, share * lost);
        for other in &mut self.culprits {
            other.explains *= 1.0 - share;
            other.gap_ns *= 1.0 - share;
        }
        self.culprits.retain(|other| other.explains >= SMALLEST_SHARE);
        self.culprits.insert(0, Culprit { point, work, ..culprit });
        self.culprits.sort_by(|x, y| y.explains.total_cmp(&x.explains));
    }
}
