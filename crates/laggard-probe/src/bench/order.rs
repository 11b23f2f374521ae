//! Random order of the sides in a round, reproducible from the seed.

/// Generates orders with SplitMix64.
pub(super) struct Order(u64);

impl Order {
    pub(super) fn new(seed: u64) -> Order {
        Order(seed)
    }

    /// The numbers below `count`, shuffled.
    pub(super) fn next(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            order.swap(last, self.below(last + 1));
        }
        order
    }

    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        ((u128::from(z) * n as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_side_runs_first_equally_often() {
        let mut order = Order::new(1);
        let mut first = [0; 3];
        for _ in 0..3000 {
            first[order.next(3)[0]] += 1;
        }
        assert!(first.iter().all(|count| (900..1100).contains(count)), "{first:?}");
    }
}
