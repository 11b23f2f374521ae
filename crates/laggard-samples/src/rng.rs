//! Reproducible random numbers: SplitMix64.

/// A seeded random number generator.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Creates a generator.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which must be at least 1.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }

    /// A number from `low` to `high`, inclusive.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low.wrapping_add_unsigned(self.below(low.abs_diff(high).saturating_add(1)))
    }

    /// True with a probability of `percent` %.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of `items`, which must not be empty.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }

    /// Shuffles `items`.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }

    /// `nanos` ± 10 %, and 50 % more in one of 50 cases.
    pub fn jitter(&mut self, nanos: i64) -> i64 {
        let spread = nanos / 10;
        let slow = if self.below(50) == 0 { nanos / 2 } else { 0 };
        nanos + self.between(-spread, spread) + slow
    }

    /// An approximately normal number with mean 0 and standard deviation 1: the sum of twelve uniform
    /// numbers, which is the same on every machine.
    pub fn normal(&mut self) -> f64 {
        let even = |bits: u64| (bits >> 11) as f64 / (1u64 << 53) as f64;
        (0..12).map(|_| even(self.bits())).sum::<f64>() - 6.0
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;

    #[test]
    fn numbers_are_reproducible_and_in_range() {
        let (mut a, mut b) = (Rng::new(7), Rng::new(7));
        for _ in 0..1000 {
            assert_eq!(a.bits(), b.bits());
        }
        assert!((0..1000).all(|_| (-3..=3).contains(&a.between(-3, 3))));
        assert!((0..1000).all(|_| a.below(1) == 0));
        a.between(i64::MIN, i64::MAX);
    }

    #[test]
    fn normal_numbers_have_mean_0_and_deviation_1() {
        let mut rng = Rng::new(3);
        let numbers: Vec<f64> = (0..10_000).map(|_| rng.normal()).collect();
        let mean = numbers.iter().sum::<f64>() / 1e4;
        let variance = numbers.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / 1e4;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }
}
