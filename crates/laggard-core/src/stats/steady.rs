//! Detection of the end of warm-up: calls no longer become faster.

use super::summary::Summary;

/// Minimum number of samples.
const FEWEST_SAMPLES: usize = 8;
/// Number of recent samples compared with earlier ones.
const LATEST: usize = 3;
/// Tolerated decrease as a share of the time.
const TOLERANCE: f64 = 0.01;
/// Minimum decrease in units of its standard error.
const CLEARLY: f64 = 2.0;

/// Whether a series of times has stopped decreasing. Uses the second half of the series, so that a slow
/// start is ignored once as many samples follow it. A decrease counts if it exceeds 1 % and the noise.
/// Noisy and increasing series are therefore steady.
pub fn is_steady(times: &[f64]) -> bool {
    let recent = &times[(times.len() / 2).min(times.len().saturating_sub(FEWEST_SAMPLES))..];
    if recent.len() < FEWEST_SAMPLES {
        return false;
    }
    let (early, late) = recent.split_at(recent.len() / 2);
    let latest = &recent[recent.len() - LATEST..];
    !falls(early, late) && !falls(early, latest)
}

fn falls(early: &[f64], late: &[f64]) -> bool {
    let (from, to) = (Summary::of(early), Summary::of(late));
    let error = error_of_median(&from).hypot(error_of_median(&to).max(spread(&from) / root(to.n)));
    from.median - to.median > (TOLERANCE * to.median).max(CLEARLY * error)
}

/// Standard error of a median, estimated from the MAD.
fn error_of_median(of: &Summary) -> f64 {
    spread(of) / root(of.n)
}

fn spread(of: &Summary) -> f64 {
    1.2533 * 1.4826 * of.mad
}

fn root(n: usize) -> f64 {
    (n.max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_steady(times: impl Fn(usize) -> f64) -> Option<usize> {
        let times: Vec<f64> = (0..500).map(times).collect();
        (0..=times.len()).find(|n| is_steady(&times[..*n]))
    }

    /// Reproducible noise between -1 and 1.
    fn noise(i: usize) -> f64 {
        (i * 7919 % 1009) as f64 / 504.0 - 1.0
    }

    #[test]
    fn warm_up_is_not_steady() {
        let slow_start = |i: usize| if i < 20 { 300.0 } else { 100.0 } + noise(i);
        let times: Vec<f64> = (0..60).map(slow_start).collect();
        assert!((22..31).all(|n| !is_steady(&times[..n])), "still sees the slow start");
        assert!((44..60).all(|n| is_steady(&times[..n])), "the slow start is long gone");
        let decay = |i: usize| 100.0 * (1.0 + 2.0 * (-(i as f64) / 15.0).exp()) + noise(i);
        let at = first_steady(decay).unwrap();
        assert!((40..160).contains(&at), "{at}");
    }

    #[test]
    fn flat_series_are_steady_with_any_noise() {
        assert_eq!(first_steady(|_| 5.0), Some(FEWEST_SAMPLES));
        assert!(first_steady(|i| 100.0 + 40.0 * noise(i)).unwrap() < 20);
        assert!(first_steady(|i| if i % 7 == 0 { 1000.0 } else { 100.0 }).unwrap() < 20);
        assert!(first_steady(|i| 100.0 + i as f64).unwrap() < 20, "rising is no warm-up");
    }

    #[test]
    fn short_series_are_not_steady() {
        assert!(!is_steady(&[]) && !is_steady(&[1.0; 7]) && is_steady(&[0.0; 8]));
        assert!(is_steady(&[f64::NAN; 20]));
    }
}
